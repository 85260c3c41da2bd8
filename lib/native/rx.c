/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving. A poll looks at the active rings: those polled for good, and those that rang and are
 * not empty yet. All others are parked: their senders set a doorbell bit after each message, and
 * one summary word tells whether any bit is set. So the cost of a poll follows the senders that are
 * busy, not those that are connected; and a receiver goes to sleep by parking everything.
 */
#include <stdlib.h>

#include "../error.h"
#include "port.h"
#include "wait.h"

/* A polled ring is stale when others have brought so many messages since its last. */
#define STALE_MESSAGES 256
#define REAP_INTERVAL_NS NS_PER_S
/* Looks at the doorbells before a poll says that there is nothing. */
#define BELL_ROUNDS 2
/* As timeout_ns, inside this file: a try, for which nothing there is VELO_AGAIN. */
#define NO_WAIT INT64_MIN
/* Polls between two looks at the clock: about a microsecond. */
#define POLLS_PER_CLOCK 64
/* Waits in a row that brought one message each, before lingering is tried; and how long to let it
 * be when it did not pay. A trial costs LINGER_PAUSES, some 200 ns: a fifth of a ns a message. */
#define LINGER_AFTER 16
#define LINGER_RETRY 1000
#define LINGER_PAUSES 8
/* Below this, spinning is given up; every so many waits it is tried again for so long. */
#define SPIN_MIN_NS 1000
#define SPIN_PROBE_EVERY 64
#define SPIN_PROBE_NS 2000

int rx_open(struct velo_port *port)
{
    const struct seg_shape *shape = &port->shape;
    static const uint64_t empty_slot[SLOT_WORDS];
    port->none.slot = empty_slot;
    port->none.expect = VELO_HEADER_VALID_MASK;
    port->current = &port->none;
    port->active = calloc(shape->conns_max, sizeof(struct ring_rx *));
    port->rings = calloc(shape->conns_max, sizeof *port->rings);
    if (!port->active || !port->rings)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for %u connections", shape->conns_max);
    return VELO_OK;
}

void rx_close(struct velo_port *port)
{
    /* Senders that wait for room find the segment closed. */
    for (uint32_t i = 0; port->segment && i < port->shape.conns_max; i++)
        if (port->rings[i].shared)
            wait_wake((const uint32_t *)&port->rings[i].shared->consumed);
    free(port->active);
    free(port->rings);
}

/* ---- connections come and go ------------------------------------------------------------------
 */

static void activate(struct velo_port *port, struct ring_rx *rx)
{
    if (rx->mode == RX_POLLED) {
        port->polled_count--;
        order_set_bell(&rx->shared->bell, BELL_RING);
    } else if (rx->mode != RX_DRAINING) {
        port->active[port->active_count++] = rx;
    }
    rx->mode = RX_DRAINING;
    rx->drain_start = port->messages;
}

/* Drop the active ring under the cursor. */
static void deactivate(struct velo_port *port, struct ring_rx *rx, enum rx_mode mode)
{
    if (rx->mode == RX_POLLED)
        port->polled_count--;
    rx->mode = mode;
    port->active[port->cursor] = port->active[--port->active_count];
    if (port->cursor >= port->active_count)
        port->cursor = 0;
}

static void admit(struct velo_port *port, uint32_t index, uint64_t entry)
{
    struct ring_rx *rx = &port->rings[index];
    rx->shared = seg_ring(port->segment, index);
    rx->index = index;
    rx->source = entry_source(entry);
    rx->slot_mask = port->shape.depth_slots - 1;
    rx->ending = false;
    rx->mode = RX_PARKED;
    ring_rx_seek(rx, rx->head);
    order_count(&port->shared->rx_conns, 1);
}

static void free_entry(struct velo_port *port, uint32_t index)
{
    order_publish_entry(&port->segment->entries[index], entry_pack(ENTRY_FREE, 0, 0));
}

/* The ring is empty and its sender gone: ready for the next one, from this position on. */
static void retire(struct velo_port *port, struct ring_rx *rx)
{
    seg_ring_release(port->segment, rx->index);
    order_set_bell(&rx->shared->bell, BELL_RING);
    order_store_data_credit(&rx->shared->data_consumed, rx->data_head);
    order_publish_credit(&rx->shared->consumed, rx->head);
    rx->published = rx->head;
    rx->data_published = rx->data_head;
    rx->ending = false;
    order_count(&port->shared->rx_conns, UINT64_MAX);
    free_entry(port, rx->index);
}

