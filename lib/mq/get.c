/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long messages by RMA get: one copy, made by the receiver alone. The sender registers its buffer
 * and says the key in its RTS; the receiver's FIN tells it that the message is out.
 *
 * Only a get that is done when velo_get() returns beats the copy through the ring. One that the
 * owner's library must be asked for is let finish and then done again the other way.
 */
#include "internal.h"

/* What one call of progress gets, before other messages have their turn. */
#define GET_PIECE_BYTES (UINT64_C(256) << 10)

static bool is_worth_it(const struct velo_mq *mq, uint64_t len_bytes)
{
    return mq->rma && mq->path != VELO_MQ_PATH_COPY &&
           (mq->path == VELO_MQ_PATH_GET || len_bytes >= mq->get_bytes);
}

/* ---- sender ---------------------------------------------------------------------------------- */

void mq_get_offer(struct op *op)
{
    struct velo_mq *mq = op->peer->mq;
    if (!is_worth_it(mq, op->len_bytes) ||
        velo_mem_register(mq->rma, op->buf, op->len_bytes, VELO_RIGHT_READ, op->peer->id, &op->mem))
        return;
    mq->served++;
    mq->work |= WORK_SERVE;
}

void mq_get_revoke(struct op *op)
{
    struct velo_mq *mq = op->peer->mq;
    (void)velo_mem_deregister(op->mem);
    op->mem = NULL;
    if (--mq->served == 0)
        mq->work &= ~(uint32_t)WORK_SERVE;
}

/* ---- receiver -------------------------------------------------------------------------------- */

static bool connect_rma(struct velo_mq_peer *peer)
{
    if (!peer->rma && !peer->no_get)
        peer->no_get = velo_rma_connect(peer->mq->rma, peer->id, 0, &peer->rma) != VELO_OK;
    return !peer->no_get;
}

void mq_get_disconnect(struct velo_mq_peer *peer)
{
    (void)velo_rma_disconnect(peer->rma);
    peer->rma = NULL;
    peer->no_get = false;
}

bool mq_get_start(struct op *op, const struct arrival *arrival)
{
    struct velo_mq *mq = op->peer->mq;
    if (!arrival->key || !is_worth_it(mq, arrival->total_bytes) || !connect_rma(op->peer))
        return false;
    op->state = OP_GETTING;
    op->key = arrival->key;
    op->is_asked = false;
    list_append(&mq->gets, &op->entry.link);
    mq->work |= WORK_GETS;
    return true;
}

/* Gets that were done at once, so far. */
static uint64_t done_at_once(struct velo_rma *rma)
{
    struct velo_rma_counters counters;
    (void)velo_rma_counters(rma, &counters);
    return counters.direct + counters.attach;
}

/* Get the next piece. VELO_OK: it is here; VELO_AGAIN: not yet; else it will not come this way. */
static int get_piece(struct op *op)
{
    struct velo_mq_peer *peer = op->peer;
    struct velo_rma *rma = peer->mq->rma;
    uint64_t left_bytes = op->end_bytes - op->offset_bytes;
    uint64_t len_bytes = left_bytes < GET_PIECE_BYTES ? left_bytes : GET_PIECE_BYTES;
    if (op->is_asked)
        return velo_rma_flush(peer->rma, 0) == VELO_TIMEOUT ? VELO_AGAIN : VELO_ERR_ACCESS;
    uint64_t before = done_at_once(rma);
    int status = velo_get(peer->rma, op->buf + op->offset_bytes, len_bytes, op->key,
                          op->offset_bytes, VELO_NOTIFY_NONE, 0);
    if (status)
        return status;
    if (done_at_once(rma) == before) {
        peer->no_get = true;
        op->is_asked = true;
        return VELO_AGAIN;
    }
    op->offset_bytes += len_bytes;
    request_of(op)->len_bytes = op->offset_bytes;
    return VELO_OK;
}

/* Go on with one receive, which is in no list meanwhile. */
static int go_on(struct op *op)
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
    mq->counters.gotten++;
    if (mq_rendezvous_finish(op)) {
        mq_op_unname(op);
        complete(request_of(op), op->outcome);
    }
    return 1;
}

int mq_get_progress(struct velo_mq *mq)
{
    int events = 0;
    if (mq->served > 0 || mq->gets.first)
        (void)velo_rma_progress(mq->rma);
    if (mq->gets.first) {
        struct op *op = (struct op *)mq->gets.first;
        list_remove(&mq->gets, &op->entry.link);
        events = go_on(op);
    }
    if (!mq->gets.first)
        mq->work &= ~(uint32_t)WORK_GETS;
    return events;
}
