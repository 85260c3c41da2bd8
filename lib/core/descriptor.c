/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptor.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/fd.h"
#include "../base/fork.h"
#include "../base/order.h"

static int fail(const char *what)
{
    return velo_fail(VELO_ERR_SYSTEM, "%s: %s", what, strerror(errno));
}

/* Add the sockets that senders ring, and the descriptors of the network. */
static int add_all(const struct velo_port *port, int epoll_fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    const int files[] = {port->doorbell.near_fd, port->doorbell.far_fd};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, files[i], &event) != 0)
            return fail("epoll_ctl");
    return port->net->add_descriptors(port, epoll_fd);
}

static int open_wake(struct velo_port *port)
{
    return port->doorbell.near_fd >= 0
               ? VELO_OK
               : doorbell_open(&port->doorbell, &port->domain, port->segment);
}

int velo_port_fd(struct velo_port *port, int *fd)
{
    CANCEL_LATER();
    if (!port || !fd)
        return velo_fail(VELO_ERR_ARG, "port or fd is NULL");
    if (!fork_is_ours(port->process))
        return fork_refuse("port");
    int status = port->epoll_fd >= 0 ? VELO_OK : open_wake(port);
    if (status)
        return status;
    if (port->epoll_fd < 0) {
        int epoll_fd = fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
        if (epoll_fd < 0)
            return fail("epoll_create1");
        status = add_all(port, epoll_fd);
        if (status) {
            close(epoll_fd);
            return status;
        }
        port->epoll_fd = epoll_fd;
    }
    *fd = port->epoll_fd;
    return VELO_OK;
}

void descriptor_wake(struct velo_port *port)
{
    order_set_sleeping(&port->shared->sleeping, SEG_AWAKE);
    doorbell_ring_own(&port->doorbell, port->segment);
}

void descriptor_close(struct velo_port *port)
{
    if (port->epoll_fd >= 0)
        close(port->epoll_fd);
    port->epoll_fd = -1;
    doorbell_close(&port->doorbell);
}
