/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fd.h
 * @brief Descriptors of velo are never 0, 1 or 2.
 *
 * If a program has closed its standard files, the next files that are opened get their numbers.
 * Whatever in the program still prints would then write into a segment, or to a socket of ours.
 *
 * The library, the transports and the adapters all open files; each may include this header.
 */
#ifndef VELO_BASE_FD_H
#define VELO_BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FD_STANDARD_MAX 2

/** A descriptor that was just opened, under a number above the standard ones; -1 with errno, also
 * if `fd` is. */
static inline int fd_above_standard(int fd)
{
    if (fd < 0 || fd > FD_STANDARD_MAX)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FD_STANDARD_MAX + 1);
    int error = errno;
    (void)close(fd);
    errno = error;
    return moved;
}

#endif
