/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include "clock.h"
#include "hop.h"
#include "json.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RAW_ROUND_TRIPS 150u
#define RAW_MSGS 20000u
#define ASIDE_SLEEP_US 100u
#define WINDOWS 100u
#define TABLE_LOG2 19u /* HPCC takes this for N = 1000. */
#define NAME_BYTES 64u

/* Memory that the ranks share by themselves, so that the raw line owes nothing to the MPI. */
struct raw {
    struct limit_area area;
    _Alignas(LINE_BYTES) _Atomic uint32_t brackets_done; /* written by rank 0 */
};

static const struct mode *const modes[] = {
    &latency_mode,   &written_mode, &rate_mode,     &incast_mode, &matching_mode,
    &allreduce_mode, &barrier_mode, &alltoall_mode, &halo_mode,   &gups_mode};
#define MODES (sizeof modes / sizeof modes[0])
#define MODES_TEXT                                                                                 \
    "latency, written, rate, incast, matching, allreduce, barrier, alltoall, halo or gups"

/* --- failing --------------------------------------------------------------------------------- */

/* The job ends with the first rank that fails, so the others need not be told. */
void rank_fail(int exit_code, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "velo-mpi-perf: %s\n", text);
    fputs("{\"type\":\"error\",\"message\":", stdout);
    json_string(stdout, text);
    fputs("}\n", stdout);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    _exit(exit_code);
}

/* --- the command line ------------------------------------------------------------------------ */

enum key {
    KEY_BATCHES = 256,
    KEY_TIME_MS,
    KEY_NEAR_NS,
    KEY_POSTED,
    KEY_TABLE_LOG2,
    KEY_NO_LIMIT,
    KEY_WINDOWS
};

static const char doc[] =
    "Measure an MPI, each batch bracketed by what the machine could do. Start it with mpirun.\v"
    "MODE is " MODES_TEXT
    ". Output, from rank 0, is one JSON object a line, as of velo-perf: meta, "
    "sample, then end or error.";

static const struct argp_option argp_options[] = {
    {"sizes", 's', "LIST", 0, "Sizes in bytes, comma-separated, in modes that have sizes", 0},
    {"batches", KEY_BATCHES, "N", 0, "Batches of each size", 0},
    {"time-ms", KEY_TIME_MS, "N", 0, "Begin no batch after so long (10000)", 0},
    {"near-ns", KEY_NEAR_NS, "NS", 0, "Cores are near below this raw half round trip (110)", 0},
    {"posted", KEY_POSTED, "N", 0, "matching: posted receives beside the one (10000)", 0},
    {"table-log2", KEY_TABLE_LOG2, "K", 0, "gups: the table has 2^K words of 8 bytes (19)", 0},
    {"windows", KEY_WINDOWS, "N", 0, "rate, incast: windows of 64 messages in a batch (100)", 0},
    {"no-limit", KEY_NO_LIMIT, 0, 0,
     "Measure nothing beside the MPI: for a simulated machine, whose clock is virtual", 0},
    {0},
};

static unsigned long number(struct argp_state *state, const char *what, const char *text,
                            unsigned long min, unsigned long max)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 0);
    if (errno || end == text || *end || *text == '-' || value < min || value > max) {
        argp_error(state, "%s '%s' is not a number from %lu to %lu", what, text, min, max);
    }
    return value;
}

static void parse_sizes(struct argp_state *state, struct options *options, const char *text)
{
    char *copy = strdup(text), *rest = copy, *part;
    options->sizes_count = 0;
    while (copy && (part = strsep(&rest, ","))) {
        if (options->sizes_count == SIZES_MAX) {
            argp_error(state, "--sizes takes at most %u sizes", SIZES_MAX);
        }
        options->sizes_bytes[options->sizes_count++] =
            number(state, "size", part, 0, SIZE_BYTES_MAX);
    }
    free(copy);
}

static void parse_mode(struct argp_state *state, struct options *options, const char *text)
{
    for (unsigned i = 0; i < MODES; i++) {
        if (strcmp(text, modes[i]->name) == 0) {
            options->mode = modes[i];
            return;
        }
    }
    argp_error(state, "there is no mode '%s'; use " MODES_TEXT, text);
}

