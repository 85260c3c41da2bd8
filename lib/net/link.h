/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file link.h
 * @brief The library's end of a transport's line, on both sides, and the frames that they exchange.
 *
 * The sender fills a ring in its own memory, as it would fill one in its peer's segment. Frames
 * carry its slots and data. The receiver's process puts them into a ring of its own segment, whose
 * entry it has claimed for the sender. Credits come back the same way. So neither side's hot path
 * knows of transports.
 *
 * Frames are checked: a slot's position must be one for which the sender had a credit, data must
 * lie in the data region, credits must be for slots that were sent. The receive side checks the
 * content of a slot, as natively.
 */
#ifndef VELO_NET_LINK_H
#define VELO_NET_LINK_H

#include "carrier.h"

extern const struct velo_transport_calls link_calls;

/** Connect over the carrier that reaches a peer: the connection gets a ring to fill. As
 *  velo_connect(). */
int link_connect(struct velo_conn *conn, velo_id_t peer, int64_t timeout_ns);
/** Take in what has come for a connection by now, such as the end of its peer. */
void link_look(struct velo_conn *conn);
/** The connection ends: its link leaves when all is sent. */
void link_disconnect(struct velo_conn *conn);

/* Memory that peers fetch: link_fetch.c. As the calls of a transport (transport.h). */

struct velo_exposed *link_expose(struct velo_conn *conn, const void *memory, size_t len_bytes);
void link_conceal(struct velo_port *port, velo_id_t peer, struct velo_exposed *exposed);
int link_fetch(struct velo_conn *conn, void *to, size_t len_bytes, const struct velo_exposed *from,
               int *outcome);
void link_forget(struct velo_port *port, velo_id_t peer, const int *outcome);

/* With the carrier's lock held: */

/** Send all that waits. False: something could not be sent. */
bool link_push(struct velo_link *link);
/** Has everything been sent? */
bool link_is_done(const struct velo_link *link);
/** Tell the peer that the port closes. */
void link_close(struct velo_link *link);
/** Take a link off its carrier, and free it. */
void link_free(struct velo_link *link);
/** The next link of its carrier that is not over. */
struct velo_link *link_next(const struct velo_link *link);
/** Free the links that are over. */
void links_sweep(struct carrier *carrier);

#endif
