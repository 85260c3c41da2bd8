/* SPDX-License-Identifier: Apache-2.0 */
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/cancel.h"
#include "../base/compiler.h"
#include "../base/error.h"
#include "../base/handlers.h"
#include "../base/order.h"
#include "doorbell.h"
#include "files.h"
#include "lives.h"
#include "lock.h"
#include "placement.h"
#include "process.h"
#include "sweep.h"
#include "wait.h"

#define CREATE_TRIES 64
#define RECLAIM_NAP_NS (NS_PER_S / 100)

static pid_t swept_by; /* The process that has removed what others left; see sweep_once(). */

/* After seg_acquire(); see seg_put(). */
static void destroy(struct segment *segment)
{
    if (segment->header)
        munmap(segment->header, segment->shape.total_bytes);
    if (segment->has_ringer)
        doorbell_ringer_drop();
    lives_close(segment);
    if (segment->fd >= 0)
        process_file_close(segment->fd);
    free(segment);
}

static struct segment *segment_new(int *status)
{
    struct segment *segment = calloc(1, sizeof *segment);
    if (!segment) {
        *status = velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    segment->fd = -1;
    segment->lives_fd = -1;
    segment->refs = 1;
    return segment;
}

/* ---- create ---------------------------------------------------------------------------------- */

static int create_file(const struct seg_domain *domain, struct segment *segment)
{
    struct stat st;
    int status = seg_file_make(domain, segment->path, &segment->fd, &st);
    if (status)
        return status;
    segment->fd_users = 1;
    segment->dev = st.st_dev;
    segment->ino = st.st_ino;
    if (!seg_may_grow(segment->fd, segment->shape.total_bytes))
        return seg_over_limit(segment->path, segment->shape.total_bytes);
    if (ftruncate(segment->fd, (off_t)segment->shape.total_bytes) != 0)
        return seg_system_failed("size", segment->path);
    return seg_allocate_at(segment, 0, SEG_HEADER_BYTES + segment->shape.table_bytes);
}

static int create_contents(struct segment *segment, velo_id_t id, uint32_t flags)
{
    int status = seg_map(segment);
    if (status)
        return status;
    placement_here(segment->header, segment->shape.total_bytes);
    struct seg_header *header = segment->header;
    header->magic = SEG_MAGIC;
    header->spec_hash = VELO_SPEC_HASH;
    header->abi = SEG_ABI;
    header->id = id;
    header->depth_slots = segment->shape.depth_slots;
    header->data_bytes = segment->shape.data_bytes;
    header->conns_max = segment->shape.conns_max;
    header->ring_bytes = segment->shape.ring_bytes;
    header->flags = flags;
    header->pid = getpid();
    header->lives_ino = segment->lives_ino;
    header->lives_number = segment->lives_number;
    header->generation = segment->generation;
    order_publish_entry(&header->state, SEG_OPEN);
    if (lock_take(segment->fd, LOCK_OWNER) != LOCK_TAKEN)
        return seg_system_failed("lock", segment->path);
    segment->owned = true;
    return VELO_OK;
}

/* Give the finished, locked segment its name: who sees the name sees the whole segment. */
static int create_name(struct segment *segment)
{
    for (int tries = 0; tries < CREATE_TRIES; tries++) {
        if (seg_file_name(segment->fd, segment->path))
            return VELO_OK;
        if (errno != EEXIST)
            return seg_system_failed("name", segment->path);
        int status = seg_reclaim(segment->path);
        if (status == VELO_AGAIN)
            wait_nap(RECLAIM_NAP_NS);
        else if (status)
            return status;
    }
    return velo_fail(VELO_ERR_IN_USE, "%s comes and goes; another process is fighting for it",
                     segment->path);
}

/* Once in a process, after seg_acquire(): killed programs must not fill the file system. Our own
 * domain is spared, since a port in it is about to live. */
static void sweep_once(const struct seg_domain *domain)
{
    char own[sizeof domain->name];
    if (swept_by == getpid())
        return;
    swept_by = getpid();
    (void)snprintf(own, sizeof own, "%.*s", (int)strcspn(domain->name, "+"), domain->name);
    struct sweep sweep = {.dir = domain->dir, .spared = own, .removes = true, .is_hasty = true};
    (void)sweep_run(&sweep);
    (void)velo_fail(VELO_OK, "%s", ""); /* A failed removal is no failure of this call. */
}

int seg_create(const struct seg_domain *domain, velo_id_t id, const struct seg_shape *shape,
               uint32_t flags, struct segment **out)
{
    HANDLERS_LATER();
    int status = VELO_OK;
    struct segment *segment = segment_new(&status);
    if (!segment)
        return status;
    segment->shape = *shape;
    seg_path(segment->path, sizeof segment->path, domain, id);
    seg_acquire();
    sweep_once(domain);
    segment->has_ringer = doorbell_ringer_take();
    status = segment->has_ringer ? create_file(domain, segment)
                                 : seg_system_failed("make a socket for", segment->path);
    if (status == VELO_OK)
        status = lives_join(segment, domain);
    if (status == VELO_OK)
        status = create_contents(segment, id, flags);
    if (status == VELO_OK)
        status = create_name(segment);
    if (status == VELO_OK) {
        registry_add(segment);
        *out = segment;
    } else {
        if (segment->lives_fd >= 0)
            life_end(segment, segment->generation);
        destroy(segment);
    }
    seg_release();
    return status;
}

void seg_retire(struct segment *segment)
{
    seg_acquire();
    order_publish_entry(&segment->header->state, SEG_CLOSED);
    /* The name is ours as long as we hold the lock, and nobody has taken the file away. */
    (void)seg_path_remove(segment->path, segment->dev, segment->ino);
    lock_drop(segment->fd, LOCK_OWNER);
    life_end(segment, segment->generation);
    segment->owned = false;
    seg_release();
}

int seg_create_private(const struct seg_shape *shape, uint32_t generation, const char *name,
                       struct segment **out)
{
    int status = VELO_OK;
    struct segment *segment = segment_new(&status);
    if (!segment)
        return status;
    void *base = mmap(NULL, shape->total_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        free(segment);
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a ring");
    }
    (void)snprintf(segment->path, sizeof segment->path, "the ring over %s", name);
    segment->shape = *shape;
    segment->generation = generation;
    segment->header = base;
    segment->entries = (uint64_t *)((char *)base + SEG_HEADER_BYTES);
    segment->header->state = SEG_OPEN;
    segment->header->generation = generation;
    segment->entries[0] = entry_pack(ENTRY_READY, 0, 0);
    *out = segment;
    return VELO_OK;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Only our own segments, or those of the group to which we, too, opened our port: else any user
 * could place a file where we look for a peer. */
static bool may_open(const struct seg_domain *domain, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return false;
    return st->st_uid == geteuid() || (domain->shared && st->st_gid == domain->gid);
}

static int take_file(struct segment *segment, int path_fd, const struct stat *st)
{
    if (segment->fd < 0)
        segment->fd = process_file_open(path_fd, st);
    if (segment->fd < 0)
        return seg_system_failed("open", segment->path);
    segment->fd_users++;
    return VELO_OK;
}

int seg_file_take(struct segment *segment)
{
    CANCEL_LATER();
    struct stat st;
    seg_acquire();
    int path_fd = seg_path_open(segment->path, &st);
    int status;
    if (path_fd < 0)
        status = seg_system_failed("open", segment->path);
    else if (st.st_dev != segment->dev || st.st_ino != segment->ino)
        status = velo_fail(VELO_ERR_ACCESS, "%s has been taken away", segment->path);
    else
        status = take_file(segment, path_fd, &st);
    if (path_fd >= 0)
        close(path_fd);
    seg_release();
    return status;
}

void seg_file_drop(struct segment *segment)
{
    CANCEL_LATER();
    seg_acquire();
    if (--segment->fd_users == 0) {
        process_file_close(segment->fd);
        segment->fd = -1;
    }
    seg_release();
}

/* A process that closes the segment's file, and keeps it mapped, learns of the owner's death from
 * the owner's life. */
static int open_lives(struct segment *segment, const struct stat *st,
                      const struct seg_header *header)
{
    if (lives_find(segment, st, header))
        return VELO_OK;
    int error = errno;
    if (!lock_held(segment->fd, LOCK_OWNER))
        return VELO_OK; /* The file has gone with its owner. */
    errno = error;
    if (error != ENOENT)
        return seg_system_failed("open the file by which the owner lives of", segment->path);
    return velo_fail(
        VELO_ERR_ACCESS,
        "somebody has removed the file by which the owner of %s lives; close that port "
        "and open it again",
        segment->path);
}

static int open_contents(struct segment *segment, int path_fd, const struct stat *st)
{
    struct seg_header header;
    int status = take_file(segment, path_fd, st);
    if (status)
        return status;
    ssize_t got = pread(segment->fd, &header, sizeof header, 0);
    if (got != (ssize_t)sizeof header)
        return velo_fail(VELO_ERR_CORRUPT, "%s is too short; remove it", segment->path);
    status = seg_header_check(&header, (size_t)st->st_size, segment->path, &segment->shape);
    segment->generation = header.generation;
    if (status == VELO_OK)
        status = open_lives(segment, st, &header);
    if (status == VELO_OK)
        status = seg_map(segment);
    return status;
}

static int open_locked(const struct seg_domain *domain, struct segment *segment,
                       struct segment **out)
{
    struct stat st;
    int path_fd = seg_path_open(segment->path, &st);
    if (path_fd < 0) {
        if (errno == ENOENT)
            return velo_fail(VELO_ERR_NO_PEER,
                             "%s does not exist: the peer has not opened that "
                             "port, or not in this domain",
                             segment->path);
        return seg_system_failed("look at", segment->path);
    }
    int status = VELO_OK;
    struct segment *known = registry_find(&st);
    if (known) {
        status = take_file(known, path_fd, &st);
        if (status == VELO_OK) {
            known->refs++;
            *out = known;
        }
    } else if (!may_open(domain, &st)) {
        status = velo_fail(VELO_ERR_ACCESS,
                           "%s belongs to another user; both ports must be opened to one group",
                           segment->path);
    } else {
        segment->dev = st.st_dev;
        segment->ino = st.st_ino;
        status = open_contents(segment, path_fd, &st);
        if (status == VELO_OK) {
            registry_add(segment);
            *out = segment;
        }
    }
    close(path_fd);
    return status;
}

int seg_open(const struct seg_domain *domain, velo_id_t id, struct segment **out)
{
    HANDLERS_LATER();
    int status = VELO_OK;
    struct segment *segment = segment_new(&status);
    if (!segment)
        return status;
    seg_path(segment->path, sizeof segment->path, domain, id);
    struct segment *found = NULL;
    seg_acquire();
    status = open_locked(domain, segment, &found);
    if (found != segment)
        destroy(segment);
    seg_release();
    if (!found)
        return status;
    status = seg_open_owner_status(found);
    if (status) {
        seg_file_drop(found);
        seg_put(found);
        return velo_fail(status, "the port behind velo id %u.%u is no longer alive",
                         VELO_ID_NODE(id), VELO_ID_VPID(id));
    }
    *out = found;
    return VELO_OK;
}

void seg_put(struct segment *segment)
{
    seg_acquire();
    if (--segment->refs == 0) {
        registry_remove(segment);
        /* Under the lock: closing drops this process's record locks on the file, so no thread may
         * map the file again before that. */
        destroy(segment);
    }
    seg_release();
}