static void retire_refused(struct velo_port *port, struct ring_rx *rx)
{
    rx->mode = RX_ABSENT;
    retire(port, rx);
}

/* Never read this ring again. Its sender learns it when it rings or waits; one that has left, or
 * that leaves later, has the entry freed by end(). */
static void refuse(struct velo_port *port, struct ring_rx *rx)
{
    uint64_t *entry = &port->segment->entries[rx->index];
    order_count(&port->shared->rx_errors, 1);
    for (uint32_t i = 0; i < port->active_count; i++) {
        if (port->active[i] == rx) {
            port->cursor = i;
            deactivate(port, rx, RX_REFUSED);
        }
    }
    order_set_bell(&rx->shared->bell, BELL_RING);
    uint64_t now = order_read_entry(entry);
    if (entry_state(now) == ENTRY_READY && !rx->ending &&
        order_claim_entry(entry, now, entry_pack(ENTRY_REFUSED, rx->source, entry_nonce(now))))
        wait_wake((const uint32_t *)&rx->shared->consumed);
    else
        retire_refused(port, rx);
}

/* A sender that does not live, or says that it left. */
static void end(struct velo_port *port, uint32_t index, uint64_t entry)
{
    struct ring_rx *rx = &port->rings[index];
    if (rx->mode == RX_ABSENT) {
        if (entry_state(entry) != ENTRY_READY && entry_state(entry) != ENTRY_ENDED) {
            free_entry(port, index); /* It never came to send; the ring may have no memory. */
            return;
        }
        admit(port, index, entry);
    }
    if (rx->mode == RX_REFUSED) {
        retire_refused(port, rx);
        return;
    }
    rx->ending = true;
    activate(port, rx);
}

/* Look for senders that died without a word. */
static void reap(struct velo_port *port)
{
    order_set_flag(&port->shared->reap_request, 0);
    for (uint32_t i = 0; i < port->shape.conns_max; i++) {
        uint64_t entry = order_read_entry(&port->segment->entries[i]);
        enum entry_state state = entry_state(entry);
        if (state == ENTRY_FREE || port->rings[i].ending)
            continue;
        if (state == ENTRY_ENDED || state == ENTRY_GIVEN_UP) {
            end(port, i, entry);
        } else if (!seg_sender_alive(port->segment, i, entry) &&
                   order_read_entry(&port->segment->entries[i]) == entry) {
            /* A sender that leaves changes the entry before it gives up its lock. */
            order_count(&port->shared->rx_reclaimed, 1);
            end(port, i, entry);
        }
    }
}

/* ---- doorbells --------------------------------------------------------------------------------
 */

static void rung(struct velo_port *port, uint32_t index)
{
    struct ring_rx *rx = &port->rings[index];
    uint64_t entry = order_read_entry(&port->segment->entries[index]);
    order_count(&port->shared->rx_doorbells, 1);
    enum entry_state state = entry_state(entry);
    if ((state == ENTRY_ENDED || state == ENTRY_GIVEN_UP) && !rx->ending) {
        end(port, index, entry);
        return;
    }
    if (state == ENTRY_READY && rx->mode == RX_ABSENT)
        admit(port, index, entry);
    else if (state == ENTRY_READY && rx->mode == RX_REFUSED)
        /* Someone else freed the entry, and this sender claimed it: it must not wait in vain. */
        (void)order_claim_entry(&port->segment->entries[index], entry,
                                entry_pack(ENTRY_REFUSED, entry_source(entry), entry_nonce(entry)));
    if (rx->mode == RX_PARKED)
        activate(port, rx);
}

static void take_bells(struct velo_port *port)
{
    const uint32_t words_per_bit = SEG_CONNS_PER_SUMMARY_BIT / 64;
    uint32_t summary = order_take_summary(&port->shared->summary);
    while (summary) {
        uint32_t first = (uint32_t)__builtin_ctz(summary) * words_per_bit;
        summary &= summary - 1;
        for (uint32_t word = first; word < first + words_per_bit; word++) {
            uint64_t bits = order_take(&port->shared->bells[word]);
            for (; bits; bits &= bits - 1) {
                uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(bits);
                if (index < port->shape.conns_max)
                    rung(port, index);
            }
        }
    }
    if (order_flag(&port->shared->reap_request))
        reap(port);
}

