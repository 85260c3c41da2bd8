/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file carry_on.h
 * @brief What a wait in one library does for the ports of the other.
 *
 * EXTOLL's hardware needs no program to finish what was posted. Here some operations need further
 * calls of this process: those that had no room when they were posted, and those that a peer has
 * asked this process for. A program may wait in velo2 meanwhile. So rma2 tells velo2 how to carry
 * on with its ports, and each call of either library that waits, or looks in vain, does so.
 */
#ifndef EXTOLL_CARRY_ON_H
#define EXTOLL_CARRY_ON_H

#include <stdbool.h>
#include <stdint.h>

/** Looks in vain before a wait sleeps for a slice. In virtual time these last some milliseconds. */
#define LOOKS_PER_SLICE 64
/** How long a wait sleeps before it carries on with other ports again. */
#define SLICE_NS INT64_C(1000000)

/** Carry on with all ports, but for those that other threads use now. True: there was something to
 *  do. */
typedef bool (*carry_on_fn)(void);

/** For librma2 alone: how waits of velo2 carry on with its ports; NULL while it has none. */
__attribute__((visibility("default"))) void velo2_set_carry_on(carry_on_fn carry_on);

#endif
