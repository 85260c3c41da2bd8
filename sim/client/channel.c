/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "order.h"
#include "raw.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static struct sim_area *area;
static char why_no_area[160] =
    "VELO_SIM names no simulated cluster; start the program with `velo sim`";
static __thread const char *why_none = why_no_area;
static __thread struct sim_channel *mine;
static bool has_begun;
static __thread bool was_interrupted;
static uint32_t claimed_end;         /* The channels of this process are before it. */
static __thread uint64_t counted_ps; /* How much of the thread's processor time is charged for. */

struct sim_channel *channels_begin(void)
{
    return (struct sim_channel *)(void *)((char *)area + sizeof *area);
}

struct sim_channel *channels_end(void) { return channels_begin() + claimed_end; }

struct sim_channel *channels_end_of_all(void)
{
    return channels_begin() + order_word_read(&area->claimed_end);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void give_back(void *channel)
{
    mine = channel;
    threads_end();
    (void)sim_detach(mine);
    mine = NULL;
}

static void open_area(void)
{
    const char *path = getenv("VELO_SIM");
    if (!path || !*path)
        return;
    struct sim_area head;
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || read(fd, &head, sizeof head) != (ssize_t)sizeof head) {
        (void)snprintf(why_no_area, sizeof why_no_area, "VELO_SIM: cannot open %.80s: %s", path,
                       strerror(errno));
    } else if (head.magic != SIM_AREA_MAGIC || head.version != SIM_AREA_VERSION ||
               head.nodes == 0 ||
               (uint64_t)st.st_size < head.boards_at + head.boards * SIM_BOARD_BYTES) {
        (void)snprintf(why_no_area, sizeof why_no_area,
                       "VELO_SIM: %.80s is no cluster of this version of velo", path);
    } else {
        void *base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (base != MAP_FAILED)
            area = base;
    }
    if (fd >= 0)
        close(fd);
    (void)pthread_key_create(&key, give_back);
    threads_watch_forks();
}

struct sim_area *sim_channel_area(void)
{
    (void)pthread_once(&once, open_area);
    return area;
}

const char *sim_channel_why_none(void) { return why_none; }

const char *sim_channel_memory(uint32_t node)
{
    return (const char *)area + area->memory_at + node * area->memory_bytes;
}

char *sim_channel_board(uint64_t board)
{
    return (char *)area + area->boards_at + board * SIM_BOARD_BYTES;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns a negative errno, or how many were woken. */
static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return raw_syscall(SYS_futex, (long)word, op, value, (long)timeout, 0, 0);
}

static bool simulator_is_gone(void) { return kill(area->pid, 0) != 0 && errno == ESRCH; }

/* A thread that leaves gives its channel back. A new one may take it, and call, before the first
 * one has seen the answer. */
static bool is_of(const struct sim_channel *channel, uint32_t tid)
{
    return order_word_read((const uint32_t *)&channel->tid) == tid;
}

/* Returns when the simulator has answered. Ends the process if the simulator has ended. */
static void wait_for_turn(struct sim_channel *channel, uint32_t tid)
{
    static const struct timespec second = {.tv_sec = 1};
    while (order_turn_read(&channel->turn) == SIM_TURN_CALL && is_of(channel, tid)) {
        long status = futex(&channel->turn, FUTEX_WAIT, SIM_TURN_CALL, &second);
        bool is_late = status == -ETIMEDOUT;
        was_interrupted = was_interrupted || status == -EINTR;
        if (order_word_read(&area->ended) || (is_late && simulator_is_gone())) {
            (void)fprintf(stderr, "velo: the simulated cluster has ended\n");
            _exit(SIM_EXIT);
        }
    }
}

void sim_channel_expect_done(int status, const char *what)
{
    if (status == SIM_OK)
        return;
    (void)fprintf(stderr, "velo: the simulated cluster refused %s: %s\n", what,
                  status == SIM_ERR_NODE ? "it has no such node" : "the call makes no sense");
    _exit(SIM_EXIT);
}

/* The processor time of this thread. The C library's function may show a virtual clock. */
static uint64_t computed_ps(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)(now.tv_sec * NS_PER_S + now.tv_nsec) * PS_PER_NS;
}

static void charge_computing(struct sim_channel *channel, uint64_t time_ps)
{
    channel->call.computed_ps += time_ps;
    sim_channel_charge(channel, time_ps);
}

void sim_channel_catch_up(struct sim_channel *channel)
{
    if (area->compute_permille == 0)
        return;
    uint64_t now_ps = computed_ps();
    charge_computing(channel, (now_ps - counted_ps) * area->compute_permille / 1000);
    counted_ps = now_ps;
}

/* The other calls take no virtual time: real time decides when the processes of a job make them. */
static bool is_of_program(enum sim_op op)
{
    return op == SIM_STORE || op == SIM_REGISTER_WRITE || op == SIM_REGISTER_READ ||
           op == SIM_POLL || op == SIM_SLEEP || op == SIM_BOARD_OPEN || op >= SIM_SLOT_STORE;
}

