/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "absent.h"
#include "fabric.h"
#include "provider.h"

#define MIN_MULTI_RECV_DEFAULT 64u

/* ---- port ------------------------------------------------------------------------------------ */

static void close_port(struct vf_ep *ep)
{
    vf_port_close(ep->port);
    ep->rma = NULL;
    ep->port = NULL;
}

static int open_port(struct vf_ep *ep, int node, int vpid)
{
    return vf_port_open(ep->domain, node, vpid, &ep->port, &ep->rma);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    struct vf_address address;
    size_t room = *addrlen;
    vf_address_make(&address, ep->domain->place, ep->port, ep->domain->rma_port);
    *addrlen = sizeof address;
    if (addr && room)
        memcpy(addr, &address, room < sizeof address ? room : sizeof address);
    return room < sizeof address ? -FI_ETOOSMALL : 0;
}

/* The port of an address of ours that somebody made earlier, as its number only. */
static int take_address(struct vf_ep *ep, const void *addr, size_t addrlen)
{
    struct vf_address address;
    if (addrlen != sizeof address)
        return -FI_EINVAL;
    memcpy(&address, addr, sizeof address);
    if (vf_address_is_any(&address))
        return 0;
    int rc = vf_address_check(&address, ep->domain->place);
    if (rc || address.id == velo_port_id(ep->port))
        return rc;
    close_port(ep);
    rc = open_port(ep, (int)VELO_ID_NODE(address.id), (int)VELO_ID_VPID(address.id));
    if (rc && open_port(ep, -1, VELO_VPID_ANY))
        return -FI_ENOMEM;
    return rc;
}

static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    return ep->is_enabled ? -FI_EOPBADSTATE : take_address(ep, addr, addrlen);
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
    (void)ep, (void)addr, (void)addrlen;
    return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
    (void)ep, (void)addr, (void)param, (void)paramlen;
    return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *pep)
{
    (void)pep;
    return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
    (void)ep, (void)param, (void)paramlen;
    return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
    (void)pep, (void)handle, (void)param, (void)paramlen;
    return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
    (void)ep, (void)flags;
    return -FI_ENOSYS;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
                   void *context)
{
    (void)ep, (void)addr, (void)flags, (void)mc, (void)context;
    return -FI_ENOSYS;
}

static struct fi_ops_cm cm_ops = {
    .size = sizeof(struct fi_ops_cm),
    .setname = ep_setname,
    .getname = ep_getname,
    .getpeer = no_getpeer,
    .connect = no_connect,
    .listen = no_listen,
    .accept = no_accept,
    .reject = no_reject,
    .shutdown = no_shutdown,
    .join = no_join,
};

/* ---- options --------------------------------------------------------------------------------- */

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
    const struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    size_t value;
    if (level != FI_OPT_ENDPOINT)
        return -FI_ENOPROTOOPT;
    switch (optname) {
    case FI_OPT_MIN_MULTI_RECV:
        value = ep->min_multi_recv;
        break;
    case FI_OPT_TX_SIZE:
        value = ep->tx.limit;
        break;
    case FI_OPT_RX_SIZE:
        value = ep->rx.limit;
        break;
    default:
        return -FI_ENOPROTOOPT;
    }
    if (*optlen < sizeof value)
        return -FI_ETOOSMALL;
    memcpy(optval, &value, sizeof value);
    *optlen = sizeof value;
    return 0;
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    size_t value;
    if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (optlen != sizeof value)
        return -FI_EINVAL;
    memcpy(&value, optval, sizeof value);
    ep->min_multi_recv = value;
    return 0;
}

static int no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
                     void *context)
{
    (void)sep, (void)index, (void)attr, (void)tx_ep, (void)context;
    return -FI_ENOSYS;
}

static int no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
                     void *context)
{
    (void)sep, (void)index, (void)attr, (void)rx_ep, (void)context;
    return -FI_ENOSYS;
}