/* Ask the senders of polled rings to ring again: of all, or of those that have been silent while
 * others sent. They stay active, so that what they sent before they knew is still found. */
static void park(struct velo_port *port, bool all)
{
    bool any = false;
    for (uint32_t i = 0; i < port->active_count; i++) {
        struct ring_rx *rx = port->active[i];
        if (rx->mode == RX_POLLED && (all || port->messages - rx->last_message >= STALE_MESSAGES)) {
            activate(port, rx);
            any = true;
        }
    }
    if (any && port->fenced)
        order_full_fence();
    else if (any)
        wait_barrier_all();
}

/* A draining ring is empty: poll it from now on, let it ring again, or let it go. */
static void settle(struct velo_port *port, struct ring_rx *rx)
{
    if (ring_rx_is_corrupt(rx)) {
        refuse(port, rx);
        return;
    }
    if (rx->ending) {
        deactivate(port, rx, RX_ABSENT);
        retire(port, rx);
        return;
    }
    bool busy = rx->last_message > rx->drain_start && port->promote;
    if (busy && port->polled_count == POLLED_MAX)
        park(port, false);
    if (busy && port->polled_count < POLLED_MAX) {
        rx->mode = RX_POLLED;
        port->polled_count++;
        order_set_bell(&rx->shared->bell, BELL_POLLED);
    } else {
        deactivate(port, rx, RX_PARKED);
    }
}

/* ---- the poll ---------------------------------------------------------------------------------
 */

/* Bring the cursor back into the active set and make its ring the current one. */
static void point(struct velo_port *port)
{
    if (port->cursor >= port->active_count)
        port->cursor = 0;
    struct ring_rx *rx = port->active_count ? port->active[port->cursor] : &port->none;
    uint64_t credits_due = rx->published + port->shape.depth_slots / 4;
    rx->pause_at = rx->head + RX_BURST < credits_due ? rx->head + RX_BURST : credits_due;
    port->current = rx;
}

static void advance(struct velo_port *port)
{
    port->cursor++;
    point(port);
}

static void publish_credits(struct ring_rx *rx)
{
    rx->published = rx->head;
    rx->data_published = rx->data_head;
    order_store_data_credit(&rx->shared->data_consumed, rx->data_head);
    order_publish_credit(&rx->shared->consumed, rx->head);
    order_full_fence();
    if (order_read_waiting(&rx->shared->waiting))
        wait_wake((const uint32_t *)&rx->shared->consumed);
}

/* Let onlookers see the counters. Now and then: they are exact only in the port. */
static void show_counters(struct velo_port *port)
{
    order_show(&port->shared->rx_msgs, port->messages);
    order_show(&port->shared->rx_bytes, port->bytes);
}

/* The next message, if any: its ring, and what it is in port->message; else NULL. */
static struct ring_rx *next_message(struct velo_port *port)
{
    for (int rounds = 0;; rounds++) {
        for (uint32_t left = port->active_count; left > 0; left--) {
            struct ring_rx *rx = port->active[port->cursor];
            uint64_t header = order_read_header(rx->slot);
            if (ring_rx_match(rx, header)) {
                point(port);
                if (likely(ring_rx_locate(rx, header, port->shape.data_bytes, &port->message)))
                    return rx;
                refuse(port, rx);
                left = port->active_count + 1;
            } else if (unlikely(rx->mode == RX_DRAINING)) {
                settle(port, rx);
                left = port->active_count + 1; /* The set has changed: once round again. */
            } else {
                advance(port);
            }
        }
        point(port);
        /* A peer that rings without end must not keep us from coming back. */
        if (likely(order_peek_summary(&port->shared->summary) == 0) || rounds == BELL_ROUNDS)
            return NULL;
        take_bells(port);
    }
}

