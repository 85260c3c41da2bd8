/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All to all, from many threads of many processes, with every way to send and to receive.
 *
 * A unit is one port, a thread that receives on it and a thread that sends from it to every unit
 * (itself, too) on a connection of its own. Length, tag and content of the n-th message from one
 * unit to another follow from the seed, so the receiver knows them beforehand: a message lost,
 * duplicated, out of order or torn is seen at once, even an empty one by its tag.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { UNITS_MAX = 64, RANGES_MAX = 16, LEN_MAX = 65535 };
#define STALL_NS (3 * TEST_PATIENCE_NS)

struct range {
    uint32_t min_bytes, max_bytes;
};

static struct {
    uint32_t procs, threads, units;
    uint64_t msgs;    /* In all; 0: no limit. */
    uint32_t seconds; /* 0: no limit. */
    uint32_t depth_slots, data_bytes;
    uint64_t seed;
    struct range ranges[RANGES_MAX];
    uint32_t ranges_len;
} config = {.procs = 2, .threads = 2, .seconds = 10, .depth_slots = 64, .data_bytes = 65536};

/* Shared by all processes. */
static struct progress {
    atomic_ullong sent[UNITS_MAX][UNITS_MAX]; /* From, to. */
    atomic_ullong received[UNITS_MAX][UNITS_MAX];
    atomic_uint senders_done;
    atomic_uint procs_done;
    atomic_int stop;
} *progress;

