/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ring for several readers, beside a connection to each of them, in turns. Every round goes
 * over all points, and starts the processes of each anew: a writer with a CPU of its own, and
 * readers on the others.
 */
#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <velo/velo.h>

#include "../clock.h"
#include "../fail.h"
#include "../machine.h"
#include "ways.h"

#define LIST_MAX 16u
#define CPUS_MAX 1024u
#define ROUNDS_MAX 1000u
#define SIZE_BYTES_MAX (1u << 20)
#define BURSTS 9u
/* A stream has so much, over all readers. */
#define STREAM_BYTES (64u << 20)
#define STREAM_MSGS_MIN 8u
#define STREAM_MSGS_MAX 65536u
/* Readers sleep by then: they spin for 50 us at most. */
#define PAUSE_NS 5000000u
#define SLEEP_BYTES 64u
#define SLEEP_READERS 4u
#define WAKES 10u

static const char doc[] =
    "Measure one ring with several readers (velo/bcast.h) beside a connection to each of them "
    "(velo/velo.h), in turns, in the same processes.\v"
    "  stream  until all readers have taken all messages of a long stream, for a message\n"
    "  writer  what the writer needs for a message while no reader looks; beside it a bare copy\n"
    "  wake    what the writer needs for a message that wakes 4 sleeping readers\n"
    "  woken   until the last of the 4 has the message\n"
    "  idle    CPU time of a reader that sleeps, the worst of 4, for a second of sleep\n"
    "\n"
    "Times are medians over rounds. `ratio` is the median of the rounds' ratios of connections to "
    "ring, with their quartiles: above 1 the ring is faster. Readers check number, tag and length "
    "of every message, and three words of those above 64 bytes (of others, all). Messages above "
    "32 KiB go over a connection in pieces of 32 KiB. Exit code: 0 done, 1 failed, 2 usage, 3 a "
    "payload was wrong.";

struct options {
    size_t sizes_bytes[LIST_MAX];
    unsigned sizes_count;
    size_t readers[LIST_MAX];
    unsigned readers_count;
    unsigned cpus[CPUS_MAX];
    unsigned cpus_count;
    unsigned rounds;
    unsigned idle_ms;
    bool is_json;
};

/* The times of one mode at one point, by round. */
struct times {
    double ns[WAYS][ROUNDS_MAX];
    double copy_ns[ROUNDS_MAX];
};

/* A point that streams fills the first two, the one that sleeps the others. */
enum mode { MODE_STREAM, MODE_WRITER, MODE_WAKE, MODE_WOKEN, MODE_IDLE, MODES };
static const char *const mode_names[MODES] = {"stream", "writer", "wake", "woken", "idle"};

struct result {
    struct point point;
    struct times times[MODES];
};

/* Memory that the processes of a point share. */
struct shared {
    pthread_barrier_t barrier;
    uint64_t got_ns[READERS_MAX]; /* When each reader had its message, and the CPU time it took. */
    uint64_t cpu_ns[READERS_MAX];
};

static struct options options = {
    {64, 1024, 64 << 10, 1 << 20}, 4, {1, 2, 4, 8}, 4, {0}, 0, 20, 2000, false};
static struct shared *shared;
static char domain[32];

void rank_fail(int exit_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("velo-bcast-perf: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(exit_code); /* The first process sees it, and ends the others. */
}

/* ---- the command line ------------------------------------------------------------------------ */

enum key { KEY_SIZES = 256, KEY_READERS, KEY_CPUS, KEY_ROUNDS, KEY_IDLE_MS, KEY_JSON };

static const struct argp_option argp_options[] = {
    {"sizes", KEY_SIZES, "LIST", 0,
     "Message sizes in bytes, powers of two from 8 to 1048576 (64,1024,65536,1048576)", 0},
    {"readers", KEY_READERS, "LIST", 0, "Numbers of readers, up to 16 (1,2,4,8)", 0},
    {"cpus", KEY_CPUS, "LIST", 0,
     "CPUs of the writer, and of the readers, round robin (allowed ones)", 0},
    {"rounds", KEY_ROUNDS, "N", 0, "Rounds over all points (20)", 0},
    {"idle-ms", KEY_IDLE_MS, "N", 0, "How long readers sleep for `idle`; 0: not measured (2000)",
     0},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object a line in place of a table", 0},
    {0},
};

static size_t number(struct argp_state *state, char **text, size_t min, size_t max)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(*text, &end, 10);
    if (errno || end == *text || **text == '-' || value < min || value > max)
        argp_error(state, "'%s' does not begin with a number from %zu to %zu", *text, min, max);
    *text = end;
    return value;
}

