/* SPDX-License-Identifier: Apache-2.0 */
#include "carriers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../base/error.h"
#include "../core/no_net.h"
#include "../shm/wait.h"
#include "attend.h"
#include "link_connect.h"
#include "link_fetch.h"
#include "link_out.h"
#include "links.h"
#include "load.h"
#include "names.h"
#include "progress.h"

/* ---- closing --------------------------------------------------------------------------------- */

static bool is_done(struct carrier *carrier)
{
    pthread_mutex_lock(&carrier->lock);
    bool done = links_are_done(carrier);
    pthread_mutex_unlock(&carrier->lock);
    return done;
}

static void linger_until(struct carriers *carriers, int64_t end_ns)
{
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        while (!is_done(carrier) && wait_now_ns() < end_ns)
            if (!carriers_progress(carriers->port))
                carriers_nap(carriers, WAIT_SLICE_NS);
}

/* From here on no peer can connect, and connected peers are told. */
static void close_links(struct carrier *carrier)
{
    pthread_mutex_lock(&carrier->lock);
    carrier->is_closing = true;
    links_close(carrier);
    pthread_mutex_unlock(&carrier->lock);
}

/* Wait a while until all that was sent has left, then close them. */
static void carriers_close(struct velo_port *port)
{
    struct carriers *carriers = carriers_of(port);
    int64_t end_ns = wait_end_ns(wait_now_ns(), port->linger_ns);
    order_set_flag(&carriers->is_closing, 1); /* The thread leaves to us what comes from now on. */
    linger_until(carriers, end_ns);
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        close_links(carrier);
    linger_until(carriers, end_ns);
    attend_end(carriers);
    while (carriers->first) {
        struct carrier *carrier = carriers->first;
        carriers->first = carrier->next;
        links_free(carrier);
        carrier_release(carrier);
        carrier->transport->close(carrier->endpoint);
        pthread_mutex_destroy(&carrier->lock);
        free(carrier);
    }
    free(carriers);
    port->net_own = NULL;
}

/* close() has ended the carriers already, before the segment lost its name. */
static void nothing_left(struct velo_port *port) { (void)port; }

/* ---- opening --------------------------------------------------------------------------------- */

static int open_one(struct carriers *carriers, uint32_t index)
{
    struct velo_port *port = carriers->port;
    struct carrier *carrier = calloc(1, sizeof *carrier);
    if (!carrier)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    struct velo_endpoint_attr attr = {.id = port->id,
                                      .generation = port->segment->generation,
                                      .node = network_node(port->network, port->id),
                                      .dir = port->domain.dir,
                                      .domain = port->domain.name,
                                      .is_shared = port->domain.shared,
                                      .gid = (uint32_t)port->domain.gid,
                                      .owner = carrier};
    int status = VELO_OK;
    carrier->port = port;
    carrier->transport = transport_load(port->network->names[index], &status);
    if (carrier->transport)
        status = carrier->transport->open(&attr, &link_calls, &carrier->endpoint);
    if (status) {
        free(carrier);
        return status;
    }
    carrier->index = index;
    pthread_mutex_init(&carrier->lock, NULL);
    carrier->next = carriers->first;
    carriers->first = carrier;
    return VELO_OK;
}

static int open_all(struct carriers *carriers)
{
    int status = VELO_OK;
    for (uint32_t i = 1; i < carriers->port->network->names_len && status == VELO_OK; i++)
        status = open_one(carriers, i);
    return status ? status : attend_begin(carriers);
}

static int carriers_open(struct velo_port *port)
{
    struct carriers *carriers = calloc(1, sizeof *carriers);
    if (!carriers)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    int status = doorbell_open(&port->doorbell, &port->domain, port->segment);
    if (status) {
        free(carriers);
        return status;
    }
    port->net_own = carriers;
    carriers->port = port;
    status = open_all(carriers);
    if (status)
        carriers_close(port);
    else
        names_show(port);
    return status;
}

/* ---- sleep ----------------------------------------------------------------------------------- */

/* Other rings of the port must not starve those that come by frames. */
static void ring_paused(struct velo_port *port, const struct ring_rx *rx)
{
    (void)rx;
    (void)carriers_progress(port);
}

static bool arm_port(struct velo_port *port) { return carriers_arm(carriers_of(port)); }

static int add_descriptors(const struct velo_port *port, int epoll_fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int error = 0;
    const struct carrier *carrier = carriers_of(port)->first;
    for (; carrier && error == 0; carrier = carrier->next)
        error = epoll_ctl(epoll_fd, EPOLL_CTL_ADD,
                          carrier->transport->descriptor(carrier->endpoint), &event);
    return error ? velo_fail(VELO_ERR_SYSTEM, "epoll_ctl: %s", strerror(errno)) : VELO_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool carriers_reach(const struct velo_port *port, velo_id_t peer)
{
    return carrier_to(port, peer);
}

const struct net_calls carriers_calls = {
    .sleeps = SEG_SLEEPS_ON_FILES,
    .place = no_net_place,
    .open = carriers_open,
    .leave = carriers_close,
    .close = nothing_left,
    .progress = carriers_progress,
    .ring_paused = ring_paused,
    .sleep = carriers_sleep,
    /* Links that are lost say so themselves; all other senders share memory with us. */
    .is_settled = no_net_is_settled,
    .add_descriptors = add_descriptors,
    .arm = arm_port,
    .sleep_for_room = carriers_sleep_for_room,
    .disconnect = link_disconnect,
    .reaches = carriers_reach,
    .connect = link_connect,
    .look = link_out_look,
    .expose = link_expose,
    .conceal = link_conceal,
    .fetch = link_fetch,
    .forget = link_forget,
};
