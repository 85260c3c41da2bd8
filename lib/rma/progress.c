/* SPDX-License-Identifier: Apache-2.0 */
/* Progress, waiting, and the notification queue. */
#include "../base/error.h"
#include "../shm/wait.h"
#include "no_device.h"
#include "unit.h"

/* Messages taken in by one call. */
#define MESSAGES_PER_CALL 256
/* Calls between two checks whether peers live that owe us an answer. */
#define POLLS_PER_CHECK 4096
/* Polls in vain between two looks whether a full ring has room again. Who makes room mostly
 * answers, too. */
#define POLLS_PER_ROOM 8
/* The longest sleep when something has to be sent and its ring is full: nothing wakes us for that.
 */
#define FULL_SLICE_NS 200000

/* Handle a message that came over our port. False: it cannot be taken now. */
static bool handle_message(struct velo_rma *rma, const struct velo_msg *msg, int *ended)
{
    switch (msg->tag) {
    case WIRE_REQUEST: {
        bool served = rma_serve_request(rma, msg);
        *ended += served;
        return served;
    }
    case WIRE_ANSWER:
        *ended += rma_ask_answered(rma, msg);
        return true;
    case WIRE_NOTE:
        return rma_serve_note(rma, msg);
    default:
        return true;
    }
}

/* Resume deferred connections if their messages can be taken now. */
static void resume_deferred(struct velo_rma *rma)
{
    if (!rma->deferred || (rma->stalled && !queue_has_room(rma)))
        return;
    rma->deferred = false;
    rma->stalled = false;
    rma->is_plain = rma->device == &rma_no_device;
    (void)velo_resume(rma->port);
}

hot_inline int peek_plain(const struct velo_rma *rma, struct velo_msg *msg, int64_t timeout_ns)
{
    return timeout_ns ? velo_peek(rma->port, msg, timeout_ns) : velo_try_peek(rma->port, msg);
}

/* For a unit that is not plain: something is deferred, or a device takes part. */
static cold_path int peek_closely(struct velo_rma *rma, struct velo_msg *msg, int64_t timeout_ns)
{
    resume_deferred(rma);
    return rma->device->peek(rma, msg, timeout_ns);
}

int rma_progress(struct velo_rma *rma, int64_t timeout_ns)
{
    struct velo_msg msg;
    int ended = 0;
    int status = likely(rma->is_plain) ? peek_plain(rma, &msg, timeout_ns)
                                       : peek_closely(rma, &msg, timeout_ns);
    rma->interrupted = status == VELO_ERR_INTERRUPTED;
    int taken = 0;
    for (; status == VELO_OK; taken++) {
        if (handle_message(rma, &msg, &ended)) {
            (void)velo_release(rma->port);
        } else {
            (void)velo_defer(rma->port);
            rma->deferred = true;
            rma->is_plain = false;
        }
        status = taken < MESSAGES_PER_CALL ? velo_try_peek(rma->port, &msg) : VELO_AGAIN;
    }
    rma_serve_answer(rma);
    if (unlikely(rma->ops_used > 0)) {
        if (unlikely(rma->leaving > 0))
            ended += rma_ask_end_leaving(rma, taken <= MESSAGES_PER_CALL && !rma->stalled);
        ended += rma->device->progress(rma);
        bool looks_for_room =
            taken > 0 || timeout_ns != 0 || !rma->is_plain || rma->polls % POLLS_PER_ROOM == 0;
        for (struct velo_rma_peer *peer = rma->peers; peer && looks_for_room; peer = peer->next)
            ended += rma_ask_pump(peer);
        if (++rma->polls % POLLS_PER_CHECK == 0)
            rma_ask_check_peers(rma);
    }
    return ended;
}

