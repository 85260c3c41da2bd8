/* SPDX-License-Identifier: Apache-2.0 */
/* The provider's offer, and what a caller's hints get of it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <netdb.h>
#include <sys/socket.h>

#include "../../lib/base/fd.h"
#include "directory.h"
#include "fabric.h"
#include "older.h"
#include "provider.h"

#define PRIMARY_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define MESSAGE_SIDES (FI_SEND | FI_RECV)
#define MEMORY_SIDES (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SECONDARY_CAPS (FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define ALL_CAPS (PRIMARY_CAPS | MESSAGE_SIDES | MEMORY_SIDES | SECONDARY_CAPS | FI_DIRECTED_RECV)
#define TX_CAPS (PRIMARY_CAPS | FI_SEND | FI_READ | FI_WRITE)
#define RX_CAPS                                                                                    \
    (PRIMARY_CAPS | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE |       \
     FI_DIRECTED_RECV)
#define DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)

#define TX_FLAGS                                                                                   \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define RX_FLAGS (FI_COMPLETION | FI_MULTI_RECV)
#define ORDERS                                                                                     \
    (FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW |    \
     FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define MR_MODES (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* Each bit may be a field of its own. */
#define TAG_FORMAT UINT64_C(0xaaaaaaaaaaaaaaaa)
#define OBJECTS_MAX ((size_t)1024)
/* Receives of an owner, which posts none here: LNX refuses an endpoint with more. */
#define OWNER_RX_SIZE ((size_t)1024)
/* Ours, as FI_PROV_SPECIFIC permits. */
#define PROTOCOL (FI_PROV_SPECIFIC | 0x76656cu)
#define ADDRESS_FORMAT (FI_PROV_SPECIFIC | 0x76656cu)

/* libfabric's structures grow at their end. A member that we do not know must be there, and be 0,
 * when a newer libfabric looks at it. */
#define SLACK_BYTES 256

static void *new_zeroed(size_t len_bytes) { return calloc(1, len_bytes + SLACK_BYTES); }

static void free_info(struct fi_info *info)
{
    if (!info)
        return;
    free(info->src_addr);
    free(info->dest_addr);
    free(info->tx_attr);
    free(info->rx_attr);
    free(info->ep_attr);
    if (info->domain_attr)
        free(info->domain_attr->name);
    free(info->domain_attr);
    if (info->fabric_attr)
        free(info->fabric_attr->name);
    free(info->fabric_attr);
    free(info);
}

static struct fi_info *new_info(void)
{
    struct fi_info *info = new_zeroed(sizeof *info);
    if (!info)
        return NULL;
    info->tx_attr = new_zeroed(sizeof *info->tx_attr);
    info->rx_attr = new_zeroed(sizeof *info->rx_attr);
    info->ep_attr = new_zeroed(sizeof *info->ep_attr);
    info->domain_attr = new_zeroed(sizeof *info->domain_attr);
    info->fabric_attr = new_zeroed(sizeof *info->fabric_attr);
    if (info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr)
        return info;
    free_info(info);
    return NULL;
}

static bool is_name(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return len > 0 && len <= VELO_DOMAIN_NAME_MAX && text[len] == '\0';
}

int vf_domain_name(const char *given, char *name, size_t cap_bytes)
{
    const char *preset = given ? given : vf_param("DOMAIN");
    if (!preset)
        preset = getenv("VELO_DOMAIN");
    if (preset && *preset) {
        if (!is_name(preset)) {
            vf_log("\"%s\" is no name of a domain; use 1 to %u of A-Z a-z 0-9 _ -", preset,
                   VELO_DOMAIN_NAME_MAX);
            return -FI_EINVAL;
        }
        (void)snprintf(name, cap_bytes, "%s", preset);
    } else {
        (void)snprintf(name, cap_bytes, "u%u", (unsigned)geteuid());
    }
    return 0;
}

/* Granted to who asks for them. */
static uint64_t asked_caps(void) { return FI_AV_USER_ID | (vf_owner_is_known() ? FI_PEER : 0); }

