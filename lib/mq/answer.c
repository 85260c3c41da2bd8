/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over a peer's extra connection beside data: CTS, FIN, and refusals. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

int mq_answer_commit(struct velo_mq_peer *peer, size_t len_bytes, enum mq_wire_kind kind)
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
    return mq_answer_commit(peer, len_bytes, kind);
}

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
static bool answer_sender(struct transfer *op)
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

bool mq_answer_fin(struct transfer *op)
{
    int status = mq_peer_open_way_back(op->peer);
    if (unlikely(status)) { /* The message is here. */
        if (op->peer->cannot_answer)
            op->outcome = status; /* But its sender takes it for lost. */
        return true;
    }
    op->kind = MQ_WIRE_FIN;
    return answer_sender(op);
}

void mq_answer_cts(struct transfer *op)
{
    op->kind = MQ_WIRE_CTS;
    (void)answer_sender(op);
}

void mq_answer_copy_instead(struct transfer *op)
{
    op->offset_bytes = 0;
    mq_answer_cts(op);
}

/* ---- refusals -------------------------------------------------------------------------------- */

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

void mq_answer_refuse(struct velo_mq_peer *peer, uint64_t id)
{
    if (mq_peer_open_way_back(peer))
        return; /* The peer does not wait for it any more. */
    int status = peer->refusals.first ? VELO_AGAIN : send_refusal(peer, id);
    if (status != VELO_AGAIN)
        return;
    struct refusal *refusal = malloc(sizeof *refusal);
    if (!refusal) { /* The peer would wait for ever: it hears that it cannot be answered. */
        peer->cannot_answer = true;
        mq_peer_lost(peer, VELO_ERR_NO_MEMORY);
        return;
    }
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

void mq_answer_drop_refusals(struct velo_mq_peer *peer)
{
    while (peer->refusals.first)
        free(list_take_first(&peer->refusals));
}

/* ---- what waits for room --------------------------------------------------------------------- */

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

int mq_answer_push(struct velo_mq_peer *peer, int *status)
{
    int events = 0;
    while (*status == VELO_OK && peer->refusals.first) {
        *status = send_first_refusal(peer);
        events += *status == VELO_OK;
    }
    while (*status == VELO_OK && !peer->gone && peer->answers.first) {
        *status = send_first_answer(peer);
        events += *status == VELO_OK;
    }
    return events;
}