static unsigned number_list(struct argp_state *state, char *text, size_t min, size_t max,
                            size_t *values)
{
    unsigned count = 0;
    do {
        if (count == LIST_MAX)
            argp_error(state, "a list takes at most %u entries", LIST_MAX);
        values[count++] = number(state, &text, min, max);
    } while (*text++ == ',');
    if (text[-1])
        argp_error(state, "'%s' is not a list of numbers: put commas between them", text - 1);
    return count;
}

static size_t one_number(struct argp_state *state, char *text, size_t min, size_t max)
{
    size_t value = number(state, &text, min, max);
    if (*text)
        argp_error(state, "'%s' is left over behind a number", text);
    return value;
}

static void parse_sizes(struct argp_state *state, char *text)
{
    options.sizes_count = number_list(state, text, 8, SIZE_BYTES_MAX, options.sizes_bytes);
    for (unsigned i = 0; i < options.sizes_count; i++)
        if (options.sizes_bytes[i] & (options.sizes_bytes[i] - 1))
            argp_error(state, "size %zu is not a power of two", options.sizes_bytes[i]);
}

static void parse_cpus(struct argp_state *state, char *text)
{
    size_t values[LIST_MAX];
    options.cpus_count = number_list(state, text, 0, CPU_SETSIZE - 1, values);
    for (unsigned i = 0; i < options.cpus_count; i++)
        options.cpus[i] = (unsigned)values[i];
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case KEY_SIZES:
        parse_sizes(state, arg);
        return 0;
    case KEY_READERS:
        options.readers_count = number_list(state, arg, 1, READERS_MAX, options.readers);
        return 0;
    case KEY_CPUS:
        parse_cpus(state, arg);
        return 0;
    case KEY_ROUNDS:
        options.rounds = (unsigned)one_number(state, arg, 1, ROUNDS_MAX);
        return 0;
    case KEY_IDLE_MS:
        options.idle_ms = (unsigned)one_number(state, arg, 0, 60000 / 2);
        return 0;
    case KEY_JSON:
        options.is_json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the turns ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

/* The value below which a part of them is; sorts them. */
static double quantile(double *values, unsigned count, double part)
{
    qsort(values, count, sizeof *values, compare);
    double at = part * (count - 1);
    unsigned below = (unsigned)at;
    unsigned above = below + 1 < count ? below + 1 : below;
    return values[below] + (values[above] - values[below]) * (at - below);
}

static uint64_t cpu_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void meet(void) { (void)pthread_barrier_wait(&shared->barrier); }

static unsigned stream_msgs(const struct point *point)
{
    size_t msgs = STREAM_BYTES / point->size_bytes;
    msgs = (msgs < STREAM_MSGS_MAX ? msgs : STREAM_MSGS_MAX) / point->readers;
    return (unsigned)(msgs > STREAM_MSGS_MIN ? msgs : STREAM_MSGS_MIN);
}

/* Bursts for readers that wait at the barrier, and the same number of bare copies. */
static void write_bursts(struct ends *ends, enum way way, double *send_ns, double *copy_ns)
{
    double sends[BURSTS], copies[BURSTS];
    const unsigned burst = ends_burst(ends);
    for (unsigned i = 0; i < BURSTS; i++) {
        uint64_t begin_ns = now_ns();
        ways_send(ends, way, burst);
        uint64_t sent_ns = now_ns();
        ways_copy(ends, burst);
        copies[i] = (double)(now_ns() - sent_ns) / burst;
        sends[i] = (double)(sent_ns - begin_ns) / burst;
        meet();
        meet();
    }
    *send_ns = quantile(sends, BURSTS, 0.5);
    *copy_ns = quantile(copies, BURSTS, 0.5);
}

static void stream_writer(struct ends *ends, enum way way, struct result *result, unsigned round)
{
    const unsigned msgs = stream_msgs(&ends->point);
    struct times *writer = &result->times[MODE_WRITER];
    meet();
    uint64_t begin_ns = now_ns();
    ways_send(ends, way, msgs);
    meet();
    result->times[MODE_STREAM].ns[way][round] = (double)(now_ns() - begin_ns) / msgs;
    double copy_ns;
    write_bursts(ends, way, &writer->ns[way][round], &copy_ns);
    if (way == WAY_RING) /* Behind the connections its memory is not in the cache. */
        writer->copy_ns[round] = copy_ns;
}

static void stream_reader(struct ends *ends, enum way way)
{
    meet();
    ways_take(ends, way, stream_msgs(&ends->point));
    meet();
    for (unsigned i = 0; i < BURSTS; i++) {
        meet();
        ways_take(ends, way, ends_burst(ends));
        meet();
    }
}

static void pause_for(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0)
        ;
}

/* One message to readers that have slept for so long. */
struct wake {
    double send_ns;
    double got_ns;
    double cpu_ns; /* Of the reader that took most, while it slept. */
};

