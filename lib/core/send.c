/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending. The hot path writes cells of one line of the connection's own ring and looks at one word
 * that says whether the receiver polls that ring. Everything else (no credit, a receiver to be
 * rung, a peer that is gone) is out of line.
 */
#include <errno.h>
#include <stdlib.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/fork.h"
#include "../shm/wait.h"
#include "entry.h"
#include "send.h"

/* A blocking sender looks for room this often before it sleeps: some 20 us. */
#define ROOM_SPINS 1000
/* The same to a remote peer, where each look is a system call or so. */
#define REMOTE_SPINS 20
/* Full rings in a row between two looks whether the receiver lives (a system call). */
#define AGAIN_PER_CHECK 256
/* Between two such looks while there is room. */
#define LOOK_INTERVAL_NS 1000000

/* ---- the receiver ---------------------------------------------------------------------------- */

/* The state of the receiver of this connection, as far as it is known without a system call. */
static int peer_status(const struct velo_conn *conn)
{
    uint64_t state = order_read_entry(&conn->header->state);
    if (unlikely(state == SEG_DEAD))
        return velo_fail(VELO_ERR_PEER_DEAD, "the peer's process has ended");
    if (unlikely(state != SEG_OPEN))
        return velo_fail(VELO_ERR_PEER_CLOSED, "the peer closed its port");
    uint64_t entry = order_read_entry(&conn->segment->entries[conn->index]);
    if (unlikely(entry_state(entry) == ENTRY_REFUSED))
        return velo_fail(VELO_ERR_CORRUPT,
                         "the receiver refuses this connection: it found a damaged message, or "
                         "cannot connect back to answer; disconnect and connect again");
    return VELO_OK;
}

/* Nothing can be sent any more if the peer is gone. */
hot_inline int look_at_peer(struct velo_conn *conn)
{
    conn->gone = peer_status(conn);
    if (unlikely(conn->gone)) {
        conn->tx.limit = 0;
        conn->reserved_limit = 0;
    }
    return conn->gone;
}

/* This message is out. A peer that closed may have taken it before: only the next send fails. */
hot_inline int look_after_send(struct velo_conn *conn)
{
    return look_at_peer(conn) == VELO_ERR_PEER_DEAD ? VELO_ERR_PEER_DEAD : VELO_OK;
}

int velo_conn_status(struct velo_conn *conn)
{
    CANCEL_LATER();
    if (!conn)
        return velo_fail(VELO_ERR_ARG, "conn is NULL");
    if (conn->gone)
        return velo_fail(conn->gone, "%s", velo_strerror(conn->gone));
    if (conn->stands_in && port_enter_net(conn->port)) {
        conn->port->net->look(conn);
        port_leave_net(conn->port);
    }
    (void)seg_check_owner(conn->segment);
    return look_at_peer(conn);
}

static __attribute__((noinline)) int ring_and_look(struct velo_conn *conn)
{
    entry_ring_and_wake(conn->segment, conn->index);
    return look_after_send(conn);
}

/* What a handler has published meanwhile. */
static void carry_later(struct put_off *put_off)
{
    struct velo_conn *conn =
        (struct velo_conn *)((char *)put_off - offsetof(struct velo_conn, put_off));
    conn->carry(conn);
}

static __attribute__((noinline)) int send_over_network(struct velo_conn *conn)
{
    if (!fork_is_ours(conn->port->process))
        return fork_refuse("port");
    CANCEL_LATER();
    if (port_enter_net(conn->port)) {
        conn->carry(conn);
        port_leave_net(conn->port);
    } else {
        conn->put_off.carry = carry_later;
        inside_put_off(&conn->put_off);
    }
    return look_after_send(conn);
}

cold_path int conn_notify_slow(struct velo_conn *conn)
{
    ring_tx_show_counters(&conn->tx);
    if (conn->fenced) {
        if (conn->carry)
            return send_over_network(conn);
        order_full_fence();
        if (order_read_bell(&conn->tx.shared->bell) == BELL_POLLED)
            return VELO_OK;
    }
    return ring_and_look(conn);
}

/* ---- room ------------------------------------------------------------------------------------ */

static bool has_room(const struct velo_conn *conn, size_t len_bytes)
{
    if (len_bytes <= VELO_INLINE_BYTES)
        return ring_tx_has_cells(&conn->tx, ring_cells(len_bytes));
    return ring_tx_has_cells(&conn->tx, EXTERNAL_CELLS) && ring_tx_has_data(&conn->tx, len_bytes);
}

