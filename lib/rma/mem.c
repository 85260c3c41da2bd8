/* SPDX-License-Identifier: Apache-2.0 */
/* Registered and allocated memory. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/fork.h"
#include "../shm/memory.h"
#include "../shm/wait.h"
#include "unit.h"

/* Looks at a requester's row between two checks whether the requester lives. */
#define LOOKS_PER_CHECK 1000
#define BUSY_NAP_NS 20000

/* ---- registrations --------------------------------------------------------------------------- */

static int check_registration(const struct velo_rma *rma, size_t len_bytes, uint32_t rights,
                              velo_id_t peer, struct velo_rma_mem **out)
{
    if (!rma || !out)
        return velo_fail(VELO_ERR_ARG, "rma or mem is NULL");
    *out = NULL;
    if (len_bytes == 0)
        return velo_fail(VELO_ERR_ARG, "len_bytes is 0; register at least 1 byte");
    if (rights == 0 || (rights & ~(uint32_t)VELO_RMA_RIGHT_ALL))
        return velo_fail(VELO_ERR_ARG, "rights is %#x; give one or more of enum velo_rma_right",
                         rights);
    if (peer != VELO_RMA_PEER_ANY && peer >= IDS_MAX)
        return velo_fail(VELO_ERR_ARG,
                         "peer is %#x; give an id made with VELO_ID(), or "
                         "VELO_RMA_PEER_ANY",
                         peer);
    return VELO_OK;
}

/* An unused registration, or NULL with *status. */
static struct velo_rma_mem *take_free_mem(struct velo_rma *rma, int *status)
{
    struct velo_rma_mem *mem = rma->mems_free;
    if (likely(mem)) {
        rma->mems_free = mem->next;
        return mem;
    }
    if (rma->mems_used == VELO_RMA_MEMS_MAX) {
        *status = velo_fail(VELO_ERR_FULL, "%u registrations are in use; deregister some",
                            VELO_RMA_MEMS_MAX);
        return NULL;
    }
    CANCEL_LATER();
    if (rma->mems_used == rma->table.backed)
        *status = rma_table_back(&rma->table, rma->port->segment);
    if (*status)
        return NULL;
    mem = &rma->mems[rma->mems_used++];
    mem->rma = rma;
    return mem;
}

/* No two keys of a unit are the same, since the step is odd. A key is never 0. */
static uint64_t next_key(struct velo_rma *rma, uint64_t index)
{
    do
        rma->key_last += rma->key_step;
    while (rma->key_last << TABLE_INDEX_BITS == 0);
    return rma->key_last << TABLE_INDEX_BITS | index;
}

/* Let the device, if there is one, reach the memory before its key is published. */
static cold_path void enter_device(struct velo_rma_mem *mem)
{
    mem->has_more |= mem->rma->device->enter(mem);
}

static void publish_key(struct velo_rma *rma, struct velo_rma_mem *mem)
{
    uint64_t index = (uint64_t)(mem - rma->mems);
    struct table_entry *entry = &rma->table.entries[index];
    mem->key = next_key(rma, index);
    order_write_field(&entry->address, (uintptr_t)mem->addr);
    order_write_field(&entry->len_bytes, mem->len_bytes);
    order_write_field(&entry->arena_at, mem->arena_bytes ? mem->arena_at + 1 : 0);
    order_write_field(&entry->rights, mem->rights);
    order_write_field(&entry->peer, mem->peer);
    mem->number = 0;
    order_write_field(&entry->number, 0);
    order_publish_key(&entry->key, mem->key);
    rma->counters.registered++;
}

int velo_rma_mem_register(struct velo_rma *rma, void *addr, size_t len_bytes, uint32_t rights,
                          velo_id_t peer, struct velo_rma_mem **out)
{
    int status = check_registration(rma, len_bytes, rights, peer, out);
    if (unlikely(status))
        return status;
    if (unlikely(!addr || (uintptr_t)addr + len_bytes < len_bytes))
        return velo_fail(VELO_ERR_ARG, "addr is NULL, or the memory ends beyond the address space");
    struct velo_rma_mem *mem = take_free_mem(rma, &status);
    if (unlikely(!mem))
        return status;
    mem->addr = addr;
    mem->len_bytes = len_bytes;
    mem->rights = rights;
    mem->peer = peer;
    if (unlikely(!rma->is_plain))
        enter_device(mem);
    publish_key(rma, mem);
    *out = mem;
    return VELO_OK;
}

/* ---- the arena ------------------------------------------------------------------------------- */

/* Find the lowest gap that is large enough. Returns the allocation before it; NULL: none is before.
 */
static struct velo_rma_mem *find_gap(const struct velo_rma *rma, uint64_t bytes)
{
    struct velo_rma_mem *before = NULL;
    uint64_t end = 0;
    for (struct velo_rma_mem *mem = rma->allocated; mem; mem = mem->next) {
        if (mem->arena_at - end >= bytes)
            break;
        before = mem;
        end = mem->arena_at + mem->arena_bytes;
    }
    return before;
}

static void punch_arena(const struct velo_rma *rma, uint64_t arena_at, uint64_t bytes)
{
    (void)fallocate(rma->port->segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)(rma->table.at.arena_at + arena_at), (off_t)bytes);
}

static int map_range(const struct velo_rma *rma, struct velo_rma_mem *mem)
{
    const struct segment *segment = rma->port->segment;
    uint64_t at = rma->table.at.arena_at + mem->arena_at;
    int status = mem->arena_at + mem->arena_bytes > ARENA_BYTES_MAX
                     ? velo_fail(VELO_ERR_NO_SPACE, "%llu bytes are more than a unit's arena holds",
                                 (unsigned long long)mem->arena_bytes)
                     : seg_allocate_at(segment, (off_t)at, mem->arena_bytes);
    if (status)
        return status;
    void *base =
        mmap(NULL, mem->arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, (off_t)at);
    if (base == MAP_FAILED) {
        punch_arena(rma, mem->arena_at, mem->arena_bytes);
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory to map %llu bytes",
                         (unsigned long long)mem->arena_bytes);
    }
    mem->addr = base;
    return VELO_OK;
}

