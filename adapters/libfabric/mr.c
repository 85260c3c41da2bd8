/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations. They are a domain's, so its memory has a port of its own. Peers find a
 * registration by its key in the domain's directory, which they read with the same means as all
 * other memory. */
#include <stdlib.h>

#include "absent.h"
#include "directory.h"
#include "fabric.h"
#include "provider.h"

/* ---- directory ------------------------------------------------------------------------------- */

/* The place of a key; -1: it is not there. */
static int64_t find_key(const struct vf_domain *domain, uint64_t key)
{
    uint32_t first = vf_directory_slot(key);
    for (uint32_t i = first; i < first + DIRECTORY_WINDOW; i++)
        if (domain->mrs[i] && domain->mrs[i]->fid.key == key)
            return i;
    return -1;
}

static int64_t find_free(const struct vf_domain *domain, uint64_t key)
{
    uint32_t first = vf_directory_slot(key);
    for (uint32_t i = first; i < first + DIRECTORY_WINDOW; i++)
        if (!domain->mrs[i])
            return i;
    return -1;
}

/* A peer that reads an entry while it changes sees a check that does not fit. */
static void publish_entry(struct vf_domain *domain, const struct vf_mr *mr)
{
    struct vf_mr_entry entry = {
        .key = mr->fid.key,
        .rma_key = velo_rma_mem_key(mr->mem),
        .base = mr->offset_bytes,
    };
    entry.check = vf_directory_check(&entry);
    domain->directory->entries[mr->slot] = entry;
}

char *vf_mr_reach(struct vf_domain *domain, uint64_t key, uint64_t addr, size_t len_bytes,
                  uint64_t access)
{
    int64_t slot = domain->mrs ? find_key(domain, key) : -1;
    const struct vf_mr *mr = slot >= 0 ? domain->mrs[slot] : NULL;
    if (!mr || (mr->access & access) != access || addr < mr->offset_bytes ||
        addr - mr->offset_bytes > mr->len_bytes ||
        len_bytes > mr->len_bytes - (addr - mr->offset_bytes))
        return NULL;
    return mr->base + (addr - mr->offset_bytes);
}

int vf_mr_start(struct vf_domain *domain)
{
    int rc = vf_port_open(domain, -1, VELO_VPID_ANY, &domain->rma_port, &domain->rma);
    if (rc)
        return rc;
    int status = velo_rma_mem_alloc(domain->rma, sizeof *domain->directory, VELO_RMA_RIGHT_READ,
                                    VELO_RMA_PEER_ANY, &domain->directory_mem);
    if (!status)
        status = velo_rma_mem_publish(domain->directory_mem, VF_DIRECTORY_NUMBER);
    if (status) {
        vf_log("open remote memory: %s", velo_last_error());
        return -vf_error(status);
    }
    domain->directory = velo_rma_mem_addr(domain->directory_mem);
    domain->directory->generation = velo_port_generation(domain->rma_port);
    domain->mrs = calloc(DIRECTORY_LEN, sizeof(struct vf_mr *));
    return domain->mrs ? 0 : -FI_ENOMEM;
}

void vf_mr_stop(struct vf_domain *domain)
{
    vf_port_close(domain->rma_port);
    free(domain->mrs);
    domain->rma = NULL;
    domain->rma_port = NULL;
    domain->mrs = NULL;
}

/* ---- registrations --------------------------------------------------------------------------- */

static int mr_close(fid_t fid)
{
    struct vf_mr *mr = VF_CONTAINER(fid, struct vf_mr);
    struct vf_domain *domain = mr->domain;
    vf_lock(domain);
    if (mr->mem) {
        memset(&domain->directory->entries[mr->slot], 0, sizeof(struct vf_mr_entry));
        domain->mrs[mr->slot] = NULL;
        domain->mr_count--;
        (void)velo_rma_mem_deregister(mr->mem, VELO_FOREVER);
    }
    domain->users--;
    vf_unlock(domain);
    free(mr);
    return 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
    (void)fid, (void)arg;
    return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = mr_close,
    .bind = vf_no_bind,
    .control = mr_control,
    .ops_open = vf_no_ops_open,
};

