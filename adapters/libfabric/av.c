/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "absent.h"
#include "fabric.h"
#include "provider.h"

#define VPIDS 256u

/* ---- the way back: from a port to its address ------------------------------------------------ */

static int note_id(struct vf_av *av, velo_id_t id, fi_addr_t addr)
{
    fi_addr_t **of_node = &av->by_node[VELO_ID_NODE(id)];
    if (!*of_node)
        *of_node = calloc(VPIDS, sizeof **of_node);
    if (!*of_node)
        return -FI_ENOMEM;
    (*of_node)[VELO_ID_VPID(id)] = av->seen[addr] + 1;
    return 0;
}

/* An address is gone: another one with the same port takes its place. */
static void forget_id(struct vf_av *av, velo_id_t id, fi_addr_t addr)
{
    fi_addr_t *at = av->by_node[VELO_ID_NODE(id)];
    if (!at || at[VELO_ID_VPID(id)] != av->seen[addr] + 1)
        return;
    at[VELO_ID_VPID(id)] = 0;
    for (size_t i = av->count; i-- > 0;) {
        if (av->addresses[i].magic && av->addresses[i].id == id) {
            at[VELO_ID_VPID(id)] = av->seen[i] + 1;
            return;
        }
    }
}

/* ---- insert, remove -------------------------------------------------------------------------- */

static int grow_av(struct vf_av *av, size_t needed)
{
    if (needed <= av->cap)
        return 0;
    size_t cap = av->cap ? av->cap * 2 : 64;
    while (cap < needed)
        cap *= 2;
    if (cap > UINT32_MAX / 2)
        return -FI_ENOMEM;
    fi_addr_t *seen = realloc(av->seen, cap * sizeof *seen);
    if (!seen)
        return -FI_ENOMEM;
    av->seen = seen;
    struct vf_address *addresses = vf_table_grow(av->addresses, &av->cap, cap, sizeof *addresses);
    if (!addresses)
        return -FI_ENOMEM;
    av->addresses = addresses;
    return 0;
}

/* Addresses of one call stand in a row, as FI_AV_TABLE promises, so places that were given back are
 * taken again only at the end. */
static int insert_one(struct vf_av *av, const struct vf_address *address, const fi_addr_t *id,
                      fi_addr_t *addr)
{
    int rc = vf_address_check(address, av->domain->place);
    if (rc == -FI_EHOSTUNREACH)
        vf_log("an address is of another velo domain, machine or shared memory than \"%s\"",
               av->domain->name);
    else if (rc)
        vf_log("no address of velo, or of another version");
    if (!rc)
        rc = grow_av(av, av->count + 1);
    if (rc)
        return rc;
    av->seen[av->count] = id ? *id : av->count;
    rc = note_id(av, address->id, av->count);
    if (rc)
        return rc;
    *addr = av->count;
    av->addresses[av->count++] = *address;
    return 0;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
                     uint64_t flags, void *context)
{
    struct vf_av *av = VF_CONTAINER(fid, struct vf_av);
    int inserted = 0, error = 0;
    int *errors = flags & FI_SYNC_ERR ? context : NULL;
    bool has_ids = flags & FI_AV_USER_ID;
    if (flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID))
        return -FI_EINVAL;
    if (!addr || (has_ids && !fi_addr))
        return -FI_EINVAL;
    vf_lock(av->domain);
    for (size_t i = 0; i < count; i++) {
        struct vf_address address;
        fi_addr_t at = FI_ADDR_NOTAVAIL;
        memcpy(&address, (const char *)addr + i * sizeof address, sizeof address);
        int rc = insert_one(av, &address, has_ids ? &fi_addr[i] : NULL, &at);
        inserted += rc == 0;
        error = rc ? rc : error;
        if (fi_addr)
            fi_addr[i] = at;
        if (errors)
            errors[i] = -rc;
    }
    vf_owner_inserted(av);
    vf_unlock(av->domain);
    if (av->eq)
        vf_eq_inserted(av->eq, av, context, (size_t)inserted);
    /* libfabric's LNX takes 0 for success, and divides by the number of addresses when it sends. */
    return has_ids && error && !inserted ? error : inserted;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
                        fi_addr_t *fi_addr, uint64_t flags, void *context)
{
    struct vf_address address;
    (void)service;
    if (!node || vf_address_parse(node, &address)) {
        vf_log("\"%s\" is no address as fi_av_straddr() writes it; velo has no names of nodes",
               node ? node : "");
        return -FI_EINVAL;
    }
    return av_insert(fid, &address, 1, fi_addr, flags, context);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
                        size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
    (void)fid, (void)node, (void)nodecnt, (void)service, (void)svccnt, (void)fi_addr, (void)flags;
    (void)context;
    return -FI_ENOSYS;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
    struct vf_av *av = VF_CONTAINER(fid, struct vf_av);
    int rc = flags ? -FI_EINVAL : 0;
    vf_lock(av->domain);
    for (size_t i = 0; !rc && i < count; i++) {
        if (!vf_av_get(av, fi_addr[i])) {
            rc = -FI_EINVAL;
            break;
        }
        for (struct vf_ep *ep = av->domain->eps; ep; ep = ep->next)
            if (ep->av == av)
                vf_peer_forget(ep, fi_addr[i]);
        velo_id_t id = av->addresses[fi_addr[i]].id;
        memset(&av->addresses[fi_addr[i]], 0, sizeof av->addresses[0]);
        forget_id(av, id, fi_addr[i]);
        while (av->count > 0 && !av->addresses[av->count - 1].magic)
            av->count--;
    }
    vf_unlock(av->domain);
    return rc;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
    struct vf_av *av = VF_CONTAINER(fid, struct vf_av);
    vf_lock(av->domain);
    const struct vf_address *address = vf_av_get(av, fi_addr);
    if (address)
        memcpy(addr, address, *addrlen < sizeof *address ? *addrlen : sizeof *address);
    vf_unlock(av->domain);
    *addrlen = sizeof *address;
    return address ? 0 : -FI_EINVAL;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
    struct vf_address address;
    (void)fid;
    memcpy(&address, addr, sizeof address);
    return vf_address_str(&address, buf, len);
}

