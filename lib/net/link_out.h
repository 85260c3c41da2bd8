/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file link_out.h
 * @brief The sender's end of a circuit: sending what is published, taking credits.
 */
#ifndef VELO_NET_LINK_OUT_H
#define VELO_NET_LINK_OUT_H

#include "link.h"

/** Send the slots that were published: the `carry` of a connection. */
void link_out_carry(struct velo_conn *conn);
/** Take in what has come for a connection by now, such as the end of its peer. */
void link_out_look(struct velo_conn *conn);

/* With the carrier's lock held: */

/** Its ring, which stands in for one in the peer's segment. */
static inline struct seg_ring *link_out_ring(const struct velo_link *link)
{
    return seg_ring(link->segment, 0);
}

/** A thread is about to wait for room: `room_fd` will be rung. False: it has room (`credits` are
 * not `seen` any more), or the link is over. */
bool link_out_await_room(struct velo_link *link, const uint32_t *credits, uint32_t seen);
/** It has waited. */
void link_out_leave_room(struct velo_link *link);
/** Send all that waits. False: something could not be sent. */
bool link_out_push(struct velo_link *link);
void link_out_take(struct velo_link *link, const struct velo_frame *frame);
/** The peer is gone, or refuses the connection. */
void link_out_end(struct velo_link *link, int status);

#endif
