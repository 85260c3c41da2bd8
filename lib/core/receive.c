/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving: the poll, waiting, and the calls that do them. senders.h decides at which rings a poll
 * looks.
 */
#include "../base/cancel.h"
#include "../base/fork.h"
#include "../shm/wait.h"
#include "senders.h"
#include "spin.h"

#define REAP_INTERVAL_NS NS_PER_S
/* Looks at the doorbells before a poll says that there is nothing. */
#define BELL_ROUNDS 2
/* As timeout_ns, inside this file: a try, which gives VELO_AGAIN if nothing is there. */
#define NO_WAIT INT64_MIN
/* Polls between two looks at the clock: about a microsecond. */
#define POLLS_PER_CLOCK 64
/* Lingering is tried after this many waits in a row that brought one message each. If it did not
 * pay, it is not tried for LINGER_RETRY waits. A trial costs LINGER_PAUSES, some 200 ns: a fifth
 * of a ns a message. */
#define LINGER_AFTER 16
#define LINGER_RETRY 1000
#define LINGER_PAUSES 8
/* After this many messages without a wait, a receiver in place is far enough behind its sender to
 * ask for lines ahead. Before that the sender still has to write these lines. */
#define PEEK_RUN 8
#define PEEK_CELLS_AHEAD (4u * LINE_CELLS)
/* Below this time spinning is given up. It is tried again once in SPIN_PROBE_EVERY waits, and once
 * in SPIN_WHOLE_EVERY for as long as a port may spin: where both sides sleep in each wait, none
 * ends within the short probe, even if all would end soon once both spun. */
#define SPIN_MIN_NS 1000
#define SPIN_PROBE_EVERY 64
#define SPIN_PROBE_NS 2000
#define SPIN_WHOLE_EVERY 1024

/* Payloads of velo_recv_many() begin at multiples of this. */
#define MANY_ALIGN 8u

/* ---- the poll -------------------------------------------------------------------------------- */

/* Bring the cursor back into the active set and make its ring the current one. */
static void point(struct velo_port *port)
{
    if (port->cursor >= port->active_count)
        port->cursor = 0;
    struct ring_rx *rx = port->active_count ? port->active[port->cursor] : &port->none;
    /* Departures are told off the fast path, even if messages come without end. */
    if (unlikely(port->departed))
        rx = &port->none;
    uint64_t credits_due = rx->published + ring_at_line(port->shape.depth_slots / 4);
    uint64_t burst_end = rx->head + ring_at_line(RX_BURST);
    rx->pause_at = burst_end < credits_due ? burst_end : credits_due;
    port->current = rx;
}

static void advance(struct velo_port *port)
{
    port->cursor++;
    point(port);
}

static void publish_credits(struct ring_rx *rx)
{
    ring_rx_own_slots(rx);
    rx->published = rx->head;
    rx->data_published = rx->data_head;
    order_publish_credit(&rx->shared->data_consumed, rx->data_head);
    order_publish_credit(&rx->shared->consumed, rx->head);
    order_full_fence();
    if (order_read_waiting(&rx->shared->waiting))
        wait_wake((const uint32_t *)&rx->shared->consumed);
}

/* Show the counters to onlookers. This is done now and then: they are exact only in the port. */
static void show_counters(struct velo_port *port)
{
    order_show(&port->shared->rx_msgs, port->messages);
    order_show(&port->shared->rx_bytes, port->bytes);
}

/* Find the next message that has come: returns its ring, and fills in port->message. NULL: none. */
static struct ring_rx *find_message(struct velo_port *port)
{
    if (unlikely(port->departed))
        return NULL;
    for (int rounds = 0;; rounds++) {
        for (uint32_t left = port->active_count; left > 0; left--) {
            struct ring_rx *rx = port->active[port->cursor];
            uint64_t header = ring_rx_look(rx);
            if (ring_rx_match(rx, header)) {
                point(port);
                if (likely(ring_rx_locate(rx, header, port->shape.data_bytes, &port->message)))
                    return rx;
                rx_refuse(port, rx);
                left = port->active_count + 1;
            } else if (unlikely(rx->mode == RX_DRAINING)) {
                rx_settle(port, rx);
                left = port->active_count + 1; /* The set has changed: once round again. */
            } else {
                ring_rx_fetch_data(rx, port->shape.data_bytes);
                advance(port);
            }
        }
        point(port);
        /* A peer that rings without end must not keep us from coming back. */
        if (likely(order_peek_summary(&port->shared->summary) == 0) || rounds == BELL_ROUNDS)
            return NULL;
        rx_take_bells(port);
    }
}

