/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's naps take virtual time. This library takes the place of the C library's functions,
 * for calls of the program (caller.h). A nap of libmpi itself is how it waits for its launcher
 * (launcher.c), and stays real. A nap of libvelo is a wait for its peers: it takes virtual time,
 * and what has come meanwhile is taken in.
 */
#include "nap.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../client/poll.h"
#include "caller.h"
#include "epoch.h"
#include "pipe.h"
#include "real.h"

/* A thread that yields lets the others go on for this time. */
#define YIELD_NS INT64_C(1000)
/* A rank that waits for its launcher naps so long for each rank there is, at most so long, in real
 * time: a hundred that look every 100 us leave the launcher none of a small machine's processors.
 */
#define LAUNCHER_NAP_US 100u
#define LAUNCHER_NAP_US_MAX 20000u

void nap_until_ns(struct sim_channel *channel, int64_t end_ns)
{
    (void)sim_sleep(channel, end_ns > 0 ? (uint64_t)end_ns * PS_PER_NS : 0);
    sim_poll_napped();
}

void nap_for_ns(struct sim_channel *channel, int64_t nap_ns)
{
    nap_until_ns(channel, (int64_t)(channel->call.time_ps / PS_PER_NS) + nap_ns);
}

static void nap_of_velo(struct sim_channel *channel, const struct timespec *nap)
{
    uint64_t nap_ns = (uint64_t)(nap->tv_sec * NS_PER_S + nap->tv_nsec);
    (void)sim_sleep(channel, channel->call.time_ps + nap_ns * PS_PER_NS);
    sim_poll_take_news();
}

SIM_API int nanosleep(const struct timespec *nap, struct timespec *left)
{
    const void *caller = __builtin_return_address(0);
    struct sim_channel *velo_channel = caller_velo_channel(caller);
    struct sim_channel *channel = caller_channel(caller);
    if (velo_channel) {
        nap_of_velo(velo_channel, nap);
        return 0;
    }
    if (!channel)
        return (int)syscall(SYS_nanosleep, nap, left);
    if (nap->tv_sec < 0 || nap->tv_nsec < 0 || nap->tv_nsec >= NS_PER_S) {
        errno = EINVAL;
        return -1;
    }
    nap_for_ns(channel, nap->tv_sec * NS_PER_S + nap->tv_nsec);
    return 0;
}

SIM_API int clock_nanosleep(clockid_t id, int flags, const struct timespec *nap,
                            struct timespec *left)
{
    struct sim_channel *channel = CALLER_CHANNEL;
    if (!channel)
        return syscall(SYS_clock_nanosleep, id, flags, nap, left) == 0 ? 0 : errno;
    if (flags & TIMER_ABSTIME)
        nap_until_ns(channel, epoch_time_ns(id, nap));
    else
        nap_for_ns(channel, nap->tv_sec * NS_PER_S + nap->tv_nsec);
    return 0;
}

static useconds_t launcher_nap_us(useconds_t asked_us)
{
    uint64_t all_us = LAUNCHER_NAP_US * sim_environment_number("VELO_SIM_RANKS", 1);
    useconds_t fair_us = all_us < LAUNCHER_NAP_US_MAX ? (useconds_t)all_us : LAUNCHER_NAP_US_MAX;
    return asked_us > fair_us ? asked_us : fair_us;
}

SIM_API int usleep(useconds_t nap_us)
{
    const void *caller = __builtin_return_address(0);
    struct sim_channel *channel = caller_program_channel(caller);
    if (channel) {
        nap_for_ns(channel, (int64_t)nap_us * 1000);
        return 0;
    }
    if (caller_channel(caller)) {
        sim_poll_nap_outside();
        nap_us = launcher_nap_us(nap_us);
    }
    struct timespec real = {.tv_sec = nap_us / 1000000, .tv_nsec = nap_us % 1000000 * 1000L};
    return (int)syscall(SYS_nanosleep, &real, NULL);
}

SIM_API unsigned sleep(unsigned nap_s)
{
    struct timespec real = {.tv_sec = nap_s};
    struct sim_channel *channel = CALLER_CHANNEL;
    if (channel)
        nap_for_ns(channel, nap_s * NS_PER_S);
    else
        (void)syscall(SYS_nanosleep, &real, NULL);
    return 0;
}

SIM_API int thrd_sleep(const struct timespec *nap, struct timespec *left)
{
    struct sim_channel *channel = CALLER_CHANNEL;
    if (!channel)
        return syscall(SYS_nanosleep, nap, left) == 0 ? 0 : errno == EINTR ? -1 : -2;
    nap_for_ns(channel, nap->tv_sec * NS_PER_S + nap->tv_nsec);
    return 0;
}

/* A program that yields waits for another thread, which does nothing unless time passes. */
SIM_API int sched_yield(void)
{
    struct sim_channel *channel = PROGRAM_CHANNEL;
    if (!channel)
        return (int)syscall(SYS_sched_yield);
    nap_for_ns(channel, YIELD_NS);
    return 0;
}

/* ---- waiting for nothing --------------------------------------------------------------------- */

/* Without a file to wait for, these are naps, too. With one they stay real: nothing of the
 * cluster comes by a file. */
SIM_API int poll(struct pollfd *files, nfds_t files_len, int limit_ms)
{
    struct sim_channel *channel = files_len == 0 && limit_ms >= 0 ? PROGRAM_CHANNEL : NULL;
    if (channel) {
        nap_for_ns(channel, limit_ms * INT64_C(1000000));
        return 0;
    }
    CALLER_NEXT(poll);
    if (files_len > 0 && caller_at(__builtin_return_address(0)) == CALLER_PROGRAM)
        return pipe_poll(__builtin_return_address(0), files, files_len,
                         limit_ms * INT64_C(1000000));
    return next ? next(files, files_len, limit_ms) : -1;
}

SIM_API int select(int files_len, fd_set *restrict in, fd_set *restrict out,
                   fd_set *restrict except, struct timeval *restrict limit)
{
    struct sim_channel *channel = files_len == 0 && limit ? PROGRAM_CHANNEL : NULL;
    if (channel) {
        nap_for_ns(channel, limit->tv_sec * NS_PER_S + limit->tv_usec * 1000);
        *limit = (struct timeval){0};
        return 0;
    }
    CALLER_NEXT(select);
    real_report(__builtin_return_address(0), SIM_CAUSE_WAIT, "select");
    return next ? next(files_len, in, out, except, limit) : -1;
}