static void check(struct argp_state *state, struct options *options)
{
    const struct mode *mode = options->mode;
    if (!mode) {
        argp_error(state, "say what to measure: " MODES_TEXT);
        return;
    }
    if (!mode->sizes && options->sizes_count) {
        argp_error(state, "%s takes no --sizes", mode->name);
    }
    if (!mode->takes_posted && options->posted) {
        argp_error(state, "--posted is for matching");
    }
    if (!mode->takes_table && options->table_log2) {
        argp_error(state, "--table-log2 is for gups");
    }
    if (mode->sizes && !options->sizes_count) {
        parse_sizes(state, options, mode->sizes);
    }
    if (!mode->takes_windows && options->windows) {
        argp_error(state, "--windows is for rate and incast");
    }
    options->windows = options->windows ? options->windows : WINDOWS;
    options->batches = options->batches ? options->batches : mode->batches;
    options->posted = options->posted ? options->posted : 10000;
    options->table_log2 = options->table_log2 ? options->table_log2 : TABLE_LOG2;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 's':
        parse_sizes(state, options, arg);
        return 0;
    case KEY_BATCHES:
        options->batches = (unsigned)number(state, "batches", arg, 1, 100000);
        return 0;
    case KEY_TIME_MS:
        options->time_ms = (unsigned)number(state, "time-ms", arg, 1, 3600000);
        return 0;
    case KEY_NEAR_NS:
        options->near_ns = (double)number(state, "near-ns", arg, 1, 1000000);
        return 0;
    case KEY_POSTED:
        options->posted = (unsigned)number(state, "posted", arg, 2, POSTED_MAX);
        return 0;
    case KEY_TABLE_LOG2:
        options->table_log2 = (unsigned)number(state, "table-log2", arg, 10, 30);
        return 0;
    case KEY_WINDOWS:
        options->windows = (unsigned)number(state, "windows", arg, 1, 100000);
        return 0;
    case KEY_NO_LIMIT:
        options->no_limit = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->mode) {
            argp_error(state, "'%s' is too much; one MODE at a time", arg);
        }
        parse_mode(state, options, arg);
        return 0;
    case ARGP_KEY_END:
        check(state, options);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Before MPI_Init: --help and a mistake need no job. */
static void options_parse(struct options *options, int argc, char **argv)
{
    static const struct argp argp = {argp_options, parse_option, "MODE", doc, NULL, NULL, NULL};
    argp_err_exit_status = EXIT_USAGE;
    *options = (struct options){.time_ms = 10000, .near_ns = HOP_NEAR_NS};
    if (argp_parse(&argp, argc, argv, 0, NULL, options) != 0) {
        exit(EXIT_USAGE);
    }
}

static void check_ranks(const struct session *session)
{
    const struct mode *mode = session->options.mode;
    unsigned ranks = session->ranks;
    if (ranks < 2 || ranks % mode->ranks_multiple != 0 ||
        (mode->ranks_power_of_two && (ranks & (ranks - 1)) != 0)) {
        rank_fail(EXIT_USAGE, "%s does not run with %u ranks; start it with mpirun -n 2",
                  mode->name, ranks);
    }
}

/* --- the raw line ---------------------------------------------------------------------------- */

