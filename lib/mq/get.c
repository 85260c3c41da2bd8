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
#include "../rma/fetch.h"
#include "../shm/wait.h"
#include "internal.h"

/* Over a transport that can fetch, messages of at least this length are fetched, in pieces of which
 * the transport makes shorter ones. */
#define CARRIED_BYTES (UINT64_C(16) << 10)
#define CARRIED_PIECE_BYTES (UINT64_C(512) << 10)

/* One call of progress gets this much before other messages have their turn. Over hardware the node
 * is given this much at a time. */
#define GET_PIECE_BYTES (UINT64_C(256) << 10)

/* Each way is tried WAY_TRIES times before the two are compared. The slower one is tried again
 * after WAY_TRIAL_FIRST messages, and each time that it is slower again, after twice as many, up to
 * WAY_TRIAL_MOST. */
#define WAY_TRIES 2u
#define WAY_TRIAL_FIRST 64u
#define WAY_TRIAL_MOST 1024u

/* Does a peer share no memory with us, so that a transport fetches? */
static bool is_carried(const struct velo_mq_peer *peer)
{
    return port_net_reaches(peer->mq->port, peer->id);
}

static bool is_worth_it(const struct velo_mq_peer *peer, uint64_t len_bytes)
{
    const struct velo_mq *mq = peer->mq;
    bool carried = is_carried(peer);
    uint64_t least_bytes = carried && mq->measures_ways ? CARRIED_BYTES : mq->get_bytes;
    return (mq->rma || carried) && mq->path != VELO_MQ_PATH_COPY &&
           (mq->path == VELO_MQ_PATH_GET || len_bytes >= least_bytes);
}

static bool connect_rma(struct velo_mq_peer *peer)
{
    if (!peer->rma && !peer->no_get) {
        int status = velo_rma_connect(peer->mq->rma, peer->id, &peer->rma, 0);
        peer->no_get = status && status != VELO_ERR_FULL; /* A full table may have room later. */
    }
    return peer->rma;
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
    if (!is_worth_it(op->peer, op->len_bytes))
        return;
    if (is_carried(op->peer)) {
        op->exposed = mq->port->net->expose(op->peer->conn, op->buf, op->len_bytes);
        return;
    }
    if (rma_device_fetches(mq->rma) && !connect_rma(op->peer))
        return;
    (void)velo_rma_mem_register(mq->rma, op->buf, op->len_bytes, VELO_RMA_RIGHT_READ, op->peer->id,
                                &op->mem);
}

struct velo_exposed mq_get_offered(const struct transfer *op)
{
    if (!op->mem)
        return (struct velo_exposed){0};
    return is_carried(op->peer) ? *op->exposed
                                : (struct velo_exposed){.key = velo_rma_mem_key(op->mem)};
}

void mq_get_revoke(struct transfer *op)
{
    struct velo_port *port = op->peer->mq->port;
    if (is_carried(op->peer))
        port->net->conceal(port, op->peer->id, op->exposed);
    else
        (void)velo_rma_mem_deregister(op->mem, VELO_FOREVER);
    op->mem = NULL;
}

/* ---- receiver -------------------------------------------------------------------------------- */

/* Returns the way that was faster lately. The other one is tried now and then: the processes may
 * have moved. */
static enum way choose(struct velo_mq_peer *peer)
{
    const struct way_cost *ways = peer->ways;
    if (ways[WAY_GET].tries < WAY_TRIES)
        return WAY_GET;
    if (ways[WAY_COPY].tries < WAY_TRIES)
        return WAY_COPY;
    enum way faster = ways[WAY_GET].ps_per_byte < ways[WAY_COPY].ps_per_byte ? WAY_GET : WAY_COPY;
    if (faster != peer->way || peer->ways_period == 0) {
        peer->way = faster;
        peer->ways_used = 0;
        peer->ways_period = WAY_TRIAL_FIRST;
    }
    if (++peer->ways_used < peer->ways_period)
        return faster;
    peer->ways_used = 0;
    if (peer->ways_period < WAY_TRIAL_MOST)
        peer->ways_period *= 2;
    return faster == WAY_GET ? WAY_COPY : WAY_GET;
}

