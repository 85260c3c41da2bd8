/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native engine sleeps in slices of a second or less, so that it notices peers that died; that
 * would also rescue a sleeper whose wake-up was lost. Link futex_forever.c and set this, and a
 * slice of the calling process never ends by itself: a lost wake-up becomes a hang that a test can
 * see.
 */
#ifndef VELO_TEST_FUTEX_FOREVER_H
#define VELO_TEST_FUTEX_FOREVER_H

#include <stdbool.h>

extern bool futex_forever;

#endif
