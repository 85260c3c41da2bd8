/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of a ring. */
#include "bcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cancel.h"
#include "../base/copy.h"
#include "../base/fork.h"

#define JOIN_NAP_NS 1000000
#define SPIN_MIN_NS 1000
/* Of a reader that spins: polls between two looks at the clock. */
#define POLLS_PER_CLOCK 64
/* A reader that never waits asks once in so many polls in vain whether the writer lives. */
#define POLLS_PER_ASKING 4096

/* A message that is there. */
struct found {
    const uint64_t *payload;
    uint64_t position;
    uint32_t len_bytes;
    uint8_t tag;
    bool is_long;
};

/* After a new count: does the writer sleep on it? */
hot_inline void tell_writer(const struct velo_bcast_reader *reader)
{
    VELO_HOOK(HOOK_BCAST_CONSUMED);
    if (unlikely(reader->map.fenced))
        order_full_fence();
    if (unlikely(order_read_stuck(&reader->place->stuck)))
        wait_wake((const uint32_t *)&reader->place->consumed);
}

/* ---- join and leave -------------------------------------------------------------------------- */

/* Claim an entry that is free, or whose reader has died. */
static bool claim_entry(struct velo_bcast_reader *reader, uint64_t mine)
{
    const struct segment *segment = reader->map.segment;
    for (uint32_t i = 0; i < segment->shape.conns_max; i++) {
        uint64_t *at = &segment->entries[i];
        /* The writer frees the entry of a dead reader: then it is looked at once more. */
        for (int tries = 0; tries < 2; tries++) {
            uint64_t entry = order_read_entry(at);
            bool is_free =
                entry_state(entry) == ENTRY_FREE || !life_goes_on(segment, entry_generation(entry));
            reader->index = i;
            if (is_free && order_claim_entry(at, entry, mine))
                return true;
        }
    }
    return false;
}

static int take_place(struct velo_bcast_reader *reader)
{
    struct bcast_map *map = &reader->map;
    uint32_t generation = 0;
    int status = life_begin(map->segment, &generation);
    if (status)
        return status;
    VELO_HOOK(HOOK_BCAST_LIVES);
    if (!claim_entry(reader, entry_pack(ENTRY_CLAIMED, 0, generation))) {
        life_end(map->segment, generation);
        return velo_fail(VELO_ERR_FULL,
                         "all %u places of the ring are taken; open it with a larger readers_max",
                         map->segment->shape.conns_max);
    }
    VELO_HOOK(HOOK_BCAST_CLAIMED);
    if (!wait_join_barrier()) {
        map->fenced = true;
        order_set_flag(&map->control->fenced, 1);
    }
    reader->place = &map->control->places[reader->index];
    reader->entry = entry_pack(ENTRY_READY, 0, generation);
    reader->from.id = map->id;
    reader->from.generation = map->segment->generation;
    /* The writer takes this for the count until it has the next one. */
    order_publish_read(&reader->place->consumed, order_read_tail(&map->control->tail));
    order_publish_entry(&map->segment->entries[reader->index], reader->entry);
    VELO_HOOK(HOOK_BCAST_READY);
    order_full_fence(); /* Edge 16: after the entry, before the tail. */
    reader->next = order_read_tail(&map->control->tail);
    order_publish_read(&reader->place->consumed, reader->next);
    VELO_HOOK(HOOK_BCAST_PLACED);
    tell_writer(reader); /* It may still sleep on the count of a dead reader in this place. */
    return VELO_OK;
}

static int join_ring(struct velo_bcast_reader *reader, const struct seg_domain *domain)
{
    struct bcast_map *map = &reader->map;
    int status = seg_open(domain, map->id, &map->segment);
    if (status)
        return status;
    map->fenced = map->segment->header->flags & SEG_NEEDS_FENCE;
    status = bcast_map_open(map);
    seg_file_drop(map->segment);
    if (status == VELO_OK)
        status = take_place(reader);
    if (status) {
        bcast_unmap(map);
        *map = (struct bcast_map){.id = map->id};
    }
    return status;
}

