/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "../base/fd.h"
#include "memory.h"
#include "process.h"

void seg_path(char *path, size_t path_bytes, const struct seg_domain *domain, velo_id_t id)
{
    (void)snprintf(path, path_bytes, "%s/" SEG_PREFIX "%s.%u.%u", domain->dir, domain->name,
                   VELO_ID_NODE(id), VELO_ID_VPID(id));
}

static int set_up_file(const struct seg_domain *domain, const char *path, int fd, struct stat *st)
{
    if (domain->shared && (fchown(fd, (uid_t)-1, domain->gid) != 0 || fchmod(fd, 0660) != 0))
        return seg_system_failed("give to the group", path);
    return fstat(fd, st) == 0 && process_file_add(fd, st) ? VELO_OK
                                                          : seg_system_failed("create", path);
}

int seg_file_make(const struct seg_domain *domain, const char *path, int *fd, struct stat *st)
{
    int made = fd_above_standard(open(domain->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (made < 0)
        return seg_system_failed("create a file in", domain->dir);
    int status = set_up_file(domain, path, made, st);
    if (status)
        close(made);
    else
        *fd = made;
    return status;
}

/* By the thread's files: where the main thread has ended, the process itself shows none. */
bool seg_file_name(int fd, const char *path)
{
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/thread-self/fd/%d", fd);
    return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

int seg_path_open(const char *path, struct stat *st)
{
    int fd = fd_above_standard(open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (fd >= 0 && fstat(fd, st) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int seg_path_remove(const char *path, dev_t dev, ino_t ino)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == ENOENT ? VELO_OK : seg_system_failed("look at", path);
    if (st.st_dev != dev || st.st_ino != ino || unlink(path) == 0 || errno == ENOENT)
        return VELO_OK;
    return seg_system_failed("remove", path);
}
