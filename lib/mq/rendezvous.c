/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages longer than eager. The sender announces one (RTS). When it is matched, the receiver gets
 * it by RMA, or has it sent in pieces (CTS, DATA): while the receiver copies one piece out of the
 * ring, the sender copies the next ones in, and all of them stay in cache.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "internal.h"

/* One call of progress sends so much to one peer before others get their turn. */
#define BYTES_PER_CALL (UINT64_C(60) << 10)
/* Pieces are longer while at least this much is left. */
#define BULK_BYTES (UINT64_C(128) << 10)

/* ---- the extra connection -------------------------------------------------------------------- */

/* Commit what was written to the reserved room. */
static int commit(struct velo_mq_peer *peer, size_t len_bytes, enum mq_wire_kind kind)
{
    peer->reserved = NULL;
    peer->staged = NULL;
    return velo_commit(peer->extra, len_bytes, (uint8_t)kind);
}

/* Send a short message. It takes the place of a piece that was copied ahead. */
static int send_word(struct velo_mq_peer *peer, const void *wire, size_t len_bytes,
                     enum mq_wire_kind kind)
{
    if (likely(!peer->reserved))
        return velo_try_send(peer->extra, wire, len_bytes, (uint8_t)kind);
    memcpy(peer->reserved, wire, len_bytes);
    return commit(peer, len_bytes, kind);
}

/* ---- receiver -------------------------------------------------------------------------------- */

static int send_answer(const struct transfer *op)
{
    if (op->kind == MQ_WIRE_CTS) {
        struct wire_cts cts = {op->remote_id, op->id, op->end_bytes};
        return send_word(op->peer, &cts, sizeof cts, MQ_WIRE_CTS);
    }
    struct wire_fin fin = {op->remote_id, VELO_OK};
    return send_word(op->peer, &fin, sizeof fin, MQ_WIRE_FIN);
}

/* Send a receive's CTS or FIN now, or when there is room. True: it was a FIN and has been sent. */
static bool answer(struct transfer *op)
{
    struct velo_mq_peer *peer = op->peer;
    int status = peer->answers.first ? VELO_AGAIN : send_answer(op);
    if (likely(status == VELO_OK)) {
        op->state = OP_COPYING;
        return op->kind == MQ_WIRE_FIN;
    }
    op->state = OP_ANSWERING;
    list_append(&peer->answers, &op->entry.link);
    if (status == VELO_AGAIN)
        mq_peer_activate(peer);
    else
        mq_peer_lost(peer, status);
    return false;
}

bool mq_rendezvous_finish(struct transfer *op)
{
    int status = mq_peer_open_extra(op->peer);
    if (unlikely(status))
        return true; /* The message is here, and its sender does not wait for the FIN any more. */
    op->kind = MQ_WIRE_FIN;
    return answer(op);
}

/* Have the sender send the rest of the message. */
static void ask(struct transfer *op)
{
    op->kind = MQ_WIRE_CTS;
    (void)answer(op);
}

void mq_rendezvous_copy_instead(struct transfer *op)
{
    op->offset_bytes = 0;
    ask(op);
}

/* The receive ends before it began. Returns true, as mq_rendezvous_accept() does. */
static bool give_up(struct transfer *op, int status)
{
    request_of(op)->len_bytes = 0;
    op->outcome = status;
    if (op->peer)
        mq_rendezvous_refuse(op->peer, op->remote_id);
    return true;
}

bool mq_rendezvous_accept(struct velo_mq *mq, struct transfer *op, const struct arrival *arrival)
{
    struct velo_mq_request *request = request_of(op);
    op->peer = mq_peer_get(mq, arrival->source, arrival->generation);
    op->remote_id = arrival->sender_id;
    op->end_bytes = arrival->total_bytes < op->len_bytes ? arrival->total_bytes : op->len_bytes;
    if (!op->peer)
        return give_up(op, VELO_ERR_NO_MEMORY);
    int status = mq_peer_open_extra(op->peer);
    if (status)
        return give_up(op, status);
    bool is_whole = op->end_bytes <= arrival->len_bytes;
    op->offset_bytes = is_whole ? op->end_bytes : arrival->len_bytes;
    request->len_bytes = op->offset_bytes;
    if (!is_whole) {
        if (!mq_op_name(op))
            return give_up(op, VELO_ERR_NO_MEMORY);
        if (!mq_get_start(op, arrival))
            ask(op); /* Before the copy, so that the sender copies at the same time. */
    }
    copy_out(op->buf, arrival->data, request->len_bytes);
    if (is_whole)
        mq->counters.copied++;
    return is_whole && mq_rendezvous_finish(op);
}

/* The request of an id, if the sender of this message may name it: this very generation of a port.
 */
static struct transfer *find_op(const struct velo_mq *mq, uint64_t id, const struct velo_msg *msg)
{
    struct transfer *op = mq_ids_find(&mq->ids, id);
    return op && op->peer->id == msg->source && op->peer->generation == msg->generation ? op : NULL;
}

