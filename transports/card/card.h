/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file card.h
 * @brief The structures of the transport, and what its files offer each other.
 *
 * An **endpoint** is a port's: one context of the node. It has a **connection** to each peer that
 * either side has dialed; all circuits between the two ports share it. A connection is greeted
 * (greeting.c), carries frames (frame.c) of its circuits (circuits.h), and is lost or closed
 * (conn.c). A **line** is a message of the hardware.
 */
#ifndef VELO_CARD_CARD_H
#define VELO_CARD_CARD_H

#include "../common/circuits.h"
#include "../common/endpoint.h"
#include "../common/fetches.h"
#include "../common/patience.h"
#include "../nic/host_io.h"
#include "../nic/recombine.h"
#include "wire.h"

/** Most connections that this side is calling for. */
#define CALLS_MAX 64u
/** Descriptors of an endpoint that are under way: fewer than the node's own queue holds. */
#define FLIGHTS 32u
/** Connections that ended, and that stores may still come of; the oldest are forgotten. */
#define FORMER_MAX 128u

/* Slots of the ring, in parts of PARTS: one is for what the node does not know to be free yet, one
 * for greetings, the rest for connections. A connection has its window, and SPARE slots for what
 * has no place in the sequence: an ACK for each quarter of what the own side sends, and answers. */
#define PARTS 8u
#define WINDOW_MIN 16u
#define WINDOW_MAX 64u
#define SPARE 8u

struct conn;
struct endpoint;
struct fetch;

enum conn_state { CONN_CALLING, CONN_OPEN, CONN_OVER };

struct conn {
    struct circuits circuits; /* First. */
    struct conn *next;        /* Of the endpoint's. */
    struct endpoint *endpoint;
    enum conn_state state;
    uint16_t address;            /* Of the peer's context, */
    uint16_t context_generation; /* whose generation this is; 0: not known yet. */
    uint32_t generation;         /* Of the peer's port. */
    bool is_self;                /* To the own port. */
    bool is_here;                /* The peer is a port of this machine. */
    bool is_guessed;             /* Only the map says where it is, and not that it is. */
    bool is_redirected;          /* The address is the second one. */

    /* Greeting. */
    uint16_t call;      /* Number of the own HELLO; 0: the other side called, */
    uint16_t peer_call; /* with this number. */
    uint32_t owed;      /* enum wire_kind: HELLO or REPLY is to be sent; 0: none. */
    int64_t again_ns;   /* When HELLO is sent once more, */
    int64_t pause_ns;   /* and the time until the next one. */

    /* The sequence. All counts are of lines. */
    uint16_t sent, acked, window_out;      /* Towards the peer, */
    uint16_t taken, taken_told, window_in; /* and from it. */
    bool owes_ack, is_leaving, has_left;
    struct hearing hearing;
    bool was_busy;
    uint32_t dead_ticks;

    /* The frame that is being sent: its stores, and how many of them have gone. */
    uint64_t out[WIRE_FRAME_LINES][WIRE_LINE_WORDS];
    uint8_t out_words[WIRE_FRAME_LINES];
    uint32_t out_len, out_gone;
    /* The frame that comes. */
    _Alignas(8) char in[WIRE_FRAME_BYTES];
    uint32_t in_len, in_bytes; /* Bytes that have come; of the frame, 0: none has begun. */
};

/** A connection that ended. Its peer may go on sending until it knows, so its slots stay its own
 *  for a while. */
struct former_conn {
    uint16_t address, context_generation;
    uint32_t slots;
    uint32_t ticks;
};

/** The context of a port: its address and generation. */
struct place {
    uint16_t address, context_generation;
};

struct endpoint {
    struct endpoint_base base; /* First. */
    struct patience patience;
    uint64_t domain_hash;
    bool is_beside; /* A port that the library has opened beside the user's. */
    struct host_context context;
    bool is_open;             /* The context is. */
    struct place place;       /* The own one. */
    uint64_t head, head_told; /* Slots taken out; those that the node knows of. */
    struct recombine split;
    uint64_t queue_told; /* Notifications taken out that the node knows of. */
    struct fetch_base *fetches;
    struct fetch *flights[FLIGHTS]; /* Whose descriptor has this number; NULL: none. */
    uint32_t slots;                 /* Of the ring, that no connection has. */
    uint16_t calls_made;
    struct conn *conns, *over;
    struct former_conn former_conns[FORMER_MAX];
    uint32_t next_former;
};

/* ---- store.c: towards the node, and from it ---- */

