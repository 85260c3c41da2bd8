/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file timer.h
 * @brief The clock, and a timer whose descriptor ends a wait, again and again.
 */
#ifndef VELO_TRANSPORT_TIMER_H
#define VELO_TRANSPORT_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

struct timer {
    int fd;            /* -1: there is none. */
    int64_t period_ns; /* 0: it stands. */
    int64_t tick_ns;   /* Time of the next tick. */
};

/** Of CLOCK_MONOTONIC. */
int64_t timer_now_ns(void);
/** False: errno says why. */
bool timer_open(struct timer *timer);
void timer_close(struct timer *timer);
/** Let it end a wait after this time, again and again. 0: never. */
void timer_set(struct timer *timer, int64_t period_ns);
/** It has ended a wait: let it not end the next one at once. */
void timer_read(const struct timer *timer);
/** Is it time to look after peers? Then the next such time comes after `tick_ns`. */
bool timer_has_ticked(struct timer *timer, int64_t now_ns, int64_t tick_ns);

#endif
