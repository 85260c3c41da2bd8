/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that lie apart in one process's memory, and are wanted in a row by another: what a sparse
 * matrix needs of a vector, and the transpose of a matrix. One definition for both programs.
 */
#ifndef VELO_BENCH_DIMMNET_PROBLEM_H
#define VELO_BENCH_DIMMNET_PROBLEM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WANTED_MAX 65536u
#define OWNED_MAX (1u << 20)
#define ROUNDS_MAX 200u

struct problem {
    const char *name;
    uint32_t owned;    /* Words of the owner's vector or matrix. */
    uint32_t wanted;   /* Words that are fetched each time. */
    uint32_t side;     /* Of a matrix; 0: a vector, with wanted words anywhere. */
    uint32_t *offsets; /* Where each wanted word lies. */
    uint64_t sum;      /* What consume() finds. */
};

#define PROBLEMS 3u
static struct problem problems[PROBLEMS] = {
    {.name = "sparse", .owned = 1u << 16, .wanted = 4096},
    {.name = "sparse", .owned = OWNED_MAX, .wanted = 4096},
    {.name = "transpose", .owned = WANTED_MAX, .wanted = WANTED_MAX, .side = 256}};

static inline uint64_t owned_word(uint32_t at) { return at * UINT64_C(0x9e3779b97f4a7c15) >> 16; }

/* What the program does with the words: order counts, too. */
static inline uint64_t consume(const uint64_t *words, uint32_t count, uint32_t first)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += words[i] * (first + i + 1u);
    return sum;
}

static inline void problems_init(void)
{
    uint64_t random = 1;
    for (unsigned p = 0; p < PROBLEMS; p++) {
        struct problem *problem = &problems[p];
        problem->offsets = malloc(problem->wanted * sizeof *problem->offsets);
        if (!problem->offsets)
            abort();
        for (uint32_t i = 0; i < problem->wanted; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            problem->offsets[i] = problem->side
                                      ? i % problem->side * problem->side + i / problem->side
                                      : (uint32_t)(random >> 33) % problem->owned;
            problem->sum += owned_word(problem->offsets[i]) * (i + 1u);
        }
    }
}

static inline void pack(const struct problem *problem, const uint64_t *owned, uint64_t *packed)
{
    for (uint32_t i = 0; i < problem->wanted; i++)
        packed[i] = owned[problem->offsets[i]];
}

/* ---- results --------------------------------------------------------------------------------- */

static inline int compare_ns(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

/* One line: median and quartiles of the time for a word. */
static inline void print_way(const struct problem *problem, const char *way, double *ns,
                             unsigned rounds)
{
    qsort(ns, rounds, sizeof *ns, compare_ns);
    printf("{\"mode\":\"%s\",\"owned_words\":%u,\"wanted_words\":%u,\"way\":\"%s\",\"rounds\":%u,"
           "\"word_ns\":%.3f,\"word_ns_low\":%.3f,\"word_ns_high\":%.3f}\n",
           problem->name, problem->owned, problem->wanted, way, rounds, ns[rounds / 2],
           ns[rounds / 4], ns[rounds * 3 / 4]);
}

#endif
