/* SPDX-License-Identifier: Apache-2.0 */
#include "no_net.h"

#include "../shm/wait.h"
#include "port.h"

void no_net_place(int *node, uint32_t *first, uint32_t *step)
{
    (void)node, (void)first, (void)step;
}

static int open(struct velo_port *port)
{
    (void)port;
    return VELO_OK;
}

static void do_nothing(struct velo_port *port) { (void)port; }

static bool progress(struct velo_port *port)
{
    (void)port;
    return false;
}

static void ring_paused(struct velo_port *port, const struct ring_rx *rx) { (void)port, (void)rx; }

static bool sleep_on_summary(struct velo_port *port, int64_t timeout_ns)
{
    return wait_sleep(&port->shared->summary, 0, timeout_ns);
}

bool no_net_is_settled(const struct velo_port *port)
{
    (void)port;
    return true;
}

static int add_descriptors(const struct velo_port *port, int epoll_fd)
{
    (void)port, (void)epoll_fd;
    return VELO_OK;
}

static bool arm(struct velo_port *port)
{
    (void)port;
    return true;
}

static bool reaches(const struct velo_port *port, velo_id_t peer)
{
    (void)port, (void)peer;
    return false;
}

const struct net_calls no_net = {
    .sleeps = SEG_SLEEPS_ON_WORD,
    .place = no_net_place,
    .open = open,
    .leave = do_nothing,
    .close = do_nothing,
    .progress = progress,
    .ring_paused = ring_paused,
    .sleep = sleep_on_summary,
    .is_settled = no_net_is_settled,
    .add_descriptors = add_descriptors,
    .arm = arm,
    .reaches = reaches,
};
