/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long messages by RMA get: one copy, made by the receiver alone. The sender registers its buffer
 * and sends the key in its RTS; the receiver's FIN tells it that the message has been read.
 *
 * Natively a get is one system call for each piece, without the owner's library; the copy through
 * the ring keeps both processors busy, but all of it stays in cache. Which one is faster depends on
 * the machine and on the processors of the two processes, so the receiver measures both, message by
 * message, unless the user has given the length from which on to get. Natively a get is done at
 * once, over hardware the node carries it out while we go on. If such a get is not possible, or
 * fails, the message is copied after all.
 */
#include "../base/cancel.h"
#include "../rma/fetch.h"
#include "../shm/wait.h"
#include "internal.h"

/* Over a transport that can fetch, messages are fetched in pieces of which the transport makes
 * shorter ones. */
#define CARRIED_PIECE_BYTES (UINT64_C(512) << 10)

/* One call of progress gets this much before other messages have their turn. Over hardware the node
 * is given this much at a time. */
#define GET_PIECE_BYTES (UINT64_C(256) << 10)

bool mq_get_start(struct transfer *op, const struct arrival *arrival)
{
    struct velo_mq *mq = op->peer->mq;
    op->key = 0;
    if (!arrival->key || op->layout || !mq_offer_is_worth_it(op->peer, arrival->total_bytes))
        return false;
    if (mq_offer_is_carried(op->peer)) {
        op->address = arrival->address;
    } else if (!mq_offer_connect_rma(op->peer)) {
        return false;
    } else if (mq->measures_ways && mq_way_choose(op) == WAY_COPY) {
        op->key = op->start_ns ? arrival->key : 0;
        return false;
    }
    op->state = OP_GETTING;
    op->key = arrival->key;
    op->piece_bytes = 0;
    list_append(&mq->gets, &op->entry.link);
    mq->work |= WORK_GETS;
    return true;
}

static int fetch_payload(struct transfer *op, size_t len_bytes)
{
    char *to = op->buf + op->offset_bytes;
    struct velo_exposed from = {.key = op->key, .address = op->address + op->offset_bytes};
    if (mq_offer_is_carried(op->peer)) {
        CANCEL_LATER();
        return op->peer->mq->port->net->fetch(op->peer->extra, to, len_bytes, &from, &op->fetched);
    }
    return rma_fetch(op->peer->rma, to, len_bytes, velo_rma_place(op->key, op->offset_bytes),
                     &op->fetched);
}

/* Get the next piece. VELO_OK: it is here; VELO_AGAIN: not yet; else the get has failed. */
static int get_piece(struct transfer *op)
{
    if (op->piece_bytes == 0) {
        uint64_t left_bytes = op->end_bytes - op->offset_bytes;
        uint64_t most_bytes = mq_offer_is_carried(op->peer) ? CARRIED_PIECE_BYTES : GET_PIECE_BYTES;
        uint64_t len_bytes = left_bytes < most_bytes ? left_bytes : most_bytes;
        int status = fetch_payload(op, len_bytes);
        if (status)
            return status;
        op->piece_bytes = (uint32_t)len_bytes;
    }
    if (op->fetched)
        return op->fetched;
    op->offset_bytes += op->piece_bytes;
    op->piece_bytes = 0;
    request_of(op)->len_bytes = op->offset_bytes;
    return VELO_OK;
}

/* Go on with one receive, which is in no list meanwhile. */
static int go_on(struct transfer *op)
{
    struct velo_mq *mq = op->peer->mq;
    int status = get_piece(op);
    if (status == VELO_AGAIN || (status == VELO_OK && op->offset_bytes < op->end_bytes)) {
        list_append(&mq->gets, &op->entry.link);
        return status == VELO_OK;
    }
    bool has_choice = mq->measures_ways && !mq_offer_is_carried(op->peer);
    bool is_measured = has_choice && op->start_ns;
    if (status) {
        if (has_choice)
            mq_way_failed(op);
        op->start_ns = wait_now_ns();
        op->key = is_measured ? op->key : 0; /* What follows is measured as a copy. */
        mq_answer_copy_instead(op);
        return 1;
    }
    mq->counters.fetched++;
    if (is_measured)
        mq_way_measured(op, WAY_GET);
    if (mq_answer_fin(op)) {
        mq_op_unname(op);
        complete(request_of(op), op->outcome);
    }
    return 1;
}

void mq_get_stop(struct transfer *op)
{
    struct velo_port *port = op->peer->mq->port;
    if (!mq_offer_is_carried(op->peer) || op->piece_bytes == 0)
        return;
    CANCEL_LATER();
    port->net->forget(port, op->peer->id, &op->fetched);
}

int mq_get_progress(struct velo_mq *mq)
{
    const struct link *waits = NULL; /* The first receive that could not go on. */
    int events = 0;
    if (mq->rma)
        (void)velo_rma_progress(mq->rma);
    while (events == 0 && mq->gets.first && mq->gets.first != waits) {
        struct transfer *op = (struct transfer *)mq->gets.first;
        list_remove(&mq->gets, &op->entry.link);
        events = go_on(op);
        waits = waits ? waits : &op->entry.link;
    }
    if (!mq->gets.first)
        mq->work &= ~(uint32_t)WORK_GETS;
    return events;
}
