/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that we do ourselves: with loads and stores, or with cross-memory attach. Either way
 * the key is checked and held first; see table.h.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "../base/copy.h"
#include "../base/error.h"
#include "../base/hook.h"
#include "../shm/wait.h"
#include "request.h"
#include "unit.h"

/* Runs that one system call moves; it moves 2 GiB at most. */
#define RUNS_PER_CALL 32
#define RUN_BYTES_MAX (UINT64_C(32) << 20)
/* No other process gets a pid within this time after its process was seen to live. */
#define CHECK_NS INT64_C(1000000)
/* Operations on mapped memory between two looks whether its owner lives (a system call). */
#define OPS_PER_CHECK 1024

/* A registration as it was when we looked. */
struct grant {
    uint64_t address;
    uint64_t len_bytes;
    uint64_t arena_at;
    uint64_t rights;
    uint64_t peer;
};

/* ---- keys ------------------------------------------------------------------------------------ */

hot_inline void leave_grant(struct velo_rma_peer *peer) { order_leave(&peer->row->active); }

/* Hold the registration of a key. False: the key names none. */
hot_inline bool enter_grant(struct velo_rma_peer *peer, velo_rma_key_t key, struct grant *grant)
{
    const struct table *table = &peer->table;
    uint64_t index = key % VELO_RMA_MEMS_MAX;
    const struct table_entry *entry = &table->entries[index];
    if (key == 0 || index >= order_read_entry(&table->header->backed))
        return false;
    order_enter(&peer->row->active, key);
    VELO_HOOK(HOOK_RMA_ENTERED);
    if (order_read_key(&entry->key) != key) {
        leave_grant(peer);
        return false;
    }
    grant->address = order_read_field(&entry->address);
    grant->len_bytes = order_read_field(&entry->len_bytes);
    grant->arena_at = order_read_field(&entry->arena_at);
    grant->rights = order_read_field(&entry->rights);
    grant->peer = order_read_field(&entry->peer);
    return true;
}

hot_inline bool grant_permits(const struct velo_rma_peer *peer, const struct grant *grant,
                              const struct request *request)
{
    return (grant->rights & (uint64_t)rma_request_right(request)) &&
           (grant->peer == VELO_RMA_PEER_ANY || grant->peer == peer->rma->port->id) &&
           rma_request_fits(request, grant->len_bytes);
}

static cold_path int refuse_request(struct velo_rma_peer *peer, const struct request *request)
{
    /* A unit that closed has no registrations: then report its end. */
    int status = seg_check_owner(peer->conn->segment);
    if (status)
        return velo_fail(status, "the peer is gone");
    peer->rma->counters.refused++;
    order_count_shared(&peer->table.header->refused, 1);
    return velo_fail(VELO_ERR_ACCESS,
                     "key %#llx of port %u.%u does not permit this: it is no registration, of "
                     "another peer, without the right, or shorter than offset %llu needs",
                     (unsigned long long)request->key, VELO_ID_NODE(peer->id),
                     VELO_ID_VPID(peer->id), (unsigned long long)rma_request_offset(request));
}

/* Hold the registration, if it permits the request. */
hot_inline int enter_for(struct velo_rma_peer *peer, const struct request *request,
                         struct grant *grant)
{
    if (unlikely(!enter_grant(peer, request->key, grant)))
        return refuse_request(peer, request);
    bool misaligned = rma_request_is_update(request) &&
                      (grant->address + request->offset) % request->len_bytes != 0;
    if (likely(grant_permits(peer, grant, request) && !misaligned))
        return VELO_OK;
    leave_grant(peer);
    return grant_permits(peer, grant, request)
               ? velo_fail(VELO_ERR_ARG, "offset %llu is no multiple of %llu in memory",
                           (unsigned long long)request->offset,
                           (unsigned long long)request->len_bytes)
               : refuse_request(peer, request);
}

/* Does a registration permit access to these bytes at an address? */
static bool grant_covers(const struct velo_rma_peer *peer, const struct grant *grant,
                         uint64_t address, size_t len_bytes, uint64_t rights)
{
    uint64_t offset = address - grant->address;
    return (grant->peer == VELO_RMA_PEER_ANY || grant->peer == peer->rma->port->id) &&
           (grant->rights & rights) == rights && offset < grant->len_bytes &&
           len_bytes <= grant->len_bytes - offset;
}

/* A look-up's target: the registration with a number, or, if that is 0, with bytes at an address.
 */
struct wanted {
    uint64_t number;
    uint64_t address;
    size_t len_bytes;
    uint64_t rights;
};

