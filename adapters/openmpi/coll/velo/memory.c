/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a communicator: one file without a name.
 *
 * One rank makes it and the others open it through /proc, so nothing is left behind whoever is
 * killed when. Nobody can shorten it, and each rank takes the pages that it writes before it uses
 * them: so an access cannot fail.
 */
#include "coll_velo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../../lib/base/fd.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Each area begins on a page, and so on the memory of the core that first writes it. */
static void lay_out(coll_velo_module_t *module)
{
    module->data_bank_bytes = coll_velo_bank_bytes(module->ranks);
    module->area_bytes = COLL_VELO_PAGE_BYTES + COLL_VELO_DATA_BANKS * module->data_bank_bytes;
}

static size_t size_bytes(const coll_velo_module_t *module)
{
    return (size_t)module->ranks * module->area_bytes;
}

static bool map_memory(coll_velo_module_t *module, int fd)
{
    void *areas = mmap(NULL, size_bytes(module), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (areas == MAP_FAILED)
        return false;
    module->areas = (uint8_t *)areas;
    module->own = coll_velo_area(module, module->rank);
    return true;
}

/* The kernel ends a process that lets a file grow above RLIMIT_FSIZE, by a signal. */
static bool may_have(size_t len_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           (limit.rlim_cur == RLIM_INFINITY || len_bytes <= limit.rlim_cur);
}

void coll_velo_memory_make(coll_velo_module_t *module, struct coll_velo_invitation *invitation)
{
    struct stat found;
    memset(invitation, 0, sizeof *invitation);
    lay_out(module);
    int fd = fd_above_standard(memfd_create("velo-coll", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd >= 0 && may_have(size_bytes(module)) && ftruncate(fd, (off_t)size_bytes(module)) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
        fstat(fd, &found) == 0 && map_memory(module, fd)) {
        invitation->pid = getpid();
        invitation->device = found.st_dev;
        invitation->inode = found.st_ino;
        invitation->size_bytes = size_bytes(module);
    } else if (fd >= 0) {
        (void)close(fd);
        fd = -1;
    }
    invitation->fd = fd;
}

bool coll_velo_memory_join(coll_velo_module_t *module,
                           const struct coll_velo_invitation *invitation)
{
    char path[64];
    struct stat found;
    lay_out(module);
    if (invitation->fd < 0 || invitation->size_bytes != size_bytes(module))
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)invitation->pid, (int)invitation->fd);
    int fd = fd_above_standard(open(path, O_RDWR | O_CLOEXEC));
    if (fd < 0)
        return false;
    bool good = fstat(fd, &found) == 0 && found.st_dev == invitation->device &&
                found.st_ino == invitation->inode &&
                (uint64_t)found.st_size == invitation->size_bytes && map_memory(module, fd);
    (void)close(fd);
    return good;
}

bool coll_velo_memory_have(void *from, size_t len_bytes)
{
    if (madvise(from, len_bytes, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return false;
    /* Linux before 5.14. The kernel ends a process that it has no memory for, here or later. */
    for (size_t at = 0; at < len_bytes; at += COLL_VELO_PAGE_BYTES)
        ((volatile uint8_t *)from)[at] = 0;
    return true;
}

void coll_velo_memory_drop(coll_velo_module_t *module)
{
    if (module->areas != NULL)
        (void)munmap(module->areas, size_bytes(module));
    module->areas = NULL;
    module->own = NULL;
}
