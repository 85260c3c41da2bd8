/* SPDX-License-Identifier: Apache-2.0 */
/* The two processes of duo.h, each with an endpoint of libfabric that knows the other's address. */
#ifndef VELO_BENCH_DUO_FABRIC_H
#define VELO_BENCH_DUO_FABRIC_H

#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "duo.h"

struct duo_fabric {
    struct fid_ep *ep;
    struct fid_cq *cq; /* Of all that is sent and received. */
    fi_addr_t addr;    /* Of the other one. */
};

/* Both call it. `source` is the host to be at; NULL: the provider's own choice. */
static inline struct duo_fabric duo_fabric_open(const struct duo *duo, const char *provider,
                                                const char *source, uint64_t caps,
                                                struct fi_cq_attr cq_attr)
{
    struct duo_fabric own;
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    char mine[64], theirs[64];
    size_t len = sizeof mine;
    hints->caps = caps;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(provider);
    duo_check(fi_getinfo(FI_VERSION(1, 15), source, NULL, source ? FI_SOURCE : 0, hints, &info),
              "fi_getinfo");
    duo_check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    duo_check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    duo_check(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
    duo_check(fi_cq_open(domain, &cq_attr, &own.cq, NULL), "fi_cq_open");
    duo_check(fi_endpoint(domain, info, &own.ep, NULL), "fi_endpoint");
    duo_check(fi_ep_bind(own.ep, &av->fid, 0), "bind the vector");
    duo_check(fi_ep_bind(own.ep, &own.cq->fid, FI_TRANSMIT | FI_RECV), "bind the queue");
    duo_check(fi_enable(own.ep), "fi_enable");
    duo_check(fi_getname(&own.ep->fid, mine, &len), "fi_getname");
    duo_swap(duo, mine, theirs, len);
    duo_check(fi_av_insert(av, theirs, 1, &own.addr, 0, NULL) != 1, "fi_av_insert");
    return own;
}

#endif