/* Look through the peer's registrations. False: none is the wanted one. */
static bool look_up(struct velo_rma_peer *peer, const struct wanted *wanted,
                    struct velo_rma_place *place)
{
    uint64_t backed = order_read_entry(&peer->table.header->backed);
    for (uint64_t i = 0; i < backed && i < VELO_RMA_MEMS_MAX; i++) {
        struct grant grant;
        const struct table_entry *entry = &peer->table.entries[i];
        velo_rma_key_t found = order_read_key(&entry->key);
        if (found % VELO_RMA_MEMS_MAX != i || !enter_grant(peer, found, &grant))
            continue;
        bool is_numbered = order_read_field(&entry->number) == wanted->number;
        leave_grant(peer);
        uint64_t address = wanted->number ? grant.address : wanted->address;
        if ((wanted->number == 0 || is_numbered) &&
            grant_covers(peer, &grant, address, wanted->len_bytes, wanted->rights)) {
            *place = velo_rma_place(found, address - grant.address);
            return true;
        }
    }
    return false;
}

static bool are_rights(uint32_t rights) { return rights > 0 && rights <= VELO_RMA_RIGHT_ALL; }

/* The reason why there is no such registration. */
static int find_none(const struct velo_rma_peer *peer, const struct wanted *wanted)
{
    int status = seg_check_owner(peer->conn->segment);
    if (status)
        return velo_fail(status, "the peer is gone");
    return velo_fail(VELO_ERR_ACCESS, "port %u.%u has registered nothing for us %s %#llx",
                     VELO_ID_NODE(peer->id), VELO_ID_VPID(peer->id),
                     wanted->number ? "under number" : "at",
                     (unsigned long long)(wanted->number ? wanted->number : wanted->address));
}

int velo_rma_mem_find(struct velo_rma_peer *peer, uint64_t address, size_t len_bytes,
                      uint32_t rights, struct velo_rma_place *place)
{
    if (!peer || !place || len_bytes == 0 || !are_rights(rights))
        return velo_fail(VELO_ERR_ARG,
                         "a pointer is NULL, len_bytes is 0, or rights hold none or what is no "
                         "enum velo_rma_right");
    struct wanted wanted = {.address = address, .len_bytes = len_bytes, .rights = rights};
    if (rma_peer_is_remote(peer))
        *place = velo_rma_place(TABLE_KEY_ADDRESS, address);
    else if (!look_up(peer, &wanted, place))
        return find_none(peer, &wanted);
    return VELO_OK;
}

int velo_rma_mem_lookup(struct velo_rma_peer *peer, uint32_t number, uint32_t rights,
                        struct velo_rma_place *place)
{
    if (!peer || !place || number == 0 || number > VELO_RMA_NUMBER_MAX || !are_rights(rights))
        return velo_fail(VELO_ERR_ARG,
                         "a pointer is NULL, number %u is not 1 to %u, or rights hold none or what "
                         "is no enum velo_rma_right",
                         number, VELO_RMA_NUMBER_MAX);
    struct wanted wanted = {.number = number, .len_bytes = 1, .rights = rights};
    if (rma_peer_is_remote(peer))
        *place = velo_rma_place(number, 0);
    else if (!look_up(peer, &wanted, place))
        return find_none(peer, &wanted);
    return VELO_OK;
}

bool rma_reach_at_node(struct velo_rma_peer *peer, const struct request *request, uint64_t *remote,
                       uint64_t *address)
{
    struct grant grant;
    if (!enter_grant(peer, request->key, &grant))
        return false;
    uint64_t page = order_read_field(&peer->table.entries[request->key % VELO_RMA_MEMS_MAX].page);
    leave_grant(peer);
    uint16_t offset = grant.address & (VELO_REGISTERED_ADDRESS_OFFSET_MASK);
    *remote = velo_registered_address_pack(offset, (uint32_t)(page - 1));
    *address = grant.address + rma_request_offset(request);
    return page != 0;
}

/* ---- loads and stores ------------------------------------------------------------------------ */

/* Map a peer's arena as far as it reaches now. */
static cold_path bool map_arena(struct velo_rma_peer *peer, uint64_t end)
{
    struct segment *segment = peer->conn->segment;
    uint64_t at = peer->table.at.arena_at;
    struct stat st;
    if (peer->rma->port->net->carries_all) /* The device reaches memory that we could map, too. */
        return false;
    if (seg_file_take(segment) != VELO_OK)
        return false;
    char *arena = MAP_FAILED;
    uint64_t bytes = 0;
    if (fstat(segment->fd, &st) == 0 && (uint64_t)st.st_size > at &&
        (uint64_t)st.st_size - at >= end) {
        bytes = (uint64_t)st.st_size - at;
        arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment->fd,
                     (off_t)at);
    }
    seg_file_drop(segment);
    if (arena == MAP_FAILED)
        return false;
    if (peer->arena)
        munmap(peer->arena, peer->arena_bytes);
    peer->arena = arena;
    peer->arena_bytes = bytes;
    return true;
}

