/* SPDX-License-Identifier: Apache-2.0 */
/** @file native_map.h @brief The memory of boards. */
#ifndef VELO_DIMMNET_NATIVE_MAP_H
#define VELO_DIMMNET_NATIVE_MAP_H

#include "native_layout.h"

/** Make a board's segment. It cannot be opened before native_map_show(). */
int native_map_create(const struct seg_domain *domain, uint32_t lid, uint32_t processes,
                      uint64_t sodimm_bytes, struct native_map **out);
/** Its maker has set the board up: from now on processes can open it, this one too. */
void native_map_show(struct native_map *map);
/** Map a board that another process made. VELO_ERR_NO_PEER: not there yet. */
int native_map_open(const struct seg_domain *domain, uint32_t lid, struct native_map **out);
void native_map_put(struct native_map *map);
/** Take a process that nobody has open. VELO_ERR_ARG, VELO_ERR_FULL, VELO_ERR_IN_USE,
 *  VELO_ERR_SYSTEM. */
int native_map_claim(const struct native_map *map, int wid, struct native_claim *claim);
void native_map_unclaim(const struct native_map *map, const struct native_claim *claim);
/** Has a living process it open? */
bool native_map_is_claimed(const struct native_map *map, uint32_t wid);
/** VELO_OK while the board is there, without a system call: a death may go unnoticed. */
int native_map_status(const struct native_map *map);

#endif
