/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of an owner (FI_PEER): a message is offered to it before anything else happens to it, and
 * is received when the owner has a receive for it; completions go to its queue. All that happens
 * when the owner reads our completion queue, or starts a receive. */
#include <stdlib.h>

#include "absent.h"
#include "fabric.h"
#include "owner.h"
#include "provider.h"

/** A receive context of an owner, as it binds it to endpoints. */
struct vf_srx {
    struct fid_ep fid;
    struct vf_domain *domain;
    struct vf_owner_srx *owner;
    int users;
};

bool vf_owner_is_known(void) { return FI_VERSION_GE(vf_provider.fi_version, FI_VERSION(2, 0)); }

static struct vf_owner_entry *entry_of(void *entry)
{
    bool has_links = FI_VERSION_LT(vf_provider.fi_version, FI_VERSION(2, 3));
    return (struct vf_owner_entry *)((char *)entry + (has_links ? VF_OWNER_LINK_BYTES : 0));
}

/* ---- completions ----------------------------------------------------------------------------- */

/* False: the owner has no room now. */
static bool write_out(struct vf_cq *cq, const struct vf_completion *from)
{
    struct vf_owner_cq *owner = cq->owner;
    if (!from->err)
        return owner->owner_ops->write(owner, from->context, from->flags, from->len, from->buf,
                                       from->data, from->tag, from->source) == 0;
    /* The structure grew at its end, and the owner may copy all of it. */
    union {
        struct fi_cq_err_entry entry;
        char newer[sizeof(struct fi_cq_err_entry) + 64];
    } error = {.newer = {0}};
    vf_cq_describe_error(from, &error.entry);
    return owner->owner_ops->writeerr(owner, &error.entry) == 0;
}

/* The owner's entry and the operation are done with. */
static void finish_op(struct vf_op *op)
{
    if (op->kind == VF_OP_OWNED)
        op->ep->owner->owner_ops->free_entry(op->entry);
    if (op->kind == VF_OP_MULTI)
        vf_recv_again(op);
    else
        vf_op_release(op);
}

/* Hand over what is in our queue: of sends and the like, and what the owner had no room for. */
static void hand_over(struct vf_cq *cq)
{
    while (cq->head != cq->tail) {
        if (!write_out(cq, &cq->ring[cq->head & (cq->size - 1)]))
            return;
        cq->head++;
    }
    while (cq->late) {
        struct vf_op *op = cq->late;
        if (!write_out(cq, &op->completion))
            return;
        cq->late = op->next;
        if (!cq->late)
            cq->late_end = &cq->late;
        finish_op(op);
    }
}

/* ---- a message meets its receive ------------------------------------------------------------- */

static void owned_done(struct velo_mq_request *request)
{
    struct vf_op *op = (struct vf_op *)request;
    struct vf_cq *cq = op->ep->rx_cq;
    int status = op->status ? op->status : request->status;
    bool has_data = status == VELO_OK || status == VELO_ERR_TOO_BIG;
    if (op->ep->is_closing)
        return;
    op->completion.len = has_data ? request->len_bytes : 0;
    op->completion.olen = has_data ? request->total_bytes - request->len_bytes : 0;
    op->completion.err = status ? vf_error(status) : 0;
    op->completion.prov_errno = status;
    if (has_data && op->packed) {
        const struct vf_owner_entry *entry = entry_of(op->entry);
        vf_iov_scatter(entry->iov, entry->count, op->packed, request->len_bytes);
    }
    vf_cntr_add(op->ep->recv_cntr, status);
    bool is_told = op->reports || status;
    if (!is_told || (!cq->late && write_out(cq, &op->completion))) {
        finish_op(op);
        return;
    }
    op->next = NULL;
    *cq->late_end = op;
    cq->late_end = &op->next;
}

/* Receive a message into the memory of the owner's entry. */
static void start_op(struct vf_op *op)
{
    const struct vf_owner_entry *entry = entry_of(op->entry);
    size_t len = vf_iov_bytes(entry->iov, entry->count);
    void *buf = entry->count ? entry->iov[0].iov_base : NULL;
    op->kind = VF_OP_OWNED;
    op->reports = entry->flags & FI_COMPLETION;
    op->status = VELO_OK;
    op->completion.context = entry->context;
    op->completion.flags |= entry->flags & FI_MULTI_RECV;
    op->completion.buf = buf;
    op->completion.source = vf_av_find(op->ep->av, op->source);
    if (entry->count > 1) {
        buf = op->packed = malloc(len ? len : 1);
        if (!buf) {
            op->status = VELO_ERR_NO_MEMORY;
            len = 0;
        }
    }
    op->mq.done = owned_done;
    (void)velo_mq_mrecv(op->ep->mq, op->message, buf, len, &op->mq);
}

