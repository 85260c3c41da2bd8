/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file order.h
 * @brief The only atomics of sim/client and sim/preload.
 *
 * At most one thread of the cluster runs at a time. Giving the turn away and getting it back orders
 * all that such threads write, so nothing else needs an order.
 */
#ifndef VELO_SIM_CLIENT_ORDER_H
#define VELO_SIM_CLIENT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/** The side that has the turn may write the channel. Release: the channel's contents are written
 *  before the turn. Pairs with order_turn_read() on the other side. */
static inline void order_turn_give(uint32_t *turn, uint32_t to)
{
    __atomic_store_n(turn, to, __ATOMIC_RELEASE);
}

/** Acquire: see order_turn_give(). */
static inline uint32_t order_turn_read(const uint32_t *turn)
{
    return __atomic_load_n(turn, __ATOMIC_ACQUIRE);
}

/** Take a free channel before any other thread does. Acquire: its last owner is done with it. */
static inline bool order_turn_claim(uint32_t *turn, uint32_t expected, uint32_t desired)
{
    return __atomic_compare_exchange_n(turn, &expected, desired, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/** Count a call, a claim of a channel, or a rank that has begun, whose channel was claimed before.
 * Sequentially consistent: the simulator sleeps only while the count stands still, and answers
 * nobody before all ranks have begun. Pairs with the simulator's Area::calls() and
 * Area::all_begun(). */
static inline void order_calls_raise(uint32_t *calls)
{
    __atomic_fetch_add(calls, 1, __ATOMIC_SEQ_CST);
}

/** Say that a rank has begun; false: it had before. Sequentially consistent: of all processes of a
 *  rank one is the first. */
static inline bool order_begun_raise(uint32_t *word, uint32_t bit)
{
    return (__atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST) & bit) == 0;
}

/** Report a cause; false: somebody else did, or does. Relaxed: the winner alone writes it. */
static inline bool order_cause_claim(uint32_t *is_seen)
{
    uint32_t expected = 0;
    return __atomic_load_n(is_seen, __ATOMIC_RELAXED) == 0 &&
           __atomic_compare_exchange_n(is_seen, &expected, 1, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

/** Release: the report is written before this. Pairs with the simulator's Area::causes(). */
static inline void order_cause_give(uint32_t *is_seen)
{
    __atomic_store_n(is_seen, 2, __ATOMIC_RELEASE);
}

/** A word that several threads read and write. Relaxed: see the head of this file. */
static inline uint32_t order_word_read(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void order_word_write(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/** Make such a word as large as that, if it is not. Release: what was claimed is claimed before.
 *  Pairs with the simulator's Area::claimed_end(). */
static inline void order_word_raise(uint32_t *word, uint32_t value)
{
    uint32_t seen = order_word_read(word);
    while (seen < value && !__atomic_compare_exchange_n(word, &seen, value, false, __ATOMIC_RELEASE,
                                                        __ATOMIC_RELAXED))
        ;
}

/** Add to such a word; returns the new value. */
static inline uint32_t order_word_add(uint32_t *word, uint32_t add)
{
    return __atomic_add_fetch(word, add, __ATOMIC_RELAXED);
}

#endif
