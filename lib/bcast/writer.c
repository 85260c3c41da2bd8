/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of a ring: room, and sending. */
#include "bcast.h"

#include <errno.h>

#include "../base/copy.h"

/* Of a writer that spins for room: looks at the readers' counts between two looks at the clock. */
#define LOOKS_PER_CLOCK 16

/* Where a message will lie. */
struct room {
    struct bcast_slot *slot;
    void *payload;
    uint64_t position; /* Of a long one. */
    uint64_t end;      /* Position behind it. */
    bool is_long;
};

hot_inline struct room room_of(const struct velo_bcast *bcast, size_t len_bytes)
{
    const struct bcast_map *map = &bcast->map;
    struct room room = {.slot = bcast_slot(map, bcast->next), .end = bcast->data_tail};
    room.payload = room.slot->words;
    room.is_long = len_bytes > VELO_BCAST_INLINE_BYTES;
    if (room.is_long) {
        uint64_t last = map->data_bytes - 1;
        room.position = bcast->data_tail;
        if ((room.position & last) + len_bytes > map->data_bytes)
            room.position = (room.position | last) + 1; /* In one piece: at the region's begin. */
        room.end = room.position + (len_bytes + SEG_ALIGN - 1) / SEG_ALIGN * SEG_ALIGN;
        room.payload = map->data + (room.position & last);
    }
    return room;
}

hot_inline bool has_room(const struct velo_bcast *bcast, uint64_t end)
{
    return bcast->next < bcast->limit && end <= bcast->data_limit;
}

/* ---- readers --------------------------------------------------------------------------------- */

/* Its count is one that no correct reader has: do not wait for it any more. */
static cold_path void refuse_reader(const struct velo_bcast *bcast, uint32_t index, uint64_t entry)
{
    (void)order_claim_entry(&bcast->map.segment->entries[index], entry,
                            entry_in_state(entry, ENTRY_REFUSED));
}

/* Learn from the readers' counts how much room there is. */
static cold_path void refresh_room(struct velo_bcast *bcast)
{
    const struct bcast_map *map = &bcast->map;
    uint64_t least = bcast->next;
    order_full_fence(); /* Edge 16: after the tail, before the table. */
    for (uint32_t i = 0; i < map->segment->shape.conns_max; i++) {
        uint64_t entry = order_read_entry(&map->segment->entries[i]);
        if (entry_state(entry) != ENTRY_READY)
            continue;
        uint64_t consumed = order_read_read(&map->control->places[i].consumed);
        if (consumed > bcast->next) {
            refuse_reader(bcast, i, entry);
        } else if (consumed < least) {
            least = consumed;
            bcast->slowest = i;
            bcast->slowest_entry = entry;
            bcast->slowest_count = consumed;
        }
    }
    if (bcast->next - least > map->depth) {
        bcast->limit = bcast->next; /* A reader is just joining and has not said where it begins. */
        return;
    }
    bcast->limit = least + map->depth;
    uint64_t data_free =
        least == bcast->next ? bcast->data_tail : bcast->starts[least & (map->depth - 1)];
    bcast->data_limit = data_free + map->data_bytes;
}

/* Free a reader's entry if its process is dead. */
static bool drop_if_dead(const struct velo_bcast *bcast, uint32_t index, uint64_t entry)
{
    const struct segment *segment = bcast->map.segment;
    return !life_goes_on(segment, entry_generation(entry)) &&
           order_claim_entry(&segment->entries[index], entry, entry_pack(ENTRY_FREE, 0, 0));
}

/* No room as far as we know. Look anew; ask from time to time whether the slowest reader lives. */
static cold_path int find_room(struct velo_bcast *bcast, size_t len_bytes)
{
    for (;;) {
        refresh_room(bcast);
        if (has_room(bcast, room_of(bcast, len_bytes).end))
            return VELO_OK;
        int64_t now_ns = wait_now_ns();
        if (now_ns - bcast->asked_ns < BCAST_ASK_NS)
            return VELO_AGAIN;
        if (!drop_if_dead(bcast, bcast->slowest, bcast->slowest_entry)) {
            bcast->asked_ns = now_ns;
            return VELO_AGAIN;
        }
    }
}

static cold_path int spin_for_room(struct velo_bcast *bcast, size_t len_bytes, int64_t end_ns)
{
    while (!order_flag(&bcast->interrupted) && wait_now_ns() < end_ns) {
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            order_pause();
            refresh_room(bcast);
            if (has_room(bcast, room_of(bcast, len_bytes).end))
                return VELO_OK;
        }
    }
    return VELO_AGAIN;
}