static struct raw *raw_map(const char *name, int flags)
{
    int fd = shm_open(name, flags, 0600);
    if (fd < 0 || (flags & O_CREAT && ftruncate(fd, sizeof(struct raw)) != 0)) {
        rank_fail(EXIT_FAILED, "cannot open %s in shared memory: %s", name, strerror(errno));
    }
    struct raw *raw = mmap(NULL, sizeof *raw, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (raw == MAP_FAILED) {
        rank_fail(EXIT_FAILED, "cannot map %s: %s", name, strerror(errno));
    }
    close(fd);
    return raw;
}

/* The name is removed as soon as all have the file, so that nothing is left behind in any case. */
static void raw_open(struct session *session)
{
    char name[NAME_BYTES] = "";
    if (session->rank == 0) {
        snprintf(name, sizeof name, "/velo-mpi-perf.%d.%llx", (int)getpid(),
                 (unsigned long long)now_ns());
        session->raw = raw_map(name, O_CREAT | O_EXCL | O_RDWR);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (session->rank != 0) {
        session->raw = raw_map(name, O_RDWR);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (session->rank == 0) {
        shm_unlink(name);
    }
    if (session->rank < 2) {
        limit_attach(&session->limit, &session->raw->area, session->rank);
    }
}

/* Ranks other than 0 and 1 sleep meanwhile: in MPI they would spin on a core that is measured. */
static bool bracket_enter(struct session *session)
{
    session->brackets++;
    MPI_Barrier(MPI_COMM_WORLD);
    if (session->options.no_limit) {
        return false;
    }
    if (session->rank < 2) {
        return true;
    }
    /* Acquire pairs with the release in bracket_leave(). */
    while (atomic_load_explicit(&session->raw->brackets_done, memory_order_acquire) <
           session->brackets) {
        usleep(ASIDE_SLEEP_US);
    }
    return false;
}

static void bracket_leave(struct session *session)
{
    if (session->rank == 0) {
        atomic_store_explicit(&session->raw->brackets_done, session->brackets,
                              memory_order_release);
    }
}

void session_bracket(struct session *session, struct bracket *out)
{
    if (bracket_enter(session)) {
        out->hop_ns = limit_pingpong_half_rtt_ns(&session->limit, RAW_ROUND_TRIPS, false);
        out->limit = out->hop_ns;
        bracket_leave(session);
    }
}

void session_bracket_stream(struct session *session, struct bracket *out)
{
    if (bracket_enter(session)) {
        double plain, paused;
        out->hop_ns = limit_pingpong_half_rtt_ns(&session->limit, RAW_ROUND_TRIPS, false);
        plain = limit_stream_msgs_per_s(&session->limit, RAW_MSGS, 1, false);
        paused = limit_stream_msgs_per_s(&session->limit, RAW_MSGS, 1, true);
        out->limit = plain > paused ? plain : paused;
        bracket_leave(session);
    }
}

/* --- batches and output ---------------------------------------------------------------------- */

static void print_meta(const struct session *session)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    printf("{\"type\":\"meta\",\"mode\":\"%s\",\"processes\":%u,\"mpi\":",
           session->options.mode->name, session->ranks);
    json_string(stdout, version);
    fputs("}\n", stdout);
    fflush(stdout);
}

void session_begin(struct session *session, int argc, char **argv)
{
    int rank, ranks;
    *session = (struct session){.batch = 0};
    options_parse(&session->options, argc, argv);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    session->rank = (unsigned)rank;
    session->ranks = (unsigned)ranks;
    check_ranks(session);
    if (!session->options.no_limit) {
        raw_open(session);
    }
    if (rank == 0) {
        print_meta(session);
    }
    session->begin_ns = now_ns();
}

void session_end(struct session *session)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (session->rank == 0) {
        printf("{\"type\":\"end\",\"ok\":true,\"dropped\":%u}\n", session->dropped);
        fflush(stdout);
    }
    MPI_Finalize();
}

bool session_next(struct session *session)
{
    const struct options *options = &session->options;
    int more = session->batch < options->batches &&
               now_ns() - session->begin_ns < options->time_ms * UINT64_C(1000000);
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    session->batch++;
    return more;
}

void session_report(struct session *session, const struct batch *batch)
{
    const struct options *options = &session->options;
    double near_ns = options->near_ns;
    if (session->rank != 0) {
        return;
    }
    if (!options->no_limit && !hop_is_steady(batch->before.hop_ns, batch->after.hop_ns, near_ns)) {
        session->dropped++;
        return;
    }
    printf("{\"type\":\"sample\",\"mode\":\"mpi %s\",\"metric\":\"%s\",\"size_bytes\":%zu",
           session->options.mode->name, batch->metric, batch->size_bytes);
    printf(",\"pairs\":%u,\"processes\":%u,\"posted\":%u,\"batch\":%u", batch->pairs,
           session->ranks, batch->posted, session->batch - 1);
    printf(",\"value\":%.6g", batch->value);
    if (options->no_limit) {
        puts("}");
        fflush(stdout);
        return;
    }
    printf(",\"limit_name\":\"%s\",\"limit_before\":%.6g,\"limit_after\":%.6g", batch->limit_name,
           batch->before.limit, batch->after.limit);
    printf(",\"ratio\":%.6g,\"near\":%s}\n",
           2 * batch->value / (batch->before.limit + batch->after.limit),
           hop_is_near(batch->before.hop_ns, near_ns) ? "true" : "false");
    fflush(stdout);
}

size_t session_largest_bytes(const struct session *session)
{
    const struct options *options = &session->options;
    size_t largest = 0;
    for (unsigned i = 0; i < options->sizes_count; i++) {
        largest = options->sizes_bytes[i] > largest ? options->sizes_bytes[i] : largest;
    }
    return largest;
}

unsigned char *session_buffer(size_t size_bytes)
{
    size_t room_bytes = (size_bytes + 4096) & ~(size_t)4095;
    unsigned char *buffer = aligned_alloc(4096, room_bytes);
    if (!buffer) {
        rank_fail(EXIT_FAILED, "out of memory for a buffer of %zu bytes", size_bytes);
    }
    memset(buffer, 0, room_bytes);
    return buffer;
}