/* The address of memory in this process; NULL: it is not mapped here. */
hot_inline char *find_memory(struct velo_rma_peer *peer, const struct grant *grant)
{
    if (peer->is_local)
        return (char *)(uintptr_t)grant->address;
    if (grant->arena_at == 0)
        return NULL;
    uint64_t at = grant->arena_at - 1;
    if (unlikely(at > ARENA_BYTES_MAX || grant->len_bytes > ARENA_BYTES_MAX))
        return NULL;
    if (unlikely(at + grant->len_bytes > peer->arena_bytes) &&
        !map_arena(peer, at + grant->len_bytes))
        return NULL;
    return peer->arena + at;
}

static void put_immediate(char *to, const struct request *request)
{
    size_t len = request->len_bytes;
    bool is_piece = (len & (len - 1)) == 0 && (uintptr_t)to % len == 0;
    if (is_piece)
        order_store_piece(to, request->word[0], len);
    else
        memcpy(to, request->word, len);
}

/* A peer's memory is copied as a ring is, but for what is short or begins within a line: then the
 * loop by lines would touch most of them twice. A word is moved by one move, as memmove() does it.
 */
hot_inline bool is_like_ring(const struct velo_rma_peer *peer, const void *theirs, size_t len_bytes)
{
    return len_bytes >= VELO_LINE_BYTES && !peer->is_local &&
           ((uintptr_t)theirs % VELO_LINE_BYTES == 0 || copy_is_long(len_bytes));
}

/* Memory of the same process may overlap itself, hence memmove(). */
hot_inline void copy_run(bool is_ring, void (*copy)(void *, const void *, size_t), char *to,
                         const char *from, size_t len_bytes)
{
    if (is_ring)
        copy(to, from, len_bytes);
    else
        memmove(to, from, len_bytes);
}

static void copy_runs(const struct velo_rma_peer *peer, char *base, const struct request *request)
{
    struct cursor cursor = {0};
    struct run run;
    while (rma_request_next(request, &cursor, UINT64_MAX, &run)) {
        char *theirs = base + run.offset;
        bool is_ring = is_like_ring(peer, theirs, run.len_bytes);
        if (request->op == VELO_RMA_OPERATION_GET)
            copy_run(is_ring, copy_from_ring, run.local, theirs, run.len_bytes);
        else
            copy_run(is_ring, copy_to_ring, theirs, run.local, run.len_bytes);
    }
}

static uint64_t update_words(char *at, const struct request *request)
{
    uint64_t old = rma_update(at, request);
    if (request->local)
        memcpy(request->local, &old, request->len_bytes);
    return old;
}

/* The end is read first: memory of one process may overlap itself. */
static void put_tail_last(const struct velo_rma_peer *peer, char *to, const struct request *request)
{
    size_t tail_bytes = rma_tail_bytes(to + request->len_bytes, request->len_bytes);
    size_t head_bytes = request->len_bytes - tail_bytes;
    uint64_t tail = 0;
    if (likely(tail_bytes == sizeof tail)) /* Without a call. */
        memcpy(&tail, request->local + head_bytes, sizeof tail);
    else
        memcpy(&tail, request->local + head_bytes, tail_bytes);
    if (head_bytes)
        copy_run(is_like_ring(peer, to, head_bytes), copy_to_ring, to, request->local, head_bytes);
    order_store_piece(to + head_bytes, tail, tail_bytes);
}

hot_inline void do_direct(const struct velo_rma_peer *peer, char *base,
                          const struct request *request)
{
    char *at = base + request->offset;
    if (rma_request_is_update(request))
        (void)update_words(at, request);
    else if (request->op == VELO_RMA_OPERATION_PUT_IMMEDIATE)
        put_immediate(at, request);
    else if (request->pieces || request->count != 1)
        copy_runs(peer, base, request);
    else if (request->len_bytes == 0)
        return;
    else if (request->op == VELO_RMA_OPERATION_GET)
        copy_run(is_like_ring(peer, at, request->len_bytes), copy_from_ring, request->local, at,
                 request->len_bytes);
    else if (request->how)
        put_tail_last(peer, at, request);
    else
        copy_run(is_like_ring(peer, at, request->len_bytes), copy_to_ring, at, request->local,
                 request->len_bytes);
}

