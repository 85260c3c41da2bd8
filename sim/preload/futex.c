/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Languages whose libraries do not wait by the C library's mutexes and conditions ask the kernel
 * for a futex, by syscall(): C++'s futures, semaphores, latches, barriers and std::atomic::wait(),
 * Rust's locks. This library takes the place of syscall(). A thread that would sleep in the kernel
 * waits in virtual time instead, as for a condition (sync.c), and its limit is a virtual date. All
 * other system calls, and those of the C library itself, go to the kernel.
 *
 * A wake by another process, or by a thread that is not of the cluster, goes to the kernel and does
 * not find the threads that wait here. A waiter finds a changed word at its next look. If the word
 * has not changed, a wait without a limit ends after LOOKS_MAX looks, so that the wake is not
 * missed for ever: futex(2) allows a wait to end for no reason, and a program looks at its word
 * again.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../client/raw.h"
#include "caller.h"
#include "epoch.h"
#include "real.h"
#include "sync.h"

/* Newer than the oldest headers that this is built with; the same on all processors. */
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif
#define SYS_FUTEX_WAITV 449
#define SYS_FUTEX_WAKE 454
#define SYS_FUTEX_REQUEUE 456

/* A wait without a limit ends for no reason after so many looks, which are 0.1 ms apart. With one
 * it does not: some libraries then begin to nap, and come back after the limit. */
#define LOOKS_MAX 100

struct futex_call {
    uint32_t *word;
    int op;
    uint32_t value;
    const struct timespec *limit;
    uint32_t *other;
    uint32_t bits;
};