static uint64_t sides_of(uint64_t caps)
{
    uint64_t sides = 0;
    if ((caps & (FI_MSG | FI_TAGGED)) && !(caps & MESSAGE_SIDES))
        sides |= MESSAGE_SIDES;
    if ((caps & (FI_RMA | FI_ATOMIC)) && !(caps & MEMORY_SIDES))
        sides |= MEMORY_SIDES;
    return sides;
}

static uint64_t granted_caps(uint64_t wanted)
{
    if (!wanted)
        return ALL_CAPS;
    uint64_t caps = wanted | sides_of(wanted) | FI_LOCAL_COMM | FI_REMOTE_COMM;
    if (caps & FI_MSG)
        caps |= FI_MULTI_RECV;
    return caps & (ALL_CAPS | asked_caps());
}

/* ---- the hints ------------------------------------------------------------------------------- */

/* Each of these is false, with a line in the log, if the hints ask for what is not offered. */

#define REFUSE_IF(condition, ...)                                                                  \
    do {                                                                                           \
        if (condition) {                                                                           \
            vf_log(__VA_ARGS__);                                                                   \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static bool fits_tx(const struct fi_tx_attr *tx)
{
    if (!tx)
        return true;
    REFUSE_IF(tx->caps & ~(TX_CAPS | ALL_CAPS), "capabilities of sends %#llx: not offered",
              (unsigned long long)tx->caps);
    REFUSE_IF(tx->op_flags & ~TX_FLAGS, "flags of sends %#llx: not offered",
              (unsigned long long)tx->op_flags);
    REFUSE_IF(tx->msg_order & ~ORDERS, "order of messages %#llx: not kept",
              (unsigned long long)(tx->msg_order & ~ORDERS));
    REFUSE_IF(tx->comp_order & VF_ORDER_STRICT, "completions of sends come in any order");
    REFUSE_IF(tx->inject_size > VF_INJECT_BYTES, "inject of %zu bytes: at most %u", tx->inject_size,
              VF_INJECT_BYTES);
    REFUSE_IF(tx->size > VF_TX_SIZE, "%zu sends at once: at most %u", tx->size, VF_TX_SIZE);
    REFUSE_IF(tx->iov_limit > VF_IOV_MAX || tx->rma_iov_limit > VF_IOV_MAX,
              "pieces of a message: at most %d", VF_IOV_MAX);
    return true;
}

static bool fits_rx(const struct fi_rx_attr *rx)
{
    if (!rx)
        return true;
    REFUSE_IF(rx->caps & ~(RX_CAPS | ALL_CAPS), "capabilities of receives %#llx: not offered",
              (unsigned long long)rx->caps);
    REFUSE_IF(rx->op_flags & ~RX_FLAGS, "flags of receives %#llx: not offered",
              (unsigned long long)rx->op_flags);
    REFUSE_IF(rx->msg_order & ~ORDERS, "order of messages %#llx: not kept",
              (unsigned long long)(rx->msg_order & ~ORDERS));
    REFUSE_IF(rx->comp_order & VF_ORDER_STRICT, "completions of receives come in any order");
    REFUSE_IF(rx->size > VF_RX_SIZE, "%zu receives at once: at most %u", rx->size, VF_RX_SIZE);
    REFUSE_IF(rx->iov_limit > VF_IOV_MAX, "pieces of a message: at most %d", VF_IOV_MAX);
    return true;
}

static bool fits_ep(const struct fi_ep_attr *ep)
{
    if (!ep)
        return true;
    REFUSE_IF(ep->type != FI_EP_UNSPEC && ep->type != FI_EP_RDM, "endpoints are FI_EP_RDM");
    REFUSE_IF(ep->protocol != FI_PROTO_UNSPEC && ep->protocol != PROTOCOL,
              "protocol %u is of another provider", ep->protocol);
    REFUSE_IF(ep->max_msg_size > VF_MESSAGE_BYTES_MAX, "messages of %zu bytes are too long",
              ep->max_msg_size);
    REFUSE_IF(ep->tx_ctx_cnt > 1 && ep->tx_ctx_cnt != FI_SHARED_CONTEXT,
              "one transmit context an endpoint");
    REFUSE_IF(ep->rx_ctx_cnt > 1, "one receive context an endpoint");
    REFUSE_IF(ep->tx_ctx_cnt == FI_SHARED_CONTEXT, "shared contexts are not offered");
    REFUSE_IF(ep->auth_key_size, "keys of authorization are not offered");
    return true;
}

static bool fits_domain(const struct fi_domain_attr *attr, const char *name)
{
    if (!attr)
        return true;
    REFUSE_IF(attr->name && strcmp(attr->name, name) != 0,
              "the domain is \"%s\"; set "
              "FI_VELO_DOMAIN for another",
              name);
    REFUSE_IF((unsigned)attr->threading > FI_THREAD_ENDPOINT, "unknown threading");
    REFUSE_IF((unsigned)attr->data_progress > FI_PROGRESS_MANUAL + 1u, "unknown progress");
    REFUSE_IF(attr->mr_key_size > sizeof(uint64_t), "keys have 8 bytes");
    REFUSE_IF(attr->cq_data_size > sizeof(uint64_t), "completion data has 8 bytes");
    REFUSE_IF(attr->caps & ~DOMAIN_CAPS, "capabilities of a domain %#llx: not offered",
              (unsigned long long)attr->caps);
    REFUSE_IF(attr->auth_key_size, "keys of authorization are not offered");
    REFUSE_IF(attr->mr_iov_limit > 1, "a registration is of one piece");
    REFUSE_IF(attr->ep_cnt > OBJECTS_MAX || attr->cq_cnt > OBJECTS_MAX ||
                  attr->cntr_cnt > OBJECTS_MAX || attr->tx_ctx_cnt > OBJECTS_MAX ||
                  attr->rx_ctx_cnt > OBJECTS_MAX,
              "at most %zu endpoints, queues or counters", OBJECTS_MAX);
    REFUSE_IF(attr->max_ep_tx_ctx > 1 || attr->max_ep_rx_ctx > 1 || attr->max_ep_stx_ctx ||
                  attr->max_ep_srx_ctx,
              "one context an endpoint, and none shared");
    REFUSE_IF(attr->mr_cnt > DIRECTORY_MRS_MAX, "at most %u registrations", DIRECTORY_MRS_MAX);
    return true;
}

/* LNX knows by this name that a provider reaches its own machine only: it then takes it for peers
 * there, and for no others. Another name would have it send by any link to any peer. */
static const char *fabric_name(uint64_t caps) { return caps & FI_PEER ? VF_LNX_FABRIC : VF_NAME; }

static bool fits_fabric(const struct fi_fabric_attr *attr, uint64_t caps)
{
    if (!attr)
        return true;
    REFUSE_IF(attr->name && strcmp(attr->name, fabric_name(caps)) != 0, "the fabric is \"%s\"",
              fabric_name(caps));
    return true;
}

static bool fits_owner(const struct fi_info *hints)
{
    REFUSE_IF((hints->caps & FI_PEER) && hints->domain_attr &&
                  hints->domain_attr->data_progress == FI_PROGRESS_AUTO,
              "FI_PEER: the owner makes progress; automatic progress is not offered with it");
    return true;
}

static bool hints_fit(const struct fi_info *hints, const char *domain)
{
    if (!hints)
        return true;
    REFUSE_IF(hints->caps & ~(ALL_CAPS | asked_caps()), "capabilities %#llx: not offered",
              (unsigned long long)(hints->caps & ~(ALL_CAPS | asked_caps())));
    REFUSE_IF(hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != ADDRESS_FORMAT,
              "addresses are of velo's own format");
    return fits_ep(hints->ep_attr) && fits_tx(hints->tx_attr) && fits_rx(hints->rx_attr) &&
           fits_domain(hints->domain_attr, domain) &&
           fits_fabric(hints->fabric_attr, hints->caps) && fits_owner(hints);
}

/* ---- what the caller gets -------------------------------------------------------------------- */

static size_t or_default(size_t wanted, size_t otherwise) { return wanted ? wanted : otherwise; }

static void fill_tx(struct fi_tx_attr *tx, const struct fi_tx_attr *hints, uint64_t caps)
{
    static const struct fi_tx_attr none;
    if (!hints)
        hints = &none;
    tx->caps = caps & TX_CAPS;
    tx->op_flags = hints->op_flags;
    tx->msg_order = hints->msg_order ? hints->msg_order : ORDERS;
    tx->comp_order = VF_ORDER_NONE;
    tx->inject_size = VF_INJECT_BYTES;
    tx->size = or_default(hints->size, VF_TX_SIZE);
    tx->iov_limit = VF_IOV_MAX;
    tx->rma_iov_limit = VF_IOV_MAX;
}

static void fill_rx(struct fi_rx_attr *rx, const struct fi_rx_attr *hints, uint64_t caps)
{
    static const struct fi_rx_attr none;
    if (!hints)
        hints = &none;
    rx->caps = caps & RX_CAPS;
    rx->op_flags = hints->op_flags;
    rx->msg_order = hints->msg_order ? hints->msg_order : ORDERS;
    rx->comp_order = VF_ORDER_NONE;
    rx->size = or_default(hints->size, caps & FI_PEER ? OWNER_RX_SIZE : VF_RX_SIZE);
    rx->iov_limit = VF_IOV_MAX;
}

static void fill_ep(struct fi_ep_attr *ep, const struct fi_ep_attr *hints)
{
    ep->type = FI_EP_RDM;
    ep->protocol = PROTOCOL;
    ep->protocol_version = 1;
    ep->max_msg_size = VF_MESSAGE_BYTES_MAX;
    ep->max_order_raw_size = VF_MESSAGE_BYTES_MAX;
    ep->max_order_war_size = VF_MESSAGE_BYTES_MAX;
    ep->max_order_waw_size = VF_MESSAGE_BYTES_MAX;
    ep->mem_tag_format = hints && hints->mem_tag_format ? hints->mem_tag_format : TAG_FORMAT;
    ep->tx_ctx_cnt = 1;
    ep->rx_ctx_cnt = 1;
}

/* Before version 1.5 of the interface the modes were two words. */
static int granted_mr_mode(uint32_t version, const struct fi_domain_attr *hints)
{
    int wanted = hints ? hints->mr_mode : 0;
    if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
        return wanted == VF_MR_BASIC ? VF_MR_BASIC : VF_MR_SCALABLE;
    if (wanted == VF_MR_BASIC || wanted == VF_MR_SCALABLE)
        return wanted;
    return wanted & MR_MODES;
}

static int fill_domain(struct fi_domain_attr *attr, const struct fi_domain_attr *hints,
                       uint32_t version, const char *name)
{
    static const struct fi_domain_attr none;
    const struct fi_domain_attr *wanted = hints ? hints : &none;
    attr->name = strdup(name);
    if (!attr->name)
        return -FI_ENOMEM;
    attr->threading = wanted->threading ? wanted->threading : FI_THREAD_SAFE;
    attr->control_progress =
        wanted->control_progress ? wanted->control_progress : FI_PROGRESS_MANUAL;
    attr->data_progress = wanted->data_progress ? wanted->data_progress : FI_PROGRESS_MANUAL;
    attr->resource_mgmt = FI_RM_ENABLED;
    attr->av_type = wanted->av_type ? wanted->av_type : FI_AV_TABLE;
    attr->mr_mode = granted_mr_mode(version, hints);
    attr->mr_key_size = sizeof(uint64_t);
    attr->cq_data_size = sizeof(uint64_t);
    attr->cq_cnt = OBJECTS_MAX;
    attr->ep_cnt = OBJECTS_MAX;
    attr->tx_ctx_cnt = OBJECTS_MAX;
    attr->rx_ctx_cnt = OBJECTS_MAX;
    attr->max_ep_tx_ctx = 1;
    attr->max_ep_rx_ctx = 1;
    attr->cntr_cnt = OBJECTS_MAX;
    attr->mr_iov_limit = 1;
    attr->caps = DOMAIN_CAPS;
    attr->mr_cnt = DIRECTORY_MRS_MAX;
    return 0;
}

static int copy_address(const void *from, size_t len_bytes, void **to, size_t *to_bytes)
{
    if (!from || len_bytes != sizeof(struct vf_address))
        return 0;
    *to = malloc(len_bytes);
    if (!*to)
        return -FI_ENOMEM;
    memcpy(*to, from, len_bytes);
    *to_bytes = len_bytes;
    return 0;
}

/* Is that a name of this machine? Then an address of it can be bound to. */
static bool is_here(const char *node)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    bool is_found = false;
    if (getaddrinfo(node, NULL, &hints, &found) != 0)
        return false;
    for (const struct addrinfo *at = found; at && !is_found; at = at->ai_next) {
        int fd = fd_above_standard(socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        is_found = fd >= 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0;
        if (fd >= 0)
            (void)close(fd);
    }
    freeaddrinfo(found);
    return is_found;
}

/* An address as text names an endpoint. A name of this machine names none: programs pass it before
 * they exchange addresses in their own way. */
static int fill_addresses(struct fi_info *info, const char *domain, const char *node,
                          uint64_t flags, const struct fi_info *hints)
{
    struct vf_address address;
    int rc = 0;
    if (node && vf_address_parse(node, &address) == 0) {
        rc = flags & FI_SOURCE
                 ? copy_address(&address, sizeof address, &info->src_addr, &info->src_addrlen)
                 : copy_address(&address, sizeof address, &info->dest_addr, &info->dest_addrlen);
    } else if (node && !is_here(node)) {
        vf_log("\"%s\" is neither an address of velo nor this machine", node);
        return -FI_ENODATA;
    }
    if (!rc && hints && !info->src_addr)
        rc = copy_address(hints->src_addr, hints->src_addrlen, &info->src_addr, &info->src_addrlen);
    if (!rc && hints && !info->dest_addr)
        rc = copy_address(hints->dest_addr, hints->dest_addrlen, &info->dest_addr,
                          &info->dest_addrlen);
    if (!rc && !info->src_addr) {
        vf_address_make_any(&address, vf_address_place(domain));
        rc = copy_address(&address, sizeof address, &info->src_addr, &info->src_addrlen);
    }
    return rc;
}

int vf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const struct fi_info *hints, struct fi_info **out)
{
    (void)service;
    char name[VELO_DOMAIN_NAME_MAX + 1];
    *out = NULL;
    if (vf_domain_name(NULL, name, sizeof name) || !hints_fit(hints, name))
        return -FI_ENODATA;
    struct fi_info *info = new_info();
    if (!info)
        return -FI_ENOMEM;
    info->caps = granted_caps(hints ? hints->caps : 0);
    info->addr_format = ADDRESS_FORMAT;
    fill_tx(info->tx_attr, hints ? hints->tx_attr : NULL, info->caps);
    fill_rx(info->rx_attr, hints ? hints->rx_attr : NULL, info->caps);
    fill_ep(info->ep_attr, hints ? hints->ep_attr : NULL);
    info->fabric_attr->name = strdup(fabric_name(info->caps));
    info->fabric_attr->prov_version = VF_VERSION;
    int rc = info->fabric_attr->name ? 0 : -FI_ENOMEM;
    if (!rc)
        rc = fill_domain(info->domain_attr, hints ? hints->domain_attr : NULL, version, name);
    if (!rc)
        rc = fill_addresses(info, name, node, flags, hints);
    if (rc) {
        free_info(info);
        return rc;
    }
    *out = info;
    return 0;
}