int sim_submit(struct sim_channel *channel, enum sim_op op)
{
    int saved = errno;
    uint64_t uncharged_ps = 0;
    if (is_of_program(op)) {
        charge_computing(channel, area->compute_ps);
        sim_channel_catch_up(channel);
    } else if (area->compute_permille) {
        uncharged_ps = computed_ps() - counted_ps; /* The next call of the program pays. */
    }
    channel->call.op = (uint32_t)op;
    uint32_t tid = (uint32_t)channel->tid;
    order_turn_give(&channel->turn, SIM_TURN_CALL);
    order_calls_raise(&area->calls);
    (void)futex(&area->calls, FUTEX_WAKE, 1, NULL);
    wait_for_turn(channel, tid);
    if (area->compute_permille)
        counted_ps = computed_ps() - uncharged_ps;
    errno = saved;
    return channel->call.status;
}

bool sim_channel_was_interrupted(void)
{
    bool was = was_interrupted;
    was_interrupted = false;
    if (was)
        sim_channel_report(SIM_CAUSE_SIGNAL, "a handler");
    return was;
}

void sim_channel_report(enum sim_cause cause, const char *what)
{
    if (!sim_channel_area())
        return;
    struct sim_seen *seen = &area->causes[cause];
    if (!order_cause_claim(&seen->is_seen))
        return;
    seen->rank = (uint32_t)sim_environment_number("VELO_SIM_RANK", UINT32_MAX);
    (void)snprintf(seen->what, sizeof seen->what, "%s", what);
    order_cause_give(&seen->is_seen);
}

void sim_channel_charge(struct sim_channel *channel, uint64_t time_ps)
{
    channel->call.time_ps += time_ps;
}

/* ---- attaching ------------------------------------------------------------------------------- */

uint64_t sim_environment_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

__attribute__((noreturn)) static void refuse(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static void refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fputs("velo: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputs("\n", stderr);
    va_end(arguments);
    _exit(SIM_EXIT);
}

struct sim_channel *channel_claim_free(uint64_t time_ps)
{
    for (uint32_t i = 0; i < area->channels; i++) {
        struct sim_channel *channel = channels_begin() + i;
        if (order_turn_read(&channel->turn) != SIM_TURN_FREE ||
            !order_turn_claim(&channel->turn, SIM_TURN_FREE, SIM_TURN_PROCESS))
            continue;
        order_word_raise(&area->claimed_end, i + 1);
        order_calls_raise(&area->claims);
        channel->pid = getpid();
        channel->tid = 0;
        channel->number = 0;
        channel->call.time_ps = time_ps;
        channel->call.computed_ps = 0;
        channel->woken_ps = channel->place = channel->thread = 0;
        if (claimed_end <= i)
            claimed_end = i + 1;
        return channel;
    }
    sim_channel_report(SIM_CAUSE_CUT, "a full table");
    refuse("the simulated cluster has room for %u threads and processes of all ranks together, and "
           "this one is one more: give --threads-max a larger number, up to %u, or start fewer",
           area->channels, SIM_CHANNELS_MAX);
}

/* The channel that was held for this thread, or that it had before it executed this program. */
static struct sim_channel *claim_held(void)
{
    int pid = getpid(), tid = gettid();
    for (struct sim_channel *channel = channels_begin(); channel < channels_end_of_all(); channel++)
        if (order_turn_read(&channel->turn) == SIM_TURN_PROCESS && channel->pid == pid &&
            channel->tid == tid)
            return channel;
    return NULL;
}

bool channel_is_held(void) { return area && claim_held(); }

struct sim_channel *sim_channel_self(void)
{
    if (mine)
        return mine;
    if (!sim_channel_area())
        return NULL;
    mine = claim_held();
    if (!mine)
        mine = channel_claim_free(0);
    mine->tid = gettid();
    (void)pthread_setspecific(key, mine);
    (void)sim_attach(mine, sim_environment_number("VELO_SIM_RANK", SIM_NEVER),
                     sim_environment_number("VELO_SIM_REPEATABLE", 0) != 0);
    return mine;
}

void sim_channel_begin(void)
{
    uint64_t rank = sim_environment_number("VELO_SIM_RANK", SIM_NEVER);
    uint64_t ranks = sim_environment_number("VELO_SIM_RANKS", 0);
    if (rank >= ranks || !sim_channel_area())
        return;
    if (ranks > area->channels || ranks > SIM_RANKS_MAX) {
        sim_channel_report(SIM_CAUSE_CUT, "a full table");
        refuse("the job has %" PRIu64 " ranks, and the simulated cluster has room for %u threads "
               "and processes: give --threads-max a larger number, for up to %u ranks",
               ranks, area->channels, SIM_RANKS_MAX);
    }
    struct sim_channel *channel = channel_claim_free(0);
    channel->tid = gettid();
    order_word_write(&area->ranks, (uint32_t)ranks);
    has_begun = order_begun_raise(&area->begun[rank / 32], 1u << rank % 32);
    if (has_begun)
        order_calls_raise(&area->ranks_begun);
    else
        sim_channel_drop(channel); /* A process that a process of this rank has started. */
}

bool channel_has_begun(void) { return has_begun; }

struct sim_channel *sim_channel_mine(void) { return mine; }

/* Without the second line, a main thread that ends would give back the channel of its parent. */
void channel_forget(void)
{
    mine = NULL;
    (void)pthread_setspecific(key, NULL);
}
