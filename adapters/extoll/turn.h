/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file turn.h
 * @brief Which thread may use a thing now; a value that others may look at. The only atomics of
 * this folder.
 *
 * velo.h lets one thread at a time receive from a port, and one send on a connection; the libraries
 * here let all do both. A process of one thread pays nothing for that. Another pays one exchange.
 */
#ifndef EXTOLL_TURN_H
#define EXTOLL_TURN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

struct turn {
    atomic_bool taken;
};

/* A turn that was taken, so that it is given back even if a thread has ended meanwhile. */
enum turn_held { TURN_REFUSED, TURN_ALONE, TURN_TAKEN };

/* Acquire: all that was done in the last turn is seen. Pairs with turn_give(). */
static inline enum turn_held turn_try(struct turn *turn)
{
    if (__libc_single_threaded)
        return TURN_ALONE;
    return atomic_exchange_explicit(&turn->taken, true, memory_order_acquire) ? TURN_REFUSED
                                                                              : TURN_TAKEN;
}

static inline enum turn_held turn_take(struct turn *turn)
{
    enum turn_held held = turn_try(turn);
    while (__builtin_expect(held == TURN_REFUSED, 0)) {
        sched_yield();
        held = turn_try(turn);
    }
    return held;
}

static inline void turn_give(struct turn *turn, enum turn_held held)
{
    if (held == TURN_TAKEN)
        atomic_store_explicit(&turn->taken, false, memory_order_release);
}

/** A value that a thread changes while others look at it. */
struct shown {
    atomic_uintptr_t value;
};

/* Release: a thread that sees the value sees all that was done before. Pairs with shown_get(). */
static inline void shown_set(struct shown *shown, uintptr_t value)
{
    atomic_store_explicit(&shown->value, value, memory_order_release);
}

static inline uintptr_t shown_get(const struct shown *shown)
{
    return atomic_load_explicit(&shown->value, memory_order_acquire);
}

#endif
