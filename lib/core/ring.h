/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ring.h
 * @brief The single-producer ring of one connection: both sides' cursors and the hot path.
 *
 * A message is a header word and its payload: in the same slot if it fits, else in the data region,
 * whose position then stands in word 1 of the slot. The header is stored last. It carries the low
 * bits of the slot's position, so a slot of the last lap is never mistaken for a new one, and
 * nothing needs to be cleared. Positions count up for ever; only their low bits index.
 *
 * The receiver returns credits a quarter ring at a time. That cannot deadlock: a receiver that has
 * consumed everything owes less than a quarter, so a sender always sees three quarters free.
 */
#ifndef VELO_CORE_RING_H
#define VELO_CORE_RING_H

#include <string.h>

#include "../base/compiler.h"
#include "../base/copy.h"
#include "../base/hook.h"
#include "../base/order.h"
#include "../shm/segment.h"

/* In a stream of short messages both sides ask for lines this far ahead. The two must not meet in
 * an idle ring: the sender does it only when it is well ahead, the receiver only when a message was
 * there at its first look. */
#define SLOTS_AHEAD 8u
/* The lines of a long message are asked for this far ahead. */
#define TAKE_AHEAD_BYTES 2048u
/* A receiver that polls asks for the data of messages up to this length. It would take the lines of
 * a longer message from its sender's cache while the sender still writes them. */
#define FETCH_AHEAD_BYTES 512u

/* The most messages that a sender sends without a look at its receiver. */
#define LOOK_SENDS 256u

#define SLOT_WORDS (VELO_LINE_BYTES / 8u)

/* Header bits that the receiver knows beforehand. */
#define RING_CHECK                                                                                 \
    (VELO_HEADER_VALID_MASK | VELO_HEADER_RESERVED_MASK | VELO_HEADER_SOURCE_MASK |                \
     VELO_HEADER_SEQ_MASK)

/** The longest message: a quarter of the data region, so that with padding it always fits in. */
static inline size_t ring_max_bytes(uint32_t data_bytes)
{
    size_t quarter = data_bytes / 4u;
    size_t field = VELO_HEADER_LEN_MASK >> VELO_HEADER_LEN_LSB;
    return quarter < field ? quarter : field;
}

hot_inline uint64_t ring_seq(uint64_t position)
{
    return position << VELO_HEADER_SEQ_LSB; /* The field is at the top: higher bits fall off. */
}

static inline uint64_t ring_data_bytes(size_t len_bytes)
{
    return (len_bytes + VELO_LINE_BYTES - 1) & ~(uint64_t)(VELO_LINE_BYTES - 1);
}

/* ---- sender ---------------------------------------------------------------------------------- */

/** A sender's cursor. Private to it. */
struct ring_tx {
    uint64_t tail;   /* Next position. */
    uint64_t limit;  /* First position without a credit; 0 while a reservation is open. */
    uint64_t header; /* The constant bits of each header. */
    uint64_t slot_mask;
    uint64_t *slots;
    struct seg_ring *shared;
    uint64_t first; /* Position of the first message: tail - first were sent. */
    uint64_t ahead; /* Lines to ask for ahead: SLOTS_AHEAD in a stream, else 0. */
    uint64_t bytes; /* Payload sent. */

    uint64_t data_tail;  /* Next byte of the data region; counts up for ever. */
    uint64_t data_limit; /* First byte without a credit. */
    uint64_t data_mask;
    char *data;
};

/** Begin to send into a ring, at the position up to which its last sender was read. */
static inline void ring_tx_start(struct ring_tx *tx, struct seg_ring *ring,
                                 const struct seg_shape *shape, velo_id_t source)
{
    tx->shared = ring;
    tx->slots = ring->slots;
    tx->slot_mask = shape->depth_slots - 1;
    tx->data = (char *)(ring->slots + (size_t)shape->depth_slots * SLOT_WORDS);
    tx->data_mask = shape->data_bytes - 1;
    tx->header = VELO_HEADER_VALID_MASK | ((uint64_t)source << VELO_HEADER_SOURCE_LSB);
    tx->tail = order_read_credit(&ring->consumed);
    tx->first = tx->tail;
    tx->data_tail = order_read_credit(&ring->data_consumed);
}