/* Sleep until the slowest reader goes on, at most for so long. */
static cold_path int sleep_for_room(struct velo_bcast *bcast, size_t len_bytes, int64_t sleep_ns)
{
    struct bcast_place *place = &bcast->map.control->places[bcast->slowest];
    uint64_t count = bcast->slowest_count;
    bool is_interrupted = false;
    order_show(&bcast->asleep_on, (uint64_t)(uintptr_t)&place->consumed);
    order_set_stuck(&place->stuck, 1);
    bcast_barrier(&bcast->map);
    VELO_HOOK(HOOK_BCAST_STUCK);
    if (order_read_read(&place->consumed) == count)
        is_interrupted = wait_sleep((const uint32_t *)&place->consumed, (uint32_t)count, sleep_ns);
    order_set_stuck(&place->stuck, 0);
    int status = find_room(bcast, len_bytes);
    return status == VELO_AGAIN && is_interrupted ? VELO_ERR_INTERRUPTED : status;
}

static cold_path int await_room(struct velo_bcast *bcast, size_t len_bytes, int64_t timeout_ns)
{
    int64_t start_ns = wait_now_ns();
    int64_t end_ns = wait_end_ns(start_ns, timeout_ns);
    int status = find_room(bcast, len_bytes);
    if (status != VELO_AGAIN || timeout_ns == 0)
        return status == VELO_AGAIN ? VELO_TIMEOUT : status;
    int64_t spin_end_ns = start_ns + bcast->spin_max_ns;
    status = spin_for_room(bcast, len_bytes, spin_end_ns < end_ns ? spin_end_ns : end_ns);
    while (status == VELO_AGAIN) {
        if (order_take_flag(&bcast->interrupted))
            return VELO_ERR_INTERRUPTED;
        int64_t left_ns = end_ns - wait_now_ns();
        if (left_ns <= 0)
            return VELO_TIMEOUT;
        status =
            sleep_for_room(bcast, len_bytes, left_ns < WAIT_SLICE_NS ? left_ns : WAIT_SLICE_NS);
    }
    if (status == VELO_ERR_INTERRUPTED) /* By a handler, which may have asked for it, too. */
        order_set_flag(&bcast->interrupted, 0);
    return status;
}

/* The place on which the writer sleeps changes with the slowest reader: one that is gone has its
 * memory still. A writer that goes to sleep elsewhere meanwhile sleeps for a slice of time. */
void velo_bcast_interrupt(struct velo_bcast *bcast)
{
    int error = errno; /* Of what a signal handler has interrupted. */
    order_set_flag(&bcast->interrupted, 1);
    const uint32_t *word = (const uint32_t *)(uintptr_t)order_counter(&bcast->asleep_on);
    if (word)
        wait_wake(word);
    errno = error;
}

/* ---- sending --------------------------------------------------------------------------------- */

hot_inline int make_room(struct velo_bcast *bcast, size_t len_bytes)
{
    if (unlikely(bcast->reserved))
        return VELO_ERR_STATE;
    if (unlikely(len_bytes > bcast->map.msg_bytes_max))
        return VELO_ERR_TOO_BIG;
    if (likely(has_room(bcast, room_of(bcast, len_bytes).end)))
        return VELO_OK;
    return find_room(bcast, len_bytes);
}

/* Readers of a dropping ring may be copying what lies there. */
hot_inline void begin_overwrite(struct velo_bcast *bcast, const struct room *room)
{
    if (!bcast->map.drops)
        return;
    if (room->end > bcast->overwritten)
        bcast->overwritten = room->end;
    order_begin_overwrite(&bcast->map.control->overwritten, bcast->overwritten,
                          &room->slot->header);
    VELO_HOOK(HOOK_BCAST_BEGUN);
}

hot_inline void publish_slot(struct velo_bcast *bcast, const struct room *room, size_t len_bytes,
                             uint8_t tag)
{
    const struct bcast_map *map = &bcast->map;
    uint64_t about = len_bytes | (uint64_t)tag << BCAST_ABOUT_TAG_LSB;
    if (room->is_long) {
        order_write_field(&room->slot->position, room->position);
        about |= BCAST_ABOUT_LONG;
    }
    order_write_field(&room->slot->about, about);
    bcast->starts[bcast->next & (map->depth - 1)] = bcast->data_tail;
    bcast->data_tail = room->end;
    bcast->next++;
    VELO_HOOK(HOOK_BCAST_PAYLOAD);
    order_publish_slot(&room->slot->header, bcast->next);
    VELO_HOOK(HOOK_BCAST_HEADER);
    order_publish_tail(&map->control->tail, bcast->next);
    VELO_HOOK(HOOK_BCAST_TAIL);
    if (unlikely(map->fenced || order_flag(&map->control->fenced)))
        order_full_fence();
    if (unlikely(order_read_asleep(&map->control->asleep)))
        bcast_wake(map);
}

