/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "absent.h"
#include "fabric.h"
#include "older.h"
#include "provider.h"

/* ---- calls that are not offered -------------------------------------------------------------- */

static int no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
                          void *context)
{
    (void)domain, (void)info, (void)sep, (void)context;
    return -FI_ENOSYS;
}

static int no_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
                        struct fid_poll **pollset)
{
    (void)domain, (void)attr, (void)pollset;
    return -FI_ENOSYS;
}

static int no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
                      void *context)
{
    (void)domain, (void)attr, (void)stx, (void)context;
    return -FI_ENOSYS;
}

static int no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
                               struct fi_collective_attr *attr, uint64_t flags)
{
    (void)domain, (void)coll, (void)attr, (void)flags;
    return -FI_ENOSYS;
}

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
                         void *context)
{
    (void)fabric, (void)info, (void)pep, (void)context;
    return -FI_ENOSYS;
}

static int no_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
                        struct fid_wait **waitset)
{
    (void)fabric, (void)attr, (void)waitset;
    return -FI_ENOSYS;
}

/* ---- domain ---------------------------------------------------------------------------------- */

static int domain_close(fid_t fid)
{
    struct vf_domain *domain = VF_CONTAINER(fid, struct vf_domain);
    if (domain->users)
        return -FI_EBUSY;
    if (domain->thread_watch) {
        vf_lock(domain);
        domain->stop = true;
        vf_watch_wake(domain->thread_watch);
        vf_unlock(domain);
        (void)pthread_join(domain->thread, NULL);
        vf_watch_close(domain->thread_watch);
        free(domain->thread_watch);
    }
    vf_mr_stop(domain);
    vf_port_sweep(domain->name);
    pthread_mutex_destroy(&domain->lock);
    atomic_fetch_sub_explicit(&domain->fabric->users, 1, memory_order_relaxed);
    free(domain);
    return 0;
}

static int domain_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid;
    (void)flags;
    return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static struct fi_ops domain_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = domain_close,
    .bind = domain_bind,
    .control = vf_no_control,
    .ops_open = vf_no_ops_open,
};

static struct fi_ops_domain domain_ops = {
    .size = sizeof(struct fi_ops_domain),
    .av_open = vf_av_open,
    .cq_open = vf_cq_open,
    .endpoint = vf_ep_open,
    .scalable_ep = no_scalable_ep,
    .cntr_open = vf_cntr_open,
    .poll_open = no_poll_open,
    .stx_ctx = no_stx_ctx,
    .srx_ctx = vf_srx_open,
    .query_atomic = vf_atomic_query,
    .query_collective = no_query_collective,
};

/* Automatic progress: go on with everything, then sleep until something comes. */
static void *thread_main(void *arg)
{
    struct vf_domain *domain = arg;
    struct vf_watch *watch = domain->thread_watch;
    vf_lock(domain);
    while (!domain->stop) {
        vf_watch_progress(watch);
        if (vf_watch_arm(watch) == 0)
            (void)vf_watch_sleep(watch, 100);
        else {
            /* Something waits for room, which no descriptor tells. */
            vf_unlock(domain);
            (void)sched_yield();
            vf_lock(domain);
        }
    }
    vf_unlock(domain);
    return NULL;
}

