/* SPDX-License-Identifier: Apache-2.0 */
/* Sending and receiving of velo2. */
#include <stdlib.h>
#include <string.h>

#include "velo2_internal.h"

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
/* The longest wait before a sender looks again after its own ports. */
#define SEND_SLICE_NS INT64_C(200000)
/* The same of a receiver that has none but its own: others may be opened. */
#define ALONE_SLICE_NS INT64_C(100000000)

_Static_assert(VELO2_TYPED_BYTES > VELO2_MTU, "a message with a type is longer than any without");

/* ---- what is kept ---------------------------------------------------------------------------- */

/* A message of velo.h, as this library reads it. */
struct seen {
    const unsigned char *bytes;
    uint32_t len_bytes;
    velo_id_t source;
    uint8_t tag;
    uint8_t mtt;
};

/* False: nobody sends such a message with this library. */
static bool see_message(const struct velo_msg *msg, struct seen *seen)
{
    struct velo2_trailer trailer = {(unsigned)msg->len_bytes, 0};
    if (msg->len_bytes == VELO2_TYPED_BYTES)
        memcpy(&trailer, (const char *)msg->data + VELO2_MTU, sizeof trailer);
    *seen = (struct seen){msg->data, trailer.len_bytes, msg->source, msg->tag,
                          (uint8_t)(trailer.mtt & VELO2_MTT_MAX)};
    return trailer.len_bytes <= VELO2_MTU;
}

static bool keep_one(struct velo2_context *context, const struct seen *seen)
{
    struct velo2_kept *kept = malloc(sizeof *kept);
    if (!kept)
        return false;
    *kept = (struct velo2_kept){NULL, seen->len_bytes, seen->source, seen->tag, seen->mtt, {0}};
    memcpy(kept->bytes, seen->bytes, seen->len_bytes);
    if (!context->kept)
        context->kept_end = &context->kept;
    *context->kept_end = kept;
    context->kept_end = &kept->next;
    context->kept_count++;
    return true;
}

bool velo2_keep(struct velo2_context *context)
{
    struct velo_msg msg;
    struct seen seen;
    enum turn_held held = turn_try(&context->receive);
    if (held == TURN_REFUSED)
        return false; /* The thread that receives makes room. */
    while (context->kept_count < VELO2_KEPT_MAX && velo_try_peek(context->port, &msg) == VELO_OK) {
        if (see_message(&msg, &seen) && !keep_one(context, &seen)) {
            (void)velo_defer(context->port); /* It stays where it is. */
            (void)velo_resume(context->port);
            break;
        }
        (void)velo_release(context->port);
    }
    bool is_full = context->kept_count >= VELO2_KEPT_MAX;
    turn_give(&context->receive, held);
    return is_full;
}

static void drop_first(struct velo2_context *context)
{
    struct velo2_kept *first = context->kept;
    context->kept = first->next;
    context->kept_count--;
    free(first);
}

