/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long messages by RMA get: one copy, made by the receiver alone. The sender registers its buffer
 * and says the key in its RTS; the receiver's FIN tells it that the message is out.
 *
 * A get beats the copy through the ring only if it does not need the owner's library: natively it
 * is done at once, over hardware the node carries it out while we go on. If such a get is not
 * possible, or fails, the message is copied after all.
 */
#include "../rma/fetch.h"
#include "internal.h"

/* One call of progress gets this much before other messages have their turn. Over hardware the node
 * is given this much at a time. */
#define GET_PIECE_BYTES (UINT64_C(256) << 10)

static bool is_worth_it(const struct velo_mq *mq, uint64_t len_bytes)
{
    return mq->rma && mq->path != VELO_MQ_PATH_COPY &&
           (mq->path == VELO_MQ_PATH_GET || len_bytes >= mq->get_bytes);
}

static bool connect_rma(struct velo_mq_peer *peer)
{
    if (!peer->rma && !peer->no_get)
        peer->no_get = velo_rma_connect(peer->mq->rma, peer->id, &peer->rma, 0) != VELO_OK;
    return !peer->no_get;
}

void mq_get_disconnect(struct velo_mq_peer *peer)
{
    (void)velo_rma_disconnect(peer->rma);
    peer->rma = NULL;
    peer->no_get = false;
}

/* ---- sender ---------------------------------------------------------------------------------- */

void mq_get_offer(struct transfer *op)
{
    struct velo_mq *mq = op->peer->mq;
    if (!is_worth_it(mq, op->len_bytes) || (rma_device_fetches(mq->rma) && !connect_rma(op->peer)))
        return;
    (void)velo_rma_mem_register(mq->rma, op->buf, op->len_bytes, VELO_RMA_RIGHT_READ, op->peer->id,
                                &op->mem);
}

void mq_get_revoke(struct transfer *op)
{
    (void)velo_rma_mem_deregister(op->mem, VELO_FOREVER);
    op->mem = NULL;
}

/* ---- receiver -------------------------------------------------------------------------------- */

bool mq_get_start(struct transfer *op, const struct arrival *arrival)
{
    struct velo_mq *mq = op->peer->mq;
    if (!arrival->key || !is_worth_it(mq, arrival->total_bytes) || !connect_rma(op->peer))
        return false;
    op->state = OP_GETTING;
    op->key = arrival->key;
    op->piece_bytes = 0;
    list_append(&mq->gets, &op->entry.link);
    mq->work |= WORK_GETS;
    return true;
}

/* Get the next piece. VELO_OK: it is here; VELO_AGAIN: not yet; else the get has failed. */
static int get_piece(struct transfer *op)
{
    if (op->piece_bytes == 0) {
        uint64_t left_bytes = op->end_bytes - op->offset_bytes;
        uint64_t len_bytes = left_bytes < GET_PIECE_BYTES ? left_bytes : GET_PIECE_BYTES;
        int status = rma_fetch(op->peer->rma, op->buf + op->offset_bytes, len_bytes,
                               velo_rma_place(op->key, op->offset_bytes), &op->fetched);
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
    if (status) {
        mq_rendezvous_copy_instead(op);
        return 1;
    }
    mq->counters.fetched++;
    if (mq_rendezvous_finish(op)) {
        mq_op_unname(op);
        complete(request_of(op), op->outcome);
    }
    return 1;
}

int mq_get_progress(struct velo_mq *mq)
{
    const struct link *waits = NULL; /* The first receive that could not go on. */
    int events = 0;
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
