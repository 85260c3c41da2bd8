/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes of remote memory. */
#include <stdlib.h>

#include "directory.h"
#include "fabric.h"
#include "older.h"
#include "provider.h"

#define RMA_FLAGS                                                                                  \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |                       \
     FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA | FI_MORE | FI_PRIORITY | VF_QUIET)
#define RMA_ORDERS (FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW)

#define CACHE_LEN 32u
#define NOTES_PER_POLL 64
/* Calls between two looks whether peers ask for something, while nothing of ours is under way. */
#define CALLS_PER_LOOK 16u
#define LOOKUP_NS INT64_C(10000000000)
/* Tries for room for the second and later pieces of an operation. */
#define TRIES 1000000

/** The memory of a peer's domain. */
struct vf_rma_peer {
    struct velo_rma_peer *peer;
    struct velo_rma_place directory;
    struct vf_mr_entry cache[CACHE_LEN];
};

/** An operation. */
struct access {
    bool is_write;
    const struct iovec *iov;
    size_t iov_count;
    fi_addr_t peer;
    const struct fi_rma_iov *remote;
    size_t remote_count;
    uint64_t data;
    void *context;
};

/* ---- peers and keys -------------------------------------------------------------------------- */

/* Read from a directory, and wait for it. */
static int read_now(struct velo_rma_peer *peer, void *to, size_t len_bytes,
                    struct velo_rma_place from)
{
    int status = velo_rma_get(peer, to, len_bytes, from, 0, 0);
    return status ? status : velo_rma_flush(peer, LOOKUP_NS);
}

static int connect_peer(struct vf_ep *ep, const struct vf_address *address, struct vf_rma_peer *at)
{
    uint64_t generation = 0;
    int64_t end_ms = 0;
    int status;
    do
        status = velo_rma_connect(ep->domain->rma, address->rma_id, &at->peer, 0);
    while (vf_table_may_have_room(status, &end_ms));
    if (status)
        return status;
    status =
        velo_rma_mem_lookup(at->peer, VF_DIRECTORY_NUMBER, VELO_RMA_RIGHT_READ, &at->directory);
    if (status == VELO_OK)
        status = read_now(at->peer, &generation, sizeof generation, at->directory);
    if (status == VELO_OK && generation != address->rma_generation)
        status = VELO_ERR_NO_PEER; /* Another one has its number. */
    if (status)
        (void)velo_rma_disconnect(at->peer);
    return status;
}

static int rma_peer(struct vf_ep *ep, fi_addr_t addr, struct vf_rma_peer **peer)
{
    if (vf_likely(addr < ep->rma_peers_len && (*peer = ep->rma_peers[addr]) != NULL))
        return 0;
    const struct vf_address *address = ep->is_enabled ? vf_av_get(ep->av, addr) : NULL;
    if (!address || !ep->domain->rma || !address->rma_generation)
        return address ? -FI_EOPNOTSUPP : -FI_EINVAL;
    if (addr >= ep->rma_peers_len) {
        size_t len = ep->av->cap > addr ? ep->av->cap : addr + 1;
        struct vf_rma_peer **peers =
            vf_table_grow(ep->rma_peers, &ep->rma_peers_len, len, sizeof *peers);
        if (!peers)
            return -FI_ENOMEM;
        ep->rma_peers = peers;
    }
    *peer = calloc(1, sizeof **peer);
    if (!*peer)
        return -FI_ENOMEM;
    int status = connect_peer(ep, address, *peer);
    if (status) {
        vf_log("connect to memory of port %u.%u: %s", VELO_ID_NODE(address->rma_id),
               VELO_ID_VPID(address->rma_id), velo_last_error());
        free(*peer);
        int error = status == VELO_ERR_FULL ? FI_ECONNREFUSED : vf_error(status);
        return error ? -error : -FI_EIO;
    }
    ep->rma_peers[addr] = *peer;
    return 0;
}

/* Find a key in the peer's directory. */
static __attribute__((noinline)) int look_up(struct vf_rma_peer *peer, uint64_t key,
                                             struct vf_mr_entry *found)
{
    struct vf_mr_entry window[DIRECTORY_WINDOW];
    struct velo_rma_place place = peer->directory;
    place.offset += offsetof(struct vf_directory, entries) +
                    vf_directory_slot(key) * sizeof(struct vf_mr_entry);
    int status = read_now(peer->peer, window, sizeof window, place);
    if (status)
        return status;
    for (uint32_t i = 0; i < DIRECTORY_WINDOW; i++) {
        if (window[i].key != key || window[i].check != vf_directory_check(&window[i]))
            continue;
        *found = window[i];
        return VELO_OK;
    }
    return VELO_ERR_ACCESS;
}

