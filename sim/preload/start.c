/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process or thread that a thread of the cluster starts belongs to it from that moment on, not
 * only when it first calls: virtual time would else pass it by while it is being started, and a
 * limit that somebody gave it would be over before it could do anything.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <velo/velo.h>

#include "../../lib/base/order.h"
#include "../../transports/nic/device.h"
#include "caller.h"
#include "memory.h"

struct start {
    void *(*body)(void *);
    void *arg;
    struct sim_channel *held;
};

static __thread struct sim_channel *held;
static uint32_t has_threads;

/* ---- processes ------------------------------------------------------------------------------- */

static void before_fork(void) { held = channel_hold(); }

/* If there is no child the simulator takes the channel back after a while. */
static void in_parent(void) { held = NULL; }

static void in_child(void)
{
    channel_forget();
    channel_take(held);
    held = NULL;
}

void start_watch(void) { (void)pthread_atfork(before_fork, in_parent, in_child); }

/* ---- threads --------------------------------------------------------------------------------- */

static void *begin(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    channel_take(start.held);
    (void)channel_self(); /* Who has the turn goes first. */
    memory_join();
    return start.body(start.arg);
}

bool start_has_threads(void) { return order_flag(&has_threads) != 0; }

struct sim_channel *start_channel_beside(void)
{
    return start_has_threads() ? channel_mine() : NULL;
}

VELO_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                            void *arg)
{
    CALLER_NEXT(pthread_create);
    if (!next)
        return ENOSYS;
    const void *caller = __builtin_return_address(0);
    struct sim_channel *channel = NULL;
    if (caller_at(caller) == CALLER_PROGRAM) {
        device_come_back(); /* Or the new one would go ahead of who is still on the way back. */
        channel = channel_hold();
    }
    if (!channel)
        return next(thread, attr, body, arg);
    struct start *start = malloc(sizeof *start);
    if (!start) {
        channel_drop(channel);
        return EAGAIN;
    }
    *start = (struct start){body, arg, channel};
    order_set_flag(&has_threads, 1);
    int status = next(thread, attr, begin, start);
    if (status == 0) {
        channel->thread = *thread;
    } else {
        channel_drop(channel);
        free(start);
    }
    return status;
}
