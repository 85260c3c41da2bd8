/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and tagged messages, outgoing. */
#include <stdlib.h>

#include "older.h"
#include "provider.h"

#define SYNC_FLAGS (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define SEND_FLAGS                                                                                 \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | SYNC_FLAGS |          \
     FI_REMOTE_CQ_DATA | FI_MORE | FI_PRIORITY | VF_QUIET)

/** A message. */
struct message {
    const void *buf;
    size_t len;
    fi_addr_t dest;
    uint64_t tag;
    uint64_t data; /* With FI_REMOTE_CQ_DATA. */
    void *context;
};

static inline uint64_t kind_flags(enum vf_space space)
{
    return space == VF_SPACE_TAGGED ? FI_SEND | FI_TAGGED : FI_SEND | FI_MSG;
}

static void send_done(struct velo_mq_request *request)
{
    struct vf_op *op = (struct vf_op *)request;
    if (op->ep->is_closing)
        return;
    vf_op_done(op, op->ep->tx_cq, request->status);
}

static void copy_done(struct velo_mq_request *request)
{
    ((struct vf_op *)request)->ep->has_copy = false;
    send_done(request);
}

/* A send that must wait: for room, for its receiver, or because it is long. */
static __attribute__((noinline)) ssize_t send_later(struct vf_ep *ep, enum vf_space space,
                                                    struct velo_mq_peer *peer,
                                                    const struct message *message, uint64_t flags,
                                                    bool reports, void *packed)
{
    const void *buf = message->buf;
    if (message->len > VF_MESSAGE_BYTES_MAX)
        return -FI_EMSGSIZE;
    struct vf_op *op = vf_pool_get(&ep->tx, ep);
    if (!op)
        return vf_pool_lack(&ep->tx);
    if (!packed && (flags & FI_INJECT)) {
        packed = malloc(message->len ? message->len : 1);
        if (!packed) {
            vf_op_free(&ep->tx, op);
            return -FI_ENOMEM;
        }
        if (message->len)
            memcpy(packed, buf, message->len);
        buf = packed;
    }
    op->kind = VF_OP_SEND;
    op->reports = reports;
    op->packed = packed;
    op->cntr = ep->send_cntr;
    op->completion = (struct vf_completion){
        .context = message->context, .flags = kind_flags(space), .source = FI_ADDR_NOTAVAIL};
    op->mq.done = flags & VF_QUIET ? copy_done : send_done;
    uint32_t mq_flags = (flags & SYNC_FLAGS ? VELO_MQ_SYNC : 0u) |
                        (flags & FI_REMOTE_CQ_DATA ? VELO_MQ_COOKIE : 0u);
    int status = velo_mq_isend_in(peer, space, buf, message->len, message->tag, mq_flags,
                                  message->data, &op->mq);
    if (status) {
        op->packed = NULL;
        if (packed && buf == packed && buf != message->buf)
            free(packed);
        vf_op_free(&ep->tx, op);
    }
    return status ? -vf_error(status) : 0;
}

/* Inject has no completion, so it says by its result that its peer is gone. */
static __attribute__((noinline)) ssize_t fail(struct vf_ep *ep, enum vf_space space,
                                              const struct message *message, uint64_t flags,
                                              void *packed, int rc)
{
    if (flags & VF_QUIET)
        return rc;
    rc = vf_op_fail(ep, message->context, kind_flags(space), ep->send_cntr, rc);
    if (rc == 0)
        free(packed);
    return rc;
}

/* There is no room now. Where many peers share the memory for rings, the longest messages find none
 * in any ring: such a message goes later, from a copy. */
static __attribute__((noinline)) ssize_t inject_later(struct vf_ep *ep, enum vf_space space,
                                                      struct velo_mq_peer *peer,
                                                      const struct message *message, uint64_t flags)
{
    /* The cut of eager_bytes in velo_mq_attr. */
    size_t eager_bytes = velo_mq_ring_bytes(UINT32_MAX) / 4 - 48;
    if (message->len <= eager_bytes || ep->has_copy)
        return -FI_EAGAIN;
    ep->has_copy = true;
    ssize_t rc = send_later(ep, space, peer, message, flags | FI_INJECT, false, NULL);
    if (rc)
        ep->has_copy = false;
    return rc;
}

