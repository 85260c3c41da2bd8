/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ring.h
 * @brief The single-producer ring of one connection: both sides' cursors and the hot path.
 *
 * A slot is a line of four **cells** of 16 bytes. A message is a header word and its payload. It
 * takes as many cells of one line as it needs; a payload that is too long for a line is in the data
 * region, and its position stands behind the header. So short messages share a line, which is what
 * two cores pay for. The header is stored last: from then on the message is the receiver's.
 *
 *     line 7 | header, 8 bytes | header, 24 bytes -> | free |   a message of 8, one of 24 bytes
 *     line 8 | header, 56 bytes  ->            ->           |   56 bytes do not fit into line 7
 *
 *  - The first word of a line holds nothing but headers. They carry the low bits of the line's
 *    number, so a line of the last lap is never mistaken for a new one, and nobody clears it.
 *  - The other cells of a line hold what the last lap left. A sender empties the cell behind its
 *    message before it publishes the message, so the receiver never sees an old one there.
 *  - A message that does not fit into the rest of its line goes to the next line. A receiver that
 *    waits inside a line therefore looks at the next line's first header, too. If that one is
 *    there, all that went into the first line was published before; one more look tells.
 *
 * Some rings have one message in each line: those that a transport or a device carries line by
 * line, and all rings if $VELO_MESSAGE_LINES is 1.
 *
 * Positions count cells, up for ever; only their low bits index.
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
#include "source.h"

#define CELL_BYTES 16u
#define CELL_WORDS (CELL_BYTES / 8u)
#define CELL_WORD_BYTES 8u /* The payload of one cell beside its header. */
#define LINE_CELLS (VELO_LINE_BYTES / CELL_BYTES)

/* In a stream of short messages both sides ask for lines this far ahead. The two must not meet in
 * an idle ring: the sender does it only when it is well ahead, the receiver only when a message was
 * there at its first look. */
#define CELLS_AHEAD (8u * LINE_CELLS)
/* The lines of a long message are asked for this far ahead. */
#define TAKE_AHEAD_BYTES 2048u
/* A receiver that polls asks for the data of messages up to this length, and so takes the lines
 * from its sender: the sender asks for those of longer messages only, or in a stream. Of a longer
 * message the receiver would take lines that the sender still writes. */
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

/** The line of a position, and the position at which a line begins. */
hot_inline uint64_t ring_line(uint64_t position) { return position / LINE_CELLS; }

hot_inline uint64_t ring_at_line(uint64_t line) { return line * LINE_CELLS; }

/** Is this position the first of its line? */
hot_inline bool ring_is_first(uint64_t position) { return position % LINE_CELLS == 0; }

/** This position if it is the first of its line, else the next line's first. */
hot_inline uint64_t ring_line_up(uint64_t position)
{
    return (position + LINE_CELLS - 1) & ~(uint64_t)(LINE_CELLS - 1);
}

/** The bits of a header that name its line. */
hot_inline uint64_t ring_seq(uint64_t position)
{
    /* The field is at the top: higher bits fall off. */
    return ring_line(position) << VELO_HEADER_SEQ_LSB;
}

/** The cells of a message that lies in its line, header and all. */
hot_inline uint32_t ring_cells(size_t len_bytes)
{
    return (uint32_t)(VELO_LINE_HEADER_BYTES + len_bytes + CELL_BYTES - 1) / CELL_BYTES;
}
/* Of a message in the data region: a header, a position, and a word for a protocol above. */
#define EXTERNAL_CELLS 2u

/** The cells of a message, from a branch for each number: the core then guesses where the next
 * message is and goes on there, rather than wait until this one's length is known. */
hot_inline uint32_t ring_cells_guessed(uint32_t cells)
{
    if (cells == 1)
        return compiler_constant(1);
    if (cells == 2)
        return compiler_constant(2);
    return cells == LINE_CELLS ? compiler_constant(LINE_CELLS) : cells;
}

static inline uint64_t ring_data_bytes(size_t len_bytes)
{
    return (len_bytes + VELO_LINE_BYTES - 1) & ~(uint64_t)(VELO_LINE_BYTES - 1);
}

/* ---- sender ---------------------------------------------------------------------------------- */