/* The owner found no receive for it: it starts it later. */
static int queue_op(struct vf_op *op)
{
    struct vf_owner_ops *owner = op->ep->owner->owner_ops;
    struct vf_owner_entry *entry = entry_of(op->entry);
    entry->peer_context = op;
    entry->msg_size = op->completion.len;
    if (op->completion.flags & FI_REMOTE_CQ_DATA) {
        entry->flags |= FI_REMOTE_CQ_DATA;
        entry->cq_data = op->completion.data;
    }
    op->kind = VF_OP_OFFERED;
    int rc =
        op->space == VF_SPACE_TAGGED ? owner->queue_tag(op->entry) : owner->queue_msg(op->entry);
    if (rc) {
        owner->free_entry(op->entry);
        op->kind = VF_OP_HELD;
    }
    return rc;
}

/* False: the owner cannot take it now. */
static bool ask_owner(struct vf_op *op)
{
    struct vf_owner_srx *owner = op->ep->owner;
    fi_addr_t source = vf_av_find(op->ep->av, op->source);
    struct vf_owner_match match = {source, op->completion.len, op->completion.tag};
    int rc = op->space == VF_SPACE_TAGGED ? owner->owner_ops->get_tag(owner, &match, &op->entry)
                                          : owner->owner_ops->get_msg(owner, &match, &op->entry);
    if (rc == -FI_ENOENT)
        return queue_op(op) == 0;
    if (rc == 0)
        start_op(op);
    return rc == 0;
}

/* The next message of a space, taken out of our own queues. NULL: there is none. */
static struct vf_op *take_op(struct vf_ep *ep, enum vf_space space)
{
    struct velo_mq_found found;
    struct vf_op *op = vf_pool_get(&ep->rx, ep);
    if (!op)
        return NULL;
    if (velo_mq_try_probe_in(ep->mq, space, VELO_MQ_ANY_SOURCE, 0, UINT64_MAX, &op->message,
                             &found) != VELO_OK) {
        vf_op_free(&ep->rx, op);
        return NULL;
    }
    op->kind = VF_OP_HELD;
    op->space = (uint8_t)space;
    op->source = found.info.source;
    op->completion = (struct vf_completion){
        .flags = space == VF_SPACE_TAGGED ? FI_RECV | FI_TAGGED : FI_RECV | FI_MSG,
        .len = found.info.len_bytes,
        .tag = found.info.match,
    };
    if (found.flags & VELO_MQ_COOKIE) {
        op->completion.flags |= FI_REMOTE_CQ_DATA;
        op->completion.data = found.cookie;
    }
    return op;
}

/* One that the owner could not take stays in front of those behind it. */
static void offer_ops(struct vf_ep *ep, enum vf_space space)
{
    struct vf_op **held = &ep->held[space];
    while (*held || (*held = take_op(ep, space)) != NULL) {
        if (!ask_owner(*held))
            return;
        *held = NULL;
    }
}

void vf_owner_close(struct vf_ep *ep)
{
    for (uint32_t i = 0; ep->owner && i < ep->rx.count; i++) {
        struct vf_op *op = vf_pool_at(&ep->rx, i);
        if (op->kind == VF_OP_OFFERED || op->kind == VF_OP_OWNED)
            ep->owner->owner_ops->free_entry(op->entry);
    }
}

/* ---- the owner calls ------------------------------------------------------------------------- */

static int start_entry(void *entry)
{
    struct vf_op *op = entry_of(entry)->peer_context;
    struct vf_domain *domain = op->ep->domain;
    vf_lock(domain);
    op->entry = entry;
    start_op(op);
    vf_unlock(domain);
    return 0;
}

static void message_discarded(struct velo_mq_request *request)
{
    struct vf_op *op = (struct vf_op *)request;
    if (!op->ep->is_closing)
        vf_op_release(op);
}

/* The entry stays the owner's. */
static int discard_entry(void *entry)
{
    struct vf_op *op = entry_of(entry)->peer_context;
    struct vf_domain *domain = op->ep->domain;
    vf_lock(domain);
    op->kind = VF_OP_RECV;
    op->mq.done = message_discarded;
    (void)velo_mq_mrecv(op->ep->mq, op->message, NULL, 0, &op->mq);
    vf_unlock(domain);
    return 0;
}

static struct vf_owner_peer_ops peer_ops = {
    .size = sizeof(struct vf_owner_peer_ops),
    .start_msg = start_entry,
    .start_tag = start_entry,
    .discard_msg = discard_entry,
    .discard_tag = discard_entry,
};

/* ---- addresses that come after their messages ------------------------------------------------ */

static _Thread_local struct vf_ep *asked;

/* An owner asks for all its entries, also those of other providers. */
static fi_addr_t address_of(void *entry)
{
    for (uint32_t i = 0; i < asked->rx.count; i++) {
        const struct vf_op *op = vf_pool_at(&asked->rx, i);
        if (op->kind == VF_OP_OFFERED && op->entry == entry)
            return vf_av_find(asked->av, op->source);
    }
    return FI_ADDR_UNSPEC;
}

