/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file velo_ompi.h
 * @brief Shared by the MTL and the BTL: opening a port for a rank, finding the ports of peers, and
 * the decision when a waiting rank lets others run.
 */
#ifndef VELO_MPI_COMMON_VELO_OMPI_H
#define VELO_MPI_COMMON_VELO_OMPI_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/compat.h"

#include "opal/mca/mca.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

#include <velo/rma.h>
#include <velo/velo.h>

struct ompi_communicator_t;

#define VELO_OMPI_DOMAIN_BYTES ((int)VELO_DOMAIN_NAME_MAX + 1)

/** Empty polls to one yield, where ranks outnumber cores. A yield costs as much as some tens of
 * polls, and a program that looks for messages between short pieces of work (MPI_Test) would give
 * its core away after each piece. */
#define VELO_OMPI_YIELD_POLLS 64u

/** MCA parameters that both components have; see velo_ompi_register(). */
struct velo_ompi_params {
    char *domain;
    unsigned depth_slots;
    unsigned data_bytes;
    unsigned conns_max;
    bool simulated;
    int sleep;
    unsigned sleep_polls;
    unsigned sleep_us;
};

/** The address of its port that a rank publishes, up to the end of the name. */
struct velo_ompi_address {
    uint64_t memory; /**< The same for all that share the memory in which ports are; not 0. */
    velo_id_t id;
    uint32_t name_bytes; /**< 0: ranks of other nodes do not reach it. */
    char domain[VELO_OMPI_DOMAIN_BYTES];
    unsigned char name[VELO_PORT_NAME_BYTES_MAX];
};

/** A rank's port and its RMA unit. */
struct velo_ompi_port {
    struct velo_port *port;
    struct velo_rma *rma;
    bool reaches_others; /**< It reaches the ranks of other nodes. */
    struct velo_ompi_address address;
};

/** The policy by which a waiting rank goes to sleep. */
struct velo_ompi_idle {
    bool oversubscribed;
    bool automatic;     /**< As Open MPI's mpi_yield_when_idle says, once MPI_Init has set that. */
    uint32_t polls_max; /**< Yields before a sleep. */
    int64_t sleep_ns;
    uint32_t spins;    /**< Empty polls since the last yield. */
    uint32_t polls;    /**< Yields in a row. */
    int64_t polled_ns; /**< The time of the last one. */
    bool has_poller;
    pthread_t poller; /**< The first thread that has polled. */
    bool has_others;  /**< Others have, too. */
};

/** Is the Open MPI that has loaded the component one that it was built for? A class that the
 *  component knows to be of that size is looked at, too. Prints the reason if not. The first that a
 *  component asks. */
bool velo_ompi_fits(const opal_class_t *known, size_t len_bytes);

/** Register the common parameters of a component; the defaults are those of *params. */
void velo_ompi_register(const mca_base_component_t *component, struct velo_ompi_params *params);

/** Open this rank's port and RMA unit, publish their address. Prints the reason if it fails. */
int velo_ompi_open(const mca_base_component_t *component, const struct velo_ompi_params *params,
                   struct velo_ompi_port *port);
void velo_ompi_close(struct velo_ompi_port *port);

/** The address that a process has published; the port is told how to reach it. Prints the reason if
 *  we cannot reach its port. */
int velo_ompi_find(const mca_base_component_t *component, const struct velo_ompi_port *port,
                   const opal_process_name_t *process, velo_id_t *id);

/** Does a process share the memory of this rank's port? It may be of another job, of which the
 *  launcher does not say where it runs. */
bool velo_ompi_shares_memory(const mca_base_component_t *component,
                             const struct velo_ompi_port *port, const opal_process_name_t *process);
/** Is it of another job, and in this rank's domain, too? Then both can reach each other. */
bool velo_ompi_meets(const mca_base_component_t *component, const struct velo_ompi_port *port,
                     const opal_process_name_t *process);

/** The longest wait for a connection. Ports of a job are open before any rank learns their ids: the
 *  rest is time for a slow system, and for a network that loses what begins a connection. */