static ssize_t count_free_ops(struct vf_ep *ep, const struct vf_pool *pool)
{
    uint32_t free_count = pool->limit - pool->count;
    vf_lock(ep->domain);
    for (const struct vf_op *op = pool->free; op; op = op->next)
        free_count++;
    vf_unlock(ep->domain);
    return (ssize_t)free_count;
}

static ssize_t rx_size_left(struct fid_ep *fid)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    return ep->is_enabled ? count_free_ops(ep, &ep->rx) : -FI_EOPBADSTATE;
}

static ssize_t tx_size_left(struct fid_ep *fid)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    return ep->is_enabled ? count_free_ops(ep, &ep->tx) : -FI_EOPBADSTATE;
}

static struct fi_ops_ep ep_ops = {
    .size = sizeof(struct fi_ops_ep),
    .cancel = vf_recv_cancel,
    .getopt = ep_getopt,
    .setopt = ep_setopt,
    .tx_ctx = no_tx_ctx,
    .rx_ctx = no_rx_ctx,
    .rx_size_left = rx_size_left,
    .tx_size_left = tx_size_left,
};

/* ---- binding --------------------------------------------------------------------------------- */

static int bind_cq(struct vf_ep *ep, struct vf_cq *cq, uint64_t flags)
{
    if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) ||
        !(flags & (FI_TRANSMIT | FI_RECV)) || cq->watch.domain != ep->domain)
        return -FI_EINVAL;
    if (((flags & FI_TRANSMIT) && ep->tx_cq) || ((flags & FI_RECV) && ep->rx_cq))
        return -FI_EINVAL;
    if (flags & FI_TRANSMIT) {
        ep->tx_cq = cq;
        ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
        cq->users++;
    }
    if (flags & FI_RECV) {
        ep->rx_cq = cq;
        ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
        cq->users++;
    }
    return 0;
}

static int bind_cntr(struct vf_ep *ep, struct vf_cntr *cntr, uint64_t flags)
{
    struct {
        uint64_t flag;
        struct vf_cntr **at;
    } kinds[] = {{FI_SEND, &ep->send_cntr},
                 {FI_RECV, &ep->recv_cntr},
                 {FI_READ, &ep->read_cntr},
                 {FI_WRITE, &ep->write_cntr}};
    if (cntr->watch.domain != ep->domain || !flags)
        return -FI_EINVAL;
    if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE)) {
        vf_log("targets of remote memory operations are not told of them (FI_RMA_EVENT)");
        return -FI_ENOSYS;
    }
    if (flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE))
        return -FI_EINVAL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!(flags & kinds[i].flag))
            continue;
        if (*kinds[i].at)
            return -FI_EINVAL;
        *kinds[i].at = cntr;
        cntr->users++;
    }
    return 0;
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    int rc = -FI_EINVAL;
    /* Sandia OpenSHMEM binds counters when it has enabled the endpoint. */
    if (ep->is_enabled && other->fclass != FI_CLASS_CNTR)
        return -FI_EOPBADSTATE;
    vf_lock(ep->domain);
    switch (other->fclass) {
    case FI_CLASS_CQ:
        rc = bind_cq(ep, VF_CONTAINER(other, struct vf_cq), flags);
        break;
    case FI_CLASS_CNTR:
        rc = bind_cntr(ep, VF_CONTAINER(other, struct vf_cntr), flags);
        if (!rc && ep->is_enabled)
            rc = vf_watch_add(&VF_CONTAINER(other, struct vf_cntr)->watch, ep);
        break;
    case FI_CLASS_AV:
        if (ep->av || VF_CONTAINER(other, struct vf_av)->domain != ep->domain)
            break;
        ep->av = VF_CONTAINER(other, struct vf_av);
        ep->av->users++;
        rc = 0;
        break;
    case FI_CLASS_SRX_CTX:
        rc = vf_srx_bind(ep, other);
        break;
    case FI_CLASS_EQ:
        rc = 0; /* An endpoint without connections has no events. */
        break;
    default:
        break;
    }
    vf_unlock(ep->domain);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* All queues and counters that this endpoint may add to. */