/* With `packed`, the message lies there, and it is freed if this succeeds. */
static vf_hot ssize_t send_locked(struct vf_ep *ep, enum vf_space space,
                                  const struct message *message, uint64_t flags, void *packed)
{
    struct velo_mq_peer *peer;
    int rc = vf_peer(ep, message->dest, &peer);
    if (vf_unlikely(rc))
        return fail(ep, space, message, flags, packed, rc);
    bool reports = vf_tx_reports(ep, flags);
    if (reports && vf_unlikely(!vf_cq_has_room(ep->tx_cq)))
        return -FI_EAGAIN;
    if (vf_likely(!(flags & SYNC_FLAGS))) {
        bool is_plain = space == VF_SPACE_TAGGED && !(flags & FI_REMOTE_CQ_DATA);
        int status = is_plain ? velo_mq_try_send(peer, message->buf, message->len, message->tag)
                              : velo_mq_try_send_in(
                                    peer, space, message->buf, message->len, message->tag,
                                    flags & FI_REMOTE_CQ_DATA ? VELO_MQ_COOKIE : 0, message->data);
        if (vf_likely(status == VELO_OK)) {
            vf_cntr_add(ep->send_cntr, VELO_OK);
            if (reports) {
                struct vf_completion *completion = vf_cq_push(ep->tx_cq);
                completion->context = message->context;
                completion->flags = kind_flags(space);
                completion->len = 0;
                completion->buf = NULL;
                completion->data = 0;
                completion->tag = 0;
                completion->source = FI_ADDR_NOTAVAIL;
                completion->err = 0;
            }
            if (vf_unlikely(packed != NULL))
                free(packed);
            return 0;
        }
        if (status != VELO_AGAIN)
            return fail(ep, space, message, flags, packed, -vf_error(status));
        if (flags & VF_QUIET)
            return inject_later(ep, space, peer, message, flags);
    }
    return send_later(ep, space, peer, message, flags, reports, packed);
}

static vf_hot ssize_t send_message(struct fid_ep *fid, enum vf_space space,
                                   const struct message *message, uint64_t flags)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    if (vf_unlikely((flags & FI_INJECT) && message->len > VF_INJECT_BYTES))
        return -FI_EINVAL;
    vf_lock(ep->domain);
    ssize_t rc = send_locked(ep, space, message, flags, NULL);
    vf_unlock(ep->domain);
    return rc;
}

/* A message in pieces is packed first. */
static __attribute__((noinline)) ssize_t send_pieces(struct fid_ep *fid, enum vf_space space,
                                                     const struct iovec *iov, size_t count,
                                                     struct message *message, uint64_t flags)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    if (count > VF_IOV_MAX || (flags & ~(SEND_FLAGS)))
        return -FI_EINVAL;
    if (count <= 1) {
        message->buf = count ? iov[0].iov_base : NULL;
        message->len = count ? iov[0].iov_len : 0;
        return send_message(fid, space, message, flags);
    }
    message->len = vf_iov_bytes(iov, count);
    if ((flags & FI_INJECT) && message->len > VF_INJECT_BYTES)
        return -FI_EINVAL;
    void *packed = malloc(message->len ? message->len : 1);
    if (!packed)
        return -FI_ENOMEM;
    vf_iov_gather(packed, iov, count);
    message->buf = packed;
    vf_lock(ep->domain);
    ssize_t rc = send_locked(ep, space, message, flags & ~FI_INJECT, packed);
    vf_unlock(ep->domain);
    if (rc)
        free(packed);
    return rc;
}

static inline uint64_t default_flags(struct fid_ep *fid)
{
    return VF_CONTAINER(fid, struct vf_ep)->tx_flags & (FI_COMPLETION | SYNC_FLAGS);
}

/* A call without flags, of a message longer than inject takes, has no use for an FI_INJECT that is
 * the endpoint's default: so it is left out above. It is only kept for short ones. */
