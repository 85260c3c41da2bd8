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

/* The entry of an id; NULL if there is no memory, or no such id. */
struct source *mq_source_get(struct velo_mq *mq, velo_id_t id)
{
    uint32_t node = VELO_ID_NODE(id);
    if (unlikely(node >= VELO_NODES))
        return NULL;
    if (unlikely(!mq->by_node[node]))
        mq->by_node[node] = calloc(VELO_VPIDS, sizeof(struct source));
    return mq->by_node[node] ? &mq->by_node[node][VELO_ID_VPID(id)] : NULL;
}

struct velo_mq_peer *mq_peer_first_generation(const struct velo_mq *mq, velo_id_t id)
{
    const struct source *sources = mq->by_node[VELO_ID_NODE(id)];
    return sources ? sources[VELO_ID_VPID(id)].generations : NULL;
}

static struct velo_mq_peer *find_generation(const struct velo_mq *mq, velo_id_t id,
                                            uint32_t generation)
{
    struct velo_mq_peer *peer =
        VELO_ID_NODE(id) < VELO_NODES ? mq_peer_first_generation(mq, id) : NULL;
    while (peer && peer->generation != generation)
        peer = peer->next_generation;
    return peer;
}

struct velo_mq_peer *mq_peer_get(struct velo_mq *mq, velo_id_t id, uint32_t generation)
{
    struct velo_mq_peer *peer = find_generation(mq, id, generation);
    if (likely(peer))
        return peer;
    struct source *source = mq_source_get(mq, id);
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

static uint32_t least(size_t one, size_t other) { return (uint32_t)(one < other ? one : other); }

/* May the next piece of a send be copied before it is asked for? Over a transport this gains
 * nothing: the transport is slower than the copy. */
static bool can_stage(const struct velo_mq *mq) { return !mq->port->has_net; }

uint32_t mq_peer_first_bytes(const struct velo_mq *mq)
{
    return can_stage(mq) ? FIRST_BYTES : FIRST_BYTES_CARRIED;
}

uint32_t velo_mq_peer_generation(const struct velo_mq_peer *peer) { return peer->generation; }

/* The status of a port that is not there, or silent, for requests that wait for it or answer it. */
static int absent_status(int status)
{
    return status == VELO_ERR_NO_PEER || status == VELO_TIMEOUT ? VELO_ERR_PEER_CLOSED : status;
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

void mq_peer_set_extra(struct velo_mq_peer *peer, struct velo_conn *extra)
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
    mq_peer_set_extra(peer, extra);
    return VELO_OK;
}

int mq_peer_open_way_back(struct velo_mq_peer *peer)
{
    int status = mq_peer_open_extra(peer);
    if (likely(status == VELO_OK) || peer->gone)
        return status;
    peer->cannot_answer = status != VELO_ERR_PEER_DEAD && status != VELO_ERR_PEER_CLOSED;
    mq_peer_lost(peer, status);
    return status;
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

void mq_peer_deactivate(struct velo_mq_peer *peer)
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
    peer->last_rounds = 0;
    peer->last_checks = peer->mq->checks;
    peer->direct_end_bytes = 0;
    mq_peer_activate(peer);
}
