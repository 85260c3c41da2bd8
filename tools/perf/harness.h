/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a measurement. The parent forks and pins them, and sleeps meanwhile. They meet
 * at one barrier. When one fails, or the user interrupts, all end together, and their ports are
 * removed.
 */
#ifndef VELO_BENCH_HARNESS_H
#define VELO_BENCH_HARNESS_H

#include "fail.h"
#include "limit.h"
#include "meet.h"
#include "options.h"
#include "plan.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The raw limits on one side of a batch. */
struct bracket {
    double hop_ns;  /* half round trip of the one-line ping-pong; tells near from far */
    double ring_ns; /* the bare ring polled plainly, and with PAUSE; where the mode measures them */
    double ring_pause_ns;
    double limit; /* the reference that the mode's figure is compared with */
};

/* The result of one pair in a batch. */
struct finding {
    _Alignas(LINE_BYTES) struct bracket before;
    struct bracket after;
    double value;
};

/* Waits in a futex after a short spin, so that it serves more ranks than there are cores. */
struct barrier {
    _Alignas(LINE_BYTES) _Atomic uint32_t arrived;
    _Atomic uint32_t sleepers;
    _Alignas(LINE_BYTES) _Atomic uint32_t generation;
    uint32_t parties;
    uint32_t spins;
};

/* Memory that all processes of a run share, beside the limit areas. */
struct shared {
    struct barrier barrier;
    _Alignas(LINE_BYTES) _Atomic uint64_t progress; /* steps done; the parent watches it move */
    _Atomic uint32_t failed;                        /* who writes `error` */
    char error[1024];
    unsigned dropped;              /* batches during which the cores moved; rank 0 writes it */
    uint64_t spent_ns[POINTS_MAX]; /* written by rank 0 between barriers */
    struct finding finding[PAIRS_MAX];
};

/* One process's (and on the sending side, one thread's) place in the run. */
struct rank {
    const struct options *options;
    const struct plan *plan;
    struct shared *shared;
    unsigned index;
    unsigned pair;
    unsigned side; /* 0 measures and, in pair 0, reports; 1 answers or sends */
    struct limit limit;
    struct limit_futex futex;
    uint64_t step_begin_ns;
};

/* Run `body` in each rank, or in a meeting in ours. Returns an exit code; *dropped is how many
 * batches were dropped. */
int harness_run(const struct options *options, const struct plan *plan,
                void (*body)(struct rank *rank), struct meeting *meeting, unsigned *dropped);

/* Wait for all parties. */
void rank_barrier(struct rank *rank);

/* Pin the calling thread to one of the allowed cores, round robin. */
void rank_pin(const struct options *options, unsigned index);

/* False: the step's point has used up its time; all ranks agree. */
bool step_begin(struct rank *rank, const struct step *step);

/* This rank's pair writes its result here. */
static inline struct finding *step_finding(struct rank *rank)
{
    return &rank->shared->finding[rank->pair];
}

/* After the last measurement: all ranks wait, then rank 0 reports `metric` over all pairs. */
struct report {
    const char *metric;
    const char *limit_name;
    bool sum;  /* over the pairs; else the mean */
    bool ring; /* the brackets hold the bare ring too */
};
/* The value reported; NAN when the batch was dropped or this is not rank 0. */
double step_end(struct rank *rank, const struct step *step, const struct report *report);

#endif
