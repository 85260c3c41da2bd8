/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file link_in.h
 * @brief The receiver's end of a circuit: a place for the sender, its slots and data, credits for
 * it.
 *
 * All functions with the carrier's lock held.
 */
#ifndef VELO_NET_LINK_IN_H
#define VELO_NET_LINK_IN_H

#include "link.h"

/** Send all that waits. False: something could not be sent. */
bool link_in_push(struct velo_link *link);
void link_in_take(struct velo_link *link, const struct velo_frame *frame);
/** The sender sends no more. Messages that it has sent stay. */
void link_in_end(struct velo_link *link, int status);
/** Its port closes. */
void link_in_close(struct velo_link *link);

#endif
