/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file outgoing.h
 * @brief The connections over transports that a segment's own port has, shown for people.
 *
 * A connection over shared memory is shown in its receiver's segment. The segment of a receiver
 * over a transport may not be visible here, so such a connection is shown in its sender's segment:
 * each has one row of the outgoing table. Only the owner writes there. Rows from `outgoing_len`
 * of the header on have no memory yet, and are not read.
 */
#ifndef VELO_SHM_OUTGOING_H
#define VELO_SHM_OUTGOING_H

#include "layout.h"

/** Show a connection. VELO_ERR_FULL: too many; VELO_ERR_NO_SPACE, VELO_ERR_SYSTEM. */
int outgoing_add(struct segment *segment, velo_id_t peer, const char *transport,
                 struct seg_outgoing **row);
/** The connection is gone. NULL: nothing to do. */
void outgoing_remove(struct segment *segment, struct seg_outgoing *row);
/** Show the counters of the connection's ring. */
void outgoing_count(struct seg_outgoing *row, const struct seg_ring *ring);

#endif