static void give_back(struct velo_rma *rma, struct velo_rma_mem *mem)
{
    mem->next = rma->mems_free;
    rma->mems_free = mem;
}

int velo_rma_mem_alloc(struct velo_rma *rma, size_t len_bytes, uint32_t rights, velo_id_t peer,
                       struct velo_rma_mem **out)
{
    CANCEL_LATER();
    int status = check_registration(rma, len_bytes, rights, peer, out);
    if (status)
        return status;
    if (len_bytes > ARENA_BYTES_MAX)
        return velo_fail(VELO_ERR_NO_SPACE, "%zu bytes are more than a unit's arena holds",
                         len_bytes);
    struct velo_rma_mem *mem = take_free_mem(rma, &status);
    if (!mem)
        return status;
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    mem->len_bytes = len_bytes;
    mem->arena_bytes = (len_bytes + page_bytes - 1) / page_bytes * page_bytes;
    struct velo_rma_mem *before = find_gap(rma, mem->arena_bytes);
    mem->arena_at = before ? before->arena_at + before->arena_bytes : 0;
    status = map_range(rma, mem);
    if (status) {
        mem->arena_bytes = 0;
        give_back(rma, mem);
        return status;
    }
    mem->has_more = true;
    struct velo_rma_mem **link = before ? &before->next : &rma->allocated;
    mem->next = *link;
    *link = mem;
    mem->rights = rights;
    mem->peer = peer;
    enter_device(mem);
    publish_key(rma, mem);
    *out = mem;
    return VELO_OK;
}

static void release_range(struct velo_rma *rma, struct velo_rma_mem *mem)
{
    struct velo_rma_mem **link = &rma->allocated;
    while (*link != mem)
        link = &(*link)->next;
    *link = mem->next;
    munmap(mem->addr, mem->arena_bytes);
    punch_arena(rma, mem->arena_at, mem->arena_bytes);
    mem->arena_bytes = 0;
}

/* Release the parts of a registration beside its key. */
static cold_path void release_parts(struct velo_rma *rma, struct velo_rma_mem *mem)
{
    CANCEL_LATER();
    rma->device->withdraw(mem);
    if (mem->arena_bytes)
        release_range(rma, mem);
    mem->has_more = false;
}

/* ---- deregistering --------------------------------------------------------------------------- */

/* Does the requester that wrote into a row still live? Its connection may be another port's by
 * now. That port may leave the row as it is: a connection for answers does not use the row. */
static bool is_alive(const struct velo_rma *rma, uint32_t index)
{
    const struct segment *segment = rma->port->segment;
    uint64_t entry = order_read_entry(&segment->entries[index]);
    return entry_state(entry) != ENTRY_FREE &&
           entry_generation(entry) == order_read_entry(&rma->table.rows[index].generation) &&
           life_goes_on(segment, entry_generation(entry));
}

/* Wait until nobody uses a key, which stands in no entry any more. False: the time is over. */
static bool wait_for_requesters(const struct velo_rma *rma, uint64_t key, int64_t timeout_ns)
{
    int64_t end_ns = timeout_ns ? wait_end_ns(wait_now_ns(), timeout_ns) : 0;
    uint64_t rows = order_read_entry(&rma->table.header->rows_used);
    if (rows > rma->port->shape.conns_max)
        rows = rma->port->shape.conns_max;
    for (uint32_t i = 0; i < rows; i++) {
        const struct table_row *row = &rma->table.rows[i];
        for (uint32_t looks = 1; order_read_active(&row->active) == key; looks++) {
            order_pause();
            if (looks % LOOKS_PER_CHECK != 0)
                continue;
            if (!is_alive(rma, i))
                break;
            if (timeout_ns == 0 || wait_now_ns() >= end_ns)
                return false;
            (void)wait_nap(BUSY_NAP_NS);
        }
    }
    return true;
}

int velo_rma_mem_deregister(struct velo_rma_mem *mem, int64_t timeout_ns)
{
    if (unlikely(timeout_ns < VELO_FOREVER))
        return velo_fail(VELO_ERR_ARG, "timeout_ns is below -1");
    if (!mem || unlikely(!fork_is_ours(mem->rma->port->process)))
        return VELO_OK;
    struct velo_rma *rma = mem->rma;
    uint64_t key = mem->key;
    order_publish_key(&rma->table.entries[mem - rma->mems].key, 0);
    order_full_fence();
    if (unlikely(!wait_for_requesters(rma, key, timeout_ns)))
        return VELO_TIMEOUT;
    mem->key = 0;
    if (mem->has_more)
        release_parts(rma, mem);
    give_back(rma, mem);
    rma->counters.registered--;
    return VELO_OK;
}

velo_rma_key_t velo_rma_mem_key(const struct velo_rma_mem *mem) { return mem->key; }

void *velo_rma_mem_addr(const struct velo_rma_mem *mem) { return mem->addr; }

int velo_rma_mem_publish(struct velo_rma_mem *mem, uint32_t number)
{
    if (!mem || number > VELO_RMA_NUMBER_MAX)
        return velo_fail(VELO_ERR_ARG, "mem is NULL, or number %u is above %u", number,
                         VELO_RMA_NUMBER_MAX);
    mem->number = number;
    order_write_field(&mem->rma->table.entries[mem - mem->rma->mems].number, number);
    return VELO_OK;
}
