/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "clock.h"
#include "hop.h"
#include "machine.h"
#include "random_access.h"

#include <velo/velo.h>

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIME_MS 1000u
#define TABLE_LOG2 19u /* HPCC takes this for N = 1000. */

static const char doc[] =
    "Measure velo, and what the machine could do, in real processes.\v"
    "MODE is one of:\n"
    "  limit      the raw limits, without the library\n"
    "  latency    half round trip between two processes\n"
    "  rate       messages per second, streamed one way\n"
    "  bandwidth  bytes per second, streamed one way, and N1/2\n"
    "  ring       a token passed round more processes than cores\n"
    "  gups       RandomAccess: updates per second to a table spread over processes\n"
    "\n"
    "Every payload is verified. Each batch is bracketed by the raw limit in the same processes; "
    "one "
    "during which the cores moved is dropped. Output is one JSON object a line: meta, plan, "
    "sample, "
    "result, then end or error. Exit code: 0 done, 1 failed, 2 usage, 3 a payload was wrong, 130 "
    "interrupted.\n"
    "\n"
    "What is verified where: length, tag, source and order of every message, always. Every byte of "
    "every message up to 64 bytes, and of every one in latency and ring. Of longer ones streamed "
    "by "
    "rate and bandwidth, three words inside the timed part, so that checking is not what is "
    "measured; and every byte of the last one and of the 64 of each flow before and after it.";

enum key {
    KEY_SENDERS = 256,
    KEY_BATCHES,
    KEY_ITERS,
    KEY_TIME_MS,
    KEY_CPUS,
    KEY_SEED,
    KEY_NEAR_NS,
    KEY_POLL,
    KEY_IN_PLACE,
    KEY_PROCS,
    KEY_TOKENS,
    KEY_TABLE_LOG2,
    KEY_DOMAIN,
    KEY_LISTEN,
    KEY_CONNECT,
    KEY_DEPTH_SLOTS,
    KEY_DATA_BYTES,
};

static const struct argp_option argp_options[] = {
    {"sizes", 's', "LIST", 0, "Message sizes in bytes, or 'auto' for NetPIPE's schedule", 0},
    {"pairs", 'p', "N", 0, "Pairs of processes at the same time (1)", 0},
    {"threads", 't', "N", 0, "Sending threads of each pair, for rate and bandwidth (1)", 0},
    {"senders", KEY_SENDERS, "LIST", 0,
     "latency: connected senders of which one is active (1); a list is interleaved", 0},
    {"procs", KEY_PROCS, "N", 0, "ring, gups: processes (8; 2)", 0},
    {"tokens", KEY_TOKENS, "N", 0, "ring: tokens under way (1)", 0},
    {"table-log2", KEY_TABLE_LOG2, "K", 0, "gups: the table has 2^K words of 8 bytes (19)", 0},
    {"batches", KEY_BATCHES, "N", 0, "Batches of each size", 0},
    {"iters", KEY_ITERS, "N", 0, "Round trips, messages or laps in a batch", 0},
    {"time-ms", KEY_TIME_MS, "N", 0, "Most time to spend on each size (1000)", 0},
    {"cpus", KEY_CPUS, "LIST", 0, "CPUs to pin to, round robin (all allowed ones)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of payloads and order (from the clock; it is reported)", 0},
    {"near-ns", KEY_NEAR_NS, "NS", 0, "Cores are near below this raw half round trip (110)", 0},
    {"poll", KEY_POLL, NULL, 0, "Receive in a loop of velo_try_recv() or velo_try_peek()", 0},
    {"in-place", KEY_IN_PLACE, NULL, 0, "Build and read messages in the ring, without a copy", 0},
    {"listen", KEY_LISTEN, NULL, 0, "Wait for one who connects, and measure what that one says", 0},
    {"connect", KEY_CONNECT, NULL, 0, "Measure with one who listens in the same domain", 0},
    {"domain", KEY_DOMAIN, "NAME", 0,
     "Domain to open the ports in (perf<pid>; to meet: $VELO_DOMAIN, or perf)", 0},
    {"depth-slots", KEY_DEPTH_SLOTS, "N", 0, "Slots of each ring (the library's default)", 0},
    {"data-bytes", KEY_DATA_BYTES, "N", 0, "Bytes for long messages (the library's default)", 0},
    {0},
};

static const char *const mode_names[] = {
    [MODE_LIMIT] = "limit",         [MODE_LATENCY] = "latency", [MODE_RATE] = "rate",
    [MODE_BANDWIDTH] = "bandwidth", [MODE_RING] = "ring",       [MODE_GUPS] = "gups",
};

#define MODES (sizeof mode_names / sizeof mode_names[0])

const char *mode_name(enum mode mode) { return mode_names[mode]; }

unsigned options_ranks(const struct options *options)
{
    bool by_procs = options->mode == MODE_RING || options->mode == MODE_GUPS;
    return by_procs ? options->procs : 2 * options->pairs;
}