static inline uint64_t plain_flags(struct fid_ep *fid, size_t len)
{
    uint64_t inject = VF_CONTAINER(fid, struct vf_ep)->tx_flags & FI_INJECT;
    return default_flags(fid) | (len <= VF_INJECT_BYTES ? inject : 0);
}

/* ---- tagged ---------------------------------------------------------------------------------- */

static ssize_t tsend(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest,
                     uint64_t tag, void *context)
{
    struct message message = {buf, len, dest, tag, 0, context};
    (void)desc;
    return send_message(fid, VF_SPACE_TAGGED, &message, plain_flags(fid, len));
}

static ssize_t tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                      fi_addr_t dest, uint64_t tag, void *context)
{
    struct message message = {NULL, 0, dest, tag, 0, context};
    (void)desc;
    return send_pieces(fid, VF_SPACE_TAGGED, iov, count, &message, default_flags(fid));
}

static ssize_t tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
    struct message message = {NULL, 0, msg->addr, msg->tag, msg->data, msg->context};
    return send_pieces(fid, VF_SPACE_TAGGED, msg->msg_iov, msg->iov_count, &message, flags);
}

static ssize_t tinject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
                       uint64_t tag)
{
    struct message message = {buf, len, dest, tag, 0, NULL};
    return send_message(fid, VF_SPACE_TAGGED, &message, FI_INJECT | VF_QUIET);
}

static ssize_t tsenddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
                         fi_addr_t dest, uint64_t tag, void *context)
{
    struct message message = {buf, len, dest, tag, data, context};
    (void)desc;
    return send_message(fid, VF_SPACE_TAGGED, &message, plain_flags(fid, len) | FI_REMOTE_CQ_DATA);
}

static ssize_t tinjectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
                           fi_addr_t dest, uint64_t tag)
{
    struct message message = {buf, len, dest, tag, data, NULL};
    return send_message(fid, VF_SPACE_TAGGED, &message, FI_INJECT | VF_QUIET | FI_REMOTE_CQ_DATA);
}

struct fi_ops_tagged vf_tagged_ops = {
    .size = sizeof(struct fi_ops_tagged),
    .recv = vf_trecv,
    .recvv = vf_trecvv,
    .recvmsg = vf_trecvmsg,
    .send = tsend,
    .sendv = tsendv,
    .sendmsg = tsendmsg,
    .inject = tinject,
    .senddata = tsenddata,
    .injectdata = tinjectdata,
};

/* ---- without tag ----------------------------------------------------------------------------- */

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest,
                        void *context)
{
    struct message message = {buf, len, dest, 0, 0, context};
    (void)desc;
    return send_message(fid, VF_SPACE_MSG, &message, plain_flags(fid, len));
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                         fi_addr_t dest, void *context)
{
    struct message message = {NULL, 0, dest, 0, 0, context};
    (void)desc;
    return send_pieces(fid, VF_SPACE_MSG, iov, count, &message, default_flags(fid));
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
    struct message message = {NULL, 0, msg->addr, 0, msg->data, msg->context};
    return send_pieces(fid, VF_SPACE_MSG, msg->msg_iov, msg->iov_count, &message, flags);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
    struct message message = {buf, len, dest, 0, 0, NULL};
    return send_message(fid, VF_SPACE_MSG, &message, FI_INJECT | VF_QUIET);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
                            uint64_t data, fi_addr_t dest, void *context)
{
    struct message message = {buf, len, dest, 0, data, context};
    (void)desc;
    return send_message(fid, VF_SPACE_MSG, &message, plain_flags(fid, len) | FI_REMOTE_CQ_DATA);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
                              fi_addr_t dest)
{
    struct message message = {buf, len, dest, 0, data, NULL};
    return send_message(fid, VF_SPACE_MSG, &message, FI_INJECT | VF_QUIET | FI_REMOTE_CQ_DATA);
}

struct fi_ops_msg vf_msg_ops = {
    .size = sizeof(struct fi_ops_msg),
    .recv = vf_recv,
    .recvv = vf_recvv,
    .recvmsg = vf_recvmsg,
    .send = msg_send,
    .sendv = msg_sendv,
    .sendmsg = msg_sendmsg,
    .inject = msg_inject,
    .senddata = msg_senddata,
    .injectdata = msg_injectdata,
};
