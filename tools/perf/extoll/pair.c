/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include <argp.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.h>

#define SHARED_BYTES 4096u
/* Words of the shared memory: arrivals of each process, then the program's own. */
#define REPEATS_MAX 10000000

static pid_t child;

void pair_check(bool is_good, const char *what)
{
    if (is_good)
        return;
    fprintf(stderr, "%s failed: %s\n", what, velo_last_error());
    exit(1);
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct argp_option argp_options[] = {
    {"cpus", 'c', "A,B", 0, "pin the two processes to these CPUs (not pinned)", 0},
    {"batches", 'b', "N", 0, "batches of each way (100)", 0},
    {"repeats", 'n', "N", 0, "messages or operations in a batch", 0},
    {0},
};

static long number(struct argp_state *state, char **text, long min, long max)
{
    char *end;
    errno = 0;
    long value = strtol(*text, &end, 10);
    if (errno || end == *text || value < min || value > max)
        argp_error(state, "'%s' does not begin with a number from %ld to %ld", *text, min, max);
    *text = end;
    return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct pair_options *options = state->input;
    switch (key) {
    case 'c':
        options->cpus[0] = (int)number(state, &arg, 0, CPU_SETSIZE - 1);
        if (*arg++ != ',')
            argp_error(state, "give two CPUs: --cpus 0,1");
        options->cpus[1] = (int)number(state, &arg, 0, CPU_SETSIZE - 1);
        return 0;
    case 'b':
        options->batches = (unsigned)number(state, &arg, 1, BATCHES_MAX);
        return 0;
    case 'n':
        options->repeats = (unsigned)number(state, &arg, 1, REPEATS_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the two processes ----------------------------------------------------------------------- */

struct pair pair_begin(int argc, char **argv, const char *what, unsigned repeats)
{
    struct argp argp = {argp_options, parse_option, NULL, what, NULL, NULL, NULL};
    struct pair pair = {.options = {{-1, -1}, 100, repeats}};
    char domain[32];
    argp_parse(&argp, argc, argv, 0, NULL, &pair.options);
    pair.shared =
        mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pair_check(pair.shared != MAP_FAILED, "mmap");
    (void)snprintf(domain, sizeof domain, "extoll-perf-%d", (int)getpid());
    (void)setenv("VELO_DOMAIN", domain, 1);
    child = fork();
    pair_check(child >= 0, "fork");
    pair.self = child == 0;
    if (pair.self)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int cpu = pair.options.cpus[pair.self];
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= 0) {
        CPU_SET((size_t)cpu, &set);
        pair_check(sched_setaffinity(0, sizeof set, &set) == 0, "pinning to a CPU");
    }
    return pair;
}

/* Has the second process ended? It can still be waited for. */
static bool has_ended(void)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child;
}

void pair_meet(struct pair *pair)
{
    _Atomic uint64_t *arrived = (_Atomic uint64_t *)pair->shared;
    uint64_t mine = atomic_fetch_add(&arrived[pair->self], 1) + 1;
    while (atomic_load(&arrived[1 - pair->self]) < mine) {
        sched_yield();
        /* It may have arrived just now, and ended well since. */
        if (!pair->self && has_ended() && atomic_load(&arrived[1]) < mine)
            exit(1); /* It has said why. */
    }
}

_Noreturn void pair_end(const struct pair *pair)
{
    int status = 0;
    if (!pair->self)
        pair_check(waitpid(child, &status, 0) == child && status == 0, "the second process");
    exit(0);
}

/* ---- results --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

void pair_print(const struct pair *pair, const char *mode, size_t size_bytes, const char *ours,
                const char *bare, struct pair_times *times)
{
    static double costs[BATCHES_MAX];
    const unsigned count = pair->options.batches;
    for (unsigned i = 0; i < count; i++)
        costs[i] = times->ours[i] - times->bare[i];
    const double ours_ns = median(times->ours, count);
    const double bare_ns = median(times->bare, count);
    printf("{\"mode\":\"%s\",\"size_bytes\":%zu,\"%s_ns\":%.1f,\"%s_ns\":%.1f,\"cost_ns\":%.1f,"
           "\"ratio\":%.3f,\"mb_per_s\":%.0f}\n",
           mode, size_bytes, ours, ours_ns, bare, bare_ns, median(costs, count), ours_ns / bare_ns,
           (double)size_bytes * 1e3 / ours_ns);
    (void)fflush(stdout);
}