/* A ring has come to its pause: give credits back, then let the others have a turn. */
static __attribute__((noinline)) int pause_ring(struct velo_port *port, struct ring_rx *rx)
{
    if (rx->head - rx->published >= port->shape.depth_slots / 4 ||
        rx->data_head - rx->data_published >= port->shape.data_bytes / 4)
        publish_credits(rx);
    rx->last_message = port->messages;
    show_counters(port);
    if (order_peek_summary(&port->shared->summary))
        take_bells(port);
    advance(port);
    return VELO_OK;
}

/* Done with the message under the cursor. VELO_OK, as the last thing its callers do. */
hot_inline int consume(struct velo_port *port, struct ring_rx *rx, uint32_t len_bytes)
{
    ring_rx_step(rx);
    order_show(&port->messages, port->messages + 1);
    order_show(&port->bytes, port->bytes + len_bytes);
    return unlikely(rx->head >= rx->pause_at) ? pause_ring(port, rx) : VELO_OK;
}

/* The same for the message in port->message. */
static int consume_found(struct velo_port *port, struct ring_rx *rx)
{
    rx->data_head = port->message.data_end;
    if (rx->data_head - rx->data_published >= port->shape.data_bytes / 4)
        rx->pause_at = rx->head + 1;
    rx->last_message = port->messages + 1;
    return consume(port, rx, port->message.len_bytes);
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* What a wait knows of time. The clock is first read after about a microsecond of polling. */
struct wait_clock {
    int64_t start_ns;
    int64_t timeout_ns;
};

static bool timed_out(const struct wait_clock *clock, int64_t now_ns)
{
    return clock->timeout_ns >= 0 && now_ns - clock->start_ns >= clock->timeout_ns;
}

/* How long to spin now. Where spinning has not paid for some time it is only probed now and then.
 */
static int64_t spin_budget_ns(struct velo_port *port)
{
    if (port->spin_ns > 0 || port->spin_max_ns == 0)
        return port->spin_ns;
    return ++port->waits % SPIN_PROBE_EVERY == 0 ? SPIN_PROBE_NS : 0;
}

static void spin_paid(struct velo_port *port)
{
    if (unlikely(port->spin_ns < port->spin_max_ns)) {
        int64_t longer = port->spin_ns > 0 ? port->spin_ns * 2 : SPIN_PROBE_NS;
        port->spin_ns = longer < port->spin_max_ns ? longer : port->spin_max_ns;
        port->promote = true;
    }
}

static void spin_failed(struct velo_port *port)
{
    port->spin_ns = port->spin_ns / 2 >= SPIN_MIN_NS ? port->spin_ns / 2 : 0;
}

/* Spin on the current ring for about a microsecond, if it is the only one. Returns its next header,
 * or 0. Kept this tight because what is polled, and how, matters more than anything else to
 * latency. */
hot_inline uint64_t spin_current(const struct velo_port *port, const struct ring_rx *rx)
{
    const uint64_t *slot = rx->slot;
    const uint64_t expect = rx->expect;
    const uint32_t *summary = &port->shared->summary;
    if (rx->mode != RX_POLLED || port->active_count != 1)
        return 0;
    for (int polls = 0; polls < POLLS_PER_CLOCK; polls++) {
        order_pause();
        uint64_t header = order_read_header(slot);
        if ((header & RING_CHECK) == expect)
            return header;
        if (unlikely(order_peek_summary(summary)))
            return 0;
    }
    return 0;
}

static struct ring_rx *spin(struct velo_port *port, struct wait_clock *clock)
{
    int64_t budget_ns = spin_budget_ns(port);
    if (budget_ns == 0)
        return NULL;
    for (uint32_t polls = 1;; polls++) {
        order_pause();
        struct ring_rx *rx = next_message(port);
        if (likely(rx)) {
            spin_paid(port);
            return rx;
        }
        if (likely(polls % POLLS_PER_CLOCK) && !spin_current(port, port->current))
            continue;
        show_counters(port);
        int64_t now_ns = wait_now_ns();
        if (clock->start_ns == 0)
            clock->start_ns = now_ns;
        if (now_ns - clock->start_ns >= budget_ns || timed_out(clock, now_ns))
            return NULL;
    }
}

static struct ring_rx *sleep_once(struct velo_port *port, int64_t slice_ns)
{
    port->promote = false; /* Whatever is empty now must ring from here on. */
    park(port, true);
    struct ring_rx *rx = next_message(port);
    if (rx)
        return rx;
    show_counters(port);
    order_count(&port->shared->rx_sleeps, 1);
    order_set_sleeping(&port->shared->sleeping, 1);
    /* The kernel compares the summary again: a bit set before `sleeping` was seen ends the wait. */
    wait_sleep(&port->shared->summary, 0, slice_ns);
    order_set_sleeping(&port->shared->sleeping, 0);
    return next_message(port);
}

static struct ring_rx *sleep_until(struct velo_port *port, struct wait_clock *clock)
{
    struct ring_rx *rx = NULL;
    int64_t now_ns = wait_now_ns();
    if (clock->start_ns == 0)
        clock->start_ns = now_ns;
    while (!rx && !timed_out(clock, now_ns)) {
        if (now_ns - port->reaped_ns >= REAP_INTERVAL_NS) {
            port->reaped_ns = now_ns;
            reap(port);
        }
        int64_t left_ns = clock->timeout_ns - (now_ns - clock->start_ns);
        rx = sleep_once(port, clock->timeout_ns < 0 || left_ns > NS_PER_S ? NS_PER_S : left_ns);
        now_ns = wait_now_ns();
    }
    if (rx)
        spin_failed(port);
    port->promote = port->spin_ns > 0;
    return rx;
}

static struct ring_rx *wait_message(struct velo_port *port, int64_t timeout_ns)
{
    struct ring_rx *rx = next_message(port);
    if (rx || timeout_ns == 0 || timeout_ns == NO_WAIT)
        return rx;
    struct wait_clock clock = {.start_ns = 0, .timeout_ns = timeout_ns};
    rx = spin(port, &clock);
    return likely(rx) ? rx : sleep_until(port, &clock);
}

/* ---- receive ----------------------------------------------------------------------------------
 */

hot_inline void fill(struct velo_msg *msg, const struct ring_rx *rx, uint32_t len_bytes,
                     uint8_t tag, const void *data)
{
    if (!msg)
        return;
    msg->data = data;
    msg->len_bytes = len_bytes;
    msg->source = rx->source;
    msg->tag = tag;
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
        ring_copy_small(buf, found->data, found->len_bytes);
    else
        copy_from_ring(buf, found->data, found->len_bytes);
    return consume_found(port, rx);
}

static int check_recv(const struct velo_port *port, const void *buf, size_t cap_bytes)
{
    if (!port || (!buf && cap_bytes > 0))
        return VELO_ERR_ARG;
    return port->held ? VELO_ERR_STATE : VELO_OK;
}

/* Everything that the hot path leaves to others: checks, other rings, waiting. */
static __attribute__((noinline)) int recv_slow(struct velo_port *port, void *buf, size_t cap_bytes,
                                               struct velo_msg *msg, int64_t timeout_ns)
{
    int status = check_recv(port, buf, cap_bytes);
    if (status)
        return status;
    struct ring_rx *rx = wait_message(port, timeout_ns);
    if (!rx)
        return timeout_ns == NO_WAIT ? VELO_AGAIN : VELO_TIMEOUT;
    return recv_found(port, rx, buf, cap_bytes, msg);
}

/* A header in the current ring that is not a short message that fits. */
static __attribute__((noinline)) int recv_long(struct velo_port *port, uint64_t header, void *buf,
                                               size_t cap_bytes, struct velo_msg *msg,
                                               int64_t timeout_ns)
{
    struct ring_rx *rx = port->current;
    if (unlikely(!ring_rx_locate(rx, header, port->shape.data_bytes, &port->message)))
        return recv_slow(port, buf, cap_bytes, msg, timeout_ns); /* Refuses it, and goes on. */
    return recv_found(port, rx, buf, cap_bytes, msg);
}

/* The whole way for the usual case: a short message in the current ring. Each exit is a tail call.
 */
hot_inline int recv_matched(struct velo_port *port, struct ring_rx *rx, uint64_t header, void *buf,
                            size_t cap_bytes, struct velo_msg *msg, int64_t timeout_ns)
{
    uint32_t len_bytes = ring_len(header);
    if (unlikely((header & VELO_HEADER_EXTERNAL_MASK) || len_bytes > VELO_INLINE_BYTES ||
                 len_bytes > cap_bytes))
        return recv_long(port, header, buf, cap_bytes, msg, timeout_ns);
    ring_copy_small(buf, rx->slot + 1, len_bytes);
    fill(msg, rx, len_bytes, ring_tag(header), buf);
    return consume(port, rx, len_bytes);
}

int velo_try_recv(struct velo_port *port, void *buf, size_t cap_bytes, struct velo_msg *msg)
{
    if (likely(port && buf)) {
        struct ring_rx *rx = port->current;
        uint64_t header = order_read_header(rx->slot);
        if (likely(ring_rx_match(rx, header))) {
            __builtin_prefetch(ring_rx_slot(rx, rx->head + SLOTS_AHEAD));
            return recv_matched(port, rx, header, buf, cap_bytes, msg, NO_WAIT);
        }
    }
    return recv_slow(port, buf, cap_bytes, msg, NO_WAIT);
}

/* A receiver that keeps up with a stream slot by slot takes each line from under its sender, and
 * both crawl at one hop a message. Nothing tells that from a ping-pong but a trial: now and then,
 * linger before polling again. In a stream several messages have come meanwhile, and lingering goes
 * on as long as that is so; in a ping-pong one has, and it is not tried again for a while. */
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
    for (uint64_t i = 0; i < SLOTS_AHEAD; i++)
        __builtin_prefetch(ring_rx_slot(rx, rx->head + i));
}

