/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file compat.h
 * @brief All that differs between the releases of Open MPI that the components are built for.
 *
 * Each name has two definitions: for 5.0 (tried: 5.0.7) and, further down, for 4.1 (tried: 4.1.4).
 */
#ifndef VELO_MPI_COMMON_COMPAT_H
#define VELO_MPI_COMMON_COMPAT_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "opal/mca/mca.h"

#if OPAL_MAJOR_VERSION >= 5
/* ---- 5.0: runtime PRRTE, PMIx without a layer of Open MPI's ---------------------------------- */

#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"
#include "opal/util/proc.h"

/* Of what Open MPI looks up in a component; it has no macro of its own for that any more. */
#define VELO_OMPI_COMPONENT __attribute__((visibility("default")))
#define VELO_OMPI_ATOMIC(type) opal_atomic_##type

#define VELO_OMPI_GLOBAL PMIX_GLOBAL
#define VELO_OMPI_NODEID PMIX_NODEID

static inline uint32_t velo_ompi_ranks(void) { return opal_process_info.num_procs; }

/* A rank that no launcher started counts itself as its own peer. */
static inline uint32_t velo_ompi_local_peers(void)
{
    uint32_t others = opal_process_info.num_procs - 1;
    return opal_process_info.num_local_peers < others ? opal_process_info.num_local_peers : others;
}

/* The number of a communicator, on which its ranks have agreed. */
#define VELO_OMPI_CONTEXT(comm) ompi_comm_get_local_cid(comm)

#define VELO_OMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0

#define VELO_OMPI_MTL_INIT_PARAMS bool progress_threads, bool mpi_threads, bool *accelerator
#define VELO_OMPI_NO_ACCELERATOR() (*accelerator = false)
/* Open MPI 5.0 starts no BTLs where messages go through PML cm; windows need them. */
#define VELO_OMPI_STARTS_BTLS(progress_threads, mpi_threads)                                       \
    (mca_bml_base_init(progress_threads, mpi_threads) == OMPI_SUCCESS)

/* osc/rdma wants to reach its own process through the BTL of the others. Messages to oneself stay
 * with btl self, which has MCA_BTL_EXCLUSIVITY_HIGH. */
#define VELO_OMPI_BTL_REACHES_ITSELF true
#define VELO_OMPI_BTL_EXCLUSIVITY (MCA_BTL_EXCLUSIVITY_HIGH - 1)
/* When we report an operation it has been done: osc/rdma asks for that since 5.0. */
#define VELO_OMPI_BTL_FLAGS MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION
/* Hand a message up. No endpoint: only RDMA by active messages wants it, and we have real RDMA. */
#define VELO_OMPI_BTL_CALL(btl, handler, message_tag, segment)                                     \
    (handler)->cbfunc(btl, &(const mca_btl_base_receive_descriptor_t){                             \
                               .des_segments = (segment),                                          \
                               .des_segment_count = 1,                                             \
                               .tag = (message_tag),                                               \
                               .cbdata = (handler)->cbdata,                                        \
                           })

/* What a process has announced for a component, if its server knows it by now; to be freed. Open
 * MPI's error. */
static inline int velo_ompi_receive_now(const mca_base_component_t *component,
                                        const opal_process_name_t *process, void **found,
                                        size_t *len_bytes)
{
    int rc;
    OPAL_MODEX_RECV_IMMEDIATE(rc, component, process, (uint8_t **)found, len_bytes);
    if (rc == OPAL_SUCCESS && *found == NULL)
        rc = OPAL_ERR_NOT_FOUND;
    return rc;
}

/** Hosts of the job; 1 where the launcher does not say. */
uint32_t velo_ompi_hosts(void);

/* The id of a job is a hash; jobs that spawn each other have one name but for a number from 1 on.
 */
/** The same for all jobs of a family, and hardly for others. */
uint32_t velo_ompi_family(void);
/** The number of this job in its family, from 1. */
uint32_t velo_ompi_job(void);

#else
/* ---- 4.1: runtime ORTE, PMIx behind opal/mca/pmix -------------------------------------------- */

#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#include "opal/util/proc.h"
#include "orte/util/proc_info.h"

#define VELO_OMPI_COMPONENT OPAL_MODULE_DECLSPEC
#define VELO_OMPI_ATOMIC(type) volatile type

#define VELO_OMPI_GLOBAL OPAL_PMIX_GLOBAL
#define VELO_OMPI_NODEID OPAL_PMIX_NODEID

#define VELO_OMPI_CONTEXT(comm) ((comm)->c_contextid)

#define VELO_OMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0

#define VELO_OMPI_MTL_INIT_PARAMS bool progress_threads, bool mpi_threads
#define VELO_OMPI_NO_ACCELERATOR() ((void)0)
#define VELO_OMPI_STARTS_BTLS(progress_threads, mpi_threads) true

#define VELO_OMPI_BTL_REACHES_ITSELF false
/* Above vader, which has HIGH, too. */
#define VELO_OMPI_BTL_EXCLUSIVITY (MCA_BTL_EXCLUSIVITY_HIGH + 1)
#define VELO_OMPI_BTL_FLAGS 0
#define VELO_OMPI_BTL_CALL(btl, handler, message_tag, segment)                                     \
    (handler)->cbfunc(                                                                             \
        btl, message_tag,                                                                          \
        &(mca_btl_base_descriptor_t){.des_segments = (segment), .des_segment_count = 1},           \
        (handler)->cbdata)

static inline uint32_t velo_ompi_ranks(void) { return orte_process_info.num_procs; }
static inline uint32_t velo_ompi_local_peers(void) { return opal_process_info.num_local_peers; }
static inline uint32_t velo_ompi_hosts(void) { return (uint32_t)orte_process_info.num_nodes; }
/* Open MPI's own macros do not look whether they got memory for the question. */
int velo_ompi_get(const opal_process_name_t *process, const char *key, const char *how,
                  void **value, opal_data_type_t type);
static inline int velo_ompi_receive_now(const mca_base_component_t *component,
                                        const opal_process_name_t *process, void **found,
                                        size_t *len_bytes)
{
    opal_byte_object_t *object = NULL;
    char *key = mca_base_component_to_string(component);
    if (key == NULL)
        return OPAL_ERR_OUT_OF_RESOURCE;
    int rc = velo_ompi_get(process, key, OPAL_PMIX_IMMEDIATE, (void **)&object, OPAL_BYTE_OBJECT);
    free(key);
    if (rc != OPAL_SUCCESS || object == NULL)
        return rc != OPAL_SUCCESS ? rc : OPAL_ERR_NOT_FOUND;
    *found = object->bytes;
    *len_bytes = object->size;
    free(object);
    return *found != NULL ? OPAL_SUCCESS : OPAL_ERR_NOT_FOUND;
}
static inline uint32_t velo_ompi_family(void) { return (uint32_t)OPAL_PROC_MY_NAME.jobid >> 16; }
static inline uint32_t velo_ompi_job(void)
{
    return (uint32_t)OPAL_PROC_MY_NAME.jobid & UINT16_MAX;
}

#endif

/** A number that the launcher tells this process; false: it does not. */
bool velo_ompi_number(const char *key, uint32_t *number);

/** Tell the other processes what a component says of itself. Open MPI's error. */
int velo_ompi_announce(const mca_base_component_t *component, const void *data, size_t len_bytes);

#endif
