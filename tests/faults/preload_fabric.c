/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that transport ofi makes of libfabric: most are functions of the object that they are
 * given, so each object gets a table of its own. What libfabric calls itself is left alone, and
 * fi_ep_bind(), which fails only where the endpoint lacks what it is given.
 */
#include <stdint.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "preload.h"

/* A table of libfabric's, and the one in its place; all objects of a kind are of one provider. */
#define TABLE(type, of)                                                                            \
    static type of##_own;                                                                          \
    static const type *of##_next;                                                                  \
    static void of##_keep(const type *table)                                                       \
    {                                                                                              \
        if (table == &of##_own)                                                                    \
            return;                                                                                \
        of##_next = table;                                                                         \
        memcpy(&of##_own, table, table->size < sizeof of##_own ? table->size : sizeof of##_own);   \
    }

TABLE(struct fi_ops_fabric, fabric)
TABLE(struct fi_ops_domain, domain)
TABLE(struct fi_ops_mr, mr)
TABLE(struct fi_ops_av, av)
TABLE(struct fi_ops_cq, cq)
TABLE(struct fi_ops, cq_fid)
TABLE(struct fi_ops, ep_fid)
TABLE(struct fi_ops_cm, cm)
TABLE(struct fi_ops_msg, msg)
TABLE(struct fi_ops_rma, rma)

/* A function of a table: it fails, or is the one that the table had. */
#define MEMBER(type, call, table, member, params, args, failed)                                    \
    CALL(call)                                                                                     \
    static type call##_own params { return FAILS(call) ? (failed) : table##_next->member args; }

/* ---- what carries packets -------------------------------------------------------------------- */

MEMBER(ssize_t, fi_recv, msg, recv,
       (struct fid_ep * ep, void *to, size_t len, void *desc, fi_addr_t from, void *context),
       (ep, to, len, desc, from, context), -FI_ENOMEM)
MEMBER(ssize_t, fi_send, msg, send,
       (struct fid_ep * ep, const void *from, size_t len, void *desc, fi_addr_t to, void *context),
       (ep, from, len, desc, to, context), -FI_ENOMEM)
MEMBER(ssize_t, fi_inject, msg, inject,
       (struct fid_ep * ep, const void *from, size_t len, fi_addr_t to), (ep, from, len, to),
       -FI_ENOMEM)
MEMBER(ssize_t, fi_read, rma, read,
       (struct fid_ep * ep, void *to, size_t len, void *desc, fi_addr_t peer, uint64_t at,
        uint64_t key, void *context),
       (ep, to, len, desc, peer, at, key, context), -FI_ENOMEM)
MEMBER(ssize_t, fi_cq_readfrom, cq, readfrom,
       (struct fid_cq * cq, void *to, size_t count, fi_addr_t *from), (cq, to, count, from),
       -FI_EIO)

/* ---- what opens ------------------------------------------------------------------------------ */

MEMBER(int, fi_control_cq, cq_fid, control, (struct fid * fid, int command, void *arg),
       (fid, command, arg), -FI_ENOSYS)
MEMBER(int, fi_enable, ep_fid, control, (struct fid * fid, int command, void *arg),
       (fid, command, arg), -FI_ENOMEM)
MEMBER(int, fi_getname, cm, getname, (fid_t fid, void *name, size_t *len), (fid, name, len),
       -FI_EOPBADSTATE)
MEMBER(int, fi_av_insert, av, insert,
       (struct fid_av * av, const void *name, size_t count, fi_addr_t *address, uint64_t flags,
        void *context),
       (av, name, count, address, flags, context), -FI_ENOMEM)
MEMBER(int, fi_av_insertsvc, av, insertsvc,
       (struct fid_av * av, const char *node, const char *service, fi_addr_t *address,
        uint64_t flags, void *context),
       (av, node, service, address, flags, context), -FI_ENOMEM)
MEMBER(int, fi_mr_reg, mr, reg,
       (struct fid * domain, const void *base, size_t len, uint64_t access, uint64_t offset,
        uint64_t key, uint64_t flags, struct fid_mr **mr, void *context),
       (domain, base, len, access, offset, key, flags, mr, context), -FI_ENOMEM)
MEMBER(int, fi_trywait, fabric, trywait, (struct fid_fabric * fabric, struct fid **fids, int count),
       (fabric, fids, count), -FI_EINVAL)

CALL(fi_av_open)
static int av_open_own(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
                       void *context)
{
    int error = FAILS(fi_av_open) ? -FI_ENOMEM : domain_next->av_open(domain, attr, av, context);
    if (error)
        return error;
    av_keep((*av)->ops);
    av_own.insert = fi_av_insert_own;
    av_own.insertsvc = fi_av_insertsvc_own;
    (*av)->ops = &av_own;
    return 0;
}

CALL(fi_cq_open)
static int cq_open_own(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
                       void *context)
{
    int error = FAILS(fi_cq_open) ? -FI_EMFILE : domain_next->cq_open(domain, attr, cq, context);
    if (error)
        return error;
    cq_keep((*cq)->ops);
    cq_own.readfrom = fi_cq_readfrom_own;
    (*cq)->ops = &cq_own;
    cq_fid_keep((*cq)->fid.ops);
    cq_fid_own.control = fi_control_cq_own;
    (*cq)->fid.ops = &cq_fid_own;
    return 0;
}

CALL(fi_endpoint)
static int endpoint_own(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
                        void *context)
{
    int error = FAILS(fi_endpoint) ? -FI_ENOMEM : domain_next->endpoint(domain, info, ep, context);
    if (error)
        return error;
    ep_fid_keep((*ep)->fid.ops);
    ep_fid_own.control = fi_enable_own;
    (*ep)->fid.ops = &ep_fid_own;
    cm_keep((*ep)->cm);
    cm_own.getname = fi_getname_own;
    (*ep)->cm = &cm_own;
    msg_keep((*ep)->msg);
    msg_own.recv = fi_recv_own;
    msg_own.send = fi_send_own;
    msg_own.inject = fi_inject_own;
    (*ep)->msg = &msg_own;
    if (!(*ep)->rma)
        return 0;
    rma_keep((*ep)->rma);
    rma_own.read = fi_read_own;
    (*ep)->rma = &rma_own;
    return 0;
}

CALL(fi_domain)
static int domain_own_open(struct fid_fabric *fabric, struct fi_info *info,
                           struct fid_domain **domain, void *context)
{
    int error = FAILS(fi_domain) ? -FI_ENOMEM : fabric_next->domain(fabric, info, domain, context);
    if (error)
        return error;
    domain_keep((*domain)->ops);
    domain_own.av_open = av_open_own;
    domain_own.cq_open = cq_open_own;
    domain_own.endpoint = endpoint_own;
    (*domain)->ops = &domain_own;
    mr_keep((*domain)->mr);
    mr_own.reg = fi_mr_reg_own;
    (*domain)->mr = &mr_own;
    return 0;
}

/* ---- functions of the library ---------------------------------------------------------------- */

CALL(fi_fabric)
SHOWN int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
    static int (*next)(struct fi_fabric_attr *, struct fid_fabric **, void *);
    const void *caller = __builtin_return_address(0);
    if (!next)
        *(void **)&next = call_next("fi_fabric", caller);
    int error = FAILS(fi_fabric) ? -FI_ENOMEM : next(attr, fabric, context);
    if (error || !call_is_of_velo(caller))
        return error;
    fabric_keep((*fabric)->ops);
    fabric_own.domain = domain_own_open;
    fabric_own.trywait = fi_trywait_own;
    (*fabric)->ops = &fabric_own;
    return 0;
}

WRAP(int, fi_getinfo,
     (uint32_t version, const char *node, const char *service, uint64_t flags,
      const struct fi_info *hints, struct fi_info **info),
     (version, node, service, flags, hints, info), -FI_ENOMEM, ENOMEM)
WRAP(struct fi_info *, fi_dupinfo, (const struct fi_info *info), (info), NULL, ENOMEM)
