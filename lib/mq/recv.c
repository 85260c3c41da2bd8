/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../base/error.h"
#include "../core/stream.h"
#include "posted.h"

/* ---- messages that were kept ----------------------------------------------------------------- */

struct velo_mq_message *mq_recv_find_kept(const struct velo_mq *mq, uint8_t space_number,
                                          velo_id_t source, uint64_t match, uint64_t ignore)
{
    const struct space *space = &mq->spaces[space_number];
    if (ignore == 0)
        return (struct velo_mq_message *)table_find(&space->unexpected, match, source);
    for (struct link *link = space->arrivals.first; link; link = link->next) {
        struct velo_mq_message *message = member_of(link, struct velo_mq_message, arrival);
        if (((message->entry.match ^ match) & ~ignore) == 0 &&
            source_fits(message->entry.source, source))
            return message;
    }
    return NULL;
}

void mq_recv_unlink_kept(struct velo_mq *mq, struct velo_mq_message *message)
{
    struct space *space = &mq->spaces[message->space];
    table_remove(&space->unexpected, &message->entry);
    list_remove(&space->arrivals, &message->arrival);
    for (int s = 0; s < VELO_MQ_SPACES; s++)
        if (mq->spaces[s].unexpected.count > 0)
            return;
    mq->before_post &= ~(uint32_t)BEFORE_UNEXPECTED;
}

/* Show onlookers the memory of messages that nobody has asked for. */
static void show_memory(struct velo_mq *mq)
{
    struct seg_header *header = mq->port->shared;
    order_show(&header->kept_bytes, mq->pool.used_bytes);
    order_show(&header->kept_bound_bytes, mq->pool.bound_bytes);
}

void mq_recv_free_kept(struct velo_mq *mq, struct velo_mq_message *message)
{
    message->peer->kept--;
    mq_pool_put(&mq->pool, message, &message->peer->unexpected_bytes);
    show_memory(mq);
    if (unlikely(mq->defers_unknown))
        mq->work |= WORK_RESUME;
    for (struct link *link = mq->deferred.first; unlikely(link); link = link->next) {
        struct velo_mq_peer *peer = member_of(link, struct velo_mq_peer, deferred);
        if (mq_pool_fits(&mq->pool, peer->deferred_len_bytes, peer->unexpected_bytes)) {
            mq->work |= WORK_RESUME;
            return;
        }
    }
}

/* Leave the held message in its ring, and take nothing more from its connection. */
static void defer_message(struct velo_mq *mq, struct velo_mq_peer *peer,
                          const struct arrival *arrival)
{
    mq->counters.deferred++;
    (void)velo_defer(mq->port);
    mq->before_post |= BEFORE_DEFERRED;
    if (unlikely(!peer)) {
        mq->defers_unknown = true;
        return;
    }
    peer->deferred_len_bytes = arrival->len_bytes;
    if (!peer->is_deferred) {
        peer->is_deferred = true;
        list_append(&mq->deferred, &peer->deferred);
    }
}

/* The earliest receive that waits for any message of this source; NULL: none does. */
static struct transfer *first_for(const struct velo_mq *mq, velo_id_t source)
{
    struct transfer *op = NULL;
    for (int s = 0; s < VELO_MQ_SPACES; s++)
        op = earlier_of(op, mq_posted_first_for(&mq->spaces[s], source));
    return op;
}

/* Does a receive or probe wait for a message that may stand behind this one? Then this one must not
 * stay in its ring, even if that takes memory beyond the bound: MPI promises that a message which
 * was sent, and is asked for, arrives. */
static bool is_in_the_way(const struct velo_mq *mq, velo_id_t source)
{
    const struct wanted *probed = mq->probed_for;
    return (probed && source_fits(probed->source, source)) || first_for(mq, source);
}

/* Memory for a message. NULL: the message stays in its ring. `peer` is NULL where there is no
 * memory to note its sender. */
