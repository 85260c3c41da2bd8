/* SPDX-License-Identifier: Apache-2.0 */
/* The bare message: the floor of one that is copied into a ring by its sender and out of it by its
 * receiver. It has no checks, no counters, no doorbell and one length only. */
#include "fail.h"
#include "limit.h"
#include "limit_word.h"

#include <string.h>

#define WARM_ROUND_TRIPS 16u
/* Ping-pongs were fastest over few slots, streams over many. */
#define SLOTS_OF_PINGPONG 8u
#define SLOTS_OF_STREAM LIMIT_MESSAGE_SLOTS
/* Lines that a side asks for at once. */
#define ASK_LINES_MAX 32u

/* A header word, then the payload. */
struct message_ring {
    unsigned char *slots;
    size_t slot_bytes;
    unsigned mask;
    size_t size_bytes;
    enum limit_message_way way;
};

static struct message_ring ring_of(struct limit *limit, unsigned side, size_t size_bytes,
                                   unsigned slots, enum limit_message_way way)
{
    size_t bytes = sizeof(uint64_t) + size_bytes;
    return (struct message_ring){.slots = limit->area->message[side].slots,
                                 .slot_bytes = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES,
                                 .mask = slots - 1,
                                 .size_bytes = size_bytes,
                                 .way = way};
}

#define always_inline static inline __attribute__((always_inline))

always_inline unsigned char *slot_at(const struct message_ring *ring, uint64_t pos)
{
    return ring->slots + (pos & ring->mask) * ring->slot_bytes;
}

/* Both sides upwards; short messages in moves of a constant length. */
always_inline void copy(unsigned char *to, const unsigned char *from, size_t size_bytes)
{
    switch (size_bytes) {
    case 8:
        memcpy(to, from, 8);
        return;
    case 24:
        memcpy(to, from, 24);
        return;
    case 56:
        memcpy(to, from, 56);
        return;
    default:
        for (; size_bytes >= LINE_BYTES; size_bytes -= LINE_BYTES) {
            memcpy(to, from, LINE_BYTES);
            to += LINE_BYTES, from += LINE_BYTES;
        }
        memcpy(to, from, size_bytes);
    }
}

/* Ask for the lines of a slot behind its first. */
always_inline void ask(const struct message_ring *ring, uint64_t pos, bool write)
{
    unsigned char *slot = slot_at(ring, pos);
    size_t bytes = ring->slot_bytes < ASK_LINES_MAX * LINE_BYTES ? ring->slot_bytes
                                                                 : ASK_LINES_MAX * LINE_BYTES;
    for (size_t at = LINE_BYTES; at < bytes; at += LINE_BYTES) {
        if (write) {
            __builtin_prefetch(slot + at, 1);
        } else {
            __builtin_prefetch(slot + at);
        }
    }
}

/* No payload looks like a header that will be awaited. */
always_inline uint64_t first_word(uint64_t pos) { return ~pos; }

always_inline _Atomic uint64_t *header_at(const struct message_ring *ring, uint64_t pos)
{
    return (_Atomic uint64_t *)slot_at(ring, pos);
}

always_inline void message_send(const struct message_ring *ring, uint64_t pos, unsigned char *out)
{
    uint64_t word = first_word(pos);
    memcpy(out, &word, sizeof word);
    copy(slot_at(ring, pos) + sizeof word, out, ring->size_bytes);
    publish(header_at(ring, pos), pos + 1);
    if (ring->way & LIMIT_MESSAGE_SENDER_ASKS) {
        ask(ring, pos + 1, true);
    }
}

always_inline void message_recv(const struct message_ring *ring, uint64_t pos, unsigned char *in)
{
    const _Atomic uint64_t *header = header_at(ring, pos);
    if (ring->way & LIMIT_MESSAGE_RECEIVER_ASKS) {
        /* Acquire pairs with the publish() of message_send(), as in await(). */
        while (atomic_load_explicit(header, memory_order_acquire) != pos + 1) {
            ask(ring, pos, false);
            cpu_pause();
        }
    }
    await(header, pos + 1, ring->way & LIMIT_MESSAGE_PAUSE);
    copy(in, slot_at(ring, pos) + sizeof(uint64_t), ring->size_bytes);
    if (ring->way & LIMIT_MESSAGE_RECEIVER_OWNS) {
        own_lines(slot_at(ring, pos), ring->slot_bytes);
    }
}

