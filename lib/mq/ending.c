/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a connection or of a peer, and of the requests that wait for it. */
#include <stdlib.h>

#include "../base/error.h"
#include "../core/senders.h"
#include "posted.h"

/* Take a request that has an id out of the list in which it waits. */
static void withdraw_request(struct transfer *op)
{
    struct velo_mq_peer *peer = op->peer;
    switch (op->state) {
    case OP_ANSWERING:
        list_remove(&peer->answers, &op->entry.link);
        break;
    case OP_STREAMING:
        list_remove(&peer->streams, &op->entry.link);
        break;
    case OP_QUEUED:
        list_remove(&peer->sends, &op->entry.link);
        break;
    case OP_GETTING:
        mq_get_stop(op);
        list_remove(&peer->mq->gets, &op->entry.link);
        if (!peer->mq->gets.first)
            peer->mq->work &= ~(uint32_t)WORK_GETS;
        break;
    default:
        break;
    }
}

static void end_named(struct velo_mq_peer *peer, int status)
{
    struct velo_mq *mq = peer->mq;
    for (uint32_t i = 0; peer->ids > 0 && i < mq->ids.len; i++) {
        struct transfer *op = mq->ids.slots[i].op;
        if (!op || op->peer != peer)
            continue;
        withdraw_request(op);
        /* Once a request has ids on both sides, the other side waits for it. */
        if (peer->extra && op->remote_id)
            mq_answer_refuse(peer, op->remote_id);
        bool is_received = op->state == OP_ANSWERING && op->kind == MQ_WIRE_FIN;
        mq_op_unname(op);
        complete(request_of(op), is_received ? op->outcome : status);
    }
}

static void end_list(struct list *list, int status)
{
    while (list->first) {
        struct transfer *op = (struct transfer *)list->first;
        list_remove(list, &op->entry.link);
        /* A receive that has only its FIN left to send has its message. */
        complete(request_of(op), op->state == OP_ANSWERING ? op->outcome : status);
    }
}

void mq_peer_end(struct velo_mq_peer *peer, int status)
{
    struct velo_mq *mq = peer->mq;
    bool is_given_up = !peer->gone && status == VELO_ERR_PEER_CLOSED;
    peer->gone = status;
    peer->requests_ended = true;
    peer->direct_end_bytes = 0;
    /* This comes first: until then RMA may write to receives' buffers. */
    mq_offer_disconnect(peer);
    end_named(peer, status);
    end_list(&peer->answers, status);
    end_list(&peer->sends, status);
    mq_peer_deactivate(peer);
    if (is_given_up && peer->refusals.first) {
        /* The peer goes on, and waits for the refused requests: send the refusals first. */
        mq_peer_activate(peer);
    } else {
        mq_answer_drop_refusals(peer);
        (void)velo_disconnect(peer->extra);
        peer->extra = NULL;
    }
    (void)velo_disconnect(peer->conn);
    peer->conn = NULL;
    if (peer->cannot_answer && !mq_offer_is_carried(peer))
        rx_refuse_from(mq->port, peer->id, peer->generation);
    peer->cannot_answer = false;
    mq->work |= WORK_REAP;
    if (peer->is_deferred)
        mq->work |= WORK_RESUME;
}

/* Is it time to end the requests of a peer that is gone? Pieces and answers that it sent before it
 * left may still lie in its ring, or be on their way to it. One that is lost for another reason
 * might send for ever. */
static bool is_at_end(struct velo_mq_peer *peer, bool is_dry)
{
    const struct velo_mq *mq = peer->mq;
    bool has_left = peer->gone == VELO_ERR_PEER_CLOSED || peer->gone == VELO_ERR_PEER_DEAD;
    if (!has_left || ++peer->last_rounds > LAST_ROUNDS_MAX)
        return true;
    bool is_late = mq->checks - peer->last_checks <= 1 &&
                   rx_may_be_late(mq->port, peer->id, peer->generation, peer->gone);
    return is_dry && !is_late;
}

int mq_peer_push(struct velo_mq_peer *peer, bool is_dry)
{
    int status = VELO_OK;
    mq_peer_deactivate(peer);
    int events = 0;
    if (peer->gone && is_at_end(peer, is_dry)) {
        mq_peer_end(peer, peer->gone);
        return 1;
    }
    if (!peer->gone) {
        events = mq_answer_push(peer, &status);
        events += mq_copy_push(peer, &status);
    }
    if (!peer->gone && (status == VELO_OK || status == VELO_AGAIN) && peer->conn)
        events += mq_send_waiting(peer, &status);
    if (!peer->gone && status && status != VELO_AGAIN)
        mq_peer_lost(peer, status);
    if (peer->gone || peer->refusals.first || peer->answers.first || peer->streams.first ||
        peer->sends.first)
        mq_peer_activate(peer);
    return events;
}

/* ---- receives that are posted for one id ----------------------------------------------------- */

/* The reason why nothing will come from an id any more; VELO_OK: something may come. */
static int source_status(const struct source *source)
{
    int status = source->gone;
    for (const struct velo_mq_peer *peer = source->generations; peer;
         peer = peer->next_generation) {
        if (!peer->requests_ended)
            return VELO_OK;
        if (!status && !peer->receives_ended)
            status = peer->gone;
    }
    return status;
}