static struct velo_mq_message *room_for(struct velo_mq *mq, struct velo_mq_peer *peer,
                                        const struct arrival *arrival)
{
    uint32_t len_bytes = arrival->len_bytes;
    struct velo_mq_message *message = NULL;
    bool fits = likely(peer) && mq_pool_fits(&mq->pool, len_bytes, peer->unexpected_bytes);
    if (likely(fits))
        message = mq_pool_get(&mq->pool, len_bytes, &peer->unexpected_bytes);
    if (likely(message) || !is_in_the_way(mq, arrival->source))
        return message;
    bool is_limit = !mq_pool_fits_limit(&mq->pool, len_bytes);
    if (peer && !fits && !is_limit)
        message = mq_pool_get(&mq->pool, len_bytes, &peer->unexpected_bytes);
    if (!message) {
        mq->over = (struct over){arrival->source, len_bytes, is_limit};
        mq->work |= WORK_OVER;
    }
    return message;
}

/* Tell a probe that looks for this message. */
static void tell_probe(struct velo_mq *mq, const struct arrival *arrival)
{
    const struct wanted *probed = mq->probed_for;
    if (probed && probed->space == arrival->space &&
        ((probed->match ^ arrival->match) & ~probed->ignore) == 0 &&
        source_fits(probed->source, arrival->source))
        mq->probed_for = NULL;
}

static void keep_message(struct velo_mq *mq, const struct arrival *arrival)
{
    struct velo_mq_peer *peer = mq_peer_get(mq, arrival->source, arrival->generation);
    struct velo_mq_message *message = room_for(mq, peer, arrival);
    if (unlikely(!message)) {
        defer_message(mq, peer, arrival);
        return;
    }
    message->entry.match = arrival->match;
    message->entry.source = arrival->source;
    message->peer = peer;
    message->sender_id = arrival->sender_id;
    message->total_bytes = arrival->total_bytes;
    message->key = arrival->key;
    message->address = arrival->address;
    message->len_bytes = arrival->len_bytes;
    message->cookie = arrival->cookie;
    message->kind = arrival->kind;
    message->is_probed = false;
    message->space = arrival->space;
    message->has_cookie = arrival->has_cookie;
    copy_out(message->data, arrival->data, arrival->len_bytes);
    (void)velo_release(mq->port);
    peer->kept++;
    show_memory(mq);
    table_add(&mq->spaces[arrival->space].unexpected, &message->entry);
    list_append(&mq->spaces[arrival->space].arrivals, &message->arrival);
    mq->before_post |= BEFORE_UNEXPECTED;
    mq->counters.unexpected++;
    tell_probe(mq, arrival);
}

int mq_recv_fail_over(const struct velo_mq *mq)
{
    const struct over *over = &mq->over;
    uint32_t node = VELO_ID_NODE(over->source), vpid = VELO_ID_VPID(over->source);
    if (over->is_limit)
        return velo_fail(VELO_ERR_NO_MEMORY,
                         "port %u.%u has sent more than the limit of %llu bytes ahead of what is "
                         "waited for; receive in the order of sending, or raise "
                         "VELO_MQ_UNEXPECTED_LIMIT_BYTES",
                         node, vpid, (unsigned long long)mq->pool.limit_bytes);
    return velo_fail(VELO_ERR_NO_MEMORY,
                     "there is no memory to keep a message of %u bytes that port %u.%u has sent "
                     "ahead of what is waited for",
                     over->len_bytes, node, vpid);
}

void mq_recv_told_over(struct velo_mq *mq)
{
    mq->work &= ~(uint32_t)WORK_OVER;
    mq->work |= WORK_RESUME;
}

int mq_recv_give_up(struct velo_mq *mq)
{
    struct transfer *op = first_for(mq, mq->over.source);
    mq_recv_told_over(mq);
    if (!op)
        return 0;
    posted_remove(&mq->spaces[op->space], op);
    complete(request_of(op), mq_recv_fail_over(mq));
    return 1;
}