bool mq_rendezvous_on_data(struct velo_mq *mq, const struct velo_msg *msg)
{
    struct wire_data data;
    if (!mq_wire_read(msg, &data, sizeof data))
        return false;
    uint64_t len_bytes = msg->len_bytes - sizeof data;
    struct transfer *op = find_op(mq, data.receiver_id, msg);
    if (!op || op->state != OP_COPYING || op->offset_bytes != data.offset_bytes ||
        len_bytes > op->end_bytes - op->offset_bytes)
        return false;
    copy_out(op->buf + op->offset_bytes, msg->data, len_bytes);
    (void)velo_release(mq->port);
    op->offset_bytes += len_bytes;
    request_of(op)->len_bytes = op->offset_bytes;
    if (op->offset_bytes == op->end_bytes) {
        mq->counters.copied++;
        if (op->key)
            mq_get_measured(op, WAY_COPY);
        mq_op_unname(op);
        complete(request_of(op), op->outcome);
    }
    return true;
}

/* ---- sender ---------------------------------------------------------------------------------- */

/* The next piece of a send, not longer than `most_bytes`. */
static size_t next_bytes(const struct transfer *op, uint64_t end_bytes, size_t most_bytes)
{
    uint64_t left_bytes = end_bytes - op->offset_bytes;
    return left_bytes < most_bytes ? (size_t)left_bytes : most_bytes;
}

/* While the receiver looks for its receive and answers, copy the next piece into its memory: only
 * the trailer is left to be written when the answer comes. A receiver that gets the message by RMA
 * needs no piece, and other messages of ours must not wait. */
static void stage(struct transfer *op)
{
    struct velo_mq_peer *peer = op->peer;
    if (!peer->stages || !peer->extra || peer->staged || op->mem || peer->answers.first ||
        peer->refusals.first || peer->streams.first)
        return;
    size_t len_bytes = next_bytes(op, op->len_bytes, peer->piece_bytes);
    size_t room_bytes = peer->piece_bytes + sizeof(struct wire_data);
    if (!peer->reserved && velo_try_reserve(peer->extra, room_bytes, &peer->reserved) != VELO_OK)
        return;
    copy_in(peer->reserved, op->buf + op->offset_bytes, len_bytes);
    peer->staged = op;
}

void mq_rendezvous_unstage(const struct transfer *op)
{
    if (op->peer->staged == op)
        op->peer->staged = NULL; /* The room stays reserved, for the next message. */
}

int mq_rendezvous_announce(struct transfer *op)
{
    struct velo_mq_peer *peer = op->peer;
    if (op->id == 0) {
        if (!mq_op_name(op))
            return VELO_ERR_NO_MEMORY;
        mq_get_offer(op);
        /* A receiver that gets the message by RMA gets all of it. */
        op->offset_bytes = op->mem ? 0 : peer->first_bytes;
    }
    struct velo_exposed offered = mq_get_offered(op);
    struct wire_rts rts = {
        .sender_id = op->id,
        .len_bytes = op->len_bytes,
        .key = offered.key,
        .address = offered.address,
        .match = op->entry.match,
    };
    int status = mq_send_more(op, op->offset_bytes, &rts, sizeof rts);
    if (status == VELO_OK)
        stage(op);
    return status;
}

/* A refusal that waits for room. */
struct refusal {
    struct link link;
    uint64_t id;
};

static int send_refusal(struct velo_mq_peer *peer, uint64_t id)
{
    struct wire_fin fin = {id, VELO_ERR_PEER_CLOSED};
    return send_word(peer, &fin, sizeof fin, MQ_WIRE_FIN);
}

void mq_rendezvous_refuse(struct velo_mq_peer *peer, uint64_t id)
{
    if (mq_peer_open_extra(peer))
        return; /* The peer does not wait for it any more. */
    int status = peer->refusals.first ? VELO_AGAIN : send_refusal(peer, id);
    struct refusal *refusal = status == VELO_AGAIN ? malloc(sizeof *refusal) : NULL;
    if (!refusal)
        return;
    refusal->id = id;
    list_append(&peer->refusals, &refusal->link);
    mq_peer_activate(peer);
}

static int send_first_refusal(struct velo_mq_peer *peer)
{
    int status = send_refusal(peer, ((struct refusal *)peer->refusals.first)->id);
    if (status == VELO_OK)
        free(list_take_first(&peer->refusals));
    return status;
}

void mq_rendezvous_drop_refusals(struct velo_mq_peer *peer)
{
    while (peer->refusals.first)
        free(list_take_first(&peer->refusals));
}

bool mq_rendezvous_on_cts(struct velo_mq *mq, const struct velo_msg *msg)
{
    struct wire_cts cts;
    if (!mq_wire_read(msg, &cts, sizeof cts))
        return false;
    struct transfer *op = find_op(mq, cts.sender_id, msg);
    if (!op) {
        /* The send was given up: tell its receiver. */
        struct velo_mq_peer *peer = mq_peer_get(mq, msg->source, msg->generation);
        if (peer)
            mq_rendezvous_refuse(peer, cts.receiver_id);
        return false;
    }
    if (op->state != OP_ANNOUNCED || op->kind != MQ_WIRE_RTS || cts.end_bytes <= op->offset_bytes ||
        cts.end_bytes > op->len_bytes)
        return false;
    (void)velo_release(mq->port);
    op->remote_id = cts.receiver_id;
    op->end_bytes = cts.end_bytes;
    op->state = OP_STREAMING;
    list_append(&op->peer->streams, &op->entry.link);
    int status = mq_peer_open_extra(op->peer);
    if (status)
        mq_peer_lost(op->peer, status);
    else
        mq_peer_activate(op->peer);
    return true;
}

