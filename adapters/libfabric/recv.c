/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and tagged messages, incoming. */
#include <stdlib.h>

#include "provider.h"

#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_MULTI_RECV)
#define LOOK_FLAGS (FI_PEEK | FI_CLAIM | FI_DISCARD)

/** A receive. */
struct receive {
    void *buf;
    size_t len;
    fi_addr_t src;
    uint64_t tag;
    uint64_t ignore;
    void *context;
};

/** A message that was peeked at and claimed. */
struct vf_claim {
    struct vf_claim *next;
    void *context;
    struct velo_mq_message *message;
};

/* ---- what has come --------------------------------------------------------------------------- */

/* Fill in what a receive took. */
static inline void describe_completion(const struct vf_op *op, struct vf_completion *completion)
{
    const struct velo_mq_request *request = &op->mq;
    completion->context = op->completion.context;
    completion->flags = op->completion.flags;
    completion->buf = op->completion.buf;
    completion->len = request->len_bytes;
    completion->tag = request->match;
    completion->data = 0;
    if (velo_mq_cookie(request, &completion->data) == VELO_OK)
        completion->flags |= FI_REMOTE_CQ_DATA;
    completion->source =
        op->ep->wants_source ? vf_av_find(op->ep->av, request->source) : FI_ADDR_NOTAVAIL;
    completion->err = 0;
}

static __attribute__((noinline)) void recv_done_slow(struct vf_op *op)
{
    int status = op->mq.status;
    op->cntr = op->ep->recv_cntr;
    if (status == VELO_OK || status == VELO_ERR_TOO_BIG) {
        struct vf_completion completion;
        describe_completion(op, &completion);
        completion.olen = op->mq.total_bytes - op->mq.len_bytes;
        op->completion = completion;
        if (op->iov_count)
            vf_iov_scatter(op->iov, op->iov_count, op->packed, op->mq.len_bytes);
    } else {
        op->completion.data = 0;
        op->completion.len = 0;
        op->completion.olen = 0;
        op->completion.source = FI_ADDR_NOTAVAIL;
    }
    vf_op_done(op, op->ep->rx_cq, status);
}

static void recv_done(struct velo_mq_request *request)
{
    struct vf_op *op = (struct vf_op *)request;
    struct vf_ep *ep = op->ep;
    if (vf_unlikely(ep->is_closing))
        return;
    if (vf_unlikely(request->status || op->packed || !op->reports || !vf_cq_has_room(ep->rx_cq))) {
        recv_done_slow(op);
        return;
    }
    vf_cntr_add(ep->recv_cntr, VELO_OK);
    describe_completion(op, vf_cq_push(ep->rx_cq));
    vf_op_free(&ep->rx, op);
}

/* The port that a receive waits for. 0, or the reason why the endpoint cannot receive from it. */
static inline int source_of(const struct vf_ep *ep, fi_addr_t src, velo_id_t *source)
{
    if (vf_unlikely(!ep->mq))
        return -FI_EOPBADSTATE;
    *source = VELO_MQ_ANY_SOURCE;
    if (src == FI_ADDR_UNSPEC || !ep->is_directed)
        return 0;
    const struct vf_address *address = vf_av_get(ep->av, src);
    if (!address)
        return -FI_EINVAL;
    *source = address->id;
    return 0;
}

static inline bool reports_receive(const struct vf_ep *ep, uint64_t flags)
{
    return ep->rx_cq && (!ep->rx_selective || (flags & FI_COMPLETION));
}

/* An operation for a receive; NULL: there is none now. */
static inline struct vf_op *new_op(struct vf_ep *ep, enum vf_space space,
                                   const struct receive *receive, uint64_t flags)
{
    struct vf_op *op = vf_pool_get(&ep->rx, ep);
    if (vf_unlikely(!op))
        return NULL;
    op->kind = VF_OP_RECV;
    op->reports = reports_receive(ep, flags);
    op->iov_count = 0;
    op->completion.context = receive->context;
    op->completion.flags = space == VF_SPACE_TAGGED ? FI_RECV | FI_TAGGED : FI_RECV | FI_MSG;
    op->completion.buf = receive->buf;
    op->completion.tag = receive->tag;
    op->mq.done = recv_done;
    return op;
}

static vf_hot ssize_t post_receive(struct vf_ep *ep, enum vf_space space,
                                   const struct receive *receive, uint64_t flags)
{
    velo_id_t source;
    int rc = source_of(ep, receive->src, &source);
    if (vf_unlikely(rc))
        return rc;
    struct vf_op *op = new_op(ep, space, receive, flags);
    if (vf_unlikely(!op))
        return vf_pool_lack(&ep->rx);
    int status = space == VF_SPACE_TAGGED
                     ? velo_mq_irecv(ep->mq, source, receive->tag, receive->ignore, receive->buf,
                                     receive->len, &op->mq)
                     : velo_mq_irecv_in(ep->mq, space, source, receive->tag, receive->ignore,
                                        receive->buf, receive->len, 0, &op->mq);
    if (vf_unlikely(status))
        vf_op_free(&ep->rx, op);
    else if (space == VF_SPACE_TAGGED)
        ep->recv_last = op;
    return status ? -vf_error(status) : 0;
}