static inline int resolve_key(struct vf_rma_peer *peer, uint64_t key, uint64_t addr, bool is_fresh,
                              struct velo_rma_place *place)
{
    struct vf_mr_entry *entry = &peer->cache[vf_directory_slot(key) % CACHE_LEN];
    if (vf_unlikely(is_fresh || !entry->check || entry->key != key)) {
        memset(entry, 0, sizeof *entry);
        int status = look_up(peer, key, entry);
        if (status)
            return status;
    }
    if (vf_unlikely(addr < entry->base))
        return VELO_ERR_ACCESS;
    *place = velo_rma_place(entry->rma_key, addr - entry->base);
    return VELO_OK;
}

/* ---- the end of an operation ----------------------------------------------------------------- */

static void notice_done(struct velo_mq_request *request)
{
    struct vf_op *op = (struct vf_op *)request;
    if (!op->ep->is_closing)
        vf_op_done(op, op->ep->tx_cq, request->status);
}

/* The data is there: now its target is told. */
static int tell_target(struct vf_op *op)
{
    struct vf_ep *ep = op->ep;
    struct velo_mq_peer *peer;
    struct vf_am_header header = {
        .kind = VF_AM_WRITTEN, .data = op->completion.data, .addr = op->cap_bytes};
    op->completion.data = 0;
    op->kind = VF_OP_RMA_NOTICE;
    if (vf_peer(ep, op->dest, &peer))
        return VELO_ERR_NO_PEER;
    return vf_am_send(ep, peer, &header, sizeof header, op, notice_done);
}

static void finish_op(struct vf_op *op)
{
    int status = op->status;
    if (op->ep->is_closing) {
        vf_op_release(op);
        return;
    }
    if (status == VELO_OK && op->has_notice) {
        status = tell_target(op);
        if (status == VELO_AGAIN)
            return;
    }
    vf_op_done(op, op->ep->tx_cq, status);
}

static void part_done(struct vf_domain *domain, struct vf_op *op, int status)
{
    domain->rma_pending--;
    if (status && !op->status)
        op->status = status;
    if (--op->parts == 0)
        finish_op(op);
}

/* Look whether peers ask for something: in each call while they do, else now and then. */
static bool serve_peers(struct vf_domain *domain)
{
    if (vf_likely(++domain->rma_polls % CALLS_PER_LOOK != 0))
        return false;
    if (velo_rma_progress(domain->rma) > 0)
        domain->rma_polls = CALLS_PER_LOOK - 1;
    return true;
}

void vf_rma_progress(struct vf_domain *domain)
{
    struct velo_rma_notification notes[NOTES_PER_POLL];
    if (vf_likely(domain->rma_pending == 0 && !serve_peers(domain)))
        return;
    int count;
    do {
        count = velo_rma_try_poll(domain->rma, notes, NOTES_PER_POLL);
        for (int i = 0; i < count; i++) {
            bool is_ours = notes[i].class_ & (VELO_RMA_CLASS_REQUESTER | VELO_RMA_CLASS_ERROR);
            if (is_ours && notes[i].cookie)
                part_done(domain, (struct vf_op *)(uintptr_t)notes[i].cookie, notes[i].status);
        }
    } while (count == NOTES_PER_POLL);
}

/* ---- the start ------------------------------------------------------------------------------- */

static int post_piece(struct vf_ep *ep, struct vf_rma_peer *peer, struct vf_op *op, bool is_write,
                      char *local, size_t len_bytes, uint64_t key, uint64_t addr)
{
    struct velo_rma_place place;
    for (int attempt = 0;; attempt++) {
        int status = resolve_key(peer, key, addr, attempt > 0, &place);
        if (status)
            return status;
        if (ep->orders & RMA_ORDERS)
            (void)velo_rma_fence(peer->peer);
        status = is_write ? velo_rma_put(peer->peer, local, len_bytes, place,
                                         VELO_RMA_NOTIFY_REQUESTER, (uintptr_t)op)
                          : velo_rma_get(peer->peer, local, len_bytes, place,
                                         VELO_RMA_NOTIFY_REQUESTER, (uintptr_t)op);
        /* The key may be of a registration that was made anew. */
        if (status != VELO_ERR_ACCESS || attempt > 0)
            return status;
    }
}