/* Two counters in one word cost one store: messages in the low half, their bytes in the high one.
 * Each counts on for ever, and loses its upper bits; `msgs` and `bytes` are behind by less than
 * they hold. An overflow of the low half adds one to the high half. */
#define RECENT_MSG UINT64_C(1)
#define RECENT_BYTES_LSB 32u

/** A sender's cursor. Private to it. */
struct ring_tx {
    uint64_t tail;  /* Position behind the last message. */
    uint64_t limit; /* First position without a credit, of a line; 0 while a reservation is open. */
    uint64_t header; /* The constant bits of each header. */
    uint64_t cell_mask;
    uint64_t *slots;
    struct seg_ring *shared;
    bool is_by_line; /* Each message has a line of its own. */
    uint32_t ahead;  /* Cells to ask for ahead: CELLS_AHEAD in a stream, else 0. */
    uint64_t recent; /* Messages sent, and their bytes; see RECENT_. */
    uint64_t msgs;   /* Messages sent when the counters were last shown. */
    uint64_t bytes;  /* Payload of those. */

    uint64_t data_tail;  /* Next byte of the data region; counts up for ever. */
    uint64_t data_limit; /* First byte without a credit. */
    uint64_t data_mask;
    char *data;
};

/** Begin to send into a ring, at the position up to which its last sender was read. */
static inline void ring_tx_start(struct ring_tx *tx, struct seg_ring *ring,
                                 const struct seg_shape *shape, velo_id_t source, bool is_by_line)
{
    tx->shared = ring;
    tx->slots = ring->slots;
    tx->cell_mask = ring_at_line(shape->depth_slots) - 1;
    tx->is_by_line = is_by_line;
    tx->data = (char *)(ring->slots + (size_t)shape->depth_slots * SLOT_WORDS);
    tx->data_mask = shape->data_bytes - 1;
    tx->header = VELO_HEADER_VALID_MASK | ((uint64_t)source << VELO_HEADER_SOURCE_LSB);
    tx->tail = order_read_credit(&ring->consumed);
    tx->data_tail = order_read_credit(&ring->data_consumed);
}

hot_inline uint64_t *ring_tx_cell(const struct ring_tx *tx, uint64_t position)
{
    return tx->slots + (position & tx->cell_mask) * CELL_WORDS;
}

/** The position for a message: in the rest of the line, if it fits there. */
hot_inline uint64_t ring_tx_at(const struct ring_tx *tx, uint32_t cells)
{
    bool fits = tx->tail % LINE_CELLS + cells <= LINE_CELLS;
    return fits ? tx->tail : ring_line_up(tx->tail);
}

/** Is there room for a message of one line? The limit is the first position of a line. */
hot_inline bool ring_tx_has_cells(const struct ring_tx *tx, uint32_t cells)
{
    return ring_tx_at(tx, cells) < tx->limit;
}

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

/** The counter near `before` that has these low bits. */
static inline uint64_t ring_counter_near(uint64_t before, uint32_t low)
{
    return before + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)before);
}

/** Messages sent so far, and their bytes. Any thread may ask. */
static inline uint64_t ring_tx_msgs(const struct ring_tx *tx)
{
    return ring_counter_near(order_counter(&tx->msgs), (uint32_t)order_counter(&tx->recent));
}

static inline uint64_t ring_tx_bytes(const struct ring_tx *tx)
{
    uint64_t recent = order_counter(&tx->recent);
    uint64_t overflows = ring_counter_near(order_counter(&tx->msgs), (uint32_t)recent) >> 32;
    return ring_counter_near(order_counter(&tx->bytes),
                             (uint32_t)(recent >> RECENT_BYTES_LSB) - (uint32_t)overflows);
}

/** Show the counters to onlookers. This is done now and then: they are exact only in `tx`. */
static inline void ring_tx_show_counters(struct ring_tx *tx)
{
    uint64_t msgs = ring_tx_msgs(tx);
    uint64_t bytes = ring_tx_bytes(tx);
    order_show(&tx->msgs, msgs);
    order_show(&tx->bytes, bytes);
    order_show(&tx->shared->tx_msgs, msgs);
    order_show(&tx->shared->tx_bytes, bytes);
}

/** Take the credits that the receiver has published, but only so many at once that the sender soon
 *  notices a death. False: they make no sense. */
