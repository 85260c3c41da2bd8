/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file lock.h
 * @brief Record locks on bytes of a file. They tell which processes live.
 */
#ifndef VELO_SHM_LOCK_H
#define VELO_SHM_LOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

/* Of a segment's file, for those that come by its name: bytes where no segment reaches. */
#define LOCK_OWNER ((off_t)1 << 48)
#define LOCK_RECLAIM (LOCK_OWNER - 1)
/* Of the file in lives.h: as many bytes as there are generations. */
#define LOCK_LIVES ((off_t)1 << 32)

enum lock_outcome {
    LOCK_TAKEN,
    LOCK_OF_OTHER, /* Another process has it. */
    LOCK_REFUSED,  /* The system gives none: errno says why. */
};

static inline enum lock_outcome lock_take(int fd, off_t at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    if (fcntl(fd, F_SETLK, &lock) == 0)
        return LOCK_TAKEN;
    return errno == EAGAIN || errno == EACCES ? LOCK_OF_OTHER : LOCK_REFUSED;
}

static inline void lock_drop_range(int fd, off_t at, off_t len)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = len};
    (void)fcntl(fd, F_SETLK, &lock);
}

static inline void lock_drop(int fd, off_t at) { lock_drop_range(fd, at, 1); }

enum lock_holder {
    LOCK_FREE,
    LOCK_HELD,    /* By any process, this one too. */
    LOCK_UNKNOWN, /* The system does not say: errno says why. */
};

/** F_GETLK would not show a process its own locks. So this asks, without taking it, for a lock of
 * an open file description, which conflicts with those, too. */
static inline enum lock_holder lock_look(int fd, off_t at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
        return LOCK_UNKNOWN;
    return lock.l_type == F_UNLCK ? LOCK_FREE : LOCK_HELD;
}

/** May a process hold it? Where that is unknown, nobody is taken for dead. */
static inline bool lock_held(int fd, off_t at) { return lock_look(fd, at) != LOCK_FREE; }

#endif
