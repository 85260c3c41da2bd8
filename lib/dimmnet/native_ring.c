/* SPDX-License-Identifier: Apache-2.0 */
/* The status ring: many writers, one reader. See native_layout.h. */
#include "native_ring.h"

/* Bits that dimmnet_status does not use hold the lap: 25 to 31, and 40 to 47. */
#define LAP_LOW_BITS 7u
#define LAP_LOW_LSB 25u
#define LAP_HIGH_BITS 8u
#define LAP_HIGH_LSB 40u
#define LAP_LOW_MASK (((UINT64_C(1) << LAP_LOW_BITS) - 1) << LAP_LOW_LSB)
#define LAP_HIGH_MASK (((UINT64_C(1) << LAP_HIGH_BITS) - 1) << LAP_HIGH_LSB)
#define LAP_MASK (LAP_LOW_MASK | LAP_HIGH_MASK)

_Static_assert((LAP_MASK & (VELO_DIMMNET_STATUS_KIND_MASK | VELO_DIMMNET_STATUS_MEMORY_MASK |
                            VELO_DIMMNET_STATUS_WORDS_MASK | VELO_DIMMNET_STATUS_SRC_WID_MASK |
                            VELO_DIMMNET_STATUS_TAG_MASK | VELO_DIMMNET_STATUS_SRC_LID_MASK)) == 0,
               "a lap is in bits that a status leaves");

/* A sender looks at the clock once in so many looks at a full ring, and sleeps after a while. */
#define LOOKS_PER_CLOCK 32
#define ROOM_SPIN_NS 20000
#define ROOM_SLEEP_NS 500000

/** The lap of a count, as it stands in an entry. */
hot_inline uint64_t cell_lap(uint64_t count)
{
    uint64_t lap = count / VELO_DIMMNET_STATUS_ENTRIES;
    return (lap << LAP_LOW_LSB & LAP_LOW_MASK) |
           (lap >> LAP_LOW_BITS << LAP_HIGH_LSB & LAP_HIGH_MASK);
}

hot_inline uint64_t *cell_at(const struct native_map *map, uint32_t wid, uint64_t count)
{
    return native_llcm(map, wid) + VELO_DIMMNET_STATUS_LLCM_WORD +
           count % VELO_DIMMNET_STATUS_ENTRIES;
}

/* Entries from `from` up to `to` are empty, for the lap after theirs. */
static void empty_cells(const struct native_map *map, uint32_t wid, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        order_empty_status(cell_at(map, wid, from), cell_lap(from + VELO_DIMMNET_STATUS_ENTRIES));
}

void native_ring_reset(const struct native_map *map, uint32_t wid)
{
    struct native_process *process = &map->control->process[wid];
    uint64_t written = order_counter(&process->written);
    empty_cells(map, wid, order_counter(&process->taken), written);
    order_publish_credit(&process->taken, written);
}

/* ---- writers --------------------------------------------------------------------------------- */

/* The entry at this count is filled: move the count on, if nobody else has. */
hot_inline void move_on(struct native_process *process, uint64_t count)
{
    (void)order_replace_64(&process->written, &count, count + 1);
}

hot_inline void wake_reader(struct native_process *process)
{
    if (unlikely(order_read_sleeping(&process->sleeping)))
        wait_wake((const uint32_t *)&process->written);
}

/* One try. VELO_AGAIN: the ring is full. */
hot_inline int post_now(const struct native_map *map, uint32_t wid, uint64_t status)
{
    struct native_process *process = &map->control->process[wid];
    for (;;) {
        uint64_t count = order_peek_64(&process->written);
        uint64_t *cell = cell_at(map, wid, count);
        uint64_t empty = cell_lap(count);
        if (order_post_status(cell, empty, status | empty)) {
            VELO_HOOK(HOOK_DIMMNET_POSTED);
            move_on(process, count);
            VELO_HOOK(HOOK_DIMMNET_COUNTED);
            wake_reader(process);
            return VELO_OK;
        }
        uint64_t found = order_read_status(cell);
        if ((found & LAP_MASK) == empty && found != empty)
            move_on(process, count); /* Its writer has not come so far. */
        else if (found != empty && order_peek_64(&process->written) == count)
            return VELO_AGAIN;
    }
}

