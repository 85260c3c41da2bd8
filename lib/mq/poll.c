/* SPDX-License-Identifier: Apache-2.0 */
/* The short way of a receive that its caller waits for. */
#include "../base/error.h"
#include "../base/order.h"
#include "../core/spin.h"
#include "../core/stream.h"
#include "../core/wanted.h"
#include "posted.h"

/* Polls in vain before velo_mq_poll() gives up: about a microsecond. */
#define POLLS_PER_CALL 64u
/* Polls between two looks at what a poll for one message does not see. */
#define POLLS_PER_LOOK 16u
/* In a stream: see pause_for(). */
#define MESSAGES_PER_PAUSE 8u
#define STREAM_MOST 64u
/* It comes back even if messages for others come without end. */
#define ROUNDS_PER_CALL 256u

/* Would the next message, if it fits this request, be matched with it? It is a posted receive then,
 * and no other that fits was posted before it: it is the only one, or all are in one table and it
 * is the first in its list, where all with its match bits are. */
hot_inline bool is_next(const struct velo_mq *mq, const struct transfer *op)
{
    const struct space *space = &mq->spaces[0];
    if (unlikely(op->state != OP_POSTED || op->space != 0 || mq->work != 0))
        return false;
    if (likely(posted_count(space) == 1))
        return true;
    const struct posted *posted = posted_only(space);
    return posted && table_list(&posted->table, op->entry.match)->first == &op->entry.link;
}

/* Wait for the message of such a receive, and take it. False: nothing has come, or anything else.
 */
hot_inline bool take_wanted(struct velo_mq *mq, struct transfer *op)
{
    struct wanted_message wanted = {.word = op->entry.match,
                                    .ignore = op->ignore,
                                    .source = op->entry.source,
                                    .tag = MQ_WIRE_EAGER,
                                    .tag_of_two = MQ_WIRE_EAGER | MQ_WIRE_COOKIE,
                                    .buf = op->buf,
                                    .cap_bytes = op->len_bytes};
    struct wanted_found found;
    uint32_t words = port_take_wanted(mq->port, &wanted, &found, POLLS_PER_LOOK);
    if (words == 0)
        return false;
    struct velo_mq_request *request = request_of(op);
    request->source = found.source;
    request->match = found.word;
    request->len_bytes = found.len_bytes;
    request->total_bytes = found.len_bytes;
    mq->counters.eager++;
    mq->burst = 0;
    posted_remove(&mq->spaces[0], op);
    if (unlikely(words > 1)) {
        op->has_cookie = true;
        op->entry.match = found.other; /* Matched: it needs its own match bits no more. */
    }
    complete(request, VELO_OK);
    return true;
}

/* The number of receives that were posted before this one, for messages with its match bits: they
 * come in a stream. 0: none were, or it is not known. */
hot_inline uint64_t earlier(const struct velo_mq *mq, const struct transfer *op)
{
    if (op->state != OP_POSTED || op->place == POSTED_TABLES)
        return 0;
    const struct match_table *table = &mq->spaces[op->space].posted[op->place].table;
    const struct transfer *first =
        (const struct transfer *)table_list(table, op->entry.match)->first;
    return first->entry.match == op->entry.match ? op->sequence - first->sequence : 0;
}

/* A receiver that takes each message of a stream as soon as it is there takes the line from its
 * sender as often, and both crawl. The more messages are still to come, the longer it waits. */
static uint32_t pause_for(uint64_t messages)
{
    uint32_t pauses =
        1 + (uint32_t)(messages < STREAM_MOST ? messages : STREAM_MOST) / MESSAGES_PER_PAUSE;
    for (uint32_t i = 0; i < pauses; i++)
        order_pause();
    return pauses;
}

int velo_mq_poll(struct velo_mq *mq, struct velo_mq_request *request)
{
    if (unlikely(!mq || !request))
        return velo_fail(VELO_ERR_ARG, "mq or request is NULL");
    struct transfer *op = op_of(request);
    uint32_t polls = POLLS_PER_CALL;
    uint32_t rounds = ROUNDS_PER_CALL;
    for (; request->status == VELO_AGAIN && polls > 0 && rounds > 0; rounds--) {
        bool is_waited_for = is_next(mq, op);
        if (is_waited_for && take_wanted(mq, op))
            break;
        uint64_t messages = is_waited_for ? 0 : earlier(mq, op);
        if (messages > 0)
            mq->burst = MQ_BURST_MAX;
        if (velo_mq_progress(mq) > 0)
            continue;
        uint32_t done = pause_for(messages);
        if (is_waited_for && mq->port->active_count <= 2)
            done = POLLS_PER_LOOK;
        polls -= done < polls ? done : polls;
    }
    return request->status;
}

/* Wait for the next message, whatever it is for, and take it. False: none has come. */
hot_inline bool take_any(struct velo_mq *mq)
{
    struct velo_port *port = mq->port;
    struct ring_rx *rx = port->current;
    uint64_t header = port_look(port);
    if (header == 0) {
        port->messages_before = port->messages;
        if (unlikely(!spin_may(port, rx)))
            return false;
        header = spin_ring(port, rx, port->look, POLLS_PER_LOOK);
        mq->burst = 0; /* It had to be waited for. */
    }
    return header != 0 && mq_recv_next(mq, header) > 0;
}

int velo_mq_spin(struct velo_mq *mq, struct velo_mq_request *request)
{
    if (unlikely(!mq || mq->work != 0))
        return velo_mq_progress(mq);
    bool is_wanted = request && is_next(mq, op_of(request));
    bool is_done = is_wanted ? take_wanted(mq, op_of(request)) : take_any(mq);
    return likely(is_done) ? 1 : velo_mq_progress(mq);
}
