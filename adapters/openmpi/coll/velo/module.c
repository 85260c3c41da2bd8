/* SPDX-License-Identifier: Apache-2.0 */
/* The module of a communicator: what it replaces, and what it frees. */
#include "coll_velo.h"

#include <stdlib.h>

#define EACH_COLLECTIVE(DO)                                                                        \
    DO(allgather)                                                                                  \
    DO(allreduce)                                                                                  \
    DO(alltoall)                                                                                   \
    DO(barrier)                                                                                    \
    DO(bcast)                                                                                      \
    DO(reduce)

#define SAVE(name)                                                                                 \
    module->previous.name = comm->c_coll->coll_##name;                                             \
    module->previous.name##_module = comm->c_coll->coll_##name##_module;                           \
    if (module->previous.name##_module != NULL)                                                    \
        OBJ_RETAIN(module->previous.name##_module);
#define IS_THERE(name) &&module->previous.name != NULL
#define FORGET(name)                                                                               \
    if (module->previous.name##_module != NULL)                                                    \
        OBJ_RELEASE(module->previous.name##_module);

static int enable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    coll_velo_module_t *module = (coll_velo_module_t *)base;
    EACH_COLLECTIVE(SAVE)
    module->rank = ompi_comm_rank(comm);
    module->ranks = ompi_comm_size(comm);
    /* Components with a lower priority have taken their places by now; without them Open MPI would
     * not go on, either. */
    return true EACH_COLLECTIVE(IS_THERE) ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

static void construct(coll_velo_module_t *module)
{
    size_t begin = offsetof(coll_velo_module_t, state);
    memset((char *)module + begin, 0, sizeof *module - begin);
    module->super.coll_module_enable = enable;
    module->super.coll_allgather = coll_velo_allgather;
    module->super.coll_allreduce = coll_velo_allreduce;
    module->super.coll_alltoall = coll_velo_alltoall;
    module->super.coll_barrier = coll_velo_barrier;
    module->super.coll_bcast = coll_velo_bcast;
    module->super.coll_reduce = coll_velo_reduce;
}

static void destruct(coll_velo_module_t *module)
{
    coll_velo_memory_drop(module);
    free(module->folded.bytes);
    free(module->unpacked.bytes);
    EACH_COLLECTIVE(FORGET)
}

OBJ_CLASS_INSTANCE(coll_velo_module_t, mca_coll_base_module_t, construct, destruct);