/* Is the call itself in order? Calls that the hot path does not take come here. */
static int check_send(const struct velo_conn *conn, const void *buf, size_t len_bytes)
{
    if (!conn || (!buf && len_bytes > 0))
        return VELO_ERR_ARG;
    if (conn->gone)
        return conn->gone;
    if (conn->reserved)
        return VELO_ERR_STATE;
    return len_bytes > ring_max_bytes((uint32_t)conn->tx.data_mask + 1) ? VELO_ERR_TOO_BIG
                                                                        : VELO_OK;
}

static int corrupt_credits(void)
{
    return velo_fail(VELO_ERR_CORRUPT, "the receiver's credits make no sense; disconnect");
}

/* A dead receiver gives no credits. A sender soon notices that, unless the ring is deep. */
static int look_now_and_then(struct velo_conn *conn)
{
    if (likely(ring_line(conn->tx.cell_mask) < LOOK_SENDS))
        return VELO_OK;
    int64_t now_ns = wait_now_ns();
    if (now_ns - conn->looked_ns < LOOK_INTERVAL_NS)
        return VELO_OK;
    conn->looked_ns = now_ns;
    (void)seg_check_owner(conn->segment);
    return look_at_peer(conn);
}

/* False: the receiver's credits make no sense. */
static bool take_credits(struct velo_conn *conn)
{
    return ring_tx_refresh(&conn->tx, order_read_credit(&conn->tx.shared->consumed));
}

/* Look for room once. */
static int find_room(struct velo_conn *conn, size_t len_bytes)
{
    if (likely(has_room(conn, len_bytes)))
        return VELO_OK;
    ring_tx_show_counters(&conn->tx);
    bool makes_sense = take_credits(conn);
    /* A look at the network sends what it holds: not while there is room without it. */
    if (conn->port->has_net && makes_sense && !has_room(conn, len_bytes)) {
        (void)port_net_progress(conn->port);
        makes_sense = take_credits(conn);
    }
    if (unlikely(!makes_sense))
        return corrupt_credits();
    if (likely(has_room(conn, len_bytes))) {
        conn->again = 0;
        return look_now_and_then(conn);
    }
    if (conn->again++ % AGAIN_PER_CHECK == 0)
        (void)seg_check_owner(conn->segment);
    int status = look_at_peer(conn);
    if (status)
        return status;
    order_count(&conn->tx.shared->tx_again, 1);
    return VELO_AGAIN;
}

/* Sleep until the credits change, or for a slice of time. True: a signal handler ran. */
static bool nap_for_room(struct velo_conn *conn, uint64_t consumed, int64_t slice_ns)
{
    const uint32_t *word = (const uint32_t *)&conn->tx.shared->consumed;
    if (!conn->carry)
        return wait_sleep(word, (uint32_t)consumed, slice_ns);
    if (!port_enter_net(conn->port))
        return true; /* It is this handler. */
    CANCEL_LATER();
    bool is_interrupted = conn->port->net->sleep_for_room(conn, word, (uint32_t)consumed, slice_ns);
    port_leave_net(conn->port);
    return is_interrupted;
}

/* Sleep until the receiver returns credits, or for a slice of time. */
static int sleep_for_room(struct velo_conn *conn, size_t len_bytes, int64_t slice_ns)
{
    struct seg_ring *ring = conn->tx.shared;
    int status = VELO_OK;
    order_set_waiting(&ring->waiting, 1);
    VELO_HOOK(HOOK_WAIT_FLAG);
    uint64_t consumed = order_recheck_credit(&ring->consumed);
    if (!ring_tx_refresh(&conn->tx, consumed))
        return corrupt_credits();
    if (!has_room(conn, len_bytes)) {
        order_count(&ring->tx_sleeps, 1);
        if (nap_for_room(conn, consumed, slice_ns))
            status = VELO_ERR_INTERRUPTED;
        conn->again = 0; /* Have the next look ask whether the receiver lives. */
    }
    order_set_waiting(&ring->waiting, 0);
    VELO_HOOK(HOOK_WAIT_DONE);
    return status;
}

