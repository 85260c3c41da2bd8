/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file outgoing.h
 * @brief What a segment shows of its own port's connections over transports, for people.
 *
 * A connection over shared memory stands in its receiver's segment. One over a transport may have a
 * receiver whose segment nobody here sees, so it stands in its sender's: one line of the outgoing
 * table each. Only the owner writes there. Lines from `outgoing_len` of the header on have no
 * memory yet, and are not read.
 */
#ifndef VELO_SHM_OUTGOING_H
#define VELO_SHM_OUTGOING_H

#include "segment.h"

/** Show a connection. VELO_ERR_FULL: too many; VELO_ERR_NO_SPACE, VELO_ERR_SYSTEM. */
int outgoing_add(const struct segment *segment, velo_id_t peer, const char *transport,
                 struct seg_outgoing **line);
/** It is gone. NULL: nothing to do. */
void outgoing_remove(struct seg_outgoing *line);
/** Show the counters of its ring. */
void outgoing_count(struct seg_outgoing *line, const struct seg_ring *ring);

#endif