bool mq_recv_is_deferred(const struct velo_mq *mq, velo_id_t source)
{
    if (unlikely(mq->defers_unknown))
        return true;
    for (struct link *link = mq->deferred.first; link; link = link->next)
        if (source_fits(member_of(link, struct velo_mq_peer, deferred)->id, source))
            return true;
    return false;
}

void mq_recv_resume(struct velo_mq *mq)
{
    while (mq->deferred.first) {
        struct velo_mq_peer *peer = member_of(mq->deferred.first, struct velo_mq_peer, deferred);
        list_remove(&mq->deferred, &peer->deferred);
        peer->is_deferred = false;
    }
    mq->defers_unknown = false;
    mq->before_post &= ~(uint32_t)BEFORE_DEFERRED;
    mq->work &= ~(uint32_t)WORK_RESUME;
    (void)velo_resume(mq->port);
}

/* ---- a message meets its receive ------------------------------------------------------------- */

bool mq_recv_start(struct velo_mq *mq, struct transfer *op, const struct arrival *arrival)
{
    struct velo_mq_request *request = request_of(op);
    if (op->state == OP_POSTED_LAYOUT)
        op->len_bytes = op->end_bytes;
    else
        op->layout = NULL;
    request->source = arrival->source;
    request->match = arrival->match;
    request->total_bytes = arrival->total_bytes;
    op->id = 0;
    op->mem = NULL;
    op->has_cookie = arrival->has_cookie;
    op->entry.match = arrival->cookie; /* Matched: it needs its own match bits no more. */
    op->outcome = arrival->total_bytes > op->len_bytes ? VELO_ERR_TOO_BIG : VELO_OK;
    if (arrival->kind == MQ_WIRE_RTS)
        return mq_rendezvous_accept(mq, op, arrival);
    request->len_bytes =
        arrival->len_bytes < op->len_bytes ? arrival->len_bytes : (size_t)op->len_bytes;
    mq_data_out(op, 0, arrival->data, request->len_bytes);
    mq->counters.eager++;
    if (arrival->kind == MQ_WIRE_EAGER)
        return true;
    op->remote_id = arrival->sender_id;
    op->peer = mq_peer_get(mq, arrival->source, arrival->generation);
    if (unlikely(!op->peer)) /* The message is here, but its sender waits for an answer. */
        op->outcome =
            velo_fail(VELO_ERR_NO_MEMORY, "no memory for a peer that waits for an answer");
    return !op->peer || mq_answer_fin(op);
}

void mq_recv_kept(struct velo_mq *mq, struct transfer *op, struct velo_mq_message *message)
{
    struct arrival arrival = {
        .match = message->entry.match,
        .sender_id = message->sender_id,
        .total_bytes = message->total_bytes,
        .key = message->key,
        .address = message->address,
        .cookie = message->cookie,
        .data = message->data,
        .len_bytes = message->len_bytes,
        .source = message->entry.source,
        .generation = message->peer->generation,
        .kind = message->kind,
        .space = message->space,
        .has_cookie = message->has_cookie,
    };
    bool is_done = mq_recv_start(mq, op, &arrival);
    mq_recv_free_kept(mq, message);
    if (is_done)
        complete(request_of(op), op->outcome);
}

hot_inline void post_receive(struct velo_mq *mq, struct space *space, struct transfer *op)
{
    op->sequence = ++mq->sequence;
    posted_add(space, op);
}

/* The same, before all others. */
static void post_first(struct velo_mq *mq, struct space *space, struct transfer *op)
{
    op->sequence = mq->sequence_first--;
    mq_posted_add_slow(space, op, true);
}

