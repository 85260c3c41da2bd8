/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's main thread, and a thread that the program starts, belongs to the cluster from that
 * moment on, not only when it first calls: see sim_channel_begin() and sim_channel_hold().
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "../client/poll.h"
#include "caller.h"
#include "memory.h"

static __attribute__((constructor)) void begin_rank(void) { sim_channel_begin(); }

struct start {
    void *(*body)(void *);
    void *arg;
    struct sim_channel *held;
};

static void *begin(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    sim_channel_take(start.held);
    (void)sim_channel_self(); /* Attaches, and so waits for its turn. */
    memory_join();
    return start.body(start.arg);
}

SIM_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                           void *arg)
{
    CALLER_NEXT(pthread_create);
    if (!next)
        return ENOSYS;
    const void *caller = __builtin_return_address(0);
    struct sim_channel *channel = NULL;
    if (caller_at(caller) == CALLER_PROGRAM) {
        sim_poll_come_back(); /* The new thread must not run before threads that are still outside.
                               */
        channel = sim_channel_hold();
    }
    if (!channel)
        return next(thread, attr, body, arg);
    struct start *start = malloc(sizeof *start);
    if (!start) {
        sim_channel_drop(channel);
        return EAGAIN;
    }
    *start = (struct start){body, arg, channel};
    int status = next(thread, attr, begin, start);
    if (status == 0) {
        channel->thread = *thread;
    } else {
        sim_channel_drop(channel);
        free(start);
    }
    return status;
}
