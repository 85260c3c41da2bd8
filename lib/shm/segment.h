/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file segment.h
 * @brief The life of a segment: to create, open and leave it.
 */
#ifndef VELO_SHM_SEGMENT_H
#define VELO_SHM_SEGMENT_H

#include "layout.h"
#include "liveness.h"
#include "lives.h"
#include "memory.h"
#include "registry.h"
#include "shape.h"

/** Create the segment of port `id`; one that a dead process left is removed. Locks are held. */
VELO_PRIVATE int seg_create(const struct seg_domain *domain, velo_id_t id,
                            const struct seg_shape *shape, uint32_t flags, struct segment **out);
/** Create a stand-in for the segment of a peer that shares no memory with us: for one connection,
 * in private memory, with the generation given. No other process finds it. VELO_ERR_NO_MEMORY. */
int seg_create_private(const struct seg_shape *shape, uint32_t generation, const char *name,
                       struct segment **out);
/** Map the segment of a peer, and have its file open until seg_file_drop(). VELO_ERR_NO_PEER,
 * _PEER_DEAD, _PEER_CLOSED, _ACCESS, _VERSION, ... */
VELO_PRIVATE int seg_open(const struct seg_domain *domain, velo_id_t id, struct segment **out);
/** Have the file of a mapped segment open, to map or allocate more of it. VELO_ERR_ACCESS: its name
 * is gone, VELO_ERR_SYSTEM: there is no descriptor left, ... */
VELO_PRIVATE int seg_file_take(struct segment *segment);
VELO_PRIVATE void seg_file_drop(struct segment *segment);
/** The owner is done: mark the segment closed, remove its name, give up the lock. */
VELO_PRIVATE void seg_retire(struct segment *segment);
/** Give up one reference. */
VELO_PRIVATE void seg_put(struct segment *segment);

#endif
