/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file lock.h
 * @brief Record locks on bytes of a segment's file. They tell which processes live.
 */
#ifndef VELO_SHM_LOCK_H
#define VELO_SHM_LOCK_H

#include <fcntl.h>
#include <stdbool.h>

/* Lock bytes lie where no segment reaches. */
#define LOCK_OWNER ((off_t)1 << 48)
#define LOCK_ENTRY(index) (LOCK_OWNER + 1 + (off_t)(index))
#define LOCK_RECLAIM (LOCK_OWNER - 1)

static inline bool lock_set(int fd, off_t at, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_SETLK, &lock) == 0;
}

/** Held by any process? F_GETLK would not show a process its own locks. So this asks, without
 * taking it, for a lock of an open file description, which conflicts with those, too. */
static inline bool lock_held(int fd, off_t at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

#endif
