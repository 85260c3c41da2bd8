/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <time.h>

#include "absent.h"
#include "provider.h"

/* Looks before a thread that waits sleeps or looks at the clock. */
#define LOOKS_PER_WAIT 64u

static uint64_t get(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void progress(struct vf_cntr *cntr)
{
    vf_lock(cntr->watch.domain);
    vf_watch_progress(&cntr->watch);
    vf_unlock(cntr->watch.domain);
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
    struct vf_cntr *cntr = VF_CONTAINER(fid, struct vf_cntr);
    progress(cntr);
    return get(&cntr->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
    struct vf_cntr *cntr = VF_CONTAINER(fid, struct vf_cntr);
    progress(cntr);
    return get(&cntr->errors);
}

/* Threads that sleep look again. */
static int changed(struct vf_cntr *cntr)
{
    vf_lock(cntr->watch.domain);
    if (cntr->watch.is_watched)
        vf_watch_wake(&cntr->watch);
    vf_unlock(cntr->watch.domain);
    return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
    struct vf_cntr *cntr = VF_CONTAINER(fid, struct vf_cntr);
    atomic_fetch_add_explicit(&cntr->value, value, memory_order_relaxed);
    return changed(cntr);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
    struct vf_cntr *cntr = VF_CONTAINER(fid, struct vf_cntr);
    atomic_store_explicit(&cntr->value, value, memory_order_relaxed);
    return changed(cntr);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
    struct vf_cntr *cntr = VF_CONTAINER(fid, struct vf_cntr);
    atomic_fetch_add_explicit(&cntr->errors, value, memory_order_relaxed);
    return changed(cntr);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
    struct vf_cntr *cntr = VF_CONTAINER(fid, struct vf_cntr);
    atomic_store_explicit(&cntr->errors, value, memory_order_relaxed);
    return changed(cntr);
}

int64_t vf_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
    struct vf_cntr *cntr = VF_CONTAINER(fid, struct vf_cntr);
    int64_t end_ms = vf_watch_end_ms(timeout);
    uint64_t errors = get(&cntr->errors);
    int rc = 0;
    vf_lock(cntr->watch.domain);
    for (uint32_t round = 1; rc == 0; round++) {
        vf_watch_progress(&cntr->watch);
        if (get(&cntr->value) >= threshold)
            break;
        if (get(&cntr->errors) != errors)
            rc = -FI_EAVAIL;
        else if (round % LOOKS_PER_WAIT == 0)
            rc = vf_watch_wait(&cntr->watch, end_ms);
    }
    vf_unlock(cntr->watch.domain);
    return rc;
}

static struct fi_ops_cntr cntr_ops = {
    .size = sizeof(struct fi_ops_cntr),
    .read = cntr_read,
    .readerr = cntr_readerr,
    .add = cntr_add,
    .set = cntr_set,
    .wait = cntr_wait,
    .adderr = cntr_adderr,
    .seterr = cntr_seterr,
};

int vf_cntr_trywait(struct vf_cntr *cntr)
{
    vf_lock(cntr->watch.domain);
    int rc = vf_watch_trywait(&cntr->watch);
    vf_unlock(cntr->watch.domain);
    return rc;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
    struct vf_cntr *cntr = VF_CONTAINER(fid, struct vf_cntr);
    return command == FI_GETWAIT ? vf_watch_get(&cntr->watch, arg) : -FI_ENOSYS;
}

static int cntr_close(fid_t fid)
{
    struct vf_cntr *cntr = VF_CONTAINER(fid, struct vf_cntr);
    struct vf_domain *domain = cntr->watch.domain;
    vf_lock(domain);
    bool is_used = cntr->users > 0;
    if (!is_used)
        domain->users--;
    vf_unlock(domain);
    if (is_used)
        return -FI_EBUSY;
    vf_watch_close(&cntr->watch);
    free(cntr);
    return 0;
}

static struct fi_ops cntr_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = cntr_close,
    .control = cntr_control,
    .bind = vf_no_bind,
    .ops_open = vf_no_ops_open,
};

int vf_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
                 void *context)
{
    struct vf_domain *domain = VF_CONTAINER(domain_fid, struct vf_domain);
    if (attr && (attr->flags || attr->events != FI_CNTR_EVENTS_COMP))
        return -FI_EINVAL;
    struct vf_cntr *cntr = calloc(1, sizeof *cntr);
    if (!cntr)
        return -FI_ENOMEM;
    vf_lock(domain);
    int rc = vf_watch_open(&cntr->watch, domain, attr ? attr->wait_obj : FI_WAIT_NONE);
    domain->users += rc == 0;
    vf_unlock(domain);
    if (rc) {
        free(cntr);
        return rc;
    }
    cntr->fid.fid.fclass = FI_CLASS_CNTR;
    cntr->fid.fid.context = context;
    cntr->fid.fid.ops = &cntr_fid_ops;
    cntr->fid.ops = &cntr_ops;
    *out = &cntr->fid;
    return 0;
}
