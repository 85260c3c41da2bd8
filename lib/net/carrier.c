/* SPDX-License-Identifier: Apache-2.0 */
#include "carrier.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../base/error.h"
#include "../shm/wait.h"
#include "attend.h"
#include "link.h"
#include "names.h"
#include "plug.h"

/* The longest wait of a port that closes for peers that live to take their last messages. */
#define LINGER_NS (10 * NS_PER_S)
/* A thread that waits for room looks again after this time: another thread may have taken in the
 * credits that it waits for. */
#define ROOM_NAP_MS 1
/* A process that ends waits so long for its last messages to be taken, and for a thread of its own
 * to leave a call: that may be the one that ends it, by exit() in a signal handler. */
#define LAST_NS NS_PER_S

static void carriers_close(struct velo_port *port);
static bool nap(struct carriers *carriers);

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
    int wake_fd = wait_doorbell_open(port->segment->generation);
    if (wake_fd < 0) {
        free(carriers);
        return velo_fail(VELO_ERR_SYSTEM, "a socket to be woken by: %s", strerror(errno));
    }
    port->wake_fd = wake_fd;
    port->net_own = carriers;
    carriers->port = port;
    int status = open_all(carriers);
    if (status)
        carriers_close(port);
    else
        names_show(port);
    return status;
}

struct carrier *carrier_to(const struct velo_port *port, velo_id_t peer)
{
    uint32_t index = network_route(port->network, port->id, peer);
    struct carrier *carrier = index == NETWORK_SHM ? NULL : carriers_of(port)->first;
    while (carrier && carrier->index != index)
        carrier = carrier->next;
    return carrier;
}

static bool carriers_reach(const struct velo_port *port, velo_id_t peer)
{
    return carrier_to(port, peer);
}

/* ---- closing --------------------------------------------------------------------------------- */

static bool is_done(struct carrier *carrier)
{
    bool done = true;
    pthread_mutex_lock(&carrier->lock);
    for (const struct velo_link *link = carrier->links; link && done; link = link_next(link))
        done = link_is_done(link);
    pthread_mutex_unlock(&carrier->lock);
    return done;
}

static void linger(struct carriers *carriers, int64_t end_ns)
{
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        while (!is_done(carrier) && wait_now_ns() < end_ns)
            if (!carriers_progress(carriers->port))
                (void)nap(carriers);
}

/* Progress sends what was held back: the thread need not come. */
static void release(struct carrier *carrier)
{
    if (!order_flag(&carrier->held))
        return;
    order_set_flag(&carrier->held, 0);
    attend_later();
}

/* From here on no peer can connect, and connected peers are told. */
static void close_links(struct carrier *carrier)
{
    pthread_mutex_lock(&carrier->lock);
    carrier->is_closing = true;
    for (struct velo_link *link = carrier->links; link; link = link_next(link))
        link_close(link);
    pthread_mutex_unlock(&carrier->lock);
}

/* Wait a while until all that was sent has left, then close them. */
static void carriers_close(struct velo_port *port)
{
    struct carriers *carriers = carriers_of(port);
    int64_t end_ns = wait_now_ns() + LINGER_NS;
    linger(carriers, end_ns);
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        close_links(carrier);
    linger(carriers, end_ns);
    attend_end(carriers);
    while (carriers->first) {
        struct carrier *carrier = carriers->first;
        carriers->first = carrier->next;
        while (carrier->links)
            link_free(carrier->links);
        release(carrier);
        carrier->transport->close(carrier->endpoint);
        pthread_mutex_destroy(&carrier->lock);
        free(carrier);
    }
    free(carriers);
    port->net_own = NULL;
    close(port->wake_fd);
    port->wake_fd = -1;
}

/* The carriers closed before the segment lost its name. */
static void nothing_left(struct velo_port *port) { (void)port; }

/* ---- progress and sleep ---------------------------------------------------------------------- */

void carrier_sent(struct carrier *carrier)
{
    if (!carrier->transport->sent)
        return;
    bool is_held = carrier->transport->sent(carrier->endpoint);
    if (is_held && !order_flag(&carrier->held)) {
        order_set_flag(&carrier->held, 1);
        order_set_flag(&carrier->held_is_due, attend_soon());
    } else if (!is_held) {
        release(carrier);
    }
}

static bool push_links(struct carrier *carrier)
{
    bool is_pushed = true;
    for (struct velo_link *link = carrier->links; link; link = link_next(link))
        is_pushed &= link_push(link);
    return is_pushed;
}

/* If another thread of the program has the lock, it does all the work, and we need not wait. If the
 * attending thread has it, we wait: it may have lost the processor, and needs ours. */
static bool progress(struct carrier *carrier)
{
    if (pthread_mutex_trylock(&carrier->lock) != 0) {
        if (!order_flag(&carrier->attended))
            return false;
        pthread_mutex_lock(&carrier->lock);
    }
    release(carrier);
    bool any = carrier->transport->progress(carrier->endpoint);
    order_set_flag(&carrier->pending, !push_links(carrier));
    links_sweep(carrier);
    carrier_sent(carrier);
    pthread_mutex_unlock(&carrier->lock);
    return any;
}