_Noreturn static void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn static void die(const char *format, ...)
{
    va_list args;

    flockfile(stderr);
    fprintf(stderr, "velo-stress: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    funlockfile(stderr);
    _exit(1);
}

static void must(int status, const char *what)
{
    if (status != VELO_OK)
        die("%s: %s (%s)", what, velo_strerror(status), velo_last_error());
}

/* ---- what the n-th message from one unit to another is --------------------------------------- */

struct expected {
    uint64_t seed;
    size_t len_bytes;
    uint8_t tag;
};

static struct expected message(uint32_t from, uint32_t to, uint64_t number)
{
    uint64_t pair = test_mix(config.seed ^ ((uint64_t)from << 32 | to));
    uint64_t seed = test_mix(pair + number);
    const struct range *range = &config.ranges[(seed >> 8) % config.ranges_len];
    uint32_t choices = range->max_bytes - range->min_bytes + 1;

    return (struct expected){.seed = seed,
                             .len_bytes = range->min_bytes + (uint32_t)(seed >> 32) % choices,
                             .tag = (uint8_t)seed};
}

static bool is_message(const struct velo_msg *msg, const struct expected *expected)
{
    return msg->len_bytes == expected->len_bytes && msg->tag == expected->tag &&
           pattern_matches(msg->data, msg->len_bytes, expected->seed);
}

/* Not the message that was due: say what it is instead. */
_Noreturn static void explain(const struct velo_msg *msg, uint32_t to, uint64_t due)
{
    uint32_t from = msg->source;

    for (uint64_t number = due > 10000 ? due - 10000 : 0; number < due + 10000; number++) {
        struct expected other = message(from, to, number);

        if (is_message(msg, &other))
            die("seed %llu: message %llu from %u to %u came where %llu was due: %s",
                (unsigned long long)config.seed, (unsigned long long)number, from, to,
                (unsigned long long)due, number < due ? "duplicated or late" : "others are lost");
    }
    die("seed %llu: message %llu from %u to %u is torn: %zu bytes, tag %u; due were %zu, tag %u",
        (unsigned long long)config.seed, (unsigned long long)due, from, to, msg->len_bytes,
        msg->tag, message(from, to, due).len_bytes, message(from, to, due).tag);
}

static void check(const struct velo_msg *msg, uint32_t to)
{
    if (msg->source >= config.units)
        die("a message came from port %u, which does not exist", msg->source);
    uint64_t due = atomic_load(&progress->received[msg->source][to]);
    struct expected expected = message(msg->source, to, due);

    if (!is_message(msg, &expected))
        explain(msg, to, due);
    atomic_store(&progress->received[msg->source][to], due + 1);
}

/* ---- one unit -------------------------------------------------------------------------------- */

struct unit {
    uint32_t index;
    struct velo_port *port;
    pthread_t sender, receiver;
};

static void send_in_place(struct velo_conn *conn, const struct expected *expected, size_t spare)
{
    size_t room = expected->len_bytes + spare;
    void *place;

    if (room > velo_conn_max_bytes(conn))
        room = velo_conn_max_bytes(conn);
    must(velo_reserve(conn, room, &place, VELO_FOREVER), "velo_reserve");
    pattern_fill(place, expected->len_bytes, expected->seed);
    must(velo_commit(conn, expected->len_bytes, expected->tag), "velo_commit");
}

static void send_message(struct velo_conn *conn, const struct expected *expected, struct rng *rng)
{
    unsigned char buf[LEN_MAX];
    uint32_t tries = 0;
    int status;

    switch (rng_below(rng, 4)) {
    case 0:
        send_in_place(conn, expected, rng_below(rng, 2) ? rng_below(rng, 200) : 0);
        return;
    case 1:
        pattern_fill(buf, expected->len_bytes, expected->seed);
        while ((status = velo_try_send(conn, buf, expected->len_bytes, expected->tag)) ==
               VELO_AGAIN) {
            if (++tries % 64 == 0)
                sched_yield();
        }
        must(status, "velo_try_send");
        return;
    default:
        pattern_fill(buf, expected->len_bytes, expected->seed);
        must(velo_send(conn, buf, expected->len_bytes, expected->tag, VELO_FOREVER), "velo_send");
    }
}

/* Order holds within a connection: the next one must not begin before the last is drained. */
static struct velo_conn *reconnect(const struct unit *self, struct velo_conn *conn, uint32_t to)
{
    must(velo_disconnect(conn), "velo_disconnect");
    while (atomic_load(&progress->received[self->index][to]) <
           atomic_load(&progress->sent[self->index][to]))
        test_sleep_ns(100 * TEST_US);
    must(velo_connect(self->port, VELO_ID(0, to), &conn, TEST_PATIENCE_NS), "velo_connect");
    return conn;
}

static void *run_sender(void *arg)
{
    const struct unit *self = arg;
    struct velo_conn *conns[UNITS_MAX];
    struct rng rng = {test_mix(config.seed + self->index)};
    uint64_t quota = config.msgs / config.units + (self->index < config.msgs % config.units);

    for (uint32_t to = 0; to < config.units; to++)
        must(velo_connect(self->port, VELO_ID(0, to), &conns[to], TEST_PATIENCE_NS),
             "velo_connect");
    for (uint64_t i = 0; config.msgs == 0 || i < quota; i++) {
        uint32_t to = rng_below(&rng, config.units), chance = rng_below(&rng, 1 << 16);
        uint64_t number = atomic_load(&progress->sent[self->index][to]);
        struct expected expected = message(self->index, to, number);

        if (atomic_load(&progress->stop) != 0)
            break;
        send_message(conns[to], &expected, &rng);
        atomic_store(&progress->sent[self->index][to], number + 1);
        if (chance < 4)
            conns[to] = reconnect(self, conns[to], to);
        else if (chance < 40)
            test_sleep_ns(rng_below(&rng, 300000));
    }
    atomic_fetch_add(&progress->senders_done, 1);
    return NULL;
}

static bool all_received(uint32_t to)
{
    if (atomic_load(&progress->senders_done) < config.units)
        return false;
    for (uint32_t from = 0; from < config.units; from++) {
        if (atomic_load(&progress->received[from][to]) != atomic_load(&progress->sent[from][to]))
            return false;
    }
    return true;
}

/* Receive one message by a way that chance picks; false if none came. */
static bool receive_message(const struct unit *self, struct rng *rng)
{
    uint32_t way = rng_below(rng, 8);
    unsigned char buf[LEN_MAX];
    struct velo_msg msg;
    int status;

    if (way < 3) { /* In place. */
        status = way == 0 ? velo_try_peek(self->port, &msg)
                          : velo_peek(self->port, &msg, rng_below(rng, 2000000));
        if (status == VELO_OK) {
            check(&msg, self->index);
            must(velo_release(self->port), "velo_release");
        }
    } else {
        size_t cap = way == 3 ? rng_below(rng, 64) : sizeof(buf);

        status = way == 4 ? velo_try_recv(self->port, buf, cap, &msg)
                          : velo_recv(self->port, buf, cap, &msg, rng_below(rng, 2000000));
        if (status == VELO_ERR_TOO_BIG && msg.len_bytes > cap)
            status = velo_try_recv(self->port, buf, sizeof(buf), &msg);
        if (status == VELO_OK)
            check(&msg, self->index);
    }
    if (status != VELO_OK && status != VELO_AGAIN && status != VELO_TIMEOUT)
        must(status, "receiving");
    return status == VELO_OK;
}

static void *run_receiver(void *arg)
{
    struct unit *self = arg;
    struct rng rng = {test_mix(~config.seed + self->index)};
    struct velo_port_counters counters;

    while (!all_received(self->index)) {
        for (int i = 0; i < 1000; i++) {
            if (!receive_message(self, &rng))
                break;
        }
    }
    if (receive_message(self, &rng))
        die("a message came to %u after the last one", self->index);
    must(velo_port_counters(self->port, &counters, sizeof counters), "velo_port_counters");
    if (counters.rx_errors != 0 || counters.rx_reclaimed != 0)
        die("port %u counts %llu errors and %llu dead senders; there were none", self->index,
            (unsigned long long)counters.rx_errors, (unsigned long long)counters.rx_reclaimed);
    return NULL;
}

static void *run_process(void *arg)
{
    uint32_t first = *(const uint32_t *)arg * config.threads;
    struct unit units[UNITS_MAX];

    for (uint32_t i = 0; i < config.threads; i++) {
        struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
        struct unit *unit = &units[i];

        attr.vpid = (int)(first + i);
        attr.depth_slots = config.depth_slots;
        attr.data_bytes = config.data_bytes;
        unit->index = first + i;
        must(velo_port_open(&attr, &unit->port), "velo_port_open");
        if (pthread_create(&unit->receiver, NULL, run_receiver, unit) != 0 ||
            pthread_create(&unit->sender, NULL, run_sender, unit) != 0)
            die("cannot start threads: %s", strerror(errno));
    }
    for (uint32_t i = 0; i < config.threads; i++) {
        pthread_join(units[i].sender, NULL);
        pthread_join(units[i].receiver, NULL);
    }
    for (uint32_t i = 0; i < config.threads; i++)
        must(velo_port_close(units[i].port), "velo_port_close");
    atomic_fetch_add(&progress->procs_done, 1);
    return NULL;
}

/* ---- the run --------------------------------------------------------------------------------- */

static uint64_t total_received(void)
{
    uint64_t total = 0;

    for (uint32_t from = 0; from < config.units; from++)
        for (uint32_t to = 0; to < config.units; to++)
            total += atomic_load(&progress->received[from][to]);
    return total;
}

static pid_t pids[UNITS_MAX];

static void kill_all(void)
{
    for (uint32_t i = 0; i < config.procs; i++) {
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
    }
}

/* One process runs in this one, where ThreadSanitizer can watch it. */
static void start(uint32_t *numbers)
{
    pthread_t thread;

    for (uint32_t i = 0; i < config.procs; i++) {
        numbers[i] = i;
        if (config.procs == 1) {
            if (pthread_create(&thread, NULL, run_process, &numbers[0]) != 0)
                die("cannot start a thread: %s", strerror(errno));
            pthread_detach(thread);
            return;
        }
        pids[i] = fork();
        if (pids[i] < 0)
            die("cannot fork: %s", strerror(errno));
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run_process(&numbers[i]);
            _exit(0);
        }
    }
}

