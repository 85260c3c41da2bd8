/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "provider.h"

struct vf_op *vf_pool_grow(struct vf_pool *pool, struct vf_ep *ep)
{
    if (pool->count >= pool->limit)
        return NULL;
    if (!pool->chunks) {
        pool->chunks = calloc((pool->limit + VF_CHUNK - 1) / VF_CHUNK, sizeof(struct vf_op *));
        if (!pool->chunks)
            return NULL;
    }
    struct vf_op *chunk = aligned_alloc(VF_LINE, VF_CHUNK * sizeof *chunk);
    if (!chunk)
        return NULL;
    memset(chunk, 0, VF_CHUNK * sizeof *chunk);
    pool->chunks[pool->count / VF_CHUNK] = chunk;
    for (uint32_t i = VF_CHUNK; i-- > 0;) {
        chunk[i].ep = ep;
        chunk[i].next = pool->free;
        pool->free = &chunk[i];
    }
    pool->count += VF_CHUNK;
    return vf_pool_get(pool, ep);
}

struct vf_op *vf_pool_at(const struct vf_pool *pool, uint32_t number)
{
    return number < pool->count ? &pool->chunks[number / VF_CHUNK][number % VF_CHUNK] : NULL;
}

void vf_pool_close(struct vf_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        free(vf_pool_at(pool, i)->packed);
        free(vf_pool_at(pool, i)->answer);
    }
    for (uint32_t i = 0; i < pool->count / VF_CHUNK; i++)
        free(pool->chunks[i]);
    free(pool->chunks);
    memset(pool, 0, sizeof *pool);
}

void vf_op_release(struct vf_op *op)
{
    bool is_receive = op->kind >= VF_OP_RECV && op->kind <= VF_OP_OWNED;
    if (vf_unlikely(op->packed)) {
        free(op->packed);
        op->packed = NULL;
    }
    if (vf_unlikely(op->answer != NULL)) {
        free(op->answer);
        op->answer = NULL;
    }
    vf_op_free(is_receive ? &op->ep->rx : &op->ep->tx, op);
}

void vf_op_done(struct vf_op *op, struct vf_cq *cq, int status)
{
    vf_cntr_add(op->cntr, status);
    op->completion.err = status ? vf_error(status) : 0;
    op->completion.prov_errno = status;
    if (cq && (op->reports || status))
        vf_cq_report(cq, op);
    else
        vf_op_release(op);
}

/* The status that an error means, if it says that a peer is gone. */
static int gone_status(int rc)
{
    switch (-rc) {
    case FI_ECONNRESET:
        return VELO_ERR_PEER_DEAD;
    case FI_ESHUTDOWN:
        return VELO_ERR_PEER_CLOSED;
    case FI_ECONNREFUSED:
        return VELO_ERR_NO_PEER;
    case FI_ETIMEDOUT:
        return VELO_TIMEOUT;
    default:
        return VELO_OK;
    }
}

int vf_op_fail(struct vf_ep *ep, void *context, uint64_t flags, struct vf_cntr *cntr, int rc)
{
    int status = gone_status(rc);
    if (!status || !ep->tx_cq)
        return rc;
    struct vf_op *op = vf_pool_get(&ep->tx, ep);
    if (!op)
        return vf_pool_lack(&ep->tx);
    op->kind = VF_OP_REPORT;
    op->cntr = cntr;
    op->completion =
        (struct vf_completion){.context = context, .flags = flags, .source = FI_ADDR_NOTAVAIL};
    vf_op_done(op, ep->tx_cq, status);
    return 0;
}

size_t vf_iov_bytes(const struct iovec *iov, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

void vf_iov_gather(void *to, const struct iovec *iov, size_t count)
{
    char *at = to;
    for (size_t i = 0; i < count; i++) {
        if (iov[i].iov_len)
            memcpy(at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
}

void vf_iov_scatter(const struct iovec *iov, size_t count, const void *from, size_t len_bytes)
{
    const char *at = from;
    for (size_t i = 0; i < count && len_bytes > 0; i++) {
        size_t piece = iov[i].iov_len < len_bytes ? iov[i].iov_len : len_bytes;
        memcpy(iov[i].iov_base, at, piece);
        at += piece;
        len_bytes -= piece;
    }
}

void *vf_table_grow(void *table, size_t *len, size_t new_len, size_t member_bytes)
{
    char *larger = realloc(table, new_len * member_bytes);
    if (!larger)
        return NULL;
    memset(larger + *len * member_bytes, 0, (new_len - *len) * member_bytes);
    *len = new_len;
    return larger;
}

const char *vf_strerror(int status, char *buf, size_t len)
{
    const char *text = velo_strerror(status);
    if (buf && len > 0) {
        strncpy(buf, text, len - 1);
        buf[len - 1] = '\0';
    }
    return text;
}

int vf_error(int status)
{
    switch (status) {
    case VELO_OK:
        return 0;
    case VELO_AGAIN:
    case VELO_ERR_FULL:
        return FI_EAGAIN;
    case VELO_TIMEOUT:
        return FI_ETIMEDOUT;
    case VELO_ERR_ARG:
        return FI_EINVAL;
    case VELO_ERR_STATE:
        return FI_EOPBADSTATE;
    case VELO_ERR_TOO_BIG:
        return FI_ETRUNC;
    case VELO_ERR_NO_PEER:
        return FI_ECONNREFUSED;
    case VELO_ERR_PEER_CLOSED:
        return FI_ESHUTDOWN;
    case VELO_ERR_PEER_DEAD:
        return FI_ECONNRESET;
    case VELO_ERR_IN_USE:
        return FI_EADDRINUSE;
    case VELO_ERR_ACCESS:
        return FI_EACCES;
    case VELO_ERR_NO_SPACE:
    case VELO_ERR_NO_MEMORY:
        return FI_ENOMEM;
    case VELO_ERR_INTERRUPTED:
        return FI_EINTR;
    case VELO_ERR_CANCELLED:
        return FI_ECANCELED;
    default:
        return FI_EIO;
    }
}
