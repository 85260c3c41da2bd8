/* SPDX-License-Identifier: Apache-2.0 */
/* The ids by which peers name requests, and the end of a request that has one. */
#include "internal.h"

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
        mq_offer_revoke(op);
    if (op->peer->staged == op)
        op->peer->staged = NULL; /* The room stays reserved, for the next message. */
    if (op->id) {
        mq_ids_give(&mq->ids, op->id);
        op->id = 0;
        op->peer->ids--;
    }
}

/* The request of an id, if the sender of this message may name it: this very generation of a port.
 */
struct transfer *mq_op_find(const struct velo_mq *mq, uint64_t id, const struct velo_msg *msg)
{
    struct transfer *op = mq_ids_find(&mq->ids, id);
    return op && op->peer->id == msg->source && op->peer->generation == msg->generation ? op : NULL;
}

void mq_op_end_send(struct transfer *op, int status)
{
    struct velo_mq_request *request = request_of(op);
    mq_op_unname(op);
    if (status == VELO_OK)
        request->len_bytes = op->len_bytes;
    complete(request, status);
}