hot_inline uint64_t *ring_tx_slot(const struct ring_tx *tx)
{
    return tx->slots + (tx->tail & tx->slot_mask) * SLOT_WORDS;
}

hot_inline bool ring_tx_has_slot(const struct ring_tx *tx) { return tx->tail < tx->limit; }

/** The position in the data region for this many bytes: they never go across its end. */
static inline uint64_t ring_tx_data_at(const struct ring_tx *tx, size_t len_bytes)
{
    uint64_t left = tx->data_mask + 1 - (tx->data_tail & tx->data_mask);
    return tx->data_tail + (left < ring_data_bytes(len_bytes) ? left : 0);
}

static inline bool ring_tx_has_data(const struct ring_tx *tx, size_t len_bytes)
{
    return ring_tx_data_at(tx, len_bytes) + ring_data_bytes(len_bytes) <= tx->data_limit;
}

/** Show the counters to onlookers. This is done now and then: they are exact only in `tx`. */
static inline void ring_tx_show_counters(const struct ring_tx *tx)
{
    order_show(&tx->shared->tx_msgs, tx->tail - tx->first);
    order_show(&tx->shared->tx_bytes, tx->bytes);
}

/** Take the credits that the receiver has published, but only so many at once that the sender soon
 *  notices a death. False: they make no sense. */
static inline bool ring_tx_refresh(struct ring_tx *tx, uint64_t consumed)
{
    uint64_t depth = tx->slot_mask + 1;
    uint64_t size = tx->data_mask + 1;
    uint64_t data_consumed = order_read_credit(&tx->shared->data_consumed);
    if (tx->tail - consumed > depth || tx->data_tail - data_consumed > size)
        return false;
    /* It is a stream if the receiver is behind by more than the credits that it may owe. */
    tx->ahead = tx->tail - consumed > depth / 2 ? SLOTS_AHEAD : 0;
    tx->limit = consumed + depth;
    if (tx->limit - tx->tail > LOOK_SENDS)
        tx->limit = tx->tail + LOOK_SENDS;
    tx->data_limit = data_consumed + size;
    return true;
}

/** Are the slots that the receiver has not given back yet unchanged? */
static inline bool ring_tx_is_intact(const struct ring_tx *tx)
{
    uint64_t depth = tx->slot_mask + 1;
    uint64_t at = order_read_credit(&tx->shared->consumed);
    bool is_intact = tx->tail - at <= depth;
    for (; is_intact && at != tx->tail; at++) {
        uint64_t header = order_read_header(tx->slots + (at & tx->slot_mask) * SLOT_WORDS);
        is_intact = (header & RING_CHECK) == (tx->header | ring_seq(at));
    }
    return is_intact;
}

/** Store the header: from here on the message is the receiver's. */
hot_inline void ring_tx_publish(struct ring_tx *tx, uint64_t *slot, uint64_t bits, size_t len_bytes,
                                uint8_t tag)
{
    order_publish_header(slot, tx->header | bits | ring_seq(tx->tail) |
                                   ((uint64_t)len_bytes << VELO_HEADER_LEN_LSB) |
                                   ((uint64_t)tag << VELO_HEADER_TAG_LSB));
    VELO_HOOK(HOOK_SEND_HEADER);
    order_show(&tx->tail, tx->tail + 1);
    VELO_HOOK(HOOK_SEND_CURSOR);
    order_show(&tx->bytes, tx->bytes + len_bytes);
    VELO_HOOK(HOOK_SEND_COUNTED);
}

/** Where a short message goes. The caller has seen a slot free. */
hot_inline void *ring_tx_reserve_inline(const struct ring_tx *tx)
{
    order_prefetch_write(tx->slots + ((tx->tail + tx->ahead) & tx->slot_mask) * SLOT_WORDS);
    return ring_tx_slot(tx) + 1;
}

