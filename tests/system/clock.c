/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/hook.h"
#include "test.h"

/* Reading the clock takes so long, so that every loop that looks at it ends. */
#define LOOK_NS 1000
/* No call sleeps so long, or so often: the longest waits half a second, a nap of 1 ms at a time. */
#define SLEEP_MAX_NS INT64_C(20000000000)
#define SLEEPS_MAX 20000

ssize_t __real_getrandom(void *buf, size_t len_bytes, unsigned flags);

static struct sundial *sundial;
static void (*call_hung)(void);
static void (*call_stopped)(void);
static int64_t started_ns;
static uint32_t sleeps;
static uint32_t visits;
static uint32_t visits_to_live;
static uint32_t visits_to_stop;
static uint32_t points_to_signal;
static uint32_t signals_left;
/* Ports of two runs of one seed at a time have different generations all the same: the names of
 * their doorbells are the machine's. Nothing else depends on the number. */
static unsigned char salt[8];
static bool in_handler;

/* A handler's own calls come by here, too. True: its handler has run. */
static bool take_signal(void)
{
    if (in_handler || signals_left == 0 || --points_to_signal > 0)
        return false;
    points_to_signal = 1;
    signals_left--;
    in_handler = true;
    (void)raise(SIGUSR1);
    in_handler = false;
    return true;
}

static void visit(unsigned point)
{
    (void)point;
    (void)take_signal();
    if (in_handler)
        return;
    if (++visits == visits_to_live)
        kill(getpid(), SIGKILL);
    if (visits == visits_to_stop)
        call_stopped();
}

void clock_use(struct sundial *use, void (*hung)(void), void (*stopped)(void))
{
    sundial = use;
    call_hung = hung;
    call_stopped = stopped;
    velo_test_hook = visit;
    if (__real_getrandom(salt, sizeof salt, 0) != (ssize_t)sizeof salt)
        abort();
}

void clock_start(uint32_t die_at, uint32_t stop_at, uint32_t signal_at, uint32_t times)
{
    started_ns = sundial->now_ns;
    sleeps = 0;
    visits = 0;
    visits_to_live = die_at;
    visits_to_stop = stop_at;
    points_to_signal = signal_at;
    signals_left = signal_at > 0 ? times : 0;
}

uint32_t clock_visits(void) { return visits; }

static void pass(int64_t duration_ns)
{
    sundial->now_ns += duration_ns;
    if (++sleeps > SLEEPS_MAX || sundial->now_ns - started_ns > SLEEP_MAX_NS)
        call_hung();
}

static int64_t to_ns(const struct timespec *time)
{
    return time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

/* ---- in place of libc's: see --wrap in CMakeLists.txt -----------------------------------------
 */

int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_nanosleep(const struct timespec *duration, struct timespec *rest);
int __wrap_sched_yield(void);
int __real_posix_fallocate(int fd, off_t at, off_t len_bytes);
int __wrap_posix_fallocate(int fd, off_t at, off_t len_bytes);
ssize_t __wrap_getrandom(void *buf, size_t len_bytes, unsigned flags);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    if (sundial == NULL)
        return __real_clock_gettime(id, time);
    sundial->now_ns += LOOK_NS;
    (void)take_signal();
    *time = (struct timespec){sundial->now_ns / 1000000000, sundial->now_ns % 1000000000};
    return 0;
}

int __wrap_nanosleep(const struct timespec *duration, struct timespec *rest)
{
    (void)rest;
    if (take_signal()) {
        errno = EINTR;
        return -1;
    }
    pass(to_ns(duration));
    return 0;
}

int __wrap_sched_yield(void)
{
    pass(LOOK_NS);
    return 0;
}

ssize_t __wrap_getrandom(void *buf, size_t len_bytes, unsigned flags)
{
    (void)flags;
    struct rng rng = {sundial->random};
    unsigned char *to = buf;

    for (size_t i = 0; i < len_bytes; i++)
        to[i] = (unsigned char)rng_next(&rng) ^ salt[i % sizeof salt];
    sundial->random = rng.state;
    return (ssize_t)len_bytes;
}

int __wrap_posix_fallocate(int fd, off_t at, off_t len_bytes)
{
    return sundial != NULL && sundial->is_full ? ENOSPC : __real_posix_fallocate(fd, at, len_bytes);
}

static long sleep_on(const uint32_t *word, uint32_t expected, const struct timespec *timeout)
{
    if (*word != expected) {
        errno = EAGAIN;
        return -1;
    }
    if (take_signal()) {
        errno = EINTR;
        return -1;
    }
    pass(timeout != NULL ? to_ns(timeout) : SLEEP_MAX_NS + 1);
    errno = ETIMEDOUT;
    return -1;
}

long __wrap_syscall(long number, ...)
{
    long arg[6];
    va_list args;

    va_start(args, number);
    for (size_t i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_futex && (arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT)
        return sleep_on((const uint32_t *)arg[0], (uint32_t)arg[2],
                        (const struct timespec *)arg[3]);
    return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