/* ---- memory in pieces ------------------------------------------------------------------------ */

/* Memory in one piece, from which the pieces are filled when the message is there. NULL: none. */
static void *pack_buffer(struct vf_op *op, const struct iovec *iov, size_t count, size_t len_bytes)
{
    op->packed = malloc(len_bytes ? len_bytes : 1);
    op->iov_count = (uint8_t)count;
    memcpy(op->iov, iov, count * sizeof *iov);
    return op->packed;
}

static ssize_t post_pieces(struct vf_ep *ep, enum vf_space space, const struct receive *receive,
                           const struct iovec *iov, size_t count, uint64_t flags)
{
    velo_id_t source;
    int rc = source_of(ep, receive->src, &source);
    if (rc)
        return rc;
    size_t len = vf_iov_bytes(iov, count);
    struct vf_op *op = new_op(ep, space, receive, flags);
    if (!op)
        return vf_pool_lack(&ep->rx);
    if (!pack_buffer(op, iov, count, len)) {
        vf_op_free(&ep->rx, op);
        return -FI_ENOMEM;
    }
    int status = velo_mq_irecv_in(ep->mq, space, source, receive->tag, receive->ignore, op->packed,
                                  len, 0, &op->mq);
    if (status)
        vf_op_release(op);
    return status ? -vf_error(status) : 0;
}

/* ---- one memory for many messages ------------------------------------------------------------ */

/* Report what came. True: there is room for more, and it can be posted again now. */
static bool multi_take(struct vf_op *op)
{
    struct vf_ep *ep = op->ep;
    int status = op->mq.status;
    op->completion.flags = FI_RECV | FI_MSG;
    op->completion.buf = op->base;
    op->completion.data = 0;
    op->completion.len = 0;
    op->completion.olen = 0;
    if (status == VELO_OK || status == VELO_ERR_TOO_BIG) {
        struct vf_completion completion;
        describe_completion(op, &completion);
        completion.olen = op->mq.total_bytes - op->mq.len_bytes;
        op->completion = completion;
        op->base += op->mq.len_bytes;
        op->cap_bytes -= op->mq.len_bytes;
    } else {
        op->cap_bytes = 0;
    }
    if (op->cap_bytes < ep->min_multi_recv || op->cap_bytes == 0) {
        op->is_over = true;
        op->completion.flags |= FI_MULTI_RECV;
    }
    vf_cntr_add(ep->recv_cntr, status);
    op->completion.err = status ? vf_error(status) : 0;
    op->completion.prov_errno = status;
    if (ep->rx_cq && (op->reports || status || op->is_over)) {
        if (!vf_cq_has_room(ep->rx_cq)) {
            vf_cq_report(ep->rx_cq, op); /* It goes on when that was read. */
            return false;
        }
        *vf_cq_push(ep->rx_cq) = op->completion;
    }
    if (op->is_over)
        vf_op_release(op);
    return !op->is_over;
}

static void multi_done(struct velo_mq_request *request)
{
    struct vf_op *op = (struct vf_op *)request;
    if (!op->ep->is_closing && multi_take(op))
        vf_recv_again(op);
}

/* Messages that have come already are taken here, one after the other: calls within calls would
 * need as much stack as peers choose. */
void vf_recv_again(struct vf_op *op)
{
    if (op->is_over) {
        vf_op_release(op);
        return;
    }
    do {
        op->mq.done = NULL;
        if (velo_mq_irecv_in(op->ep->mq, VF_SPACE_MSG, op->source, 0, 0, op->base, op->cap_bytes,
                             VELO_MQ_FIRST, &op->mq) != VELO_OK) {
            vf_op_release(op);
            return;
        }
        if (op->mq.status == VELO_AGAIN) {
            op->mq.done = multi_done;
            return;
        }
    } while (multi_take(op));
}

static ssize_t post_multi(struct vf_ep *ep, const struct receive *receive, uint64_t flags)
{
    velo_id_t source;
    int rc = source_of(ep, receive->src, &source);
    if (rc)
        return rc;
    struct vf_op *op = new_op(ep, VF_SPACE_MSG, receive, flags);
    if (!op)
        return vf_pool_lack(&ep->rx);
    op->kind = VF_OP_MULTI;
    op->is_over = false;
    op->base = receive->buf;
    op->cap_bytes = receive->len;
    op->source = source;
    op->mq.done = multi_done;
    int status = velo_mq_irecv_in(ep->mq, VF_SPACE_MSG, source, 0, 0, receive->buf, receive->len, 0,
                                  &op->mq);
    if (status)
        vf_op_free(&ep->rx, op);
    return status ? -vf_error(status) : 0;
}

