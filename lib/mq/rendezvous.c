/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages longer than eager. The sender announces one (RTS). When it is matched, the receiver gets
 * it by RMA (get.c), or has it sent in pieces (copy.c).
 */
#include "internal.h"

/* ---- receiver -------------------------------------------------------------------------------- */

/* The receive ends before it began. Returns true, as mq_rendezvous_accept() does. */
static bool give_up(struct transfer *op, int status)
{
    request_of(op)->len_bytes = 0;
    op->outcome = status;
    if (op->peer)
        mq_answer_refuse(op->peer, op->remote_id);
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
    int status = mq_peer_open_way_back(op->peer);
    if (status)
        return give_up(op, status);
    bool is_whole = op->end_bytes <= arrival->len_bytes;
    op->offset_bytes = is_whole ? op->end_bytes : arrival->len_bytes;
    request->len_bytes = op->offset_bytes;
    if (!is_whole) {
        if (!mq_op_name(op))
            return give_up(op, VELO_ERR_NO_MEMORY);
        if (!mq_get_start(op, arrival))
            mq_answer_cts(op); /* Before the copy, so that the sender copies at the same time. */
    }
    mq_data_out(op, 0, arrival->data, request->len_bytes);
    if (is_whole)
        mq->counters.copied++;
    return is_whole && mq_answer_fin(op);
}

/* ---- sender ---------------------------------------------------------------------------------- */

int mq_rendezvous_announce(struct transfer *op)
{
    struct velo_mq_peer *peer = op->peer;
    if (op->id == 0) {
        if (!mq_op_name(op))
            return VELO_ERR_NO_MEMORY;
        mq_offer_make(op);
        /* A receiver that gets the message by RMA gets all of it. */
        op->offset_bytes = op->mem || op->layout ? 0 : peer->first_bytes;
    }
    struct velo_exposed offered = mq_offer_of(op);
    struct wire_rts rts = {
        .sender_id = op->id,
        .len_bytes = op->len_bytes,
        .key = offered.key,
        .address = offered.address,
        .match = op->entry.match,
    };
    int status = op->layout
                     ? mq_layout_send(op, peer->first_bytes, &rts, sizeof rts, &op->offset_bytes)
                     : mq_send_more(op, op->offset_bytes, &rts, sizeof rts);
    if (status == VELO_OK)
        mq_copy_stage(op);
    return status;
}

bool mq_rendezvous_on_cts(struct velo_mq *mq, const struct velo_msg *msg)
{
    struct wire_cts cts;
    if (!mq_wire_read(msg, &cts, sizeof cts))
        return false;
    struct transfer *op = mq_op_find(mq, cts.sender_id, msg);
    if (!op) {
        /* The send was given up: tell its receiver. */
        struct velo_mq_peer *peer = mq_peer_get(mq, msg->source, msg->generation);
        if (peer)
            mq_answer_refuse(peer, cts.receiver_id);
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
    if (mq_peer_open_way_back(op->peer) == VELO_OK)
        mq_peer_activate(op->peer);
    return true;
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
    struct transfer *op = mq_op_find(mq, fin.id, msg);
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
        mq_op_end_send(op, (int)fin.status);
    }
    return true;
}