static inline bool ring_tx_refresh(struct ring_tx *tx, uint64_t consumed)
{
    uint64_t cells = tx->cell_mask + 1;
    uint64_t size = tx->data_mask + 1;
    uint64_t data_consumed = order_read_credit(&tx->shared->data_consumed);
    if (tx->tail - consumed > cells || tx->data_tail - data_consumed > size)
        return false;
    /* It is a stream if the receiver is behind by more than the credits that it may owe. */
    bool is_stream = tx->tail - consumed > cells / 2 || tx->data_tail - data_consumed > size / 2;
    tx->ahead = is_stream ? CELLS_AHEAD : 0;
    /* A line is free when all of it is consumed. */
    tx->limit = ring_at_line(ring_line(consumed)) + cells;
    uint64_t look_cells = tx->is_by_line ? ring_at_line(LOOK_SENDS) : LOOK_SENDS;
    if (tx->limit - tx->tail > look_cells)
        tx->limit = ring_at_line(ring_line(tx->tail + look_cells));
    tx->data_limit = data_consumed + size;
    return true;
}

/** Are the lines that the receiver has not given back yet unchanged? */
static inline bool ring_tx_is_intact(const struct ring_tx *tx)
{
    uint64_t at = order_read_credit(&tx->shared->consumed);
    bool is_intact = tx->tail - at <= tx->cell_mask + 1;
    for (at = ring_line_up(at); is_intact && at < tx->tail; at += LINE_CELLS) {
        uint64_t header = order_read_header(ring_tx_cell(tx, at));
        is_intact = (header & RING_CHECK) == (tx->header | ring_seq(at));
    }
    return is_intact;
}

/** A place for a message: where its header goes. */
struct ring_place {
    uint64_t at;
    uint64_t *cell;
    uint32_t cells;
};

/** The place for a message of some cells. There is room for it if `at` is below the limit. */
hot_inline struct ring_place ring_tx_place(const struct ring_tx *tx, uint32_t cells)
{
    uint64_t at = ring_tx_at(tx, cells);
    return (struct ring_place){.at = at, .cell = ring_tx_cell(tx, at), .cells = cells};
}

/** Ask for the line of a place, or, in a stream, for one ahead. (At the ring's end that is a line
 * of the data region.) */
hot_inline void ring_tx_ask(const struct ring_tx *tx, struct ring_place place)
{
    order_prefetch_write(place.cell + (size_t)tx->ahead * CELL_WORDS);
}

/** Store the header of a message whose payload stands in its place: from here on it is the
 *  receiver's. */
hot_inline void ring_tx_publish(struct ring_tx *tx, struct ring_place place, uint64_t bits,
                                size_t len_bytes, uint8_t tag)
{
    uint64_t behind = place.at + (unlikely(tx->is_by_line) ? LINE_CELLS : place.cells);
    if (!ring_is_first(behind))
        order_empty_cell(place.cell + (size_t)place.cells * CELL_WORDS);
    VELO_HOOK(HOOK_SEND_EMPTIED);
    order_publish_header(place.cell, tx->header | bits | ring_seq(place.at) |
                                         ((uint64_t)len_bytes << VELO_HEADER_LEN_LSB) |
                                         ((uint64_t)tag << VELO_HEADER_TAG_LSB));
    VELO_HOOK(HOOK_SEND_HEADER);
    tx->tail = behind;
    VELO_HOOK(HOOK_SEND_CURSOR);
    order_show(&tx->recent, tx->recent + ((uint64_t)len_bytes << RECENT_BYTES_LSB) + RECENT_MSG);
    VELO_HOOK(HOOK_SEND_COUNTED);
}

/** Write a short message. The caller has seen room for it. */
hot_inline void ring_tx_write_inline(struct ring_tx *tx, struct ring_place place, const void *buf,
                                     size_t len_bytes, uint8_t tag)
{
    ring_tx_ask(tx, place);
    copy_small_in(place.cell + 1, buf, len_bytes);
    VELO_HOOK(HOOK_SEND_PAYLOAD);
    ring_tx_publish(tx, place, 0, len_bytes, tag);
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
                                            uint64_t word, uint8_t tag)
{
    struct ring_place place = ring_tx_place(tx, EXTERNAL_CELLS);
    ring_tx_ask(tx, place);
    order_store_position(place.cell + 1, at);
    order_store_position(place.cell + 2, word);
    VELO_HOOK(HOOK_SEND_DATA_OFFSET);
    tx->data_tail = at + ring_data_bytes(len_bytes);
    ring_tx_publish(tx, place, VELO_HEADER_EXTERNAL_MASK, len_bytes, tag);
    if ((len_bytes > FETCH_AHEAD_BYTES || tx->ahead) && !copy_is_long(len_bytes))
        ring_tx_take_lines(tx, len_bytes);
}

