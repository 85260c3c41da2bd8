/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file wait.h
 * @brief Sleeping and waking across processes, time, and the barrier of all processes.
 */
#ifndef VELO_SHM_WAIT_H
#define VELO_SHM_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "../base/compiler.h"

#define NS_PER_S INT64_C(1000000000)
/** Longest sleep before looking whether the peer is still alive. */
#define WAIT_SLICE_NS (NS_PER_S / 10)

/** Nanoseconds of CLOCK_MONOTONIC. */
VELO_PRIVATE int64_t wait_now_ns(void);
/** When a wait of timeout_ns that begins at start_ns is over; INT64_MAX: never. */
static inline int64_t wait_end_ns(int64_t start_ns, int64_t timeout_ns)
{
    return timeout_ns < 0 || timeout_ns > INT64_MAX - start_ns ? INT64_MAX : start_ns + timeout_ns;
}
/** The longest spin before a sleep, as $VELO_SPIN_NS says. */
VELO_PRIVATE int64_t wait_spin_max_ns(void);
/** Sleep while *word == expected, at most timeout_ns. May return early. True: a signal handler ran.
 */
VELO_PRIVATE bool wait_sleep(const uint32_t *word, uint32_t expected, int64_t timeout_ns);
/** Wake all threads that sleep on `word`. */
VELO_PRIVATE void wait_wake(const uint32_t *word);
/** Take part in the barriers of other processes. False: the kernel does not permit it. */
bool wait_join_barrier(void);
/** A full barrier on every thread, running now, of every process that takes part. Pairs with the
 *  compiler-only order between their publish and order_read_bell(). If the kernel does not permit
 * it any more since wait_join_barrier(), this waits instead, longer than a store buffer holds a
 * store.
 */
void wait_barrier_all(void);
/** Wait a little while between two tries of a cold path. True: a signal handler ran. */
VELO_PRIVATE bool wait_nap(int64_t nap_ns);
/** Lock, unless that takes longer than this. For cold paths. */
bool wait_lock(pthread_mutex_t *lock, int64_t timeout_ns);

#endif