unsigned options_parties(const struct options *options)
{
    switch (options->mode) {
    case MODE_RING:
    case MODE_GUPS:
        return options->procs;
    case MODE_RATE:
    case MODE_BANDWIDTH:
        return options->pairs * (1 + options->threads);
    case MODE_LIMIT:
    case MODE_LATENCY:
        return 2 * options->pairs;
    }
    return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

static uint64_t number(struct argp_state *state, const char *what, const char *text, uint64_t min,
                       uint64_t max)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno || end == text || *end || *text == '-' || value < min || value > max) {
        argp_error(state, "%s '%s' is not a number from %llu to %llu", what, text,
                   (unsigned long long)min, (unsigned long long)max);
    }
    return value;
}

/* Numbers between commas; returns how many. */
static unsigned number_list(struct argp_state *state, const char *what, const char *text,
                            uint64_t min, uint64_t max, uint64_t *values, unsigned values_max)
{
    char *copy = strdup(text), *rest = copy, *part;
    unsigned count = 0;
    while (copy && (part = strsep(&rest, ","))) {
        if (count == values_max) {
            argp_error(state, "%s: a list takes at most %u entries", what, values_max);
        }
        values[count++] = number(state, what, part, min, max);
    }
    free(copy);
    return count;
}

static void parse_sizes(struct argp_state *state, struct options *options, const char *text)
{
    uint64_t values[SIZES_MAX];
    options->sizes_auto = strcmp(text, "auto") == 0;
    if (options->sizes_auto) {
        return;
    }
    options->sizes_count = number_list(state, "size", text, 0, UINT32_MAX, values, SIZES_MAX);
    for (unsigned i = 0; i < options->sizes_count; i++) {
        options->sizes_bytes[i] = values[i];
    }
}

static void parse_senders(struct argp_state *state, struct options *options, const char *text)
{
    uint64_t values[SENDERS_LIST_MAX];
    options->senders_count =
        number_list(state, "senders", text, 1, VELO_CONNS_MAX, values, SENDERS_LIST_MAX);
    for (unsigned i = 0; i < options->senders_count; i++) {
        options->senders[i] = (unsigned)values[i];
    }
}

static void parse_cpus(struct argp_state *state, struct options *options, const char *text)
{
    uint64_t values[CPUS_MAX];
    options->cpus_count = number_list(state, "CPU", text, 0, CPUS_MAX - 1, values, CPUS_MAX);
    for (unsigned i = 0; i < options->cpus_count; i++) {
        options->cpus[i] = (unsigned)values[i];
    }
}

static void parse_near(struct argp_state *state, struct options *options, const char *text)
{
    char *end;
    options->near_ns = strtod(text, &end);
    if (end == text || *end || !(options->near_ns > 0)) {
        argp_error(state, "near-ns '%s' is not a time in ns above 0", text);
    }
}

static void parse_domain(struct argp_state *state, struct options *options, const char *text)
{
    size_t length = strlen(text);
    if (length == 0 || length >= sizeof options->domain) {
        argp_error(state, "domain '%s' must be 1 to %u characters long", text,
                   VELO_DOMAIN_NAME_MAX);
    }
    snprintf(options->domain, sizeof options->domain, "%s", text);
}

static void parse_mode(struct argp_state *state, struct options *options, const char *text)
{
    for (unsigned mode = 0; mode < MODES; mode++) {
        if (strcmp(text, mode_names[mode]) == 0) {
            options->mode = (enum mode)mode;
            return;
        }
    }
    argp_error(state, "there is no mode '%s'; use limit, latency, rate, bandwidth, ring or gups",
               text);
}

/* --- checking -------------------------------------------------------------------------------- */

static void defaults(struct options *options)
{
    static const unsigned batches[] = {
        [MODE_LIMIT] = 20,     [MODE_LATENCY] = 100, [MODE_RATE] = 100,
        [MODE_BANDWIDTH] = 40, [MODE_RING] = 30,     [MODE_GUPS] = 20,
    };
    /* 0: by size. A ring lap of 8 processes takes some 20 us. */
    static const unsigned iters[] = {[MODE_LATENCY] = 200, [MODE_RING] = 100, [MODE_GUPS] = 1};
    if (!options->batches) {
        options->batches = batches[options->mode];
    }
    if (!options->iters) {
        options->iters = iters[options->mode];
    }
    if (!options->procs) {
        options->procs = options->mode == MODE_GUPS ? 2 : 8;
    }
    if (!options->cpus_count) {
        options->cpus_count = machine_cpus(options->cpus, CPUS_MAX);
    }
    const char *preset = getenv("VELO_DOMAIN");
    if (!*options->domain && (options->is_listening || options->is_connecting)) {
        snprintf(options->domain, sizeof options->domain, "%s",
                 preset && *preset ? preset : "perf");
    } else if (!*options->domain) {
        snprintf(options->domain, sizeof options->domain, "perf%d", (int)getpid());
    }
}