static int start_thread(struct vf_domain *domain)
{
    sigset_t all, before;
    domain->thread_watch = calloc(1, sizeof *domain->thread_watch);
    if (!domain->thread_watch)
        return -FI_ENOMEM;
    int rc = vf_watch_open(domain->thread_watch, domain, FI_WAIT_FD);
    if (!rc) {
        /* Signals are the program's. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        rc = -pthread_create(&domain->thread, NULL, thread_main, domain);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (rc)
            vf_watch_close(domain->thread_watch);
    }
    if (rc) {
        free(domain->thread_watch);
        domain->thread_watch = NULL;
    }
    return rc;
}

static int mr_mode_of(int mode)
{
    return mode == VF_MR_BASIC      ? FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY
           : mode == VF_MR_SCALABLE ? 0
                                    : mode;
}

int vf_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
                   void *context)
{
    struct vf_domain *domain = calloc(1, sizeof *domain);
    if (!domain)
        return -FI_ENOMEM;
    const struct fi_domain_attr *attr = info->domain_attr;
    domain->fid.fid.fclass = FI_CLASS_DOMAIN;
    domain->fid.fid.context = context;
    domain->fid.fid.ops = &domain_fid_ops;
    domain->fid.ops = &domain_ops;
    domain->fid.mr = &vf_mr_ops;
    domain->fabric = VF_CONTAINER(fabric, struct vf_fabric);
    domain->mr_mode = mr_mode_of(attr ? attr->mr_mode : 0);
    bool is_auto = attr && attr->data_progress == FI_PROGRESS_AUTO;
    domain->locks = is_auto || !attr || attr->threading != FI_THREAD_DOMAIN;
    int rc = vf_domain_name(attr ? attr->name : NULL, domain->name, sizeof domain->name);
    if (!rc)
        rc = -pthread_mutex_init(&domain->lock, NULL);
    if (rc) {
        free(domain);
        return rc;
    }
    domain->place = vf_address_place(domain->name);
    vf_port_sweep(domain->name);
    if (info->caps & (FI_RMA | FI_ATOMIC))
        rc = vf_mr_start(domain);
    if (!rc && is_auto)
        rc = start_thread(domain);
    if (rc) {
        vf_mr_stop(domain);
        pthread_mutex_destroy(&domain->lock);
        free(domain);
        return rc;
    }
    atomic_fetch_add_explicit(&domain->fabric->users, 1, memory_order_relaxed);
    *out = &domain->fid;
    return 0;
}

/* ---- fabric ---------------------------------------------------------------------------------- */

static int fabric_close(fid_t fid)
{
    struct vf_fabric *fabric = VF_CONTAINER(fid, struct vf_fabric);
    if (atomic_load_explicit(&fabric->users, memory_order_relaxed))
        return -FI_EBUSY;
    free(fabric);
    return 0;
}

static struct fi_ops fabric_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = fabric_close,
    .bind = vf_no_bind,
    .control = vf_no_control,
    .ops_open = vf_no_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
    .size = sizeof(struct fi_ops_fabric),
    .domain = vf_domain_open,
    .passive_ep = no_passive_ep,
    .eq_open = vf_eq_open,
    .wait_open = no_wait_open,
    .trywait = vf_trywait,
};

int vf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
    if (attr->name && strcmp(attr->name, VF_NAME) != 0 && strcmp(attr->name, VF_LNX_FABRIC) != 0)
        return -FI_EINVAL;
    struct vf_fabric *fabric = calloc(1, sizeof *fabric);
    if (!fabric)
        return -FI_ENOMEM;
    fabric->fid.fid.fclass = FI_CLASS_FABRIC;
    fabric->fid.fid.context = context;
    fabric->fid.fid.ops = &fabric_fid_ops;
    fabric->fid.ops = &fabric_ops;
    *out = &fabric->fid;
    return 0;
}

int vf_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
    (void)fabric;
    for (int i = 0; i < count; i++) {
        int rc = 0;
        if (fids[i]->fclass == FI_CLASS_CQ)
            rc = vf_cq_trywait(VF_CONTAINER(fids[i], struct vf_cq));
        else if (fids[i]->fclass == FI_CLASS_CNTR)
            rc = vf_cntr_trywait(VF_CONTAINER(fids[i], struct vf_cntr));
        else if (fids[i]->fclass == FI_CLASS_EQ)
            rc = vf_eq_trywait(fids[i]);
        else
            rc = -FI_EINVAL;
        if (rc)
            return rc;
    }
    return 0;
}