/* The wait that is under way, which sleeps for a slice of time at most, or the next one ends. From
 * the flag on, the sender may end the connection: the kernel takes an address that is gone. */
void velo_conn_interrupt(struct velo_conn *conn)
{
    int error = errno; /* Of what a signal handler has interrupted. */
    const uint32_t *word = (const uint32_t *)&conn->tx.shared->consumed;
    order_set_flag(&conn->interrupted, 1);
    wait_wake(word);
    errno = error;
}

/* The receiver waits for a message that is no longer there. Tell it. */
static cold_path int refuse_ring(struct velo_conn *conn)
{
    uint64_t *entry = &conn->segment->entries[conn->index];
    uint64_t now = order_read_entry(entry);
    if (entry_state(now) == ENTRY_READY)
        (void)order_claim_entry(entry, now, entry_in_state(now, ENTRY_REFUSED));
    entry_ring_and_wake(conn->segment, conn->index);
    conn->gone = VELO_ERR_CORRUPT;
    conn->tx.limit = 0;
    return velo_fail(VELO_ERR_CORRUPT,
                     "messages in %s were overwritten before they were received; "
                     "disconnect and connect again",
                     conn->segment->path);
}

static int wait_for_room(struct velo_conn *conn, size_t len_bytes, int64_t timeout_ns)
{
    int64_t start_ns = 0;
    if (timeout_ns < VELO_FOREVER)
        return VELO_ERR_ARG;
    for (int spins = 0;; spins++) {
        int64_t left_ns = WAIT_SLICE_NS;
        int status = find_room(conn, len_bytes);
        if (status != VELO_AGAIN)
            return status;
        if (timeout_ns == 0)
            return VELO_TIMEOUT;
        if (unlikely(order_take_flag(&conn->interrupted)))
            return VELO_ERR_INTERRUPTED;
        if (timeout_ns > 0) { /* A send that finds room reads no clock. */
            int64_t now_ns = wait_now_ns();
            start_ns = start_ns ? start_ns : now_ns;
            left_ns = timeout_ns - (now_ns - start_ns);
            if (left_ns <= 0)
                return VELO_TIMEOUT;
        }
        if (spins < (conn->stands_in ? REMOTE_SPINS : ROOM_SPINS)) {
            order_pause();
            continue;
        }
        if (spins > ROOM_SPINS && !conn->stands_in) { /* Slept in vain. */
            if (!ring_tx_is_intact(&conn->tx))
                return refuse_ring(conn);
            entry_ring_and_wake(conn->segment,
                                conn->index); /* An earlier ring of the doorbell may be lost. */
        }
        status = sleep_for_room(conn, len_bytes, left_ns < WAIT_SLICE_NS ? left_ns : WAIT_SLICE_NS);
        if (status == VELO_ERR_INTERRUPTED) /* By a handler, which may have asked for it, too. */
            (void)order_take_flag(&conn->interrupted);
        if (status)
            return status;
    }
}

/* ---- send ------------------------------------------------------------------------------------ */

/* Write a message for which there is room. The receiver is not told yet. */
hot_inline void write_only(struct velo_conn *conn, const void *buf, size_t len_bytes, uint8_t tag)
{
    if (len_bytes > VELO_INLINE_BYTES)
        ring_tx_write_external(&conn->tx, buf, len_bytes, 0, tag);
    else
        ring_tx_write_inline(&conn->tx, ring_tx_place(&conn->tx, ring_cells(len_bytes)), buf,
                             len_bytes, tag);
}

static int write_message(struct velo_conn *conn, const void *buf, size_t len_bytes, uint8_t tag)
{
    write_only(conn, buf, len_bytes, tag);
    return conn_notify(conn);
}

static cold_path int try_send_slow(struct velo_conn *conn, const void *buf, size_t len_bytes,
                                   uint8_t tag)
{
    int status = check_send(conn, buf, len_bytes);
    if (status == VELO_OK)
        status = find_room(conn, len_bytes);
    return status ? status : write_message(conn, buf, len_bytes, tag);
}

static cold_path int send_slow(struct velo_conn *conn, const void *buf, size_t len_bytes,
                               uint8_t tag, int64_t timeout_ns)
{
    int status = check_send(conn, buf, len_bytes);
    if (status == VELO_OK)
        status = wait_for_room(conn, len_bytes, timeout_ns);
    return status ? status : write_message(conn, buf, len_bytes, tag);
}

