/* SPDX-License-Identifier: Apache-2.0 */
#include "lives.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../base/error.h"
#include "files.h"
#include "lock.h"
#include "memory.h"
#include "process.h"
#include "wait.h"

#define JOIN_TRIES 64
#define JOIN_NAP_NS (NS_PER_S / 100)

/* ---- names ----------------------------------------------------------------------------------- */

static void set_owner(struct segment *segment, uid_t user, bool is_shared, gid_t group)
{
    if (is_shared)
        (void)snprintf(segment->lives_of, sizeof segment->lives_of, "%u-%u", (unsigned)user,
                       (unsigned)group);
    else
        (void)snprintf(segment->lives_of, sizeof segment->lives_of, "%u", (unsigned)user);
}

/* A segment is named "<folder>/velo.<domain>[+<suffix>].<node>.<vpid>". */
static void make_path(char path[PATH_MAX], const struct segment *segment)
{
    const char *slash = strrchr(segment->path, '/');
    const char *domain = (slash ? slash + 1 : segment->path) + strlen(SEG_PREFIX);
    int bytes = (int)(domain - segment->path) + (int)strcspn(domain, ".+");
    (void)snprintf(path, PATH_MAX, "%.*s" LIVES_INFIX "%s", bytes, segment->path,
                   segment->lives_of);
}

/* VELO_AGAIN: the file has lost its name. */
static int check_name(const char *path, const struct stat *st)
{
    struct stat named;
    if (lstat(path, &named) != 0)
        return errno == ENOENT ? VELO_AGAIN : seg_system_failed("look at", path);
    return named.st_dev == st->st_dev && named.st_ino == st->st_ino ? VELO_OK : VELO_AGAIN;
}

/* ---- a life ---------------------------------------------------------------------------------- */

/* VELO_AGAIN: another life has the number, or the file is being removed. */
static int draw_life(int fd, uint32_t *generation)
{
    uint32_t drawn = 0;
    while (drawn == 0)
        if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
            return VELO_ERR_SYSTEM;
    /* The lock excludes other processes, this look the lives of our own. */
    enum lock_holder holder = lock_look(fd, drawn);
    if (holder != LOCK_FREE)
        return holder == LOCK_HELD ? VELO_AGAIN : VELO_ERR_SYSTEM;
    enum lock_outcome lock = lock_take(fd, drawn);
    if (lock != LOCK_TAKEN)
        return lock == LOCK_OF_OTHER ? VELO_AGAIN : VELO_ERR_SYSTEM;
    *generation = drawn;
    return VELO_OK;
}

int life_begin(const struct segment *segment, uint32_t *generation)
{
    int status = VELO_AGAIN;
    for (int tries = 0; status == VELO_AGAIN && tries < JOIN_TRIES; tries++)
        status = draw_life(segment->lives_fd, generation);
    return status ? seg_system_failed("lock the file of those who use", segment->path) : VELO_OK;
}

void life_end(const struct segment *segment, uint32_t generation)
{
    lock_drop(segment->lives_fd, generation);
}

int life_show(const struct segment *theirs, const struct segment *ours)
{
    if (theirs->lives_fd == ours->lives_fd ||
        lock_take(theirs->lives_fd, ours->generation) == LOCK_TAKEN)
        return VELO_OK;
    return seg_system_failed("lock the file of those who use", theirs->path);
}

bool life_goes_on(const struct segment *segment, uint32_t generation)
{
    return lock_held(segment->lives_fd, generation);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* -1 with errno; EACCES also if it is no plain file of that user. */
static int open_file(const char *path, uid_t user, struct stat *st)
{
    int path_fd = seg_path_open(path, st);
    if (path_fd < 0)
        return -1;
    int fd = -1;
    errno = EACCES;
    if (S_ISREG(st->st_mode) && st->st_uid == user)
        fd = process_file_open(path_fd, st);
    int error = errno;
    close(path_fd);
    errno = error;
    return fd;
}

/* VELO_AGAIN: another process has made it. */
static int make_file(const struct seg_domain *domain, const char *path, int *fd, struct stat *st)
{
    int status = seg_file_make(domain, path, fd, st);
    if (status || seg_file_name(*fd, path))
        return status;
    status = errno == EEXIST ? VELO_AGAIN : seg_system_failed("name", path);
    process_file_close(*fd);
    return status;
}

/* VELO_AGAIN: others join or leave at the same time. */
static int try_to_join(struct segment *segment, const struct seg_domain *domain, const char *path)
{
    struct stat st;
    int fd = open_file(path, geteuid(), &st);
    int status = VELO_OK;
    if (fd < 0)
        status =
            errno == ENOENT ? make_file(domain, path, &fd, &st) : seg_system_failed("open", path);
    if (status)
        return status;
    status = draw_life(fd, &segment->generation);
    if (status == VELO_ERR_SYSTEM)
        status = seg_system_failed("lock", path);
    if (status) {
        process_file_close(fd);
        return status;
    }
    status = check_name(path, &st);
    if (status) {
        lock_drop(fd, segment->generation);
        process_file_close(fd);
        return status;
    }
    segment->lives_fd = fd;
    segment->lives_ino = st.st_ino;
    return VELO_OK;
}

int lives_join(struct segment *segment, const struct seg_domain *domain)
{
    char path[PATH_MAX];
    set_owner(segment, geteuid(), domain->shared, domain->gid);
    make_path(path, segment);
    for (int tries = 0; tries < JOIN_TRIES; tries++) {
        int status = try_to_join(segment, domain, path);
        if (status != VELO_AGAIN)
            return status;
        if (tries > 0)
            (void)wait_nap(JOIN_NAP_NS);
    }
    return velo_fail(VELO_ERR_IN_USE, "%s is being removed by a process that does not go on", path);
}

bool lives_find(struct segment *segment, const struct stat *st, uint64_t ino)
{
    char path[PATH_MAX];
    struct stat found;
    set_owner(segment, st->st_uid, st->st_mode & S_IWGRP, st->st_gid);
    make_path(path, segment);
    int fd = open_file(path, st->st_uid, &found);
    if (fd >= 0 && (found.st_dev != st->st_dev || found.st_ino != ino)) {
        process_file_close(fd);
        errno = ENOENT;
        return false;
    }
    segment->lives_fd = fd;
    segment->lives_ino = ino;
    return fd >= 0;
}

/* Nobody joins while all bytes are locked. The lock is the open file's, unlike those of lives, so
 * that it does not meet any of our own process, either. */
static void remove_unless_used(const char *path, int fd, dev_t dev, ino_t ino)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = LOCK_LIVES};
    if (fcntl(fd, F_OFD_SETLK, &all) != 0)
        return;
    (void)seg_path_remove(path, dev, ino);
    all.l_type = F_UNLCK;
    (void)fcntl(fd, F_OFD_SETLK, &all);
}

void lives_close(struct segment *segment)
{
    char path[PATH_MAX];
    int fd = segment->lives_fd;
    if (fd < 0)
        return;
    if (process_file_refs(fd) == 1) {
        /* What is left are lives of ports that sent to others' segments; see life_show(). */
        lock_drop_range(fd, 0, LOCK_LIVES);
        make_path(path, segment);
        remove_unless_used(path, fd, segment->dev, segment->lives_ino);
    }
    process_file_close(fd);
    segment->lives_fd = -1;
}

void lives_sweep(const char *path)
{
    struct stat st;
    int fd = open_file(path, geteuid(), &st);
    if (fd < 0)
        return;
    remove_unless_used(path, fd, st.st_dev, st.st_ino);
    process_file_close(fd);
}
