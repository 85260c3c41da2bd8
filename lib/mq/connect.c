/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that the user makes and ends. */
#include "../base/error.h"
#include "../base/fork.h"
#include "internal.h"

static uint32_t least(size_t one, size_t other) { return (uint32_t)(one < other ? one : other); }

/* The peer to which messages for an id go, if it is known and lives. */
static struct velo_mq_peer *find_known(const struct velo_mq *mq, velo_id_t id)
{
    for (struct velo_mq_peer *peer = mq_peer_first_generation(mq, id); peer;
         peer = peer->next_generation) {
        if (!peer->conn || peer->gone)
            continue;
        int status = velo_conn_status(peer->conn);
        if (status == VELO_OK)
            return peer;
        mq_peer_lost(peer, status);
    }
    return NULL;
}

/* Has a generation left whose requests have not ended yet? */
static bool is_one_leaving(const struct velo_mq *mq, velo_id_t id)
{
    struct velo_mq_peer *peer = mq_peer_first_generation(mq, id);
    while (peer && !(peer->gone && !peer->requests_ended))
        peer = peer->next_generation;
    return peer;
}

/* Requests with generations that are gone end before a new connection is made: it may go to the
 * same generation. What those have sent is taken first, unless others send without end. */
static void end_gone(struct velo_mq *mq, velo_id_t id)
{
    for (uint32_t left = LAST_ROUNDS_MAX; left > 0 && is_one_leaving(mq, id); left--)
        (void)velo_mq_progress(mq);
    for (struct velo_mq_peer *peer = mq_peer_first_generation(mq, id); peer;
         peer = peer->next_generation)
        if (peer->gone)
            mq_peer_end(peer, peer->gone);
}

/* Peers that have left keep memory and a descriptor mapped. A program that meets ever new ones,
 * such as one that spawns, would else have those of all of them. */
static void give_back_left(const struct velo_mq *mq)
{
    for (struct velo_mq_peer *peer = mq->peers; peer; peer = peer->next) {
        struct velo_conn *conn = peer->conn ? peer->conn : peer->extra;
        if (!peer->gone && conn && conn_has_lost_peer(conn))
            mq_peer_lost(peer, velo_conn_status(conn));
    }
}

int velo_mq_connect(struct velo_mq *mq, velo_id_t id, struct velo_mq_peer **out, int64_t timeout_ns)
{
    if (!mq || !out)
        return velo_fail(VELO_ERR_ARG, "mq or peer is NULL");
    *out = NULL;
    if (!fork_is_ours(mq->port->process))
        return fork_refuse("port");
    if (VELO_ID_NODE(id) >= VELO_NODES)
        return velo_fail(VELO_ERR_ARG, "id is %#x, which is no id; make one with VELO_ID()", id);
    *out = find_known(mq, id);
    if (*out)
        return VELO_OK;
    end_gone(mq, id);
    give_back_left(mq);
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
    peer->first_bytes = least(peer->eager_bytes, mq_peer_first_bytes(mq));
    peer->gone = VELO_OK;
    peer->requests_ended = false;
    peer->is_known = true;
    peer->direct_end_bytes = (uint64_t)peer->eager_bytes + 1;
    *out = peer;
    return VELO_OK;
}

int velo_mq_disconnect(struct velo_mq_peer *peer)
{
    if (!peer || !fork_is_ours(peer->mq->port->process))
        return VELO_OK;
    struct velo_mq *mq = peer->mq;
    mq_peer_end(peer, VELO_ERR_PEER_CLOSED);
    (void)mq_peer_reap(mq);
    peer->gone = VELO_OK;
    peer->requests_ended = false;
    peer->receives_ended = false;
    peer->is_known = false;
    return VELO_OK;
}
