/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/error.h"

int seg_system_failed(const char *what, const char *path)
{
    int error = errno;
    /* Files are named, and opened once they have been looked at, by way of the thread's files. */
    if (error == ENOENT && access("/proc/thread-self/fd", F_OK) != 0)
        return velo_fail(VELO_ERR_ACCESS,
                         "cannot %s %s: %s; velo needs /proc, which is not there: mount it, and "
                         "set VELO_SHM_DIR to a directory on tmpfs if there is no /dev/shm",
                         what, path, strerror(error));
    switch (error) {
    case ENOSPC:
        return velo_fail(VELO_ERR_NO_SPACE, "no room to %s %s; clean or enlarge that file system",
                         what, path);
    case ENOMEM:
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory to %s %s", what, path);
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENOENT:
    case ENOTDIR:
        return velo_fail(VELO_ERR_ACCESS,
                         "cannot %s %s: %s; set VELO_SHM_DIR to a directory of yours on tmpfs",
                         what, path, strerror(error));
    default:
        return velo_fail(VELO_ERR_SYSTEM, "cannot %s %s: %s", what, path, strerror(error));
    }
}

/* The kernel ends a process that lets a file grow above RLIMIT_FSIZE, by a signal: ask first. */
bool seg_may_grow(int fd, uint64_t end_bytes)
{
    struct rlimit limit;
    struct stat st;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        end_bytes <= limit.rlim_cur)
        return true;
    return fstat(fd, &st) == 0 && (uint64_t)st.st_size >= end_bytes;
}

int seg_over_limit(const char *path, uint64_t end_bytes)
{
    return velo_fail(VELO_ERR_NO_SPACE,
                     "%s needs %llu bytes, and this process may not make a file so large: raise "
                     "ulimit -f",
                     path, (unsigned long long)end_bytes);
}

int seg_map(struct segment *segment)
{
    void *base = mmap(NULL, segment->shape.total_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, segment->fd, 0);
    if (base == MAP_FAILED)
        return seg_system_failed("map", segment->path);
    segment->header = base;
    segment->entries = (uint64_t *)((char *)base + SEG_HEADER_BYTES);
    return VELO_OK;
}

int seg_allocate_at(const struct segment *segment, off_t at, size_t len)
{
    if (!seg_may_grow(segment->fd, (uint64_t)at + len))
        return seg_over_limit(segment->path, (uint64_t)at + len);
    int error;
    do
        error = posix_fallocate(segment->fd, at, (off_t)len);
    while (error == EINTR);
    if (error == ENOSPC || error == EFBIG)
        return velo_fail(VELO_ERR_NO_SPACE,
                         "no room for %zu more bytes in %s; enlarge or clean that file system, use "
                         "smaller depth_slots or data_bytes, or set VELO_SHM_DIR",
                         len, segment->path);
    if (error)
        return velo_fail(VELO_ERR_SYSTEM, "allocating %zu bytes of %s: %s", len, segment->path,
                         strerror(error));
    return VELO_OK;
}

int seg_allocate(const struct segment *segment, const void *at, size_t len_bytes)
{
    return seg_allocate_at(segment, (const char *)at - (const char *)segment->header, len_bytes);
}

static off_t ring_offset(const struct segment *segment, uint32_t index)
{
    return (off_t)((char *)seg_ring(segment, index) - (char *)segment->header);
}

int seg_ring_allocate(const struct segment *segment, uint32_t index)
{
    int status = seg_allocate_at(segment, ring_offset(segment, index), segment->shape.ring_bytes);
#ifdef MADV_POPULATE_WRITE
    if (status == VELO_OK) {
        /* Best effort: take the page faults now rather than in the first lap. */
        uintptr_t from = (uintptr_t)seg_ring(segment, index) & ~(uintptr_t)(SEG_HEADER_BYTES - 1);
        uintptr_t to = (uintptr_t)seg_ring(segment, index) + segment->shape.ring_bytes;
        (void)madvise((void *)from, to - from, MADV_POPULATE_WRITE);
    }
#endif
    return status;
}

void seg_ring_release(const struct segment *segment, uint32_t index)
{
    /* Slots and data only: the control lines keep the position for the next sender. A part that
     * shares a page with a neighbour is zeroed, and zero means empty. */
    (void)fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    ring_offset(segment, index) + (off_t)sizeof(struct seg_ring),
                    (off_t)(segment->shape.ring_bytes - sizeof(struct seg_ring)));
}
