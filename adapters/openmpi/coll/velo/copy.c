/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast, allgather, alltoall: data move, and nothing is computed. */
#include "coll_velo.h"

static int bcast(coll_velo_module_t *module, void *buf, size_t count, const ompi_datatype_t *type,
                 size_t len_bytes, int root)
{
    struct coll_velo_round round;
    int rc = coll_velo_begin(module, len_bytes, &round);
    if (__builtin_expect(rc != OMPI_SUCCESS, 0))
        return rc;
    uint8_t *place = coll_velo_place(module, &round, root, STAGE_LEADER);
    if (module->rank == root) {
        rc = coll_velo_pack(buf, count, type, place, len_bytes);
        if (rc == OMPI_SUCCESS)
            coll_velo_post(module, &round, STAGE_LEADER);
    } else {
        rc = coll_velo_await(module, &round, root, STAGE_LEADER);
        if (rc == OMPI_SUCCESS)
            rc = coll_velo_unpack(buf, count, type, place, len_bytes);
    }
    if (rc == OMPI_SUCCESS)
        coll_velo_end(module, false);
    return rc;
}

int coll_velo_bcast(void *buf, int count, ompi_datatype_t *type, int root,
                    ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    coll_velo_module_t *module = (coll_velo_module_t *)base;
    size_t len_bytes = type->super.size * (size_t)count;
    if (__builtin_expect(len_bytes == 0, 0))
        return OMPI_SUCCESS;
    if (__builtin_expect(!coll_velo_takes(module, comm, len_bytes), 0))
        return module->previous.bcast(buf, count, type, root, comm, module->previous.bcast_module);
    return bcast(module, buf, (size_t)count, type, len_bytes, root);
}

/* ---- each to each ---------------------------------------------------------------------------- */

/* What a rank sends, and where what it receives from each rank goes. */
struct blocks {
    const void *from;
    size_t from_count;
    const ompi_datatype_t *from_type;
    char *to;
    size_t to_count;
    const ompi_datatype_t *to_type;
    size_t block_bytes; /* Received from each rank. */
    size_t stride;      /* Between the places of two ranks. */
};

static void blocks_init(struct blocks *blocks, const void *from, int from_count,
                        const ompi_datatype_t *from_type, void *to, int to_count,
                        const ompi_datatype_t *to_type)
{
    *blocks = (struct blocks){
        .from = from,
        .from_count = (size_t)from_count,
        .from_type = from_type,
        .to = (char *)to,
        .to_count = (size_t)to_count,
        .to_type = to_type,
        .block_bytes = to_type->super.size * (size_t)to_count,
        .stride = (size_t)(to_type->super.ub - to_type->super.lb) * (size_t)to_count,
    };
}

static char *place_of(const struct blocks *blocks, int rank)
{
    return blocks->to + (size_t)rank * blocks->stride;
}

/* Slots of `len_bytes`, of which each rank takes a block; `offset` is where it lies. */
static int exchange(coll_velo_module_t *module, const struct blocks *blocks, size_t len_bytes,
                    size_t offset)
{
    struct coll_velo_round round;
    if (blocks->from_type->super.size * blocks->from_count != len_bytes)
        return MPI_ERR_TRUNCATE;
    int rc = coll_velo_begin(module, len_bytes, &round);
    if (rc == OMPI_SUCCESS)
        rc = coll_velo_pack(blocks->from, blocks->from_count, blocks->from_type,
                            coll_velo_place(module, &round, module->rank, STAGE_LEADER), len_bytes);
    if (rc != OMPI_SUCCESS)
        return rc;
    coll_velo_post(module, &round, STAGE_LEADER);
    /* Not all from the same rank at the same time. */
    for (int n = 0, i = module->rank; n < module->ranks && rc == OMPI_SUCCESS; n++) {
        if (i != module->rank)
            rc = coll_velo_await(module, &round, i, STAGE_LEADER);
        const uint8_t *part = coll_velo_place(module, &round, i, STAGE_LEADER) + offset;
        if (rc == OMPI_SUCCESS)
            rc = coll_velo_unpack(place_of(blocks, i), blocks->to_count, blocks->to_type, part,
                                  blocks->block_bytes);
        i = i + 1 < module->ranks ? i + 1 : 0;
    }
    if (rc == OMPI_SUCCESS)
        coll_velo_end(module, true);
    return rc;
}

int coll_velo_allgather(const void *from, int from_count, ompi_datatype_t *from_type, void *to,
                        int to_count, ompi_datatype_t *to_type, ompi_communicator_t *comm,
                        mca_coll_base_module_t *base)
{
    coll_velo_module_t *module = (coll_velo_module_t *)base;
    struct blocks blocks;
    blocks_init(&blocks, from, from_count, from_type, to, to_count, to_type);
    if (blocks.block_bytes == 0)
        return OMPI_SUCCESS;
    if (!coll_velo_takes(module, comm, blocks.block_bytes))
        return module->previous.allgather(from, from_count, from_type, to, to_count, to_type, comm,
                                          module->previous.allgather_module);
    if (from == MPI_IN_PLACE) {
        blocks.from = place_of(&blocks, module->rank);
        blocks.from_count = blocks.to_count;
        blocks.from_type = to_type;
    }
    return exchange(module, &blocks, blocks.block_bytes, 0);
}

static bool takes_blocks(coll_velo_module_t *module, ompi_communicator_t *comm, size_t block_bytes,
                         size_t total_bytes)
{
    if (block_bytes > mca_coll_velo_component.bytes_max ||
        total_bytes > coll_velo_blocks_max(module->ranks))
        return false;
    return (module->state == COLL_VELO_READY && total_bytes <= module->blocks_max) ||
           coll_velo_prepare(module, comm, total_bytes);
}

int coll_velo_alltoall(const void *from, int from_count, ompi_datatype_t *from_type, void *to,
                       int to_count, ompi_datatype_t *to_type, ompi_communicator_t *comm,
                       mca_coll_base_module_t *base)
{
    coll_velo_module_t *module = (coll_velo_module_t *)base;
    struct blocks blocks;
    blocks_init(&blocks, from, from_count, from_type, to, to_count, to_type);
    if (blocks.block_bytes == 0)
        return OMPI_SUCCESS;
    size_t total_bytes = blocks.block_bytes * (size_t)module->ranks;
    if (!takes_blocks(module, comm, blocks.block_bytes, total_bytes))
        return module->previous.alltoall(from, from_count, from_type, to, to_count, to_type, comm,
                                         module->previous.alltoall_module);
    if (from == MPI_IN_PLACE) {
        blocks.from = to;
        blocks.from_count = blocks.to_count;
        blocks.from_type = to_type;
    }
    blocks.from_count *= (size_t)module->ranks;
    return exchange(module, &blocks, total_bytes, (size_t)module->rank * blocks.block_bytes);
}
