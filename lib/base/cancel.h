/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cancel.h
 * @brief Threads that are cancelled (pthread_cancel).
 *
 * A call of the library that was left half done could keep a lock for ever, or lose a message. So
 * no call is a cancellation point: a request stays pending until the thread's next point outside
 * the library. A function that sleeps, or calls points of the C library (files, sockets, naps,
 * transports), keeps it pending with CANCEL_LATER().
 */
#ifndef VELO_BASE_CANCEL_H
#define VELO_BASE_CANCEL_H

#include <pthread.h>

static inline int cancel_later(void)
{
    int state;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void cancel_as_before(const int *state)
{
    int ours;
    (void)pthread_setcancelstate(*state, &ours);
}

/** Until the scope ends, a request to cancel this thread stays pending. */
#define CANCEL_LATER()                                                                             \
    __attribute__((cleanup(cancel_as_before))) const int cancel_state_ = cancel_later()

#endif