/** Write a long message. The caller has seen room for it. */
static inline void ring_tx_write_external(struct ring_tx *tx, const void *buf, size_t len_bytes,
                                          uint64_t word, uint8_t tag)
{
    uint64_t at = ring_tx_data_at(tx, len_bytes);
    copy_to_ring(tx->data + (at & tx->data_mask), buf, len_bytes);
    VELO_HOOK(HOOK_SEND_PAYLOAD);
    ring_tx_publish_external(tx, at, len_bytes, word, tag);
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
    const uint64_t *cell; /* Of the next header. */
    uint64_t expect;      /* The next header must equal this in the bits of RING_CHECK. */
    uint64_t head;        /* Its position. */
    uint64_t pause_at;    /* From here on give credits back, or let others have a turn. */
    uint64_t cell_mask;
    uint64_t constant; /* The bits of `expect` that are the same in all headers. */
    bool is_by_line;   /* As the sender's. */
    struct seg_ring *shared;
    struct msg_source from;
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
    uint64_t word;     /* Of a message in the data region: what stands behind its position. */
    uint32_t cells;
    uint32_t len_bytes;
    uint8_t tag;
    bool is_external;
};

hot_inline const uint64_t *ring_rx_cell(const struct ring_rx *rx, uint64_t position)
{
    return rx->shared->slots + (position & rx->cell_mask) * CELL_WORDS;
}

static inline const char *ring_rx_data(const struct ring_rx *rx)
{
    return (const char *)(rx->shared->slots + (rx->cell_mask + 1) * CELL_WORDS);
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
    const char *data = ring_rx_data(rx) + (rx->data_head & (data_bytes - 1));
    for (uint64_t i = 0; i < rx->data_ahead; i += VELO_LINE_BYTES)
        __builtin_prefetch(data + i);
}

/** Go on at a position. */
hot_inline void ring_rx_seek(struct ring_rx *rx, uint64_t head)
{
    rx->head = head;
    rx->cell = ring_rx_cell(rx, head);
    rx->expect = rx->constant | ring_seq(head);
}

/** Start at a position. */
static inline void ring_rx_start(struct ring_rx *rx, uint64_t head)
{
    rx->constant = VELO_HEADER_VALID_MASK | ((uint64_t)rx->from.id << VELO_HEADER_SOURCE_LSB);
    ring_rx_seek(rx, head);
}

/** Step behind a message. */
hot_inline void ring_rx_step(struct ring_rx *rx, uint32_t cells)
{
    uint32_t step = unlikely(rx->is_by_line) ? LINE_CELLS : cells;
    rx->cell += (size_t)step * CELL_WORDS;
    rx->head += step;
    if (ring_is_first(rx->head)) { /* The next line, perhaps of the next lap. */
        rx->expect += ring_seq(LINE_CELLS);
        if ((rx->head & rx->cell_mask) == 0)
            rx->cell = rx->shared->slots;
    }
}

/** Is this the header of the next message? */
hot_inline bool ring_rx_match(const struct ring_rx *rx, uint64_t header)
{
    return (header & RING_CHECK) == rx->expect;
}

/** Inside a line that holds no more: has the sender gone on to the next line? Then so does the
 *  receiver. Returns the next header, or 0. */
static inline uint64_t ring_rx_turn(struct ring_rx *rx)
{
    uint64_t next = ring_line_up(rx->head);
    uint64_t first = order_read_header(ring_rx_cell(rx, next));
    if ((first & RING_CHECK) != rx->expect + ring_seq(LINE_CELLS))
        return 0;
    /* What the sender put into the rest of this line was published before that, and is seen now. */
    uint64_t header = order_read_header(rx->cell);
    if (ring_rx_match(rx, header))
        return header;
    ring_rx_seek(rx, next);
    return first;
}