void carriers_attend(struct carriers *carriers)
{
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next) {
        order_set_flag(&carrier->attended, 1);
        (void)progress(carrier);
        order_set_flag(&carrier->attended, 0);
    }
}

/* The program may release its frames and hold others meanwhile: then these leave too early. */
bool carriers_attend_held(struct carriers *carriers)
{
    bool any_was_late = false;
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next) {
        if (!order_flag(&carrier->held))
            continue;
        if (order_flag(&carrier->held_is_due)) {
            (void)progress(carrier);
            any_was_late = true;
        }
        order_set_flag(&carrier->held_is_due, 1);
    }
    return any_was_late;
}

bool carriers_arm(struct carriers *carriers)
{
    bool is_armed = true;
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next) {
        if (!carrier->transport->arm)
            continue;
        pthread_mutex_lock(&carrier->lock);
        is_armed &= carrier->transport->arm(carrier->endpoint);
        pthread_mutex_unlock(&carrier->lock);
    }
    return is_armed;
}

void carriers_send_last(struct carriers *carriers)
{
    int64_t end_ns = wait_now_ns() + LAST_NS;
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next) {
        if (!carrier->transport->finish || !wait_lock(&carrier->lock, LAST_NS))
            continue;
        bool is_sent;
        do {
            is_sent = push_links(carrier);
            carrier->transport->finish(carrier->endpoint);
        } while (!is_sent && wait_now_ns() < end_ns);
        pthread_mutex_unlock(&carrier->lock);
    }
}

bool carriers_progress(struct velo_port *port)
{
    struct carriers *carriers = carriers_of(port);
    order_show(&carriers->looks, order_counter(&carriers->looks) + 1);
    bool any = false;
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        any |= progress(carrier);
    return any;
}

/* Other rings of the port must not starve those that come by frames. */
static void ring_paused(struct velo_port *port, const struct ring_rx *rx)
{
    (void)rx;
    (void)carriers_progress(port);
}

static bool sleep_on(const struct carriers *carriers, nfds_t first, int timeout_ms)
{
    struct pollfd files[NETWORK_TRANSPORTS_MAX];
    nfds_t len = 0;
    bool pending = false;
    files[len++] = (struct pollfd){.fd = carriers->port->wake_fd, .events = POLLIN};
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next) {
        files[len++] = (struct pollfd){.fd = carrier->transport->descriptor(carrier->endpoint),
                                       .events = POLLIN};
        pending |= order_flag(&carrier->pending) != 0;
    }
    if (pending && timeout_ms > ROOM_NAP_MS) /* No descriptor tells when there is room again. */
        timeout_ms = ROOM_NAP_MS;
    return poll(files + first, len - first, timeout_ms) < 0 && errno == EINTR;
}

static bool carriers_sleep(struct velo_port *port, int64_t timeout_ns)
{
    struct carriers *carriers = carriers_of(port);
    bool is_interrupted = false;
    if (order_peek_summary(&port->shared->summary) == 0 && carriers_arm(carriers))
        is_interrupted = sleep_on(carriers, 0, (int)((timeout_ns + 999999) / 1000000));
    wait_doorbell_drain(port->wake_fd);
    (void)carriers_progress(port);
    return is_interrupted;
}

/* Nothing wakes a thread that waits for room, so it looks again soon. */
static bool nap(struct carriers *carriers)
{
    return carriers_arm(carriers) && sleep_on(carriers, 1, ROOM_NAP_MS);
}

static bool sleep_for_room(struct velo_port *port, const uint32_t *credits, uint32_t seen,
                           int64_t timeout_ns)
{
    (void)credits, (void)seen, (void)timeout_ns;
    return nap(carriers_of(port));
}

static bool arm_port(struct velo_port *port) { return carriers_arm(carriers_of(port)); }

static bool add_descriptors(const struct velo_port *port, int epoll_fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int error = 0;
    const struct carrier *carrier = carriers_of(port)->first;
    for (; carrier && error == 0; carrier = carrier->next)
        error = epoll_ctl(epoll_fd, EPOLL_CTL_ADD,
                          carrier->transport->descriptor(carrier->endpoint), &event);
    return error == 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct net_calls carriers_calls = {
    .sleeps = SEG_SLEEPS_ON_FILES,
    .open = carriers_open,
    .leave = carriers_close,
    .close = nothing_left,
    .progress = carriers_progress,
    .ring_paused = ring_paused,
    .sleep = carriers_sleep,
    .add_descriptors = add_descriptors,
    .arm = arm_port,
    .sleep_for_room = sleep_for_room,
    .disconnect = link_disconnect,
    .reaches = carriers_reach,
    .connect = link_connect,
    .look = link_look,
    .expose = link_expose,
    .conceal = link_conceal,
    .fetch = link_fetch,
    .forget = link_forget,
};