static struct wake wake_writer(struct ends *ends, enum way way, uint64_t sleep_ns)
{
    struct wake wake = {.cpu_ns = 0};
    meet();
    pause_for(sleep_ns);
    uint64_t begin_ns = now_ns();
    ways_send(ends, way, 1);
    wake.send_ns = (double)(now_ns() - begin_ns);
    meet();
    for (unsigned i = 0; i < ends->point.readers; i++) {
        double got_ns = (double)(shared->got_ns[i] - begin_ns);
        double cpu_ns = (double)shared->cpu_ns[i];
        wake.got_ns = got_ns > wake.got_ns ? got_ns : wake.got_ns;
        wake.cpu_ns = cpu_ns > wake.cpu_ns ? cpu_ns : wake.cpu_ns;
    }
    return wake;
}

static void wake_reader(struct ends *ends, enum way way, unsigned index)
{
    meet();
    uint64_t begin_ns = cpu_now_ns();
    ways_take(ends, way, 1);
    shared->got_ns[index] = now_ns();
    shared->cpu_ns[index] = cpu_now_ns() - begin_ns;
    meet();
}

static void sleep_writer(struct ends *ends, enum way way, struct result *result, unsigned round)
{
    double sends[WAKES], gots[WAKES];
    for (unsigned i = 0; i < WAKES; i++) {
        struct wake wake = wake_writer(ends, way, PAUSE_NS);
        sends[i] = wake.send_ns;
        gots[i] = wake.got_ns;
    }
    result->times[MODE_WAKE].ns[way][round] = quantile(sends, WAKES, 0.5);
    result->times[MODE_WOKEN].ns[way][round] = quantile(gots, WAKES, 0.5);
    if (round == 0 && options.idle_ms)
        result->times[MODE_IDLE].ns[way][0] =
            wake_writer(ends, way, options.idle_ms * UINT64_C(1000000)).cpu_ns * 1000 /
            options.idle_ms;
}

static void sleep_reader(struct ends *ends, enum way way, unsigned round, unsigned index)
{
    unsigned wakes = WAKES + (round == 0 && options.idle_ms);
    for (unsigned i = 0; i < wakes; i++)
        wake_reader(ends, way, index);
}

/* ---- the processes --------------------------------------------------------------------------- */

static void warm(struct ends *ends, bool is_writer)
{
    for (enum way way = 0; way < WAYS; way++) {
        unsigned msgs = stream_msgs(&ends->point);
        if (is_writer)
            ways_send(ends, way, msgs);
        else
            ways_take(ends, way, msgs);
    }
    if (is_writer)
        ways_copy(ends, ends_burst(ends));
    meet();
}

static void write_round(struct result *result, unsigned round, bool sleeps)
{
    struct ends ends;
    ends_open_writer(&ends, &result->point, domain);
    meet();
    ends_connect_writer(&ends);
    warm(&ends, true);
    for (unsigned turn = 0; turn < WAYS; turn++) { /* Each way is as often the first. */
        enum way way = (turn + round) % WAYS;
        if (sleeps)
            sleep_writer(&ends, way, result, round);
        else
            stream_writer(&ends, way, result, round);
    }
    meet();
    ends_close(&ends);
}

static void read_round(const struct result *result, unsigned round, bool sleeps, unsigned index)
{
    struct ends ends;
    ends_open_reader(&ends, &result->point, domain, index);
    meet();
    warm(&ends, false);
    for (unsigned turn = 0; turn < WAYS; turn++) {
        enum way way = (turn + round) % WAYS;
        if (sleeps)
            sleep_reader(&ends, way, round, index);
        else
            stream_reader(&ends, way);
    }
    meet();
    ends_close(&ends);
}

/* The writer, process 0, has the first CPU; the readers share the others. */
static void pin(unsigned process)
{
    unsigned others = options.cpus_count - 1;
    unsigned at = process == 0 || others == 0 ? 0 : 1 + (process - 1) % others;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(options.cpus[at], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        rank_fail(EXIT_FAILED, "cannot run on CPU %u: %s; name allowed CPUs with --cpus",
                  options.cpus[at], strerror(errno));
}

static void await_all(pid_t *pids, unsigned count)
{
    for (unsigned left = count; left > 0; left--) {
        int status;
        pid_t pid = wait(&status);
        for (unsigned i = 0; i < count; i++)
            if (pids[i] == pid)
                pids[i] = 0;
        if (status == 0)
            continue;
        for (unsigned i = 0; i < count; i++)
            if (pids[i] > 0)
                (void)kill(pids[i], SIGKILL);
        if (!WIFEXITED(status))
            rank_fail(EXIT_FAILED, "a process was ended by signal %d", WTERMSIG(status));
        exit(WEXITSTATUS(status)); /* It has said why. */
    }
}

static void run_round(struct result *result, unsigned round, bool sleeps)
{
    pid_t pids[READERS_MAX + 1];
    const unsigned count = result->point.readers + 1;
    pthread_barrierattr_t attr;
    (void)pthread_barrierattr_init(&attr);
    (void)pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    (void)pthread_barrier_init(&shared->barrier, &attr, count);
    for (unsigned i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            pin(i);
            if (i == 0)
                write_round(result, round, sleeps);
            else
                read_round(result, round, sleeps, i - 1);
            _exit(EXIT_OK);
        }
        if (pids[i] < 0)
            rank_fail(EXIT_FAILED, "cannot start process %u of %u: %s", i, count, strerror(errno));
    }
    await_all(pids, count);
}

