/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Allreduce of one 8-byte number; with more ranks than cores it shows the cost of waiting. */
#include "clock.h"
#include "session.h"

#define SIZE_BYTES sizeof(uint64_t)
#define OPERATIONS_MIN 4u
#define OPERATIONS_MAX 400u
#define BATCH_NS 5e6 /* Where ranks outnumber cores an operation may take milliseconds. */

static void reduce(struct session *session, unsigned operations)
{
    uint64_t expected = (uint64_t)session->ranks * (session->ranks + 1) / 2, sum = 0;
    for (unsigned i = 0; i < operations; i++) {
        uint64_t own = session->rank + 1;
        MPI_Allreduce(&own, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (sum != expected) {
            rank_fail(EXIT_VERIFY, "the sum over %u ranks is %llu, not %llu", session->ranks,
                      (unsigned long long)sum, (unsigned long long)expected);
        }
    }
}

/* As many as fill a batch, by rank 0's clock. */
static unsigned operations_of(struct session *session)
{
    uint64_t begin_ns = now_ns();
    reduce(session, OPERATIONS_MIN);
    double fit = BATCH_NS * OPERATIONS_MIN / (double)(now_ns() - begin_ns);
    unsigned operations = fit > OPERATIONS_MAX   ? OPERATIONS_MAX
                          : fit < OPERATIONS_MIN ? OPERATIONS_MIN
                                                 : (unsigned)fit;
    MPI_Bcast(&operations, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    return operations;
}

static void run(struct session *session)
{
    while (session_next(session)) {
        struct batch out = {.metric = "allreduce_ns",
                            .limit_name = "pingpong",
                            .size_bytes = SIZE_BYTES,
                            .pairs = 1};
        session_bracket(session, &out.before);
        unsigned operations = operations_of(session);
        uint64_t begin_ns = now_ns();
        reduce(session, operations);
        out.value = (double)(now_ns() - begin_ns) / operations;
        session_bracket(session, &out.after);
        session_report(session, &out);
    }
}

const struct mode allreduce_mode = {
    .name = "allreduce",
    .text = "MPI_Allreduce of 8 bytes",
    .batches = 60,
    .ranks_multiple = 1,
    .run = run,
};
