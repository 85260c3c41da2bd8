/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../lib/base/fd.h"
#include "fabric.h"
#include "provider.h"

/* No descriptor tells that a peer has died: so often a sleeper looks. It need not for messages. */
#define PEERS_MS 1000

static int watch_fd(const struct vf_watch *watch, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(watch->poll_fd, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST ? 0
                                                                                        : -errno;
}

static void close_fds(struct vf_watch *watch)
{
    if (watch->poll_fd >= 0)
        (void)close(watch->poll_fd);
    if (watch->wake_fd >= 0)
        (void)close(watch->wake_fd);
    watch->poll_fd = watch->wake_fd = -1;
}

/* `status` is what velo_port_fd() or velo_rma_fd() has said. A port at a node's host port has no
 * descriptor: then calls that wait look again and again, which in virtual time is a wait. */
static int watch_port(struct vf_watch *watch, int status, int fd)
{
    if (status == VELO_OK)
        return watch->poll_fd >= 0 ? watch_fd(watch, fd) : 0;
    if (status != VELO_ERR_STATE)
        return -vf_error(status);
    if (watch->needs_fd) {
        vf_log("over a node's host port there are no descriptors and no thread that makes "
               "progress; ask for FI_WAIT_UNSPEC and FI_PROGRESS_MANUAL");
        return -FI_ENOSYS;
    }
    close_fds(watch);
    return 0;
}

int vf_watch_open(struct vf_watch *watch, struct vf_domain *domain, enum fi_wait_obj wait_obj)
{
    *watch = (struct vf_watch){
        .domain = domain, .poll_fd = -1, .wake_fd = -1, .needs_fd = wait_obj == FI_WAIT_FD};
    if (wait_obj == FI_WAIT_NONE)
        return 0;
    if (wait_obj != FI_WAIT_UNSPEC && wait_obj != FI_WAIT_FD)
        return -FI_ENOSYS;
    watch->can_sleep = true;
    watch->poll_fd = fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
    watch->wake_fd = fd_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int rc = watch->poll_fd >= 0 && watch->wake_fd >= 0 ? watch_fd(watch, watch->wake_fd) : -errno;
    if (!rc && domain->rma) {
        int fd = -1;
        int status = velo_rma_fd(domain->rma, &fd);
        rc = watch_port(watch, status, fd);
    }
    if (rc)
        vf_watch_close(watch);
    return rc;
}

void vf_watch_close(struct vf_watch *watch)
{
    close_fds(watch);
    free(watch->eps);
    watch->eps = NULL;
}

int vf_watch_add(struct vf_watch *watch, struct vf_ep *ep)
{
    int fd = -1;
    for (uint32_t i = 0; i < watch->ep_count; i++)
        if (watch->eps[i] == ep)
            return 0;
    struct vf_ep **eps = realloc(watch->eps, (watch->ep_count + 1) * sizeof(struct vf_ep *));
    if (!eps)
        return -FI_ENOMEM;
    watch->eps = eps;
    if (watch->can_sleep) {
        int status = velo_port_fd(ep->port, &fd);
        int rc = watch_port(watch, status, fd);
        if (rc)
            return rc;
    }
    watch->eps[watch->ep_count++] = ep;
    return 0;
}

void vf_watch_remove(struct vf_watch *watch, const struct vf_ep *ep)
{
    int fd;
    for (uint32_t i = 0; i < watch->ep_count; i++) {
        if (watch->eps[i] != ep)
            continue;
        watch->eps[i] = watch->eps[--watch->ep_count];
        if (watch->poll_fd >= 0 && velo_port_fd(ep->port, &fd) == VELO_OK)
            (void)epoll_ctl(watch->poll_fd, EPOLL_CTL_DEL, fd, NULL);
        return;
    }
}

int vf_watch_arm(struct vf_watch *watch)
{
    if (!watch->can_sleep)
        return -FI_ENOSYS;
    if (watch->poll_fd < 0)
        return -FI_EAGAIN;
    for (uint32_t i = 0; i < watch->ep_count; i++)
        if (watch->eps[i]->am_stalled || velo_mq_arm(watch->eps[i]->mq) != VELO_OK)
            return -FI_EAGAIN;
    if (watch->domain->rma && velo_rma_arm(watch->domain->rma) != VELO_OK)
        return -FI_EAGAIN;
    return 0;
}

int vf_watch_trywait(struct vf_watch *watch)
{
    eventfd_t count;
    if (watch->sleepers == 0)
        (void)eventfd_read(watch->wake_fd, &count);
    int rc = vf_watch_arm(watch);
    watch->is_watched |= rc == 0;
    return rc;
}

static void give_way(struct vf_watch *watch)
{
    vf_unlock(watch->domain);
    (void)sched_yield();
    vf_lock(watch->domain);
}

int vf_watch_sleep(struct vf_watch *watch, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = watch->poll_fd, .events = POLLIN};
    eventfd_t count;
    watch->sleepers++;
    watch->is_watched = true;
    vf_unlock(watch->domain);
    int rc = poll(&poll_fd, 1, timeout_ms) < 0 ? -errno : 0;
    vf_lock(watch->domain);
    /* The last one puts the bell away: before, it may still have to wake others. They come first.
     */
    if (--watch->sleepers == 0)
        (void)eventfd_read(watch->wake_fd, &count);
    else
        give_way(watch);
    return rc;
}

int vf_watch_wait(struct vf_watch *watch, int64_t end_ms)
{
    int64_t left_ms = end_ms - vf_now_ms();
    if (left_ms <= 0)
        return -FI_ETIMEDOUT;
    if (vf_watch_arm(watch) == 0)
        return vf_watch_sleep(watch, left_ms < PEERS_MS ? (int)left_ms : PEERS_MS);
    /* Something waits for room, which no descriptor tells; or there is no descriptor. */
    give_way(watch);
    return 0;
}

int64_t vf_watch_end_ms(int timeout_ms)
{
    return timeout_ms < 0 ? INT64_MAX : vf_now_ms() + timeout_ms;
}

void vf_watch_wake(struct vf_watch *watch)
{
    watch->is_watched = false;
    if (watch->wake_fd >= 0)
        (void)eventfd_write(watch->wake_fd, 1);
}

int vf_watch_get(struct vf_watch *watch, void *arg)
{
    if (watch->poll_fd < 0)
        return -FI_ENOSYS;
    *(int *)arg = watch->poll_fd;
    return 0;
}
