/* SPDX-License-Identifier: Apache-2.0 */
/** @file native_ring.h @brief Statuses. */
#ifndef VELO_DIMMNET_NATIVE_RING_H
#define VELO_DIMMNET_NATIVE_RING_H

#include "native_layout.h"

/** Empty the ring of a process that nobody has open. */
void native_ring_reset(const struct native_map *map, uint32_t wid);
/** Leave a status with a process; VELO_OK also if it was dropped. VELO_ERR_PEER_DEAD, _PEER_CLOSED.
 */
int native_ring_post(const struct native_map *map, uint32_t wid, uint64_t status);
/** Statuses written, those of writers that did not come so far among them. */
uint64_t native_ring_written(const struct native_slot *slot);
/** The process has taken statuses up to this count, modulo 2^32. */
void native_ring_take(struct native_slot *slot, uint32_t count);
int native_ring_sleep(struct native_slot *slot, uint32_t seen, int64_t sleep_ns);

#endif
