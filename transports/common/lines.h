/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file lines.h
 * @brief The lines of a connection, by number.
 *
 * A connection joins two ports and carries all lines between them. Each side numbers the lines that
 * it dials. A side that hangs up tells the other one by a frame WIRE_GONE, now or when there is
 * room.
 *
 * A transport's connection has `struct lines`, and its line begins with `struct line`.
 */
#ifndef VELO_TRANSPORT_LINES_H
#define VELO_TRANSPORT_LINES_H

#include "endpoint.h"
#include "envelope.h"

/** Most lines that one side dials on a connection. */
#define LINES_MAX 4096u

struct lines;

/** A line; the library's `void *line`. */
struct line {
    struct lines *lines;    /* Of its connection. */
    struct velo_link *link; /* NULL: the library has hung up. */
    uint16_t number, use;
    bool is_dialed; /* By this side. */
    bool owes_gone; /* The other side is to be told that the library has hung up. */
    bool is_gone;   /* The other side has hung up. */
    bool is_full;   /* The library's last frame found no room. */
};

/** What lines need of their transport. */
struct lines_use {
    size_t line_bytes; /**< Of the transport's line. */
    /** Is the connection open? Else nothing is sent. */
    bool (*is_open)(const struct lines *lines);
    /** Send a frame. VELO_AGAIN: no room. */
    int (*send)(struct line *line, const struct velo_frame *frame);
    /** The line is about to be freed. NULL: that is all the same. */
    void (*forget)(struct line *line);
};

struct line_table {
    struct line **at; /* By number. */
    uint16_t *uses;
    uint32_t len;
};

struct lines {
    struct endpoint_base *endpoint;
    velo_id_t peer;
    struct line_table tables[2]; /* Dialed by the other side, by this side. */
    uint32_t owed_gone;          /* Lines with `owes_gone`, */
    uint32_t full;               /* and with `is_full`. */
};

/** A new connection to a peer: it has no lines. */
void lines_init(struct lines *lines, struct endpoint_base *endpoint, velo_id_t peer);
/** VELO_ERR_FULL, VELO_ERR_NO_MEMORY. */
int line_dial(struct lines *lines, struct velo_link *link, void **out);
void line_hang_up(struct line *line);
/** Send a frame of the library: `send` of the transport. */
int line_send(struct line *line, const struct velo_frame *frame);
/** Write a frame as it travels, with its envelope. Its length, as wire_frame_bytes(). */
uint32_t line_put_frame(const struct line *line, const struct velo_frame *frame, char *out);
/** There may be room again: tell the library, of the lines that found none. */
void lines_tell_room(struct lines *lines);
/** Take a frame, of a peer that is this generation of its port, and hand it to the library. False:
 * no correct peer sends it. */
bool lines_take(struct lines *lines, uint32_t generation, const struct wire_envelope *envelope,
                const struct velo_frame *frame);
/** Send what is owed for lines; if there is no room, the endpoint is owing. */
void lines_push(struct lines *lines);
/** All lines are lost. */
void lines_lose(struct lines *lines, int status);
/** Hand all lines over to those of the connection that takes this one's place. */
void lines_move(struct lines *from, struct lines *to);
void lines_free(struct lines *lines);

#endif
