/* SPDX-License-Identifier: Apache-2.0 */
/** @file memory.h @brief Memory of a segment: mapped, allocated when needed, and given back. */
#ifndef VELO_SHM_MEMORY_H
#define VELO_SHM_MEMORY_H

#include "layout.h"

/** A system call on a segment has failed: the status that its errno means, with a sentence. */
int seg_system_failed(const char *what, const char *path);
/** May this process let the file have so many bytes, or has it as many already? */
bool seg_may_grow(int fd, uint64_t end_bytes);
/** VELO_ERR_NO_SPACE, with a sentence: it may not. */
int seg_over_limit(const char *path, uint64_t end_bytes);
/** Map a segment whose file and shape are known. */
int seg_map(struct segment *segment);
/** Have the file system give memory to a part of a segment. VELO_ERR_NO_SPACE, _SYSTEM. */
VELO_PRIVATE int seg_allocate_at(const struct segment *segment, off_t at, size_t len_bytes);
/** The same for a part that is mapped. */
int seg_allocate(const struct segment *segment, const void *at, size_t len_bytes);
/** Give memory to an entry's ring, or take it back. */
int seg_ring_allocate(const struct segment *segment, uint32_t index);
void seg_ring_release(const struct segment *segment, uint32_t index);

#endif