/** Write a short message. The caller has seen a slot free. */
hot_inline void ring_tx_write_inline(struct ring_tx *tx, const void *buf, size_t len_bytes,
                                     uint8_t tag)
{
    copy_small(ring_tx_reserve_inline(tx), buf, len_bytes);
    VELO_HOOK(HOOK_SEND_PAYLOAD);
    ring_tx_publish(tx, ring_tx_slot(tx), 0, len_bytes, tag);
}

/** Take the lines for the next long message from the receiver's cache now, while nobody waits for
 * them, supposing that it is as long as the last one. Otherwise each of its stores would wait for
 * its line in turn. (Slots must not be asked for: the receiver polls the next one.) */
static inline void ring_tx_take_lines(const struct ring_tx *tx, size_t len_bytes)
{
    size_t ahead = len_bytes < TAKE_AHEAD_BYTES ? len_bytes : TAKE_AHEAD_BYTES;
    for (size_t i = 0; i < ahead; i += VELO_LINE_BYTES)
        order_prefetch_write(tx->data + ((tx->data_tail + i) & tx->data_mask));
}

/** Publish a message whose payload was written at position `at` of the data region. */
static inline void ring_tx_publish_external(struct ring_tx *tx, uint64_t at, size_t len_bytes,
                                            uint8_t tag)
{
    uint64_t *slot = ring_tx_slot(tx);
    order_store_position(slot + 1, at);
    VELO_HOOK(HOOK_SEND_DATA_OFFSET);
    tx->data_tail = at + ring_data_bytes(len_bytes);
    ring_tx_publish(tx, slot, VELO_HEADER_EXTERNAL_MASK, len_bytes, tag);
    ring_tx_take_lines(tx, len_bytes);
}

/** Write a long message. The caller has seen room for it. */
static inline void ring_tx_write_external(struct ring_tx *tx, const void *buf, size_t len_bytes,
                                          uint8_t tag)
{
    uint64_t at = ring_tx_data_at(tx, len_bytes);
    copy_to_ring(tx->data + (at & tx->data_mask), buf, len_bytes);
    VELO_HOOK(HOOK_SEND_PAYLOAD);
    ring_tx_publish_external(tx, at, len_bytes, tag);
}

/* ---- receiver -------------------------------------------------------------------------------- */

/** The state of a ring for its receiver. */
enum rx_mode {
    RX_ABSENT = 0, /* No connection. */
    RX_BEHIND,     /* Its sender has an earlier connection, which is not empty yet. */
    RX_PARKED,     /* Its sender will ring. */
    RX_DRAINING,   /* It rang: in the active set until it is empty. */
    RX_POLLED,     /* In the active set for good; its sender does not ring. */
    RX_DEFERRED,   /* The caller wants nothing more from it for now. */
    RX_REFUSED,    /* It held nonsense: never read again. */
    RX_DEPARTED,   /* Empty, and its sender is gone: free it when the caller has been told. */
};

/** A receiver's cursor. Private to it: nothing here can be changed by a peer. */
struct ring_rx {
    const uint64_t *slot; /* Next slot. */
    uint64_t expect;      /* The next header must equal this in the bits of RING_CHECK. */
    uint64_t head;        /* Its position. */
    uint64_t pause_at;    /* At this position give credits back, or let others have a turn. */
    uint64_t slot_mask;
    struct seg_ring *shared;
    velo_id_t source; /* With `generation`, one word: a message is handed out with both. */
    uint32_t generation;
    uint64_t order; /* See tx_order of seg_ring. */
    uint32_t index;
    enum rx_mode mode;
    bool ending;                   /* Its sender left or died: free it when empty. */
    int departure;                 /* The reason for which no message will come; 0: one may come. */
    struct ring_rx *next_departed; /* In the port's list, until this departure is told. */

    uint64_t published; /* Credits given back so far. */
    uint64_t data_head; /* Data bytes before this one are consumed. */
    uint64_t data_published;
    uint64_t data_ahead;   /* Bytes to ask for before the header comes; see ring_rx_fetch_data(). */
    uint64_t last_message; /* The port's message count when this ring last had one. */
    uint64_t drain_start;  /* The same count when it last became draining. */
};

