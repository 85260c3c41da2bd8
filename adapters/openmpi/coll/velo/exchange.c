/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks wait for each other. */
#include "coll_velo.h"

#include <sched.h>

#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

#include "common/velo_ompi.h"

/* Where ranks outnumber cores, a turn of another rank comes sooner than anything that Open MPI's
 * progress could find; it is called once in so many. */
#define YIELDS_A_PROGRESS 8u
/* After so many rounds, whoever waits for whatever reason may have the core; some 100 us. */
#define ROUNDS_ALONE 50u
/* Rounds between looks at the clock; and the time between looks at the other process. */
#define ROUNDS_A_CLOCK 256u
#define LOOK_NS INT64_C(500000000)

struct wait {
    uint32_t rounds;
    int64_t looked_ns;
};

/* Has the process of a rank died? mpirun ends the job then, unless it is told not to. */
static bool rank_has_died(const coll_velo_module_t *module, int rank)
{
    const struct coll_velo_area *area = coll_velo_area(module, rank);
    uint64_t started = coll_velo_process_started(area->pid);
    return started != area->started && started != COLL_VELO_UNKNOWN;
}

static int look_around(const coll_velo_module_t *module, int rank, struct wait *wait)
{
    int64_t now = velo_ompi_now_ns();
    if (wait->looked_ns == 0)
        wait->looked_ns = now;
    if (now - wait->looked_ns < LOOK_NS)
        return OMPI_SUCCESS;
    wait->looked_ns = now;
    if (!rank_has_died(module, rank))
        return OMPI_SUCCESS;
    opal_output(0, "velo: rank %d of a communicator of %d has died in a collective", rank,
                module->ranks);
    return OMPI_ERR_UNREACH;
}

/* Between looks at a rank's flag: let others run, and let Open MPI do what others wait for. */
static int rest_between_looks(const coll_velo_module_t *module, int rank, struct wait *wait)
{
    wait->rounds++;
    if (module->crowded && wait->rounds % YIELDS_A_PROGRESS != 0)
        (void)sched_yield();
    else
        opal_progress();
    if (!module->crowded && wait->rounds > ROUNDS_ALONE)
        (void)sched_yield();
    return wait->rounds % ROUNDS_A_CLOCK == 0 ? look_around(module, rank, wait) : OMPI_SUCCESS;
}

/* A flag that is not the one expected: may that one still come? */
static int judge_flag(uint64_t flag, uint64_t expected)
{
    uint64_t sequence = flag >> COLL_VELO_LEN_BITS;
    if (sequence < expected >> COLL_VELO_LEN_BITS)
        return OMPI_SUCCESS;
    if (sequence == expected >> COLL_VELO_LEN_BITS)
        return MPI_ERR_TRUNCATE; /* Another length. */
    opal_output(0, "velo: the shared memory of a communicator is damaged");
    return OMPI_ERROR;
}

int coll_velo_await_long(const coll_velo_module_t *module, int rank, const uint64_t *flag,
                         uint64_t expected)
{
    struct wait wait = {0};
    for (;;) {
        int rc = rest_between_looks(module, rank, &wait);
        uint64_t found = 0;
        for (uint32_t i = module->spins; i > 0; i--) {
            found = coll_velo_look(flag);
            if (found == expected)
                return OMPI_SUCCESS;
            coll_velo_pause();
        }
        if (rc == OMPI_SUCCESS)
            rc = judge_flag(found, expected);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
}

static int await_one_left(const coll_velo_module_t *module, int rank, uint64_t sequence,
                          uint64_t *left)
{
    const uint64_t *done = &coll_velo_area(module, rank)->done;
    struct wait wait = {0};
    while ((*left = coll_velo_left(done)) < sequence) {
        int rc = rest_between_looks(module, rank, &wait);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}

int coll_velo_await_left(coll_velo_module_t *module, uint64_t sequence)
{
    uint64_t known = UINT64_MAX;
    if (module->failed != OMPI_SUCCESS)
        return module->failed;
    for (int i = 0; i < module->ranks; i++) {
        uint64_t left;
        if (i == module->rank)
            continue;
        int rc = await_one_left(module, i, sequence, &left);
        if (rc != OMPI_SUCCESS)
            return rc;
        known = left < known ? left : known;
    }
    module->known = known;
    return OMPI_SUCCESS;
}

int coll_velo_begin_data(coll_velo_module_t *module, size_t len_bytes,
                         struct coll_velo_round *round)
{
    uint32_t taken = 1, turn = module->data_turn;
    if (len_bytes > module->data_bank_bytes) { /* Two that lie side by side. */
        taken = COLL_VELO_BANKS_TAKEN;
        turn += turn % COLL_VELO_BANKS_TAKEN;
    }
    uint64_t last = 0;
    for (uint32_t i = 0; i < taken; i++) {
        uint64_t *sequence = &module->data_sequence[(turn + i) % COLL_VELO_DATA_BANKS];
        last = *sequence > last ? *sequence : last;
        *sequence = module->sequence;
    }
    module->data_turn = turn + taken;
    round->data_at = COLL_VELO_PAGE_BYTES + turn % COLL_VELO_DATA_BANKS * module->data_bank_bytes;
    return last > module->known ? coll_velo_await_left(module, last) : OMPI_SUCCESS;
}

int coll_velo_agree(coll_velo_module_t *module, bool *is_well)
{
    struct coll_velo_round round;
    int rc = coll_velo_begin(module, sizeof(uint8_t), &round);
    if (rc != OMPI_SUCCESS)
        return rc;
    *coll_velo_place(module, &round, module->rank, STAGE_LEADER) = *is_well;
    coll_velo_post(module, &round, STAGE_LEADER);
    for (int i = 0; i < module->ranks; i++) {
        if (i != module->rank)
            rc = coll_velo_await(module, &round, i, STAGE_LEADER);
        if (rc != OMPI_SUCCESS)
            return rc;
        *is_well &= *coll_velo_place(module, &round, i, STAGE_LEADER) != 0;
    }
    coll_velo_end(module, true);
    return OMPI_SUCCESS;
}
