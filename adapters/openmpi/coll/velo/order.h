/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file order.h
 * @brief Every atomic access of coll/velo, each named after its one use.
 *
 * No other file of the component holds an atomic, a fence or a spin hint. Two edges:
 *
 *   1  R1 coll_velo_publish   A1 coll_velo_look      a contribution before its flag
 *   2  R2 coll_velo_leave     A2 coll_velo_left      the reads of a collective before the reuse
 *                                                    of what was read
 *
 * A collective in which every rank waits for every other also supplies edge 2: a rank publishes
 * its flag of collective n after it has read all of collective n - 1, so R1 and A1 order those
 * reads before the reuse.
 */
#ifndef VELO_MPI_COLL_VELO_ORDER_H
#define VELO_MPI_COLL_VELO_ORDER_H

#include <stdint.h>

#include "common/velo_ompi.h"

/** Tell the core that this is a spin loop. It also keeps a rank that waits from snatching a line
 *  between two stores of its owner, which is worth a fifth of an allreduce. */
static inline void coll_velo_pause(void) { velo_ompi_pause(); }

/** Owner of a slot: its contribution is there. Release: the stores of the contribution, and the
 *  reads of all collectives before, come first. Pairs with A1. */
static inline void coll_velo_publish(uint64_t *flag, uint64_t value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

/** Other ranks: is the contribution there? Acquire: its loads come after. Pairs with R1. */
static inline uint64_t coll_velo_look(const uint64_t *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

/** Each rank, at the end of a collective: it will read nothing more of it. Release: those loads
 *  come first. Pairs with A2. */
static inline void coll_velo_leave(uint64_t *done, uint64_t sequence)
{
    __atomic_store_n(done, sequence, __ATOMIC_RELEASE);
}

/** Owner of a slot that is to be used again: has this rank left the collective that used it last?
 *  Acquire: the stores of the new contribution come after. Pairs with R2. */
static inline uint64_t coll_velo_left(const uint64_t *done)
{
    return __atomic_load_n(done, __ATOMIC_ACQUIRE);
}

#endif