static void finish_send(struct transfer *op, int status)
{
    struct velo_mq_request *request = request_of(op);
    mq_op_unname(op);
    if (status == VELO_OK)
        request->len_bytes = op->len_bytes;
    complete(request, status);
}

static bool is_status(int64_t status)
{
    return status == VELO_OK || (status <= VELO_ERR_ARG && status >= VELO_ERR_SYSTEM);
}

bool mq_rendezvous_on_fin(struct velo_mq *mq, const struct velo_msg *msg)
{
    struct wire_fin fin;
    if (!mq_wire_read(msg, &fin, sizeof fin) || !is_status(fin.status))
        return false;
    struct transfer *op = find_op(mq, fin.id, msg);
    if (!op)
        return false;
    if (op->state != OP_ANNOUNCED) {
        /* The other side gave up a request that is half done. */
        if (fin.status == VELO_OK || (op->state != OP_STREAMING && op->state != OP_COPYING))
            return false;
        if (op->state == OP_STREAMING)
            list_remove(&op->peer->streams, &op->entry.link);
    }
    (void)velo_release(mq->port);
    if (op->state == OP_COPYING) {
        mq_op_unname(op);
        complete(request_of(op), (int)fin.status);
    } else {
        finish_send(op, (int)fin.status);
    }
    return true;
}

/* ---- what waits for room --------------------------------------------------------------------- */

/* Write the next piece to the reserved room, unless it is there already. Returns its length. */
static size_t write_reserved(const struct velo_mq_peer *peer, const struct transfer *op)
{
    struct wire_data data = {op->remote_id, op->offset_bytes};
    size_t len_bytes = next_bytes(op, op->end_bytes, peer->piece_bytes);
    if (peer->staged != op)
        copy_in(peer->reserved, op->buf + op->offset_bytes, len_bytes);
    memcpy((char *)peer->reserved + len_bytes, &data, sizeof data);
    return len_bytes;
}

/* As long as much is left, fewer pieces are better; near the end the receiver should not have much
 * left to copy when the last one has come. */
static uint32_t most_bytes(const struct transfer *op)
{
    const struct velo_mq_peer *peer = op->peer;
    return op->end_bytes - op->offset_bytes >= BULK_BYTES ? peer->bulk_bytes : peer->piece_bytes;
}

/* Send the next piece of the first stream; then it is the next stream's turn. */
static int send_piece(struct velo_mq_peer *peer, uint64_t *sent_bytes)
{
    struct transfer *op = (struct transfer *)peer->streams.first;
    size_t len_bytes;
    int status;
    if (peer->reserved) {
        len_bytes = write_reserved(peer, op);
        status = commit(peer, len_bytes + sizeof(struct wire_data), MQ_WIRE_DATA);
    } else {
        struct wire_data data = {op->remote_id, op->offset_bytes};
        len_bytes = next_bytes(op, op->end_bytes, most_bytes(op));
        status = send_built(peer->extra, op->buf + op->offset_bytes, len_bytes, &data, sizeof data,
                            MQ_WIRE_DATA);
    }
    if (status)
        return status;
    list_remove(&peer->streams, &op->entry.link);
    op->offset_bytes += len_bytes;
    *sent_bytes += len_bytes;
    if (op->offset_bytes < op->end_bytes)
        list_append(&peer->streams, &op->entry.link);
    else
        finish_send(op, VELO_OK);
    return VELO_OK;
}

static int send_first_answer(struct velo_mq_peer *peer)
{
    struct transfer *op = (struct transfer *)peer->answers.first;
    int status = send_answer(op);
    if (status)
        return status;
    list_remove(&peer->answers, &op->entry.link);
    op->state = OP_COPYING;
    if (op->kind == MQ_WIRE_FIN) {
        if (op->id)
            mq_op_unname(op);
        complete(request_of(op), op->outcome);
    }
    return VELO_OK;
}

int mq_rendezvous_push(struct velo_mq_peer *peer, int *status)
{
    int events = 0;
    *status = VELO_OK;
    while (*status == VELO_OK && peer->refusals.first) {
        *status = send_first_refusal(peer);
        events += *status == VELO_OK;
    }
    while (*status == VELO_OK && !peer->gone && peer->answers.first) {
        *status = send_first_answer(peer);
        events += *status == VELO_OK;
    }
    uint64_t sent_bytes = 0;
    while (*status == VELO_OK && !peer->gone && peer->streams.first &&
           sent_bytes < BYTES_PER_CALL) {
        *status = send_piece(peer, &sent_bytes);
        events += *status == VELO_OK;
    }
    return events;
}