/* The same; if there is none, look at the network, and then once more. */
hot_inline struct ring_rx *next_message(struct velo_port *port)
{
    struct ring_rx *rx = find_message(port);
    return !rx && port_look_at_net(port) ? find_message(port) : rx;
}

/* A busy ring must starve neither those that ring nor those that come over a network. */
static __attribute__((noinline)) void look_around(struct velo_port *port, const struct ring_rx *rx)
{
    if (port->has_net && port_enter_net(port)) {
        CANCEL_LATER();
        port->net->ring_paused(port, rx);
        port_leave_net(port);
    }
    rx_take_bells(port);
}

/* A ring has come to its pause: give credits back, then let the others have a turn. */
static __attribute__((noinline)) int pause_ring(struct velo_port *port, struct ring_rx *rx)
{
    if (rx->head - rx->published >= ring_at_line(port->shape.depth_slots / 4) ||
        rx->data_head - rx->data_published >= port->shape.data_bytes / 4)
        publish_credits(rx);
    rx->last_message = port->messages;
    show_counters(port);
    if (order_peek_summary(port->look))
        look_around(port, rx);
    advance(port);
    return VELO_OK;
}

/* Done with the message under the cursor. Returns VELO_OK, so that callers can end with this call.
 */
hot_inline int consume(struct velo_port *port, struct ring_rx *rx, uint32_t cells,
                       uint32_t len_bytes)
{
    port_step(port, rx, cells, len_bytes);
    return unlikely(rx->head >= rx->pause_at) ? pause_ring(port, rx) : VELO_OK;
}

