/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "internal.h"

/* With its trailer a piece takes 8 or 16 KiB of the ring, so a whole number fits. */
#define PIECE_BYTES 8128u
#define PIECE_BYTES_MAX 16320u
#define BULK_BYTES_MAX 32704u
/* This goes with an RTS. Its receiver copies it while the CTS is under way and, natively, while the
 * sender copies the next piece. */
#define FIRST_BYTES 16320u
#define FIRST_BYTES_CARRIED 4032u

/* ---- ids ------------------------------------------------------------------------------------- */

bool mq_op_name(struct transfer *op)
{
    op->id = mq_ids_take(&op->peer->mq->ids, op);
    if (op->id == 0)
        return false;
    op->peer->ids++;
    return true;
}

void mq_op_unname(struct transfer *op)
{
    struct velo_mq *mq = op->peer->mq;
    if (op->mem)
        mq_get_revoke(op);
    mq_rendezvous_unstage(op);
    if (op->id) {
        mq_ids_give(&mq->ids, op->id);
        op->id = 0;
        op->peer->ids--;
    }
}

/* ---- peers ----------------------------------------------------------------------------------- */

/* The entry of an id; NULL if there is no memory, or no such id. */
static struct source *source_get(struct velo_mq *mq, velo_id_t id)
{
    uint32_t node = VELO_ID_NODE(id);
    if (unlikely(node >= VELO_NODES))
        return NULL;
    if (unlikely(!mq->by_node[node]))
        mq->by_node[node] = calloc(VELO_VPIDS, sizeof(struct source));
    return mq->by_node[node] ? &mq->by_node[node][VELO_ID_VPID(id)] : NULL;
}

static struct velo_mq_peer *first_generation(const struct velo_mq *mq, velo_id_t id)
{
    const struct source *sources = mq->by_node[VELO_ID_NODE(id)];
    return sources ? sources[VELO_ID_VPID(id)].generations : NULL;
}

static struct velo_mq_peer *find_generation(const struct velo_mq *mq, velo_id_t id,
                                            uint32_t generation)
{
    struct velo_mq_peer *peer = VELO_ID_NODE(id) < VELO_NODES ? first_generation(mq, id) : NULL;
    while (peer && peer->generation != generation)
        peer = peer->next_generation;
    return peer;
}

struct velo_mq_peer *mq_peer_get(struct velo_mq *mq, velo_id_t id, uint32_t generation)
{
    struct velo_mq_peer *peer = find_generation(mq, id, generation);
    if (likely(peer))
        return peer;
    struct source *source = source_get(mq, id);
    if (!source)
        return NULL;
    peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->mq = mq;
    peer->id = id;
    peer->generation = generation;
    list_init(&peer->refusals);
    list_init(&peer->answers);
    list_init(&peer->streams);
    list_init(&peer->sends);
    peer->next = mq->peers;
    mq->peers = peer;
    peer->next_generation = source->generations;
    source->generations = peer;
    source->gone = VELO_OK;
    return peer;
}

/* Does the user hold the peer, or does the queue keep anything of it? */
static bool is_in_use(const struct velo_mq_peer *peer)
{
    bool is_gone = peer->gone && !peer->is_mourned;
    return peer->is_known || is_gone || peer->is_active || peer->is_deferred || peer->kept > 0 ||
           peer->ids > 0 || peer->conn || peer->extra || peer->rma || peer->refusals.first ||
           peer->answers.first || peer->streams.first || peer->sends.first;
}

/* Forget the generations that nobody needs. Else there would be more and more of them while peers
 * come and go. */
static void forget(struct velo_mq *mq)
{
    struct velo_mq_peer **link = &mq->peers;
    while (*link) {
        struct velo_mq_peer *peer = *link;
        if (is_in_use(peer)) {
            link = &peer->next;
            continue;
        }
        struct velo_mq_peer **generation = &source_get(mq, peer->id)->generations;
        while (*generation && *generation != peer)
            generation = &(*generation)->next_generation;
        if (*generation)
            *generation = peer->next_generation;
        *link = peer->next;
        free(peer);
    }
}

static uint32_t least(size_t one, size_t other) { return (uint32_t)(one < other ? one : other); }

