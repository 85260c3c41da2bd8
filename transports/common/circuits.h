/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file circuits.h
 * @brief The circuits of a connection, by number.
 *
 * A connection joins two ports and carries all circuits between them. Each side numbers the
 * circuits that it dials. A side that hangs up tells the other one by a frame WIRE_GONE, now or
 * when there is room.
 *
 * A transport's connection has `struct circuits`, and its circuit begins with `struct circuit`.
 */
#ifndef VELO_TRANSPORT_CIRCUITS_H
#define VELO_TRANSPORT_CIRCUITS_H

#include "endpoint.h"
#include "envelope.h"

/** Most circuits that one side dials on a connection. */
#define CIRCUITS_MAX 4096u

struct circuits;

/** A circuit; the library's `void *circuit`. */
struct circuit {
    struct circuits *circuits; /* Of its connection. */
    struct velo_link *link;    /* NULL: the library has hung up. */
    uint16_t number, use;
    bool is_dialed; /* By this side. */
    bool owes_gone; /* The other side is to be told that the library has hung up. */
    bool is_gone;   /* The other side has hung up. */
    bool is_full;   /* The library's last frame found no room. */
};

/** What circuits need of their transport. */
struct circuits_use {
    size_t circuit_bytes; /**< Of the transport's circuit. */
    /** Is the connection open? Else nothing is sent. */
    bool (*is_open)(const struct circuits *circuits);
    /** Send a frame. VELO_AGAIN: no room. */
    int (*send)(struct circuit *circuit, const struct velo_frame *frame);
    /** The circuit is about to be freed. NULL: that is all the same. */
    void (*forget)(struct circuit *circuit);
};

struct circuit_table {
    struct circuit **at; /* By number. */
    uint16_t *uses;
    uint32_t len;
};

struct circuits {
    struct endpoint_base *endpoint;
    velo_id_t peer;
    struct circuit_table tables[2]; /* Dialed by the other side, by this side. */
    uint32_t owed_gone;             /* Circuits with `owes_gone`, */
    uint32_t full;                  /* and with `is_full`. */
};

/** A new connection to a peer: it has no circuits. */
void circuits_init(struct circuits *circuits, struct endpoint_base *endpoint, velo_id_t peer);
/** VELO_ERR_FULL, VELO_ERR_NO_MEMORY. */
int circuit_dial(struct circuits *circuits, struct velo_link *link, void **out);
/** `hang_up` of the transport. */
void circuit_hang_up(void *self);
/** Send a frame of the library: `send` of the transport. */
int circuit_send(void *self, const struct velo_frame *frame);
/** Write a frame as it travels, with its envelope. Its length, as wire_frame_bytes(). */
uint32_t circuit_put_frame(const struct circuit *circuit, const struct velo_frame *frame,
                           char *out);
/** There may be room again: tell the library, of the circuits that found none. */
void circuits_tell_room(struct circuits *circuits);
/** Take a frame, of a peer that is this generation of its port, and hand it to the library. False:
 * no correct peer sends it. */
bool circuits_take(struct circuits *circuits, uint32_t generation,
                   const struct wire_envelope *envelope, const struct velo_frame *frame);
/** Send what is owed for circuits; if there is no room, the endpoint is owing. */
void circuits_push(struct circuits *circuits);
/** All circuits are lost. */
void circuits_lose(struct circuits *circuits, int status);
/** Hand all circuits over to those of the connection that takes this one's place. */
void circuits_move(struct circuits *from, struct circuits *to);
void circuits_free(struct circuits *circuits);

#endif