/* ---- cross-memory attach --------------------------------------------------------------------- */

static cold_path int attach_failed(struct velo_rma_peer *peer)
{
    int error = errno;
    int status = seg_check_owner(peer->conn->segment);
    if (status || error == ESRCH)
        return velo_fail(status ? status : VELO_ERR_PEER_DEAD, "the peer is gone");
    if (error == EPERM || error == EACCES || error == ENOSYS) {
        peer->pid = 0; /* It has changed its credentials, for example. */
        return MUST_ASK;
    }
    return velo_fail(VELO_ERR_SYSTEM,
                     "cross-memory attach to process %d: %s; registered memory, and the local "
                     "buffer, must stay mapped",
                     (int)peer->pid, strerror(error));
}

static int attach_runs(struct velo_rma_peer *peer, bool is_get, const struct iovec *local,
                       const struct iovec *remote, size_t count)
{
    size_t wanted_bytes = 0;
    for (size_t i = 0; i < count; i++)
        wanted_bytes += local[i].iov_len;
    ssize_t moved = is_get ? process_vm_readv(peer->pid, local, count, remote, count, 0)
                           : process_vm_writev(peer->pid, local, count, remote, count, 0);
    if (likely(moved == (ssize_t)wanted_bytes))
        return VELO_OK;
    if (moved >= 0)
        errno = EFAULT; /* It stopped where memory is not mapped. */
    return attach_failed(peer);
}

/* The kernel may give the pid of a dead process to another one, but not its lock. It gives out all
 * other pids first, and that takes time. So the lock, which needs a system call, is checked only
 * once in CHECK_NS. */
static int check_process(struct velo_rma_peer *peer)
{
    int64_t now_ns = wait_now_ns();
    if (likely(now_ns - peer->checked_ns < CHECK_NS))
        return VELO_OK;
    int status = seg_check_owner(peer->conn->segment);
    if (status)
        return velo_fail(status, "the peer is gone");
    peer->checked_ns = now_ns;
    return VELO_OK;
}

/* Have the end of the last run moved by itself, after the rest: the kernel goes by runs. */
static size_t split_tail(struct iovec *local, struct iovec *remote, size_t count)
{
    struct iovec *head = &remote[count - 1];
    const char *end = (const char *)head->iov_base + head->iov_len;
    size_t tail_bytes = rma_tail_bytes(end, head->iov_len);
    if (tail_bytes == head->iov_len)
        return count;
    head->iov_len -= tail_bytes;
    local[count - 1].iov_len -= tail_bytes;
    remote[count] = (struct iovec){(char *)head->iov_base + head->iov_len, tail_bytes};
    local[count] = (struct iovec){(char *)local[count - 1].iov_base + head->iov_len, tail_bytes};
    return count + 1;
}

static int do_attach(struct velo_rma_peer *peer, uint64_t address, const struct request *request)
{
    struct iovec local[RUNS_PER_CALL + 1];
    struct iovec remote[RUNS_PER_CALL + 1];
    struct cursor cursor = {0};
    struct run run;
    int status = check_process(peer);
    if (unlikely(status))
        return status;
    do {
        size_t count = 0;
        while (count < RUNS_PER_CALL && rma_request_next(request, &cursor, RUN_BYTES_MAX, &run)) {
            remote[count] =
                (struct iovec){(void *)(uintptr_t)(address + run.offset), run.len_bytes};
            local[count++] = (struct iovec){run.local, run.len_bytes};
        }
        if (count == 0)
            break;
        if (request->how)
            count = split_tail(local, remote, count);
        status = attach_runs(peer, request->op == VELO_RMA_OPERATION_GET, local, remote, count);
    } while (status == VELO_OK);
    return status;
}

void rma_reach_probe(struct velo_rma_peer *peer)
{
    if (!peer->rma->may_attach || peer->rma->port->net->carries_all)
        return;
    const struct segment *segment = peer->conn->segment;
    const struct table_header *header = peer->table.header;
    peer->is_local = segment->owned;
    /* The pid may be of another PID namespace, and so name any process here. If the value can be
     * read at the address, the pid names the right process, and we may read its memory. */
    uint64_t expected = header->probe_value;
    uint64_t value = ~expected;
    pid_t pid = (pid_t)segment->header->pid;
    struct iovec local = {&value, sizeof value};
    struct iovec remote = {(void *)(uintptr_t)header->probe_address, sizeof value};
    if (pid > 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof value &&
        value == expected)
        peer->pid = pid;
}