hot_inline void send_now(struct velo_bcast *bcast, const void *buf, size_t len_bytes, uint8_t tag)
{
    struct room room = room_of(bcast, len_bytes);
    begin_overwrite(bcast, &room);
    if (bcast->map.drops)
        order_copy_racing_in(room.payload, buf, len_bytes);
    else
        copy_in(room.payload, buf, len_bytes);
    publish_slot(bcast, &room, len_bytes, tag);
}

int velo_bcast_try_send(struct velo_bcast *bcast, const void *buf, size_t len_bytes, uint8_t tag)
{
    GUARD(bcast, "ring");
    if (unlikely(!bcast || (!buf && len_bytes > 0)))
        return VELO_ERR_ARG;
    int status = make_room(bcast, len_bytes);
    if (likely(status == VELO_OK))
        send_now(bcast, buf, len_bytes, tag);
    return status;
}

int velo_bcast_send(struct velo_bcast *bcast, const void *buf, size_t len_bytes, uint8_t tag,
                    int64_t timeout_ns)
{
    GUARD(bcast, "ring");
    if (unlikely(!bcast || (!buf && len_bytes > 0) || timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    int status = make_room(bcast, len_bytes);
    if (unlikely(status == VELO_AGAIN))
        status = await_room(bcast, len_bytes, timeout_ns);
    if (likely(status == VELO_OK))
        send_now(bcast, buf, len_bytes, tag);
    return status;
}

hot_inline void reserve_now(struct velo_bcast *bcast, size_t len_bytes, void **buf)
{
    struct room room = room_of(bcast, len_bytes);
    begin_overwrite(bcast, &room);
    bcast->reserved = true;
    bcast->reserved_bytes = len_bytes;
    *buf = room.payload;
}

int velo_bcast_try_reserve(struct velo_bcast *bcast, size_t len_bytes, void **buf)
{
    GUARD(bcast, "ring");
    if (unlikely(!bcast || !buf))
        return VELO_ERR_ARG;
    int status = make_room(bcast, len_bytes);
    if (likely(status == VELO_OK))
        reserve_now(bcast, len_bytes, buf);
    return status;
}

int velo_bcast_reserve(struct velo_bcast *bcast, size_t len_bytes, void **buf, int64_t timeout_ns)
{
    GUARD(bcast, "ring");
    if (unlikely(!bcast || !buf || timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    int status = make_room(bcast, len_bytes);
    if (unlikely(status == VELO_AGAIN))
        status = await_room(bcast, len_bytes, timeout_ns);
    if (likely(status == VELO_OK))
        reserve_now(bcast, len_bytes, buf);
    return status;
}

int velo_bcast_commit(struct velo_bcast *bcast, size_t len_bytes, uint8_t tag)
{
    GUARD(bcast, "ring");
    if (unlikely(!bcast))
        return VELO_ERR_ARG;
    if (unlikely(!bcast->reserved))
        return VELO_ERR_STATE;
    if (unlikely(len_bytes > bcast->reserved_bytes))
        return VELO_ERR_TOO_BIG;
    /* It lies where it was built; what was reserved and not used is free. */
    struct room room = room_of(bcast, bcast->reserved_bytes);
    if (room.is_long)
        room.end = room.position + (len_bytes + SEG_ALIGN - 1) / SEG_ALIGN * SEG_ALIGN;
    bcast->reserved = false;
    publish_slot(bcast, &room, len_bytes, tag);
    return VELO_OK;
}

int velo_bcast_readers(struct velo_bcast *bcast)
{
    if (!bcast)
        return VELO_ERR_ARG;
    const struct segment *segment = bcast->map.segment;
    int count = 0;
    for (uint32_t i = 0; i < segment->shape.conns_max; i++) {
        uint64_t entry = order_read_entry(&segment->entries[i]);
        if (entry_state(entry) != ENTRY_FREE && !drop_if_dead(bcast, i, entry))
            count += entry_state(entry) == ENTRY_READY;
    }
    return count;
}