static long ask_kernel(const struct futex_call *call)
{
    return raw_syscall(SYS_futex, (long)call->word, call->op, (long)call->value, (long)call->limit,
                       (long)call->other, (long)call->bits);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The kernel refuses others. */
static bool is_limit(const struct timespec *limit)
{
    return sync_is_time(limit) && limit->tv_sec >= 0;
}

/* When the wait ends, in virtual time. */
static int64_t end_of_wait_ns(const struct sim_channel *channel, const struct futex_call *call)
{
    const struct timespec *limit = call->limit;
    if (!limit || limit->tv_sec >= INT64_MAX / NS_PER_S)
        return SYNC_FOREVER_NS;
    if ((call->op & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
        return epoch_time_ns(call->op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC,
                             limit);
    int64_t now_ns = (int64_t)(channel->call.time_ps / PS_PER_NS);
    int64_t left_ns = limit->tv_sec * NS_PER_S + limit->tv_nsec;
    return left_ns < SYNC_FOREVER_NS - now_ns ? now_ns + left_ns : SYNC_FOREVER_NS;
}

/* What the kernel says to a limit that is over: -ETIMEDOUT if the thread would have to wait, else
 * the call's answer. The kernel checks all arguments, and reads the word as the program's threads
 * may see it. */
static long try_to_wait(const struct futex_call *call)
{
    static const struct timespec over = {0};
    struct futex_call now = *call;
    now.limit = &over;
    if ((call->op & FUTEX_CMD_MASK) == FUTEX_WAIT) {
        now.op = FUTEX_WAIT_BITSET | (call->op & ~FUTEX_CMD_MASK);
        now.bits = FUTEX_BITSET_MATCH_ANY;
    }
    return ask_kernel(&now);
}

/* No other thread of the cluster has the turn between a look and the wait, so no wake is missed. */
static long wait_for_word(struct sim_channel *channel, const struct futex_call *call)
{
    int64_t end_ns = end_of_wait_ns(channel, call);
    for (int64_t looks = 0; call->limit || looks < LOOKS_MAX; looks++) {
        long status = try_to_wait(call);
        if (status != -ETIMEDOUT)
            return looks == 0 ? status : 0;
        if (!sync_wait_at(channel, call->word, end_ns))
            return -ETIMEDOUT;
        if (sync_was_woken())
            return 0;
    }
    return 0;
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* Wakes threads that wait in virtual time first, then those that wait in the kernel, which are not
 * of the cluster. The bits of a virtual wait are not kept, so a wake for some bits wakes all of
 * them, also those whose bits it does not name: futex(2) allows a wait to end for no reason. A wake
 * of nobody wakes one, as the kernel's does. */
static long wake_word(const struct futex_call *call)
{
    bool is_for_some =
        (call->op & FUTEX_CMD_MASK) == FUTEX_WAKE_BITSET && call->bits != FUTEX_BITSET_MATCH_ANY;
    int threads = (int)call->value > 0 ? (int)call->value : 1;
    if (is_for_some && call->bits == 0)
        return -EINVAL;
    int woken = sync_wake_at(call->word, is_for_some ? SYNC_ALL : threads);
    if (woken >= threads)
        return woken;
    struct futex_call rest = *call;
    rest.value = (uint32_t)(threads - woken);
    long status = ask_kernel(&rest);
    return status < 0 && woken > 0 ? woken : status + woken;
}

/* ---- which call is whose ---------------------------------------------------------------------- */

/* The rest either waits in the kernel, or wakes threads that wait elsewhere than it looks. */
__attribute__((noreturn)) static void refuse(const char *what)
{
    (void)fprintf(stderr,
                  "velo: the program asks the kernel for %s, which the simulated cluster does not "
                  "have in virtual time for threads that wait for each other; it has FUTEX_WAIT, "
                  "FUTEX_WAKE and both with bits\n",
                  what);
    _exit(SIM_EXIT);
}

/* The threads of OpenMP compute in real time. libvelo and the launcher's libraries wait in it. */
static bool is_virtual(enum caller caller)
{
    return caller >= CALLER_RUNTIME && caller != CALLER_OPENMP;
}

static long pass_futex(const struct futex_call *call, const void *address)
{
    enum caller caller = caller_at(address);
    struct sim_channel *beside = is_virtual(caller) ? sync_channel_beside(address) : NULL;
    struct sim_channel *channel = beside;
    switch (call->op & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        /* Without a limit and other threads there is nobody who might wake this one, and with a
         * limit only the program's time is virtual. */
        if (call->limit)
            channel = caller == CALLER_PROGRAM && is_limit(call->limit)
                          ? caller_program_channel(address)
                          : NULL;
        return channel ? wait_for_word(channel, call) : ask_kernel(call);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
        return beside ? wake_word(call) : ask_kernel(call);
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        if (beside)
            refuse("FUTEX_REQUEUE");
        return ask_kernel(call);
    case FUTEX_WAKE_OP:
        if (beside)
            refuse("FUTEX_WAKE_OP");
        return ask_kernel(call);
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_CMP_REQUEUE_PI:
        if (beside)
            refuse("a futex that lends priority");
        return ask_kernel(call);
    default: /* None that waits. */
        return ask_kernel(call);
    }
}

static void check_newer(const void *address)
{
    if (is_virtual(caller_at(address)) && sync_channel_beside(address))
        refuse("one of the newer calls of futexes (futex_waitv, futex_wait, futex_wake, "
               "futex_requeue)");
}

/* Calls of the kernel that the C library's functions, whose place is taken, would make virtual. */
static void report_real(long number, const void *address)
{
    static const struct {
        long number;
        enum sim_cause cause;
        const char *name;
    } calls[] = {
        {SYS_clock_gettime, SIM_CAUSE_CLOCK, "SYS_clock_gettime"},
        {SYS_gettimeofday, SIM_CAUSE_CLOCK, "SYS_gettimeofday"},
        {SYS_times, SIM_CAUSE_CLOCK, "SYS_times"},
        {SYS_getrusage, SIM_CAUSE_CLOCK, "SYS_getrusage"},
        {SYS_nanosleep, SIM_CAUSE_WAIT, "SYS_nanosleep"},
        {SYS_clock_nanosleep, SIM_CAUSE_WAIT, "SYS_clock_nanosleep"},
        {SYS_ppoll, SIM_CAUSE_WAIT, "SYS_ppoll"},
        {SYS_pselect6, SIM_CAUSE_WAIT, "SYS_pselect6"},
        {SYS_epoll_pwait, SIM_CAUSE_WAIT, "SYS_epoll_pwait"},
        {SYS_socket, SIM_CAUSE_SOCKET, "SYS_socket"},
        {SYS_getrandom, SIM_CAUSE_RANDOM, "SYS_getrandom"},
#ifdef SYS_time
        {SYS_time, SIM_CAUSE_CLOCK, "SYS_time"},
        {SYS_poll, SIM_CAUSE_WAIT, "SYS_poll"},
        {SYS_select, SIM_CAUSE_WAIT, "SYS_select"},
        {SYS_epoll_wait, SIM_CAUSE_WAIT, "SYS_epoll_wait"},
#endif
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number)
            real_report(address, calls[i].cause, calls[i].name);
}

SIM_API long syscall(long number, ...)
{
    long words[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(arguments, long);
    va_end(arguments);
    long answer;
    if (number == SYS_futex) {
        struct futex_call call = {(uint32_t *)words[0], (int)words[1],
                                  (uint32_t)words[2],   (const struct timespec *)words[3],
                                  (uint32_t *)words[4], (uint32_t)words[5]};
        answer = pass_futex(&call, __builtin_return_address(0));
    } else {
        if (number == SYS_FUTEX_WAITV || (number >= SYS_FUTEX_WAKE && number <= SYS_FUTEX_REQUEUE))
            check_newer(__builtin_return_address(0));
        report_real(number, __builtin_return_address(0));
        answer = raw_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    }
    if (answer >= 0 || answer < -4095)
        return answer;
    errno = (int)-answer;
    return -1;
}
