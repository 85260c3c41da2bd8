/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include "limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sizes {
    size_t bytes[SIZES_MAX];
    unsigned count;
};

static void sizes_add(struct sizes *sizes, size_t size_bytes, size_t max_bytes)
{
    if (size_bytes <= max_bytes && sizes->count < SIZES_MAX) {
        sizes->bytes[sizes->count++] = size_bytes;
    }
}

static int compare_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static void sizes_sort_unique(struct sizes *sizes)
{
    unsigned kept = 0;
    qsort(sizes->bytes, sizes->count, sizeof sizes->bytes[0], compare_size);
    for (unsigned i = 0; i < sizes->count; i++) {
        if (kept == 0 || sizes->bytes[i] != sizes->bytes[kept - 1]) {
            sizes->bytes[kept++] = sizes->bytes[i];
        }
    }
    sizes->count = kept;
}

/* NetPIPE's schedule: powers of two, the half-way sizes, and just beside each of them. */
static void sizes_auto(struct sizes *sizes, size_t max_bytes)
{
    for (size_t size = 0; size < 4; size++) {
        sizes_add(sizes, size, max_bytes);
    }
    for (size_t power = 4; power <= max_bytes; power *= 2) {
        size_t bases[] = {power, power + power / 2};
        for (int i = 0; i < 2; i++) {
            size_t off = bases[i] < 16 ? 1 : 3;
            sizes_add(sizes, bases[i] - off, max_bytes);
            sizes_add(sizes, bases[i], max_bytes);
            sizes_add(sizes, bases[i] + off, max_bytes);
        }
    }
    sizes_add(sizes, max_bytes, max_bytes);
    sizes_sort_unique(sizes);
}

static void sizes_given(struct sizes *sizes, const struct options *options, size_t max_bytes)
{
    for (unsigned i = 0; i < options->sizes_count; i++) {
        if (options->sizes_bytes[i] > max_bytes) {
            fprintf(stderr,
                    "velo-perf: size %zu is above the longest message, %zu bytes; "
                    "give a smaller one, or a larger --data-bytes\n",
                    options->sizes_bytes[i], max_bytes);
            exit(EXIT_USAGE);
        }
        sizes_add(sizes, options->sizes_bytes[i], max_bytes);
    }
    sizes_sort_unique(sizes);
}

static void sizes_default(struct sizes *sizes, const struct options *options, size_t max_bytes)
{
    switch (options->mode) {
    case MODE_LATENCY:
        sizes_auto(sizes, max_bytes);
        return;
    case MODE_RATE:
        sizes_add(sizes, 8, max_bytes);
        sizes_add(sizes, 32, max_bytes);
        return;
    case MODE_BANDWIDTH:
        for (size_t size = 8; size <= max_bytes; size *= 2) {
            sizes_add(sizes, size, max_bytes);
        }
        sizes_add(sizes, max_bytes, max_bytes);
        sizes_sort_unique(sizes);
        return;
    case MODE_LIMIT:
    case MODE_RING:
    case MODE_GUPS:
        sizes_add(sizes, 8, max_bytes);
        return;
    }
}

/* xorshift64*: the order of a run follows from its seed, on every machine. */
static uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

static void steps_shuffle(struct step *steps, unsigned count, uint64_t *state)
{
    for (unsigned i = count; i > 1; i--) {
        unsigned j = (unsigned)(random_next(state) % i);
        struct step swap = steps[i - 1];
        steps[i - 1] = steps[j];
        steps[j] = swap;
    }
}

static void plan_points(struct plan *plan, const struct options *options, const struct sizes *sizes)
{
    for (unsigned i = 0; i < sizes->count; i++) {
        for (unsigned j = 0; j < options->senders_count; j++) {
            plan->points[plan->points_count++] = (struct point){sizes->bytes[i], j};
        }
    }
}

void plan_build(struct plan *plan, const struct options *options, size_t max_bytes)
{
    struct sizes sizes = {.count = 0};
    uint64_t state = options->seed | 1; /* xorshift stays at zero for ever */
    if (options->sizes_auto) {
        sizes_auto(&sizes, max_bytes);
    } else if (options->sizes_count) {
        sizes_given(&sizes, options, max_bytes);
    } else {
        sizes_default(&sizes, options, max_bytes);
    }
    plan_points(plan, options, &sizes);
    plan->steps_count = plan->points_count * options->batches;
    plan->steps = calloc(plan->steps_count, sizeof plan->steps[0]);
    if (!plan->steps) {
        fprintf(stderr, "velo-perf: out of memory for the plan\n");
        exit(EXIT_FAILED);
    }
    struct step *step = plan->steps;
    for (unsigned batch = 0; batch < options->batches; batch++) {
        struct step *round = step;
        for (unsigned point = 0; point < plan->points_count; point++) {
            *step++ = (struct step){point, batch};
        }
        steps_shuffle(round, plan->points_count, &state);
    }
}