static inline int64_t velo_ompi_connect_ns(const struct velo_ompi_port *port)
{
    return port->reaches_others ? INT64_C(30000000000) : INT64_C(1000000000);
}

/** Ranks of this job on this node, this one included. */
int velo_ompi_local_ranks(void);

/** Ranks of this job that a port reaches, this one included. */
int velo_ompi_reached_ranks(const struct velo_ompi_port *port);

/** Does it reach a process of this locality? */
static inline bool velo_ompi_reaches(const struct velo_ompi_port *port,
                                     opal_hwloc_locality_t locality)
{
    return port->reaches_others || OPAL_PROC_ON_LOCAL_NODE(locality);
}

/** Tell the core that this is a spin loop. */
static inline void velo_ompi_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/** Nanoseconds of CLOCK_MONOTONIC. */
int64_t velo_ompi_now_ns(void);

/** Set up the policy; called once the ranks of the node are known. */
void velo_ompi_idle_init(struct velo_ompi_idle *idle, const struct velo_ompi_params *params);

/** What a rank does that has found nothing, once it has given back what it holds. */
enum velo_ompi_rest {
    VELO_OMPI_GOES_ON,
    VELO_OMPI_YIELDS,
    VELO_OMPI_SLEEPS, /**< Or looks at what a sleep would have looked at, if there are threads. */
};

/** Slow part of velo_ompi_idle_rest(). */
enum velo_ompi_rest velo_ompi_idle_rest_now(struct velo_ompi_idle *idle);

/** Do ranks outnumber cores, or does the user want waits to leave the core to others? */
static inline bool velo_ompi_idle_is_crowd(const struct velo_ompi_idle *idle)
{
    return __builtin_expect(
        idle->oversubscribed || (idle->automatic && opal_progress_yield_when_idle), 0);
}

/** Notes that this thread polls. The caller holds what keeps other threads from polling. */
static inline void velo_ompi_idle_note_thread(struct velo_ompi_idle *idle)
{
    if (!opal_using_threads() || idle->has_others)
        return;
    if (!idle->has_poller)
        idle->poller = pthread_self();
    idle->has_poller = true;
    idle->has_others = !pthread_equal(idle->poller, pthread_self());
}

/** Does a poll that finds nothing leave the core to others now and then? */
static inline bool velo_ompi_idle_leaves_core(const struct velo_ompi_idle *idle)
{
    return velo_ompi_idle_is_crowd(idle) || __builtin_expect(idle->has_others, 0);
}

/** A thread that finds another one polling leaves it the core, which both may share. It holds no
 * lock. */
static inline void velo_ompi_idle_stand_back(void)
{
    if (!opal_progress_yield_when_idle) /* Else Open MPI does. */
        (void)sched_yield();
}

/**
 * A poll found @p events. What does the rank do now? The caller does it, and holds no lock then.
 *
 * Where ranks outnumber cores, or several threads of a rank poll, it leaves the core to others:
 * some empty polls yield it, and a caller that does nothing but poll sleeps after sleep_polls
 * yields that follow each other at once. With threads where ranks outnumber cores it does not
 * yield: Open MPI does, after each empty poll.
 */
static inline enum velo_ompi_rest velo_ompi_idle_rest(struct velo_ompi_idle *idle, int events)
{
    if (events > 0) {
        idle->polls = 0;
        return VELO_OMPI_GOES_ON;
    }
    if (!velo_ompi_idle_leaves_core(idle) || ++idle->spins < VELO_OMPI_YIELD_POLLS)
        return VELO_OMPI_GOES_ON;
    idle->spins = 0;
    return velo_ompi_idle_rest_now(idle);
}

/** A rank that cannot do what the others of a communicator take for granted would leave them
 *  waiting: it ends the job, with the reason. */
_Noreturn void velo_ompi_give_up(struct ompi_communicator_t *comm, const char *why);

/** Print a failure on this rank's stderr, with the library's own sentence, unless that was the last
 *  one. */
void velo_ompi_complain(const char *what, int status);

/** Open MPI's error code for a failed call. */
int velo_ompi_error(int status);

#endif
