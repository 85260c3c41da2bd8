/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtl_velo.h
 * @brief Open MPI's matching transport layer over velo's matched queues (velo/mq.h).
 *
 * Each rank has one port with one velo_mq; MPI's matching is velo_mq's, so this is mostly
 * translation. A peer is connected by the first send to it; receives name their source by its port,
 * so that they end when it dies.
 *
 * Threads: one lock around every call of the library, taken only under MPI_THREAD_MULTIPLE.
 * Requests that end inside such a call are reported after the lock is released, because that may
 * start other operations or take Open MPI's locks. A thread that polls leaves the lock to those
 * that have something to do.
 */
#ifndef VELO_MPI_MTL_VELO_H
#define VELO_MPI_MTL_VELO_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/mtl/mtl.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "opal/datatype/opal_convertor.h"

#include <velo/mq.h>

#include "common/velo_ompi.h"

struct mtl_velo_component {
    mca_mtl_base_component_2_0_0_t super;
    struct velo_ompi_params params;
    int priority;
    bool direct;
    unsigned eager_bytes;
    unsigned long long get_bytes;
    unsigned long long unexpected_bytes;
    int path;
};
VELO_OMPI_COMPONENT extern struct mtl_velo_component mca_mtl_velo_component;

/** A request of the queues that reports its outcome to MPI. */
struct mtl_velo_op {
    struct velo_mq_request mq; /**< Its callback is mtl_velo_done(). */
    void (*end)(struct mtl_velo_op *op);
    struct mtl_velo_op *next; /**< In the module's list of those to end. */
};

/** A send or a receive of PML cm, which allocates it behind its own part. */
struct mtl_velo_request {
    mca_mtl_request_t super;
    struct mtl_velo_op op;
    ompi_communicator_t *comm;   /**< Receive: the source is a rank of it. NULL: a send. */
    opal_convertor_t *convertor; /**< Receive: unpacks `packed`, or what comes. */
    void *packed;                /**< Ours, to be freed; NULL where the user's memory serves. */
};

/** A process of this node to which a message was sent, or from which one is wanted. */
struct mtl_velo_endpoint {
    struct velo_mq_peer *peer; /**< NULL until something is sent. */
    velo_id_t id;
};

struct mtl_velo_module {
    mca_mtl_base_module_t super;
    struct velo_mq *mq;
    bool packs_whole; /**< Data with gaps: nodes or networks fetch messages, which are packed first.
                       */
    opal_mutex_t lock;
    VELO_OMPI_ATOMIC(int32_t)
    lock_wanted; /**< Threads that need the lock: whoever polls leaves it. */
    struct mtl_velo_op *done, **done_end; /**< To be ended outside the lock. */
    struct velo_ompi_idle idle;
    struct velo_ompi_port port;
};
extern struct mtl_velo_module mtl_velo;

/** Message match bits of an MPI send. */
static inline uint64_t mtl_velo_match(const ompi_communicator_t *comm, int rank, int tag)
{
    return VELO_MQ_MATCH(VELO_OMPI_CONTEXT(comm), rank, tag);
}

/** The match bits that a receive or a probe ignores. */
static inline uint64_t mtl_velo_ignore(int source, int tag)
{
    return (source == MPI_ANY_SOURCE ? VELO_MQ_IGNORE_RANK : 0) |
           (tag == MPI_ANY_TAG ? VELO_MQ_IGNORE_TAG : 0);
}

static inline uint64_t mtl_velo_wanted(const ompi_communicator_t *comm, int source, int tag)
{
    return mtl_velo_match(comm, source == MPI_ANY_SOURCE ? 0 : source,
                          tag == MPI_ANY_TAG ? 0 : tag);
}

/** Look up a process that is not known yet. NULL: it failed, and the reason was printed. */
struct mtl_velo_endpoint *mtl_velo_find(ompi_proc_t *proc);
/** Connect to a process that nothing was sent to yet. The same. */
struct velo_mq_peer *mtl_velo_connect(ompi_proc_t *proc);

static inline struct mtl_velo_endpoint *mtl_velo_endpoint(const ompi_proc_t *proc)
{
    return (struct mtl_velo_endpoint *)proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];
}

/** The process of a rank. NULL: it is not known yet, or @p rank is MPI_ANY_SOURCE. */
static inline const struct mtl_velo_endpoint *mtl_velo_known(const ompi_communicator_t *comm,
                                                             int rank)
{
    if (__builtin_expect(rank < 0, 0))
        return NULL;
    const ompi_proc_t *proc = ompi_group_peer_lookup_existing(comm->c_remote_group, rank);
    return __builtin_expect(proc == NULL, 0) ? NULL : mtl_velo_endpoint(proc);
}

static inline struct velo_mq_peer *mtl_velo_peer(ompi_communicator_t *comm, int rank)
{
    ompi_proc_t *proc = ompi_comm_peer_lookup(comm, rank);
    const struct mtl_velo_endpoint *endpoint = mtl_velo_endpoint(proc);
    if (__builtin_expect(endpoint != NULL && endpoint->peer != NULL, 1))
        return endpoint->peer;
    return mtl_velo_connect(proc);
}