/* Nothing is there yet. Apart from the way without a wait, which then needs no stack. */
static __attribute__((noinline)) int recv_spin(struct velo_port *port, void *buf, size_t cap_bytes,
                                               struct velo_msg *msg, int64_t timeout_ns)
{
    struct ring_rx *rx = port->current;
    uint64_t header = 0;
    if (timeout_ns != 0 && rx->mode == RX_POLLED) {
        linger(port, rx);
        header = spin_current(port, rx);
    }
    if (likely(header))
        return recv_matched(port, rx, header, buf, cap_bytes, msg, timeout_ns);
    return recv_slow(port, buf, cap_bytes, msg, timeout_ns);
}

int velo_recv_wait(struct velo_port *port, void *buf, size_t cap_bytes, struct velo_msg *msg,
                   int64_t timeout_ns)
{
    if (unlikely(timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    if (unlikely(!port || !buf))
        return recv_slow(port, buf, cap_bytes, msg, timeout_ns);
    struct ring_rx *rx = port->current;
    uint64_t header = order_read_header(rx->slot);
    if (unlikely(!ring_rx_match(rx, header)))
        return recv_spin(port, buf, cap_bytes, msg, timeout_ns);
    __builtin_prefetch(ring_rx_slot(rx, rx->head + SLOTS_AHEAD));
    return recv_matched(port, rx, header, buf, cap_bytes, msg, timeout_ns);
}

/* ---- receive in place -------------------------------------------------------------------------
 */

static int peek_wait(struct velo_port *port, struct velo_msg *msg, int64_t timeout_ns)
{
    if (!port || !msg || timeout_ns < VELO_FOREVER)
        return VELO_ERR_ARG;
    if (port->held)
        return VELO_ERR_STATE;
    struct ring_rx *rx = wait_message(port, timeout_ns);
    if (!rx)
        return VELO_TIMEOUT;
    fill(msg, rx, port->message.len_bytes, port->message.tag, port->message.data);
    port->held = rx;
    port->current = &port->none; /* Sends the fast path to check_recv(). */
    return VELO_OK;
}

int velo_peek(struct velo_port *port, struct velo_msg *msg)
{
    int status = peek_wait(port, msg, 0);
    return status == VELO_TIMEOUT ? VELO_AGAIN : status;
}

int velo_peek_wait(struct velo_port *port, struct velo_msg *msg, int64_t timeout_ns)
{
    return peek_wait(port, msg, timeout_ns);
}

int velo_release(struct velo_port *port)
{
    if (!port)
        return VELO_ERR_ARG;
    if (!port->held)
        return VELO_ERR_STATE;
    struct ring_rx *rx = port->held;
    port->held = NULL;
    port->current = rx;
    return consume_found(port, rx);
}