static void require(const unsigned char *in, uint64_t pos)
{
    uint64_t word;
    memcpy(&word, in, sizeof word);
    if (word != first_word(pos)) {
        rank_fail(EXIT_VERIFY, "the bare message delivered a wrong word: this machine's memory is"
                               " broken, or velo-perf is");
    }
}

static void exchange(struct limit *limit, const struct message_ring *tx,
                     const struct message_ring *rx, unsigned count)
{
    uint64_t pos = limit->message_pos;
    for (uint64_t end = pos + count; pos != end; pos++) {
        if (limit->side == 0) {
            message_send(tx, pos, limit->message_out);
            message_recv(rx, pos, limit->message_in);
        } else {
            message_recv(rx, pos, limit->message_in);
            message_send(tx, pos, limit->message_out);
        }
    }
    limit->message_pos = pos;
    require(limit->message_in, pos - 1);
}

double limit_message_half_rtt_ns(struct limit *limit, size_t size_bytes, unsigned round_trips,
                                 enum limit_message_way way)
{
    struct message_ring tx = ring_of(limit, limit->side, size_bytes, SLOTS_OF_PINGPONG, way);
    struct message_ring rx = ring_of(limit, 1 - limit->side, size_bytes, SLOTS_OF_PINGPONG, way);
    exchange(limit, &tx, &rx, WARM_ROUND_TRIPS);
    uint64_t begin = now_ns();
    exchange(limit, &tx, &rx, round_trips);
    return (double)(now_ns() - begin) / 2.0 / round_trips;
}

always_inline void stream_send(struct limit *limit, struct message_ring ring, unsigned msgs)
{
    _Atomic uint64_t *credit = &limit->area->message[1].credit.word[0];
    uint64_t pos = limit->message_pos, free_until = pos + SLOTS_OF_STREAM;
    await(credit, pos, true); /* The receiver has read the message before: its place may change. */
    for (uint64_t end = pos + msgs; pos != end; pos++) {
        while (pos >= free_until) {
            /* Acquire pairs with the publish() in stream_recv(): the slots have been read. */
            free_until = atomic_load_explicit(credit, memory_order_acquire) + SLOTS_OF_STREAM;
            cpu_pause();
        }
        message_send(&ring, pos, limit->message_out);
    }
    await(credit, pos, true);
    limit->message_pos = pos;
}

always_inline void stream_recv(struct limit *limit, struct message_ring ring, unsigned msgs)
{
    _Atomic uint64_t *credit = &limit->area->message[1].credit.word[0];
    uint64_t pos = limit->message_pos;
    publish(credit, pos);
    for (uint64_t end = pos + msgs; pos != end;) {
        message_recv(&ring, pos, limit->message_in);
        if (++pos % (SLOTS_OF_STREAM / 4) == 0) {
            publish(credit, pos);
        }
    }
    publish(credit, pos);
    limit->message_pos = pos;
    require(limit->message_in, pos - 1);
}

/* One copy of the loops for each of the short lengths. */
always_inline void stream_sized(struct limit *limit, size_t size_bytes, unsigned msgs,
                                enum limit_message_way way)
{
    struct message_ring ring = ring_of(limit, 1, size_bytes, SLOTS_OF_STREAM, way);
    if (limit->side == 1) {
        stream_send(limit, ring, msgs);
    } else {
        stream_recv(limit, ring, msgs);
    }
}

static void stream(struct limit *limit, size_t size_bytes, unsigned msgs,
                   enum limit_message_way way)
{
    switch (size_bytes) {
    case 8:
        stream_sized(limit, 8, msgs, way);
        return;
    case 24:
        stream_sized(limit, 24, msgs, way);
        return;
    case 56:
        stream_sized(limit, 56, msgs, way);
        return;
    default:
        stream_sized(limit, size_bytes, msgs, way);
    }
}

double limit_message_msgs_per_s(struct limit *limit, size_t size_bytes, unsigned msgs,
                                enum limit_message_way way)
{
    struct message_ring tx = ring_of(limit, limit->side, 8, SLOTS_OF_PINGPONG, way);
    struct message_ring rx = ring_of(limit, 1 - limit->side, 8, SLOTS_OF_PINGPONG, way);
    exchange(limit, &tx, &rx, 1); /* Both sides are here. */
    uint64_t begin = now_ns();
    stream(limit, size_bytes, msgs, way);
    return msgs * 1e9 / (double)(now_ns() - begin);
}
