/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the measurements of velo-mpi-perf: the command line, the raw line between ranks 0 and 1
 * that brackets every batch, and the output, in the format of velo-perf.
 *
 * The launcher pins the ranks. Everything here but the raw line and the sleep beside it is plain
 * MPI, so that the same source measures every MPI.
 */
#ifndef VELO_BENCH_MPI_SESSION_H
#define VELO_BENCH_MPI_SESSION_H

#include "fail.h"
#include "limit.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIZES_MAX 64u
#define SIZE_BYTES_MAX (16u << 20)
#define POSTED_MAX 1000000u

struct mode;

struct options {
    const struct mode *mode;
    size_t sizes_bytes[SIZES_MAX];
    unsigned sizes_count;
    unsigned batches;
    unsigned time_ms; /* no batch begins later */
    unsigned posted;
    unsigned table_log2;
    unsigned windows;
    double near_ns;
    bool no_limit; /* the cores' lines have nothing to do with the messages */
};

/* The raw limits on one side of a batch. */
struct bracket {
    double hop_ns; /* tells near from far */
    double limit;  /* the figure is compared with this */
};

struct session {
    struct options options;
    unsigned rank;
    unsigned ranks;
    struct raw *raw; /* shared by all ranks, beside MPI */
    struct limit limit;
    uint32_t brackets; /* taken so far */
    uint64_t begin_ns;
    unsigned batch;
    unsigned dropped;
};

/* A kind of measurement. */
struct mode {
    const char *name;
    const char *text;
    unsigned batches;
    unsigned ranks_multiple; /* ranks must be a multiple of it */
    bool ranks_power_of_two;
    const char *sizes; /* default sizes; NULL: takes none */
    bool takes_posted;
    bool takes_table;
    bool takes_windows;
    void (*run)(struct session *session);
};

extern const struct mode latency_mode, written_mode, rate_mode, incast_mode, matching_mode,
    allreduce_mode, barrier_mode, alltoall_mode, halo_mode, gups_mode;

/* A batch as it is reported; `posted` 0 leaves that out. */
struct batch {
    const char *metric;
    const char *limit_name;
    size_t size_bytes;
    double value;
    unsigned pairs;
    unsigned posted;
    struct bracket before;
    struct bracket after;
};

/* MPI_Init, command line, raw line. */
void session_begin(struct session *session, int argc, char **argv);

/* The last line of the output, and MPI_Finalize. */
void session_end(struct session *session);

/* Is there another batch, or round of batches? All ranks agree. */
bool session_next(struct session *session);

/* Measure the raw line; the values are rank 0's. All ranks call it. */
void session_bracket(struct session *session, struct bracket *out);

/* The same with the bare stream of lines as limit. */
void session_bracket_stream(struct session *session, struct bracket *out);

/* Print a batch, or drop it if the cores moved; rank 0 only does anything. */
void session_report(struct session *session, const struct batch *batch);

/* The longest size of the command line; 0 if it has none. */
size_t session_largest_bytes(const struct session *session);

/* A buffer for messages, page-aligned and touched. */
unsigned char *session_buffer(size_t size_bytes);

#endif
