/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <errno.h>
#include <poll.h>

#include "../shm/wait.h"
#include "links.h"

/* A thread that waits for room looks again after this time: another thread may have taken in the
 * credits that it waits for. */
#define ROOM_NAP_MS 1
/* A process that ends waits so long for its last messages to be taken, and for a thread of its own
 * to leave a call: that may be the one that ends it, by exit() in a signal handler. */
#define LAST_NS NS_PER_S

/* ---- progress -------------------------------------------------------------------------------- */

/* If another thread of the program has the lock, it does all the work, and we need not wait. If the
 * attending thread has it, we wait: it may have lost the processor, and needs ours. */
static bool progress(struct carrier *carrier)
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
        any |= progress(carrier);
    return any;
}

/* ---- sleep ----------------------------------------------------------------------------------- */

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

bool carriers_sleep(struct velo_port *port, int64_t timeout_ns)
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
bool carriers_nap(struct carriers *carriers)
{
    return carriers_arm(carriers) && sleep_on(carriers, 1, ROOM_NAP_MS);
}