static void each_watch(struct vf_ep *ep, struct vf_watch *watches[7])
{
    watches[0] = ep->tx_cq ? &ep->tx_cq->watch : NULL;
    watches[1] = ep->rx_cq ? &ep->rx_cq->watch : NULL;
    watches[2] = ep->send_cntr ? &ep->send_cntr->watch : NULL;
    watches[3] = ep->recv_cntr ? &ep->recv_cntr->watch : NULL;
    watches[4] = ep->read_cntr ? &ep->read_cntr->watch : NULL;
    watches[5] = ep->write_cntr ? &ep->write_cntr->watch : NULL;
    watches[6] = ep->domain->thread_watch;
}

static void unwatch_all(struct vf_ep *ep)
{
    struct vf_watch *watches[7];
    each_watch(ep, watches);
    for (int i = 0; i < 7; i++)
        if (watches[i])
            vf_watch_remove(watches[i], ep);
}

static int watch_all(struct vf_ep *ep)
{
    struct vf_watch *watches[7];
    int rc = 0;
    each_watch(ep, watches);
    for (int i = 0; i < 7 && !rc; i++)
        if (watches[i])
            rc = vf_watch_add(watches[i], ep);
    return rc;
}

static int enable_ep(struct vf_ep *ep)
{
    if (ep->is_enabled)
        return -FI_EOPBADSTATE;
    if (!ep->av)
        return -FI_ENOAV;
    bool has_tx = ep->tx_cq || ep->send_cntr || ep->read_cntr || ep->write_cntr;
    bool has_rx = ep->rx_cq || ep->recv_cntr;
    if ((!has_tx && (ep->caps & (FI_SEND | FI_READ | FI_WRITE))) ||
        (!has_rx && (ep->caps & FI_RECV)))
        return -FI_ENOCQ;
    if (ep->owner && !(ep->rx_cq && ep->rx_cq->owner)) {
        vf_log("FI_PEER: a shared receive context needs a completion queue with FI_PEER");
        return -FI_EINVAL;
    }
    int status = velo_mq_open(ep->port, ep->rma, NULL, &ep->mq);
    if (status) {
        vf_log("open the queues: %s", velo_last_error());
        return -vf_error(status);
    }
    int rc = watch_all(ep);
    ep->is_enabled = rc == 0;
    if (!rc && (ep->caps & (FI_RMA | FI_ATOMIC)))
        rc = vf_am_start(ep);
    if (rc) {
        ep->is_enabled = false;
        unwatch_all(ep);
        (void)velo_mq_close(ep->mq);
        ep->mq = NULL;
    } else if (ep->domain->thread_watch) {
        vf_watch_wake(ep->domain->thread_watch);
    }
    return rc;
}

static int ops_flags(struct vf_ep *ep, uint64_t *flags, bool is_set)
{
    uint64_t *own = *flags & FI_TRANSMIT ? &ep->tx_flags : &ep->rx_flags;
    if (((*flags & FI_TRANSMIT) != 0) == ((*flags & FI_RECV) != 0))
        return -FI_EINVAL;
    if (is_set)
        *own = *flags & ~(FI_TRANSMIT | FI_RECV);
    else
        *flags = *own;
    return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    int rc;
    vf_lock(ep->domain);
    switch (command) {
    case FI_ENABLE:
        rc = enable_ep(ep);
        break;
    case FI_GETOPSFLAG:
    case FI_SETOPSFLAG:
        rc = ops_flags(ep, arg, command == FI_SETOPSFLAG);
        break;
    default:
        rc = -FI_ENOSYS;
    }
    vf_unlock(ep->domain);
    return rc;
}

