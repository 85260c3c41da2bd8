/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a communicator gets its memory, and for which collectives.
 *
 * All ranks call the same collectives in the same order. So each counts them, and at the same one
 * they make the memory, with the collectives that the communicator had before. The data areas are
 * made at the first collective that needs them. If any rank cannot, none does.
 */
#include "coll_velo.h"

#include <unistd.h>

#include "common/velo_ompi.h"

/* What all ranks must be able to say; the least of them counts. */
enum { HAS_MEMORY, HAS_A_CORE, VOTES };

static bool has_a_core(void)
{
    static const struct velo_ompi_params params = {.sleep = -1};
    struct velo_ompi_idle idle;
    velo_ompi_idle_init(&idle, &params);
    return !idle.oversubscribed && !opal_progress_yield_when_idle;
}

/* Only then is the memory ours to use: all have mapped it, or nobody uses it. */
static int vote_on_memory(coll_velo_module_t *module, ompi_communicator_t *comm, bool *has_memory)
{
    const struct coll_velo_previous *previous = &module->previous;
    int mine[VOTES] = {*has_memory, has_a_core()}, least[VOTES] = {0};
    int rc = previous->allreduce(mine, least, VOTES, &ompi_mpi_int.dt, &ompi_mpi_op_min.op, comm,
                                 previous->allreduce_module);
    module->crowded = least[HAS_A_CORE] == 0;
    *has_memory = least[HAS_MEMORY] != 0;
    return rc;
}

/* The others must be able to tell whether this process lives. */
static bool introduce(struct coll_velo_area *own)
{
    own->pid = getpid();
    own->started = coll_velo_process_started(own->pid);
    return own->started != 0 && own->started != COLL_VELO_UNKNOWN;
}

static int make_memory(coll_velo_module_t *module, ompi_communicator_t *comm, bool *is_made)
{
    const struct coll_velo_previous *previous = &module->previous;
    struct coll_velo_invitation invitation = {.fd = -1};
    if (module->rank == 0)
        coll_velo_memory_make(module, &invitation);
    int rc = previous->bcast(&invitation, sizeof invitation, &ompi_mpi_byte.dt, 0, comm,
                             previous->bcast_module);
    *is_made = rc == OMPI_SUCCESS && invitation.fd >= 0 &&
               (module->rank == 0 || coll_velo_memory_join(module, &invitation)) &&
               coll_velo_memory_have(module->own, COLL_VELO_PAGE_BYTES) && introduce(module->own);
    if (rc == OMPI_SUCCESS)
        rc = vote_on_memory(module, comm, is_made);
    if (module->rank == 0 && invitation.fd >= 0)
        (void)close((int)invitation.fd);
    return rc;
}

/* No sequence of theirs is known to have ended, so coll_velo_begin() looks, and finds this. */
void coll_velo_fail(coll_velo_module_t *module, int rc)
{
    module->failed = rc;
    module->sequence = UINT64_MAX / 2 >> COLL_VELO_LEN_BITS;
    module->known = 0;
    module->bytes_max = mca_coll_velo_component.bytes_max;
    module->blocks_max = coll_velo_blocks_max(module->ranks);
    module->state = COLL_VELO_READY;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static int group_of(const coll_velo_module_t *module)
{
    unsigned wanted = mca_coll_velo_component.group;
    if (wanted != 0)
        return wanted < COLL_VELO_RANKS_MAX ? (int)wanted : COLL_VELO_RANKS_MAX;
    /* Where ranks share cores, a stage more costs each a turn to run, and lines are near. */
    return module->crowded || module->ranks <= COLL_VELO_GROUP ? 1 : COLL_VELO_GROUP;
}

static void use_memory(coll_velo_module_t *module)
{
    module->bytes_max = least(COLL_VELO_INLINE_BYTES, mca_coll_velo_component.bytes_max);
    module->blocks_max = COLL_VELO_INLINE_BYTES;
    module->group = group_of(module);
    module->spins = module->crowded ? 1 : mca_coll_velo_component.spins;
    module->state = COLL_VELO_READY;
}

static void set_up(coll_velo_module_t *module, ompi_communicator_t *comm)
{
    bool is_made = false;
    int rc = OMPI_SUCCESS;
    module->state = COLL_VELO_MAKING;
    if (coll_velo_peers_match(comm))
        rc = make_memory(module, comm, &is_made);
    if (rc == OMPI_SUCCESS && is_made) {
        use_memory(module);
        return;
    }
    coll_velo_memory_drop(module);
    module->state = COLL_VELO_OFF;
    if (rc != OMPI_SUCCESS)
        coll_velo_fail(module, rc);
}

static void set_up_data(coll_velo_module_t *module)
{
    uint8_t *data = (uint8_t *)module->own + COLL_VELO_PAGE_BYTES;
    size_t len_bytes = module->area_bytes - COLL_VELO_PAGE_BYTES;
    bool is_there = coll_velo_memory_have(data, len_bytes);
    int rc = coll_velo_agree(module, &is_there);
    if (rc != OMPI_SUCCESS) {
        coll_velo_fail(module, rc);
    } else if (is_there) {
        module->bytes_max = mca_coll_velo_component.bytes_max;
        module->blocks_max = coll_velo_blocks_max(module->ranks);
    } else {
        module->has_no_data = true;
    }
}

bool coll_velo_prepare(coll_velo_module_t *module, ompi_communicator_t *comm, size_t len_bytes)
{
    if (module->state == COLL_VELO_WAITING && module->calls++ >= mca_coll_velo_component.after)
        set_up(module, comm);
    if (module->state != COLL_VELO_READY)
        return false;
    if (len_bytes > module->blocks_max && !module->has_no_data)
        set_up_data(module);
    return len_bytes <= module->blocks_max;
}
