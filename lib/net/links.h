/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file links.h
 * @brief The links of a carrier, of both kinds, and what a transport calls.
 *
 * All functions with the carrier's lock held.
 */
#ifndef VELO_NET_LINKS_H
#define VELO_NET_LINKS_H

#include "carrier.h"

extern const struct velo_transport_calls link_calls;

/** Send all that waits. False: something could not be sent. */
bool links_push(struct carrier *carrier);
/** Tell the peers that the port closes. */
void links_close(struct carrier *carrier);
/** Has everything been sent of those that leave? */
bool links_are_done(const struct carrier *carrier);
/** Free the links that are over. */
void links_sweep(struct carrier *carrier);
/** Free all of them. */
void links_free(struct carrier *carrier);

#endif