/* ---- peek, claim, discard -------------------------------------------------------------------- */

static void message_discarded(struct velo_mq_request *request)
{
    struct vf_op *op = (struct vf_op *)request;
    if (!op->ep->is_closing)
        vf_op_release(op);
}

/* Take a message and forget it. Its sender learns that it was received. */
static int discard_message(struct vf_ep *ep, struct velo_mq_message *message)
{
    struct vf_op *op = vf_pool_get(&ep->rx, ep);
    if (!op)
        return vf_pool_lack(&ep->rx);
    op->kind = VF_OP_RECV;
    op->mq.done = message_discarded;
    (void)velo_mq_mrecv(ep->mq, message, NULL, 0, &op->mq);
    return 0;
}

static int claim_message(struct vf_ep *ep, void *context, struct velo_mq_message *message)
{
    struct vf_claim *claim = malloc(sizeof *claim);
    if (!claim)
        return -FI_ENOMEM;
    *claim = (struct vf_claim){ep->claims, context, message};
    ep->claims = claim;
    return 0;
}

static struct velo_mq_message *unclaim_message(struct vf_ep *ep, const void *context)
{
    for (struct vf_claim **at = &ep->claims; *at; at = &(*at)->next) {
        struct vf_claim *found = *at;
        if (found->context != context)
            continue;
        struct velo_mq_message *message = found->message;
        *at = found->next;
        free(found);
        return message;
    }
    return NULL;
}

static ssize_t peek_message(struct vf_ep *ep, const struct receive *receive, uint64_t flags)
{
    struct velo_mq_message *message = NULL;
    struct velo_mq_found found;
    velo_id_t source;
    int rc = source_of(ep, receive->src, &source);
    if (rc || !ep->rx_cq)
        return rc ? rc : -FI_EOPBADSTATE;
    if (!vf_cq_has_room(ep->rx_cq))
        return -FI_EAGAIN;
    (void)velo_mq_progress(ep->mq);
    if (!vf_cq_has_room(ep->rx_cq))
        return -FI_EAGAIN;
    bool takes = flags & (FI_CLAIM | FI_DISCARD);
    int status = velo_mq_try_probe_in(ep->mq, VF_SPACE_TAGGED, source, receive->tag,
                                      receive->ignore, takes ? &message : NULL, &found);
    struct vf_completion completion = {.context = receive->context,
                                       .flags = FI_RECV | FI_TAGGED,
                                       .tag = receive->tag,
                                       .source = FI_ADDR_NOTAVAIL};
    if (status) {
        completion.err = status == VELO_AGAIN ? FI_ENOMSG : vf_error(status);
        completion.prov_errno = status;
        *vf_cq_push(ep->rx_cq) = completion;
        return 0;
    }
    completion.len = found.info.len_bytes;
    completion.tag = found.info.match;
    completion.source = vf_av_find(ep->av, found.info.source);
    if (found.flags & VELO_MQ_COOKIE) {
        completion.flags |= FI_REMOTE_CQ_DATA;
        completion.data = found.cookie;
    }
    if (flags & FI_DISCARD)
        rc = discard_message(ep, message);
    else if (flags & FI_CLAIM)
        rc = claim_message(ep, receive->context, message);
    if (!rc)
        *vf_cq_push(ep->rx_cq) = completion;
    return rc;
}

/* Receive a message that was claimed. */
static ssize_t take_claimed(struct vf_ep *ep, const struct receive *receive,
                            const struct iovec *iov, size_t count, uint64_t flags)
{
    struct velo_mq_message *message = unclaim_message(ep, receive->context);
    if (!message)
        return -FI_EINVAL;
    if (flags & FI_DISCARD) {
        int rc = discard_message(ep, message);
        if (rc)
            return claim_message(ep, receive->context, message) ? -FI_ENOMEM : rc;
        if (ep->rx_cq && vf_cq_has_room(ep->rx_cq))
            *vf_cq_push(ep->rx_cq) = (struct vf_completion){.context = receive->context,
                                                            .flags = FI_RECV | FI_TAGGED,
                                                            .source = FI_ADDR_NOTAVAIL};
        return 0;
    }
    struct vf_op *op = new_op(ep, VF_SPACE_TAGGED, receive, flags);
    if (!op)
        return claim_message(ep, receive->context, message) ? -FI_ENOMEM : -FI_EAGAIN;
    void *buf = receive->buf;
    size_t len = receive->len;
    if (count > 1) {
        len = vf_iov_bytes(iov, count);
        buf = pack_buffer(op, iov, count, len);
        if (!buf) {
            vf_op_free(&ep->rx, op);
            (void)claim_message(ep, receive->context, message);
            return -FI_ENOMEM;
        }
    }
    int status = velo_mq_mrecv(ep->mq, message, buf, len, &op->mq);
    if (status)
        vf_op_release(op);
    return status ? -vf_error(status) : 0;
}

