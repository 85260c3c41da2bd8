/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/fd.h"
#include "doorbell.h"
#include "files.h"
#include "liveness.h"
#include "lock.h"
#include "memory.h"
#include "process.h"
#include "shape.h"

static struct segment *registry;

/* A child owns none of its parent's segments: it forgets them (the mappings stay). */
void seg_acquire(void)
{
    if (process_lock())
        registry = NULL;
}

void seg_release(void) { process_unlock(); }

struct segment *registry_find(const struct stat *st)
{
    for (struct segment *s = registry; s; s = s->next)
        if (s->dev == st->st_dev && s->ino == st->st_ino)
            return s;
    return NULL;
}

void registry_add(struct segment *segment)
{
    segment->next = registry;
    registry = segment;
}

void registry_remove(const struct segment *segment)
{
    struct segment **at = &registry;
    while (*at && *at != segment)
        at = &(*at)->next;
    if (*at)
        *at = segment->next;
}

/* ---- reclaim --------------------------------------------------------------------------------- */

/* Tell the senders of a dead owner, since its segment is about to lose its name: without the name
 * no other process finds the segment, so nobody would find out that the owner is dead. A file that
 * is not a segment of velo is not written to. */
static void mark_dead(const char *path, int fd, const struct stat *st)
{
    struct segment *known = registry_find(st);
    struct segment found = {.fd = fd, .lives_fd = -1};
    struct seg_header header;
    if (known) {
        seg_mark_dead(known);
        doorbell_forget(path, known->generation);
        return;
    }
    (void)snprintf(found.path, sizeof found.path, "%s", path);
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        seg_header_check(&header, (size_t)st->st_size, path, &found.shape) != VELO_OK ||
        seg_map(&found) != VELO_OK)
        return;
    seg_mark_dead(&found);
    doorbell_forget(path, header.generation);
    munmap(found.header, found.shape.total_bytes);
}

/* Has the owner of a lock closed its port, or been found dead by those who have the segment mapped?
 * Then it is about to lose that lock, too. */
static bool is_leaving(int fd)
{
    uint64_t state = SEG_OPEN;
    return pread(fd, &state, sizeof state, offsetof(struct seg_header, state)) == sizeof state &&
           (state == SEG_CLOSED || state == SEG_DEAD);
}

/* Remove a name whose owner is dead: the owner's lock is free, and never taken again. We hold a
 * second lock while we look again and remove, so that two reclaimers cannot remove each other's new
 * segment. If we held the owner's lock, others would take the dead owner for alive. */
static int reclaim_locked(const char *path, int fd, const struct stat *st)
{
    enum lock_holder owner = lock_look(fd, LOCK_OWNER);
    if (owner == LOCK_UNKNOWN)
        return seg_system_failed("look at the locks of", path);
    if (owner == LOCK_HELD && is_leaving(fd))
        return VELO_AGAIN;
    if (owner == LOCK_HELD)
        return velo_fail(VELO_ERR_IN_USE,
                         "%s is open in a live process; choose another vpid or domain", path);
    enum lock_outcome lock = lock_take(fd, LOCK_RECLAIM);
    if (lock != LOCK_TAKEN)
        return lock == LOCK_OF_OTHER ? VELO_AGAIN : seg_system_failed("lock", path);
    mark_dead(path, fd, st);
    int status = seg_path_remove(path, st->st_dev, st->st_ino);
    lock_drop(fd, LOCK_RECLAIM);
    return status;
}

int seg_reclaim(const char *path)
{
    struct stat st;
    int path_fd = seg_path_open(path, &st);
    if (path_fd < 0)
        return errno == ENOENT ? VELO_OK : seg_system_failed("look at", path);
    int status;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        status = velo_fail(VELO_ERR_ACCESS,
                           "%s belongs to another user or is no plain file; choose another domain, "
                           "or have its owner remove it",
                           path);
    } else {
        int fd = process_file_open(path_fd, &st);
        if (fd < 0) {
            status = seg_system_failed("open", path);
        } else {
            status = reclaim_locked(path, fd, &st);
            process_file_close(fd);
        }
    }
    close(path_fd);
    return status;
}

/* ---- look ------------------------------------------------------------------------------------ */

static bool is_segment(int fd)
{
    uint64_t magic = 0;
    return pread(fd, &magic, sizeof magic, 0) == (ssize_t)sizeof magic && magic == SEG_MAGIC;
}

static enum seg_owner owner_of(int fd)
{
    return lock_held(fd, LOCK_OWNER) ? OWNER_LIVES : OWNER_IS_DEAD;
}

/* Look into a file that this process does not have open: closing it loses no lock. */
static enum seg_owner look_into(int path_fd)
{
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/thread-self/fd/%d", path_fd);
    /* O_NONBLOCK: another user's lease on the file must not make us wait. */
    int fd = fd_above_standard(open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd < 0)
        return OWNER_UNKNOWN;
    enum seg_owner owner = is_segment(fd) ? owner_of(fd) : OWNER_NONE;
    close(fd);
    return owner;
}

void seg_look(const char *path, struct seg_look *look)
{
    struct stat st;
    memset(look, 0, sizeof *look);
    int path_fd = seg_path_open(path, &st);
    if (path_fd < 0)
        return;
    int known = process_file_find(&st);
    if (known >= 0)
        look->owner = owner_of(known);
    else if (S_ISREG(st.st_mode))
        look->owner = look_into(path_fd);
    look->is_mine = st.st_uid == geteuid();
    if (look->owner != OWNER_NONE)
        look->memory_bytes = (uint64_t)st.st_blocks * 512;
    close(path_fd);
}
