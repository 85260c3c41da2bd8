/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../base/error.h"
#include "../core/send.h"
#include "internal.h"

/* The most sends that one call of progress starts for one peer. */
#define SENDS_PER_CALL 64

static int send_eager(struct velo_mq_peer *peer, const void *buf, size_t len_bytes, uint64_t match)
{
    /* A message without payload may have no buffer. */
    return conn_try_send_with(peer->conn, buf ? buf : &match, len_bytes, match, MQ_WIRE_EAGER);
}

/* Nothing was sent, or the receiver was found dead after it. */
static __attribute__((noinline)) int not_sent(struct velo_mq_peer *peer, int status)
{
    if (status != VELO_AGAIN)
        mq_peer_lost(peer, status);
    return status;
}

static __attribute__((noinline)) int try_send_slow(struct velo_mq_peer *peer, const void *buf,
                                                   size_t len_bytes, uint64_t match)
{
    if (!peer || (!buf && len_bytes > 0))
        return velo_fail(VELO_ERR_ARG, "peer or buf is NULL");
    if (len_bytes >= peer->direct_end_bytes)
        return peer->gone ? peer->gone : VELO_AGAIN;
    int status = send_eager(peer, buf, len_bytes, match);
    if (status)
        return not_sent(peer, status);
    peer->mq->counters.sent++;
    return VELO_OK;
}

