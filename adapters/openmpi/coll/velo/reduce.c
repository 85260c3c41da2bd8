/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier, reduce, allreduce.
 *
 * Few ranks read each other's contributions, and each adds them all up. More than that form groups:
 * the lowest rank of each, its leader, adds up its members' contributions; leaders read each
 * other's; members read their leader's result. So no rank reads more than a group's slots and one
 * of each other group.
 *
 * Contributions are added in the order of ranks, from the last to the first, since an operation
 * need not commute; so all ranks get the same sum of rounded numbers.
 */
#include "coll_velo.h"

/* A sum under way: its operation, its elements, and where it is added up. */
struct fold {
    ompi_op_t *op;
    ompi_datatype_t *type;
    size_t count;
    size_t len_bytes;
    void *total;
    bool is_direct; /* The operation reads contributions where they lie. */
};

/* Operations of users may write where they should only read. */
static bool is_direct(const ompi_op_t *op, const ompi_datatype_t *type, size_t count)
{
    return (op->o_flags & OMPI_OP_FLAGS_INTRINSIC) != 0 && ompi_datatype_is_predefined(type) &&
           coll_velo_is_one_piece(type, count);
}

static void fold_init(struct fold *fold, ompi_op_t *op, ompi_datatype_t *type, int count)
{
    fold->op = op;
    fold->type = type;
    fold->count = (size_t)count;
    fold->len_bytes = type->super.size * (size_t)count;
    fold->is_direct = is_direct(op, type, (size_t)count);
}

static int unpack_total(const struct fold *fold, const uint8_t *part)
{
    return coll_velo_unpack(fold->total, fold->count, fold->type, part, fold->len_bytes);
}