/** A message as it lies in the ring, checked. */
struct ring_message {
    const void *data;
    uint64_t data_end; /* The data cursor after it. */
    uint32_t len_bytes;
    uint8_t tag;
};

hot_inline const uint64_t *ring_rx_slot(const struct ring_rx *rx, uint64_t position)
{
    return rx->shared->slots + (position & rx->slot_mask) * SLOT_WORDS;
}

/** A message's data ends here: suppose that the next message is as long. */
static inline void ring_rx_expect_data(struct ring_rx *rx, uint64_t data_end)
{
    uint64_t span = data_end - rx->data_head;
    if (span > 0)
        rx->data_ahead = span <= FETCH_AHEAD_BYTES ? span : 0;
}

/** While polling: ask for the lines that the next message will use beside its slot. They then come
 *  together with the header, and not one hop after it. */
hot_inline void ring_rx_fetch_data(const struct ring_rx *rx, uint32_t data_bytes)
{
    const char *data = (const char *)(rx->shared->slots + (rx->slot_mask + 1) * SLOT_WORDS) +
                       (rx->data_head & (data_bytes - 1));
    for (uint64_t i = 0; i < rx->data_ahead; i += VELO_LINE_BYTES)
        __builtin_prefetch(data + i);
}

/** Start, or go on, at a position. */
static inline void ring_rx_seek(struct ring_rx *rx, uint64_t head)
{
    rx->head = head;
    rx->slot = ring_rx_slot(rx, head);
    rx->expect =
        VELO_HEADER_VALID_MASK | ((uint64_t)rx->source << VELO_HEADER_SOURCE_LSB) | ring_seq(head);
}

/** Step to the next slot. */
hot_inline void ring_rx_step(struct ring_rx *rx)
{
    rx->head++;
    rx->expect += ring_seq(1); /* The field is at the top: it wraps by itself. */
    rx->slot = ring_rx_slot(rx, rx->head);
}

/** Is this the header of the next message? */
hot_inline bool ring_rx_match(const struct ring_rx *rx, uint64_t header)
{
    return (header & RING_CHECK) == rx->expect;
}

hot_inline uint32_t ring_len(uint64_t header)
{
    return (uint32_t)((header & VELO_HEADER_LEN_MASK) >> VELO_HEADER_LEN_LSB);
}

hot_inline uint8_t ring_tag(uint64_t header)
{
    return (uint8_t)((header & VELO_HEADER_TAG_MASK) >> VELO_HEADER_TAG_LSB);
}

/** Is there a header of this very position that no correct sender writes? */
static inline bool ring_rx_is_corrupt(const struct ring_rx *rx)
{
    uint64_t header = order_read_header(rx->slot);
    uint64_t seq = header & VELO_HEADER_SEQ_MASK;
    return (header & VELO_HEADER_VALID_MASK) && seq == (rx->expect & VELO_HEADER_SEQ_MASK) &&
           !ring_rx_match(rx, header);
}

/** Find the payload behind a header. False: a length or position that no correct sender writes. */
static inline bool ring_rx_locate(const struct ring_rx *rx, uint64_t header, uint32_t data_bytes,
                                  struct ring_message *out)
{
    uint32_t len = ring_len(header);
    out->len_bytes = len;
    out->tag = ring_tag(header);
    if (!(header & VELO_HEADER_EXTERNAL_MASK)) {
        out->data = rx->slot + 1;
        out->data_end = rx->data_head;
        return len <= VELO_INLINE_BYTES;
    }
    uint64_t at = order_load_position(rx->slot + 1);
    uint64_t offset = at & (data_bytes - 1);
    out->data = (const char *)(rx->shared->slots + (rx->slot_mask + 1) * SLOT_WORDS) + offset;
    out->data_end = at + ring_data_bytes(len);
    return len <= ring_max_bytes(data_bytes) && offset % VELO_LINE_BYTES == 0 &&
           offset + len <= data_bytes && out->data_end - rx->data_head <= data_bytes;
}

#endif
