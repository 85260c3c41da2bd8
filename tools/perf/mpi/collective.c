/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations in which all ranks take part: MPI_Allreduce of one 8-byte number, MPI_Barrier,
 * MPI_Alltoall, and the halo exchange of a grid of ranks. With more ranks than cores they show the
 * cost of waiting.
 */
#include "clock.h"
#include "pattern.h"
#include "session.h"

#include <stdlib.h>
#include <string.h>

#define OPERATIONS_MIN 4u
#define OPERATIONS_MAX 400u
#define BATCH_NS 5e6 /* Where ranks outnumber cores an operation may take milliseconds. */
#define DIMENSIONS 3
#define FACES (2 * DIMENSIONS)

/* What a rank gives to others and takes from them: a block for each, or for each face of the grid.
 */
struct blocks {
    unsigned char *out;
    unsigned char *in;
    size_t size_bytes; /* of a block */
    MPI_Comm grid;
    int neighbors[FACES]; /* behind face 2d and 2d + 1 of dimension d */
};

/* One kind of operation. */
struct operation {
    const char *metric;
    /* So many, one after the other. */
    void (*repeat)(struct session *session, struct blocks *blocks, unsigned operations);
    /* One, whose bytes are looked at; NULL: repeat() does so itself. */
    void (*verify)(struct session *session, struct blocks *blocks);
};

