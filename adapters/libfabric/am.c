/* SPDX-License-Identifier: Apache-2.0 */
/* Requests between endpoints, in a matching space of their own. An endpoint keeps receives posted
 * for them; an answer goes back from the memory of the request that it belongs to. So whatever
 * peers send, it takes a fixed amount of memory. */
#include <stdlib.h>

#include "fabric.h"
#include "provider.h"

#define SLOTS 16

/** A request that came, and its answer. */
struct slot {
    struct velo_mq_request mq; /* Of the receive, then of the answer. */
    struct vf_ep *ep;
    bool is_stalled; /* It could not be reported yet. */
    union {
        struct vf_am_header header;
        char request[VF_AM_BYTES];
    };
    union {
        struct vf_am_answer answer;
        char reply[sizeof(struct vf_am_answer) + VF_ATOMIC_BYTES];
    };
};

struct vf_am {
    struct slot slots[SLOTS];
};

static void post_slot(struct slot *slot);

static void answer_sent(struct velo_mq_request *request)
{
    struct slot *slot = (struct slot *)request;
    if (!slot->ep->is_closing)
        post_slot(slot);
}

/* A peer that is gone needs no answer. True: the slot is free. */
static bool answer_request(struct slot *slot, size_t len_bytes)
{
    struct vf_ep *ep = slot->ep;
    struct velo_mq_peer *peer;
    uint64_t match = slot->header.answer;
    int64_t end_ms = 0;
    int status;
    slot->mq.done = NULL;
    do
        status = velo_mq_connect(ep->mq, slot->mq.source, &peer, 0);
    while (vf_table_may_have_room(status, &end_ms));
    if (status ||
        velo_mq_isend_in(peer, VF_SPACE_AM, &slot->answer, len_bytes, match, 0, 0, &slot->mq) !=
            VELO_OK ||
        slot->mq.status != VELO_AGAIN)
        return true;
    slot->mq.done = answer_sent;
    return false;
}

/* Tell the user that its memory was written. False: not now. */
static bool report_written(struct slot *slot)
{
    struct vf_ep *ep = slot->ep;
    if (!ep->rx_cq)
        return true;
    if (!vf_cq_has_room(ep->rx_cq)) {
        slot->is_stalled = true;
        ep->am_stalled = true;
        return false;
    }
    *vf_cq_push(ep->rx_cq) = (struct vf_completion){
        .flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
        .len = slot->header.addr,
        .data = slot->header.data,
        .source = ep->wants_source ? vf_av_find(ep->av, slot->mq.source) : FI_ADDR_NOTAVAIL,
    };
    return true;
}

/* True: the slot is free. */
static bool serve_slot(struct slot *slot)
{
    size_t len_bytes = slot->mq.len_bytes;
    slot->is_stalled = false;
    if (slot->mq.status != VELO_OK || len_bytes < sizeof slot->header)
        return true;
    if (slot->header.kind == VF_AM_WRITTEN)
        return report_written(slot);
    if (slot->header.kind == VF_AM_ATOMIC)
        return answer_request(slot,
                              vf_atomic_serve(slot->ep->domain, &slot->header, &slot->header + 1,
                                              len_bytes - sizeof slot->header, &slot->answer));
    return true;
}

static void request_arrived(struct velo_mq_request *request)
{
    struct slot *slot = (struct slot *)request;
    if (!slot->ep->is_closing && serve_slot(slot))
        post_slot(slot);
}

/* Requests that have come already are served here, one after the other: calls within calls would
 * need as much stack as peers choose. */
static void post_slot(struct slot *slot)
{
    do {
        slot->mq.done = NULL;
        if (velo_mq_irecv_in(slot->ep->mq, VF_SPACE_AM, VELO_MQ_ANY_SOURCE, 0, 0, &slot->request,
                             sizeof slot->request, 0, &slot->mq) != VELO_OK)
            return; /* The endpoint is being closed. */
        if (slot->mq.status == VELO_AGAIN) {
            slot->mq.done = request_arrived;
            return;
        }
    } while (serve_slot(slot));
}

void vf_am_retry(struct vf_ep *ep)
{
    ep->am_stalled = false;
    for (int i = 0; i < SLOTS; i++)
        if (ep->am->slots[i].is_stalled && serve_slot(&ep->am->slots[i]))
            post_slot(&ep->am->slots[i]);
}

int vf_am_start(struct vf_ep *ep)
{
    ep->am = calloc(1, sizeof *ep->am);
    if (!ep->am)
        return -FI_ENOMEM;
    for (int i = 0; i < SLOTS; i++) {
        ep->am->slots[i].ep = ep;
        post_slot(&ep->am->slots[i]);
    }
    return 0;
}

void vf_am_close(struct vf_ep *ep)
{
    free(ep->am);
    ep->am = NULL;
}

int vf_am_send(struct vf_ep *ep, struct velo_mq_peer *peer, const void *request, size_t len_bytes,
               struct vf_op *op, velo_mq_done_fn done)
{
    (void)ep;
    int status = velo_mq_try_send_in(peer, VF_SPACE_AM, request, len_bytes, 0, 0, 0);
    if (status != VELO_AGAIN)
        return status;
    free(op->packed);
    op->packed = malloc(len_bytes);
    if (!op->packed)
        return VELO_ERR_NO_MEMORY;
    memcpy(op->packed, request, len_bytes);
    op->mq.done = NULL; /* It may be done at once. */
    status = velo_mq_isend_in(peer, VF_SPACE_AM, op->packed, len_bytes, 0, 0, 0, &op->mq);
    if (status)
        return status;
    op->mq.done = done;
    return op->mq.status;
}
