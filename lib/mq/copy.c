/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long messages in pieces (DATA): while the receiver copies one piece out of the ring, the sender
 * copies the next ones in, and all of them stay in cache.
 */
#include <string.h>

#include "../base/error.h"
#include "internal.h"

/* One call of progress sends so much to one peer before others get their turn. */
#define BYTES_PER_CALL (UINT64_C(60) << 10)
/* Pieces are longer while at least this much is left. */
#define BULK_BYTES (UINT64_C(128) << 10)

bool mq_copy_on_data(struct velo_mq *mq, const struct velo_msg *msg)
{
    struct wire_data data;
    if (!mq_wire_read(msg, &data, sizeof data))
        return false;
    uint64_t len_bytes = msg->len_bytes - sizeof data;
    struct transfer *op = mq_op_find(mq, data.receiver_id, msg);
    if (!op || op->state != OP_COPYING || op->offset_bytes != data.offset_bytes ||
        len_bytes > op->end_bytes - op->offset_bytes)
        return false;
    mq_data_out(op, op->offset_bytes, msg->data, len_bytes);
    (void)velo_release(mq->port);
    op->offset_bytes += len_bytes;
    request_of(op)->len_bytes = op->offset_bytes;
    if (op->offset_bytes == op->end_bytes) {
        mq->counters.copied++;
        if (op->key)
            mq_way_measured(op, WAY_COPY);
        mq_op_unname(op);
        complete(request_of(op), op->outcome);
    }
    return true;
}

/* The next piece of a send, not longer than `most_bytes`. */
static size_t next_bytes(const struct transfer *op, uint64_t end_bytes, size_t most_bytes)
{
    uint64_t left_bytes = end_bytes - op->offset_bytes;
    return left_bytes < most_bytes ? (size_t)left_bytes : most_bytes;
}

/* Room for a piece, if there is none yet. */
static int reserve(struct velo_mq_peer *peer, uint32_t len_bytes)
{
    if (peer->reserved)
        return VELO_OK;
    peer->reserved_bytes = len_bytes;
    return velo_try_reserve(peer->extra, len_bytes + sizeof(struct wire_data), &peer->reserved);
}

/* Write the next piece to that room, whether or not its receiver wants all of it. Returns its
 * length; 0: the layout gave nothing, or too much. */
static uint32_t write_piece(const struct velo_mq_peer *peer, const struct transfer *op)
{
    size_t most_bytes = next_bytes(op, op->len_bytes, peer->reserved_bytes);
    size_t len_bytes = mq_data_in(op, peer->reserved, most_bytes);
    return len_bytes <= most_bytes ? (uint32_t)len_bytes : 0;
}

/* While the receiver looks for its receive and answers, copy the next piece into its memory: only
 * the trailer is left to be written when the answer comes. A receiver that gets the message by RMA
 * needs no piece, and other messages of ours must not wait. */
void mq_copy_stage(struct transfer *op)
{
    struct velo_mq_peer *peer = op->peer;
    if (!peer->stages || !peer->extra || peer->staged || op->mem || peer->answers.first ||
        peer->refusals.first || peer->streams.first)
        return;
    if (reserve(peer, peer->piece_bytes) != VELO_OK)
        return;
    peer->staged_bytes = write_piece(peer, op);
    peer->staged = peer->staged_bytes > 0 ? op : NULL;
}

/* As long as much is left, fewer pieces are better; near the end the receiver should not have much
 * left to copy when the last one has come. */
static uint32_t most_bytes(const struct transfer *op)
{
    const struct velo_mq_peer *peer = op->peer;
    return op->end_bytes - op->offset_bytes >= BULK_BYTES ? peer->bulk_bytes : peer->piece_bytes;
}

/* Send a piece that lies in the reserved room, or is written there. VELO_ERR_ARG: there is none. */
static int send_reserved(struct velo_mq_peer *peer, const struct transfer *op, size_t *len_bytes)
{
    struct wire_data data = {op->remote_id, op->offset_bytes};
    int status = reserve(peer, most_bytes(op));
    if (status)
        return status;
    uint32_t piece_bytes = peer->staged == op ? peer->staged_bytes : write_piece(peer, op);
    if (unlikely(piece_bytes == 0))
        return VELO_ERR_ARG;
    *len_bytes = next_bytes(op, op->end_bytes, piece_bytes);
    memcpy((char *)peer->reserved + *len_bytes, &data, sizeof data);
    return mq_answer_commit(peer, *len_bytes + sizeof data, MQ_WIRE_DATA);
}

/* The layout of a send gave no data: its receiver, which waits for that, is told. */
static void give_up(struct transfer *op)
{
    list_remove(&op->peer->streams, &op->entry.link);
    mq_answer_refuse(op->peer, op->remote_id);
    mq_op_end_send(op, velo_fail(VELO_ERR_ARG, "pack() of a layout gave no bytes at %llu of %llu",
                                 (unsigned long long)op->offset_bytes,
                                 (unsigned long long)op->end_bytes));
}

/* Send the next piece of the first stream; then it is the next stream's turn. */
static int send_piece(struct velo_mq_peer *peer, uint64_t *sent_bytes)
{
    struct transfer *op = (struct transfer *)peer->streams.first;
    size_t len_bytes;
    int status;
    if (peer->reserved || op->layout) {
        status = send_reserved(peer, op, &len_bytes);
        if (unlikely(status == VELO_ERR_ARG)) {
            give_up(op);
            return VELO_OK;
        }
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
        mq_op_end_send(op, VELO_OK);
    return VELO_OK;
}

int mq_copy_push(struct velo_mq_peer *peer, int *status)
{
    int events = 0;
    uint64_t sent_bytes = 0;
    while (*status == VELO_OK && !peer->gone && peer->streams.first &&
           sent_bytes < BYTES_PER_CALL) {
        *status = send_piece(peer, &sent_bytes);
        events += *status == VELO_OK;
    }
    return events;
}
