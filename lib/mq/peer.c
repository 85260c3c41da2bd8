/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "../error.h"
#include "internal.h"

#define PIECE_BYTES 8128u /* With its trailer it takes 8 KiB of the ring: a whole number fits. */
#define FIRST_BYTES 4032u /* About what is copied in the time that RTS and CTS need. */

/* ---- ids ------------------------------------------------------------------------------------- */

bool mq_op_name(struct op *op)
{
    op->id = mq_ids_take(&op->peer->mq->ids, op);
    if (op->id == 0)
        return false;
    op->peer->ids++;
    return true;
}

void mq_op_unname(struct op *op)
{
    struct velo_mq *mq = op->peer->mq;
    if (op->mem)
        mq_get_revoke(op);
    if (op->id) {
        mq_ids_give(&mq->ids, op->id);
        op->id = 0;
        op->peer->ids--;
    }
}

/* ---- peers ----------------------------------------------------------------------------------- */

static struct velo_mq_peer *find(const struct velo_mq *mq, velo_id_t id)
{
    uint32_t node = VELO_ID_NODE(id);
    if (node >= VELO_NODES || !mq->by_node[node])
        return NULL;
    return mq->by_node[node][VELO_ID_VPID(id)];
}

struct velo_mq_peer *mq_peer_get(struct velo_mq *mq, velo_id_t id)
{
    struct velo_mq_peer *peer = find(mq, id);
    uint32_t node = VELO_ID_NODE(id);
    if (likely(peer) || node >= VELO_NODES)
        return peer;
    if (!mq->by_node[node])
        mq->by_node[node] = calloc(VELO_VPIDS, sizeof(struct velo_mq_peer *));
    if (!mq->by_node[node])
        return NULL;
    peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->mq = mq;
    peer->id = id;
    list_init(&peer->answers);
    list_init(&peer->streams);
    list_init(&peer->sends);
    peer->next = mq->peers;
    mq->peers = peer;
    mq->by_node[node][VELO_ID_VPID(id)] = peer;
    return peer;
}

static uint32_t least(size_t one, size_t other) { return (uint32_t)(one < other ? one : other); }

int velo_mq_connect(struct velo_mq *mq, velo_id_t id, int64_t timeout_ns, struct velo_mq_peer **out)
{
    if (!mq || !out)
        return velo_fail(VELO_ERR_ARG, "mq or peer is NULL");
    *out = NULL;
    if (VELO_ID_NODE(id) >= VELO_NODES)
        return velo_fail(VELO_ERR_ARG, "id is %#x, which is no id; make one with VELO_ID()", id);
    struct velo_mq_peer *peer = mq_peer_get(mq, id);
    if (!peer)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a peer");
    if (peer->gone)
        mq_peer_end(peer, peer->gone);
    if (!peer->conn) {
        int status = velo_connect(mq->port, id, timeout_ns, &peer->conn);
        if (status)
            return status;
        size_t most_bytes = velo_conn_max_bytes(peer->conn) - WIRE_TRAILER_MAX;
        peer->eager_bytes = least(mq->eager_bytes, most_bytes);
        peer->first_bytes = least(peer->eager_bytes, FIRST_BYTES);
        peer->gone = VELO_OK;
        peer->is_known = true;
        peer->direct_end_bytes = (uint64_t)peer->eager_bytes + 1;
    }
    *out = peer;
    return VELO_OK;
}

int velo_mq_disconnect(struct velo_mq_peer *peer)
{
    if (!peer)
        return VELO_OK;
    mq_peer_end(peer, VELO_ERR_PEER_CLOSED);
    (void)mq_peer_reap(peer->mq);
    peer->gone = VELO_OK;
    peer->is_known = false;
    return VELO_OK;
}

int mq_peer_open_extra(struct velo_mq_peer *peer)
{
    if (likely(peer->extra))
        return VELO_OK;
    if (peer->gone)
        return peer->gone;
    int status = velo_connect(peer->mq->port, peer->id, 0, &peer->extra);
    if (status)
        return status == VELO_ERR_NO_PEER ? VELO_ERR_PEER_CLOSED : status;
    size_t most_bytes = velo_conn_max_bytes(peer->extra) - sizeof(struct wire_data);
    peer->piece_bytes = least(PIECE_BYTES, most_bytes & ~(size_t)(VELO_LINE_BYTES - 1));
    return VELO_OK;
}

void mq_peer_activate(struct velo_mq_peer *peer)
{
    struct velo_mq *mq = peer->mq;
    if (peer->is_active)
        return;
    peer->is_active = true;
    list_append(&mq->active, &peer->active);
    mq->active_count++;
    mq->work |= WORK_PEERS;
}

static void deactivate(struct velo_mq_peer *peer)
{
    struct velo_mq *mq = peer->mq;
    if (!peer->is_active)
        return;
    peer->is_active = false;
    list_remove(&mq->active, &peer->active);
    if (--mq->active_count == 0)
        mq->work &= ~(uint32_t)WORK_PEERS;
}

void mq_peer_lost(struct velo_mq_peer *peer, int status)
{
    peer->gone = status;
    peer->direct_end_bytes = 0;
    mq_peer_activate(peer);
}