void vf_owner_inserted(struct vf_av *av)
{
    for (struct vf_ep *ep = av->domain->eps; ep; ep = ep->next) {
        if (!ep->owner || ep->av != av || !ep->owner->owner_ops->foreach_unspec_addr)
            continue;
        asked = ep;
        ep->owner->owner_ops->foreach_unspec_addr(ep->owner, address_of);
        asked = NULL;
    }
}

/* ---- our completion queue, as the owner reads it --------------------------------------------- */

static ssize_t owned_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr)
{
    struct vf_cq *cq = VF_CONTAINER(fid, struct vf_cq);
    (void)buf, (void)count, (void)src_addr;
    vf_lock(cq->watch.domain);
    vf_watch_progress(&cq->watch);
    for (uint32_t i = 0; i < cq->watch.ep_count; i++) {
        struct vf_ep *ep = cq->watch.eps[i];
        if (ep->owner) {
            offer_ops(ep, VF_SPACE_TAGGED);
            offer_ops(ep, VF_SPACE_MSG);
        }
    }
    hand_over(cq);
    vf_unlock(cq->watch.domain);
    return -FI_EAGAIN;
}

static ssize_t owned_read(struct fid_cq *fid, void *buf, size_t count)
{
    return owned_readfrom(fid, buf, count, NULL);
}

static ssize_t no_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
    (void)fid, (void)buf, (void)flags;
    return -FI_EAGAIN;
}

static ssize_t no_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr,
                            const void *cond, int timeout)
{
    (void)fid, (void)buf, (void)count, (void)src_addr, (void)cond, (void)timeout;
    return -FI_ENOSYS;
}

static ssize_t no_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
    return no_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int no_signal(struct fid_cq *fid)
{
    (void)fid;
    return -FI_ENOSYS;
}

static struct fi_ops_cq owned_cq_ops = {
    .size = sizeof(struct fi_ops_cq),
    .read = owned_read,
    .readfrom = owned_readfrom,
    .readerr = no_readerr,
    .sread = no_sread,
    .sreadfrom = no_sreadfrom,
    .signal = no_signal,
    .strerror = vf_cq_strerror,
};

int vf_owner_cq(struct vf_cq *cq, const void *context)
{
    const struct vf_owner_cq_context *given = context;
    if (!vf_owner_is_known() || !given || given->size < sizeof *given || !given->cq) {
        vf_log("FI_PEER: libfabric 2.0 or later is needed, and a queue of the owner");
        return -FI_EINVAL;
    }
    cq->owner = given->cq;
    cq->fid.ops = &owned_cq_ops;
    return 0;
}

/* ---- receive context ------------------------------------------------------------------------- */

static int srx_close(fid_t fid)
{
    struct vf_srx *srx = VF_CONTAINER(fid, struct vf_srx);
    vf_lock(srx->domain);
    bool is_used = srx->users > 0;
    if (!is_used)
        srx->domain->users--;
    vf_unlock(srx->domain);
    if (is_used)
        return -FI_EBUSY;
    free(srx);
    return 0;
}

static struct fi_ops srx_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = srx_close,
    .bind = vf_no_bind,
    .control = vf_no_control,
    .ops_open = vf_no_ops_open,
};

int vf_srx_open(struct fid_domain *domain_fid, struct fi_rx_attr *attr, struct fid_ep **out,
                void *context)
{
    struct vf_domain *domain = VF_CONTAINER(domain_fid, struct vf_domain);
    const struct vf_owner_srx_context *given = context;
    if (!attr || !(attr->op_flags & FI_PEER) || !vf_owner_is_known())
        return -FI_ENOSYS;
    if (!given || given->size < sizeof *given || !given->srx || !given->srx->owner_ops ||
        given->srx->owner_ops->size < sizeof(struct vf_owner_ops))
        return -FI_EINVAL;
    if (domain->thread_watch) {
        vf_log("FI_PEER: the owner makes progress; automatic progress is not offered with it");
        return -FI_EINVAL;
    }
    struct vf_srx *srx = calloc(1, sizeof *srx);
    if (!srx)
        return -FI_ENOMEM;
    /* All calls that post receives are the owner's. */
    srx->fid.fid.fclass = FI_CLASS_SRX_CTX;
    srx->fid.fid.ops = &srx_fid_ops;
    srx->domain = domain;
    srx->owner = given->srx;
    given->srx->peer_ops = &peer_ops;
    vf_lock(domain);
    domain->users++;
    vf_unlock(domain);
    *out = &srx->fid;
    return 0;
}

int vf_srx_bind(struct vf_ep *ep, struct fid *fid)
{
    struct vf_srx *srx = VF_CONTAINER(fid, struct vf_srx);
    if (srx->domain != ep->domain || ep->srx)
        return -FI_EINVAL;
    ep->srx = srx;
    ep->owner = srx->owner;
    srx->users++;
    return 0;
}

void vf_srx_unbind(struct vf_ep *ep)
{
    if (ep->srx)
        ep->srx->users--;
}