static void reduce(struct session *session, struct blocks *blocks, unsigned operations)
{
    uint64_t expected = (uint64_t)session->ranks * (session->ranks + 1) / 2, sum = 0;
    (void)blocks;
    for (unsigned i = 0; i < operations; i++) {
        uint64_t own = session->rank + 1;
        MPI_Allreduce(&own, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (sum != expected) {
            rank_fail(EXIT_VERIFY, "the sum over %u ranks is %llu, not %llu", session->ranks,
                      (unsigned long long)sum, (unsigned long long)expected);
        }
    }
}

static void meet(struct session *session, struct blocks *blocks, unsigned operations)
{
    (void)session;
    (void)blocks;
    for (unsigned i = 0; i < operations; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void exchange_with_all(struct session *session, struct blocks *blocks, unsigned operations)
{
    int bytes = (int)blocks->size_bytes;
    (void)session;
    for (unsigned i = 0; i < operations; i++) {
        MPI_Alltoall(blocks->out, bytes, MPI_BYTE, blocks->in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
}

/* The tag is the sender's face, because both faces of a short dimension lead to the same rank. */
static void exchange_faces(struct session *session, struct blocks *blocks, unsigned operations)
{
    MPI_Request requests[2 * FACES];
    int bytes = (int)blocks->size_bytes;
    (void)session;
    for (unsigned i = 0; i < operations; i++) {
        for (int face = 0; face < FACES; face++) {
            MPI_Irecv(blocks->in + (size_t)face * blocks->size_bytes, bytes, MPI_BYTE,
                      blocks->neighbors[face], face ^ 1, blocks->grid, &requests[face]);
        }
        for (int face = 0; face < FACES; face++) {
            MPI_Isend(blocks->out + (size_t)face * blocks->size_bytes, bytes, MPI_BYTE,
                      blocks->neighbors[face], face, blocks->grid, &requests[FACES + face]);
        }
        MPI_Waitall(2 * FACES, requests, MPI_STATUSES_IGNORE);
    }
}

static void expect_block(const struct blocks *blocks, unsigned block, uint64_t key, uint64_t seq,
                         unsigned from)
{
    static unsigned char expected[SIZE_BYTES_MAX];
    pattern_fill(expected, blocks->size_bytes, key, seq);
    if (memcmp(blocks->in + block * blocks->size_bytes, expected, blocks->size_bytes) != 0) {
        rank_fail(EXIT_VERIFY, "a block of %zu bytes from rank %u arrived damaged",
                  blocks->size_bytes, from);
    }
}

static void verify_all(struct session *session, struct blocks *blocks)
{
    static uint64_t seq;
    unsigned ranks = session->ranks;
    seq++;
    for (unsigned to = 0; to < ranks; to++) {
        pattern_fill(blocks->out + to * blocks->size_bytes, blocks->size_bytes,
                     session->rank * ranks + to, seq);
    }
    memset(blocks->in, 0, ranks * blocks->size_bytes);
    exchange_with_all(session, blocks, 1);
    for (unsigned from = 0; from < ranks; from++) {
        expect_block(blocks, from, from * ranks + session->rank, seq, from);
    }
}

static void verify_faces(struct session *session, struct blocks *blocks)
{
    static uint64_t seq;
    seq++;
    for (unsigned face = 0; face < FACES; face++) {
        pattern_fill(blocks->out + face * blocks->size_bytes, blocks->size_bytes,
                     session->rank * FACES + face, seq);
    }
    memset(blocks->in, 0, FACES * blocks->size_bytes);
    exchange_faces(session, blocks, 1);
    for (unsigned face = 0; face < FACES; face++) {
        unsigned from = (unsigned)blocks->neighbors[face];
        expect_block(blocks, face, from * FACES + (face ^ 1u), seq, from);
    }
}

/* As many as fill a batch, by rank 0's clock. */
static unsigned operations_of(struct session *session, const struct operation *operation,
                              struct blocks *blocks)
{
    uint64_t begin_ns = now_ns();
    operation->repeat(session, blocks, OPERATIONS_MIN);
    double fit = BATCH_NS * OPERATIONS_MIN / (double)(now_ns() - begin_ns);
    unsigned operations = fit > OPERATIONS_MAX   ? OPERATIONS_MAX
                          : fit < OPERATIONS_MIN ? OPERATIONS_MIN
                                                 : (unsigned)fit;
    MPI_Bcast(&operations, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    return operations;
}

static void batch(struct session *session, const struct operation *operation, struct blocks *blocks)
{
    struct batch out = {.metric = operation->metric,
                        .limit_name = "pingpong",
                        .size_bytes = blocks->size_bytes,
                        .pairs = 1};
    if (operation->verify) {
        operation->verify(session, blocks);
    }
    session_bracket(session, &out.before);
    unsigned operations = operations_of(session, operation, blocks);
    uint64_t begin_ns = now_ns();
    operation->repeat(session, blocks, operations);
    out.value = (double)(now_ns() - begin_ns) / operations;
    session_bracket(session, &out.after);
    session_report(session, &out);
}

/* Batches of every size of the command line, with so many blocks. */
static void run_sizes(struct session *session, const struct operation *operation,
                      struct blocks *blocks, unsigned count)
{
    const struct options *options = &session->options;
    size_t largest_bytes = session_largest_bytes(session);
    blocks->out = session_buffer(count * largest_bytes);
    blocks->in = session_buffer(count * largest_bytes);
    while (session_next(session)) {
        for (unsigned i = 0; i < options->sizes_count; i++) {
            blocks->size_bytes = options->sizes_bytes[i];
            batch(session, operation, blocks);
        }
    }
    free(blocks->in);
    free(blocks->out);
}

static void run_allreduce(struct session *session)
{
    static const struct operation operation = {.metric = "allreduce_ns", .repeat = reduce};
    struct blocks blocks = {.size_bytes = sizeof(uint64_t)};
    while (session_next(session)) {
        batch(session, &operation, &blocks);
    }
}

static void run_barrier(struct session *session)
{
    static const struct operation operation = {.metric = "barrier_ns", .repeat = meet};
    struct blocks blocks = {.size_bytes = 0};
    while (session_next(session)) {
        batch(session, &operation, &blocks);
    }
}

static void run_alltoall(struct session *session)
{
    static const struct operation operation = {"alltoall_ns", exchange_with_all, verify_all};
    struct blocks blocks = {0};
    run_sizes(session, &operation, &blocks, session->ranks);
}

static void run_halo(struct session *session)
{
    static const struct operation operation = {"halo_ns", exchange_faces, verify_faces};
    static const int periods[DIMENSIONS] = {1, 1, 1};
    struct blocks blocks = {0};
    int lengths[DIMENSIONS] = {0};
    MPI_Dims_create((int)session->ranks, DIMENSIONS, lengths);
    /* Not reordered: rank i keeps the core that the launcher gave it. */
    MPI_Cart_create(MPI_COMM_WORLD, DIMENSIONS, lengths, periods, 0, &blocks.grid);
    for (int d = 0; d < DIMENSIONS; d++) {
        MPI_Cart_shift(blocks.grid, d, 1, &blocks.neighbors[2 * d], &blocks.neighbors[2 * d + 1]);
    }
    run_sizes(session, &operation, &blocks, FACES);
    MPI_Comm_free(&blocks.grid);
}

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

const struct mode alltoall_mode = {
    .name = "alltoall",
    .text = "MPI_Alltoall, by bytes for each rank",
    .batches = 30,
    .ranks_multiple = 1,
    .sizes = "8,1024,65536",
    .run = run_alltoall,
};

const struct mode halo_mode = {
    .name = "halo",
    .text = "halo exchange of a periodic 3-D grid of ranks, by bytes of a face",
    .batches = 30,
    .ranks_multiple = 1,
    .sizes = "8,1024,65536",
    .run = run_halo,
};
