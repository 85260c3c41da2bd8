/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations. The target's library carries all of them out, in the order in which they come:
 * so all of a word are atomic to each other, whatever their types. */
#include <stdlib.h>

#include "older.h"
#include "provider.h"

#define ATOMIC_FLAGS                                                                               \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |                       \
     FI_DELIVERY_COMPLETE | FI_MORE | FI_PRIORITY | FI_TAGGED | VF_QUIET)
#define ANSWER_MATCH (UINT64_C(1) << 63) /* Set in those of answers; those of requests are 0. */

/** The receive of an answer. It is for this answer and from this target only, and ends if the
 * target dies. */
struct vf_atomic_answer {
    struct velo_mq_request mq;
    struct vf_op *op;
    struct vf_am_answer answer;
    char results[];
};

/** An operation. */
struct atomic {
    enum vf_atomic_wants wants;
    const struct fi_ioc *operand;
    size_t operand_len;
    const struct fi_ioc *compare;
    size_t compare_len;
    const struct fi_ioc *result;
    size_t result_len;
    fi_addr_t dest;
    uint64_t addr;
    uint64_t key;
    enum fi_datatype datatype;
    enum fi_op op;
    void *context;
};

/* ---- at the target --------------------------------------------------------------------------- */

static uint64_t access_of(int op, int wants)
{
    if (op == FI_ATOMIC_READ)
        return FI_REMOTE_READ;
    return wants == VF_WANTS_NOTHING ? FI_REMOTE_WRITE : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

size_t vf_atomic_serve(struct vf_domain *domain, const struct vf_am_header *header,
                       const void *data, size_t len_bytes, struct vf_am_answer *answer)
{
    size_t size = vf_datatype_bytes(header->datatype);
    size_t operand_bytes = size * header->count;
    size_t compare_bytes = header->wants == VF_WANTS_COMPARE ? operand_bytes : 0;
    size_t sent_bytes = (header->op == FI_ATOMIC_READ ? 0 : operand_bytes) + compare_bytes;
    answer->status = VELO_ERR_ARG;
    if (!vf_compute_is_valid(header->datatype, header->op, header->wants) || header->count == 0 ||
        header->count > VF_ATOMIC_BYTES / size || len_bytes != sent_bytes)
        return sizeof *answer;
    char *target = vf_mr_reach(domain, header->key, header->addr, operand_bytes,
                               access_of(header->op, header->wants));
    answer->status = target ? VELO_OK : VELO_ERR_ACCESS;
    if (!target)
        return sizeof *answer;
    bool wants_old = header->wants != VF_WANTS_NOTHING;
    vf_compute(header->op, header->datatype, target, data, (const char *)data + operand_bytes,
               wants_old ? answer + 1 : NULL, header->count);
    return sizeof *answer + (wants_old ? operand_bytes : 0);
}

/* ---- at the requester ------------------------------------------------------------------------ */

static void part_done(struct vf_op *op, int status)
{
    if (status && !op->status)
        op->status = status;
    if (--op->parts == 0)
        vf_op_done(op, op->ep->tx_cq, op->status);
}

static void request_sent(struct velo_mq_request *request)
{
    struct vf_op *op = (struct vf_op *)request;
    if (op->ep->is_closing)
        return;
    /* What could not be sent is not answered. */
    if (request->status && velo_mq_cancel(op->ep->mq, &op->answer->mq) == VELO_OK)
        part_done(op, request->status);
    part_done(op, request->status);
}

static int check_answer(const struct vf_atomic_answer *answer, size_t result_bytes)
{
    if (answer->mq.status)
        return answer->mq.status == VELO_ERR_TOO_BIG ? VELO_ERR_CORRUPT : answer->mq.status;
    if (answer->mq.len_bytes < sizeof answer->answer)
        return VELO_ERR_CORRUPT;
    if (answer->answer.status == VELO_ERR_ARG || answer->answer.status == VELO_ERR_ACCESS)
        return (int)answer->answer.status;
    return answer->answer.status == VELO_OK &&
                   answer->mq.len_bytes == sizeof answer->answer + result_bytes
               ? VELO_OK
               : VELO_ERR_CORRUPT;
}

static void answer_came(struct velo_mq_request *request)
{
    struct vf_atomic_answer *answer = (struct vf_atomic_answer *)request;
    struct vf_op *op = answer->op;
    if (op->ep->is_closing)
        return;
    size_t result_bytes = vf_iov_bytes(op->iov, op->iov_count);
    int status = check_answer(answer, result_bytes);
    if (status == VELO_OK)
        vf_iov_scatter(op->iov, op->iov_count, answer->results, result_bytes);
    part_done(op, status);
}

static size_t count_elements(const struct fi_ioc *ioc, size_t len)
{
    size_t count = 0;
    for (size_t i = 0; i < len; i++)
        count += ioc[i].count;
    return count;
}

static char *gather_operands(char *to, const struct fi_ioc *ioc, size_t len, size_t size)
{
    for (size_t i = 0; i < len; i++) {
        memcpy(to, ioc[i].addr, ioc[i].count * size);
        to += ioc[i].count * size;
    }
    return to;
}

static int check_atomic(const struct vf_ep *ep, const struct atomic *atomic, size_t count,
                        uint64_t flags)
{
    if (!(ep->caps & FI_ATOMIC) ||
        !vf_compute_is_valid((int)atomic->datatype, (int)atomic->op, (int)atomic->wants))
        return -FI_EOPNOTSUPP;
    if (atomic->operand_len > VF_IOV_MAX || atomic->compare_len > VF_IOV_MAX ||
        atomic->result_len > VF_IOV_MAX || (flags & ~ATOMIC_FLAGS))
        return -FI_EINVAL;
    if (count == 0 || count > VF_ATOMIC_BYTES / vf_datatype_bytes((int)atomic->datatype))
        return -FI_EINVAL;
    if (atomic->wants != VF_WANTS_NOTHING &&
        count_elements(atomic->result, atomic->result_len) != count)
        return -FI_EINVAL;
    if (atomic->wants == VF_WANTS_COMPARE &&
        count_elements(atomic->compare, atomic->compare_len) != count)
        return -FI_EINVAL;
    return 0;
}

/* Post the receive of the answer. */
static int expect_answer(struct vf_op *op, const struct atomic *atomic, size_t size)
{
    struct vf_ep *ep = op->ep;
    size_t result_bytes = 0;
    op->iov_count = (uint8_t)atomic->result_len;
    for (size_t i = 0; i < atomic->result_len; i++) {
        op->iov[i] = (struct iovec){atomic->result[i].addr, atomic->result[i].count * size};
        result_bytes += op->iov[i].iov_len;
    }
    op->answer = malloc(sizeof *op->answer + result_bytes);
    if (!op->answer)
        return VELO_ERR_NO_MEMORY;
    op->answer->op = op;
    op->answer->mq.done = answer_came;
    return velo_mq_irecv_in(ep->mq, VF_SPACE_AM, ep->av->addresses[atomic->dest].id,
                            ANSWER_MATCH | ++ep->answers, 0, &op->answer->answer,
                            sizeof op->answer->answer + result_bytes, 0, &op->answer->mq);
}

static ssize_t start_atomic(struct vf_ep *ep, const struct atomic *atomic, uint64_t flags)
{
    union {
        struct vf_am_header header;
        char bytes[VF_AM_BYTES];
    } request;
    struct velo_mq_peer *peer;
    size_t size = vf_datatype_bytes((int)atomic->datatype);
    size_t count = atomic->op == FI_ATOMIC_READ
                       ? count_elements(atomic->result, atomic->result_len)
                       : count_elements(atomic->operand, atomic->operand_len);
    uint64_t kind = FI_ATOMIC | (atomic->wants == VF_WANTS_NOTHING ? FI_WRITE : FI_READ);
    struct vf_cntr *cntr = atomic->wants == VF_WANTS_NOTHING ? ep->write_cntr : ep->read_cntr;
    int rc = check_atomic(ep, atomic, count, flags);
    if (rc)
        return rc;
    rc = vf_peer(ep, atomic->dest, &peer);
    if (rc)
        return flags & VF_QUIET ? rc : vf_op_fail(ep, atomic->context, kind, cntr, rc);
    if (ep->tx_cq && !vf_cq_has_room(ep->tx_cq))
        return -FI_EAGAIN;
    struct vf_op *op = vf_pool_get(&ep->tx, ep);
    if (!op)
        return vf_pool_lack(&ep->tx);
    op->kind = VF_OP_ATOMIC;
    op->reports = vf_tx_reports(ep, flags);
    op->status = VELO_OK;
    op->parts = 2;
    op->cntr = cntr;
    op->completion = (struct vf_completion){
        .context = atomic->context,
        .flags = kind,
        .source = FI_ADDR_NOTAVAIL,
    };
    int status = expect_answer(op, atomic, size);
    if (status) {
        vf_op_release(op);
        return -vf_error(status);
    }
    request.header = (struct vf_am_header){
        .kind = VF_AM_ATOMIC,
        .op = (uint8_t)atomic->op,
        .datatype = (uint8_t)atomic->datatype,
        .wants = (uint8_t)atomic->wants,
        .count = (uint32_t)count,
        .key = atomic->key,
        .addr = atomic->addr,
        .answer = ANSWER_MATCH | ep->answers,
    };
    char *end = (char *)(&request.header + 1);
    if (atomic->op != FI_ATOMIC_READ)
        end = gather_operands(end, atomic->operand, atomic->operand_len, size);
    if (atomic->wants == VF_WANTS_COMPARE)
        end = gather_operands(end, atomic->compare, atomic->compare_len, size);
    status = vf_am_send(ep, peer, &request, (size_t)(end - request.bytes), op, request_sent);
    if (status && status != VELO_AGAIN) {
        (void)velo_mq_cancel(ep->mq, &op->answer->mq);
        vf_op_release(op);
        rc = -vf_error(status);
        return flags & VF_QUIET ? rc : vf_op_fail(ep, atomic->context, kind, cntr, rc);
    }
    if (status == VELO_OK)
        op->parts--; /* Only the answer is to come. */
    return 0;
}

static ssize_t start_locked(struct fid_ep *fid, const struct atomic *atomic, uint64_t flags)
{
    struct vf_ep *ep = VF_CONTAINER(fid, struct vf_ep);
    vf_lock(ep->domain);
    ssize_t rc = start_atomic(ep, atomic, flags);
    vf_unlock(ep->domain);
    return rc;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static inline uint64_t default_flags(struct fid_ep *fid)
{
    return VF_CONTAINER(fid, struct vf_ep)->tx_flags & (FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
                             size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
                             enum fi_datatype datatype, enum fi_op op, void *context)
{
    struct atomic atomic = {.wants = VF_WANTS_NOTHING,
                            .operand = iov,
                            .operand_len = count,
                            .dest = dest,
                            .addr = addr,
                            .key = key,
                            .datatype = datatype,
                            .op = op,
                            .context = context};
    (void)desc;
    return start_locked(fid, &atomic, default_flags(fid));
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
                            fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
                            enum fi_op op, void *context)
{
    struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
    (void)desc;
    return atomic_writev(fid, &ioc, NULL, 1, dest, addr, key, datatype, op, context);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest,
                             uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
    struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
    struct atomic atomic = {.wants = VF_WANTS_NOTHING,
                            .operand = &ioc,
                            .operand_len = 1,
                            .dest = dest,
                            .addr = addr,
                            .key = key,
                            .datatype = datatype,
                            .op = op};
    return start_locked(fid, &atomic, VF_QUIET);
}

/* One remote piece, as long as what is sent. */
static int of_msg(const struct fi_msg_atomic *msg, struct atomic *atomic)
{
    if (msg->rma_iov_count != 1)
        return -FI_EINVAL;
    atomic->operand = msg->msg_iov;
    atomic->operand_len = msg->iov_count;
    atomic->dest = msg->addr;
    atomic->addr = msg->rma_iov[0].addr;
    atomic->key = msg->rma_iov[0].key;
    atomic->datatype = msg->datatype;
    atomic->op = msg->op;
    atomic->context = msg->context;
    return 0;
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
    struct atomic atomic = {.wants = VF_WANTS_NOTHING};
    int rc = of_msg(msg, &atomic);
    return rc ? rc : start_locked(fid, &atomic, flags);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
                                 size_t count, struct fi_ioc *resultv, void **result_desc,
                                 size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
                                 enum fi_datatype datatype, enum fi_op op, void *context)
{
    struct atomic atomic = {.wants = VF_WANTS_OLD,
                            .operand = iov,
                            .operand_len = count,
                            .result = resultv,
                            .result_len = result_count,
                            .dest = dest,
                            .addr = addr,
                            .key = key,
                            .datatype = datatype,
                            .op = op,
                            .context = context};
    (void)desc, (void)result_desc;
    return start_locked(fid, &atomic, default_flags(fid));
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
                                void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
                                uint64_t key, enum fi_datatype datatype, enum fi_op op,
                                void *context)
{
    struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
    struct fi_ioc results = {result, count};
    (void)desc, (void)result_desc;
    return atomic_readwritev(fid, &ioc, NULL, 1, &results, NULL, 1, dest, addr, key, datatype, op,
                             context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
                                   struct fi_ioc *resultv, void **result_desc, size_t result_count,
                                   uint64_t flags)
{
    struct atomic atomic = {.wants = VF_WANTS_OLD, .result = resultv, .result_len = result_count};
    int rc = of_msg(msg, &atomic);
    (void)result_desc;
    return rc ? rc : start_locked(fid, &atomic, flags);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
                                 size_t count, const struct fi_ioc *comparev, void **compare_desc,
                                 size_t compare_count, struct fi_ioc *resultv, void **result_desc,
                                 size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
                                 enum fi_datatype datatype, enum fi_op op, void *context)
{
    struct atomic atomic = {.wants = VF_WANTS_COMPARE,
                            .operand = iov,
                            .operand_len = count,
                            .compare = comparev,
                            .compare_len = compare_count,
                            .result = resultv,
                            .result_len = result_count,
                            .dest = dest,
                            .addr = addr,
                            .key = key,
                            .datatype = datatype,
                            .op = op,
                            .context = context};
    (void)desc, (void)compare_desc, (void)result_desc;
    return start_locked(fid, &atomic, default_flags(fid));
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
                                const void *compare, void *compare_desc, void *result,
                                void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
                                enum fi_datatype datatype, enum fi_op op, void *context)
{
    struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
    struct fi_ioc compares = {(void *)(uintptr_t)compare, count};
    struct fi_ioc results = {result, count};
    (void)desc, (void)compare_desc, (void)result_desc;
    return atomic_compwritev(fid, &ioc, NULL, 1, &compares, NULL, 1, &results, NULL, 1, dest, addr,
                             key, datatype, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
                                   const struct fi_ioc *comparev, void **compare_desc,
                                   size_t compare_count, struct fi_ioc *resultv, void **result_desc,
                                   size_t result_count, uint64_t flags)
{
    struct atomic atomic = {.wants = VF_WANTS_COMPARE,
                            .compare = comparev,
                            .compare_len = compare_count,
                            .result = resultv,
                            .result_len = result_count};
    int rc = of_msg(msg, &atomic);
    (void)compare_desc, (void)result_desc;
    return rc ? rc : start_locked(fid, &atomic, flags);
}

static int check_valid(enum fi_datatype datatype, enum fi_op op, enum vf_atomic_wants wants,
                       size_t *count)
{
    if (!vf_compute_is_valid((int)datatype, (int)op, (int)wants))
        return -FI_EOPNOTSUPP;
    *count = VF_ATOMIC_BYTES / vf_datatype_bytes((int)datatype);
    return 0;
}

static int write_valid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
    (void)fid;
    return check_valid(datatype, op, VF_WANTS_NOTHING, count);
}

static int readwrite_valid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
                           size_t *count)
{
    (void)fid;
    return check_valid(datatype, op, VF_WANTS_OLD, count);
}

static int compwrite_valid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
                           size_t *count)
{
    (void)fid;
    return check_valid(datatype, op, VF_WANTS_COMPARE, count);
}

int vf_atomic_query(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
                    struct fi_atomic_attr *attr, uint64_t flags)
{
    (void)domain;
    if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) ||
        flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
        return -FI_EINVAL;
    attr->size = vf_datatype_bytes((int)datatype);
    return check_valid(datatype, op,
                       flags & FI_FETCH_ATOMIC     ? VF_WANTS_OLD
                       : flags & FI_COMPARE_ATOMIC ? VF_WANTS_COMPARE
                                                   : VF_WANTS_NOTHING,
                       &attr->count);
}

struct fi_ops_atomic vf_atomic_ops = {
    .size = sizeof(struct fi_ops_atomic),
    .write = atomic_write,
    .writev = atomic_writev,
    .writemsg = atomic_writemsg,
    .inject = atomic_inject,
    .readwrite = atomic_readwrite,
    .readwritev = atomic_readwritev,
    .readwritemsg = atomic_readwritemsg,
    .compwrite = atomic_compwrite,
    .compwritev = atomic_compwritev,
    .compwritemsg = atomic_compwritemsg,
    .writevalid = write_valid,
    .readwritevalid = readwrite_valid,
    .compwritevalid = compwrite_valid,
};