/* The same for the message in port->message. */
static int consume_found(struct velo_port *port, struct ring_rx *rx)
{
    if (port->message.is_external)
        ring_rx_own_data(&port->message);
    ring_rx_expect_data(rx, port->message.data_end);
    rx->data_head = port->message.data_end;
    if (rx->data_head - rx->data_published >= port->shape.data_bytes / 4)
        rx->pause_at = rx->head + 1;
    rx->last_message = port->messages + 1;
    return consume(port, rx, port->message.cells, port->message.len_bytes);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The times of a wait. The clock is first read after about a microsecond of polling. */
struct wait_clock {
    int64_t start_ns;
    int64_t timeout_ns;
};

static bool timed_out(const struct wait_clock *clock, int64_t now_ns)
{
    return clock->timeout_ns >= 0 && now_ns - clock->start_ns >= clock->timeout_ns;
}

/* Is there a reason to end a wait without a message? See tell(). */
static bool is_to_end(const struct velo_port *port)
{
    return port->departed || order_flag(port->interrupt);
}

/* The time to spin now. If spinning has not paid for some time, it is only probed now and then. */
static int64_t spin_budget_ns(struct velo_port *port)
{
    if (port->spin_ns > 0 || port->spin_max_ns == 0)
        return port->spin_ns;
    if (++port->waits % SPIN_WHOLE_EVERY == 0)
        return port->spin_max_ns;
    return port->waits % SPIN_PROBE_EVERY == 0 ? SPIN_PROBE_NS : 0;
}

/* A message came while spinning, for at most `budget_ns`. */
static void spin_paid(struct velo_port *port, int64_t budget_ns)
{
    if (unlikely(port->spin_ns < port->spin_max_ns)) {
        int64_t longer = port->spin_ns > 0 ? port->spin_ns * 2 : budget_ns;
        port->spin_ns = longer < port->spin_max_ns ? longer : port->spin_max_ns;
        port->promote = true;
    }
}

static void spin_failed(struct velo_port *port)
{
    port->spin_ns = port->spin_ns / 2 >= SPIN_MIN_NS ? port->spin_ns / 2 : 0;
}

/* Spin for about a microsecond on a ring. Returns its next header, or 0. */
hot_inline uint64_t spin_current(const struct velo_port *port, struct ring_rx *rx)
{
    return spin_ring(port, rx, &port->shared->summary, POLLS_PER_CLOCK);
}

static struct ring_rx *spin(struct velo_port *port, struct wait_clock *clock)
{
    int64_t budget_ns = spin_budget_ns(port);
    if (budget_ns == 0)
        return NULL;
    for (uint32_t polls = 1;; polls++) {
        bool may_spin = spin_may(port, port->current);
        if (may_spin)
            (void)spin_current(port, port->current);
        else
            order_pause();
        struct ring_rx *rx = next_message(port);
        if (likely(rx)) {
            spin_paid(port, budget_ns);
            return rx;
        }
        if (unlikely(is_to_end(port)))
            return NULL;
        if (!may_spin && polls % POLLS_PER_CLOCK != 0)
            continue;
        show_counters(port);
        int64_t now_ns = wait_now_ns();
        if (clock->start_ns == 0)
            clock->start_ns = now_ns;
        if (now_ns - clock->start_ns >= budget_ns || timed_out(clock, now_ns))
            return NULL;
    }
}

/* The summary is compared again: a bit set before `sleeping` was seen ends the wait. True: a signal
 * handler ran. */
static bool sleep_for_message(struct velo_port *port, int64_t slice_ns)
{
    if (likely(!port->has_net))
        return wait_sleep(&port->shared->summary, 0, slice_ns);
    if (!port_enter_net(port))
        return true; /* It is this handler. */
    CANCEL_LATER();
    bool is_interrupted = port->net->sleep(port, slice_ns);
    port_leave_net(port);
    return is_interrupted;
}

/* Look at everything once more, and say how to wake this port. What comes after the look changes
 * the summary, and the sleeper compares that. False: there is no reason to sleep; *rx has a
 * message, or is_to_end(). */
static bool fall_asleep(struct velo_port *port, enum seg_sleep how, struct ring_rx **rx)
{
    port->promote = false; /* Rings that are empty now must ring from here on. */
    rx_park(port, true);
    VELO_HOOK(HOOK_LAST_LOOK);
    *rx = next_message(port);
    if (*rx || is_to_end(port))
        return false;
    show_counters(port);
    order_count(&port->shared->rx_sleeps, 1);
    VELO_HOOK(HOOK_ARM);
    order_set_sleeping(&port->shared->sleeping, how);
    return true;
}

static struct ring_rx *sleep_once(struct velo_port *port, int64_t slice_ns)
{
    struct ring_rx *rx;
    if (!fall_asleep(port, port->net->sleeps, &rx))
        return rx;
    bool handler_ran = sleep_for_message(port, slice_ns);
    order_set_sleeping(&port->shared->sleeping, SEG_AWAKE);
    rx = next_message(port);
    /* It ends this wait, not the next one, where something has come as well. */
    if (handler_ran && !rx && !port->departed)
        order_set_flag(port->interrupt, 1);
    return rx;
}

static void reap_now_and_then(struct velo_port *port, int64_t now_ns)
{
    if (now_ns - port->reaped_ns < REAP_INTERVAL_NS)
        return;
    port->reaped_ns = now_ns;
    rx_reap(port);
}

static struct ring_rx *sleep_until(struct velo_port *port, struct wait_clock *clock)
{
    struct ring_rx *rx = NULL;
    int64_t now_ns = wait_now_ns();
    if (clock->start_ns == 0)
        clock->start_ns = now_ns;
    while (!rx && !is_to_end(port) && !timed_out(clock, now_ns)) {
        reap_now_and_then(port, now_ns);
        int64_t left_ns = clock->timeout_ns - (now_ns - clock->start_ns);
        rx = sleep_once(port, clock->timeout_ns < 0 || left_ns > NS_PER_S ? NS_PER_S : left_ns);
        now_ns = wait_now_ns();
    }
    if (rx)
        spin_failed(port);
    port->promote = port->spin_ns > 0;
    return rx;
}

static bool arm_net(struct velo_port *port)
{
    if (!port_enter_net(port))
        return false;
    bool is_armed = port->net->arm(port);
    port_leave_net(port);
    return is_armed;
}

/* As sleep_once(), but the caller sleeps. A sender that rings, or the network, wakes it. */
int velo_port_arm(struct velo_port *port)
{
    CANCEL_LATER();
    GUARD(port, "port");
    if (!port)
        return VELO_ERR_ARG;
    if (port->held || port->epoll_fd < 0 || !fork_is_ours(port->process))
        return VELO_ERR_STATE;
    doorbell_drain(&port->doorbell);
    if (order_take_flag(port->interrupt))
        return VELO_ERR_INTERRUPTED;
    reap_now_and_then(port, wait_now_ns());
    struct ring_rx *rx;
    bool is_asleep = fall_asleep(port, SEG_ARMED, &rx);
    port->promote = port->spin_ns > 0;
    if (!is_asleep)
        return !rx && !port->departed && order_take_flag(port->interrupt) ? VELO_ERR_INTERRUPTED
                                                                          : VELO_AGAIN;
    /* A bit that was set before `sleeping` was seen rings nobody. */
    if (order_recheck_summary(&port->shared->summary) == 0 && arm_net(port))
        return VELO_OK;
    order_set_sleeping(&port->shared->sleeping, SEG_AWAKE);
    return VELO_AGAIN;
}

static struct ring_rx *wait_message(struct velo_port *port, int64_t timeout_ns)
{
    struct ring_rx *rx = next_message(port);
    if (rx || timeout_ns == 0 || timeout_ns == NO_WAIT || is_to_end(port))
        return rx;
    struct wait_clock clock = {.start_ns = 0, .timeout_ns = timeout_ns};
    rx = spin(port, &clock);
    return likely(rx) ? rx : sleep_until(port, &clock);
}

/* ---- receive --------------------------------------------------------------------------------- */

hot_inline void fill(struct velo_msg *msg, const struct ring_rx *rx, size_t len_bytes, uint8_t tag,
                     const void *data)
{
    if (!msg)
        return;
    msg->data = data;
    msg->len_bytes = len_bytes;
    msg->tag = tag;
    msg_source_tell(&rx->from, msg);
}

/* There is no message: return the reason. */
static cold_path int tell(struct velo_port *port, struct velo_msg *msg, int64_t timeout_ns)
{
    struct ring_rx *rx = port->departed;
    if (rx) {
        int status = rx->departure;
        fill(msg, rx, 0, 0, NULL);
        rx_forget_departed(port);
        point(port);
        return status;
    }
    if (timeout_ns == NO_WAIT)
        return VELO_AGAIN;
    return order_take_flag(port->interrupt) ? VELO_ERR_INTERRUPTED : VELO_TIMEOUT;
}

/* Take the message in port->message. */
static int recv_found(struct velo_port *port, struct ring_rx *rx, void *buf, size_t cap_bytes,
                      struct velo_msg *msg)
{
    const struct ring_message *found = &port->message;
    fill(msg, rx, found->len_bytes, found->tag, buf);
    if (found->len_bytes > cap_bytes)
        return VELO_ERR_TOO_BIG;
    if (found->len_bytes <= VELO_INLINE_BYTES)
        copy_small(buf, found->data, found->len_bytes);
    else
        copy_from_ring(buf, found->data, found->len_bytes);
    return consume_found(port, rx);
}

static int check_recv(const struct velo_port *port, const void *buf, size_t cap_bytes)
{
    if (!port || (!buf && cap_bytes > 0))
        return VELO_ERR_ARG;
    if (unlikely(port->has_net) && !fork_is_ours(port->process))
        return fork_refuse("port");
    return port->held ? VELO_ERR_STATE : VELO_OK;
}

/* All that the hot path does not do: checks, other rings, waiting. */
static __attribute__((noinline)) int recv_slow(struct velo_port *port, void *buf, size_t cap_bytes,
                                               struct velo_msg *msg, int64_t timeout_ns)
{
    int status = check_recv(port, buf, cap_bytes);
    if (status)
        return status;
    struct ring_rx *rx = wait_message(port, timeout_ns);
    if (!rx)
        return tell(port, msg, timeout_ns);
    return recv_found(port, rx, buf, cap_bytes, msg);
}

/* A header in the current ring that is not a short message that fits. */
static __attribute__((noinline)) int recv_long(struct velo_port *port, void *buf, size_t cap_bytes,
                                               struct velo_msg *msg, int64_t timeout_ns)
{
    struct ring_rx *rx = port->current;
    uint64_t header = order_read_header(rx->cell);
    /* A peer may have changed it since it matched. */
    if (unlikely(!ring_rx_match(rx, header) ||
                 !ring_rx_locate(rx, header, port->shape.data_bytes, &port->message)))
        return recv_slow(port, buf, cap_bytes, msg, timeout_ns); /* It refuses the message. */
    return recv_found(port, rx, buf, cap_bytes, msg);
}

/* The whole way of the usual case: a short message in the current ring. Each exit is a tail call. A
 * payload of one word has a way of its own, since that is what streams of small messages have. */
hot_inline int recv_matched(struct velo_port *port, struct ring_rx *rx, uint64_t header, void *buf,
                            size_t cap_bytes, struct velo_msg *msg, int64_t timeout_ns)
{
    uint32_t len_bytes = ring_len(header);
    if (unlikely((header & VELO_HEADER_EXTERNAL_MASK) || len_bytes > cap_bytes))
        return recv_long(port, buf, cap_bytes, msg, timeout_ns);
    if (len_bytes == CELL_WORD_BYTES) {
        memcpy(buf, rx->cell + 1, CELL_WORD_BYTES);
        fill(msg, rx, CELL_WORD_BYTES, ring_tag(header), buf);
        return consume(port, rx, 1, CELL_WORD_BYTES);
    }
    uint32_t cells = ring_cells(len_bytes);
    if (unlikely(!ring_rx_holds(rx, cells)))
        return recv_long(port, buf, cap_bytes, msg, timeout_ns);
    copy_small(buf, rx->cell + 1, len_bytes);
    fill(msg, rx, len_bytes, ring_tag(header), buf);
    return consume(port, rx, ring_cells_guessed(cells), len_bytes);
}

int velo_try_recv(struct velo_port *port, void *buf, size_t cap_bytes, struct velo_msg *msg)
{
    GUARD(port, "port");
    if (likely(port && buf)) {
        struct ring_rx *rx = port->current;
        uint64_t header = ring_rx_look(rx);
        if (likely(ring_rx_match(rx, header))) {
            ring_rx_fetch_line(rx, CELLS_AHEAD);
            return recv_matched(port, rx, header, buf, cap_bytes, msg, NO_WAIT);
        }
    }
    return recv_slow(port, buf, cap_bytes, msg, NO_WAIT);
}

/* If a receiver keeps up with a stream slot by slot, it takes each line from its sender's cache
 * while the sender writes there, and both run at one hop a message. Only a trial can tell a stream
 * from a ping-pong: now and then, linger before polling again. In a stream several messages have
 * come meanwhile, and lingering goes on while that is so. In a ping-pong one message has come, and
 * lingering is not tried again for a while. */
static void linger(struct velo_port *port, const struct ring_rx *rx)
{
    uint64_t came = port->messages - port->messages_before;
    port->messages_before = port->messages;
    if (came > 1) {
        port->singles = 0;
    } else if (port->lingering) {
        port->lingering = false;
        port->singles = -LINGER_RETRY;
    } else if (++port->singles >= LINGER_AFTER) {
        port->lingering = true;
        port->singles = 0;
    }
    if (!port->lingering)
        return;
    for (int i = 0; i < LINGER_PAUSES; i++)
        order_pause();
    for (uint32_t ahead = 0; ahead < CELLS_AHEAD; ahead += LINE_CELLS)
        ring_rx_fetch_line(rx, ahead);
}

/* Nothing is there yet. A function of its own, so that the way without a wait needs no stack. */
static __attribute__((noinline)) int recv_spin(struct velo_port *port, void *buf, size_t cap_bytes,
                                               struct velo_msg *msg, int64_t timeout_ns)
{
    struct ring_rx *rx = port->current;
    uint64_t header = 0;
    if (timeout_ns != 0 && spin_may(port, rx)) {
        linger(port, rx);
        header = spin_current(port, rx);
    }
    if (likely(header)) {
        spin_paid(port, SPIN_PROBE_NS);
        return recv_matched(port, rx, header, buf, cap_bytes, msg, timeout_ns);
    }
    return recv_slow(port, buf, cap_bytes, msg, timeout_ns);
}

int velo_recv(struct velo_port *port, void *buf, size_t cap_bytes, struct velo_msg *msg,
              int64_t timeout_ns)
{
    GUARD(port, "port");
    if (unlikely(timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    if (unlikely(!port || !buf))
        return recv_slow(port, buf, cap_bytes, msg, timeout_ns);
    struct ring_rx *rx = port->current;
    uint64_t header = ring_rx_look(rx);
    if (unlikely(!ring_rx_match(rx, header)))
        return recv_spin(port, buf, cap_bytes, msg, timeout_ns);
    ring_rx_fetch_line(rx, CELLS_AHEAD);
    return recv_matched(port, rx, header, buf, cap_bytes, msg, timeout_ns);
}

/* Take a message that is there and fits, without a wait. What there is to tell stays for the next
 * call. */
hot_inline bool recv_another(struct velo_port *port, void *buf, size_t cap_bytes,
                             struct velo_msg *msg)
{
    struct ring_rx *rx = port->current;
    uint64_t header = ring_rx_look(rx);
    uint32_t len_bytes = ring_len(header);
    uint32_t cells = ring_cells(len_bytes);
    if (likely(ring_rx_match(rx, header)) && likely(!(header & VELO_HEADER_EXTERNAL_MASK)) &&
        likely(len_bytes <= cap_bytes) && likely(ring_rx_holds(rx, cells))) {
        ring_rx_fetch_line(rx, CELLS_AHEAD);
        fill(msg, rx, len_bytes, ring_tag(header), buf);
        if (len_bytes == CELL_WORD_BYTES) {
            memcpy(buf, rx->cell + 1, CELL_WORD_BYTES);
            return consume(port, rx, 1, CELL_WORD_BYTES) == VELO_OK;
        }
        copy_small(buf, rx->cell + 1, len_bytes);
        return consume(port, rx, ring_cells_guessed(cells), len_bytes) == VELO_OK;
    }
    rx = next_message(port);
    return rx && recv_found(port, rx, buf, cap_bytes, msg) == VELO_OK;
}

/* Where the next payload of a call begins, behind one of a length at `at`. */
static size_t behind_payload(size_t at, size_t len_bytes, size_t cap_bytes)
{
    size_t next = (at + len_bytes + MANY_ALIGN - 1) & ~(size_t)(MANY_ALIGN - 1);
    return next < cap_bytes ? next : cap_bytes;
}

/* Take what is there beside the first message, which stands in msgs[0]. Returns the number of all.
 */
static int recv_more(struct velo_port *port, struct velo_msg *msgs, int msgs_max, char *buf,
                     size_t cap_bytes)
{
    GUARD(port, "port");
    size_t at = behind_payload(0, msgs[0].len_bytes, cap_bytes);
    int count = 1;
    while (count < msgs_max &&
           recv_another(port, buf ? buf + at : NULL, cap_bytes - at, &msgs[count])) {
        at = behind_payload(at, msgs[count].len_bytes, cap_bytes);
        count++;
    }
    return count;
}

int velo_recv_many(struct velo_port *port, struct velo_msg *msgs, int msgs_max, void *buf,
                   size_t cap_bytes, int64_t timeout_ns)
{
    if (unlikely(!msgs || msgs_max < 1))
        return VELO_ERR_ARG;
    int status = velo_recv(port, buf, cap_bytes, msgs, timeout_ns);
    return unlikely(status) ? status : recv_more(port, msgs, msgs_max, buf, cap_bytes);
}

/* ---- receive in place ------------------------------------------------------------------------ */

/* Nothing can be received until it is released: the fast path finds no match in `none`. */
hot_inline void hold(struct velo_port *port, struct ring_rx *rx, struct velo_msg *msg)
{
    fill(msg, rx, port->message.len_bytes, port->message.tag, port->message.data);
    port->held = rx;
    port->current = &port->none;
}

hot_inline int peek_anywhere(struct velo_port *port, struct velo_msg *msg, int64_t timeout_ns)
{
    struct ring_rx *rx = wait_message(port, timeout_ns);
    if (!rx)
        return tell(port, msg, timeout_ns);
    hold(port, rx, msg);
    return VELO_OK;
}

/* Is there nothing in the rings that are looked at? The caller has just looked at `seen`. */
hot_inline bool rings_are_empty(const struct velo_port *port, const struct ring_rx *seen)
{
    for (uint32_t i = 0; i < port->active_count; i++) {
        struct ring_rx *rx = port->active[i];
        ring_rx_fetch_data(rx, port->shape.data_bytes);
        if (rx->mode != RX_POLLED || (rx != seen && ring_rx_match(rx, ring_rx_look(rx))))
            return false;
    }
    return true;
}

/* Where a network carries all messages, a try polls it first, even if the rings hold messages. */
static cold_path int peek_net(struct velo_port *port, struct velo_msg *msg, int64_t timeout_ns)
{
    if (port->net->carries_all && timeout_ns == NO_WAIT &&
        order_peek_summary(&port->shared->summary) == 0 && !port_net_progress(port) &&
        rings_are_empty(port, NULL)) {
        port->messages_before = port->messages;
        return VELO_AGAIN;
    }
    return peek_anywhere(port, msg, timeout_ns);
}

static __attribute__((noinline)) int peek_slow(struct velo_port *port, struct velo_msg *msg,
                                               int64_t timeout_ns)
{
    if (port->held)
        return VELO_ERR_STATE;
    if (unlikely(port->has_net))
        return peek_net(port, msg, timeout_ns);
    return peek_anywhere(port, msg, timeout_ns);
}

/* The usual case: a message in the current ring. False: take a closer look. */
hot_inline bool peek_current(struct velo_port *port, struct ring_rx *rx, uint64_t header,
                             struct velo_msg *msg)
{
    if (unlikely(!ring_rx_locate(rx, header, port->shape.data_bytes, &port->message)))
        return false;
    if (port->messages - port->messages_before >= PEEK_RUN)
        ring_rx_fetch_line(rx, PEEK_CELLS_AHEAD);
    hold(port, rx, msg);
    return true;
}

/* Nothing is there yet: as recv_spin(). */
static __attribute__((noinline)) int peek_spin(struct velo_port *port, struct velo_msg *msg,
                                               int64_t timeout_ns)
{
    struct ring_rx *rx = port->current;
    if (timeout_ns != 0 && spin_may(port, rx)) {
        linger(port, rx);
        uint64_t header = spin_current(port, rx);
        if (likely(header) &&
            likely(ring_rx_locate(rx, header, port->shape.data_bytes, &port->message))) {
            spin_paid(port, SPIN_PROBE_NS);
            hold(port, rx, msg);
            return VELO_OK;
        }
    }
    return peek_slow(port, msg, timeout_ns);
}

/* Callers with a loop of their own mostly poll in vain: keep that short. False: take a closer look.
 */
hot_inline bool is_empty(struct velo_port *port, const struct ring_rx *seen)
{
    if (order_peek_summary(port->look) || port->held || port->departed)
        return false;
    return rings_are_empty(port, seen);
}

int velo_try_peek(struct velo_port *port, struct velo_msg *msg)
{
    GUARD(port, "port");
    if (unlikely(!port || !msg))
        return VELO_ERR_ARG;
    struct ring_rx *rx = port->current;
    uint64_t header = ring_rx_look(rx);
    if (ring_rx_match(rx, header)) {
        if (likely(peek_current(port, rx, header, msg)))
            return VELO_OK;
    } else if (likely(is_empty(port, rx))) {
        port->messages_before = port->messages;
        return VELO_AGAIN;
    }
    return peek_slow(port, msg, NO_WAIT);
}

int velo_peek(struct velo_port *port, struct velo_msg *msg, int64_t timeout_ns)
{
    GUARD(port, "port");
    if (unlikely(timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    if (unlikely(!port || !msg))
        return VELO_ERR_ARG;
    struct ring_rx *rx = port->current;
    uint64_t header = ring_rx_look(rx);
    if (likely(ring_rx_match(rx, header)) && likely(peek_current(port, rx, header, msg)))
        return VELO_OK;
    return peek_spin(port, msg, timeout_ns);
}

/* Let go of the held message, which stays in its ring. Returns the ring, or NULL. */
hot_inline struct ring_rx *unhold(struct velo_port *port)
{
    struct ring_rx *rx = port->held;
    if (likely(rx)) {
        port->held = NULL;
        port->current = rx;
    }
    return rx;
}

bool port_held_word(const struct velo_port *port, uint64_t *word)
{
    *word = port->message.word;
    return port->held && port->message.is_external;
}

int velo_release(struct velo_port *port)
{
    GUARD(port, "port");
    if (unlikely(!port))
        return VELO_ERR_ARG;
    struct ring_rx *rx = unhold(port);
    return likely(rx) ? consume_found(port, rx) : VELO_ERR_STATE;
}

int velo_defer(struct velo_port *port)
{
    GUARD(port, "port");
    if (!port)
        return VELO_ERR_ARG;
    struct ring_rx *rx = unhold(port);
    if (!rx)
        return VELO_ERR_STATE;
    rx_defer(port, rx);
    point(port);
    return VELO_OK;
}

int velo_resume(struct velo_port *port)
{
    GUARD(port, "port");
    if (!port)
        return VELO_ERR_ARG;
    rx_resume(port);
    if (!port->held)
        point(port);
    return VELO_OK;
}