/* ---- results --------------------------------------------------------------------------------- */

static void print_row(const struct point *point, enum mode mode, struct times *times,
                      unsigned count)
{
    static double ratios[ROUNDS_MAX];
    for (unsigned i = 0; i < count; i++)
        ratios[i] = times->ns[WAY_CONNS][i] / times->ns[WAY_RING][i];
    const double low = quantile(ratios, count, 0.25);
    const double ratio = quantile(ratios, count, 0.5);
    const double high = quantile(ratios, count, 0.75);
    const double ring_ns = quantile(times->ns[WAY_RING], count, 0.5);
    const double conns_ns = quantile(times->ns[WAY_CONNS], count, 0.5);
    const double copy_ns = quantile(times->copy_ns, count, 0.5);
    if (options.is_json) {
        printf("{\"mode\":\"%s\",\"size_bytes\":%zu,\"readers\":%u,\"rounds\":%u,\"ring_ns\":%.1f,"
               "\"conns_ns\":%.1f,\"ratio\":%.3f,\"ratio_low\":%.3f,\"ratio_high\":%.3f",
               mode_names[mode], point->size_bytes, point->readers, count, ring_ns, conns_ns, ratio,
               low, high);
        if (mode == MODE_STREAM)
            printf(",\"ring_msgs_per_s\":%.6g,\"conns_msgs_per_s\":%.6g", 1e9 / ring_ns,
                   1e9 / conns_ns);
        if (mode == MODE_WRITER)
            printf(",\"copy_ns\":%.1f", copy_ns);
        puts("}");
        return;
    }
    printf("%-7s %8zu %8u %12.1f %14.1f %7.2f (%.2f to %.2f)", mode_names[mode], point->size_bytes,
           point->readers, ring_ns, conns_ns, ratio, low, high);
    if (mode == MODE_WRITER)
        printf("  copy %.1f", copy_ns);
    puts("");
}

static void print_results(struct result *results, unsigned count)
{
    if (!options.is_json)
        printf("%-7s %8s %8s %12s %14s %7s (quartiles)\n", "mode", "bytes", "readers", "ring ns",
               "connections ns", "ratio");
    for (enum mode mode = 0; mode < MODE_WAKE; mode++)
        for (unsigned i = 0; i + 1 < count; i++)
            print_row(&results[i].point, mode, &results[i].times[mode], options.rounds);
    struct result *sleeping = &results[count - 1];
    for (enum mode mode = MODE_WAKE; mode < MODES; mode++)
        if (mode != MODE_IDLE || options.idle_ms)
            print_row(&sleeping->point, mode, &sleeping->times[mode],
                      mode == MODE_IDLE ? 1 : options.rounds);
}

static void *shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        rank_fail(EXIT_FAILED, "out of memory for %zu bytes that processes share", bytes);
    return memory;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {argp_options, parse_option, NULL, doc, NULL, NULL, NULL};
    argp_program_version = velo_version();
    argp_err_exit_status = EXIT_USAGE;
    options.cpus_count = machine_cpus(options.cpus, CPUS_MAX);
    if (argp_parse(&argp, argc, argv, 0, NULL, NULL) != 0)
        return EXIT_USAGE;
    (void)snprintf(domain, sizeof domain, "bcast-perf-%d", (int)getpid());
    const unsigned points = options.sizes_count * options.readers_count;
    struct result *results = shared_memory((points + 1) * sizeof *results);
    shared = shared_memory(sizeof *shared);
    for (unsigned i = 0; i < points; i++)
        results[i].point = (struct point){options.sizes_bytes[i / options.readers_count],
                                          (unsigned)options.readers[i % options.readers_count]};
    results[points].point = (struct point){SLEEP_BYTES, SLEEP_READERS};
    for (unsigned round = 0; round < options.rounds; round++)
        for (unsigned i = 0; i <= points; i++)
            run_round(&results[i], round, i == points);
    print_results(results, points + 1);
    return EXIT_OK;
}
