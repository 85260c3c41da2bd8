/* SPDX-License-Identifier: Apache-2.0 */
/** @file memory.h @brief Shared by memory.c and segment.c. */
#ifndef VELO_SHM_MEMORY_H
#define VELO_SHM_MEMORY_H

#include "segment.h"

/** A system call on a segment has failed: the status that its errno means, with a sentence. */
int seg_system_failed(const char *what, const char *path);
/** May this process let the file have so many bytes, or has it as many already? */
bool seg_may_grow(int fd, uint64_t end_bytes);
/** VELO_ERR_NO_SPACE, with a sentence: it may not. */
int seg_over_limit(const char *path, uint64_t end_bytes);
/** Have the file system give memory to a part of a segment. VELO_ERR_NO_SPACE, _SYSTEM. */
VELO_PRIVATE int seg_allocate_at(const struct segment *segment, off_t at, size_t len_bytes);

#endif