void vf_recv_close(struct vf_ep *ep)
{
    while (ep->claims) {
        struct vf_claim *next = ep->claims->next;
        free(ep->claims);
        ep->claims = next;
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static inline uint64_t default_flags(const struct vf_ep *ep)
{
    return ep->rx_flags & (FI_COMPLETION | FI_MULTI_RECV);
}

ssize_t vf_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
                 uint64_t ignore, void *context)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    struct receive receive = {buf, len, src, tag, ignore, context};
    (void)desc;
    vf_lock(ep->domain);
    ssize_t rc = post_receive(ep, VF_SPACE_TAGGED, &receive, default_flags(ep));
    vf_unlock(ep->domain);
    return rc;
}

ssize_t vf_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, void *context)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    struct receive receive = {buf, len, src, 0, 0, context};
    (void)desc;
    vf_lock(ep->domain);
    uint64_t flags = default_flags(ep);
    ssize_t rc = vf_unlikely(flags & FI_MULTI_RECV)
                     ? post_multi(ep, &receive, flags)
                     : post_receive(ep, VF_SPACE_MSG, &receive, flags);
    vf_unlock(ep->domain);
    return rc;
}

static ssize_t recv_pieces(struct vf_ep *ep, enum vf_space space, const struct iovec *iov,
                           size_t count, struct receive *receive, uint64_t flags)
{
    ssize_t rc;
    if (count > VF_IOV_MAX)
        return -FI_EINVAL;
    if (count == 1) {
        receive->buf = iov[0].iov_base;
        receive->len = iov[0].iov_len;
    }
    vf_lock(ep->domain);
    if (flags & FI_PEEK)
        rc = peek_message(ep, receive, flags);
    else if (flags & FI_CLAIM)
        rc = take_claimed(ep, receive, iov, count, flags);
    else if (flags & FI_MULTI_RECV)
        rc = count == 1 && space == VF_SPACE_MSG ? post_multi(ep, receive, flags) : -FI_EINVAL;
    else if (count > 1)
        rc = post_pieces(ep, space, receive, iov, count, flags);
    else
        rc = post_receive(ep, space, receive, flags);
    vf_unlock(ep->domain);
    return rc;
}

ssize_t vf_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                  fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    struct receive receive = {NULL, 0, src, tag, ignore, context};
    (void)desc;
    return recv_pieces(ep, VF_SPACE_TAGGED, iov, count, &receive,
                       default_flags(ep) & FI_COMPLETION);
}

ssize_t vf_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    struct receive receive = {NULL, 0, msg->addr, msg->tag, msg->ignore, msg->context};
    if (flags & ~(RECV_FLAGS | LOOK_FLAGS))
        return -FI_EINVAL;
    if ((flags & FI_DISCARD) && !(flags & (FI_PEEK | FI_CLAIM)))
        return -FI_EINVAL;
    return recv_pieces(ep, VF_SPACE_TAGGED, msg->msg_iov, msg->iov_count, &receive, flags);
}

ssize_t vf_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                 fi_addr_t src, void *context)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    struct receive receive = {NULL, 0, src, 0, 0, context};
    (void)desc;
    return recv_pieces(ep, VF_SPACE_MSG, iov, count, &receive, default_flags(ep));
}

ssize_t vf_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    struct receive receive = {NULL, 0, msg->addr, 0, 0, msg->context};
    if (flags & ~RECV_FLAGS)
        return -FI_EINVAL;
    return recv_pieces(ep, VF_SPACE_MSG, msg->msg_iov, msg->iov_count, &receive, flags);
}

ssize_t vf_recv_cancel(fid_t fid, void *context)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    ssize_t rc = -FI_ENOENT;
    vf_lock(ep->domain);
    for (uint32_t i = 0; i < ep->rx.count; i++) {
        struct vf_op *op = vf_pool_at(&ep->rx, i);
        if ((op->kind != VF_OP_RECV && op->kind != VF_OP_MULTI) ||
            op->completion.context != context || op->mq.status != VELO_AGAIN ||
            velo_mq_cancel(ep->mq, &op->mq) != VELO_OK)
            continue;
        op->mq.done(&op->mq);
        rc = 0;
        break;
    }
    vf_unlock(ep->domain);
    return rc;
}
