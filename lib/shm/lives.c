/* SPDX-License-Identifier: Apache-2.0 */
#include "lives.h"

#include <errno.h>
#include <inttypes.h>
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
#define NUMBERS_MAX 64u
#define JOIN_NAP_NS (NS_PER_S / 100)

/* ---- names ----------------------------------------------------------------------------------- */

/* A segment is named "<folder>/velo.<domain>[+<suffix>].<node>.<vpid>". */
static void make_path(char path[PATH_MAX], const struct segment *segment)
{
    const char *slash = strrchr(segment->path, '/');
    const char *domain = (slash ? slash + 1 : segment->path) + strlen(SEG_PREFIX);
    int bytes = (int)(domain - segment->path) + (int)strcspn(domain, ".+");
    (void)snprintf(path, PATH_MAX, "%.*s" LIVES_INFIX "%" PRIu32, bytes, segment->path,
                   segment->lives_number);
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
    if (status == VELO_AGAIN)
        return velo_fail(VELO_ERR_SYSTEM,
                         "each of %d numbers drawn for a life that uses %s is taken: another "
                         "process has all bytes of the file of those who live locked",
                         JOIN_TRIES, segment->path);
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

/* -1 with errno. */
static int open_found(int path_fd, const struct stat *st)
{
    int fd = process_file_open(path_fd, st);
    int error = errno;
    close(path_fd);
    errno = error;
    return fd;
}

/* -1 with errno; EACCES also if it is no plain file of that user. */
static int open_file(const char *path, uid_t user, struct stat *st)
{
    int path_fd = seg_path_open(path, st);
    if (path_fd < 0)
        return -1;
    if (S_ISREG(st->st_mode) && st->st_uid == user)
        return open_found(path_fd, st);
    close(path_fd);
    errno = EACCES;
    return -1;
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

static bool is_ours(const struct stat *st, const struct seg_domain *domain)
{
    bool is_shared = st->st_mode & S_IWGRP;
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && is_shared == domain->shared &&
           (!is_shared || st->st_gid == domain->gid);
}

/* Our user's file for ports that are opened so. Another's file may have its name: by chance where
 * two namespaces give one number to different users, or to be in our way. */
static int open_or_make(struct segment *segment, const struct seg_domain *domain,
                        char path[PATH_MAX], int *fd, struct stat *st)
{
    for (uint32_t i = 0; i < NUMBERS_MAX; i++) {
        segment->lives_number = geteuid() + i;
        make_path(path, segment);
        int path_fd = seg_path_open(path, st);
        if (path_fd < 0)
            return errno == ENOENT ? make_file(domain, path, fd, st)
                                   : seg_system_failed("look at", path);
        if (is_ours(st, domain)) {
            *fd = open_found(path_fd, st);
            return *fd >= 0 ? VELO_OK : seg_system_failed("open", path);
        }
        close(path_fd);
    }
    return velo_fail(VELO_ERR_ACCESS,
                     "%s and %u files before it are not of this user; choose another domain", path,
                     NUMBERS_MAX - 1);
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

/* The last one of this process to close the file also tries to remove it. */
static void leave_file(const char *path, int fd, dev_t dev, ino_t ino)
{
    if (process_file_refs(fd) == 1) {
        /* Locks that life_show() took for ports of this process, whose own lives are in other
         * files. */
        lock_drop_range(fd, 0, LOCK_LIVES);
        remove_unless_used(path, fd, dev, ino);
    }
    process_file_close(fd);
}

/* VELO_AGAIN: others join or leave at the same time. */
static int try_to_join(struct segment *segment, const struct seg_domain *domain)
{
    char path[PATH_MAX];
    struct stat st;
    int fd = -1;
    int status = open_or_make(segment, domain, path, &fd, &st);
    if (status)
        return status;
    status = draw_life(fd, &segment->generation);
    if (status == VELO_OK) {
        status = check_name(path, &st);
        if (status)
            lock_drop(fd, segment->generation);
    } else if (status == VELO_ERR_SYSTEM) {
        status = seg_system_failed("lock", path);
    }
    if (status) {
        leave_file(path, fd, st.st_dev, st.st_ino);
        return status;
    }
    segment->lives_fd = fd;
    segment->lives_ino = st.st_ino;
    return VELO_OK;
}

int lives_join(struct segment *segment, const struct seg_domain *domain)
{
    for (int tries = 0; tries < JOIN_TRIES; tries++) {
        int status = try_to_join(segment, domain);
        if (status != VELO_AGAIN)
            return status;
        if (tries > 0)
            (void)wait_nap(JOIN_NAP_NS);
    }
    return velo_fail(VELO_ERR_IN_USE,
                     "the file by which the owner of %s would live is being removed by a process "
                     "that does not go on",
                     segment->path);
}

bool lives_find(struct segment *segment, const struct stat *st, const struct seg_header *header)
{
    char path[PATH_MAX];
    struct stat found;
    segment->lives_number = header->lives_number;
    segment->lives_ino = header->lives_ino;
    make_path(path, segment);
    int fd = open_file(path, st->st_uid, &found);
    if (fd >= 0 && (found.st_dev != st->st_dev || found.st_ino != segment->lives_ino)) {
        process_file_close(fd);
        errno = ENOENT;
        return false;
    }
    segment->lives_fd = fd;
    return fd >= 0;
}

void lives_close(struct segment *segment)
{
    char path[PATH_MAX];
    if (segment->lives_fd < 0)
        return;
    make_path(path, segment);
    leave_file(path, segment->lives_fd, segment->dev, segment->lives_ino);
    segment->lives_fd = -1;
}

void lives_sweep(const char *path)
{
    struct stat st;
    int fd = open_file(path, geteuid(), &st);
    if (fd < 0)
        return;
    leave_file(path, fd, st.st_dev, st.st_ino);
}
