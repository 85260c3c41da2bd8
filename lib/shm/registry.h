/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file registry.h
 * @brief The segments that this copy of the library has mapped, their lock, and what the names in
 *        the directory of a domain stand for.
 */
#ifndef VELO_SHM_REGISTRY_H
#define VELO_SHM_REGISTRY_H

#include <sys/stat.h>

#include "layout.h"

/** Lock: one thread of the process has it at a time, of all copies of the library; see process.h.
 */
VELO_PRIVATE void seg_acquire(void);
VELO_PRIVATE void seg_release(void);

/* After seg_acquire(): */

/** The mapped segment of a file; NULL: there is none. */
struct segment *registry_find(const struct stat *st);
void registry_add(struct segment *segment);
void registry_remove(const struct segment *segment);

/** The owner of a name's segment. */
enum seg_owner {
    OWNER_NONE,    /* No segment, or none any more. */
    OWNER_LIVES,   /* Its owner lives. */
    OWNER_IS_DEAD, /* Its owner's lock is free, and never taken again. */
    OWNER_UNKNOWN, /* The segment is another user's, and we may not open it. */
};

struct seg_look {
    enum seg_owner owner;
    bool is_mine; /* It belongs to this user. */
    uint64_t memory_bytes;
};

/** Look at a name, from outside. */
void seg_look(const char *path, struct seg_look *look);
/** Free a name that a dead process of this user left; VELO_OK also if it became free by itself.
 *  VELO_AGAIN: another process is about to free it. VELO_ERR_IN_USE, VELO_ERR_ACCESS,
 *  VELO_ERR_SYSTEM. */
int seg_reclaim(const char *path);

#endif
