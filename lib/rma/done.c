/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an operation: it is counted, and its requester is notified. */
#include "request.h"

static void count_request(struct velo_rma_counters *counters, const struct request *request)
{
    switch (request->op) {
    case VELO_RMA_OPERATION_GET:
        counters->gets++;
        break;
    case VELO_RMA_OPERATION_FETCH_COMPARE_ADD:
    case VELO_RMA_OPERATION_FETCH_OP:
    case VELO_RMA_OPERATION_COMPARE_SWAP:
        counters->atomics++;
        break;
    case VELO_RMA_OPERATION_NOTIFY:
        break;
    default:
        counters->puts++;
    }
    counters->bytes += request->len_bytes;
}

void rma_request_done(struct velo_rma_peer *peer, const struct request *request, int status)
{
    struct velo_rma *rma = peer->rma;
    if (likely(status == VELO_OK)) {
        count_request(&rma->counters, request);
        if (!(request->notify & VELO_RMA_NOTIFY_REQUESTER))
            return;
    }
    queue_push(rma, &(struct velo_rma_notification){.class_ = status ? VELO_RMA_CLASS_ERROR
                                                                     : VELO_RMA_CLASS_REQUESTER,
                                                    .op = request->op,
                                                    .status = (int16_t)status,
                                                    .peer = peer->id,
                                                    .len_bytes = status ? 0 : request->len_bytes,
                                                    .address = rma_request_address(request),
                                                    .cookie = request->cookie});
}
