/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <errno.h>
#include <poll.h>

#include "../shm/wait.h"
#include "link_out.h"
#include "links.h"

/* A process that ends waits so long for its last messages to be taken, and for a thread of its own
 * to leave a call: that may be the one that ends it, by exit() in a signal handler. */
#define LAST_NS NS_PER_S
/* Between two looks where descriptors cannot be waited for. */
#define BLIND_NS 1000000

/* ---- progress -------------------------------------------------------------------------------- */

/* If another thread of the program has the lock, it does all the work, and we need not wait. If the
 * attending thread has it, we wait: it may have lost the processor, and needs ours. */
static bool progress_carrier(struct carrier *carrier)
{
    if (pthread_mutex_trylock(&carrier->lock) != 0) {
        if (!order_flag(&carrier->attended))
            return false;
        pthread_mutex_lock(&carrier->lock);
    }
    carrier_release(carrier);
    bool any = carrier->transport->progress(carrier->endpoint);
    order_set_flag(&carrier->pending, !links_push(carrier));
    links_sweep(carrier);
    carrier_sent(carrier);
    pthread_mutex_unlock(&carrier->lock);
    return any;
}

void carriers_attend(struct carriers *carriers)
{
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next) {
        order_set_flag(&carrier->attended, 1);
        (void)progress_carrier(carrier);
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
            (void)progress_carrier(carrier);
            any_was_late = true;
        }
        order_set_flag(&carrier->held_is_due, 1);
    }
    return any_was_late;
}

void carriers_send_last(struct carriers *carriers)
{
    int64_t end_ns = wait_now_ns() + LAST_NS;
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next) {
        if (!carrier->transport->finish || !wait_lock(&carrier->lock, LAST_NS))
            continue;
        bool is_sent;
        do {
            is_sent = links_push(carrier);
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
        any |= progress_carrier(carrier);
    return any;
}

/* ---- sleep ----------------------------------------------------------------------------------- */

/* Until a transport, or one of two files (-1: none), has something. True: a signal handler ran. */
static bool sleep_on(const struct carriers *carriers, int file, int other_file, int64_t timeout_ns)
{
    struct pollfd files[NETWORK_TRANSPORTS_MAX + 2];
    nfds_t len = 0;
    files[len++] = (struct pollfd){.fd = file, .events = POLLIN};
    files[len++] = (struct pollfd){.fd = other_file, .events = POLLIN};
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        files[len++] = (struct pollfd){.fd = carrier->transport->descriptor(carrier->endpoint),
                                       .events = POLLIN};
    if (poll(files, len, (int)((timeout_ns + 999999) / 1000000)) >= 0)
        return false;
    if (errno == EINTR)
        return true;
    /* There is no memory to wait with: who looks again at once would take a core to itself. */
    return wait_nap(timeout_ns < BLIND_NS ? timeout_ns : BLIND_NS);
}

bool carriers_sleep(struct velo_port *port, int64_t timeout_ns)
{
    struct carriers *carriers = carriers_of(port);
    bool is_interrupted = false;
    if (order_recheck_summary(&port->shared->summary) == 0 && carriers_arm(carriers))
        is_interrupted =
            sleep_on(carriers, port->doorbell.near_fd, port->doorbell.far_fd, timeout_ns);
    doorbell_drain(&port->doorbell);
    (void)carriers_progress(port);
    return is_interrupted;
}

void carriers_nap(struct carriers *carriers, int64_t timeout_ns)
{
    if (carriers_arm(carriers))
        (void)sleep_on(carriers, -1, -1, timeout_ns);
}

bool carriers_sleep_for_room(struct velo_conn *conn, const uint32_t *credits, uint32_t seen,
                             int64_t timeout_ns)
{
    struct carriers *carriers = carriers_of(conn->port);
    struct velo_link *link = link_of(conn);
    pthread_mutex_t *lock = &link->carrier->lock;
    bool is_interrupted = false;
    pthread_mutex_lock(lock);
    bool is_full = link_out_await_room(link, credits, seen);
    pthread_mutex_unlock(lock);
    if (!is_full)
        return false;
    if (carriers_arm(carriers))
        is_interrupted = sleep_on(carriers, link->room_fd, -1, timeout_ns);
    pthread_mutex_lock(lock);
    link_out_leave_room(link);
    pthread_mutex_unlock(lock);
    return is_interrupted;
}
