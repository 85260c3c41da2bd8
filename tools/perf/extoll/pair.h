/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two pinned processes that measure the same work in two ways, in turns, so that both ways meet the
 * same moods of the machine. Medians over batches; of the cost the median of the pairs'
 * differences.
 */
#ifndef VELO_BENCH_EXTOLL_PAIR_H
#define VELO_BENCH_EXTOLL_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BATCHES_MAX 10000u

struct pair_options {
    int cpus[2]; /* -1: not pinned. */
    unsigned batches;
    unsigned repeats; /* Of the work, in a batch. */
};

/* Memory that both processes see, beside what a program puts behind it. */
struct pair {
    struct pair_options options;
    int self; /* 0 measures, 1 answers; each process has its own copy of this. */
    volatile uint64_t *shared;
};

/* Two results of each batch: ns for one message or operation. */
struct pair_times {
    double ours[BATCHES_MAX];
    double bare[BATCHES_MAX];
};

/* Read the command line and start the second process, in a domain of their own. Ends the program
 * if anything is wrong. */
struct pair pair_begin(int argc, char **argv, const char *what, unsigned repeats);
/* End both, and the program with its exit code. */
_Noreturn void pair_end(const struct pair *pair);
/* Both are at this point. */
void pair_meet(struct pair *pair);
/* End the program with a sentence if a call failed. */
void pair_check(bool is_good, const char *what);
/* Print the medians as one JSON object. */
void pair_print(const struct pair *pair, const char *mode, size_t size_bytes, const char *ours,
                const char *bare, struct pair_times *times);

#endif
