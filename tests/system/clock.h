/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time for the library under test. Nobody but the process that carries out a command moves,
 * so whoever sleeps would sleep in vain: a sleep sets the clock on and returns. Time, and what
 * getrandom() gives, then follow from the seed, and seconds of waiting cost nothing.
 */
#ifndef VELO_SYSTEM_CLOCK_H
#define VELO_SYSTEM_CLOCK_H

#include "desk.h"

/* Use this sundial; `hung` is called when a call sleeps far longer than any may, `stopped` where a
 * command is to stop for a while. */
void clock_use(struct sundial *use, void (*hung)(void), void (*stopped)(void));
/* A new command begins: it dies or stops at this visit of a hook point (0: never), and at this one
 * (0: never) of a hook point, a look at the clock or a sleep a signal comes, and so on `times`. */
void clock_start(uint32_t die_at, uint32_t stop_at, uint32_t signal_at, uint32_t times);
/* Hook points it came by so far. */
uint32_t clock_visits(void);

#endif
