/* SPDX-License-Identifier: Apache-2.0 */
/* The points to be measured, and their order: every point once a round, shuffled in each round. */
#ifndef VELO_BENCH_PLAN_H
#define VELO_BENCH_PLAN_H

#include "options.h"

#include <stddef.h>
#include <stdint.h>

#define POINTS_MAX (SIZES_MAX * SENDERS_LIST_MAX)

struct point {
    size_t size_bytes;
    unsigned senders_index; /* into options.senders */
};

struct step {
    unsigned point;
    unsigned batch;
};

struct plan {
    struct point points[POINTS_MAX];
    unsigned points_count;
    struct step *steps;
    unsigned steps_count;
};

/* max_bytes is the longest message that a connection takes. */
void plan_build(struct plan *plan, const struct options *options, size_t max_bytes);

#endif
