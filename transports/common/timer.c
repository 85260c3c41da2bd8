/* SPDX-License-Identifier: Apache-2.0 */
#include "timer.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/base/fd.h"

int64_t timer_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

bool timer_open(struct timer *timer)
{
    *timer = (struct timer){
        .fd = fd_above_standard(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))};
    return timer->fd >= 0;
}

void timer_close(struct timer *timer)
{
    if (timer->fd >= 0)
        close(timer->fd);
    timer->fd = -1;
}

void timer_set(struct timer *timer, int64_t period_ns)
{
    if (period_ns == timer->period_ns)
        return;
    struct timespec period = {.tv_sec = period_ns / NS_PER_S, .tv_nsec = period_ns % NS_PER_S};
    struct itimerspec setting = {.it_interval = period, .it_value = period};
    (void)timerfd_settime(timer->fd, 0, &setting, NULL);
    timer->period_ns = period_ns;
}

void timer_read(const struct timer *timer)
{
    uint64_t times;
    if (timer->period_ns)
        (void)!read(timer->fd, &times, sizeof times);
}

bool timer_has_ticked(struct timer *timer, int64_t now_ns, int64_t tick_ns)
{
    if (now_ns < timer->tick_ns)
        return false;
    timer_read(timer);
    timer->tick_ns = now_ns + tick_ns;
    return true;
}