/* The peer to which messages for an id go, if it is known and lives. */
static struct velo_mq_peer *find_known(const struct velo_mq *mq, velo_id_t id)
{
    for (struct velo_mq_peer *peer = first_generation(mq, id); peer; peer = peer->next_generation) {
        if (!peer->conn || peer->gone)
            continue;
        int status = velo_conn_status(peer->conn);
        if (status == VELO_OK)
            return peer;
        mq_peer_lost(peer, status);
    }
    return NULL;
}

/* Requests with generations that are gone end before a new connection is made: it may go to the
 * same generation. */
static void end_gone(const struct velo_mq *mq, velo_id_t id)
{
    for (struct velo_mq_peer *peer = first_generation(mq, id); peer; peer = peer->next_generation)
        if (peer->gone)
            mq_peer_end(peer, peer->gone);
}

/* May the next piece of a send be copied before it is asked for? Over a transport this gains
 * nothing: the transport is slower than the copy. */
static bool can_stage(const struct velo_mq *mq) { return !mq->port->net; }

static uint32_t first_bytes(const struct velo_mq *mq)
{
    return can_stage(mq) ? FIRST_BYTES : FIRST_BYTES_CARRIED;
}

int velo_mq_connect(struct velo_mq *mq, velo_id_t id, struct velo_mq_peer **out, int64_t timeout_ns)
{
    if (!mq || !out)
        return velo_fail(VELO_ERR_ARG, "mq or peer is NULL");
    *out = NULL;
    if (VELO_ID_NODE(id) >= VELO_NODES)
        return velo_fail(VELO_ERR_ARG, "id is %#x, which is no id; make one with VELO_ID()", id);
    *out = find_known(mq, id);
    if (*out)
        return VELO_OK;
    end_gone(mq, id);
    struct velo_conn *conn;
    int status = port_connect_in_order(mq->port, id, &conn, timeout_ns);
    if (status)
        return status;
    struct velo_mq_peer *peer = mq_peer_get(mq, id, velo_conn_generation(conn));
    if (!peer) {
        (void)velo_disconnect(conn);
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a peer");
    }
    size_t most_bytes = velo_conn_max_bytes(conn) - WIRE_TRAILER_MAX;
    peer->conn = conn;
    peer->eager_bytes = least(mq->eager_bytes, most_bytes);
    peer->first_bytes = least(peer->eager_bytes, first_bytes(mq));
    peer->gone = VELO_OK;
    peer->is_known = true;
    peer->direct_end_bytes = (uint64_t)peer->eager_bytes + 1;
    *out = peer;
    return VELO_OK;
}

uint32_t velo_mq_peer_generation(const struct velo_mq_peer *peer) { return peer->generation; }

int velo_mq_disconnect(struct velo_mq_peer *peer)
{
    if (!peer)
        return VELO_OK;
    struct velo_mq *mq = peer->mq;
    mq_peer_end(peer, VELO_ERR_PEER_CLOSED);
    (void)mq_peer_reap(mq);
    peer->gone = VELO_OK;
    peer->is_mourned = false;
    peer->is_known = false;
    return VELO_OK;
}

/* The status of a port that is not there, for requests that wait for it or answer it. */
static int absent_status(int status)
{
    return status == VELO_ERR_NO_PEER ? VELO_ERR_PEER_CLOSED : status;
}

/* Longer pieces are faster, but eight have to fit into the ring: both sides copy at the same time.
 * The longest message takes a quarter of the ring. */
static uint32_t piece_bytes(size_t max_bytes)
{
    size_t most_bytes = max_bytes - sizeof(struct wire_data);
    size_t eighth_bytes = max_bytes / 2 - VELO_LINE_BYTES;
    size_t bytes = eighth_bytes > PIECE_BYTES ? eighth_bytes : least(PIECE_BYTES, most_bytes);
    return (uint32_t)(least(PIECE_BYTES_MAX, bytes) & ~(size_t)(VELO_LINE_BYTES - 1));
}

/* Four of these fit into the ring if the longest message does not bound them. */
static uint32_t bulk_bytes(size_t max_bytes)
{
    return least(BULK_BYTES_MAX, max_bytes / 2 - VELO_LINE_BYTES) & ~(VELO_LINE_BYTES - 1);
}

