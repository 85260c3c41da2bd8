/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer that signals runs in real time and does not know virtual time. A program that sets one is
 * ended, and told the name of the call. It would else be interrupted at any moment of its virtual
 * time.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"

/* Ends a program of the cluster that sets a timer. */
static void refuse(const struct sim_channel *channel, const char *call)
{
    if (!channel)
        return;
    (void)fprintf(stderr,
                  "velo: the program calls %s(), a timer that runs in real time; the simulated "
                  "cluster has none in virtual time, and the program cannot go on in it\n",
                  call);
    _exit(SIM_EXIT);
}

static bool is_set(const struct timespec *time) { return time->tv_sec != 0 || time->tv_nsec != 0; }

SIM_API unsigned alarm(unsigned delay_s)
{
    if (delay_s != 0)
        refuse(PROGRAM_CHANNEL, "alarm");
    struct itimerval old, set = {.it_value.tv_sec = delay_s};
    if (syscall(SYS_setitimer, ITIMER_REAL, &set, &old) != 0)
        return 0;
    return (unsigned)(old.it_value.tv_sec + (old.it_value.tv_usec != 0));
}

SIM_API int setitimer(__itimer_which_t which, const struct itimerval *restrict set,
                      struct itimerval *restrict old)
{
    if (set && (set->it_value.tv_sec != 0 || set->it_value.tv_usec != 0))
        refuse(PROGRAM_CHANNEL, "setitimer");
    return (int)syscall(SYS_setitimer, which, set, old);
}

SIM_API int timerfd_settime(int file, int flags, const struct itimerspec *set,
                            struct itimerspec *old)
{
    if (set && is_set(&set->it_value))
        refuse(PROGRAM_CHANNEL, "timerfd_settime");
    return (int)syscall(SYS_timerfd_settime, file, flags, set, old);
}

SIM_API int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict set,
                          struct itimerspec *restrict old)
{
    if (set && is_set(&set->it_value))
        refuse(PROGRAM_CHANNEL, "timer_settime");
    CALLER_NEXT(timer_settime);
    return next ? next(timer, flags, set, old) : -1;
}
