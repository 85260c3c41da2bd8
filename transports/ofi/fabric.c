/* SPDX-License-Identifier: Apache-2.0 */
/* All calls of libfabric but those that name addresses of other files. */
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/single_threaded.h>

#include "ofi.h"
#include "standard_files.h"

#define OFI_API FI_VERSION(1, 15)
/* Outcomes that the fabric may keep for us. */
#define CQ_ENTRIES 1024u

/* ---- choosing -------------------------------------------------------------------------------- */

static struct fi_info *hints_for(const char *provider, uint64_t caps)
{
    struct fi_info *hints = fi_allocinfo();
    if (!hints)
        return NULL;
    hints->caps = caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->fabric_attr->prov_name = provider ? strdup(provider) : NULL;
    return hints;
}

/* velo itself would carry our packets over velo, and shared memory leads to no other machine. */
static bool is_usable(const struct fi_info *info, const struct settings *settings)
{
    const char *name = info->fabric_attr->prov_name;
    const char *domain = info->domain_attr->name;
    bool is_here = !settings->interface || (domain && strcmp(domain, settings->interface) == 0);
    return name && strncmp(name, "velo", 4) != 0 && strncmp(name, "shm", 3) != 0 && is_here &&
           info->ep_attr->max_msg_size >= WIRE_PACKET_BYTES;
}

/* Does the address lead to no other machine, or only by an interface that it does not name? */
static bool is_local(const struct fi_info *info)
{
    const struct sockaddr *address = info->src_addr;
    if (!address || info->src_addrlen < sizeof *address)
        return false;
    if (address->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)info->src_addr)->sin_addr.s_addr) >> 24) ==
               IN_LOOPBACKNET;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)info->src_addr)->sin6_addr;
    return address->sa_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(six) || IN6_IS_ADDR_LINKLOCAL(six));
}

/* libfabric puts the fastest interface first, which is the loopback one as long as no other says
 * how fast it is. */
static const struct fi_info *best_of(const struct fi_info *all, const struct settings *settings)
{
    const struct fi_info *local = NULL;
    for (const struct fi_info *info = all; info; info = info->next) {
        if (!is_usable(info, settings))
            continue;
        if (!is_local(info))
            return info;
        local = local ? local : info;
    }
    return local;
}

/* By default ofi_rxm takes 70 MB for the receive buffers of each endpoint; it reads this when
 * libfabric is first asked, and no hint changes it. While other threads read the environment it
 * must not be changed; `velo run` sets it for its ranks. */
static void limit_buffers(void)
{
    if (__libc_single_threaded)
        (void)setenv("FI_OFI_RXM_MSG_RX_SIZE", "64", 0);
}

/* libfabric has nothing, or nothing that serves us. */
static int complain_of_libfabric(const struct endpoint *endpoint, const char *host, int error)
{
    const struct settings *settings = &endpoint->settings;
    return endpoint->base.calls->fail(
        VELO_ERR_SYSTEM,
        "libfabric has no reliable-datagram endpoint%s%s%s%s%s%s that takes packets of %u bytes "
        "and is neither velo nor shm%s%s; `fi_info -t FI_EP_RDM` lists what it has",
        settings->provider ? " of provider " : "", settings->provider ? settings->provider : "",
        settings->interface ? " at " : "", settings->interface ? settings->interface : "",
        host ? " for host " : "", host ? host : "", WIRE_PACKET_BYTES, error ? ": " : "",
        error ? fi_strerror(-error) : "");
}

