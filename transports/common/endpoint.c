/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../../lib/base/fd.h"

/* The longest wait of a port that closes for its peers to take the last of it. */
#define LEAVE_NS NS_PER_S

void *endpoint_new(size_t len_bytes, const struct velo_endpoint_attr *attr,
                   const struct velo_transport_calls *calls, const struct circuits_use *circuit_use)
{
    struct endpoint_base *base = calloc(1, len_bytes);
    if (!base) {
        (void)calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    base->calls = calls;
    base->attr = *attr;
    base->circuit_use = circuit_use;
    base->epoll = base->timer.fd = -1;
    return base;
}

int endpoint_open_files(struct endpoint_base *base, int file, const char *transport)
{
    struct epoll_event event = {.events = EPOLLIN};
    base->epoll = fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
    if (base->epoll >= 0 && timer_open(&base->timer) &&
        epoll_ctl(base->epoll, EPOLL_CTL_ADD, base->timer.fd, &event) == 0 &&
        (file < 0 || epoll_ctl(base->epoll, EPOLL_CTL_ADD, file, &event) == 0))
        return VELO_OK;
    return base->calls->fail(VELO_ERR_SYSTEM, "transport %s: no descriptor to wait for: %s",
                             transport, strerror(errno));
}

void endpoint_close_files(struct endpoint_base *base)
{
    if (base->epoll >= 0)
        close(base->epoll);
    timer_close(&base->timer);
}

int endpoint_descriptor(void *self) { return ((const struct endpoint_base *)self)->epoll; }

static void forget_in_child(const struct port *port)
{
    const struct endpoint_base *base = (const struct endpoint_base *)port;
    if (base->forget)
        base->forget(base);
    close(base->epoll);
    close(base->timer.fd);
}

void endpoint_show(struct endpoint_base *base, const void *place, size_t place_bytes,
                   void (*forget)(const struct endpoint_base *base))
{
    base->forget = forget;
    base->port.place = place;
    base->port.place_bytes = place_bytes;
    port_add(&base->port, &base->attr, forget_in_child);
}

int endpoint_learn(struct endpoint_base *base, velo_id_t peer, const void *place,
                   size_t place_bytes)
{
    return port_learn(&base->port, peer, place, place_bytes)
               ? VELO_OK
               : base->calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
}

void endpoint_refuse(const struct endpoint_base *base)
{
    base->calls->count_refused(base->attr.owner, 1);
}

void endpoint_wait(struct endpoint_base *base, const struct velo_transport *transport,
                   int64_t end_ns)
{
    int64_t left_ns = end_ns - timer_now_ns();
    struct pollfd file = {.fd = base->epoll, .events = POLLIN};
    if (left_ns > 0 && transport->arm(base))
        (void)poll(&file, 1, (int)(left_ns / NS_PER_MS) + 1);
}

void endpoint_leave(struct endpoint_base *base, const struct velo_transport *transport,
                    bool (*has_left)(struct endpoint_base *base))
{
    int64_t end_ns = timer_now_ns() + LEAVE_NS;
    for (bool is_left = false; !is_left && timer_now_ns() < end_ns;) {
        (void)transport->progress(base);
        is_left = has_left(base);
        if (!is_left)
            endpoint_wait(base, transport, end_ns);
    }
}