static void set_extra(struct velo_mq_peer *peer, struct velo_conn *extra)
{
    size_t max_bytes = velo_conn_max_bytes(extra);
    peer->extra = extra;
    peer->reserved = NULL;
    peer->stages = can_stage(peer->mq);
    peer->piece_bytes = piece_bytes(max_bytes);
    peer->bulk_bytes = peer->piece_bytes;
    if (peer->stages && peer->piece_bytes == PIECE_BYTES_MAX)
        peer->bulk_bytes = bulk_bytes(max_bytes);
}

int mq_peer_open_extra(struct velo_mq_peer *peer)
{
    struct velo_conn *extra;
    if (likely(peer->extra))
        return VELO_OK;
    if (peer->gone)
        return peer->gone;
    int status = port_connect_present(peer->mq->port, peer->id, &extra);
    if (status)
        return absent_status(status);
    if (velo_conn_generation(extra) != peer->generation) {
        (void)velo_disconnect(extra);
        return velo_fail(VELO_ERR_PEER_DEAD,
                         "port %u.%u is another now than the one that sent this",
                         VELO_ID_NODE(peer->id), VELO_ID_VPID(peer->id));
    }
    set_extra(peer, extra);
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
    if (peer->refusals.first || peer->answers.first || peer->streams.first || peer->sends.first)
        mq_peer_activate(peer);
    return events;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Take a request that has an id out of the list in which it waits. */
static void withdraw(struct transfer *op)
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
        withdraw(op);
        /* Once a request has ids on both sides, the other side waits for it. */
        if (peer->extra && op->remote_id)
            mq_rendezvous_refuse(peer, op->remote_id);
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
    peer->direct_end_bytes = 0;
    mq_get_disconnect(peer); /* This comes first: until then RMA may write to receives' buffers. */
    end_named(peer, status);
    end_list(&peer->answers, status);
    end_list(&peer->sends, status);
    deactivate(peer);
    if (is_given_up && peer->refusals.first) {
        /* The peer goes on, and waits for the refused requests: send the refusals first. */
        mq_peer_activate(peer);
    } else {
        mq_rendezvous_drop_refusals(peer);
        (void)velo_disconnect(peer->extra);
        peer->extra = NULL;
    }
    (void)velo_disconnect(peer->conn);
    peer->conn = NULL;
    mq->work |= WORK_REAP;
    if (peer->is_deferred)
        mq->work |= WORK_RESUME;
}

/* ---- receives that are posted for one id ----------------------------------------------------- */

/* The reason why nothing will come from an id any more; VELO_OK: something may come. */
static int source_status(const struct source *source)
{
    int status = source->gone;
    for (const struct velo_mq_peer *peer = source->generations; peer;
         peer = peer->next_generation) {
        if (!peer->gone)
            return VELO_OK;
        if (!status && !peer->is_mourned)
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
        set_extra(peer, extra);
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
        struct source *source = source_get(mq, op->entry.source);
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
        mq_recv_unpost(mq, op);
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
static void mourn(struct velo_mq *mq)
{
    for (struct velo_mq_peer *peer = mq->peers; peer; peer = peer->next)
        if (peer->gone && !peer->is_known && !peer->is_active)
            peer->is_mourned = true;
}

int mq_peer_reap(struct velo_mq *mq)
{
    struct list ended;
    int events = 0;
    list_init(&ended);
    sort_posted(mq, &ended);
    mq->work &= ~(uint32_t)WORK_REAP;
    mourn(mq);
    for (; ended.first; events++) {
        struct transfer *op = (struct transfer *)ended.first;
        list_remove(&ended, &op->entry.link);
        source_get(mq, op->entry.source)->gone = VELO_OK;
        complete(request_of(op), op->outcome);
    }
    return events;
}

static bool is_waited_for(const struct velo_mq_peer *peer)
{
    return peer->ids > 0 || peer->answers.first || peer->streams.first || peer->sends.first;
}

void mq_peer_check(struct velo_mq *mq)
{
    mq->checks++;
    sort_posted(mq, NULL);
    for (struct velo_mq_peer *peer = mq->peers; peer; peer = peer->next)
        if (!peer->gone && is_waited_for(peer))
            ask_peer(peer);
    forget(mq);
}