static int join_within(struct velo_bcast_reader *reader, const struct seg_domain *domain,
                       int64_t timeout_ns)
{
    int64_t start_ns = wait_now_ns();
    for (;;) {
        int status = join_ring(reader, domain);
        if (!status_is_absent(status) ||
            (timeout_ns >= 0 && wait_now_ns() - start_ns >= timeout_ns))
            return status;
        if (wait_nap(JOIN_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED,
                             "a signal handler ran before the ring was there");
    }
}

int velo_bcast_join(const struct velo_bcast_attr *given, struct velo_bcast_reader **out,
                    int64_t timeout_ns)
{
    CANCEL_LATER();
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    struct seg_domain domain = {0};
    if (!out || timeout_ns < VELO_FOREVER)
        return velo_fail(VELO_ERR_ARG, "reader is NULL, or timeout_ns is below -1");
    *out = NULL;
    int status = bcast_attr(&attr, given, &domain);
    if (status == VELO_OK)
        status = copy_configure(NULL);
    if (status)
        return status;
    struct velo_bcast_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a reader");
    reader->process = fork_mark();
    reader->map.id = VELO_ID(attr.node, attr.vpid);
    reader->spin_max_ns = wait_spin_max_ns();
    reader->spin_ns = reader->spin_max_ns;
    status = join_within(reader, &domain, timeout_ns);
    if (status)
        free(reader);
    else
        *out = reader;
    return status;
}

int velo_bcast_leave(struct velo_bcast_reader *reader)
{
    CANCEL_LATER();
    if (!reader || !fork_is_ours(reader->process))
        return VELO_OK;
    GUARD_UNUSED(reader, "reader");
    const struct segment *segment = reader->map.segment;
    /* The count changes, so that a writer does not fall asleep on it any more. */
    order_publish_read(&reader->place->consumed, order_read_tail(&reader->map.control->tail));
    VELO_HOOK(HOOK_BCAST_LEAVING);
    order_publish_entry(&segment->entries[reader->index], entry_pack(ENTRY_FREE, 0, 0));
    VELO_HOOK(HOOK_BCAST_FREED);
    tell_writer(reader);
    life_end(segment, entry_generation(reader->entry));
    bcast_unmap(&reader->map);
    free(reader);
    return VELO_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

/* The writer was faster by more than the ring holds. Go on with its newest message. */
static cold_path int skip_overtaken(struct velo_bcast_reader *reader)
{
    uint64_t tail = order_read_tail(&reader->map.control->tail);
    if (!reader->map.drops || tail <= reader->next)
        return VELO_ERR_CORRUPT;
    uint64_t newest = tail - 1 > reader->next ? tail - 1 : tail;
    reader->missed += newest - reader->next;
    reader->next = newest;
    order_publish_read(&reader->place->consumed, reader->next);
    return VELO_ERR_MISSED;
}

/* Nothing was there. Is that so because nothing will come? */
static cold_path int explain_nothing(struct velo_bcast_reader *reader, bool asks)
{
    const struct bcast_map *map = &reader->map;
    if (order_read_entry(&map->segment->entries[reader->index]) != reader->entry)
        return VELO_ERR_CORRUPT;
    int status = VELO_OK;
    if (asks || ++reader->idle_polls % POLLS_PER_ASKING == 0 ||
        order_read_entry(&map->segment->header->state) != SEG_OPEN)
        status = seg_owner_status(map->segment);
    /* All that was sent was sent before that. A slot that was overwritten, or was about to be when
     * the writer died, was overwritten for good. */
    uint64_t header = order_read_slot(&bcast_slot(map, reader->next)->header);
    if (header == reader->next + 1)
        return VELO_OK;
    if (order_read_tail(&map->control->tail) > reader->next)
        return order_read_slot(&bcast_slot(map, reader->next)->header) == reader->next + 1
                   ? VELO_OK
                   : skip_overtaken(reader);
    return status ? status : VELO_AGAIN;
}

/* Look at the next message. VELO_OK: it is there; VELO_AGAIN: it is not there. */
hot_inline int look_at_slot(struct velo_bcast_reader *reader)
{
    uint64_t header = order_read_slot(&bcast_slot(&reader->map, reader->next)->header);
    if (likely(header == reader->next + 1))
        return VELO_OK;
    if (unlikely(header > reader->next + 1))
        return skip_overtaken(reader);
    return VELO_AGAIN;
}

/* Read what the slot says, once, and check it. */
hot_inline bool read_slot(const struct velo_bcast_reader *reader, struct found *found)
{
    const struct bcast_map *map = &reader->map;
    const struct bcast_slot *slot = bcast_slot(map, reader->next);
    uint64_t about = order_read_field(&slot->about);
    found->len_bytes = (uint32_t)about;
    found->tag = (uint8_t)(about >> BCAST_ABOUT_TAG_LSB);
    found->is_long = about & BCAST_ABOUT_LONG;
    found->position = 0;
    if (!found->is_long) {
        found->payload = slot->words;
        return likely(found->len_bytes <= VELO_BCAST_INLINE_BYTES);
    }
    found->position = order_read_field(&slot->position);
    uint64_t at = found->position & (map->data_bytes - 1);
    found->payload = (const uint64_t *)(const void *)(map->data + at);
    return likely(found->len_bytes <= map->msg_bytes_max && at % SEG_ALIGN == 0 &&
                  at + found->len_bytes <= map->data_bytes);
}

/* Dropping: was the message whole all the time until now? */
hot_inline bool is_whole(const struct velo_bcast_reader *reader, const struct found *found)
{
    const struct bcast_map *map = &reader->map;
    order_end_copy();
    if (order_read_slot(&bcast_slot(map, reader->next)->header) != reader->next + 1)
        return false;
    return !found->is_long ||
           order_read_overwritten(&map->control->overwritten) <= found->position + map->data_bytes;
}

hot_inline void fill_message(const struct velo_bcast_reader *reader, const struct found *found,
                             const void *data, struct velo_msg *msg)
{
    if (!msg)
        return;
    msg->data = data;
    msg->len_bytes = found->len_bytes;
    msg->tag = found->tag;
    msg_source_tell(&reader->from, msg);
}

hot_inline void advance_reader(struct velo_bcast_reader *reader)
{
    reader->next++;
    order_publish_read(&reader->place->consumed, reader->next);
    tell_writer(reader);
}

/* Copy the message that look_at_slot() has seen, and go on to the next. */
hot_inline int take_message(struct velo_bcast_reader *reader, void *buf, size_t cap_bytes,
                            struct velo_msg *msg)
{
    struct found found;
    bool drops = reader->map.drops;
    bool is_sane = read_slot(reader, &found);
    VELO_HOOK(HOOK_BCAST_FOUND);
    bool fits = is_sane && found.len_bytes <= cap_bytes;
    if (fits && drops)
        order_copy_racing_out(buf, found.payload, found.len_bytes);
    else if (fits)
        copy_out(buf, found.payload, found.len_bytes);
    VELO_HOOK(HOOK_BCAST_COPIED);
    if (drops && unlikely(!is_whole(reader, &found)))
        return skip_overtaken(reader);
    if (unlikely(!is_sane))
        return VELO_ERR_CORRUPT;
    fill_message(reader, &found, buf, msg);
    if (unlikely(!fits))
        return VELO_ERR_TOO_BIG;
    advance_reader(reader);
    return VELO_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Sleep until the writer sends, at most for so long. */
static cold_path int sleep_for_message(struct velo_bcast_reader *reader, int64_t sleep_ns)
{
    struct bcast_control *control = reader->map.control;
    uint32_t asleep = order_set_asleep(&control->asleep);
    VELO_HOOK(HOOK_BCAST_ASLEEP);
    bcast_barrier(&reader->map);
    int status = explain_nothing(reader, false);
    if (status != VELO_AGAIN)
        return status;
    bool is_interrupted = wait_sleep(&control->asleep, asleep, sleep_ns);
    status = explain_nothing(reader, true);
    return status == VELO_AGAIN && is_interrupted ? VELO_ERR_INTERRUPTED : status;
}

static cold_path int spin_for_message(struct velo_bcast_reader *reader, int64_t end_ns)
{
    int status = VELO_AGAIN;
    while (status == VELO_AGAIN && !order_flag(&reader->interrupted) && wait_now_ns() < end_ns)
        for (int i = 0; status == VELO_AGAIN && i < POLLS_PER_CLOCK; i++) {
            order_pause();
            status = look_at_slot(reader);
        }
    return status;
}

/* The spin is as long as pays: half after one in vain, twice after one that was not. A sleep that
 * was shorter than the longest spin says that spinning may pay again. */
static void learn_wait(struct velo_bcast_reader *reader, int64_t waited_ns, bool slept)
{
    if (slept && waited_ns > reader->spin_max_ns)
        reader->spin_ns = reader->spin_ns / 2 >= SPIN_MIN_NS ? reader->spin_ns / 2 : 0;
    else
        reader->spin_ns = reader->spin_ns ? reader->spin_ns * 2 : SPIN_MIN_NS;
    if (reader->spin_ns > reader->spin_max_ns)
        reader->spin_ns = reader->spin_max_ns;
}

static cold_path int await_message(struct velo_bcast_reader *reader, int64_t timeout_ns)
{
    int status = explain_nothing(reader, false);
    if (status != VELO_AGAIN || timeout_ns == 0)
        return status == VELO_AGAIN ? VELO_TIMEOUT : status;
    int64_t start_ns = wait_now_ns();
    int64_t end_ns = wait_end_ns(start_ns, timeout_ns);
    int64_t spin_end_ns = start_ns + reader->spin_ns;
    status = spin_for_message(reader, spin_end_ns < end_ns ? spin_end_ns : end_ns);
    bool slept = status == VELO_AGAIN;
    while (status == VELO_AGAIN) {
        if (order_take_flag(&reader->interrupted))
            return VELO_ERR_INTERRUPTED;
        int64_t left_ns = end_ns - wait_now_ns();
        if (left_ns <= 0)
            return VELO_TIMEOUT;
        status = sleep_for_message(reader, left_ns < WAIT_SLICE_NS ? left_ns : WAIT_SLICE_NS);
    }
    if (status == VELO_ERR_INTERRUPTED) /* By a handler, which may have asked for it, too. */
        order_set_flag(&reader->interrupted, 0);
    learn_wait(reader, wait_now_ns() - start_ns, slept);
    return status;
}

/* All readers sleep on one word: the others sleep again. */
void velo_bcast_reader_interrupt(struct velo_bcast_reader *reader)
{
    int error = errno; /* Of what a signal handler has interrupted. */
    const uint32_t *word = &reader->map.control->asleep;
    order_set_flag(&reader->interrupted, 1);
    wait_wake(word);
    errno = error;
}

/* ---- calls ----------------------------------------------------------------------------------- */

int velo_bcast_try_recv(struct velo_bcast_reader *reader, void *buf, size_t cap_bytes,
                        struct velo_msg *msg)
{
    GUARD(reader, "reader");
    if (unlikely(!reader || (!buf && cap_bytes > 0)))
        return VELO_ERR_ARG;
    if (unlikely(reader->held))
        return VELO_ERR_STATE;
    int status = look_at_slot(reader);
    if (unlikely(status == VELO_AGAIN))
        status = explain_nothing(reader, false);
    return status == VELO_OK ? take_message(reader, buf, cap_bytes, msg) : status;
}

int velo_bcast_recv(struct velo_bcast_reader *reader, void *buf, size_t cap_bytes,
                    struct velo_msg *msg, int64_t timeout_ns)
{
    GUARD(reader, "reader");
    if (unlikely(!reader || (!buf && cap_bytes > 0) || timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    if (unlikely(reader->held))
        return VELO_ERR_STATE;
    int status = look_at_slot(reader);
    if (unlikely(status == VELO_AGAIN))
        status = await_message(reader, timeout_ns);
    return status == VELO_OK ? take_message(reader, buf, cap_bytes, msg) : status;
}

/* Hold the message that look_at_slot() has seen. */
hot_inline int hold_message(struct velo_bcast_reader *reader, struct velo_msg *msg)
{
    struct found found;
    if (unlikely(!read_slot(reader, &found)))
        return VELO_ERR_CORRUPT;
    reader->held = true;
    fill_message(reader, &found, found.payload, msg);
    return VELO_OK;
}

int velo_bcast_try_peek(struct velo_bcast_reader *reader, struct velo_msg *msg)
{
    GUARD(reader, "reader");
    if (unlikely(!reader || !msg))
        return VELO_ERR_ARG;
    if (unlikely(reader->held || reader->map.drops))
        return VELO_ERR_STATE;
    int status = look_at_slot(reader);
    if (unlikely(status == VELO_AGAIN))
        status = explain_nothing(reader, false);
    return status == VELO_OK ? hold_message(reader, msg) : status;
}

int velo_bcast_peek(struct velo_bcast_reader *reader, struct velo_msg *msg, int64_t timeout_ns)
{
    GUARD(reader, "reader");
    if (unlikely(!reader || !msg || timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    if (unlikely(reader->held || reader->map.drops))
        return VELO_ERR_STATE;
    int status = look_at_slot(reader);
    if (unlikely(status == VELO_AGAIN))
        status = await_message(reader, timeout_ns);
    return status == VELO_OK ? hold_message(reader, msg) : status;
}

int velo_bcast_release(struct velo_bcast_reader *reader)
{
    GUARD(reader, "reader");
    if (unlikely(!reader))
        return VELO_ERR_ARG;
    if (unlikely(!reader->held))
        return VELO_ERR_STATE;
    reader->held = false;
    advance_reader(reader);
    return VELO_OK;
}

uint64_t velo_bcast_missed(const struct velo_bcast_reader *reader) { return reader->missed; }

int velo_bcast_status(struct velo_bcast_reader *reader)
{
    return reader ? seg_owner_status(reader->map.segment) : VELO_ERR_ARG;
}
