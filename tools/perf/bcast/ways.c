/* SPDX-License-Identifier: Apache-2.0 */
#include "ways.h"

#include <stdlib.h>

#include "../fail.h"
#include "../pattern.h"

#define DEPTH_SLOTS 256u
#define DATA_BYTES_MIN (64u << 10)
#define MESSAGES_HELD 4u /* In the data region: the default of a ring. */
#define BURST_MAX 64u
/* A connection takes messages below 64 KiB: pieces are the next power of two. */
#define PIECE_BYTES_MAX (32u << 10)
#define WRITER_VPID 255
/* Longer than any wait of a run that works. */
#define PATIENCE_NS INT64_C(60000000000)

static const uint64_t keys[WAYS] = {0x52494e47, 0x434f4e4e};

static void check(int status, const char *what)
{
    if (__builtin_expect(status != VELO_OK, 0))
        rank_fail(EXIT_FAILED, "%s: %s; %s", what, velo_strerror(status), velo_last_error());
}

/* ---- the ends -------------------------------------------------------------------------------- */

static void shape(struct ends *ends, const struct point *point)
{
    *ends = (struct ends){.point = *point, .data_bytes = DATA_BYTES_MIN};
    ends->piece_bytes = point->size_bytes < PIECE_BYTES_MAX ? point->size_bytes : PIECE_BYTES_MAX;
    while (ends->data_bytes < MESSAGES_HELD * point->size_bytes)
        ends->data_bytes *= 2;
}

static struct velo_bcast_attr ring_attr(const struct ends *ends, const char *domain)
{
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    attr.domain = domain;
    attr.depth_slots = DEPTH_SLOTS;
    attr.msg_bytes_max = (uint32_t)ends->point.size_bytes;
    attr.data_bytes = (uint32_t)ends->data_bytes;
    return attr;
}

static void open_port(struct ends *ends, const char *domain, int vpid)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    attr.domain = domain;
    attr.vpid = vpid;
    attr.depth_slots = DEPTH_SLOTS;
    attr.data_bytes = (uint32_t)ends->data_bytes;
    check(velo_port_open(&attr, &ends->port), "opening a port");
}

void ends_open_writer(struct ends *ends, const struct point *point, const char *domain)
{
    shape(ends, point);
    const struct velo_bcast_attr attr = ring_attr(ends, domain);
    check(velo_bcast_open(&attr, &ends->ring), "opening a ring");
    open_port(ends, domain, WRITER_VPID);
    ends->copies_bytes = point->size_bytes <= PATTERN_FULL_BYTES ? DEPTH_SLOTS * point->size_bytes
                                                                 : ends->data_bytes;
    ends->buf = calloc(1, point->size_bytes);
    ends->copies = malloc(ends->copies_bytes);
    if (!ends->buf || !ends->copies)
        rank_fail(EXIT_FAILED, "out of memory for messages of %zu bytes", point->size_bytes);
    memset(ends->copies, 1, ends->copies_bytes); /* So that it has its pages. */
}

void ends_connect_writer(struct ends *ends)
{
    for (unsigned i = 0; i < ends->point.readers; i++)
        check(velo_connect(ends->port, VELO_ID(0, i), &ends->conns[i], PATIENCE_NS), "connecting");
}

void ends_open_reader(struct ends *ends, const struct point *point, const char *domain,
                      unsigned index)
{
    shape(ends, point);
    const struct velo_bcast_attr attr = ring_attr(ends, domain);
    open_port(ends, domain, (int)index);
    check(velo_bcast_join(&attr, &ends->reader, PATIENCE_NS), "joining the ring");
}

void ends_close(struct ends *ends)
{
    for (unsigned i = 0; i < READERS_MAX; i++)
        (void)velo_disconnect(ends->conns[i]);
    (void)velo_bcast_leave(ends->reader);
    (void)velo_bcast_close(ends->ring);
    (void)velo_port_close(ends->port);
    free(ends->buf);
    free(ends->copies);
}

