/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the library in the shape that Python wants: one call from Python costs about 100 ns, so
 * what is always called together is one call here. generate.py reads this file, too. */
#include <string.h>

/* A message in place: its address as a number, for a lease. */
struct velo_py_place {
    uint64_t address;
    uint64_t len_bytes;
    uint32_t source;
    uint32_t generation;
    uint32_t tag;
};

static void velo_py_show(struct velo_py_place *place, const struct velo_msg *msg)
{
    place->address = (uint64_t)(uintptr_t)msg->data;
    place->len_bytes = msg->len_bytes;
    place->source = msg->source;
    place->generation = msg->generation;
    place->tag = msg->tag;
}

/* velo_peek(). With VELO_ERR_STATE `place` goes on telling of the message that is held. */
static int velo_py_peek(struct velo_port *port, struct velo_py_place *place, int64_t timeout_ns)
{
    struct velo_msg msg = {0};
    int status = timeout_ns ? velo_peek(port, &msg, timeout_ns) : velo_try_peek(port, &msg);
    if (status != VELO_ERR_STATE)
        velo_py_show(place, &msg);
    return status;
}

/* velo_recv(); returns the length. */
static int64_t velo_py_recv(struct velo_port *port, void *buf, size_t cap_bytes,
                            struct velo_msg *msg, int64_t timeout_ns)
{
    int status = timeout_ns ? velo_recv(port, buf, cap_bytes, msg, timeout_ns)
                            : velo_try_recv(port, buf, cap_bytes, msg);
    return status ? status : (int64_t)msg->len_bytes;
}

#define VELO_PY_TAG_SHIFT 32 /* No message is longer. */
/* The same for a queue, which looks at the tag of each: it is in the bits above the length. */
static int64_t velo_py_recv_tagged(struct velo_port *port, void *buf, size_t cap_bytes,
                                   struct velo_msg *msg, int64_t timeout_ns)
{
    int64_t len_bytes = velo_py_recv(port, buf, cap_bytes, msg, timeout_ns);
    return len_bytes < 0 ? len_bytes : len_bytes | (int64_t)msg->tag << VELO_PY_TAG_SHIFT;
}

/* Copy the message that is held, and those that follow, while they come from the same source with
 * the same tag, until `len_bytes` are there. *done_bytes is where to begin, and how far it came.
 * Then no message is held; but with VELO_PY_OTHER one is, of which `place` tells, that is none of
 * them. */
#define VELO_PY_OTHER 1

static int velo_py_take_pieces(struct velo_port *port, void *buf, size_t len_bytes,
                               struct velo_py_place *place, int64_t timeout_ns, size_t *done_bytes)
{
    const struct velo_py_place first = *place;
    for (;;) {
        if (place->source != first.source || place->generation != first.generation ||
            place->tag != first.tag || place->len_bytes > len_bytes - *done_bytes)
            return VELO_PY_OTHER;
        memcpy((char *)buf + *done_bytes, (const void *)(uintptr_t)place->address,
               place->len_bytes);
        *done_bytes += place->len_bytes;
        (void)velo_release(port);
        if (*done_bytes == len_bytes)
            return VELO_OK;
        int status = velo_py_peek(port, place, timeout_ns);
        if (status)
            return status;
    }
}

/* velo_send() of many bytes in pieces. *done_bytes is where to begin, and how far it came. */
static int velo_py_send_long(struct velo_conn *conn, const void *buf, size_t len_bytes,
                             size_t piece_bytes, uint8_t tag, int64_t timeout_ns,
                             size_t *done_bytes)
{
    while (*done_bytes < len_bytes) {
        size_t left_bytes = len_bytes - *done_bytes;
        size_t now_bytes = left_bytes < piece_bytes ? left_bytes : piece_bytes;
        const char *piece = (const char *)buf + *done_bytes;
        int status = velo_send(conn, piece, now_bytes, tag, timeout_ns);
        if (status)
            return status;
        *done_bytes += now_bytes;
    }
    return VELO_OK;
}

/* Room that was reserved: its address as a number, for a lease. */
struct velo_py_room {
    uint64_t address;
    uint64_t len_bytes;
};

/* velo_reserve(). `room` tells of the last one that succeeded. */
static int velo_py_reserve(struct velo_conn *conn, size_t len_bytes, struct velo_py_room *room,
                           int64_t timeout_ns)
{
    void *buf = NULL;
    int status = timeout_ns ? velo_reserve(conn, len_bytes, &buf, timeout_ns)
                            : velo_try_reserve(conn, len_bytes, &buf);
    if (status == VELO_OK)
        *room = (struct velo_py_room){(uint64_t)(uintptr_t)buf, len_bytes};
    return status;
}

/* velo_rma_mem_addr(), as a number. */
static uint64_t velo_py_mem_addr(const struct velo_rma_mem *mem)
{
    return (uint64_t)(uintptr_t)velo_rma_mem_addr(mem);
}

/* A word that peers add to by remote memory access: one less. */
static void velo_py_count_down(uint64_t address)
{
    (void)__atomic_fetch_sub((uint64_t *)(uintptr_t)address, 1, __ATOMIC_ACQ_REL);
}

/* ---- one to many ----------------------------------------------------------------------------- */

/* velo_bcast_peek(), as velo_py_peek(). */
static int velo_py_bcast_peek(struct velo_bcast_reader *reader, struct velo_py_place *place,
                              int64_t timeout_ns)
{
    struct velo_msg msg = {0};
    int status =
        timeout_ns ? velo_bcast_peek(reader, &msg, timeout_ns) : velo_bcast_try_peek(reader, &msg);
    if (status != VELO_ERR_STATE)
        velo_py_show(place, &msg);
    return status;
}

/* velo_bcast_recv(); returns the length, and the tag in the bits above it. */
static int64_t velo_py_bcast_recv(struct velo_bcast_reader *reader, void *buf, size_t cap_bytes,
                                  struct velo_msg *msg, int64_t timeout_ns)
{
    int status = timeout_ns ? velo_bcast_recv(reader, buf, cap_bytes, msg, timeout_ns)
                            : velo_bcast_try_recv(reader, buf, cap_bytes, msg);
    return status ? status : (int64_t)msg->len_bytes | (int64_t)msg->tag << VELO_PY_TAG_SHIFT;
}

/* velo_bcast_reserve(), as velo_py_reserve(). */
static int velo_py_bcast_reserve(struct velo_bcast *bcast, size_t len_bytes,
                                 struct velo_py_room *room, int64_t timeout_ns)
{
    void *buf = NULL;
    int status = timeout_ns ? velo_bcast_reserve(bcast, len_bytes, &buf, timeout_ns)
                            : velo_bcast_try_reserve(bcast, len_bytes, &buf);
    if (status == VELO_OK)
        *room = (struct velo_py_room){(uint64_t)(uintptr_t)buf, len_bytes};
    return status;
}
