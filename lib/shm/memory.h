/* SPDX-License-Identifier: Apache-2.0 */
/** @file memory.h @brief What memory.c and segment.c have of each other. */
#ifndef VELO_SHM_MEMORY_H
#define VELO_SHM_MEMORY_H

#include "segment.h"

/** A system call on a segment has failed, with errno: what that means to the caller. */
int seg_system_failed(const char *what, const char *path);
/** Have the file system give memory to a part of a segment. VELO_ERR_NO_SPACE, _SYSTEM. */
int seg_allocate_at(const struct segment *segment, off_t at, size_t len_bytes);

#endif
