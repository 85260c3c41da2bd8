/* SPDX-License-Identifier: Apache-2.0 */
/* Events: of an address vector that was opened with FI_EVENT, and those that programs write. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/base/fd.h"
#include "absent.h"
#include "provider.h"

#define EVENT_BYTES_MAX 256u
#define EVENTS_DEFAULT 256u
#define EVENTS_MAX 65536u

struct event {
    uint32_t event;
    size_t len_bytes;
    char data[EVENT_BYTES_MAX];
};

struct vf_eq {
    struct fid_eq fid;
    pthread_mutex_t lock;
    struct event *ring;
    size_t size, head, tail;
    int wake_fd; /* Readable while there are events; -1: nobody waits. */
};

struct vf_eq *vf_eq_of(struct fid *fid) { return VF_CONTAINER(fid, struct vf_eq); }

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
                        uint64_t flags)
{
    struct vf_eq *eq = VF_CONTAINER(fid, struct vf_eq);
    if (flags || len > EVENT_BYTES_MAX)
        return -FI_EINVAL;
    pthread_mutex_lock(&eq->lock);
    bool is_full = eq->tail - eq->head == eq->size;
    if (!is_full) {
        struct event *at = &eq->ring[eq->tail++ % eq->size];
        at->event = event;
        at->len_bytes = len;
        memcpy(at->data, buf, len);
        if (eq->wake_fd >= 0)
            (void)eventfd_write(eq->wake_fd, 1);
    }
    pthread_mutex_unlock(&eq->lock);
    return is_full ? -FI_EAGAIN : (ssize_t)len;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
    struct vf_eq *eq = VF_CONTAINER(fid, struct vf_eq);
    ssize_t rc = -FI_EAGAIN;
    pthread_mutex_lock(&eq->lock);
    if (eq->tail != eq->head) {
        const struct event *at = &eq->ring[eq->head % eq->size];
        rc = at->len_bytes <= len ? (ssize_t)at->len_bytes : -FI_ETOOSMALL;
    }
    if (rc >= 0) {
        const struct event *at = &eq->ring[eq->head % eq->size];
        *event = at->event;
        memcpy(buf, at->data, at->len_bytes);
        if (!(flags & FI_PEEK) && ++eq->head == eq->tail && eq->wake_fd >= 0) {
            eventfd_t count;
            (void)eventfd_read(eq->wake_fd, &count);
        }
    }
    pthread_mutex_unlock(&eq->lock);
    return rc;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
    (void)fid, (void)buf, (void)flags;
    return -FI_EAGAIN; /* No event of ours fails. */
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
                        uint64_t flags)
{
    struct vf_eq *eq = VF_CONTAINER(fid, struct vf_eq);
    if (eq->wake_fd < 0)
        return -FI_ENOSYS;
    ssize_t rc = eq_read(fid, event, buf, len, flags);
    if (rc != -FI_EAGAIN)
        return rc;
    struct pollfd poll_fd = {.fd = eq->wake_fd, .events = POLLIN};
    if (poll(&poll_fd, 1, timeout) < 0)
        return -errno;
    return eq_read(fid, event, buf, len, flags);
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
                               size_t len)
{
    (void)fid, (void)err_data;
    return vf_strerror(prov_errno, buf, len);
}

static struct fi_ops_eq eq_ops = {
    .size = sizeof(struct fi_ops_eq),
    .read = eq_read,
    .readerr = eq_readerr,
    .write = eq_write,
    .sread = eq_sread,
    .strerror = eq_strerror,
};

void vf_eq_inserted(struct vf_eq *eq, struct vf_av *av, void *context, size_t inserted)
{
    struct fi_eq_entry entry = {.fid = &av->fid.fid, .context = context, .data = inserted};
    (void)eq_write(&eq->fid, FI_AV_COMPLETE, &entry, sizeof entry, 0);
}

int vf_eq_trywait(struct fid *fid)
{
    struct vf_eq *eq = vf_eq_of(fid);
    pthread_mutex_lock(&eq->lock);
    bool is_empty = eq->head == eq->tail;
    pthread_mutex_unlock(&eq->lock);
    return is_empty ? 0 : -FI_EAGAIN;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
    const struct vf_eq *eq = VF_CONTAINER(fid, struct vf_eq);
    if (command != FI_GETWAIT || eq->wake_fd < 0)
        return -FI_ENOSYS;
    *(int *)arg = eq->wake_fd;
    return 0;
}

static int eq_close(fid_t fid)
{
    struct vf_eq *eq = VF_CONTAINER(fid, struct vf_eq);
    if (eq->wake_fd >= 0)
        (void)close(eq->wake_fd);
    pthread_mutex_destroy(&eq->lock);
    free(eq->ring);
    free(eq);
    return 0;
}

static struct fi_ops eq_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = eq_close,
    .control = eq_control,
    .bind = vf_no_bind,
    .ops_open = vf_no_ops_open,
};

int vf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
               void *context)
{
    (void)fabric;
    enum fi_wait_obj wait_obj = attr ? attr->wait_obj : FI_WAIT_NONE;
    if (wait_obj != FI_WAIT_NONE && wait_obj != FI_WAIT_UNSPEC && wait_obj != FI_WAIT_FD)
        return -FI_ENOSYS;
    if (attr && attr->size > EVENTS_MAX)
        return -FI_EINVAL;
    struct vf_eq *eq = calloc(1, sizeof *eq);
    if (!eq)
        return -FI_ENOMEM;
    eq->size = attr && attr->size ? attr->size : EVENTS_DEFAULT;
    eq->ring = calloc(eq->size, sizeof *eq->ring);
    eq->wake_fd =
        wait_obj == FI_WAIT_NONE ? -1 : fd_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!eq->ring || (wait_obj != FI_WAIT_NONE && eq->wake_fd < 0)) {
        free(eq->ring);
        free(eq);
        return -FI_ENOMEM;
    }
    (void)pthread_mutex_init(&eq->lock, NULL);
    eq->fid.fid.fclass = FI_CLASS_EQ;
    eq->fid.fid.context = context;
    eq->fid.fid.ops = &eq_fid_ops;
    eq->fid.ops = &eq_ops;
    *out = &eq->fid;
    return 0;
}