/* Sleep until the reader takes statuses, at most for a short while. */
static void sleep_for_room(struct native_process *process)
{
    uint64_t taken = order_recheck_credit(&process->taken);
    order_set_waiting(&process->waiting, 1);
    VELO_HOOK(HOOK_DIMMNET_WAITING);
    if (order_recheck_credit(&process->taken) == taken)
        (void)wait_sleep((const uint32_t *)&process->taken, (uint32_t)taken, ROOM_SLEEP_NS);
}

/* The ring is full: the packet waits for as long as the board's patience lasts. */
static cold_path int post_patiently(const struct native_map *map, uint32_t wid, uint64_t status)
{
    struct native_process *process = &map->control->process[wid];
    int64_t start_ns = wait_now_ns();
    int64_t patience_ns = (int64_t)order_counter(&map->control->patience) * DIMMNET_CYCLE_NS;
    for (int64_t waited_ns = 0; waited_ns < patience_ns; waited_ns = wait_now_ns() - start_ns) {
        if (waited_ns > ROOM_SPIN_NS)
            sleep_for_room(process);
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (post_now(map, wid, status) == VELO_OK)
                return VELO_OK;
            order_pause();
        }
    }
    order_count_shared(&process->dropped_status, 1);
    int gone = seg_check_owner(map->segment);
    return gone ? velo_fail(gone,
                            "board %u is gone: its status ring is full, and the process that "
                            "made it has ended",
                            map->lid)
                : VELO_OK;
}

int native_ring_post(const struct native_map *map, uint32_t wid, uint64_t status)
{
    if (likely(post_now(map, wid, status) == VELO_OK))
        return VELO_OK;
    return post_patiently(map, wid, status);
}

/* ---- the reader ------------------------------------------------------------------------------ */

uint64_t native_ring_written(const struct native_slot *slot)
{
    struct native_process *process = slot->self;
    uint64_t count = order_peek_64(&process->written);
    uint64_t found = order_read_status(cell_at(slot->home, slot->claim.wid, count));
    uint64_t empty = cell_lap(count);
    if (likely((found & LAP_MASK) != empty || found == empty))
        return count;
    move_on(process, count);
    return count + 1;
}

void native_ring_take(struct native_slot *slot, uint32_t count)
{
    struct native_process *process = slot->self;
    uint64_t upto = slot->taken + (count - (uint32_t)slot->taken);
    if (upto > order_peek_64(&process->written))
        return; /* More than there are: a count that no correct reader writes. */
    VELO_HOOK(HOOK_DIMMNET_TAKEN);
    empty_cells(slot->home, slot->claim.wid, slot->taken, upto);
    VELO_HOOK(HOOK_DIMMNET_EMPTIED);
    slot->taken = upto;
    order_publish_credit(&process->taken, upto);
    order_full_fence();
    if (unlikely(order_read_waiting(&process->waiting))) {
        order_set_waiting(&process->waiting, 0);
        wait_wake((const uint32_t *)&process->taken);
    }
}

int native_ring_sleep(struct native_slot *slot, uint32_t seen, int64_t sleep_ns)
{
    struct native_process *process = slot->self;
    bool is_interrupted = false;
    order_set_sleeping(&process->sleeping, 1);
    VELO_HOOK(HOOK_DIMMNET_ASLEEP);
    if ((uint32_t)native_ring_written(slot) == seen &&
        (uint32_t)order_recheck_credit(&process->written) == seen)
        is_interrupted = wait_sleep((const uint32_t *)&process->written, seen, sleep_ns);
    order_set_sleeping(&process->sleeping, 0);
    if ((uint32_t)native_ring_written(slot) != seen)
        return VELO_OK;
    int status = seg_check_owner(slot->home->segment);
    /* A status may have come since that look, before its sender and the board went. */
    if (status && (uint32_t)native_ring_written(slot) != seen)
        return VELO_OK;
    if (status)
        return velo_fail(status, "board %u is gone: the process that made it has %s", slot->lid,
                         status == VELO_ERR_PEER_CLOSED ? "taken it away" : "ended");
    return is_interrupted ? velo_fail(VELO_ERR_INTERRUPTED, "a signal handler ran in the wait")
                          : VELO_OK;
}