int velo_mq_try_send(struct velo_mq_peer *peer, const void *buf, size_t len_bytes, uint64_t match)
{
    if (unlikely(!peer || !buf || len_bytes >= peer->direct_end_bytes))
        return try_send_slow(peer, buf, len_bytes, match);
    int status = conn_try_send_with(peer->conn, buf, len_bytes, match, MQ_WIRE_EAGER);
    if (unlikely(status))
        return not_sent(peer, status);
    peer->mq->counters.sent++;
    return VELO_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The payload has been sent or announced. */
static void send_done(struct transfer *op)
{
    struct velo_mq_request *request = request_of(op);
    op->peer->mq->counters.sent++;
    op->state = OP_ANNOUNCED;
    if (op->kind != MQ_WIRE_EAGER)
        return;
    request->len_bytes = op->len_bytes;
    complete(request, VELO_OK);
}

static int send_sync(struct transfer *op)
{
    if (op->id == 0 && !mq_op_name(op))
        return VELO_ERR_NO_MEMORY;
    struct wire_sync trailer = {.sender_id = op->id, .match = op->entry.match};
    uint64_t packed_bytes;
    if (op->layout)
        return mq_layout_send(op, op->len_bytes, &trailer, sizeof trailer, &packed_bytes);
    return mq_send_more(op, op->len_bytes, &trailer, sizeof trailer);
}

static int send_queued_eager(struct transfer *op)
{
    static const char nothing;
    uint64_t packed_bytes;
    if (op->layout)
        return mq_layout_send(op, op->len_bytes, &op->entry.match, sizeof op->entry.match,
                              &packed_bytes);
    const void *buf = op->buf ? op->buf : &nothing;
    if (op->has_cookie)
        return conn_try_send_with_two(op->peer->conn, buf, op->len_bytes, op->cookie,
                                      op->entry.match, mq_tag_of(MQ_WIRE_EAGER, op->space, true));
    return conn_try_send_with(op->peer->conn, buf, op->len_bytes, op->entry.match,
                              mq_tag_of(MQ_WIRE_EAGER, op->space, false));
}

static int send_op(struct transfer *op)
{
    switch (op->kind) {
    case MQ_WIRE_EAGER:
        return send_queued_eager(op);
    case MQ_WIRE_SYNC:
        return send_sync(op);
    default:
        return mq_rendezvous_announce(op);
    }
}

/* Only this request failed, not its peer. */
static void send_failed(struct transfer *op, int status)
{
    mq_op_unname(op);
    complete(request_of(op), status);
}

static bool is_of_request(int status)
{
    return status == VELO_ERR_NO_MEMORY || status == VELO_ERR_ARG;
}

/* Send now if no send waits before this one, else after those. */
static void send_in_turn(struct transfer *op)
{
    struct velo_mq_peer *peer = op->peer;
    int status = peer->gone;
    if (status == VELO_OK)
        status = peer->sends.first ? VELO_AGAIN : send_op(op);
    if (status == VELO_OK) {
        send_done(op);
        return;
    }
    if (status == VELO_AGAIN) {
        op->state = OP_QUEUED;
        peer->direct_end_bytes = 0;
        list_append(&peer->sends, &op->entry.link);
        mq_peer_activate(peer);
        return;
    }
    if (!is_of_request(status) && !peer->gone)
        mq_peer_lost(peer, status);
    send_failed(op, status);
}

int velo_mq_try_send_in(struct velo_mq_peer *peer, uint32_t space, const void *buf,
                        size_t len_bytes, uint64_t match, uint32_t flags, uint64_t cookie)
{
    if (unlikely(!peer || (!buf && len_bytes > 0) || space >= VELO_MQ_SPACES ||
                 (flags & ~(uint32_t)VELO_MQ_COOKIE)))
        return velo_fail(VELO_ERR_ARG,
                         "peer or buf is NULL, there is no space %u, or flags are %#x; "
                         "give 0 or VELO_MQ_COOKIE",
                         space, flags);
    if (unlikely(len_bytes >= peer->direct_end_bytes))
        return peer->gone ? peer->gone : VELO_AGAIN;
    if (unlikely(!buf))
        buf = &match; /* A message without payload may have no buffer. */
    uint8_t tag = mq_tag_of(MQ_WIRE_EAGER, space, flags != 0);
    int status = flags ? conn_try_send_with_two(peer->conn, buf, len_bytes, cookie, match, tag)
                       : conn_try_send_with(peer->conn, buf, len_bytes, match, tag);
    if (unlikely(status))
        return not_sent(peer, status);
    peer->mq->counters.sent++;
    return VELO_OK;
}

/* Start a send that was not done at once. */
static void start_send(struct velo_mq_peer *peer, uint32_t space,
                       const struct velo_mq_layout *layout, const void *buf, size_t len_bytes,
                       uint64_t match, uint32_t flags, uint64_t cookie,
                       struct velo_mq_request *request)
{
    struct transfer *op = op_of(request);
    memset(op, 0, sizeof *op);
    op->entry.match = match;
    op->buf = (char *)(uintptr_t)buf; /* It is only read. */
    op->layout = layout;
    op->len_bytes = len_bytes;
    op->peer = peer;
    op->space = (uint8_t)space;
    op->has_cookie = flags & VELO_MQ_COOKIE;
    op->cookie = cookie;
    if (len_bytes > peer->eager_bytes)
        op->kind = MQ_WIRE_RTS;
    else
        op->kind = flags & VELO_MQ_SYNC ? MQ_WIRE_SYNC : MQ_WIRE_EAGER;
    request->len_bytes = 0;
    request->status = VELO_AGAIN;
    send_in_turn(op);
}

static __attribute__((noinline)) int isend_slow(struct velo_mq_peer *peer, const void *buf,
                                                size_t len_bytes, uint64_t match, uint32_t flags,
                                                struct velo_mq_request *request)
{
    if (!peer || !request || (!buf && len_bytes > 0))
        return velo_fail(VELO_ERR_ARG, "peer, request or buf is NULL");
    if (flags & ~(uint32_t)VELO_MQ_SYNC)
        return velo_fail(VELO_ERR_ARG, "flags are %#x; give 0 or VELO_MQ_SYNC", flags);
    start_send(peer, 0, NULL, buf, len_bytes, match, flags, 0, request);
    return VELO_OK;
}

int velo_mq_isend_in(struct velo_mq_peer *peer, uint32_t space, const void *buf, size_t len_bytes,
                     uint64_t match, uint32_t flags, uint64_t cookie,
                     struct velo_mq_request *request)
{
    if (!peer || !request || (!buf && len_bytes > 0))
        return velo_fail(VELO_ERR_ARG, "peer, request or buf is NULL");
    if (space >= VELO_MQ_SPACES || (flags & ~(uint32_t)(VELO_MQ_SYNC | VELO_MQ_COOKIE)))
        return velo_fail(VELO_ERR_ARG,
                         "space is %u and flags are %#x; give a space below %d, and "
                         "VELO_MQ_SYNC or VELO_MQ_COOKIE or both or 0",
                         space, flags, VELO_MQ_SPACES);
    start_send(peer, space, NULL, buf, len_bytes, match, flags, cookie, request);
    return VELO_OK;
}

int velo_mq_isend_layout(struct velo_mq_peer *peer, const struct velo_mq_layout *layout,
                         void *state, size_t len_bytes, uint64_t match, uint32_t flags,
                         struct velo_mq_request *request)
{
    if (!peer || !request || !layout || !layout->pack)
        return velo_fail(VELO_ERR_ARG, "peer, request, layout or its pack() is NULL");
    if (flags & ~(uint32_t)VELO_MQ_SYNC)
        return velo_fail(VELO_ERR_ARG, "flags are %#x; give 0 or VELO_MQ_SYNC", flags);
    start_send(peer, 0, layout, state, len_bytes, match, flags, 0, request);
    return VELO_OK;
}

int velo_mq_isend(struct velo_mq_peer *peer, const void *buf, size_t len_bytes, uint64_t match,
                  uint32_t flags, struct velo_mq_request *request)
{
    if (unlikely(!peer || !request || !buf || flags || len_bytes >= peer->direct_end_bytes))
        return isend_slow(peer, buf, len_bytes, match, flags, request);
    int status = send_eager(peer, buf, len_bytes, match);
    if (unlikely(status))
        return isend_slow(peer, buf, len_bytes, match, flags, request); /* It tries once more. */
    peer->mq->counters.sent++;
    op_of(request)->state = OP_ANNOUNCED; /* This marks it as a send. */
    request->len_bytes = len_bytes;
    complete(request, VELO_OK);
    return VELO_OK;
}

int mq_send_waiting(struct velo_mq_peer *peer, int *status)
{
    int events = 0;
    *status = VELO_OK;
    while (peer->sends.first && events < SENDS_PER_CALL) {
        struct transfer *op = (struct transfer *)peer->sends.first;
        *status = send_op(op);
        if (*status && !is_of_request(*status))
            return events;
        list_remove(&peer->sends, &op->entry.link);
        events++;
        if (*status)
            send_failed(op, *status);
        else
            send_done(op);
        *status = VELO_OK;
    }
    if (!peer->sends.first && !peer->gone)
        peer->direct_end_bytes = (uint64_t)peer->eager_bytes + 1;
    return events;
}
