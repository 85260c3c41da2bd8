/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes that measure together: joined by pipes, each on a core of its own. For programs
 * that take their numbers as plain arguments, in order.
 */
#ifndef VELO_BENCH_DUO_H
#define VELO_BENCH_DUO_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.h>

struct duo {
    int rank;
    int in, out; /* Pipes to and from the other one. */
    pid_t parent, child;
};

/* Ends the program with a sentence unless rc is 0. */
static inline void duo_check(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s: %s: %d: %s\n", program_invocation_short_name, what, rc, velo_last_error());
    exit(1);
}

/* Both give `mine` and get `theirs`; so both are at this point. */
static inline void duo_swap(const struct duo *duo, const void *mine, void *theirs, size_t len_bytes)
{
    if (write(duo->out, mine, len_bytes) != (ssize_t)len_bytes ||
        read(duo->in, theirs, len_bytes) != (ssize_t)len_bytes)
        duo_check(1, "the other process is gone");
}

/* Starts the second process, rank 1, which ends with the first. */
static inline struct duo duo_start(const int cores[2])
{
    struct duo duo = {.parent = getpid()};
    int pipes[2][2];
    cpu_set_t set;
    duo_check(pipe(pipes[0]) || pipe(pipes[1]), "pipe");
    duo.child = fork();
    duo_check(duo.child < 0, "fork");
    duo.rank = duo.child == 0;
    if (duo.rank == 1)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    duo.in = pipes[duo.rank][0];
    duo.out = pipes[!duo.rank][1];
    (void)close(pipes[!duo.rank][0]);
    (void)close(pipes[duo.rank][1]);
    CPU_ZERO(&set);
    CPU_SET((unsigned)cores[duo.rank], &set);
    (void)sched_setaffinity(0, sizeof set, &set);
    return duo;
}

/* The argument at `at`, or `otherwise` if there are not so many. */
static inline int duo_number(int argc, char **argv, int at, int otherwise)
{
    return at < argc ? (int)strtol(argv[at], NULL, 10) : otherwise;
}

/* For qsort of doubles. */
static inline int duo_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
