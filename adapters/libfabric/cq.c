/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "absent.h"
#include "provider.h"

#define CQ_SIZE_MAX (1u << 20)
/* Looks of a read that comes after one in vain. */
#define LOOKS 4

/* ---- completions come ------------------------------------------------------------------------ */

void vf_cq_report(struct vf_cq *cq, struct vf_op *op)
{
    if (vf_likely(vf_cq_has_room(cq))) {
        *vf_cq_push(cq) = op->completion;
        vf_op_release(op);
        return;
    }
    op->next = NULL;
    *cq->late_end = op;
    cq->late_end = &op->next;
}

/* Completions that found no room take the room that there is now. */
static __attribute__((noinline)) void take_late(struct vf_cq *cq)
{
    while (cq->late && cq->tail - cq->head < cq->size) {
        struct vf_op *op = cq->late;
        cq->late = op->next;
        if (!cq->late)
            cq->late_end = &cq->late;
        *vf_cq_push(cq) = op->completion;
        if (op->kind == VF_OP_MULTI)
            vf_recv_again(op);
        else
            vf_op_release(op);
    }
}

void vf_cq_drop(struct vf_cq *cq, const struct vf_ep *ep)
{
    struct vf_op **at = &cq->late;
    while (*at) {
        if ((*at)->ep == ep)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
    cq->late_end = at;
}

/* ---- and are read ---------------------------------------------------------------------------- */

static inline void write_entry(enum fi_cq_format format, void *buf, size_t i,
                               const struct vf_completion *from)
{
    switch (format) {
    case FI_CQ_FORMAT_TAGGED:
        ((struct fi_cq_tagged_entry *)buf)[i] = (struct fi_cq_tagged_entry){
            from->context, from->flags, from->len, from->buf, from->data, from->tag};
        break;
    case FI_CQ_FORMAT_DATA:
        ((struct fi_cq_data_entry *)buf)[i] =
            (struct fi_cq_data_entry){from->context, from->flags, from->len, from->buf, from->data};
        break;
    case FI_CQ_FORMAT_MSG:
        ((struct fi_cq_msg_entry *)buf)[i] =
            (struct fi_cq_msg_entry){from->context, from->flags, from->len};
        break;
    default:
        ((struct fi_cq_entry *)buf)[i] = (struct fi_cq_entry){from->context};
    }
}

/* A caller that comes back at once waits for something. Looks from here find it earlier than looks
 * from there, with all that a program does between two of them. If that was so the last time, the
 * read waits itself, until it has waited in vain. */
static inline bool comes_soon(struct vf_cq *cq)
{
    if (cq->spins) {
        vf_watch_spin(&cq->watch);
    } else {
        vf_watch_progress(&cq->watch);
        if (cq->head != cq->tail || ++cq->reads_in_vain < 2)
            return cq->head != cq->tail;
        for (int i = 0; i < LOOKS && cq->head == cq->tail; i++)
            vf_watch_progress(&cq->watch);
    }
    cq->spins = cq->head != cq->tail;
    return cq->spins;
}

static inline ssize_t read_locked(struct vf_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
    if (cq->head == cq->tail && !comes_soon(cq))
        return -FI_EAGAIN;
    cq->reads_in_vain = 0;
    size_t i = 0;
    for (; i < count && cq->head != cq->tail; i++) {
        const struct vf_completion *from = &cq->ring[cq->head & (cq->size - 1)];
        if (vf_unlikely(from->err))
            break;
        write_entry(cq->format, buf, i, from);
        if (src_addr)
            src_addr[i] = from->source;
        cq->head++;
    }
    if (vf_unlikely(cq->late))
        take_late(cq);
    if (cq->head == cq->tail)
        cq->head = cq->tail = 0; /* Its first lines are in the cache. */
    return vf_likely(i > 0) || count == 0 ? (ssize_t)i : -FI_EAVAIL;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr)
{
    struct vf_cq *cq = VF_CONTAINER(fid, struct vf_cq);
    vf_lock(cq->watch.domain);
    ssize_t rc = read_locked(cq, buf, count, src_addr);
    vf_unlock(cq->watch.domain);
    return rc;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
    return cq_readfrom(fid, buf, count, NULL);
}

void vf_cq_describe_error(const struct vf_completion *from, struct fi_cq_err_entry *entry)
{
    *entry = (struct fi_cq_err_entry){
        .op_context = from->context,
        .flags = from->flags,
        .len = from->len,
        .buf = from->buf,
        .data = from->data,
        .tag = from->tag,
        .olen = from->olen,
        .err = from->err,
        .prov_errno = from->prov_errno,
        .err_data = entry->err_data,
    };
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
    struct vf_cq *cq = VF_CONTAINER(fid, struct vf_cq);
    ssize_t rc = -FI_EAGAIN;
    (void)flags;
    vf_lock(cq->watch.domain);
    if (cq->head == cq->tail)
        vf_watch_progress(&cq->watch);
    const struct vf_completion *from = &cq->ring[cq->head & (cq->size - 1)];
    if (cq->head != cq->tail && from->err) {
        vf_cq_describe_error(from, buf);
        cq->head++;
        if (cq->late)
            take_late(cq);
        rc = 1;
    }
    vf_unlock(cq->watch.domain);
    return rc;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr,
                            const void *cond, int timeout)
{
    struct vf_cq *cq = VF_CONTAINER(fid, struct vf_cq);
    int64_t end_ms = vf_watch_end_ms(timeout);
    ssize_t rc;
    int status = 0;
    (void)cond; /* A hint: more than one completion may be waited for, one is enough. */
    if (!cq->watch.can_sleep)
        return -FI_ENOSYS;
    vf_lock(cq->watch.domain);
    while ((rc = read_locked(cq, buf, count, src_addr)) == -FI_EAGAIN && status == 0) {
        if (cq->watch.is_signaled) {
            cq->watch.is_signaled = false;
            break;
        }
        status = vf_watch_wait(&cq->watch, end_ms);
    }
    vf_unlock(cq->watch.domain);
    return rc == -FI_EAGAIN && status && status != -FI_ETIMEDOUT ? status : rc;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
    return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
    struct vf_cq *cq = VF_CONTAINER(fid, struct vf_cq);
    if (!cq->watch.can_sleep)
        return -FI_ENOSYS;
    vf_lock(cq->watch.domain);
    cq->watch.is_signaled = true;
    vf_watch_wake(&cq->watch);
    vf_unlock(cq->watch.domain);
    return 0;
}

const char *vf_cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
                           size_t len)
{
    (void)fid, (void)err_data;
    return vf_strerror(prov_errno, buf, len);
}

