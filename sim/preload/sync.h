/* SPDX-License-Identifier: Apache-2.0 */
/** @file sync.h @brief Threads of a rank wait for each other in virtual time (sync.c). */
#ifndef VELO_SIM_PRELOAD_SYNC_H
#define VELO_SIM_PRELOAD_SYNC_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "../client/channel.h"

#define SYNC_FOREVER_NS INT64_MAX /**< As a limit: none. */
#define SYNC_ALL INT_MAX          /**< As a number of threads: each. */

/** This thread's channel, if other threads of its process are of the cluster, too. NULL: none are,
 *  this thread is not of the cluster, or its caller talks to the launcher. */
struct sim_channel *sync_channel_beside(const void *caller);

/** Let time pass until another thread wakes this one at a place, or it is time to look again.
 * False: the limit, in virtual time, has come. */
bool sync_wait_at(struct sim_channel *channel, const void *place, int64_t end_ns);
/** Did another thread end this thread's last wait? */
bool sync_was_woken(void);

/** Wake the threads that have waited longest at a place, so many at most. They go on after the
 *  calling thread's next call: a waiter that had the turn now might look for ever, without a call,
 *  for what this thread does next. Returns how many were woken. */
int sync_wake_at(const void *place, int threads);

/** Is it a time as the C library's functions take it? */
bool sync_is_time(const struct timespec *limit);

#endif