static void ask_peer(struct velo_mq_peer *peer)
{
    int status = VELO_OK;
    if (!peer->conn && !peer->extra)
        status = mq_peer_open_extra(peer);
    if (status == VELO_OK)
        status = velo_conn_status(peer->conn ? peer->conn : peer->extra);
    if (status == VELO_ERR_PEER_DEAD || status == VELO_ERR_PEER_CLOSED ||
        status == VELO_ERR_CORRUPT)
        mq_peer_lost(peer, status);
}

/* Does the port live that receives wait for? To find out, a port to which nothing was ever sent
 * gets a connection. A port that is not there yet may still come. */
static void ask_source(struct velo_mq *mq, velo_id_t id, struct source *source)
{
    struct velo_conn *extra;
    struct velo_mq_peer *peer = source->generations;
    while (peer && peer->gone)
        peer = peer->next_generation;
    if (peer) {
        ask_peer(peer);
        return;
    }
    int status = port_connect_present(mq->port, id, &extra);
    source->gone = status == VELO_ERR_PEER_DEAD ? status : VELO_OK;
    if (status)
        return;
    peer = mq_peer_get(mq, id, velo_conn_generation(extra));
    if (peer && !peer->gone && !peer->extra)
        mq_peer_set_extra(peer, extra);
    else
        (void)velo_disconnect(extra);
}

/* Check the ids that receives are posted for. With `ended`: move the receives to it that are posted
 * for ids from which nothing will come. */
static void sort_list(struct velo_mq *mq, struct list *list, struct list *ended)
{
    struct link *next;
    for (struct link *link = list->first; link; link = next) {
        struct transfer *op = (struct transfer *)link;
        next = link->next;
        struct source *source = mq_source_get(mq, op->entry.source);
        if (!source)
            continue;
        if (!ended && source->asked != mq->checks) {
            source->asked = mq->checks;
            ask_source(mq, op->entry.source, source);
        }
        int status = source_status(source);
        if (!status)
            continue;
        mq->work |= WORK_REAP;
        if (!ended)
            continue;
        posted_remove(&mq->spaces[op->space], op);
        op->peer = NULL;
        op->state = OP_ANSWERING; /* It is too late to cancel. */
        op->outcome = status;
        list_append(ended, &op->entry.link);
    }
}

static void sort_posted(struct velo_mq *mq, struct list *ended)
{
    for (int s = 0; s < VELO_MQ_SPACES; s++) {
        struct space *space = &mq->spaces[s];
        for (uint32_t t = 0; t < space->tables; t++) {
            const struct match_table *table = &space->posted[t].table;
            for (size_t i = 0; table->count > 0 && i < table_len(table); i++)
                sort_list(mq, &table->lists[i], ended);
        }
        sort_list(mq, &space->wild, ended);
    }
}

/* All receives that waited for a dead peer have ended. New receives from the id wait for its next
 * generation. */
static void note_receives_ended(struct velo_mq *mq)
{
    for (struct velo_mq_peer *peer = mq->peers; peer; peer = peer->next)
        if (peer->gone && !peer->is_known && !peer->is_active)
            peer->receives_ended = true;
}

int mq_peer_reap(struct velo_mq *mq)
{
    struct list ended;
    int events = 0;
    list_init(&ended);
    sort_posted(mq, &ended);
    mq->work &= ~(uint32_t)WORK_REAP;
    mq->last_rounds = 0;
    note_receives_ended(mq);
    for (; ended.first; events++) {
        struct transfer *op = (struct transfer *)ended.first;
        list_remove(&ended, &op->entry.link);
        mq_source_get(mq, op->entry.source)->gone = VELO_OK;
        complete(request_of(op), op->outcome);
    }
    return events;
}

static bool is_waited_for(const struct velo_mq_peer *peer)
{
    return peer->ids > 0 || peer->answers.first || peer->streams.first || peer->sends.first;
}

/* Does the user hold the peer, or does the queue keep anything of it? */
static bool is_in_use(const struct velo_mq_peer *peer)
{
    bool is_gone = peer->gone && !peer->receives_ended;
    return peer->is_known || is_gone || peer->is_active || peer->is_deferred || peer->kept > 0 ||
           peer->ids > 0 || peer->conn || peer->extra || peer->rma || peer->refusals.first ||
           peer->answers.first || peer->streams.first || peer->sends.first;
}

/* Forget the generations that nobody needs. Else there would be more and more of them while peers
 * come and go. */
static void forget_peers(struct velo_mq *mq)
{
    struct velo_mq_peer **link = &mq->peers;
    while (*link) {
        struct velo_mq_peer *peer = *link;
        if (is_in_use(peer)) {
            link = &peer->next;
            continue;
        }
        struct velo_mq_peer **generation = &mq_source_get(mq, peer->id)->generations;
        while (*generation && *generation != peer)
            generation = &(*generation)->next_generation;
        if (*generation)
            *generation = peer->next_generation;
        *link = peer->next;
        free(peer);
    }
}

void mq_peer_check(struct velo_mq *mq)
{
    mq->checks++;
    sort_posted(mq, NULL);
    for (struct velo_mq_peer *peer = mq->peers; peer; peer = peer->next)
        if (!peer->gone && is_waited_for(peer))
            ask_peer(peer);
    forget_peers(mq);
}