/** The port that a receive wants its message from. False: there is none. */
static inline bool mtl_velo_source(ompi_communicator_t *comm, int source, velo_id_t *id)
{
    *id = VELO_MQ_ANY_SOURCE;
    if (source == MPI_ANY_SOURCE)
        return true;
    ompi_proc_t *proc = ompi_comm_peer_lookup(comm, source);
    const struct mtl_velo_endpoint *endpoint = mtl_velo_endpoint(proc);
    if (__builtin_expect(endpoint == NULL, 0))
        endpoint = mtl_velo_find(proc);
    if (__builtin_expect(endpoint == NULL, 0))
        return false;
    *id = endpoint->id;
    return true;
}

/** Data with gaps goes through the ring in pieces, by its convertor, which is the state. */
extern const struct velo_mq_layout mtl_velo_layout;

/** Slow part of mtl_velo_lock(). */
void mtl_velo_lock_wanted(void);

static inline void mtl_velo_lock(void)
{
    if (OPAL_THREAD_TRYLOCK(&mtl_velo.lock))
        mtl_velo_lock_wanted();
}

/** Take the lock in order to poll, if nobody else needs it. */
static inline bool mtl_velo_lock_to_poll(void)
{
    return !opal_using_threads() ||
           (mtl_velo.lock_wanted == 0 && opal_mutex_trylock(&mtl_velo.lock) == 0);
}

/** Unlock, then end what is done. */
void mtl_velo_end_done(void);

static inline void mtl_velo_unlock(void)
{
    if (opal_using_threads())
        mtl_velo_end_done();
}

/** The callback of every struct mtl_velo_op. */
void mtl_velo_done(struct velo_mq_request *mq);
/** Report a request's outcome to the PML. */
void mtl_velo_complete(struct mtl_velo_request *request);
/** The same; `end` of each of these requests. */
void mtl_velo_request_end(struct mtl_velo_op *op);
/** Fill in a status from match bits, all but MPI_ERROR: that is the user's, but in calls that have
 *  many statuses. The rank is checked against the communicator. MPI's error. */
static inline int mtl_velo_status_found(ompi_status_public_t *status, ompi_communicator_t *comm,
                                        uint64_t match, size_t len_bytes)
{
    status->MPI_SOURCE = VELO_MQ_RANK(match);
    status->MPI_TAG = VELO_MQ_TAG(match);
    status->_ucount = len_bytes;
    status->_cancelled = 0;
    if (__builtin_expect(!ompi_comm_peer_invalid(comm, status->MPI_SOURCE), 1))
        return MPI_SUCCESS;
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    return MPI_ERR_INTERN;
}

/** MPI's error for a receive or send that failed, which is printed unless it is MPI's own. */
int mtl_velo_failed(int status);

/** Fill in the status of a receive that has ended, MPI_ERROR too. */
static inline void mtl_velo_status(ompi_status_public_t *status, ompi_communicator_t *comm,
                                   const struct velo_mq_request *mq)
{
    status->MPI_ERROR = mtl_velo_status_found(status, comm, mq->match, mq->len_bytes);
    if (__builtin_expect(mq->status != VELO_OK, 0))
        status->MPI_ERROR = mtl_velo_failed(mq->status);
}

/** Fill in the status of a receive that was cancelled. */
void mtl_velo_status_cancelled(ompi_status_public_t *status);

/**
 * Let sends and receives of data in one piece go past PML cm, if cm is selected; see direct.c. A
 * second call does nothing.
 */
int mtl_velo_direct_install(void);
/** Undo that. */
void mtl_velo_direct_remove(void);

int mtl_velo_progress(void);

/** Does the network let nobody in of whom nobody has said where it is (transport card)? Then a rank
 * has to know all that may send to it, whether or not it sends to them. */
bool mtl_velo_learns_names(void);
int mtl_velo_add_procs(mca_mtl_base_module_t *mtl, size_t count, ompi_proc_t **procs);
int mtl_velo_del_procs(mca_mtl_base_module_t *mtl, size_t count, ompi_proc_t **procs);
int mtl_velo_add_comm(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm);
int mtl_velo_del_comm(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm);
int mtl_velo_finalize(mca_mtl_base_module_t *mtl);

int mtl_velo_send(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int rank, int tag,
                  opal_convertor_t *convertor, mca_pml_base_send_mode_t mode);
int mtl_velo_isend(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int rank, int tag,
                   opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                   mca_mtl_request_t *mtl_request);
int mtl_velo_irecv(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag,
                   opal_convertor_t *convertor, mca_mtl_request_t *mtl_request);
int mtl_velo_iprobe(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag,
                    int *found, ompi_status_public_t *status);
int mtl_velo_improbe(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag,
                     int *found, ompi_message_t **message, ompi_status_public_t *status);
int mtl_velo_imrecv(mca_mtl_base_module_t *mtl, opal_convertor_t *convertor,
                    ompi_message_t **message, mca_mtl_request_t *mtl_request);
int mtl_velo_cancel(mca_mtl_base_module_t *mtl, mca_mtl_request_t *mtl_request, int flag);

#endif