/** Can a message of this length be here? It does not go beyond its line. */
hot_inline bool ring_rx_holds(const struct ring_rx *rx, uint32_t cells)
{
    return cells == 1 || rx->head % LINE_CELLS + cells <= LINE_CELLS;
}

/* A sender that writes to a line which its receiver has only read waits for it several times as
 * long as for one that its receiver has written to. So the receiver stores a word of each line
 * again before it gives the line back. */

/** Own the slots that are given back now. */
static inline void ring_rx_own_slots(const struct ring_rx *rx)
{
    uint64_t *slots = rx->shared->slots;
    for (uint64_t line = ring_line(rx->published); line < ring_line(rx->head); line++)
        order_store_again(slots + (ring_at_line(line) & rx->cell_mask) * CELL_WORDS);
}

/** Own the lines of a message in the data region, if that makes the next one's copy faster. */
static inline void ring_rx_own_data(const struct ring_message *message)
{
    if (!copy_wants_owned(message->len_bytes))
        return;
    uintptr_t data = (uintptr_t)message->data;
    for (size_t i = 0; i < message->len_bytes; i += VELO_LINE_BYTES)
        order_store_again((uint64_t *)(data + i));
}

/** In a stream: ask for a line ahead. (At the ring's end that is a line of the data region.) */
hot_inline void ring_rx_fetch_line(const struct ring_rx *rx, uint32_t cells_ahead)
{
    __builtin_prefetch(rx->cell + (size_t)cells_ahead * CELL_WORDS);
}

/** Look once for the next message: returns its header, or a word that does not match. */
hot_inline uint64_t ring_rx_look(struct ring_rx *rx)
{
    uint64_t header = order_read_header(rx->cell);
    if (likely(ring_rx_match(rx, header)) || ring_is_first(rx->head))
        return header;
    return ring_rx_turn(rx);
}

hot_inline uint32_t ring_len(uint64_t header)
{
    return (uint32_t)((header & VELO_HEADER_LEN_MASK) >> VELO_HEADER_LEN_LSB);
}

hot_inline uint8_t ring_tag(uint64_t header)
{
    return (uint8_t)((header & VELO_HEADER_TAG_MASK) >> VELO_HEADER_TAG_LSB);
}

/** Is this a header of the line that is expected, but one that no correct sender writes? */
static inline bool ring_is_foul(uint64_t header, uint64_t expect)
{
    uint64_t seq = header & VELO_HEADER_SEQ_MASK;
    return (header & VELO_HEADER_VALID_MASK) && seq == (expect & VELO_HEADER_SEQ_MASK) &&
           (header & RING_CHECK) != expect;
}

/** Does nonsense stand where the next message may come? */
static inline bool ring_rx_is_corrupt(const struct ring_rx *rx)
{
    if (ring_is_foul(order_read_header(rx->cell), rx->expect))
        return true;
    return !ring_is_first(rx->head) &&
           ring_is_foul(order_read_header(ring_rx_cell(rx, ring_line_up(rx->head))),
                        rx->expect + ring_seq(LINE_CELLS));
}

/** Find the payload behind a header. False: a length or position that no correct sender writes. */
static inline bool ring_rx_locate(const struct ring_rx *rx, uint64_t header, uint32_t data_bytes,
                                  struct ring_message *out)
{
    uint32_t len = ring_len(header);
    out->len_bytes = len;
    out->tag = ring_tag(header);
    out->is_external = header & VELO_HEADER_EXTERNAL_MASK;
    if (!out->is_external) {
        out->data = rx->cell + 1;
        out->data_end = rx->data_head;
        out->cells = ring_cells(len);
        return ring_rx_holds(rx, out->cells);
    }
    uint64_t at = compiler_guess(order_load_position(rx->cell + 1), rx->data_head);
    uint64_t offset = at & (data_bytes - 1);
    out->data = ring_rx_data(rx) + offset;
    out->cells = EXTERNAL_CELLS;
    out->word = order_load_position(rx->cell + 2);
    out->data_end = at + ring_data_bytes(len);
    return ring_rx_holds(rx, EXTERNAL_CELLS) && len <= ring_max_bytes(data_bytes) &&
           offset % VELO_LINE_BYTES == 0 && offset + len <= data_bytes &&
           out->data_end - rx->data_head <= data_bytes;
}

#endif
