/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file place.h
 * @brief What both libraries take from the environment, and how they open a port.
 */
#ifndef EXTOLL_PLACE_H
#define EXTOLL_PLACE_H

#include <stdbool.h>

#include <velo/velo.h>

/* EXTOLL has 256 contexts a node; four of them are not for users. */
#define USER_VPIDS 252
#define WAIT_MS_DEFAULT 10000

/** A number of the environment. `unset` if it is not set; false: it is not min to max. */
bool place_number(const char *name, long min, long max, long unset, long *value);
/** The node that this process is on. False: the environment does not say a valid one. */
bool place_node(int *node);
/** $VELO_EXTOLL_WAIT_MS in ns; VELO_FOREVER. False: it makes no sense. */
bool place_wait_ns(int64_t *wait_ns);
/** Open a port on the lowest free user context of this node; the other attributes are the caller's.
 *  As velo_port_open(). */
int place_open(struct velo_port_attr *attr, struct velo_port **port);

/** The time, for limits; virtual where the program's is. */
int64_t place_now_ns(void);
/** Has a wait that began then lasted so long? VELO_FOREVER: it never has. */
bool place_is_over(int64_t since_ns, int64_t wait_ns);
/** Sleep a moment while nothing wakes us. */
void place_nap(void);
/** Is a connect that gave this status worth another try? A peer may come, within `wait_ns`; a full
 * table may be full of senders that have died, and gets half a second. */
bool place_tries_again(int status, int64_t since_ns, int64_t wait_ns);

#endif