hot_inline struct transfer *describe_receive(uint8_t space, velo_id_t source, uint64_t match,
                                             uint64_t ignore, void *buf, size_t cap_bytes,
                                             struct velo_mq_request *request)
{
    struct transfer *op = op_of(request);
    request->status = VELO_AGAIN;
    op->entry.match = match;
    op->entry.source = source;
    op->ignore = ignore;
    op->buf = buf;
    op->len_bytes = cap_bytes;
    op->state = OP_POSTED;
    op->kind = 0;
    op->space = space;
    op->has_cookie = false;
    return op;
}

/* Post a receive, if there is something to be looked at first. Its message may have come. */
static int look_and_post(struct velo_mq *mq, struct transfer *op, bool is_first)
{
    uint8_t space = op->space;
    velo_id_t source = op->entry.source;
    uint64_t match = op->entry.match, ignore = op->ignore;
    struct velo_mq_message *message = mq_recv_find_kept(mq, space, source, match, ignore);
    if (message) {
        mq_recv_unlink_kept(mq, message);
        mq_recv_kept(mq, op, message);
        return VELO_OK;
    }
    if (mq_recv_is_deferred(mq, source))
        mq->work |= WORK_RESUME;
    if (is_first)
        post_first(mq, &mq->spaces[space], op);
    else
        post_receive(mq, &mq->spaces[space], op);
    return VELO_OK;
}

static int is_closing(void) { return velo_fail(VELO_ERR_STATE, "the queues are being closed"); }

/* As velo_mq_irecv(), if there is something to be looked at first. */
static __attribute__((noinline)) int irecv_slow(struct velo_mq *mq, uint8_t space, velo_id_t source,
                                                uint64_t match, uint64_t ignore, void *buf,
                                                size_t cap_bytes, bool is_first,
                                                struct velo_mq_request *request)
{
    if (mq->before_post & BEFORE_CLOSING)
        return is_closing();
    return look_and_post(
        mq, describe_receive(space, source, match, ignore, buf, cap_bytes, request), is_first);
}

int velo_mq_irecv_layout(struct velo_mq *mq, velo_id_t source, uint64_t match, uint64_t ignore,
                         const struct velo_mq_layout *layout, void *state, size_t cap_bytes,
                         struct velo_mq_request *request)
{
    if (!mq || !request || !layout || !layout->unpack)
        return velo_fail(VELO_ERR_ARG, "mq, request, layout or its unpack() is NULL");
    if (mq->before_post & BEFORE_CLOSING)
        return is_closing();
    struct transfer *op = describe_receive(0, source, match, ignore, state, 0, request);
    mq_layout_receives(op, layout, cap_bytes);
    return look_and_post(mq, op, false);
}

int velo_mq_irecv(struct velo_mq *mq, velo_id_t source, uint64_t match, uint64_t ignore, void *buf,
                  size_t cap_bytes, struct velo_mq_request *request)
{
    if (unlikely(!mq || !request || (!buf && cap_bytes > 0)))
        return velo_fail(VELO_ERR_ARG, "mq, request or buf is NULL");
    if (unlikely(mq->before_post))
        return irecv_slow(mq, 0, source, match, ignore, buf, cap_bytes, false, request);
    post_receive(mq, &mq->spaces[0],
                 describe_receive(0, source, match, ignore, buf, cap_bytes, request));
    return VELO_OK;
}

int velo_mq_irecv_in(struct velo_mq *mq, uint32_t space, velo_id_t source, uint64_t match,
                     uint64_t ignore, void *buf, size_t cap_bytes, uint32_t flags,
                     struct velo_mq_request *request)
{
    if (unlikely(!mq || !request || (!buf && cap_bytes > 0)))
        return velo_fail(VELO_ERR_ARG, "mq, request or buf is NULL");
    if (unlikely(space >= VELO_MQ_SPACES || (flags & ~(uint32_t)VELO_MQ_FIRST)))
        return velo_fail(VELO_ERR_ARG,
                         "space is %u and flags are %#x; give a space below %d, and 0 "
                         "or VELO_MQ_FIRST",
                         space, flags, VELO_MQ_SPACES);
    if (unlikely(mq->before_post || flags))
        return irecv_slow(mq, (uint8_t)space, source, match, ignore, buf, cap_bytes, flags != 0,
                          request);
    post_receive(mq, &mq->spaces[space],
                 describe_receive((uint8_t)space, source, match, ignore, buf, cap_bytes, request));
    return VELO_OK;
}

