/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of the machine, measured without the library: velo's figures are divided by these
 * references.
 *
 * Two processes, side 0 and side 1, call the same function at the same time; side 0 measures, and
 * the value returned on side 1 means nothing. They share one struct limit_area, an anonymous
 * mapping made before the fork.
 */
#ifndef VELO_BENCH_LIMIT_H
#define VELO_BENCH_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_BYTES 64u
#define LIMIT_COPY_BYTES_MIN 4096u /* Below, the start of the copy takes most of the time. */
#define LIMIT_COPY_BYTES_MAX (1024u * 1024u)
#define LIMIT_STREAM_SLOTS 256u
#define LIMIT_RING_SLOTS_MAX 64u
#define LIMIT_RINGS 3u
#define LIMIT_PIPE_CHUNKS 8u
#define LIMIT_PIPE_CHUNK_BYTES_MAX (32u * 1024u)
#define LIMIT_PIPE_BYTES_MAX (4u * 1024u * 1024u)
#define LIMIT_MESSAGE_SLOTS 64u
#define LIMIT_MESSAGE_BYTES_MAX 4096u

/* One cache line; word 0 is the sequence word where there is one. */
struct line {
    _Alignas(LINE_BYTES) _Atomic uint64_t word[LINE_BYTES / sizeof(uint64_t)];
};

/* One direction of the pipelined copy: the chunks of a message, one behind the other. */
struct limit_pipe {
    struct line ready[LIMIT_PIPE_CHUNKS]; /* written by the sender: a chunk lies there */
    struct line taken;                    /* written by the receiver: chunks copied out so far */
    _Alignas(4096) unsigned char chunk[LIMIT_PIPE_CHUNKS * LIMIT_PIPE_CHUNK_BYTES_MAX];
};

/* One direction of the bare messages. A slot is as long as the messages of the call. */
struct limit_messages {
    struct line credit; /* written by the receiver of a stream */
    _Alignas(
        4096) unsigned char slots[LIMIT_MESSAGE_SLOTS * (LIMIT_MESSAGE_BYTES_MAX + LINE_BYTES)];
};

/* What may make a bare message faster: the best of all ways counts. */
enum limit_message_way {
    LIMIT_MESSAGE_PAUSE = 1,         /* The receiver polls with PAUSE. */
    LIMIT_MESSAGE_SENDER_ASKS = 2,   /* The sender asks for the next slot's lines early. */
    LIMIT_MESSAGE_RECEIVER_ASKS = 4, /* The receiver asks for the slot's lines while it polls. */
    LIMIT_MESSAGE_RECEIVER_OWNS = 8, /* The receiver stores a word of each line again. */
};

struct limit_area {
    struct line pingpong;                                    /* written by both sides in turn */
    struct line handover;                                    /* written by both sides in turn */
    struct line ring[LIMIT_RINGS][2][LIMIT_RING_SLOTS_MAX];  /* [..][s] written by side s */
    struct line stream[LIMIT_STREAM_SLOTS];                  /* written by side 1 */
    struct line stream_credit;                               /* written by side 0 */
    _Alignas(4096) unsigned char copy[LIMIT_COPY_BYTES_MAX]; /* written by side 1 */
    struct limit_pipe pipe[2];                               /* [s]: from side s */
    struct limit_messages message[2];                        /* [s]: from side s */
};

/* One side's view; the positions go on from call to call, so nothing is ever reset. */
struct limit {
    struct limit_area *area;
    unsigned side;
    uint64_t pingpong_seq;
    uint64_t handover_seq;
    uint64_t ring_tx[LIMIT_RINGS];
    uint64_t ring_rx[LIMIT_RINGS];
    uint64_t stream_pos;
    uint64_t stream_credit; /* side 1: the credit it last read */
    unsigned char *local;   /* side 0: copies go here */
    uint64_t pipe_tx;       /* chunks sent and received so far */
    uint64_t pipe_rx;
    unsigned char *pipe_out; /* private; NULL until they are needed */
    unsigned char *pipe_in;
    bool is_string_move;  /* of the pipelined copy */
    bool pipe_owns;       /* as above */
    uint64_t message_pos; /* bare messages so far; the same in both directions */
    unsigned char message_out[LIMIT_MESSAGE_BYTES_MAX];
    unsigned char message_in[LIMIT_MESSAGE_BYTES_MAX];
};

struct limit_area *limit_area_new(void);
void limit_attach(struct limit *limit, struct limit_area *area, unsigned side);

/* Slots of the bare rings that are tried; the first is the one called THE bare ring. */
extern const unsigned limit_ring_slots[LIMIT_RINGS];

/* One cache line, written by both sides in turn. Plain spinning is the latency reference. */
double limit_pingpong_half_rtt_ns(struct limit *limit, unsigned round_trips, bool pause);

/* Two rings, one a direction, of 64-byte slots: one payload word, then the sequence word. */
double limit_ring_half_rtt_ns(struct limit *limit, unsigned ring, unsigned round_trips, bool pause);

/* One line an element from side 1 to side 0, which gives credit back each quarter of the ring. */
double limit_stream_msgs_per_s(struct limit *limit, unsigned msgs, unsigned payload_words,
                               bool pause);

/* memcpy on side 0 out of a buffer that side 1 has just written. */
double limit_copy_bytes_per_s(struct limit *limit, size_t size_bytes, unsigned rounds);

/*
 * A message each way, copied into a ring of chunks by its sender and out of it by its receiver,
 * which is at most LIMIT_PIPE_BYTES_MAX long. The buffers of the two directions are two. `owns`:
 * the receiver stores a word of each line again.
 */
double limit_pipe_half_rtt_ns(struct limit *limit, size_t size_bytes, unsigned round_trips,
                              bool owns);

/*
 * A message of 8 to LIMIT_MESSAGE_BYTES_MAX bytes each way, copied into a ring by its sender and
 * out of it by its receiver: as limit_ring_half_rtt_ns(), with a payload. And a stream of them from
 * side 1 to side 0, as limit_stream_msgs_per_s().
 */
double limit_message_half_rtt_ns(struct limit *limit, size_t size_bytes, unsigned round_trips,
                                 enum limit_message_way way);
double limit_message_msgs_per_s(struct limit *limit, size_t size_bytes, unsigned msgs,
                                enum limit_message_way way);

/* --- the ring of processes ------------------------------------------------------------------- */

#define LIMIT_FUTEX_BOX_WORDS 64u /* Tokens that one box can hold. */

/* A mailbox of the futex ring; written by the rank before its owner. */
struct limit_futex_box {
    _Alignas(LINE_BYTES) _Atomic uint32_t sent; /* the futex: messages put in so far */
    _Alignas(LINE_BYTES) uint64_t word[LIMIT_FUTEX_BOX_WORDS];
};

struct limit_futex {
    struct limit_futex_box *boxes;
    unsigned rank;
    unsigned ranks;
    uint32_t received;
    uint32_t sent;
};

struct limit_futex_box *limit_futex_boxes_new(unsigned ranks);

/* Pass `tokens` tokens round `laps` times, waiting in FUTEX_WAIT only. All ranks call it. */
double limit_futex_ring_hops_per_s(struct limit_futex *futex, unsigned laps, unsigned tokens);

#endif
