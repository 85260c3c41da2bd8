/* SPDX-License-Identifier: Apache-2.0 */
#include "held.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../base/fd.h"
#include "transport.h"

/* To set a timer costs some microseconds, as much as to send a packet. So it is not set back when
 * what was held has left, and while programs release by themselves what they hold it runs longer.
 * `lock`, of all of this, is taken last. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int timer = -1;
static uint32_t held; /* How many hold frames back. */
static bool is_set;
static int64_t hold_ns = VELO_HOLD_NS; /* What the timer is set to next. */

/* With `lock`. True: it did not run before. */
static bool set_timer(int64_t ns)
{
    struct itimerspec when = {.it_value = {.tv_nsec = ns}};
    if (is_set)
        return false;
    (void)timerfd_settime(timer, 0, &when, NULL);
    is_set = true;
    return true;
}

bool held_add(void)
{
    pthread_mutex_lock(&lock);
    held++;
    bool is_first = set_timer(hold_ns);
    pthread_mutex_unlock(&lock);
    return is_first;
}

void held_remove(void)
{
    pthread_mutex_lock(&lock);
    held--;
    pthread_mutex_unlock(&lock);
}

int held_timer_open(void)
{
    timer = fd_above_standard(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    return timer;
}

void held_timer_close(void)
{
    if (timer >= 0)
        close(timer);
    timer = -1;
    is_set = false;
}

bool held_timer_has_rung(void)
{
    uint64_t times;
    if (read(timer, &times, sizeof times) != sizeof times)
        return false;
    pthread_mutex_lock(&lock);
    is_set = false;
    pthread_mutex_unlock(&lock);
    return true;
}

/* The thread has sent the frames that were late. Frames that are held now were held after the timer
 * had been set, or the program has their carrier's lock: the timer is set for them. */
void held_timer_set_again(bool any_was_late)
{
    pthread_mutex_lock(&lock);
    if (any_was_late)
        hold_ns = VELO_HOLD_NS;
    else if (hold_ns < VELO_HOLD_LONG_NS / 2)
        hold_ns *= 2;
    if (held > 0)
        (void)set_timer(VELO_HOLD_NS);
    pthread_mutex_unlock(&lock);
}

void held_forget(void)
{
    held = 0;
    (void)pthread_mutex_init(&lock, NULL);
}