/* Post the pieces of an operation: both sides may have several. */
static int post_pieces(struct vf_ep *ep, struct vf_rma_peer *peer, struct vf_op *op,
                       const struct access *access)
{
    size_t local = 0, remote = 0, local_at = 0, remote_at = 0;
    struct vf_domain *domain = ep->domain;
    for (;;) {
        while (local < access->iov_count && local_at == access->iov[local].iov_len)
            local++, local_at = 0;
        while (remote < access->remote_count && remote_at == access->remote[remote].len)
            remote++, remote_at = 0;
        if (local == access->iov_count || remote == access->remote_count)
            break;
        size_t len = access->iov[local].iov_len - local_at;
        if (len > access->remote[remote].len - remote_at)
            len = access->remote[remote].len - remote_at;
        int status;
        int tries = 0;
        op->parts++; /* Before it is posted: its notification may be taken below. */
        do {
            status = post_piece(
                ep, peer, op, access->is_write, (char *)access->iov[local].iov_base + local_at, len,
                access->remote[remote].key, access->remote[remote].addr + remote_at);
            if (status == VELO_AGAIN && op->parts > 1)
                vf_rma_progress(domain);
        } while (status == VELO_AGAIN && op->parts > 1 && ++tries < TRIES);
        if (status) {
            op->parts--;
            return status;
        }
        domain->rma_pending++;
        local_at += len;
        remote_at += len;
    }
    return VELO_OK;
}

static ssize_t start_access(struct vf_ep *ep, const struct access *access, uint64_t flags)
{
    struct vf_rma_peer *peer;
    if (access->iov_count > VF_IOV_MAX || access->remote_count > VF_IOV_MAX || (flags & ~RMA_FLAGS))
        return -FI_EINVAL;
    if ((access->is_write && !(ep->caps & FI_WRITE)) ||
        (!access->is_write && !(ep->caps & FI_READ)))
        return -FI_EOPNOTSUPP;
    size_t len_bytes = vf_iov_bytes(access->iov, access->iov_count);
    if ((flags & FI_INJECT) && len_bytes > VF_INJECT_BYTES)
        return -FI_EINVAL;
    if (len_bytes > VF_MESSAGE_BYTES_MAX)
        return -FI_EMSGSIZE;
    int rc = rma_peer(ep, access->peer, &peer);
    if (rc)
        return flags & VF_QUIET ? rc
                                : vf_op_fail(ep, access->context,
                                             FI_RMA | (access->is_write ? FI_WRITE : FI_READ),
                                             access->is_write ? ep->write_cntr : ep->read_cntr, rc);
    if ((ep->tx_cq && !vf_cq_has_room(ep->tx_cq)) ||
        ep->domain->rma_pending > VELO_RMA_OPS_MAX - 8 * VF_IOV_MAX)
        return -FI_EAGAIN;
    struct vf_op *op = vf_pool_get(&ep->tx, ep);
    if (!op)
        return vf_pool_lack(&ep->tx);
    struct access own = *access;
    struct iovec packed;
    if (flags & FI_INJECT) {
        op->packed = malloc(len_bytes ? len_bytes : 1);
        if (!op->packed) {
            vf_op_free(&ep->tx, op);
            return -FI_ENOMEM;
        }
        vf_iov_gather(op->packed, access->iov, access->iov_count);
        packed = (struct iovec){op->packed, len_bytes};
        own.iov = &packed;
        own.iov_count = 1;
    }
    op->kind = VF_OP_RMA;
    op->reports = vf_tx_reports(ep, flags);
    op->has_notice = flags & FI_REMOTE_CQ_DATA;
    op->dest = access->peer;
    op->cap_bytes = len_bytes;
    op->status = VELO_OK;
    op->cntr = access->is_write ? ep->write_cntr : ep->read_cntr;
    op->completion = (struct vf_completion){
        .context = access->context,
        .flags = FI_RMA | (access->is_write ? FI_WRITE : FI_READ),
        .data = access->data,
        .source = FI_ADDR_NOTAVAIL,
    };
    if (ep->tx_cq)
        ep->tx_cq->reads_in_vain = 0; /* A caller that posts does not only wait. */
    op->parts = 1;                    /* Until all are posted. */
    int status = post_pieces(ep, peer, op, &own);
    op->parts--;
    if (status == VELO_AGAIN && op->parts == 0) {
        op->completion.data = 0;
        vf_op_release(op);
        return -FI_EAGAIN;
    }
    if (status && !op->status)
        op->status = status == VELO_AGAIN ? VELO_ERR_NO_MEMORY : status;
    if (op->parts == 0)
        finish_op(op); /* Nothing was posted: an error, or no data. */
    return 0;
}