/** Send one message. `words`: of `line`, the header among them, which is filled in. False: there is
 *  no room now. */
bool store_line(const struct endpoint *endpoint, uint16_t to, enum wire_kind kind,
                uint64_t line[WIRE_LINE_WORDS], uint32_t words);
/** Let the node use the slots before `head`, of the ring or of the queue, again: an eighth of all
 * at a time. `read_pointers`: the register for that, of context 0; `head_told`: what the node knows
 * of.
 */
void store_give_back(const struct endpoint *endpoint, uint64_t read_pointers, uint64_t head,
                     uint64_t *head_told, uint32_t slots);
/** Take in the lines that have come, put together where the host split them. True: there was
 *  anything. */
bool store_take(struct endpoint *endpoint,
                void (*take)(struct endpoint *endpoint, const uint64_t *line));

/* ---- names.c: addresses ---- */

int names_learn(struct endpoint *endpoint, velo_id_t peer, const void *text, size_t len_bytes);
size_t names_own(const struct endpoint *endpoint, char *out);
/** Where a peer is: sets address, generations, `is_here`, `is_guessed`. VELO_ERR_NO_PEER. */
int names_resolve(struct conn *conn);
/** May the port at an address be a peer? VELO_ERR_NO_PEER: nobody has said so, yet.
 * VELO_ERR_ACCESS: another one is. `is_here`: it is of this machine. */
int names_check(const struct endpoint *endpoint, velo_id_t peer, uint16_t address,
                uint16_t context_generation, bool *is_here);

/* ---- greeting.c ---- */

/** Begin to call the peer of a new connection. */
void greeting_call(struct conn *conn);
/** Send what is owed, and HELLO once more if it is time. False: it is still owed. */
bool greeting_push(struct conn *conn);
void greeting_take(struct endpoint *endpoint, uint16_t from, enum wire_kind kind,
                   const uint64_t *line, uint32_t words);

/* ---- conn.c ---- */

/** VELO_ERR_FULL, VELO_ERR_NO_MEMORY. The ring has room for the connection's window from then on.
 */
int conn_new(struct endpoint *endpoint, velo_id_t peer, uint16_t address, struct conn **out);
/** The connection to a peer; NULL: there is none. */
struct conn *conn_find(const struct endpoint *endpoint, velo_id_t peer);
struct conn *conn_at(const struct endpoint *endpoint, uint16_t address);
/** It is over; its circuits are lost. `is_settled`: the peer sends nothing more. */
void conn_end(struct conn *conn, int status, bool is_settled);
/** Was there a connection with that context a while ago? */
bool conn_was_at(const struct endpoint *endpoint, uint16_t address, uint16_t context_generation);
/** Free those that are over. */
void conns_sweep(struct endpoint *endpoint);
void conn_free(struct conn *conn);

/* ---- frame.c ---- */

extern const struct circuits_use frame_circuits;
/** Send a frame. VELO_AGAIN: no room. */
int frame_send(struct circuit *circuit, const struct velo_frame *frame);
/** May there be room for a frame? */
bool frame_has_room(const struct conn *conn);
/** Send what is left of a frame. False: not all of it has gone. */
bool frame_push(struct conn *conn);
/** ALIVE or BYE. False: no room. */
bool frame_mark(struct conn *conn, enum wire_kind kind);
/** Tell the peer how many of its lines were taken. */
void frame_acknowledge(struct conn *conn);
/** A line of an open connection came. */
void frame_take(struct conn *conn, enum wire_kind kind, const uint64_t *line, uint32_t words);

/* ---- silence.c ---- */

/** Some time has gone by: look who is silent, and keep the others awake. */
void silence_tick(struct endpoint *endpoint);

/* ---- fetch.c: reading a peer's memory ---- */

/** As the functions of the transport. */
struct velo_exposed *fetch_expose(const struct circuit *circuit, const void *memory,
                                  size_t len_bytes);
void fetch_conceal(const struct endpoint *endpoint, struct velo_exposed *shown);
int fetch_begin(const struct circuit *circuit, void *to, size_t len_bytes,
                const struct velo_exposed *from, int *outcome);
void fetch_forget(struct endpoint *endpoint, const int *outcome);
/** Take in what the node notifies. True: there was anything. */
bool fetches_take(struct endpoint *endpoint);
/** Post what could not be posted before. */
void fetches_push(struct endpoint *endpoint);
/** Those of a connection that is over end with this status. */
void fetches_end(const struct conn *conn, int status);
/** The context is closed. */
void fetches_free(struct endpoint *endpoint);

#endif