static uint32_t rights_of(uint64_t access)
{
    return (access & FI_REMOTE_READ ? VELO_RMA_RIGHT_READ : 0u) |
           (access & FI_REMOTE_WRITE ? VELO_RMA_RIGHT_WRITE : 0u);
}

/* The first page is nobody's, and a registration of all memory begins there. */
#define FIRST_ADDRESS ((uintptr_t)4096)

static int register_memory(struct vf_domain *domain, struct vf_mr *mr, char *buf, size_t len_bytes,
                           uint64_t requested_key)
{
    uint64_t key = domain->mr_mode & FI_MR_PROV_KEY ? ++domain->key_next : requested_key;
    uint64_t skipped = 0;
    if (find_key(domain, key) >= 0)
        return -FI_ENOKEY;
    int64_t slot = find_free(domain, key);
    if (slot < 0 || domain->mr_count >= DIRECTORY_MRS_MAX)
        return -FI_ENOSPC;
    if ((uintptr_t)buf < FIRST_ADDRESS && len_bytes > FIRST_ADDRESS)
        skipped = FIRST_ADDRESS - (uintptr_t)buf;
    mr->base = (char *)((uintptr_t)buf + skipped);
    mr->len_bytes = len_bytes - skipped;
    mr->offset_bytes = domain->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)mr->base : skipped;
    mr->fid.key = key;
    mr->slot = (uint32_t)slot;
    int status = velo_rma_mem_register(domain->rma, mr->base, mr->len_bytes, rights_of(mr->access),
                                       VELO_RMA_PEER_ANY, &mr->mem);
    if (status) {
        vf_log("register memory: %s", velo_last_error());
        return status == VELO_ERR_FULL ? -FI_ENOSPC : -vf_error(status);
    }
    domain->mrs[slot] = mr;
    domain->mr_count++;
    publish_entry(domain, mr);
    return 0;
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
                  uint64_t requested_key, uint64_t flags, struct fid_mr **out, void *context)
{
    struct vf_domain *domain = VF_CONTAINER(fid, struct vf_domain);
    if (fid->fclass != FI_CLASS_DOMAIN || flags || offset)
        return -FI_EINVAL;
    if (access &
        ~(uint64_t)(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE))
        return -FI_EINVAL;
    struct vf_mr *mr = calloc(1, sizeof *mr);
    if (!mr)
        return -FI_ENOMEM;
    mr->fid.fid.fclass = FI_CLASS_MR;
    mr->fid.fid.context = context;
    mr->fid.fid.ops = &mr_fid_ops;
    mr->fid.key = requested_key;
    mr->domain = domain;
    mr->access = access;
    vf_lock(domain);
    int rc = 0;
    /* Memory that is only used here needs no registration. */
    if (rights_of(access) && len > 0)
        rc = domain->rma ? register_memory(domain, mr, (char *)(uintptr_t)buf, len, requested_key)
                         : -FI_EOPNOTSUPP;
    domain->users += rc == 0;
    vf_unlock(domain);
    if (rc) {
        free(mr);
        return rc;
    }
    *out = &mr->fid;
    return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
                   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
                   void *context)
{
    if (count != 1)
        return -FI_EINVAL;
    return mr_reg(fid, iov[0].iov_base, iov[0].iov_len, access, offset, requested_key, flags, mr,
                  context);
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
                      struct fid_mr **mr)
{
    if (attr->iface != FI_HMEM_SYSTEM)
        return -FI_EOPNOTSUPP;
    return mr_regv(fid, attr->mr_iov, attr->iov_count, attr->access, attr->offset,
                   attr->requested_key, flags, mr, attr->context);
}

struct fi_ops_mr vf_mr_ops = {
    .size = sizeof(struct fi_ops_mr),
    .reg = mr_reg,
    .regv = mr_regv,
    .regattr = mr_regattr,
};
