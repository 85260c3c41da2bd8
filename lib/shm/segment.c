/* SPDX-License-Identifier: Apache-2.0 */
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/compiler.h"
#include "../base/error.h"
#include "../base/order.h"
#include "process.h"
#include "sweep.h"
#include "wait.h"

/* Lock bytes lie where no segment reaches. */
#define LOCK_OWNER ((off_t)1 << 48)
#define LOCK_ENTRY(index) (LOCK_OWNER + 1 + (off_t)(index))
#define LOCK_RECLAIM (LOCK_OWNER - 1)

#define CREATE_TRIES 64
#define RECLAIM_NAP_NS (NS_PER_S / 100)

static struct segment *registry;
static bool swept;

/* A child owns none of its parent's segments: it forgets them (the mappings stay). */
void seg_acquire(void)
{
    if (process_lock()) {
        registry = NULL;
        swept = false;
    }
}

void seg_release(void) { process_unlock(); }

/* ---- locks ----------------------------------------------------------------------------------- */

static bool lock_set(int fd, off_t at, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_SETLK, &lock) == 0;
}

/* Held by any process? F_GETLK would not show a process its own locks. The lock of an open file
 * description, which is asked for here and never taken, would conflict with those, too. */
static bool lock_held(int fd, off_t at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool seg_lock_entry(const struct segment *segment, uint32_t index)
{
    return lock_set(segment->fd, LOCK_ENTRY(index), F_WRLCK);
}

void seg_unlock_entry(const struct segment *segment, uint32_t index)
{
    lock_set(segment->fd, LOCK_ENTRY(index), F_UNLCK);
}

bool seg_sender_alive(const struct segment *segment, uint32_t index)
{
    return lock_held(segment->fd, LOCK_ENTRY(index));
}

void seg_wake_owner(const struct segment *segment)
{
    uint32_t sleeping = order_read_sleeping(&segment->header->sleeping);
    if (sleeping == SEG_SLEEPS_ON_FILES || sleeping == SEG_ARMED)
        wait_doorbell_ring(segment->generation);
    else if (sleeping)
        wait_wake(&segment->header->summary);
}

static int state_status(uint64_t state)
{
    return state == SEG_OPEN     ? VELO_OK
           : state == SEG_CLOSED ? VELO_ERR_PEER_CLOSED
                                 : VELO_ERR_PEER_DEAD;
}

int seg_owner_status(const struct segment *segment)
{
    int status = state_status(order_read_entry(&segment->header->state));
    if (status || lock_held(segment->fd, LOCK_OWNER))
        return status;
    /* A closing owner says so before it lets go of its lock. */
    status = state_status(order_read_entry(&segment->header->state));
    return status ? status : VELO_ERR_PEER_DEAD;
}

/* Nobody owns the segment any more. A sender looks at its bell after each message: that makes it
 * look at the state. One that sleeps for room is woken. */
static void tell_senders(const struct segment *segment)
{
    for (uint32_t i = 0; i < segment->shape.conns_max; i++) {
        if (entry_state(order_read_entry(&segment->entries[i])) != ENTRY_READY)
            continue;
        struct seg_ring *ring = seg_ring(segment, i);
        order_set_bell(&ring->bell, BELL_RING);
        wait_wake((const uint32_t *)&ring->consumed);
    }
}

int seg_check_owner(const struct segment *segment)
{
    int status = seg_owner_status(segment);
    if (unlikely(status == VELO_ERR_PEER_DEAD) &&
        order_claim_entry(&segment->header->state, SEG_OPEN, SEG_DEAD))
        tell_senders(segment);
    return status;
}

/* ---- shape ----------------------------------------------------------------------------------- */

static bool is_power_of_two(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

static size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

int seg_shape_init(struct seg_shape *shape, uint32_t depth_slots, uint32_t data_bytes,
                   uint32_t conns_max)
{
    if (!is_power_of_two(depth_slots) || depth_slots < 8 || depth_slots > 16384)
        return velo_fail(VELO_ERR_ARG, "depth_slots is %u; give a power of two from 8 to 16384",
                         depth_slots);
    if (!is_power_of_two(data_bytes) || data_bytes < 16384 || data_bytes > (16u << 20))
        return velo_fail(VELO_ERR_ARG,
                         "data_bytes is %u; give a power of two from 16 KiB to 16 MiB", data_bytes);
    if (conns_max < 1 || conns_max > VELO_CONNS_MAX)
        return velo_fail(VELO_ERR_ARG, "conns_max is %u; give 1 to %u", conns_max, VELO_CONNS_MAX);
    shape->depth_slots = depth_slots;
    shape->data_bytes = data_bytes;
    shape->conns_max = conns_max;
    shape->table_bytes = round_up((size_t)conns_max * sizeof(uint64_t), SEG_HEADER_BYTES);
    shape->ring_bytes =
        sizeof(struct seg_ring) + (size_t)depth_slots * VELO_LINE_BYTES + data_bytes + SEG_ALIGN;
    shape->total_bytes =
        round_up(SEG_HEADER_BYTES + shape->table_bytes + conns_max * shape->ring_bytes,
                 SEG_HEADER_BYTES) +
        SEG_OUTGOING_BYTES;
    return VELO_OK;
}

int seg_header_check(const struct seg_header *header, size_t file_bytes, const char *path,
                     struct seg_shape *shape)
{
    if (header->magic != SEG_MAGIC)
        return velo_fail(VELO_ERR_CORRUPT, "%s is not a velo segment; remove it", path);
    if (header->abi != SEG_ABI || header->spec_hash != VELO_SPEC_HASH)
        return velo_fail(VELO_ERR_VERSION,
                         "%s has layout abi %u hash %016llx, this library has abi %u hash %016llx; "
                         "build both sides from the same release",
                         path, header->abi, (unsigned long long)header->spec_hash, SEG_ABI,
                         (unsigned long long)VELO_SPEC_HASH);
    if (seg_shape_init(shape, header->depth_slots, header->data_bytes, header->conns_max) ||
        shape->ring_bytes != header->ring_bytes || shape->total_bytes > file_bytes ||
        (shape->total_bytes < file_bytes && !(header->flags & SEG_HAS_TAIL)))
        return velo_fail(VELO_ERR_CORRUPT, "%s has sizes that do not fit together; remove it",
                         path);
    return VELO_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A failed system call on a segment: what it means to the caller. */
static int system_failed(const char *what, const char *path)
{
    int error = errno;
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

static int allocate(const struct segment *segment, off_t at, size_t len)
{
    int error;
    do
        error = posix_fallocate(segment->fd, at, (off_t)len);
    while (error == EINTR);
    if (error == ENOSPC)
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
    return allocate(segment, (const char *)at - (const char *)segment->header, len_bytes);
}

static off_t ring_offset(const struct segment *segment, uint32_t index)
{
    return (off_t)((char *)seg_ring(segment, index) - (char *)segment->header);
}

int seg_ring_allocate(const struct segment *segment, uint32_t index)
{
    int status = allocate(segment, ring_offset(segment, index), segment->shape.ring_bytes);
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
    /* Slots and data only: the control lines carry the position over to the next sender. What
     * shares a page with a neighbour is zeroed, which is as good as empty. */
    (void)fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    ring_offset(segment, index) + (off_t)sizeof(struct seg_ring),
                    (off_t)(segment->shape.ring_bytes - sizeof(struct seg_ring)));
}

static int map(struct segment *segment)
{
    void *base = mmap(NULL, segment->shape.total_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, segment->fd, 0);
    if (base == MAP_FAILED)
        return system_failed("map", segment->path);
    segment->header = base;
    segment->entries = (uint64_t *)((char *)base + SEG_HEADER_BYTES);
    return VELO_OK;
}

/* After seg_acquire(); see seg_put(). */
static void destroy(struct segment *segment)
{
    if (segment->header)
        munmap(segment->header, segment->shape.total_bytes);
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
    segment->refs = 1;
    return segment;
}

/* ---- names ----------------------------------------------------------------------------------- */

void seg_path(char *path, size_t path_bytes, const struct seg_domain *domain, velo_id_t id)
{
    (void)snprintf(path, path_bytes, "%s/velo.%s.%u.%u", domain->dir, domain->name,
                   VELO_ID_NODE(id), VELO_ID_VPID(id));
}

static struct segment *registry_find(const struct stat *st)
{
    for (struct segment *s = registry; s; s = s->next)
        if (s->dev == st->st_dev && s->ino == st->st_ino)
            return s;
    return NULL;
}

static void registry_add(struct segment *segment)
{
    segment->next = registry;
    registry = segment;
}

/* Look at a name without opening the file for real: an O_PATH descriptor can be closed without
 * losing record locks that this process may hold on it. Returns -1 with errno. */
static int path_open(const char *path, struct stat *st)
{
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, st) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Remove a name whose owner is dead: its lock is free, and never taken again. A lock beside it,
 * held while looking again and removing, keeps two reclaimers from removing each other's new
 * segment; were it the owner's, others would take the dead for alive meanwhile. */
static int reclaim_locked(const char *path, int fd, const struct stat *st)
{
    struct stat now;
    if (lock_held(fd, LOCK_OWNER))
        return velo_fail(VELO_ERR_IN_USE,
                         "%s is open in a live process; choose another vpid or domain", path);
    if (!lock_set(fd, LOCK_RECLAIM, F_WRLCK))
        return VELO_AGAIN;
    int status = VELO_OK;
    if (stat(path, &now) == 0 && now.st_ino == st->st_ino && now.st_dev == st->st_dev &&
        unlink(path) != 0)
        status = system_failed("remove the stale", path);
    lock_set(fd, LOCK_RECLAIM, F_UNLCK);
    return status;
}

int seg_reclaim(const char *path)
{
    struct stat st;
    int path_fd = path_open(path, &st);
    if (path_fd < 0)
        return errno == ENOENT ? VELO_OK : system_failed("look at", path);
    int status;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        status = velo_fail(VELO_ERR_ACCESS,
                           "%s belongs to another user or is no plain file; choose another domain, "
                           "or have its owner remove it",
                           path);
    } else {
        int fd = process_file_open(path_fd, &st);
        if (fd < 0) {
            status = system_failed("open", path);
        } else {
            status = reclaim_locked(path, fd, &st);
            process_file_close(fd);
        }
    }
    close(path_fd);
    return status;
}

/* ---- create ---------------------------------------------------------------------------------- */

static int create_file(const struct seg_domain *domain, struct segment *segment)
{
    struct stat st;
    int fd = open(domain->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return system_failed("create a segment in", domain->dir);
    if (fstat(fd, &st) != 0 || !process_file_add(fd, &st)) {
        close(fd);
        return velo_fail(VELO_ERR_SYSTEM, "this process has too many segments open");
    }
    segment->fd = fd;
    segment->dev = st.st_dev;
    segment->ino = st.st_ino;
    if (domain->shared &&
        (fchown(segment->fd, (uid_t)-1, domain->gid) != 0 || fchmod(segment->fd, 0660) != 0))
        return system_failed("give to the group", segment->path);
    if (ftruncate(segment->fd, (off_t)segment->shape.total_bytes) != 0)
        return system_failed("size", segment->path);
    return allocate(segment, 0, SEG_HEADER_BYTES + segment->shape.table_bytes);
}

static int create_contents(struct segment *segment, velo_id_t id, uint32_t flags)
{
    int status = map(segment);
    if (status)
        return status;
    while (segment->generation == 0)
        if (getrandom(&segment->generation, sizeof segment->generation, 0) !=
            sizeof segment->generation)
            return system_failed("name the generation of", segment->path);
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
    header->generation = segment->generation;
    order_publish_entry(&header->state, SEG_OPEN);
    if (!lock_set(segment->fd, LOCK_OWNER, F_WRLCK))
        return system_failed("lock", segment->path);
    segment->owned = true;
    return VELO_OK;
}

/* Give the finished, locked segment its name: whoever sees it sees it whole. */
static int create_name(struct segment *segment)
{
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", segment->fd);
    for (int tries = 0; tries < CREATE_TRIES; tries++) {
        if (linkat(AT_FDCWD, name, AT_FDCWD, segment->path, AT_SYMLINK_FOLLOW) == 0)
            return VELO_OK;
        if (errno != EEXIST)
            return system_failed("name", segment->path);
        int status = seg_reclaim(segment->path);
        if (status == VELO_AGAIN)
            wait_nap(RECLAIM_NAP_NS);
        else if (status)
            return status;
    }
    return velo_fail(VELO_ERR_IN_USE, "%s comes and goes; another process is fighting for it",
                     segment->path);
}

static bool is_segment(int fd)
{
    uint64_t magic = 0;
    return pread(fd, &magic, sizeof magic, 0) == (ssize_t)sizeof magic && magic == SEG_MAGIC;
}

static enum seg_owner owner_of(int fd)
{
    return lock_held(fd, LOCK_OWNER) ? OWNER_LIVES : OWNER_IS_DEAD;
}

/* Look into a file that this process has not open: closing it loses no lock. */
static enum seg_owner look_into(int path_fd)
{
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", path_fd);
    /* Nobody's lease on a file of his makes us wait. */
    int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
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
    int path_fd = path_open(path, &st);
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

/* Once in a process, after seg_acquire(): killed programs must not fill the file system.
 * Our own domain is about to have somebody alive. */
static void sweep_once(const struct seg_domain *domain)
{
    char own[sizeof domain->name];
    if (swept)
        return;
    swept = true;
    (void)snprintf(own, sizeof own, "%.*s", (int)strcspn(domain->name, "+"), domain->name);
    struct sweep sweep = {.dir = domain->dir, .spared = own, .removes = true, .is_hasty = true};
    (void)sweep_run(&sweep);
    (void)velo_fail(VELO_OK, "%s", ""); /* What it could not remove is no failure of this call. */
}

int seg_create(const struct seg_domain *domain, velo_id_t id, const struct seg_shape *shape,
               uint32_t flags, struct segment **out)
{
    int status = VELO_OK;
    struct segment *segment = segment_new(&status);
    if (!segment)
        return status;
    segment->shape = *shape;
    seg_path(segment->path, sizeof segment->path, domain, id);
    seg_acquire();
    sweep_once(domain);
    status = create_file(domain, segment);
    if (status == VELO_OK)
        status = create_contents(segment, id, flags);
    if (status == VELO_OK)
        status = create_name(segment);
    if (status == VELO_OK) {
        registry_add(segment);
        *out = segment;
    } else {
        destroy(segment);
    }
    seg_release();
    return status;
}

void seg_retire(struct segment *segment)
{
    seg_acquire();
    order_publish_entry(&segment->header->state, SEG_CLOSED);
    /* The name is ours as long as we hold the lock. */
    unlink(segment->path);
    lock_set(segment->fd, LOCK_OWNER, F_UNLCK);
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

/* Only our own segments, or those of the group that we, too, opened our port to: else anyone could
 * place a file where we look for a peer. */
static bool may_open(const struct seg_domain *domain, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return false;
    return st->st_uid == geteuid() || (domain->shared && st->st_gid == domain->gid);
}

static int open_contents(struct segment *segment, int path_fd, const struct stat *st)
{
    struct seg_header header;
    segment->fd = process_file_open(path_fd, st);
    if (segment->fd < 0)
        return system_failed("open", segment->path);
    ssize_t got = pread(segment->fd, &header, sizeof header, 0);
    if (got != (ssize_t)sizeof header)
        return velo_fail(VELO_ERR_CORRUPT, "%s is too short; remove it", segment->path);
    int status = seg_header_check(&header, (size_t)st->st_size, segment->path, &segment->shape);
    segment->generation = header.generation;
    if (status == VELO_OK)
        status = map(segment);
    return status;
}

static int open_locked(const struct seg_domain *domain, struct segment *segment,
                       struct segment **out)
{
    struct stat st;
    int path_fd = path_open(segment->path, &st);
    if (path_fd < 0) {
        if (errno == ENOENT)
            return velo_fail(VELO_ERR_NO_PEER,
                             "%s does not exist: the peer has not opened that "
                             "port, or not in this domain",
                             segment->path);
        return system_failed("look at", segment->path);
    }
    int status = VELO_OK;
    struct segment *known = registry_find(&st);
    if (known) {
        known->refs++;
        *out = known;
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
    status = seg_owner_status(found);
    if (status) {
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
        struct segment **link = &registry;
        while (*link && *link != segment)
            link = &(*link)->next;
        if (*link)
            *link = segment->next;
        /* Under the lock: closing drops this process's record locks on the file, so nobody may
         * map it anew before. */
        destroy(segment);
    }
    seg_release();
}
