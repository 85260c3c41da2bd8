/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file link.h
 * @brief One line of a transport: what both sides keep of it, and the frames that they exchange.
 *
 * The sender fills a ring of its own memory, as it would fill one in its peer's segment; the frames
 * take its slots and data along; the receiver's process puts them into a ring of its own segment,
 * of which it has claimed the entry for the sender. Credits come back the same way. So neither
 * side's hot path knows of transports.
 *
 * What comes is checked: a slot's position must be one for which the sender had a credit, data must
 * lie in the data region, credits must be for what was sent. What a slot says is checked by the
 * receive side, as natively.
 */
#ifndef VELO_CORE_LINK_H
#define VELO_CORE_LINK_H

#include "carrier.h"

extern const struct velo_transport_calls link_calls;

/** Connect over a carrier: the connection gets a ring to fill. As velo_connect(). */
int link_connect(struct velo_conn *conn, struct carrier *carrier, velo_id_t peer,
                 int64_t timeout_ns);
/** Send what was published. */
void link_send(struct velo_conn *conn);
/** Take in what has come for it by now, such as the end of its peer. */
void link_look(struct velo_conn *conn);
/** The connection ends: its link leaves when all is sent. */
void link_disconnect(struct velo_conn *conn);

/* With the carrier's lock held: */

/** Send what waits. False: there is something that could not be sent. */
bool link_push(struct velo_link *link);
/** Is nothing left to be sent? */
bool link_is_done(const struct velo_link *link);
/** Tell the peer that the port closes. */
void link_close(struct velo_link *link);
/** Take a link off its carrier, and free it. */
void link_free(struct velo_link *link);
/** The next one of its carrier, which is not over. */
struct velo_link *link_next(const struct velo_link *link);
/** Free those that are over. */
void links_sweep(struct carrier *carrier);

#endif