static int choose_provider(struct endpoint *endpoint)
{
    static const uint64_t needs[] = {FI_MSG | FI_SOURCE | FI_RMA, FI_MSG | FI_SOURCE};
    const struct settings *settings = &endpoint->settings;
    char service[16];
    uint32_t number = 0;
    const char *host =
        endpoint->base.calls->host_of(endpoint->base.attr.owner, endpoint->base.attr.id, &number);
    (void)snprintf(service, sizeof service, "%u", number);
    /* Only the user's own port has that number: those that the library opens beside it are found
     * through it. */
    bool is_beside = attr_is_beside(&endpoint->base.attr);
    int error = 0;
    limit_buffers();
    for (int need = 0; need < 2 && !endpoint->fabric.info; need++) {
        struct fi_info *all = NULL;
        struct fi_info *hints = hints_for(settings->provider, needs[need]);
        if (!hints)
            return endpoint->base.calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
        error = host ? fi_getinfo(OFI_API, host, is_beside ? NULL : service, FI_SOURCE, hints, &all)
                     : fi_getinfo(OFI_API, NULL, NULL, 0, hints, &all);
        fi_freeinfo(hints);
        const struct fi_info *info = error ? NULL : best_of(all, settings);
        endpoint->fabric.info = info ? fi_dupinfo(info) : NULL;
        endpoint->fabric.can_fetch = needs[need] & FI_RMA;
        if (all)
            fi_freeinfo(all);
    }
    return endpoint->fabric.info ? VELO_OK : complain_of_libfabric(endpoint, host, error);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_all(struct fabric *f)
{
    struct fi_cq_attr cq = {.size = CQ_ENTRIES, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
    struct fi_av_attr av = {.type = f->info->domain_attr->av_type};
    int error = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
    if (!error)
        error = fi_domain(f->fabric, f->info, &f->domain, NULL);
    if (!error)
        error = fi_av_open(f->domain, &av, &f->av, NULL);
    if (!error)
        error = fi_cq_open(f->domain, &cq, &f->cq, NULL);
    if (!error)
        error = fi_endpoint(f->domain, f->info, &f->ep, NULL);
    if (!error)
        error = fi_ep_bind(f->ep, &f->av->fid, 0);
    if (!error)
        error = fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV);
    if (!error)
        error = fi_enable(f->ep);
    if (!error)
        error = fi_control(&f->cq->fid, FI_GETWAIT, &f->cq_fd);
    f->name_bytes = sizeof f->name;
    if (!error)
        error = fi_getname(&f->ep->fid, f->name, &f->name_bytes);
    return error;
}

static int open_fabric(struct endpoint *endpoint)
{
    struct fabric *fabric = &endpoint->fabric;
    int status = choose_provider(endpoint);
    if (status || !fabric->info)
        return status;
    fabric->inject_bytes = fabric->info->tx_attr->inject_size < INJECT_BYTES_MAX
                               ? (uint32_t)fabric->info->tx_attr->inject_size
                               : INJECT_BYTES_MAX;
    fabric->is_local_mr = fabric->info->domain_attr->mr_mode & FI_MR_LOCAL;
    int error = open_all(fabric);
    if (!error)
        return VELO_OK;
    bool is_taken = error == -FI_EADDRINUSE;
    return endpoint->base.calls->fail(is_taken ? VELO_ERR_IN_USE : VELO_ERR_SYSTEM,
                                      "libfabric's provider %s does not open an endpoint: %s%s",
                                      fabric->info->fabric_attr->prov_name, fi_strerror(-error),
                                      is_taken
                                          ? "; another program has the service number that [hosts] "
                                            "gives this port"
                                          : "");
}

int fabric_open(struct endpoint *endpoint)
{
    struct fabric *fabric = &endpoint->fabric;
    const bool is_bare = standard_files_hold();
    int status = open_fabric(endpoint);
    standard_files_release();
    fabric->is_bare = is_bare;
    return status;
}

void fabric_close(struct fabric *f)
{
    struct fid *fids[] = {f->ep ? &f->ep->fid : NULL, f->cq ? &f->cq->fid : NULL,
                          f->av ? &f->av->fid : NULL, f->domain ? &f->domain->fid : NULL,
                          f->fabric ? &f->fabric->fid : NULL};
    for (size_t i = 0; i < sizeof fids / sizeof *fids; i++)
        if (fids[i])
            (void)fi_close(fids[i]);
    if (f->info)
        fi_freeinfo(f->info);
    memset(f, 0, sizeof *f);
}

/* ---- memory ---------------------------------------------------------------------------------- */

int fabric_allocate(struct endpoint *endpoint, size_t len_bytes, struct memory *memory)
{
    struct fabric *fabric = &endpoint->fabric;
    void *base = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return endpoint->base.calls->fail(VELO_ERR_NO_MEMORY, "no memory for packets");
    *memory = (struct memory){.base = base, .len_bytes = len_bytes};
    int error = fabric->is_local_mr
                    ? fi_mr_reg(fabric->domain, base, len_bytes, FI_SEND | FI_RECV | FI_READ, 0, 0,
                                0, &memory->mr, NULL)
                    : 0;
    if (!error)
        return VELO_OK;
    fabric_free(memory);
    return endpoint->base.calls->fail(
        VELO_ERR_NO_MEMORY, "memory for packets is not registered: %s", fi_strerror(-error));
}

void fabric_free(struct memory *memory)
{
    if (memory->mr)
        (void)fi_close(&memory->mr->fid);
    if (memory->base)
        (void)munmap(memory->base, memory->len_bytes);
    *memory = (struct memory){0};
}

/* ---- addresses ------------------------------------------------------------------------------- */

fi_addr_t fabric_insert(struct fabric *fabric, const char *name)
{
    HOLD_STANDARD_FILES(fabric);
    fi_addr_t address = FI_ADDR_UNSPEC;
    return fi_av_insert(fabric->av, name, 1, &address, 0, NULL) == 1 ? address : FI_ADDR_UNSPEC;
}

fi_addr_t fabric_insert_host(struct fabric *fabric, const char *host, uint32_t service)
{
    HOLD_STANDARD_FILES(fabric);
    char text[16];
    fi_addr_t address = FI_ADDR_UNSPEC;
    (void)snprintf(text, sizeof text, "%u", service);
    return fi_av_insertsvc(fabric->av, host, text, &address, 0, NULL) == 1 ? address
                                                                           : FI_ADDR_UNSPEC;
}

void fabric_remove(struct fabric *fabric, fi_addr_t address)
{
    if (address != FI_ADDR_UNSPEC)
        (void)fi_av_remove(fabric->av, &address, 1, 0);
}

/* ---- packets --------------------------------------------------------------------------------- */

static enum fabric_sent outcome_of(ssize_t error, enum fabric_sent taken)
{
    return error == 0 ? taken : error == -FI_EAGAIN ? FABRIC_BUSY : FABRIC_REFUSED;
}

enum fabric_sent fabric_send(struct fabric *fabric, struct packet *packet, fi_addr_t to)
{
    HOLD_STANDARD_FILES(fabric);
    if (packet->len_bytes <= fabric->inject_bytes)
        return outcome_of(fi_inject(fabric->ep, packet->data, packet->len_bytes, to), FABRIC_DONE);
    return outcome_of(
        fi_send(fabric->ep, packet->data, packet->len_bytes, packet->desc, to, &packet->context),
        FABRIC_HAS);
}

enum fabric_sent fabric_read(struct fabric *fabric, struct packet *packet, fi_addr_t peer,
                             const struct velo_exposed *from)
{
    HOLD_STANDARD_FILES(fabric);
    return outcome_of(fi_read(fabric->ep, packet->data, packet->len_bytes, packet->desc, peer,
                              from->address, from->key, &packet->context),
                      FABRIC_HAS);
}

struct fid_mr *fabric_expose(struct fabric *fabric, const void *base, size_t len_bytes)
{
    struct fid_mr *mr = NULL;
    uint64_t key = 0;
    int error = 0;
    do {
        if (getrandom(&key, sizeof key, 0) != sizeof key || key == 0)
            return NULL;
        error = fi_mr_reg(fabric->domain, base, len_bytes, FI_REMOTE_READ, 0, key, 0, &mr, NULL);
    } while (error == -FI_ENOKEY); /* It is in use. */
    if (error)
        return NULL;
    if (fabric->info->domain_attr->mr_mode & FI_MR_ENDPOINT)
        error = fi_mr_bind(mr, &fabric->ep->fid, 0);
    if (!error && (fabric->info->domain_attr->mr_mode & FI_MR_ENDPOINT))
        error = fi_mr_enable(mr);
    if (error)
        (void)fi_close(&mr->fid);
    return error ? NULL : mr;
}

enum fabric_sent fabric_receive(struct fabric *fabric, struct packet *packet)
{
    return outcome_of(fi_recv(fabric->ep, packet->data, WIRE_PACKET_BYTES, packet->desc,
                              FI_ADDR_UNSPEC, &packet->context),
                      FABRIC_HAS);
}

/* The outcome that is an error: 1; 0: another look has taken it. */
static int poll_failed(struct fabric *fabric, struct outcome *outcome)
{
    struct fi_cq_err_entry bad = {0};
    if (fi_cq_readerr(fabric->cq, &bad, 0) != 1)
        return 0;
    *outcome = (struct outcome){.packet = bad.op_context, .is_failed = true};
    return 1;
}

int fabric_poll(struct fabric *fabric, struct outcome outcomes[OUTCOMES_MAX])
{
    HOLD_STANDARD_FILES(fabric);
    struct fi_cq_msg_entry entries[OUTCOMES_MAX];
    fi_addr_t from[OUTCOMES_MAX];
    if (fabric->error)
        return 0;
    ssize_t got = fi_cq_readfrom(fabric->cq, entries, OUTCOMES_MAX, from);
    if (got == -FI_EAVAIL)
        return poll_failed(fabric, outcomes);
    if (got < 0 && got != -FI_EAGAIN && got != -FI_EINTR)
        fabric->error = (int)got;
    for (ssize_t i = 0; i < got; i++)
        outcomes[i] = (struct outcome){
            .packet = entries[i].op_context, .len_bytes = entries[i].len, .from = from[i]};
    return got > 0 ? (int)got : 0;
}

bool fabric_may_wait(struct fabric *fabric)
{
    HOLD_STANDARD_FILES(fabric);
    struct fid *fid = &fabric->cq->fid;
    int error = fi_trywait(fabric->fabric, &fid, 1);
    if (error && error != -FI_EAGAIN)
        fabric->error = error;
    return error == 0;
}