int mq_peer_push(struct velo_mq_peer *peer)
{
    int status = VELO_OK;
    deactivate(peer);
    int events = 0;
    if (!peer->gone)
        events = mq_rendezvous_push(peer, &status);
    if (!peer->gone && (status == VELO_OK || status == VELO_AGAIN) && peer->conn)
        events += mq_send_waiting(peer, &status);
    if (!peer->gone && status && status != VELO_AGAIN)
        mq_peer_lost(peer, status);
    if (peer->gone) {
        mq_peer_end(peer, peer->gone);
        return events + 1;
    }
    if (peer->answers.first || peer->streams.first || peer->sends.first)
        mq_peer_activate(peer);
    return events;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Take a request that has an id out of whatever it waits in. */
static void withdraw(struct op *op)
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
        struct op *op = mq->ids.slots[i].op;
        if (!op || op->peer != peer)
            continue;
        withdraw(op);
        /* Once it is named on both sides, the other side waits for it. */
        if (peer->extra && op->remote_id)
            mq_rendezvous_refuse(peer, op->remote_id);
        bool is_received = op->state == OP_ANSWERING && op->kind == WIRE_FIN;
        mq_op_unname(op);
        complete(request_of(op), is_received ? op->outcome : status);
    }
}

static void end_list(struct list *list, int status)
{
    while (list->first) {
        struct op *op = (struct op *)list->first;
        list_remove(list, &op->entry.link);
        /* A receive that has only its FIN left to send has its message. */
        complete(request_of(op), op->state == OP_ANSWERING ? op->outcome : status);
    }
}

void mq_peer_end(struct velo_mq_peer *peer, int status)
{
    struct velo_mq *mq = peer->mq;
    peer->gone = status;
    peer->direct_end_bytes = 0;
    mq_get_disconnect(peer); /* First: until then RMA may write to the buffers of receives. */
    end_named(peer, status);
    end_list(&peer->answers, status);
    end_list(&peer->sends, status);
    deactivate(peer);
    (void)velo_disconnect(peer->extra);
    (void)velo_disconnect(peer->conn);
    peer->extra = NULL;
    peer->conn = NULL;
    mq->work |= WORK_REAP;
    if (peer->is_deferred)
        mq->work |= WORK_RESUME;
}

/* ---- receives that are posted for one peer --------------------------------------------------- */

/* Note which peers receives are posted for; move those posted for peers that are gone to `ended`,
 * if that is given. */
static void sort_list(struct velo_mq *mq, struct list *list, struct list *ended)
{
    struct link *next;
    for (struct link *link = list->first; link; link = next) {
        struct op *op = (struct op *)link;
        next = link->next;
        struct velo_mq_peer *peer = mq_peer_get(mq, op->entry.source);
        if (!peer)
            continue;
        peer->is_awaited = true;
        if (!peer->gone)
            continue;
        mq->work |= WORK_REAP;
        if (!ended)
            continue;
        mq_recv_unpost(mq, op);
        op->peer = peer;
        op->state = OP_ANSWERING; /* Too late to cancel. */
        op->outcome = peer->gone;
        list_append(ended, &op->entry.link);
    }
}

static void sort_posted(struct velo_mq *mq, struct list *ended)
{
    for (size_t i = 0; mq->posted.count > 0 && i < table_len(&mq->posted); i++)
        sort_list(mq, &mq->posted.lists[i], ended);
    sort_list(mq, &mq->wild, ended);
}

int mq_peer_reap(struct velo_mq *mq)
{
    struct list ended;
    int events = 0;
    list_init(&ended);
    sort_posted(mq, &ended);
    mq->work &= ~(uint32_t)WORK_REAP;
    for (struct velo_mq_peer *peer = mq->peers; peer; peer = peer->next)
        if (!peer->is_known && !peer->is_active)
            peer->gone = VELO_OK; /* Whoever has that id next is another peer. */
    for (; ended.first; events++) {
        struct op *op = (struct op *)ended.first;
        list_remove(&ended, &op->entry.link);
        complete(request_of(op), op->outcome);
    }
    return events;
}

static bool is_waited_for(const struct velo_mq_peer *peer)
{
    return peer->is_awaited || peer->ids > 0 || peer->answers.first || peer->streams.first ||
           peer->sends.first;
}

/* What tells whether a peer lives. One that receives wait for, and that nothing was ever sent to,
 * gets a connection for that; one that is not there yet may still come. */
static struct velo_conn *conn_to_ask(struct velo_mq_peer *peer)
{
    if (!peer->conn && !peer->extra && mq_peer_open_extra(peer) == VELO_ERR_PEER_DEAD)
        mq_peer_lost(peer, VELO_ERR_PEER_DEAD);
    return peer->conn ? peer->conn : peer->extra;
}

void mq_peer_check(struct velo_mq *mq)
{
    for (struct velo_mq_peer *peer = mq->peers; peer; peer = peer->next)
        peer->is_awaited = false;
    sort_posted(mq, NULL);
    for (struct velo_mq_peer *peer = mq->peers; peer; peer = peer->next) {
        if (peer->gone || !is_waited_for(peer))
            continue;
        struct velo_conn *conn = conn_to_ask(peer);
        int status = conn ? velo_conn_status(conn) : VELO_OK;
        if (status)
            mq_peer_lost(peer, status);
    }
}