static struct fi_ops_av av_ops = {
    .size = sizeof(struct fi_ops_av),
    .insert = av_insert,
    .insertsvc = av_insertsvc,
    .insertsym = av_insertsym,
    .remove = av_remove,
    .lookup = av_lookup,
    .straddr = av_straddr,
};

/* ---- life ------------------------------------------------------------------------------------ */

static int av_close(fid_t fid)
{
    struct vf_av *av = VF_CONTAINER(fid, struct vf_av);
    vf_lock(av->domain);
    bool is_used = av->users > 0;
    if (!is_used)
        av->domain->users--;
    vf_unlock(av->domain);
    if (is_used)
        return -FI_EBUSY;
    for (size_t i = 0; i < sizeof av->by_node / sizeof av->by_node[0]; i++)
        free(av->by_node[i]);
    free(av->addresses);
    free(av->seen);
    free(av);
    return 0;
}

static int av_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct vf_av *av = VF_CONTAINER(fid, struct vf_av);
    (void)flags;
    if (other->fclass != FI_CLASS_EQ)
        return -FI_EINVAL;
    av->eq = vf_eq_of(other);
    return 0;
}

static struct fi_ops av_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = av_close,
    .bind = av_bind,
    .control = vf_no_control,
    .ops_open = vf_no_ops_open,
};

int vf_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr, struct fid_av **out,
               void *context)
{
    struct vf_domain *domain = VF_CONTAINER(domain_fid, struct vf_domain);
    if (!attr || (attr->flags & ~(uint64_t)(FI_EVENT | FI_SYMMETRIC)))
        return -FI_EINVAL;
    if (attr->type > FI_AV_TABLE)
        return -FI_EINVAL;
    if (attr->name || attr->rx_ctx_bits)
        return -FI_ENOSYS; /* Nothing is shared between processes, and contexts are not numbered. */
    struct vf_av *av = calloc(1, sizeof *av);
    if (!av || grow_av(av, attr->count ? attr->count : 1)) {
        if (av)
            free(av->addresses);
        free(av);
        return -FI_ENOMEM;
    }
    av->fid.fid.fclass = FI_CLASS_AV;
    av->fid.fid.context = context;
    av->fid.fid.ops = &av_fid_ops;
    av->fid.ops = &av_ops;
    av->domain = domain;
    attr->type = attr->type == FI_AV_UNSPEC ? FI_AV_TABLE : attr->type;
    vf_lock(domain);
    domain->users++;
    if (attr->count > domain->peers)
        domain->peers = attr->count < UINT32_MAX ? (uint32_t)attr->count : UINT32_MAX;
    vf_unlock(domain);
    *out = &av->fid;
    return 0;
}