unsigned ends_burst(const struct ends *ends)
{
    /* Half of the room: a reader of a connection may have given back all but a quarter. */
    size_t fit = ends->data_bytes / ends->point.size_bytes / 2;
    return (unsigned)(fit < BURST_MAX ? fit : BURST_MAX);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Make message `number`; of a long one three words change. */
static inline void write_number(unsigned char *buf, size_t len_bytes, enum way way, uint64_t number)
{
    if (len_bytes <= PATTERN_FULL_BYTES)
        pattern_fill(buf, len_bytes, keys[way], number);
    else
        pattern_stamp(buf, len_bytes, keys[way], number);
}

static void send_ring(struct ends *ends, unsigned count)
{
    const size_t size_bytes = ends->point.size_bytes;
    for (unsigned i = 0; i < count; i++) {
        uint64_t number = ends->number[WAY_RING]++;
        write_number(ends->buf, size_bytes, WAY_RING, number);
        check(velo_bcast_send(ends->ring, ends->buf, size_bytes, (uint8_t)number, PATIENCE_NS),
              "sending into the ring");
    }
}

/* Each piece goes to all readers before the next one: it stays in the writer's cache. */
static void send_conns(struct ends *ends, unsigned count)
{
    const size_t pieces = ends->point.size_bytes / ends->piece_bytes;
    for (size_t i = 0; i < count * pieces; i++) {
        uint64_t number = ends->number[WAY_CONNS]++;
        unsigned char *piece = ends->buf + i % pieces * ends->piece_bytes;
        write_number(piece, ends->piece_bytes, WAY_CONNS, number);
        for (unsigned reader = 0; reader < ends->point.readers; reader++)
            check(velo_send(ends->conns[reader], piece, ends->piece_bytes, (uint8_t)number,
                            PATIENCE_NS),
                  "sending over a connection");
    }
}

void ways_send(struct ends *ends, enum way way, unsigned count)
{
    if (way == WAY_RING)
        send_ring(ends, count);
    else
        send_conns(ends, count);
}

void ways_copy(struct ends *ends, unsigned count)
{
    const size_t size_bytes = ends->point.size_bytes;
    size_t at = 0;
    for (unsigned i = 0; i < count; i++) {
        write_number(ends->buf, size_bytes, WAY_RING, i);
        memcpy(ends->copies + at, ends->buf, size_bytes);
        __asm__ volatile("" ::: "memory"); /* Nobody reads it, and yet it is to be written. */
        at = (at + size_bytes) % ends->copies_bytes;
    }
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void check_message(const struct velo_msg *msg, size_t len_bytes, enum way way,
                          uint64_t number)
{
    bool is_right = msg->len_bytes == len_bytes && msg->tag == (uint8_t)number &&
                    (len_bytes <= PATTERN_FULL_BYTES
                         ? pattern_is_short(msg->data, len_bytes, keys[way], number)
                         : pattern_is_stamped(msg->data, len_bytes, keys[way], number));
    if (__builtin_expect(!is_right, 0))
        rank_fail(EXIT_VERIFY, "message %llu of %zu bytes through the %s is not what was sent",
                  (unsigned long long)number, len_bytes, way == WAY_RING ? "ring" : "connection");
}

static void take_ring(struct ends *ends, unsigned count)
{
    struct velo_msg msg;
    for (unsigned i = 0; i < count; i++) {
        check(velo_bcast_peek(ends->reader, &msg, PATIENCE_NS), "reading the ring");
        check_message(&msg, ends->point.size_bytes, WAY_RING, ends->number[WAY_RING]++);
        check(velo_bcast_release(ends->reader), "releasing a message of the ring");
    }
}

static void take_conn(struct ends *ends, unsigned count)
{
    struct velo_msg msg;
    const size_t pieces = ends->point.size_bytes / ends->piece_bytes;
    for (size_t i = 0; i < count * pieces; i++) {
        check(velo_peek(ends->port, &msg, PATIENCE_NS), "reading a connection");
        check_message(&msg, ends->piece_bytes, WAY_CONNS, ends->number[WAY_CONNS]++);
        check(velo_release(ends->port), "releasing a message of a connection");
    }
}

void ways_take(struct ends *ends, enum way way, unsigned count)
{
    if (way == WAY_RING)
        take_ring(ends, count);
    else
        take_conn(ends, count);
}
