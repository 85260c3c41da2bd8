/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptor.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/fd.h"
#include "../base/order.h"
#include "../shm/wait.h"

static int fail(const char *what)
{
    return velo_fail(VELO_ERR_SYSTEM, "%s: %s", what, strerror(errno));
}

/* Add the socket that senders ring, and the descriptors of the network. */
static int add_all(const struct velo_port *port, int epoll_fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, port->wake_fd, &event) == 0
               ? port->net->add_descriptors(port, epoll_fd)
               : fail("epoll_ctl");
}

static int open_wake(struct velo_port *port)
{
    int wake_fd =
        port->wake_fd >= 0 ? port->wake_fd : wait_doorbell_open(port->segment->generation);
    if (wake_fd < 0)
        return fail("a socket to be woken by");
    port->wake_fd = wake_fd;
    return VELO_OK;
}

int velo_port_fd(struct velo_port *port, int *fd)
{
    CANCEL_LATER();
    if (!port || !fd)
        return velo_fail(VELO_ERR_ARG, "port or fd is NULL");
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
    wait_doorbell_ring_own(port->wake_fd, port->segment->generation);
}

void descriptor_close(struct velo_port *port)
{
    if (port->epoll_fd >= 0)
        close(port->epoll_fd);
    port->epoll_fd = -1;
    if (port->wake_fd >= 0)
        close(port->wake_fd);
    port->wake_fd = -1;
}