static struct fi_ops_cq cq_ops = {
    .size = sizeof(struct fi_ops_cq),
    .read = cq_read,
    .readfrom = cq_readfrom,
    .readerr = cq_readerr,
    .sread = cq_sread,
    .sreadfrom = cq_sreadfrom,
    .signal = cq_signal,
    .strerror = vf_cq_strerror,
};

int vf_cq_trywait(struct vf_cq *cq)
{
    vf_lock(cq->watch.domain);
    int rc =
        cq->head != cq->tail || cq->watch.is_signaled ? -FI_EAGAIN : vf_watch_trywait(&cq->watch);
    vf_unlock(cq->watch.domain);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int cq_control(struct fid *fid, int command, void *arg)
{
    struct vf_cq *cq = VF_CONTAINER(fid, struct vf_cq);
    if (command == FI_GETWAIT)
        return vf_watch_get(&cq->watch, arg);
    if (command == FI_GETWAITOBJ) {
        *(enum fi_wait_obj *)arg = cq->watch.poll_fd >= 0 ? FI_WAIT_FD
                                   : cq->watch.can_sleep  ? FI_WAIT_UNSPEC
                                                          : FI_WAIT_NONE;
        return 0;
    }
    return -FI_ENOSYS;
}

static int cq_close(fid_t fid)
{
    struct vf_cq *cq = VF_CONTAINER(fid, struct vf_cq);
    struct vf_domain *domain = cq->watch.domain;
    vf_lock(domain);
    bool is_used = cq->users > 0;
    if (!is_used)
        domain->users--;
    vf_unlock(domain);
    if (is_used)
        return -FI_EBUSY;
    vf_watch_close(&cq->watch);
    free(cq->ring);
    free(cq);
    return 0;
}

static struct fi_ops cq_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = cq_close,
    .control = cq_control,
    .bind = vf_no_bind,
    .ops_open = vf_no_ops_open,
};

static uint32_t power_of_two(size_t wanted)
{
    uint32_t size = 16;
    while (size < wanted)
        size *= 2;
    return size;
}

int vf_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr, struct fid_cq **out,
               void *context)
{
    struct vf_domain *domain = VF_CONTAINER(domain_fid, struct vf_domain);
    if (!attr || (attr->flags & ~(FI_AFFINITY | FI_PEER)) || attr->format > FI_CQ_FORMAT_TAGGED ||
        attr->size > CQ_SIZE_MAX)
        return -FI_EINVAL;
    struct vf_cq *cq = calloc(1, sizeof *cq);
    if (!cq)
        return -FI_ENOMEM;
    cq->format = attr->format ? attr->format : FI_CQ_FORMAT_CONTEXT;
    cq->size = power_of_two(attr->size ? attr->size : VF_CQ_SIZE);
    cq->ring = calloc(cq->size, sizeof *cq->ring);
    cq->late_end = &cq->late;
    cq->fid.fid.fclass = FI_CLASS_CQ;
    cq->fid.fid.context = context;
    cq->fid.fid.ops = &cq_fid_ops;
    cq->fid.ops = &cq_ops;
    int rc = attr->flags & FI_PEER ? vf_owner_cq(cq, context) : 0;
    vf_lock(domain);
    if (!rc)
        rc = cq->ring ? vf_watch_open(&cq->watch, domain, attr->wait_obj) : -FI_ENOMEM;
    domain->users += rc == 0;
    vf_unlock(domain);
    if (rc) {
        free(cq->ring);
        free(cq);
        return rc;
    }
    attr->size = cq->size;
    attr->format = cq->format;
    *out = &cq->fid;
    return 0;
}