static int add_unpacked(coll_velo_module_t *module, const struct fold *fold, const uint8_t *part)
{
    void *operand = coll_velo_scratch(&module->unpacked, fold->count, fold->type);
    if (operand == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    int rc = coll_velo_unpack(operand, fold->count, fold->type, part, fold->len_bytes);
    if (rc == OMPI_SUCCESS)
        ompi_op_reduce(fold->op, operand, fold->total, fold->count, fold->type);
    return rc;
}

static inline int add_part(coll_velo_module_t *module, const struct fold *fold, uint8_t *part)
{
    if (__builtin_expect(!fold->is_direct, 0))
        return add_unpacked(module, fold, part);
    ompi_op_reduce(fold->op, part, fold->total, fold->count, fold->type);
    return OMPI_SUCCESS;
}

/* The contributions of the ranks first, first + step, ... up to end, ours among them, in total. */
static inline int add_up(coll_velo_module_t *module, const struct coll_velo_round *round,
                         const struct fold *fold, enum coll_velo_stage stage, int first, int end,
                         int step)
{
    int last = first + (end - 1 - first) / step * step;
    for (int i = last; i >= first; i -= step) {
        int rc = OMPI_SUCCESS;
        if (i != module->rank)
            rc = coll_velo_await(module, round, i, stage);
        uint8_t *part = coll_velo_place(module, round, i, stage);
        if (__builtin_expect(rc == OMPI_SUCCESS, 1))
            rc = i == last ? unpack_total(fold, part) : add_part(module, fold, part);
        if (__builtin_expect(rc != OMPI_SUCCESS, 0))
            return rc;
    }
    return OMPI_SUCCESS;
}

/* Put our contribution where this stage has it. */
static inline int put_contribution(coll_velo_module_t *module, const struct coll_velo_round *round,
                                   const struct fold *fold, enum coll_velo_stage stage,
                                   const void *from)
{
    return coll_velo_pack(from, fold->count, fold->type,
                          coll_velo_place(module, round, module->rank, stage), fold->len_bytes);
}

static inline int put_and_post(coll_velo_module_t *module, const struct coll_velo_round *round,
                               const struct fold *fold, enum coll_velo_stage stage,
                               const void *from)
{
    int rc = put_contribution(module, round, fold, stage, from);
    if (__builtin_expect(rc == OMPI_SUCCESS, 1))
        coll_velo_post(module, round, stage);
    return rc;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int leader_of(const coll_velo_module_t *module, int rank)
{
    return rank - rank % module->group;
}

static bool is_leader(const coll_velo_module_t *module)
{
    return leader_of(module, module->rank) == module->rank;
}

/* One past the last rank of our group. */
static int group_end(const coll_velo_module_t *module)
{
    int end = leader_of(module, module->rank) + module->group;
    return end < module->ranks ? end : module->ranks;
}

/* A leader's part: adds up its group and posts that. */
static int lead_group(coll_velo_module_t *module, const struct coll_velo_round *round,
                      const struct fold *fold, const void *from)
{
    int rc = put_contribution(module, round, fold, STAGE_MEMBER, from);
    if (rc == OMPI_SUCCESS)
        rc = add_up(module, round, fold, STAGE_MEMBER, module->rank, group_end(module), 1);
    return rc == OMPI_SUCCESS ? put_and_post(module, round, fold, STAGE_LEADER, fold->total) : rc;
}

static int add_up_leaders(coll_velo_module_t *module, const struct coll_velo_round *round,
                          const struct fold *fold)
{
    return add_up(module, round, fold, STAGE_LEADER, 0, module->ranks, module->group);
}

/* ---- allreduce ------------------------------------------------------------------------------- */

static int allreduce_grouped(coll_velo_module_t *module, const struct coll_velo_round *round,
                             const struct fold *fold, const void *from)
{
    if (is_leader(module)) {
        int rc = lead_group(module, round, fold, from);
        if (rc == OMPI_SUCCESS)
            rc = add_up_leaders(module, round, fold);
        return rc == OMPI_SUCCESS ? put_and_post(module, round, fold, STAGE_RESULT, fold->total)
                                  : rc;
    }
    int leader = leader_of(module, module->rank);
    int rc = put_and_post(module, round, fold, STAGE_MEMBER, from);
    if (rc == OMPI_SUCCESS)
        rc = coll_velo_await(module, round, leader, STAGE_RESULT);
    return rc == OMPI_SUCCESS
               ? unpack_total(fold, coll_velo_place(module, round, leader, STAGE_RESULT))
               : rc;
}

static inline int allreduce(coll_velo_module_t *module, const struct fold *fold, const void *from)
{
    struct coll_velo_round round;
    int rc = coll_velo_begin(module, fold->len_bytes, &round);
    if (__builtin_expect(rc != OMPI_SUCCESS, 0))
        return rc;
    if (__builtin_expect(module->group == 1, 1)) {
        rc = put_and_post(module, &round, fold, STAGE_LEADER, from);
        if (__builtin_expect(rc == OMPI_SUCCESS, 1))
            rc = add_up_leaders(module, &round, fold);
    } else {
        rc = allreduce_grouped(module, &round, fold, from);
    }
    if (__builtin_expect(rc == OMPI_SUCCESS, 1))
        coll_velo_end(module, true);
    return rc;
}

int coll_velo_allreduce(const void *from, void *to, int count, ompi_datatype_t *type, ompi_op_t *op,
                        ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    coll_velo_module_t *module = (coll_velo_module_t *)base;
    struct fold fold;
    fold_init(&fold, op, type, count);
    if (__builtin_expect(fold.len_bytes == 0, 0))
        return OMPI_SUCCESS;
    if (__builtin_expect(!coll_velo_takes(module, comm, fold.len_bytes), 0))
        return module->previous.allreduce(from, to, count, type, op, comm,
                                          module->previous.allreduce_module);
    fold.total = to;
    int rc = allreduce(module, &fold, from == MPI_IN_PLACE ? to : from);
    coll_velo_scratch_trim(&module->unpacked);
    return rc;
}

/* ---- reduce ---------------------------------------------------------------------------------- */

static int reduce_grouped(coll_velo_module_t *module, const struct coll_velo_round *round,
                          struct fold *fold, const void *from, int root)
{
    int rc;
    if (!is_leader(module)) {
        rc = put_and_post(module, round, fold, STAGE_MEMBER, from);
    } else {
        if (module->rank != root)
            fold->total = coll_velo_scratch(&module->folded, fold->count, fold->type);
        rc = fold->total != NULL ? lead_group(module, round, fold, from) : OMPI_ERR_OUT_OF_RESOURCE;
    }
    return rc == OMPI_SUCCESS && module->rank == root ? add_up_leaders(module, round, fold) : rc;
}

static int reduce(coll_velo_module_t *module, struct fold *fold, const void *from, int root)
{
    struct coll_velo_round round;
    int rc = coll_velo_begin(module, fold->len_bytes, &round);
    if (rc != OMPI_SUCCESS)
        return rc;
    if (module->group > 1) {
        rc = reduce_grouped(module, &round, fold, from, root);
    } else {
        rc = put_and_post(module, &round, fold, STAGE_LEADER, from);
        if (rc == OMPI_SUCCESS && module->rank == root)
            rc = add_up_leaders(module, &round, fold);
    }
    if (rc == OMPI_SUCCESS)
        coll_velo_end(module, module->rank == root);
    return rc;
}

int coll_velo_reduce(const void *from, void *to, int count, ompi_datatype_t *type, ompi_op_t *op,
                     int root, ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    coll_velo_module_t *module = (coll_velo_module_t *)base;
    struct fold fold;
    fold_init(&fold, op, type, count);
    if (__builtin_expect(fold.len_bytes == 0, 0))
        return OMPI_SUCCESS;
    if (__builtin_expect(!coll_velo_takes(module, comm, fold.len_bytes), 0))
        return module->previous.reduce(from, to, count, type, op, root, comm,
                                       module->previous.reduce_module);
    fold.total = to;
    int rc = reduce(module, &fold, from == MPI_IN_PLACE ? to : from, root);
    coll_velo_scratch_trim(&module->unpacked);
    coll_velo_scratch_trim(&module->folded);
    return rc;
}

/* ---- barrier --------------------------------------------------------------------------------- */

static int barrier_grouped(coll_velo_module_t *module, const struct coll_velo_round *round)
{
    int rc = OMPI_SUCCESS;
    if (!is_leader(module)) {
        coll_velo_post(module, round, STAGE_MEMBER);
        return coll_velo_await(module, round, leader_of(module, module->rank), STAGE_RESULT);
    }
    for (int i = module->rank + 1; i < group_end(module) && rc == OMPI_SUCCESS; i++)
        rc = coll_velo_await(module, round, i, STAGE_MEMBER);
    if (rc != OMPI_SUCCESS)
        return rc;
    coll_velo_post(module, round, STAGE_LEADER);
    for (int i = 0; i < module->ranks && rc == OMPI_SUCCESS; i += module->group)
        if (i != module->rank)
            rc = coll_velo_await(module, round, i, STAGE_LEADER);
    if (rc == OMPI_SUCCESS)
        coll_velo_post(module, round, STAGE_RESULT);
    return rc;
}

static inline int barrier_flat(coll_velo_module_t *module, const struct coll_velo_round *round)
{
    int rc = OMPI_SUCCESS;
    coll_velo_post(module, round, STAGE_LEADER);
    for (int i = 0; i < module->ranks && rc == OMPI_SUCCESS; i++)
        if (i != module->rank)
            rc = coll_velo_await(module, round, i, STAGE_LEADER);
    return rc;
}

int coll_velo_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    coll_velo_module_t *module = (coll_velo_module_t *)base;
    struct coll_velo_round round;
    if (__builtin_expect(!coll_velo_takes(module, comm, 0), 0))
        return module->previous.barrier(comm, module->previous.barrier_module);
    int rc = coll_velo_begin(module, 0, &round);
    if (__builtin_expect(rc == OMPI_SUCCESS, 1))
        rc = __builtin_expect(module->group == 1, 1) ? barrier_flat(module, &round)
                                                     : barrier_grouped(module, &round);
    if (__builtin_expect(rc == OMPI_SUCCESS, 1))
        coll_velo_end(module, true);
    return rc;
}