static ssize_t start_locked(struct fid_ep *fid, const struct access *access, uint64_t flags)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    vf_lock(ep->domain);
    ssize_t rc = start_access(ep, access, flags);
    vf_unlock(ep->domain);
    return rc;
}

/* ---- the end of peers ------------------------------------------------------------------------ */

void vf_rma_forget(struct vf_ep *ep, fi_addr_t addr)
{
    struct vf_rma_peer *peer = addr < ep->rma_peers_len ? ep->rma_peers[addr] : NULL;
    if (!peer)
        return;
    ep->rma_peers[addr] = NULL;
    (void)velo_rma_disconnect(peer->peer);
    free(peer);
}

static bool is_busy(const struct vf_ep *ep)
{
    for (uint32_t i = 0; i < ep->tx.count; i++)
        if (vf_pool_at(&ep->tx, i)->kind == VF_OP_RMA)
            return true;
    return false;
}

void vf_rma_close(struct vf_ep *ep)
{
    for (size_t i = 0; i < ep->rma_peers_len; i++)
        vf_rma_forget(ep, i);
    free(ep->rma_peers);
    ep->rma_peers = NULL;
    ep->rma_peers_len = 0;
    /* Whatever was under way has ended now; its notification must not find the endpoint gone. */
    while (ep->domain->rma_pending && is_busy(ep))
        vf_rma_progress(ep->domain);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static inline uint64_t default_flags(struct fid_ep *fid)
{
    return VF_CONTAINER(fid, struct vf_ep)->tx_flags & (FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static ssize_t rma_one(struct fid_ep *fid, bool is_write, const struct iovec *iov, size_t count,
                       fi_addr_t peer, uint64_t addr, uint64_t key, uint64_t data, void *context,
                       uint64_t flags)
{
    struct fi_rma_iov remote = {addr, vf_iov_bytes(iov, count), key};
    struct access access = {is_write, iov, count, peer, &remote, 1, data, context};
    return start_locked(fid, &access, flags);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
                        uint64_t addr, uint64_t key, void *context)
{
    struct iovec iov = {buf, len};
    (void)desc;
    return rma_one(fid, false, &iov, 1, src, addr, key, 0, context, default_flags(fid));
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                         fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
    (void)desc;
    return rma_one(fid, false, iov, count, src, addr, key, 0, context, default_flags(fid));
}

static ssize_t rma_msg(struct fid_ep *fid, bool is_write, const struct fi_msg_rma *msg,
                       uint64_t flags)
{
    struct access access = {is_write,     msg->msg_iov,       msg->iov_count, msg->addr,
                            msg->rma_iov, msg->rma_iov_count, msg->data,      msg->context};
    size_t remote_bytes = 0;
    for (size_t i = 0; i < msg->rma_iov_count; i++)
        remote_bytes += msg->rma_iov[i].len;
    if (remote_bytes != vf_iov_bytes(msg->msg_iov, msg->iov_count))
        return -FI_EINVAL;
    return start_locked(fid, &access, flags);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
    return flags & (FI_INJECT | FI_REMOTE_CQ_DATA) ? -FI_EINVAL : rma_msg(fid, false, msg, flags);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
                         fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    (void)desc;
    return rma_one(fid, true, &iov, 1, dest, addr, key, 0, context, default_flags(fid));
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                          fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
    (void)desc;
    return rma_one(fid, true, iov, count, dest, addr, key, 0, context, default_flags(fid));
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
    return rma_msg(fid, true, msg, flags);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
                          uint64_t addr, uint64_t key)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    return rma_one(fid, true, &iov, 1, dest, addr, key, 0, NULL, FI_INJECT | VF_QUIET);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
                             uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
                             void *context)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    (void)desc;
    return rma_one(fid, true, &iov, 1, dest, addr, key, data, context,
                   default_flags(fid) | FI_REMOTE_CQ_DATA);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
                              fi_addr_t dest, uint64_t addr, uint64_t key)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    return rma_one(fid, true, &iov, 1, dest, addr, key, data, NULL,
                   FI_INJECT | VF_QUIET | FI_REMOTE_CQ_DATA);
}

struct fi_ops_rma vf_rma_ops = {
    .size = sizeof(struct fi_ops_rma),
    .read = rma_read,
    .readv = rma_readv,
    .readmsg = rma_readmsg,
    .write = rma_write,
    .writev = rma_writev,
    .writemsg = rma_writemsg,
    .inject = rma_inject,
    .writedata = rma_writedata,
    .injectdata = rma_injectdata,
};
