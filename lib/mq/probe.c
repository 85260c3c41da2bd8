/* SPDX-License-Identifier: Apache-2.0 */
#include "../base/error.h"
#include "posted.h"

/* The most messages to take in a search for one that is pushed back: others keep coming. */
#define FETCH_MAX 4096

/* Take in messages that are pushed back, even beyond the bound, until the wanted one is there. */
static void fetch_deferred(struct velo_mq *mq, const struct wanted *wanted)
{
    struct velo_msg msg;
    mq->probed_for = wanted;
    mq_recv_resume(mq);
    for (int i = 0; i < FETCH_MAX && mq->probed_for && velo_try_peek(mq->port, &msg) == VELO_OK;
         i++)
        mq_recv_take(mq, &msg);
    mq->probed_for = NULL;
}

/* The message that such a receive would take. VELO_OK, VELO_AGAIN or VELO_ERR_NO_MEMORY. */
static int look_for(struct velo_mq *mq, uint8_t space, velo_id_t source, uint64_t match,
                    uint64_t ignore, struct velo_mq_message **message)
{
    *message = NULL;
    if (likely(!mq->before_post))
        return VELO_AGAIN;
    *message = mq_recv_find_kept(mq, space, source, match, ignore);
    if (!*message && mq_recv_is_deferred(mq, source)) {
        struct wanted wanted = {match, ignore, source, space};
        fetch_deferred(mq, &wanted);
        *message = mq_recv_find_kept(mq, space, source, match, ignore);
        bool is_over = mq->work & WORK_OVER;
        if (is_over)
            mq_recv_told_over(mq);
        if (!*message && is_over)
            return mq_recv_fail_over(mq);
    }
    return *message ? VELO_OK : VELO_AGAIN;
}

static void describe_message(const struct velo_mq_message *message, struct velo_mq_info *info)
{
    if (!info)
        return;
    info->source = message->entry.source;
    info->match = message->entry.match;
    info->len_bytes = message->total_bytes;
}

int velo_mq_try_probe(struct velo_mq *mq, velo_id_t source, uint64_t match, uint64_t ignore,
                      struct velo_mq_info *info)
{
    if (!mq)
        return velo_fail(VELO_ERR_ARG, "mq is NULL");
    struct velo_mq_message *message;
    int status = look_for(mq, 0, source, match, ignore, &message);
    if (status == VELO_OK)
        describe_message(message, info);
    return status;
}

/* The caller's from here on. */
static void take_out(struct velo_mq *mq, struct velo_mq_message *message)
{
    mq_recv_unlink_kept(mq, message);
    message->is_probed = true;
    list_append(&mq->probed, &message->arrival);
}

int velo_mq_try_probe_in(struct velo_mq *mq, uint32_t space, velo_id_t source, uint64_t match,
                         uint64_t ignore, struct velo_mq_message **out, struct velo_mq_found *found)
{
    if (!mq || !found || space >= VELO_MQ_SPACES)
        return velo_fail(VELO_ERR_ARG, "mq or found is NULL, or there is no space %u", space);
    struct velo_mq_message *message;
    int status = look_for(mq, (uint8_t)space, source, match, ignore, &message);
    if (out)
        *out = message;
    if (status)
        return status;
    describe_message(message, &found->info);
    found->flags = message->has_cookie ? VELO_MQ_COOKIE : 0;
    found->cookie = message->cookie;
    if (out)
        take_out(mq, message);
    return VELO_OK;
}

int velo_mq_try_mprobe(struct velo_mq *mq, velo_id_t source, uint64_t match, uint64_t ignore,
                       struct velo_mq_message **out, struct velo_mq_info *info)
{
    if (!mq || !out)
        return velo_fail(VELO_ERR_ARG, "mq or message is NULL");
    *out = NULL;
    struct velo_mq_message *message;
    int status = look_for(mq, 0, source, match, ignore, &message);
    if (status)
        return status;
    describe_message(message, info);
    take_out(mq, message);
    *out = message;
    return VELO_OK;
}

static struct transfer *begin(void *buf, size_t cap_bytes, struct velo_mq_request *request)
{
    struct transfer *op = op_of(request);
    request->status = VELO_AGAIN;
    op->buf = buf;
    op->len_bytes = cap_bytes;
    op->ignore = 0;
    op->state = OP_POSTED;
    return op;
}

static void mrecv(struct velo_mq *mq, struct velo_mq_message *message, struct transfer *op)
{
    list_remove(&mq->probed, &message->arrival);
    mq_recv_kept(mq, op, message);
}

int velo_mq_mrecv(struct velo_mq *mq, struct velo_mq_message *message, void *buf, size_t cap_bytes,
                  struct velo_mq_request *request)
{
    if (!mq || !message || !request || (!buf && cap_bytes > 0))
        return velo_fail(VELO_ERR_ARG, "mq, message, request or buf is NULL");
    mrecv(mq, message, begin(buf, cap_bytes, request));
    return VELO_OK;
}

int velo_mq_mrecv_layout(struct velo_mq *mq, struct velo_mq_message *message,
                         const struct velo_mq_layout *layout, void *state, size_t cap_bytes,
                         struct velo_mq_request *request)
{
    if (!mq || !message || !request || !layout || !layout->unpack)
        return velo_fail(VELO_ERR_ARG, "mq, message, request, layout or its unpack() is NULL");
    struct transfer *op = begin(state, 0, request);
    mq_layout_receives(op, layout, cap_bytes);
    mrecv(mq, message, op);
    return VELO_OK;
}

int velo_mq_cancel(struct velo_mq *mq, struct velo_mq_request *request)
{
    if (!mq || !request)
        return velo_fail(VELO_ERR_ARG, "mq or request is NULL");
    struct transfer *op = op_of(request);
    if (request->status != VELO_AGAIN || (op->state != OP_POSTED && op->state != OP_POSTED_LAYOUT))
        return VELO_ERR_STATE;
    posted_remove(&mq->spaces[op->space], op);
    request->status = VELO_ERR_CANCELLED;
    return VELO_OK;
}