int velo_mq_cookie(const struct velo_mq_request *request, uint64_t *cookie)
{
    if (unlikely(!request || !cookie))
        return velo_fail(VELO_ERR_ARG, "request or cookie is NULL");
    const struct transfer *op = (const struct transfer *)(uintptr_t)request->private_;
    if (!op->has_cookie)
        return VELO_AGAIN;
    *cookie = op->entry.match;
    return VELO_OK;
}

/* ---- what comes in --------------------------------------------------------------------------- */

/* Read the cookie, which stands before the trailer that `arrival` was made of. False: it is not
 * there. */
static bool parse_cookie(const struct velo_msg *msg, struct arrival *arrival)
{
    if (arrival->len_bytes < sizeof arrival->cookie)
        return false;
    arrival->len_bytes -= (uint32_t)sizeof arrival->cookie;
    memcpy(&arrival->cookie, (const char *)msg->data + arrival->len_bytes, sizeof arrival->cookie);
    arrival->has_cookie = true;
    if (arrival->kind != MQ_WIRE_RTS)
        arrival->total_bytes = arrival->len_bytes;
    return true;
}

/* Read an EAGER, SYNC or RTS. False: no correct peer sends it. */
static bool parse_kind(const struct velo_mq *mq, const struct velo_msg *msg,
                       struct arrival *arrival)
{
    size_t len_bytes = msg->len_bytes;
    struct wire_sync sync;
    struct wire_rts rts;
    *arrival = (struct arrival){
        .data = msg->data,
        .source = msg->source,
        .generation = msg->generation,
        .kind = msg->tag & MQ_WIRE_KIND_MASK,
        .space = (msg->tag & MQ_WIRE_SPACE_MASK) >> MQ_WIRE_SPACE_SHIFT,
    };
    switch (arrival->kind) {
    case MQ_WIRE_EAGER:
        if (!wire_read_eager(msg->data, &len_bytes, msg->tag & MQ_WIRE_COOKIE, &arrival->match,
                             &arrival->cookie))
            return false;
        arrival->has_cookie = msg->tag & MQ_WIRE_COOKIE;
        arrival->len_bytes = (uint32_t)len_bytes;
        arrival->total_bytes = len_bytes;
        return true;
    case MQ_WIRE_EAGER_APART:
        arrival->kind = MQ_WIRE_EAGER;
        arrival->len_bytes = (uint32_t)msg->len_bytes;
        arrival->total_bytes = arrival->len_bytes;
        return port_held_word(mq->port, &arrival->match);
    case MQ_WIRE_SYNC:
        if (!mq_wire_read(msg, &sync, sizeof sync))
            return false;
        arrival->match = sync.match;
        arrival->sender_id = sync.sender_id;
        arrival->len_bytes = (uint32_t)(msg->len_bytes - sizeof sync);
        arrival->total_bytes = arrival->len_bytes;
        return true;
    default:
        if (!mq_wire_read(msg, &rts, sizeof rts))
            return false;
        arrival->match = rts.match;
        arrival->sender_id = rts.sender_id;
        arrival->total_bytes = rts.len_bytes;
        arrival->key = rts.key;
        arrival->address = rts.address;
        arrival->len_bytes = (uint32_t)(msg->len_bytes - sizeof rts);
        return true;
    }
}