/* Keep the least cost of a way, since a process may have lost its processor meanwhile. Higher costs
 * raise it slowly. */
static void add_cost(struct way_cost *cost, uint32_t ps_per_byte)
{
    cost->ps_per_byte = cost->tries == 0 || ps_per_byte < cost->ps_per_byte
                            ? ps_per_byte
                            : cost->ps_per_byte + (ps_per_byte - cost->ps_per_byte) / 8;
    cost->tries += cost->tries < WAY_TRIES;
}

void mq_get_measured(const struct transfer *op, enum way way)
{
    uint64_t ps = (uint64_t)(wait_now_ns() - op->start_ns) * 1000 / op->end_bytes;
    add_cost(&op->peer->ways[way], ps < UINT32_MAX ? (uint32_t)ps : UINT32_MAX);
}

/* The kernel may forbid a get that was offered, and forbid the next one, too. So a get that failed
 * counts as the dearest one, without a second try. The trials come all the same. */
static void measure_failure(const struct transfer *op)
{
    op->peer->ways[WAY_GET] = (struct way_cost){.tries = WAY_TRIES, .ps_per_byte = UINT32_MAX};
}

bool mq_get_start(struct transfer *op, const struct arrival *arrival)
{
    struct velo_mq *mq = op->peer->mq;
    op->key = 0;
    if (!arrival->key || !is_worth_it(op->peer, arrival->total_bytes))
        return false;
    if (is_carried(op->peer)) {
        op->address = arrival->address;
    } else if (!connect_rma(op->peer)) {
        return false;
    } else if (mq->measures_ways) {
        op->start_ns = wait_now_ns();
        if (choose(op->peer) == WAY_COPY) {
            op->key = arrival->key;
            return false;
        }
    }
    op->state = OP_GETTING;
    op->key = arrival->key;
    op->piece_bytes = 0;
    list_append(&mq->gets, &op->entry.link);
    mq->work |= WORK_GETS;
    return true;
}

static int fetch(struct transfer *op, size_t len_bytes)
{
    char *to = op->buf + op->offset_bytes;
    struct velo_exposed from = {.key = op->key, .address = op->address + op->offset_bytes};
    if (is_carried(op->peer))
        return op->peer->mq->port->net->fetch(op->peer->extra, to, len_bytes, &from, &op->fetched);
    return rma_fetch(op->peer->rma, to, len_bytes, velo_rma_place(op->key, op->offset_bytes),
                     &op->fetched);
}

/* Get the next piece. VELO_OK: it is here; VELO_AGAIN: not yet; else the get has failed. */
static int get_piece(struct transfer *op)
{
    if (op->piece_bytes == 0) {
        uint64_t left_bytes = op->end_bytes - op->offset_bytes;
        uint64_t most_bytes = is_carried(op->peer) ? CARRIED_PIECE_BYTES : GET_PIECE_BYTES;
        uint64_t len_bytes = left_bytes < most_bytes ? left_bytes : most_bytes;
        int status = fetch(op, len_bytes);
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
    bool is_measured = mq->measures_ways && !is_carried(op->peer);
    if (status) {
        if (is_measured)
            measure_failure(op);
        op->start_ns = wait_now_ns();
        op->key = is_measured ? op->key : 0; /* What follows is measured as a copy. */
        mq_rendezvous_copy_instead(op);
        return 1;
    }
    mq->counters.fetched++;
    if (is_measured)
        mq_get_measured(op, WAY_GET);
    if (mq_rendezvous_finish(op)) {
        mq_op_unname(op);
        complete(request_of(op), op->outcome);
    }
    return 1;
}

void mq_get_stop(struct transfer *op)
{
    struct velo_port *port = op->peer->mq->port;
    if (is_carried(op->peer) && op->piece_bytes > 0)
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
