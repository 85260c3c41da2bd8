/* SPDX-License-Identifier: Apache-2.0 */
#include "../error.h"
#include "internal.h"

/* Messages taken in the search for one that was deferred: others keep coming. */
#define FETCH_MAX 4096

/* Keep a peer's deferred message, whatever the bound says: somebody asks for it. */
static void fetch_deferred(struct velo_mq *mq, struct velo_mq_peer *peer)
{
    struct velo_msg msg;
    mq->claimed = peer;
    mq_recv_resume(mq);
    for (int i = 0; i < FETCH_MAX && mq->claimed && velo_peek(mq->port, &msg) == VELO_OK; i++)
        mq_recv_take(mq, &msg);
    mq->claimed = NULL;
}

static struct velo_mq_message *look_for(struct velo_mq *mq, velo_id_t source, uint64_t match,
                                        uint64_t ignore)
{
    if (likely(!mq->before_post))
        return NULL;
    struct velo_mq_message *message = mq_recv_find_kept(mq, source, match, ignore);
    if (message)
        return message;
    struct velo_mq_peer *peer = mq_recv_find_deferred(mq, source, match, ignore);
    if (!peer)
        return NULL;
    fetch_deferred(mq, peer);
    return mq_recv_find_kept(mq, source, match, ignore);
}

static void describe(const struct velo_mq_message *message, struct velo_mq_info *info)
{
    if (!info)
        return;
    info->source = message->entry.source;
    info->match = message->entry.match;
    info->len_bytes = message->total_bytes;
}

int velo_mq_probe(struct velo_mq *mq, velo_id_t source, uint64_t match, uint64_t ignore,
                  struct velo_mq_info *info)
{
    if (!mq)
        return velo_fail(VELO_ERR_ARG, "mq is NULL");
    struct velo_mq_message *message = look_for(mq, source, match, ignore);
    if (!message)
        return VELO_AGAIN;
    describe(message, info);
    return VELO_OK;
}

int velo_mq_mprobe(struct velo_mq *mq, velo_id_t source, uint64_t match, uint64_t ignore,
                   struct velo_mq_message **out, struct velo_mq_info *info)
{
    if (!mq || !out)
        return velo_fail(VELO_ERR_ARG, "mq or message is NULL");
    *out = NULL;
    struct velo_mq_message *message = look_for(mq, source, match, ignore);
    if (!message)
        return VELO_AGAIN;
    describe(message, info);
    mq_recv_unlink_kept(mq, message);
    message->is_probed = true;
    list_append(&mq->probed, &message->arrival);
    *out = message;
    return VELO_OK;
}

int velo_mq_mrecv(struct velo_mq *mq, struct velo_mq_message *message, void *buf, size_t cap_bytes,
                  struct velo_mq_request *request)
{
    if (!mq || !message || !request || (!buf && cap_bytes > 0))
        return velo_fail(VELO_ERR_ARG, "mq, message, request or buf is NULL");
    struct op *op = op_of(request);
    request->status = VELO_AGAIN;
    op->buf = buf;
    op->len_bytes = cap_bytes;
    op->ignore = 0;
    list_remove(&mq->probed, &message->arrival);
    mq_recv_kept(mq, op, message);
    return VELO_OK;
}

int velo_mq_cancel(struct velo_mq *mq, struct velo_mq_request *request)
{
    if (!mq || !request)
        return velo_fail(VELO_ERR_ARG, "mq or request is NULL");
    struct op *op = op_of(request);
    if (request->status != VELO_AGAIN || op->state != OP_POSTED)
        return VELO_ERR_STATE;
    mq_recv_unpost(mq, op);
    request->status = VELO_ERR_STATE;
    return VELO_OK;
}