static bool parse_message(const struct velo_mq *mq, const struct velo_msg *msg,
                          struct arrival *arrival)
{
    return parse_kind(mq, msg, arrival) &&
           (!(msg->tag & MQ_WIRE_COOKIE) || arrival->has_cookie || parse_cookie(msg, arrival)) &&
           arrival->len_bytes <= arrival->total_bytes && arrival->space < VELO_MQ_SPACES;
}

/* Take any message but an eager one for a posted receive. */
static __attribute__((noinline)) void take_other(struct velo_mq *mq, const struct velo_msg *msg)
{
    struct arrival arrival;
    bool is_sane = false;
    bool is_matched = false; /* To be matched with a receive. */
    switch (msg->tag & ~(MQ_WIRE_COOKIE | MQ_WIRE_SPACE_MASK)) {
    case MQ_WIRE_EAGER:
    case MQ_WIRE_EAGER_APART:
    case MQ_WIRE_SYNC:
    case MQ_WIRE_RTS:
        is_matched = true;
        is_sane = msg->source < VELO_NODES * VELO_VPIDS && parse_message(mq, msg, &arrival);
        break;
    case MQ_WIRE_CTS:
        is_sane = msg->tag == MQ_WIRE_CTS && mq_rendezvous_on_cts(mq, msg);
        break;
    case MQ_WIRE_DATA:
        is_sane = msg->tag == MQ_WIRE_DATA && mq_copy_on_data(mq, msg);
        break;
    case MQ_WIRE_FIN:
        is_sane = msg->tag == MQ_WIRE_FIN && mq_rendezvous_on_fin(mq, msg);
        break;
    default:
        break;
    }
    if (unlikely(!is_sane)) {
        mq->counters.errors++;
        (void)velo_release(mq->port);
        return;
    }
    if (!is_matched)
        return;
    struct transfer *op = posted_match(&mq->spaces[arrival.space], arrival.match, arrival.source);
    if (!op) {
        keep_message(mq, &arrival);
        return;
    }
    bool is_done = mq_recv_start(mq, op, &arrival);
    (void)velo_release(mq->port);
    if (is_done)
        complete(request_of(op), op->outcome);
}

/* Take an eager message that is longer than the buffer of its receive, or is for a layout. */
static __attribute__((noinline)) void take_longer(struct velo_mq *mq, const struct velo_msg *msg,
                                                  struct transfer *op, uint64_t match,
                                                  size_t total_bytes)
{
    struct arrival arrival = {
        .match = match,
        .total_bytes = total_bytes,
        .data = msg->data,
        .len_bytes = (uint32_t)total_bytes,
        .source = msg->source,
        .generation = msg->generation,
        .kind = MQ_WIRE_EAGER,
    };
    (void)mq_recv_start(mq, op, &arrival); /* An eager one is done at once. */
    (void)velo_release(mq->port);
    complete(request_of(op), op->outcome);
}

/* Take the message that is held. */
hot_inline void take_message(struct velo_mq *mq, const struct velo_msg *msg)
{
    uint64_t match;
    size_t total_bytes = msg->len_bytes;
    bool is_plain =
        msg->tag == MQ_WIRE_EAGER && wire_read_eager(msg->data, &total_bytes, false, &match, NULL);
    if (unlikely(!is_plain) &&
        (msg->tag != MQ_WIRE_EAGER_APART || !port_held_word(mq->port, &match))) {
        take_other(mq, msg);
        return;
    }
    struct transfer *op = posted_match(&mq->spaces[0], match, msg->source);
    if (unlikely(!op)) {
        take_other(mq, msg);
        return;
    }
    if (unlikely(total_bytes > op->len_bytes)) {
        take_longer(mq, msg, op, match, total_bytes);
        return;
    }
    struct velo_mq_request *request = request_of(op);
    copy_out(op->buf, msg->data, total_bytes);
    (void)velo_release(mq->port);
    request->source = msg->source;
    request->match = match;
    request->len_bytes = total_bytes;
    request->total_bytes = total_bytes;
    mq->counters.eager++;
    complete(request, VELO_OK);
}

