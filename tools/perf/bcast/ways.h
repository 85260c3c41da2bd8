/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ways to send a message to several readers: one ring that all of them read, or a connection to
 * each of them. Both have room for the same number of messages, and readers look at them in place.
 *
 * A message that is longer than a connection takes goes over connections in pieces.
 */
#ifndef VELO_BENCH_BCAST_WAYS_H
#define VELO_BENCH_BCAST_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <velo/bcast.h>

#define READERS_MAX 16u

enum way { WAY_RING, WAY_CONNS, WAYS };

/* What a point of the measurement is about. */
struct point {
    size_t size_bytes;
    unsigned readers;
};

/* One process's end of both ways. */
struct ends {
    struct point point;
    size_t piece_bytes;    /* Of a message over a connection. */
    size_t data_bytes;     /* For long messages, of the ring and of each connection. */
    uint64_t number[WAYS]; /* Of the next message, in pieces for connections. */
    struct velo_port *port;
    struct velo_bcast *ring; /* The writer's, as those below. */
    struct velo_conn *conns[READERS_MAX];
    unsigned char *buf;
    unsigned char *copies; /* As large as a ring, and nobody else's. */
    size_t copies_bytes;
    struct velo_bcast_reader *reader; /* A reader's. */
};

/* Open an end. The writer connects once all readers have opened theirs. */
void ends_open_writer(struct ends *ends, const struct point *point, const char *domain);
void ends_connect_writer(struct ends *ends);
void ends_open_reader(struct ends *ends, const struct point *point, const char *domain,
                      unsigned index);
void ends_close(struct ends *ends);

/* How many messages fit both ways while no reader looks. */
unsigned ends_burst(const struct ends *ends);

/* Send so many messages to all readers. */
void ways_send(struct ends *ends, enum way way, unsigned count);
/* The floor of it: write and copy so many messages, for nobody. */
void ways_copy(struct ends *ends, unsigned count);
/* Take so many, and see that each is the one that is due. */
void ways_take(struct ends *ends, enum way way, unsigned count);

#endif