static void reap(void)
{
    int status;

    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (uint32_t i = 0; i < config.procs; i++) {
            if (pids[i] == pid)
                pids[i] = 0;
        }
        if (status != 0) {
            kill_all();
            die("a process failed (wait status %#x); replay with --seed %llu", (unsigned)status,
                (unsigned long long)config.seed);
        }
    }
}

static void watch(void)
{
    int64_t start_ns = test_now_ns(), moved_ns = start_ns, said_ns = start_ns, now_ns;
    uint64_t total = 0, before = 0;

    while (atomic_load(&progress->procs_done) < config.procs) {
        test_sleep_ns(10 * TEST_MS);
        reap();
        now_ns = test_now_ns();
        if (config.seconds != 0 && now_ns - start_ns >= config.seconds * INT64_C(1000000000))
            atomic_store(&progress->stop, 1);
        total = total_received();
        if (total != before) {
            moved_ns = now_ns;
            before = total;
        }
        if (now_ns - moved_ns > STALL_NS) {
            kill_all();
            die("no message for %lld s after %llu: a hang; replay with --seed %llu",
                (long long)(STALL_NS / 1000000000), (unsigned long long)total,
                (unsigned long long)config.seed);
        }
        if (now_ns - said_ns >= INT64_C(5000000000)) {
            printf("%llu messages\n", (unsigned long long)total);
            fflush(stdout);
            said_ns = now_ns;
        }
    }
    while (config.procs > 1 && wait(NULL) > 0)
        ;
    total = total_received();
    if (total == 0)
        die("no message was sent");
    printf("%llu messages checked in %.1f s: none lost, duplicated, out of order or torn\n",
           (unsigned long long)total, (double)(test_now_ns() - start_ns) / 1e9);
}

static void check_no_file_is_left(const char *domain)
{
    char path[4096];
    const char *dir = getenv("VELO_SHM_DIR");

    for (uint32_t i = 0; i < config.units; i++) {
        snprintf(path, sizeof(path), "%s/velo.%s.0.%u", dir != NULL ? dir : "/dev/shm", domain, i);
        if (access(path, F_OK) == 0)
            die("%s is left", path);
    }
}

