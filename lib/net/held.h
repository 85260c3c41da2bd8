/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file held.h
 * @brief The timer for frames that transports hold back: one for the process.
 *
 * The attending thread (attend.h) waits for it, and sends what is held too long.
 */
#ifndef VELO_NET_HELD_H
#define VELO_NET_HELD_H

#include <stdbool.h>

/** A transport holds frames back: have the thread look at it within VELO_HOLD_LONG_NS. True: the
 *  timer was set for these frames, and the thread sends them when it rings; false: it ran already,
 *  and the thread sends them VELO_HOLD_NS after it has rung. */
bool held_add(void);
/** They have left, before the thread looked or by its look. */
void held_remove(void);

/* For the thread: */

/** Open the timer. Its descriptor, which is readable when it has rung; -1 with errno. */
int held_timer_open(void);
void held_timer_close(void);
/** Has the timer rung, since it was set last? */
bool held_timer_has_rung(void);
/** The thread has looked at what is held: set the timer for what is held now. */
void held_timer_set_again(bool any_was_late);
/** In the child of a fork: nothing is held. */
void held_forget(void);

#endif
