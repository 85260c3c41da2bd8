/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file backoff.h
 * @brief What is refused is tried again after a pause, which doubles while it is refused.
 *
 * A network that is busy says so, and is asked at each look, because room may be there at any
 * moment. One that lacks memory or a descriptor may lack it for good.
 */
#ifndef VELO_TRANSPORT_BACKOFF_H
#define VELO_TRANSPORT_BACKOFF_H

#include "endpoint.h"

/** The longest pause; the first one is OWING_NS. A tick of the shortest patience takes 10 ms
 *  (patience.c), so that what is offered once a tick does reach the network. */
#define BACKOFF_NS_MAX (8 * NS_PER_MS)

/** All zero: nothing was refused. */
struct backoff {
    int64_t pause_ns; /* 0: there is none. */
    int64_t end_ns;   /* Of the pause. */
};

/** Is it too early to try again? */
static inline bool backoff_lasts(const struct backoff *backoff)
{
    return backoff->pause_ns && timer_now_ns() < backoff->end_ns;
}

/** It was tried, and refused or not. */
static inline void backoff_note(struct backoff *backoff, bool is_refused)
{
    if (!is_refused) {
        backoff->pause_ns = 0;
        return;
    }
    backoff->pause_ns = backoff->pause_ns ? 2 * backoff->pause_ns : OWING_NS;
    if (backoff->pause_ns > BACKOFF_NS_MAX)
        backoff->pause_ns = BACKOFF_NS_MAX;
    backoff->end_ns = timer_now_ns() + backoff->pause_ns;
}

#endif
