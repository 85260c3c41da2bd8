/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives without data to speak of: MPI_Allreduce of one 8-byte number, and MPI_Barrier. With
 * more ranks than cores they show the cost of waiting. */
#include "clock.h"
#include "session.h"

#define OPERATIONS_MIN 4u
#define OPERATIONS_MAX 400u
#define BATCH_NS 5e6 /* Where ranks outnumber cores an operation may take milliseconds. */

/* So many operations, one after the other. */
typedef void repeat(struct session *session, unsigned operations);

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

static void meet(struct session *session, unsigned operations)
{
    (void)session;
    for (unsigned i = 0; i < operations; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* As many as fill a batch, by rank 0's clock. */
static unsigned operations_of(struct session *session, repeat *operation)
{
    uint64_t begin_ns = now_ns();
    operation(session, OPERATIONS_MIN);
    double fit = BATCH_NS * OPERATIONS_MIN / (double)(now_ns() - begin_ns);
    unsigned operations = fit > OPERATIONS_MAX   ? OPERATIONS_MAX
                          : fit < OPERATIONS_MIN ? OPERATIONS_MIN
                                                 : (unsigned)fit;
    MPI_Bcast(&operations, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    return operations;
}

static void run(struct session *session, repeat *operation, const char *metric, size_t size_bytes)
{
    while (session_next(session)) {
        struct batch out = {
            .metric = metric, .limit_name = "pingpong", .size_bytes = size_bytes, .pairs = 1};
        session_bracket(session, &out.before);
        unsigned operations = operations_of(session, operation);
        uint64_t begin_ns = now_ns();
        operation(session, operations);
        out.value = (double)(now_ns() - begin_ns) / operations;
        session_bracket(session, &out.after);
        session_report(session, &out);
    }
}

static void run_allreduce(struct session *session)
{
    run(session, reduce, "allreduce_ns", sizeof(uint64_t));
}

static void run_barrier(struct session *session) { run(session, meet, "barrier_ns", 0); }

const struct mode allreduce_mode = {
    .name = "allreduce",
    .text = "MPI_Allreduce of 8 bytes",
    .batches = 60,
    .ranks_multiple = 1,
    .run = run_allreduce,
};

const struct mode barrier_mode = {
    .name = "barrier",
    .text = "MPI_Barrier",
    .batches = 60,
    .ranks_multiple = 1,
    .run = run_barrier,
};