void mq_recv_take(struct velo_mq *mq, const struct velo_msg *msg) { take_message(mq, msg); }

/* Take the next message if it is short and eager, and its receive is the first in its list. */
hot_inline bool take_short(struct velo_mq *mq, uint64_t header)
{
    struct velo_port *port = mq->port;
    struct short_message message;
    uint64_t match, cookie = 0;
    if (!short_message_read(port->current, header, &message) ||
        unlikely((message.tag & ~(MQ_WIRE_COOKIE | MQ_WIRE_SPACE_MASK)) != MQ_WIRE_EAGER))
        return false;
    size_t len_bytes = message.len_bytes;
    bool has_cookie = message.tag & MQ_WIRE_COOKIE;
    if (unlikely(!wire_read_eager(message.data, &len_bytes, has_cookie, &match, &cookie)))
        return false;
    uint32_t space_number = (message.tag & MQ_WIRE_SPACE_MASK) >> MQ_WIRE_SPACE_SHIFT;
    if (unlikely(space_number >= VELO_MQ_SPACES))
        return false;
    velo_id_t source = port->current->from.id;
    struct space *space = &mq->spaces[space_number];
    struct posted *posted = posted_only(space);
    if (unlikely(!posted))
        return false;
    uint64_t key = match & ~posted->ignore;
    struct list *list = table_list(&posted->table, key);
    struct transfer *op = (struct transfer *)list->first;
    if (unlikely(!op || op->entry.match != key || len_bytes > op->len_bytes ||
                 (op->entry.source != source && op->entry.source != VELO_MQ_ANY_SOURCE)))
        return false;
    posted->table.count--;
    list_remove(list, &op->entry.link);
    if (has_cookie) {
        op->has_cookie = true;
        op->entry.match = cookie;
    }
    copy_small(op->buf, message.data, len_bytes);
    port_step_short(port, &message);
    struct velo_mq_request *request = request_of(op);
    request->source = source;
    request->match = match;
    request->len_bytes = len_bytes;
    request->total_bytes = len_bytes;
    mq->counters.eager++;
    complete(request, VELO_OK);
    return true;
}

/* This is a stream: the next call takes more. */
static uint32_t grow_burst(struct velo_mq *mq)
{
    uint32_t burst = mq->burst;
    mq->burst = burst < MQ_BURST_MAX ? burst * 2 : MQ_BURST_MAX;
    return burst;
}

/* Take the next message, whose header is this, or 0 if none is in the current ring. False: none has
 * come. */
hot_inline bool take_next(struct velo_mq *mq, uint64_t header)
{
    struct velo_msg msg;
    if (likely(header) && take_short(mq, header))
        return true;
    if (velo_try_peek(mq->port, &msg) != VELO_OK)
        return false;
    take_message(mq, &msg);
    return true;
}

static int take_stream(struct velo_mq *mq, uint64_t header)
{
    int events = 0;
    for (uint32_t left = grow_burst(mq); left > 0; left--, events++) {
        if (events > 0)
            header = port_look(mq->port);
        if ((header == 0 && port_is_quiet(mq->port)) || !take_next(mq, header))
            break;
    }
    if (events == 0)
        mq->burst = 0; /* It was none. */
    return events;
}

/* In a ping-pong it does not pay to look for a second message. So this call looks for one only
 * if the call before, too, has found a message at its first look. */
int mq_recv_burst(struct velo_mq *mq, const struct velo_msg *first)
{
    take_message(mq, first);
    if (mq->burst > 0)
        return 1 + take_stream(mq, port_look(mq->port));
    mq->burst = 1;
    return 1;
}

int mq_recv_next(struct velo_mq *mq, uint64_t header)
{
    if (mq->burst > 0)
        return take_stream(mq, header);
    if (!take_next(mq, header))
        return 0;
    mq->burst = 1;
    return 1;
}