static void unbind_all(struct vf_ep *ep)
{
    struct vf_cntr *cntrs[] = {ep->send_cntr, ep->recv_cntr, ep->read_cntr, ep->write_cntr};
    struct vf_cq *cqs[] = {ep->tx_cq, ep->rx_cq};
    for (int i = 0; i < 2; i++) {
        if (!cqs[i])
            continue;
        vf_cq_drop(cqs[i], ep);
        cqs[i]->users--;
    }
    for (int i = 0; i < 4; i++)
        if (cntrs[i])
            cntrs[i]->users--;
    if (ep->av)
        ep->av->users--;
    vf_srx_unbind(ep);
}

static int ep_close(fid_t fid)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    struct vf_domain *domain = ep->domain;
    vf_lock(domain);
    ep->is_closing = true;
    struct vf_ep **at = &domain->eps;
    while (*at != ep)
        at = &(*at)->next;
    *at = ep->next;
    unwatch_all(ep);
    vf_rma_close(ep);
    vf_recv_close(ep);
    (void)velo_mq_close(ep->mq);
    vf_owner_close(ep);
    vf_am_close(ep);
    unbind_all(ep);
    vf_pool_close(&ep->tx);
    vf_pool_close(&ep->rx);
    close_port(ep);
    domain->users--;
    vf_unlock(domain);
    free(ep->peers);
    free(ep);
    return 0;
}

static struct fi_ops ep_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = ep_close,
    .bind = ep_bind,
    .control = ep_control,
    .ops_open = vf_no_ops_open,
};

static uint32_t limit_of(size_t wanted, uint32_t most)
{
    size_t size = wanted && wanted < most ? wanted : most;
    return (uint32_t)((size + VF_CHUNK - 1) / VF_CHUNK * VF_CHUNK);
}

int vf_ep_open(struct fid_domain *domain_fid, struct fi_info *info, struct fid_ep **out,
               void *context)
{
    struct vf_domain *domain = VF_CONTAINER(domain_fid, struct vf_domain);
    if (info->ep_attr && info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC)
        return -FI_EINVAL;
    struct vf_ep *ep = calloc(1, sizeof *ep);
    if (!ep)
        return -FI_ENOMEM;
    ep->domain = domain;
    ep->caps = info->caps;
    ep->min_multi_recv = MIN_MULTI_RECV_DEFAULT;
    ep->is_directed = info->caps & FI_DIRECTED_RECV;
    ep->wants_source = info->caps & FI_SOURCE;
    ep->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    ep->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    ep->orders = info->tx_attr ? info->tx_attr->msg_order : 0;
    ep->tx.limit = limit_of(info->tx_attr ? info->tx_attr->size : 0, VF_TX_SIZE);
    /* With an owner, messages that wait for its receives, however many these are. */
    bool has_owner = info->caps & FI_PEER;
    ep->rx.limit = limit_of(info->rx_attr && !has_owner ? info->rx_attr->size : 0, VF_RX_SIZE);
    ep->fid.fid.fclass = FI_CLASS_EP;
    ep->fid.fid.context = context;
    ep->fid.fid.ops = &ep_fid_ops;
    ep->fid.ops = &ep_ops;
    ep->fid.cm = &cm_ops;
    ep->fid.msg = &vf_msg_ops;
    ep->fid.tagged = &vf_tagged_ops;
    ep->fid.rma = &vf_rma_ops;
    ep->fid.atomic = &vf_atomic_ops;
    vf_lock(domain);
    int rc = open_port(ep, -1, VELO_VPID_ANY);
    if (!rc && info->src_addr && info->src_addrlen) {
        rc = take_address(ep, info->src_addr, info->src_addrlen);
        if (rc)
            close_port(ep);
    }
    if (!rc) {
        ep->next = domain->eps;
        domain->eps = ep;
        domain->users++;
    }
    vf_unlock(domain);
    if (rc) {
        free(ep);
        return rc;
    }
    *out = &ep->fid;
    return 0;
}