static void parse_sizes(const char *text)
{
    config.ranges_len = 0;
    for (const char *at = text; *at != '\0';) {
        struct range *range = &config.ranges[config.ranges_len];
        int used = 0, used_max = 0;

        if (config.ranges_len == RANGES_MAX || sscanf(at, "%u%n", &range->min_bytes, &used) != 1)
            die("--sizes %s: give up to %d sizes or ranges, such as 0-64,4096", text, RANGES_MAX);
        range->max_bytes = range->min_bytes;
        at += used;
        if (sscanf(at, "-%u%n", &range->max_bytes, &used_max) == 1)
            at += used_max;
        if (range->min_bytes > range->max_bytes || range->max_bytes > config.data_bytes / 4 ||
            range->max_bytes > LEN_MAX || (*at != ',' && *at != '\0'))
            die("--sizes %s: each range goes up to a quarter of --data", text);
        at += *at == ',';
        config.ranges_len++;
    }
    if (config.ranges_len == 0)
        die("--sizes is empty");
}

static uint64_t parse_number(const char *name, const char *text, uint64_t min, uint64_t max)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 0);

    if (errno != 0 || *text == '\0' || *end != '\0' || value < min || value > max)
        die("--%s %s: give a number from %llu to %llu", name, text, (unsigned long long)min,
            (unsigned long long)max);
    return value;
}

static const char usage[] =
    "usage: velo-stress [--procs P] [--threads T] [--msgs N] [--seconds S] [--sizes LIST]\n"
    "                   [--depth SLOTS] [--data BYTES] [--seed N]\n"
    "\n"
    "All of P x T ports send to all. Every message is checked. Ends after N messages in all or\n"
    "after S seconds (0: no limit), and fails on any loss, duplicate, disorder, damage or stall.\n"
    "LIST holds sizes and ranges of sizes, such as 0-64,4096.\n";

static void parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"procs", required_argument, NULL, 'p'}, {"threads", required_argument, NULL, 't'},
        {"msgs", required_argument, NULL, 'n'},  {"seconds", required_argument, NULL, 's'},
        {"sizes", required_argument, NULL, 'z'}, {"depth", required_argument, NULL, 'd'},
        {"data", required_argument, NULL, 'b'},  {"seed", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    const char *sizes = "0-56,0-56,57-300,301-4096";
    int index = 0;

    config.seed = (uint64_t)test_now_ns();
    for (int option; (option = getopt_long(argc, argv, "", options, &index)) != -1;) {
        const char *name = options[index].name;

        switch (option) {
        case 'p':
            config.procs = (uint32_t)parse_number(name, optarg, 1, UNITS_MAX);
            break;
        case 't':
            config.threads = (uint32_t)parse_number(name, optarg, 1, UNITS_MAX);
            break;
        case 'n':
            config.msgs = parse_number(name, optarg, 0, UINT64_MAX);
            break;
        case 's':
            config.seconds = (uint32_t)parse_number(name, optarg, 0, 1000000);
            break;
        case 'z':
            sizes = optarg;
            break;
        case 'd':
            config.depth_slots = (uint32_t)parse_number(name, optarg, 8, 16384);
            break;
        case 'b':
            config.data_bytes = (uint32_t)parse_number(name, optarg, 16384, 16 << 20);
            break;
        case 'r':
            config.seed = parse_number(name, optarg, 0, UINT64_MAX);
            break;
        default:
            fputs(usage, option == 'h' ? stdout : stderr);
            exit(option == 'h' ? 0 : 2);
        }
    }
    if (optind != argc || (config.msgs == 0 && config.seconds == 0) ||
        config.procs * config.threads > UNITS_MAX) {
        fputs(usage, stderr);
        die("give --msgs or --seconds, and at most %d ports in all", UNITS_MAX);
    }
    config.units = config.procs * config.threads;
    parse_sizes(sizes);
}

int main(int argc, char **argv)
{
    static uint32_t numbers[UNITS_MAX];
    char domain[33];

    parse(argc, argv);
    snprintf(domain, sizeof(domain), "stress%d-%08x", getpid(), (unsigned)(test_now_ns() / 1000));
    setenv("VELO_DOMAIN", domain, 1);
    progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        die("out of memory");
    printf("%u processes x %u threads, seed %llu\n", config.procs, config.threads,
           (unsigned long long)config.seed);
    fflush(stdout);
    start(numbers);
    watch();
    check_no_file_is_left(domain);
    return 0;
}
