/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a long message fetched? The sender offers its buffer: it registers it, or exposes it to a
 * transport, and sends the key in its RTS.
 */
#include "../base/cancel.h"
#include "../rma/fetch.h"
#include "internal.h"

/* Over a transport that can fetch, messages of at least this length are fetched. */
#define CARRIED_BYTES (UINT64_C(16) << 10)

bool mq_offer_is_carried(const struct velo_mq_peer *peer)
{
    return port_net_reaches(peer->mq->port, peer->id);
}

bool mq_offer_is_worth_it(const struct velo_mq_peer *peer, uint64_t len_bytes)
{
    const struct velo_mq *mq = peer->mq;
    bool carried = mq_offer_is_carried(peer);
    uint64_t least_bytes = carried && mq->measures_ways ? CARRIED_BYTES : mq->get_bytes;
    return (mq->rma || carried) && mq->path != VELO_MQ_PATH_COPY &&
           (mq->path == VELO_MQ_PATH_GET || len_bytes >= least_bytes);
}

bool mq_offer_connect_rma(struct velo_mq_peer *peer)
{
    if (!peer->rma && !peer->no_get) {
        int status = velo_rma_connect(peer->mq->rma, peer->id, &peer->rma, 0);
        peer->no_get = status && status != VELO_ERR_FULL; /* A full table may have room later. */
    }
    return peer->rma;
}

void mq_offer_disconnect(struct velo_mq_peer *peer)
{
    (void)velo_rma_disconnect(peer->rma);
    peer->rma = NULL;
    peer->no_get = false;
}

void mq_offer_make(struct transfer *op)
{
    struct velo_mq *mq = op->peer->mq;
    if (op->layout || !mq_offer_is_worth_it(op->peer, op->len_bytes))
        return;
    if (mq_offer_is_carried(op->peer)) {
        CANCEL_LATER();
        op->exposed = mq->port->net->expose(op->peer->conn, op->buf, op->len_bytes);
        return;
    }
    if (rma_device_fetches(mq->rma) && !mq_offer_connect_rma(op->peer))
        return;
    (void)velo_rma_mem_register(mq->rma, op->buf, op->len_bytes, VELO_RMA_RIGHT_READ, op->peer->id,
                                &op->mem);
}

struct velo_exposed mq_offer_of(const struct transfer *op)
{
    if (!op->mem)
        return (struct velo_exposed){0};
    return mq_offer_is_carried(op->peer) ? *op->exposed
                                         : (struct velo_exposed){.key = velo_rma_mem_key(op->mem)};
}

void mq_offer_revoke(struct transfer *op)
{
    struct velo_port *port = op->peer->mq->port;
    if (mq_offer_is_carried(op->peer)) {
        CANCEL_LATER();
        port->net->conceal(port, op->peer->id, op->exposed);
    } else {
        (void)velo_rma_mem_deregister(op->mem, VELO_FOREVER);
    }
    op->mem = NULL;
}