/* A short message and room for it: the fast path checks nothing else. */
hot_inline bool is_fast(const struct velo_conn *conn, const void *buf, size_t len_bytes,
                        struct ring_place *place)
{
    if (unlikely(!conn || !buf || len_bytes > VELO_INLINE_BYTES))
        return false;
    *place = ring_tx_place(&conn->tx, ring_cells(len_bytes));
    return place->at < conn->tx.limit;
}

int velo_try_send(struct velo_conn *conn, const void *buf, size_t len_bytes, uint8_t tag)
{
    GUARD(conn, "connection");
    struct ring_place place;
    if (unlikely(!is_fast(conn, buf, len_bytes, &place)))
        return try_send_slow(conn, buf, len_bytes, tag);
    ring_tx_write_inline(&conn->tx, place, buf, len_bytes, tag);
    return conn_notify(conn);
}

int velo_send(struct velo_conn *conn, const void *buf, size_t len_bytes, uint8_t tag,
              int64_t timeout_ns)
{
    GUARD(conn, "connection");
    struct ring_place place;
    if (unlikely(!is_fast(conn, buf, len_bytes, &place)))
        return send_slow(conn, buf, len_bytes, tag, timeout_ns);
    ring_tx_write_inline(&conn->tx, place, buf, len_bytes, tag);
    return conn_notify(conn);
}

/* ---- bursts ---------------------------------------------------------------------------------- */

/* A burst that is being sent. Its messages are published one by one: a receiver that polls takes
 * the first while the others are written. Only telling the receiver, and a network, is put off. */
struct burst {
    const struct velo_msg *msgs;
    int sent;           /* Messages written. */
    int told;           /* Those of which the receiver has been told. */
    int64_t timeout_ns; /* Of the whole call. */
    int64_t started_ns; /* When it first found no room; 0: it always has so far. */
};

/* Tell the receiver of all that was written. */
hot_inline int burst_tell(struct velo_conn *conn, struct burst *burst)
{
    if (burst->told == burst->sent)
        return VELO_OK;
    burst->told = burst->sent;
    return conn_notify(conn);
}

/* The receiver makes room only if it knows of what it has: it is told before the wait. */
static int burst_wait_for_room(struct velo_conn *conn, struct burst *burst, size_t len_bytes)
{
    int64_t left_ns = burst->timeout_ns;
    int status = burst_tell(conn, burst);
    if (status == VELO_OK)
        status = find_room(conn, len_bytes);
    if (status != VELO_AGAIN)
        return status;
    if (left_ns > 0) {
        int64_t now_ns = wait_now_ns();
        burst->started_ns = burst->started_ns ? burst->started_ns : now_ns;
        left_ns -= now_ns - burst->started_ns;
        left_ns = left_ns < 0 ? 0 : left_ns;
    }
    status = wait_for_room(conn, len_bytes, left_ns);
    /* The call tells how many messages were sent before, so the next wait tells of the interrupt.
     */
    if (status == VELO_ERR_INTERRUPTED && burst->sent > 0)
        order_set_flag(&conn->interrupted, 1);
    return status;
}

/* A long message, one that makes no sense, or no room as far as we know. */
static cold_path int burst_write_slow(struct velo_conn *conn, struct burst *burst)
{
    const struct velo_msg *msg = &burst->msgs[burst->sent];
    int status = check_send(conn, msg->data, msg->len_bytes);
    if (status == VELO_OK && !has_room(conn, msg->len_bytes))
        status = burst_wait_for_room(conn, burst, msg->len_bytes);
    if (status == VELO_OK) {
        write_only(conn, msg->data, msg->len_bytes, msg->tag);
        burst->sent++;
    }
    return status;
}

/* Write short messages one behind the other while there is room, and return how many. The cursor is
 * a copy, which stays in registers. */
hot_inline int write_run(struct velo_conn *conn, const struct velo_msg *msgs, int msgs_len)
{
    struct ring_tx tx = conn->tx;
    int sent = 0;
    for (; sent < msgs_len; sent++) {
        const struct velo_msg *msg = &msgs[sent];
        if (unlikely(!msg->data || msg->len_bytes > VELO_INLINE_BYTES))
            break;
        struct ring_place place = ring_tx_place(&tx, ring_cells(msg->len_bytes));
        if (unlikely(place.at >= tx.limit))
            break;
        ring_tx_write_inline(&tx, place, msg->data, msg->len_bytes, msg->tag);
    }
    conn->tx.tail = tx.tail;
    order_show(&conn->tx.recent, tx.recent);
    return sent;
}