int velo_rma_progress(struct velo_rma *rma)
{
    return likely(rma) ? rma_progress(rma, 0) : velo_fail(VELO_ERR_ARG, "rma is NULL");
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool is_blocked(const struct velo_rma *rma)
{
    bool blocked = rma->deferred || rma->leaving > 0;
    for (const struct velo_rma_peer *peer = rma->peers; peer && !blocked; peer = peer->next)
        blocked = peer->sending || peer->waiting.head;
    return blocked;
}

/* Wait a while for something to come. VELO_OK, VELO_TIMEOUT or VELO_ERR_INTERRUPTED. */
static int wait_a_while(struct velo_rma *rma, int64_t start_ns, int64_t timeout_ns)
{
    int64_t now_ns = wait_now_ns();
    int64_t slice_ns = is_blocked(rma) ? FULL_SLICE_NS : WAIT_SLICE_NS;
    int64_t left_ns = timeout_ns < 0 ? INT64_MAX : timeout_ns - (now_ns - start_ns);
    if (left_ns <= 0)
        return VELO_TIMEOUT;
    (void)rma_progress(rma, left_ns < slice_ns ? left_ns : slice_ns);
    if (rma->ops_used > 0 && wait_now_ns() - now_ns >= WAIT_SLICE_NS)
        rma_ask_check_peers(rma);
    return rma->interrupted ? VELO_ERR_INTERRUPTED : VELO_OK;
}

int velo_rma_flush(struct velo_rma_peer *peer, int64_t timeout_ns)
{
    if (!peer || timeout_ns < VELO_FOREVER)
        return velo_fail(VELO_ERR_ARG, "peer is NULL, or timeout_ns below -1");
    struct velo_rma *rma = peer->rma;
    if (likely(peer_is_idle(peer)))
        return peer->gone;
    (void)rma_progress(rma, 0);
    int64_t start_ns = wait_now_ns();
    while (!peer_is_idle(peer)) {
        if (rma->stalled)
            return VELO_AGAIN;
        int status = wait_a_while(rma, start_ns, timeout_ns);
        if (status && !peer_is_idle(peer))
            return status;
    }
    return peer->gone;
}

/* ---- event loops ----------------------------------------------------------------------------- */

int velo_rma_fd(struct velo_rma *rma, int *fd) { return velo_port_fd(rma ? rma->port : NULL, fd); }

int velo_rma_arm(struct velo_rma *rma)
{
    if (!rma)
        return velo_fail(VELO_ERR_ARG, "rma is NULL");
    bool is_idle = rma->queue_head == rma->queue_tail && !is_blocked(rma);
    return is_idle ? velo_port_arm(rma->port) : VELO_AGAIN;
}

/* ---- the queue ------------------------------------------------------------------------------- */

int velo_rma_try_poll(struct velo_rma *rma, struct velo_rma_notification *notifications,
                      int notifications_max)
{
    if (unlikely(!rma || !notifications || notifications_max < 1))
        return velo_fail(VELO_ERR_ARG, "rma or notifications is NULL, or there is room for none");
    (void)rma_progress(rma, 0);
    int taken = 0;
    while (rma->queue_head != rma->queue_tail && taken < notifications_max)
        notifications[taken++] = rma->queue[rma->queue_head++ % VELO_RMA_NOTIFICATIONS_MAX];
    if (rma->queue_head == rma->queue_tail)
        rma->queue_head = rma->queue_tail = 0; /* Its first lines are in the cache. */
    return taken;
}

int velo_rma_poll(struct velo_rma *rma, struct velo_rma_notification *notifications,
                  int notifications_max, int64_t timeout_ns)
{
    if (unlikely(timeout_ns < VELO_FOREVER))
        return velo_fail(VELO_ERR_ARG, "timeout_ns is below -1");
    int taken = velo_rma_try_poll(rma, notifications, notifications_max);
    if (taken != 0)
        return taken;
    int64_t start_ns = wait_now_ns();
    int ending = VELO_OK;
    while (taken == 0 && ending == VELO_OK) {
        ending = wait_a_while(rma, start_ns, timeout_ns);
        taken = velo_rma_try_poll(rma, notifications, notifications_max);
    }
    return taken ? taken : ending;
}