/* ---- the request ----------------------------------------------------------------------------- */

hot_inline int move_data(struct velo_rma_peer *peer, char *base, const struct grant *grant,
                         const struct request *request)
{
    struct velo_rma_counters *counters = &peer->rma->counters;
    if (likely(base)) {
        do_direct(peer, base, request);
        VELO_HOOK(HOOK_RMA_MOVED);
        counters->direct++;
        return VELO_OK;
    }
    int status = do_attach(peer, grant->address, request);
    counters->attach += status == VELO_OK;
    return status;
}

/* An operation that notifies the owner: first reserve room, then move the data, then notify. */
static int move_and_note(struct velo_rma_peer *peer, char *base, const struct grant *grant,
                         const struct request *request)
{
    void *place;
    int status = velo_try_reserve(peer->conn, sizeof(struct wire_note), &place);
    if (status)
        return status;
    status = move_data(peer, base, grant, request);
    bool is_put = rma_request_right(request) == VELO_RMA_RIGHT_WRITE;
    struct wire_note note = {.class_ = is_put ? VELO_RMA_CLASS_COMPLETER : VELO_RMA_CLASS_RESPONDER,
                             .op = request->op,
                             .len_bytes = request->len_bytes,
                             .address = grant->address + rma_request_offset(request),
                             .cookie = request->cookie};
    memcpy(place, &note, sizeof note);
    (void)velo_commit(peer->conn, sizeof note, status ? WIRE_NOTHING : WIRE_NOTE);
    return status;
}

/* An update that notifies the owner, also of what the word is now. */
static int update_and_note(struct velo_rma_peer *peer, char *base, const struct grant *grant,
                           const struct request *request)
{
    void *place;
    int status = velo_try_reserve(peer->conn, sizeof(struct wire_note_update), &place);
    if (status)
        return status;
    uint64_t old = update_words(base + request->offset, request);
    VELO_HOOK(HOOK_RMA_MOVED);
    peer->rma->counters.direct++;
    struct wire_note_update update = {.note = {.class_ = VELO_RMA_CLASS_RESPONDER,
                                               .op = request->op,
                                               .address = grant->address + request->offset,
                                               .cookie = request->cookie}};
    update.note.len_bytes = rma_update_outcome(request, old, &update.word);
    memcpy(place, &update, sizeof update);
    (void)velo_commit(peer->conn, sizeof update, WIRE_NOTE);
    return VELO_OK;
}

/* Mapped memory does not show whether its owner is dead: ask now and then. */
hot_inline int check_owner(struct velo_rma_peer *peer)
{
    if (unlikely(order_read_entry(&peer->conn->header->state) != SEG_OPEN))
        return velo_fail(seg_owner_status(peer->conn->segment), "the peer is gone");
    if (likely(++peer->active_ops < OPS_PER_CHECK))
        return VELO_OK;
    peer->active_ops = 0;
    int status = seg_check_owner(peer->conn->segment);
    return status ? velo_fail(status, "the peer is gone") : VELO_OK;
}

int rma_reach_do(struct velo_rma_peer *peer, const struct request *request)
{
    struct grant grant = {0};
    int status = check_owner(peer);
    if (unlikely(status == VELO_OK && rma_peer_is_remote(peer)))
        return MUST_ASK;
    if (likely(status == VELO_OK))
        status = enter_for(peer, request, &grant);
    if (unlikely(status))
        return status;
    char *base = find_memory(peer, &grant);
    if (unlikely(!base && (!peer->pid || rma_request_is_update(request))))
        status = MUST_ASK;
    else if (request->notify & (VELO_RMA_NOTIFY_RESPONDER | VELO_RMA_NOTIFY_COMPLETER))
        status = unlikely(rma_request_is_update(request))
                     ? update_and_note(peer, base, &grant, request)
                     : move_and_note(peer, base, &grant, request);
    else
        status = move_data(peer, base, &grant, request);
    leave_grant(peer);
    return status;
}

int rma_reach_check(struct velo_rma_peer *peer, const struct request *request)
{
    struct grant grant = {0};
    if (rma_peer_is_remote(peer))
        return MUST_ASK; /* Its owner checks. */
    int status = enter_for(peer, request, &grant);
    if (status)
        return status;
    bool is_reached = find_memory(peer, &grant) || (peer->pid && !rma_request_is_update(request));
    leave_grant(peer);
    return is_reached ? VELO_OK : MUST_ASK;
}
