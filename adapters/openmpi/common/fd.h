/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fd.h
 * @brief Descriptors of the components are never 0, 1 or 2. See lib/base/fd.h, of which users of
 * the public headers see nothing.
 */
#ifndef VELO_MPI_FD_H
#define VELO_MPI_FD_H

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
