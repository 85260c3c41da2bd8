/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a run of velo-perf. */
#ifndef VELO_BENCH_OPTIONS_H
#define VELO_BENCH_OPTIONS_H

#include "fail.h"

#include <velo/velo.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIZES_MAX 256u
#define SENDERS_LIST_MAX 8u
#define CPUS_MAX 1024u
#define PAIRS_MAX 64u
#define THREADS_MAX 64u
#define PROCS_MAX 128u
#define TOKENS_MAX 64u

enum mode { MODE_LIMIT, MODE_LATENCY, MODE_RATE, MODE_BANDWIDTH, MODE_RING, MODE_GUPS };

struct options {
    enum mode mode;
    size_t sizes_bytes[SIZES_MAX];
    unsigned sizes_count; /* 0: the mode's own schedule */
    bool sizes_auto;      /* the NetPIPE-like schedule */
    unsigned senders[SENDERS_LIST_MAX];
    unsigned senders_count;
    unsigned pairs;
    unsigned threads;
    unsigned procs;
    unsigned tokens;
    unsigned table_log2;
    unsigned batches; /* 0: the mode's default, as for iters */
    unsigned iters;
    unsigned time_ms;
    double near_ns;
    unsigned cpus[CPUS_MAX];
    unsigned cpus_count;
    uint64_t seed;
    bool poll;
    bool in_place;
    bool is_listening; /* with another velo-perf: see meet.h */
    bool is_connecting;
    uint32_t depth_slots; /* 0: the library's default, as for data_bytes */
    uint32_t data_bytes;
    char domain[VELO_DOMAIN_NAME_MAX + 1];
};

/* Read the command line. On a mistake it says so, with exit code EXIT_USAGE. */
void options_parse(struct options *options, int argc, char **argv);

const char *mode_name(enum mode mode);

/* Processes that the mode takes, and threads in all of them that meet at a barrier. */
unsigned options_ranks(const struct options *options);
unsigned options_parties(const struct options *options);

#endif