static void check(struct argp_state *state, const struct options *options)
{
    enum mode mode = options->mode;
    bool is_apart = options->is_listening || options->is_connecting;
    if (options->is_connecting && (options_ranks(options) != 2 || mode >= MODE_RING)) {
        argp_error(state, "--connect measures limit, latency, rate or bandwidth of one pair");
    }
    if (!is_apart && options->cpus_count < 2) {
        argp_error(state,
                   "%s needs two CPUs, this process may use %u; allow more (taskset, cgroup) "
                   "or name them with --cpus",
                   mode_name(mode), options->cpus_count);
    }
    if (mode == MODE_LIMIT && options->pairs != 1) {
        argp_error(state, "limit measures one pair; leave --pairs out");
    }
    if (mode != MODE_LATENCY && (options->senders_count != 1 || options->senders[0] != 1)) {
        argp_error(state, "--senders is for latency");
    }
    if (mode == MODE_GUPS && (options->procs & (options->procs - 1)) != 0) {
        argp_error(state, "gups takes a power of two of --procs, not %u", options->procs);
    }
    if (mode != MODE_RATE && mode != MODE_BANDWIDTH && options->threads != 1) {
        argp_error(state, "--threads is for rate and bandwidth");
    }
}

/* Options that are one number; false for any other. */
static bool parse_number(int key, const char *arg, struct argp_state *state,
                         struct options *options)
{
    switch (key) {
    case 'p':
        options->pairs = (unsigned)number(state, "pairs", arg, 1, PAIRS_MAX);
        return true;
    case 't':
        options->threads = (unsigned)number(state, "threads", arg, 1, THREADS_MAX);
        return true;
    case KEY_PROCS:
        options->procs = (unsigned)number(state, "procs", arg, 2, PROCS_MAX);
        return true;
    case KEY_TOKENS:
        options->tokens = (unsigned)number(state, "tokens", arg, 1, TOKENS_MAX);
        return true;
    case KEY_TABLE_LOG2:
        options->table_log2 = (unsigned)number(state, "table-log2", arg, RANDOM_ACCESS_LOG2_MIN,
                                               RANDOM_ACCESS_LOG2_MAX);
        return true;
    case KEY_BATCHES:
        options->batches = (unsigned)number(state, "batches", arg, 1, 100000);
        return true;
    case KEY_ITERS:
        options->iters = (unsigned)number(state, "iters", arg, 1, 10000000);
        return true;
    case KEY_TIME_MS:
        options->time_ms = (unsigned)number(state, "time-ms", arg, 1, 3600000);
        return true;
    case KEY_SEED:
        options->seed = number(state, "seed", arg, 0, UINT64_MAX);
        return true;
    case KEY_DEPTH_SLOTS:
        options->depth_slots = (uint32_t)number(state, "depth-slots", arg, 1, UINT32_MAX);
        return true;
    case KEY_DATA_BYTES:
        options->data_bytes = (uint32_t)number(state, "data-bytes", arg, 1, UINT32_MAX);
        return true;
    default:
        return false;
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 's':
        parse_sizes(state, options, arg);
        return 0;
    case KEY_SENDERS:
        parse_senders(state, options, arg);
        return 0;
    case KEY_CPUS:
        parse_cpus(state, options, arg);
        return 0;
    case KEY_NEAR_NS:
        parse_near(state, options, arg);
        return 0;
    case KEY_POLL:
        options->poll = true;
        return 0;
    case KEY_IN_PLACE:
        options->in_place = true;
        return 0;
    case KEY_LISTEN:
        options->is_listening = true;
        return 0;
    case KEY_CONNECT:
        options->is_connecting = true;
        return 0;
    case KEY_DOMAIN:
        parse_domain(state, options, arg);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            argp_error(state, "'%s' is too much; one MODE at a time", arg);
        }
        parse_mode(state, options, arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        if (options->is_listening) {
            return 0;
        }
        argp_error(state, "say what to measure: limit, latency, rate, bandwidth, ring or gups");
        return 0;
    case ARGP_KEY_END:
        defaults(options);
        check(state, options);
        return 0;
    default:
        return parse_number(key, arg, state, options) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

void options_parse(struct options *options, int argc, char **argv)
{
    static const struct argp argp = {argp_options, parse_option, "MODE", doc, NULL, NULL, NULL};
    argp_program_version = velo_version();
    argp_err_exit_status = EXIT_USAGE;
    *options = (struct options){
        .senders = {1},
        .senders_count = 1,
        .pairs = 1,
        .threads = 1,
        .tokens = 1,
        .table_log2 = TABLE_LOG2,
        .time_ms = TIME_MS,
        .near_ns = HOP_NEAR_NS,
        .seed = now_ns(),
    };
    error_t error = argp_parse(&argp, argc, argv, 0, NULL, options);
    if (error) {
        fprintf(stderr, "velo-perf: %s\n", strerror(error));
        exit(EXIT_USAGE);
    }
}