void velo2_forget_kept(struct velo2_context *context)
{
    while (context->kept)
        drop_first(context);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* With a type: its bytes, a gap, and the trailer. */
static int send_typed(struct velo2_link *link, const void *msg, unsigned int len, uint8_t tag,
                      uint8_t mtt, int64_t timeout_ns)
{
    static const char gap[VELO2_MTU];
    const struct velo2_trailer trailer = {len, mtt};
    const struct iovec pieces[] = {
        {(void *)msg, len}, {(void *)gap, VELO2_MTU - len}, {(void *)&trailer, sizeof trailer}};
    return velo_sendv(link->conn, pieces, 3, tag, timeout_ns);
}

/* The peer was not open when the connection was made. */
static int connect_late(struct velo2_link *link)
{
    const struct velo2_context *context = link->context;
    int64_t since_ns = place_now_ns();
    int status;
    while (place_tries_again(status = velo_connect(context->port, link->peer, &link->conn, 0),
                             since_ns, context->wait_ns)) {
        (void)velo2_keep_all(context);
        place_nap();
    }
    return status;
}

/* There was no room. The receiver that makes it may be waiting for room in a ring of ours. */
static int send_patiently(struct velo2_link *link, const void *msg, unsigned int len, uint8_t tag,
                          uint8_t mtt)
{
    const struct velo2_context *context = link->context;
    int64_t full_since_ns = place_now_ns();
    int status = VELO_OK;
    (void)velo2_keep_all(context);
    if (!link->conn)
        status = connect_late(link);
    for (;;) {
        if (status == VELO_OK)
            status = mtt ? send_typed(link, msg, len, tag, mtt, SEND_SLICE_NS)
                         : velo_send(link->conn, msg, len, tag, SEND_SLICE_NS);
        if (status != VELO_TIMEOUT && status != VELO_ERR_INTERRUPTED)
            return status;
        status = VELO_OK;
        if (!velo2_keep_all(context))
            full_since_ns = place_now_ns();
        else if (place_is_over(full_since_ns, context->wait_ns))
            return VELO_ERR_FULL;
    }
}

/* With other threads, a type, or a peer that was not there yet; or there was no room. */
static velo2_ret_t send_slowly(struct velo2_link *link, const void *msg, unsigned int len,
                               uint8_t tag, uint8_t mtt)
{
    enum turn_held held = turn_take(&link->send);
    int status = VELO_AGAIN;
    if (link->conn)
        status = mtt ? send_typed(link, msg, len, tag, mtt, 0)
                     : velo_try_send(link->conn, msg, len, tag);
    if (status == VELO_AGAIN || status == VELO_TIMEOUT)
        status = send_patiently(link, msg, len, tag, mtt);
    turn_give(&link->send, held);
    return velo2_result(status);
}

velo2_ret_t velo2_send(velo2_connection_t *con, const void *msg, unsigned int len, uint8_t tag,
                       uint8_t mtt)
{
    struct velo2_link *link = con ? con->state_map : NULL;
    if (unlikely(!link))
        return VELO2_RET_ERROR;
    if (unlikely(len > link->mtu || (!msg && len > 0)))
        return VELO2_RET_INV_MSG;
    if (unlikely(mtt > VELO2_MTT_MAX))
        return VELO2_RET_INV_MTT;
    bool is_plain = __libc_single_threaded && mtt == 0 && link->conn;
    if (likely(is_plain) && likely(velo_try_send(link->conn, msg, len, tag) == VELO_OK))
        return VELO2_RET_SUCCESS;
    return send_slowly(link, msg, len, tag, mtt);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Where the caller wants a message. */
struct wanted {
    void *buf;
    unsigned int max;
    uint32_t *len;
    uint32_t *srcid;
    uint8_t *tag;
    uint8_t *mtt;
};

static inline void tell_wanted(const struct wanted *wanted, uint32_t len_bytes, velo_id_t source,
                               uint8_t tag, uint8_t mtt)
{
    if (wanted->len)
        *wanted->len = len_bytes;
    if (wanted->srcid)
        *wanted->srcid = VELO2_ADDR_PACK(VELO_ID_NODE(source), VELO_ID_VPID(source));
    if (wanted->tag)
        *wanted->tag = tag;
    if (wanted->mtt)
        *wanted->mtt = mtt;
}

static velo2_ret_t hand_over(const struct wanted *wanted, const struct seen *seen)
{
    tell_wanted(wanted, seen->len_bytes, seen->source, seen->tag, seen->mtt);
    if (seen->len_bytes > wanted->max)
        return VELO2_RET_INV_MSG;
    if (seen->len_bytes > 0)
        memcpy(wanted->buf, seen->bytes, seen->len_bytes);
    return VELO2_RET_SUCCESS;
}

static __attribute__((noinline)) velo2_ret_t take_kept(struct velo2_context *context,
                                                       const struct wanted *wanted)
{
    const struct velo2_kept *kept = context->kept;
    struct seen seen = {kept->bytes, kept->len_bytes, kept->source, kept->tag, kept->mtt};
    velo2_ret_t ret = hand_over(wanted, &seen);
    if (ret == VELO2_RET_SUCCESS)
        drop_first(context);
    return ret;
}

/* The next message is longer than `max`, or has a type. VELO2_RET_NO_MSG: it was nobody's. */
static __attribute__((noinline)) velo2_ret_t take_in_place(struct velo2_context *context,
                                                           const struct wanted *wanted)
{
    struct velo_msg msg;
    struct seen seen;
    int status = velo_try_peek(context->port, &msg);
    if (status)
        return velo2_result(status);
    velo2_ret_t ret = see_message(&msg, &seen) ? hand_over(wanted, &seen) : VELO2_RET_NO_MSG;
    if (ret == VELO2_RET_INV_MSG) { /* It stays, and is the next one again. */
        struct seen copy = seen;
        unsigned char bytes[VELO2_MTU];
        memcpy(bytes, seen.bytes, seen.len_bytes);
        copy.bytes = bytes;
        if (!keep_one(context, &copy))
            ret = VELO2_RET_ERR_MMAP;
    }
    (void)velo_release(context->port);
    return ret;
}

static inline __attribute__((always_inline)) velo2_ret_t receive(struct velo2_context *context,
                                                                 const struct wanted *wanted,
                                                                 int64_t timeout_ns)
{
    struct velo_msg msg;
    if (unlikely(context->kept))
        return take_kept(context, wanted);
    /* A message with a type, which is longer, is looked at in place. */
    size_t max = wanted->max < VELO2_MTU ? wanted->max : VELO2_MTU;
    int status = timeout_ns ? velo_recv(context->port, wanted->buf, max, &msg, timeout_ns)
                            : velo_try_recv(context->port, wanted->buf, max, &msg);
    if (likely(status == VELO_OK)) {
        tell_wanted(wanted, (uint32_t)msg.len_bytes, msg.source, msg.tag, 0);
        return VELO2_RET_SUCCESS;
    }
    if (status == VELO_ERR_TOO_BIG)
        return take_in_place(context, wanted);
    return status == VELO_ERR_INTERRUPTED || status == VELO_TIMEOUT ? VELO2_RET_NO_MSG
                                                                    : velo2_result(status);
}

/* Nothing was there. The message may need progress of this process's own ports of rma2. */
static __attribute__((noinline)) velo2_ret_t receive_patiently(struct velo2_context *context,
                                                               const struct wanted *wanted)
{
    velo2_ret_t ret;
    uint32_t looks = 0;
    do {
        looks = velo2_carry_on() ? 1 : looks + 1;
        int64_t slice_ns = looks % LOOKS_PER_SLICE ? 0 : SLICE_NS;
        ret = receive(context, wanted, velo2_has_others() ? slice_ns : ALONE_SLICE_NS);
    } while (ret == VELO2_RET_NO_MSG);
    return ret;
}

velo2_ret_t velo2_recv(velo2_port_t *port, void *buf, unsigned int max, uint32_t *len,
                       uint32_t *srcid, uint8_t *tag, uint8_t *mtt)
{
    struct velo2_context *context = port ? port->map : NULL;
    const struct wanted wanted = {buf, max, len, srcid, tag, mtt};
    if (unlikely(!context || (!buf && max > 0)))
        return VELO2_RET_ERROR;
    enum turn_held held = turn_take(&context->receive);
    velo2_ret_t ret = receive(context, &wanted, 0);
    if (ret == VELO2_RET_NO_MSG)
        ret = receive_patiently(context, &wanted);
    turn_give(&context->receive, held);
    return ret;
}

velo2_ret_t velo2_probe_recv(velo2_port_t *port, void *buf, unsigned int max, uint32_t *len,
                             uint32_t *srcid, uint8_t *tag, uint8_t *mtt)
{
    struct velo2_context *context = port ? port->map : NULL;
    const struct wanted wanted = {buf, max, len, srcid, tag, mtt};
    if (unlikely(!context || (!buf && max > 0)))
        return VELO2_RET_ERROR;
    enum turn_held held = turn_try(&context->receive);
    if (held == TURN_REFUSED)
        return VELO2_RET_NO_MSG; /* Another thread takes what comes. */
    velo2_ret_t ret = receive(context, &wanted, 0);
    turn_give(&context->receive, held);
    if (ret == VELO2_RET_NO_MSG)
        (void)velo2_carry_on();
    return ret;
}