int velo_send_many(struct velo_conn *conn, const struct velo_msg *msgs, int msgs_len,
                   int64_t timeout_ns)
{
    GUARD(conn, "connection");
    struct burst burst = {.msgs = msgs, .timeout_ns = timeout_ns};
    int status = VELO_OK;
    if (unlikely(!conn || msgs_len < 0 || (!msgs && msgs_len > 0) || timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    /* A network in place of memory takes the line that was written last. */
    bool is_told_each = conn->carry && !conn->stands_in;
    while (status == VELO_OK && burst.sent < msgs_len) {
        int left = is_told_each ? 1 : msgs_len - burst.sent;
        int run = write_run(conn, &msgs[burst.sent], left);
        burst.sent += run;
        if (unlikely(run == 0))
            status = burst_write_slow(conn, &burst);
        if (status == VELO_OK && unlikely(is_told_each))
            status = burst_tell(conn, &burst);
    }
    int told_status = burst_tell(conn, &burst);
    status = told_status ? told_status : status;
    return burst.sent == 0 || status == VELO_ERR_PEER_DEAD ? status : burst.sent;
}

/* ---- in place -------------------------------------------------------------------------------- */

/* There is room for this reservation. A short message is built beside the ring: while the program
 * writes to a line, the polling receiver would take the line away, and each store would wait for it
 * to come back. While a reservation is open the limit says that there is none: so all
 * other calls leave the fast path for check_send(). */
hot_inline int reserve(struct velo_conn *conn, size_t len_bytes, void **buf)
{
    struct ring_tx *tx = &conn->tx;
    conn->reserved = true;
    conn->reserved_bytes = len_bytes;
    conn->reserved_limit = tx->limit;
    tx->limit = 0;
    if (likely(len_bytes <= VELO_INLINE_BYTES)) {
        conn_look_ahead(conn);
        *buf = conn->built;
    } else {
        conn->reserved_at = ring_tx_data_at(tx, len_bytes);
        *buf = tx->data + (conn->reserved_at & tx->data_mask);
    }
    VELO_HOOK(HOOK_RESERVE);
    return VELO_OK;
}

static cold_path int try_reserve_slow(struct velo_conn *conn, size_t len_bytes, void **buf)
{
    int status = check_send(conn, buf, len_bytes);
    if (unlikely(!buf))
        return VELO_ERR_ARG;
    if (status == VELO_OK)
        status = find_room(conn, len_bytes);
    return status ? status : reserve(conn, len_bytes, buf);
}

int velo_try_reserve(struct velo_conn *conn, size_t len_bytes, void **buf)
{
    GUARD(conn, "connection");
    struct ring_place place;
    if (unlikely(!is_fast(conn, buf, len_bytes, &place)))
        return try_reserve_slow(conn, len_bytes, buf);
    return reserve(conn, len_bytes, buf);
}

static cold_path int reserve_slow(struct velo_conn *conn, size_t len_bytes, void **buf,
                                  int64_t timeout_ns)
{
    int status = check_send(conn, buf, len_bytes);
    if (unlikely(!buf))
        return VELO_ERR_ARG;
    if (status == VELO_OK)
        status = wait_for_room(conn, len_bytes, timeout_ns);
    return status ? status : reserve(conn, len_bytes, buf);
}

int velo_reserve(struct velo_conn *conn, size_t len_bytes, void **buf, int64_t timeout_ns)
{
    GUARD(conn, "connection");
    struct ring_place place;
    if (unlikely(!is_fast(conn, buf, len_bytes, &place)))
        return reserve_slow(conn, len_bytes, buf, timeout_ns);
    return reserve(conn, len_bytes, buf);
}

int velo_commit(struct velo_conn *conn, size_t len_bytes, uint8_t tag)
{
    GUARD(conn, "connection");
    if (unlikely(!conn))
        return VELO_ERR_ARG;
    if (unlikely(!conn->reserved))
        return VELO_ERR_STATE;
    if (unlikely(len_bytes > conn->reserved_bytes))
        return VELO_ERR_TOO_BIG;
    struct ring_tx *tx = &conn->tx;
    conn->reserved = false;
    tx->limit = conn->reserved_limit;
    if (likely(conn->reserved_bytes <= VELO_INLINE_BYTES))
        ring_tx_write_inline(tx, ring_tx_place(tx, ring_cells(len_bytes)), conn->built, len_bytes,
                             tag);
    else
        ring_tx_publish_external(tx, conn->reserved_at, len_bytes, 0, tag);
    return conn_notify(conn);
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The length of all pieces. SIZE_MAX: they make no sense, or are longer than any message. */
static size_t vector_bytes(const struct iovec *pieces, int pieces_len)
{
    size_t len_bytes = 0;
    if (pieces_len < 0 || (!pieces && pieces_len > 0))
        return SIZE_MAX;
    for (int i = 0; i < pieces_len; i++)
        if ((!pieces[i].iov_base && pieces[i].iov_len > 0) ||
            __builtin_add_overflow(len_bytes, pieces[i].iov_len, &len_bytes))
            return SIZE_MAX;
    return len_bytes;
}

static int gather(struct velo_conn *conn, char *to, const struct iovec *pieces, int pieces_len,
                  size_t len_bytes, uint8_t tag)
{
    for (int i = 0; i < pieces_len; i++) {
        copy_in(to, pieces[i].iov_base, pieces[i].iov_len);
        to += pieces[i].iov_len;
    }
    return velo_commit(conn, len_bytes, tag);
}

int velo_try_sendv(struct velo_conn *conn, const struct iovec *pieces, int pieces_len, uint8_t tag)
{
    void *to;
    size_t len_bytes = vector_bytes(pieces, pieces_len);
    if (len_bytes == SIZE_MAX)
        return VELO_ERR_ARG;
    int status = velo_try_reserve(conn, len_bytes, &to);
    return status ? status : gather(conn, to, pieces, pieces_len, len_bytes, tag);
}

int velo_sendv(struct velo_conn *conn, const struct iovec *pieces, int pieces_len, uint8_t tag,
               int64_t timeout_ns)
{
    void *to;
    size_t len_bytes = vector_bytes(pieces, pieces_len);
    if (len_bytes == SIZE_MAX)
        return VELO_ERR_ARG;
    int status = velo_reserve(conn, len_bytes, &to, timeout_ns);
    return status ? status : gather(conn, to, pieces, pieces_len, len_bytes, tag);
}

/* ---- for the matched queues ------------------------------------------------------------------ */

/* The payload then ends with a line, and not with a line for one word. A transport carries no such
 * word. */
static int try_send_apart(struct velo_conn *conn, const void *buf, size_t len_bytes, uint64_t word,
                          uint8_t tag)
{
    GUARD(conn, "connection");
    int status = check_send(conn, buf, len_bytes);
    if (status == VELO_OK)
        status = find_room(conn, len_bytes);
    if (status)
        return status;
    ring_tx_write_external(&conn->tx, buf, len_bytes, word, tag | CONN_WORD_APART);
    return conn_notify(conn);
}

hot_inline int send_behind(struct velo_conn *conn, const void *buf, size_t len_bytes,
                           const void *words, size_t words_bytes, uint8_t tag)
{
    void *to;
    int status = velo_try_reserve(conn, len_bytes + words_bytes, &to);
    if (status)
        return status;
    copy_in(to, buf, len_bytes);
    memcpy((char *)to + len_bytes, words, words_bytes);
    return velo_commit(conn, len_bytes + words_bytes, tag);
}

int conn_try_send_behind(struct velo_conn *conn, const void *buf, size_t len_bytes,
                         const void *words, size_t words_bytes, uint8_t tag)
{
    return send_behind(conn, buf, len_bytes, words, words_bytes, tag);
}

int conn_try_send_with_slow(struct velo_conn *conn, const void *buf, size_t len_bytes,
                            uint64_t word, uint8_t tag)
{
    if (!buf && len_bytes > 0)
        return VELO_ERR_ARG;
    if (len_bytes > SIZE_MAX - sizeof word)
        return VELO_ERR_TOO_BIG;
    if (len_bytes > VELO_INLINE_BYTES && !conn->tx.is_by_line)
        return try_send_apart(conn, buf, len_bytes, word, tag);
    return send_behind(conn, buf, len_bytes, &word, sizeof word, tag);
}
