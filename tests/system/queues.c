/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mq.h: messages from one generation to another, and the receives that take them. The model does
 * not know in which order messages of different senders arrive, nor when a long one is matched; it
 * knows what follows from that which ended.
 *
 *   - A receive that ended well has one message, sent to its generation, that it fits and nobody
 * else has.
 *   - Of two messages of one sender the earlier is matched first: once a receive has the later one,
 *     no receive that was posted after it may take the earlier one, should both fit.
 *   - Of two receives the earlier is matched first: once a later one has a message that fits both,
 *     the earlier can only have been matched before; it may not be cancelled, nor take what was
 *     sent since.
 *   - A synchronous send ends well only when its message was matched.
 *   - Errors that speak of a peer's end need a peer whose generation ended.
 */
#include <stdio.h>

#include "run.h"

enum { TAGS = 3, LEN_LONG = 40000 };
/* Rounds of progress after which some calls look whether their peer lives; they do not all know the
 * time. */
enum { ROUNDS_MANY = 400 };

enum sent_state { UNDER_WAY, OUT, GIVEN_UP };

struct sent {
    struct sent *next; /* In the receiver's inbox. */
    uint64_t serial;
    struct generation *from, *to;
    uint64_t match;
    size_t len_bytes;
    bool is_sync;
    bool is_long;
    bool is_taken;
    enum sent_state state;
    uint64_t step;
    void *buf;
    uint64_t taken_before;       /* Only a receive with a lower number may have it, */
    const struct sent *overtook; /* since this one was matched with the receive of that number. */
};

struct recv {
    struct recv *next; /* Of those posted to the same generation. */
    uint64_t number;   /* In the order of posting, in the whole system. */
    int source;        /* An id, or -1. */
    uint64_t match, ignore;
    size_t cap_bytes;
    void *buf;
    uint64_t step;
    bool is_probed;               /* It is a matched probe: its message is its own already. */
    uint64_t passed_step;         /* Not 0: since then it is known to be matched, because */
    const struct sent *passed_by; /* this message went to a later receive. */
};

static bool fits(const struct recv *recv, const struct sent *sent)
{
    return ((recv->match ^ sent->match) & ~recv->ignore) == 0 &&
           (recv->source < 0 || (uint32_t)recv->source == sent->from->vpid);
}

static const char *describe(const struct sent *sent)
{
    static char texts[4][128];
    static unsigned next;
    char *text = texts[next++ % 4];

    (void)snprintf(text, sizeof texts[0],
                   "message %llu (%zu bytes, tag %d, of generation %u, step %llu)",
                   (unsigned long long)sent->serial, sent->len_bytes, VELO_MQ_TAG(sent->match),
                   sent->from->number, (unsigned long long)sent->step);
    return text;
}

static const char *wish(const struct recv *recv)
{
    static char text[96];
    int len = snprintf(text, sizeof text, "%s%s, ", recv->source < 0 ? "any source" : "id ",
                       recv->source < 0 ? "" : (const char[]){(char)('0' + recv->source), 0});

    if (recv->ignore & VELO_MQ_IGNORE_TAG)
        (void)snprintf(text + len, sizeof text - (size_t)len, "any tag");
    else
        (void)snprintf(text + len, sizeof text - (size_t)len, "tag %d", VELO_MQ_TAG(recv->match));
    return text;
}

/* ---- what is under way ----------------------------------------------------------------------- */

static void inbox_add(struct sent *sent)
{
    struct generation *to = sent->to;

    if (to->inbox_last != NULL)
        to->inbox_last->next = sent;
    else
        to->inbox = sent;
    to->inbox_last = sent;
}

static void inbox_remove(struct sent *sent)
{
    struct generation *to = sent->to;
    struct sent *before = NULL;
    struct sent **link = &to->inbox;

    while (*link != NULL && *link != sent) {
        before = *link;
        link = &(*link)->next;
    }
    if (*link == NULL)
        return;
    *link = sent->next;
    if (to->inbox_last == sent)
        to->inbox_last = before;
    sent->next = NULL;
}

static void recvs_remove(struct generation *generation, const struct recv *recv)
{
    struct recv *before = NULL;
    struct recv **link = &generation->recvs;

    while (*link != recv) {
        before = *link;
        link = &(*link)->next;
    }
    *link = recv->next;
    if (generation->recvs_last == recv)
        generation->recvs_last = before;
}

void queues_ended(struct seat *seat)
{
    for (uint32_t i = 0; i < REQUESTS; i++)
        if (seat->sends[i] != NULL)
            seat->sends[i]->state = GIVEN_UP;
    seat->generation->inbox = seat->generation->inbox_last = NULL;
    seat->generation->recvs = seat->generation->recvs_last = NULL;
}

/* ---- a receive has its message --------------------------------------------------------------- */

static void check_order(const struct seat *seat, const struct recv *recv, const struct sent *sent)
{
    if (recv->number >= sent->taken_before)
        fail_run(seat->generation, sent->from,
                 "%s was overtaken: it fits an earlier receive, which got %s, sent after it by the "
                 "same port",
                 describe(sent), describe(sent->overtook));
    const struct sent *passed = recv->passed_by;
    if (recv->passed_step != 0 && (sent->step > recv->passed_step ||
                                   (sent->from == passed->from && sent->serial > passed->serial)))
        fail_run(seat->generation, sent->from,
                 "the receive posted at step %llu was passed over: %s fits it, but went to one "
                 "posted later; now it got %s",
                 (unsigned long long)recv->step, describe(passed), describe(sent));
}

static void take(struct seat *seat, struct recv *recv, struct sent *sent)
{
    check_order(seat, recv, sent);
    sent->is_taken = true;
    run.receives++;
    digest(sent->serial);
    for (struct sent *other = seat->generation->inbox; other != sent; other = other->next) {
        if (other->from == sent->from && fits(recv, other) && recv->number < other->taken_before) {
            other->taken_before = recv->number;
            other->overtook = sent;
        }
    }
    for (struct recv *other = seat->generation->recvs; other != NULL; other = other->next) {
        if (other->number < recv->number && fits(other, sent)) {
            other->passed_step = recv->is_probed ? recv->step : run.step;
            other->passed_by = sent;
        }
    }
    inbox_remove(sent);
}

/* The message that a receive was given, by its content. */
static struct sent *identify(const struct seat *seat, const struct recv *recv,
                             const struct event *event)
{
    for (struct sent *sent = seat->generation->inbox; sent != NULL; sent = sent->next)
        if (fits(recv, sent) && sent->from->vpid == event->source && sent->match == event->match &&
            sent->len_bytes == event->total_bytes &&
            content_is(recv->buf, event->len_bytes, sent->serial))
            return sent;
    return NULL;
}

/* How much of the buffer is of whom? */
_Noreturn static void fail_content(const struct seat *seat, const struct recv *recv,
                                   const struct event *event)
{
    uint64_t serial = content_serial(recv->buf, event->len_bytes);
    size_t good = 0;
    static char whole[BLOCK_BYTES];

    content_fill(whole, event->len_bytes, serial);
    while (good < event->len_bytes && ((char *)recv->buf)[good] == whole[good])
        good++;
    fail_run(seat->generation, run.by_vpid[event->source % VPIDS],
             "the receive posted at step %llu ended with %s, %zu of %zu bytes from id %u, tag %d: "
             "no message that was sent to it. It begins as message %llu, of which %zu bytes are "
             "right%s",
             (unsigned long long)recv->step, status_name(event->status), event->len_bytes,
             event->total_bytes, event->source, VELO_MQ_TAG(event->match),
             (unsigned long long)serial, good,
             good < event->len_bytes ? ": it is torn"
                                     : ": received before, or of another generation");
}

static void received(struct seat *seat, struct recv *recv, const struct event *event)
{
    struct sent *sent = identify(seat, recv, event);

    if (sent == NULL)
        fail_content(seat, recv, event);
    bool is_cut = event->total_bytes > recv->cap_bytes;
    size_t due_bytes = is_cut ? recv->cap_bytes : event->total_bytes;
    story_outcome("; the receive of step %llu has message %llu of generation %u",
                  (unsigned long long)recv->step, (unsigned long long)sent->serial,
                  sent->from->number);
    if (event->status != (is_cut ? VELO_ERR_TOO_BIG : VELO_OK) || event->len_bytes != due_bytes)
        fail_run(seat->generation, sent->from,
                 "a receive of %zu bytes got %s with %s and %zu bytes", recv->cap_bytes,
                 describe(sent), status_name(event->status), event->len_bytes);
    take(seat, recv, sent);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static bool is_end(int status)
{
    return status == VELO_ERR_PEER_DEAD || status == VELO_ERR_PEER_CLOSED;
}

/* Has this id been without a port, or left us, so that `generation` may have heard of it? */
static bool may_miss(const struct generation *generation, uint32_t vpid)
{
    const struct generation *now = run.by_vpid[vpid];

    return now == NULL || now->opened_step > generation->opened_step ||
           generation->gave_up_step[vpid] || now->gave_up_step[generation->vpid];
}

/* Has either side given the other up since the message was sent? */
static bool is_given_up(const struct sent *sent)
{
    uint64_t by_from = sent->from->gave_up_step[sent->to->vpid];
    uint64_t by_to = sent->to->gave_up_step[sent->from->vpid];

    return (by_from >= sent->step && by_from != 0) || (by_to >= sent->step && by_to != 0);
}

/* It had been matched: with what was sent by a port that has ended, or that was given up? */
static void check_broken_off(const struct seat *seat, const struct recv *recv,
                             const struct event *event)
{
    struct sent *found = NULL;

    for (struct sent *sent = seat->generation->inbox; sent != NULL; sent = sent->next) {
        if (!fits(recv, sent) || sent->from->vpid != event->source || sent->match != event->match ||
            sent->len_bytes != event->total_bytes)
            continue;
        found = sent;
        if (sent->from->state != LIVES || is_given_up(sent))
            break;
    }
    if (found == NULL)
        fail_run(seat->generation, NULL,
                 "the receive posted at step %llu ended with %s and had a message that nobody sent",
                 (unsigned long long)recv->step, status_name(event->status));
    if (found->from->state == LIVES && !is_given_up(found))
        fail_run(seat->generation, found->from,
                 "the receive posted at step %llu ended with %s, but it had %s, and %s lives",
                 (unsigned long long)recv->step, status_name(event->status), describe(found),
                 name_of(found->from));
    story_outcome(", which had message %llu of generation %u", (unsigned long long)found->serial,
                  found->from->number);
    found->is_taken = true;
    inbox_remove(found);
}

/* It waited for a message: from a port that may have ended? */
static void check_given_up(const struct seat *seat, const struct recv *recv,
                           const struct event *event)
{
    for (uint32_t vpid = 0; vpid < run.vpids; vpid++)
        if ((recv->source < 0 || recv->source == (int)vpid) && may_miss(seat->generation, vpid))
            return;
    fail_run(seat->generation, recv->source >= 0 ? run.by_vpid[recv->source] : NULL,
             "the receive posted at step %llu for %s ended with %s, but no such port has ended",
             (unsigned long long)recv->step, wish(recv), status_name(event->status));
}

static void receive_failed(const struct seat *seat, const struct recv *recv,
                           const struct event *event)
{
    bool is_closing = seat->process->desk->command.act == ACT_PORT_CLOSE;

    story_outcome("; the receive of step %llu ends with %s", (unsigned long long)recv->step,
                  status_name(event->status));
    if (event->status == VELO_ERR_CANCELLED && is_closing)
        return;
    if (!is_end(event->status))
        fail_run(seat->generation, NULL, "the receive posted at step %llu ended with %s",
                 (unsigned long long)recv->step, status_name(event->status));
    if (event->source < run.vpids)
        check_broken_off(seat, recv, event);
    else
        check_given_up(seat, recv, event);
}

static void send_failed(const struct seat *seat, struct sent *sent, int status)
{
    enum act act = seat->process->desk->command.act;
    bool is_legal = (is_end(status) && (sent->to->state != LIVES || is_given_up(sent))) ||
                    (status == VELO_ERR_CANCELLED && act == ACT_PORT_CLOSE);

    story_outcome("; the send of message %llu ends with %s", (unsigned long long)sent->serial,
                  status_name(status));
    sent->state = GIVEN_UP;
    if (!is_legal)
        fail_run(seat->generation, sent->to,
                 "the send of %s to %s ended with %s, but its peer goes on", describe(sent),
                 name_of(sent->to), status_name(status));
}

/* Is there a receive that may have been matched with it and goes on? */
static bool may_be_matched(const struct sent *sent)
{
    for (const struct recv *recv = sent->to->recvs; recv != NULL; recv = recv->next)
        if (fits(recv, sent))
            return true;
    return sent->is_taken || sent->to->state != LIVES;
}

static void send_done(const struct seat *seat, struct sent *sent, int status)
{
    if (status != VELO_OK) {
        send_failed(seat, sent, status);
        return;
    }
    story_outcome("; the send of message %llu is done", (unsigned long long)sent->serial);
    sent->state = OUT;
    /* Of a long message the receiver still has to take the last pieces; one that stands in the
     * middle of a call has not told yet what it received. */
    bool is_matched = sent->is_long || sent->to->process->is_busy
                          ? may_be_matched(sent)
                          : sent->is_taken || sent->to->state != LIVES;
    if ((sent->is_sync || sent->is_long) && !is_matched)
        fail_run(seat->generation, sent->to,
                 "the %s send of %s to %s ended with VELO_OK, but no receive "
                 "has matched it",
                 sent->is_sync ? "synchronous" : "long", describe(sent), name_of(sent->to));
}

void queues_event(struct seat *seat, const struct event *event)
{
    uint32_t handle = event->handle;
    struct sent *sent = seat->sends[handle];
    struct recv *recv = seat->recvs[handle];

    digest((uint64_t)event->status << 32 | handle);
    if (sent != NULL) {
        seat->sends[handle] = NULL;
        block_give(seat->process, sent->buf);
        send_done(seat, sent, event->status);
    } else if (recv != NULL) {
        seat->recvs[handle] = NULL;
        recvs_remove(seat->generation, recv);
        if (event->status == VELO_OK || event->status == VELO_ERR_TOO_BIG)
            received(seat, recv, event);
        else
            receive_failed(seat, recv, event);
        block_freeze(seat->process, recv->buf);
    } else {
        fail_run(seat->generation, NULL, "a request ended twice");
    }
}

/* ---- steps: peers ---------------------------------------------------------------------------- */

static bool step_connect(struct seat *seat)
{
    uint32_t vpid = below(run.vpids);
    struct generation *to = run.by_vpid[vpid];

    if (!seat->generation->shape.is_mq || seat->mq_to[vpid] != NULL || !run.is_queue[vpid])
        return false;
    struct command command = {
        .act = ACT_MQ_CONNECT, .vpid = vpid, .id = VELO_ID(0, vpid), .die_at = draw_death(2, 12)};
    story_step(seat->generation, to, "%s connects its queues to id %u, which is %s",
               name_of(seat->generation), vpid, name_of(to));
    if (!tell(seat, &command))
        return true;
    int status = reply_of(seat)->status;
    story_status(status);
    bool is_absent = status == VELO_ERR_NO_PEER || status == VELO_TIMEOUT || is_end(status);
    bool has_ended = to != NULL && to->state != LIVES; /* While the call stood still. */
    if (!has_ended && !edges_excuse(seat, status) && (to == NULL ? !is_absent : status != VELO_OK))
        fail_run(seat->generation, to, "velo_mq_connect gave %s", status_name(status));
    seat->mq_to[vpid] = status == VELO_OK ? to : NULL;
    return true;
}

static bool step_disconnect(struct seat *seat)
{
    uint32_t vpid = below(run.vpids);
    struct generation *to = seat->mq_to[vpid];

    if (to == NULL || (to->state == LIVES && chance(50)))
        return false;
    struct command command = {.act = ACT_MQ_DISCONNECT, .vpid = vpid, .die_at = draw_death(2, 12)};
    story_step(seat->generation, to, "%s gives %s up", name_of(seat->generation), name_of(to));
    seat->mq_to[vpid] = NULL;
    seat->generation->gave_up_step[vpid] = run.step;
    if (!tell(seat, &command))
        return true;
    story_status(reply_of(seat)->status);
    if (reply_of(seat)->status != VELO_OK)
        fail_run(seat->generation, to, "velo_mq_disconnect failed");
    return true;
}

/* ---- steps: sending -------------------------------------------------------------------------- */

static size_t draw_len(const struct generation *to)
{
    switch (below(12)) {
    case 0:
        return 0;
    case 1:
    case 2:
    case 3:
        return 8 + below(60);
    case 4:
        return 8 + below(600);
    case 5:
    case 6:
    case 7:
        return 2000 + below(2000);
    default:
        return to->shape.eager_bytes + 1 + below(LEN_LONG);
    }
}

static struct sent *new_sent(struct seat *seat, struct generation *to, size_t len_bytes,
                             bool is_sync)
{
    struct sent *sent = keep(sizeof *sent);
    size_t most_bytes = to->shape.data_bytes / 4 - 32;
    size_t eager_bytes = seat->generation->shape.eager_bytes;

    sent->serial = ++run.serial;
    sent->from = seat->generation;
    sent->to = to;
    sent->len_bytes = len_bytes;
    sent->is_sync = is_sync;
    sent->is_long = len_bytes > (eager_bytes < most_bytes ? eager_bytes : most_bytes);
    sent->step = run.step;
    sent->taken_before = UINT64_MAX;
    /* An empty message is told from others by its tag. */
    int32_t tag = len_bytes == 0 ? (int32_t)(1000 + sent->serial) : (int32_t)below(TAGS);
    sent->match = VELO_MQ_MATCH(1, seat->generation->vpid, tag);
    return sent;
}

static struct generation *some_peer(const struct seat *seat, uint32_t *vpid)
{
    *vpid = below(run.vpids);
    return seat->mq_to[*vpid];
}

static bool step_try_send(struct seat *seat)
{
    uint32_t vpid = 0;
    struct generation *to = some_peer(seat, &vpid);
    void *buf = to != NULL ? block_take(seat->process) : NULL;

    if (buf == NULL)
        return false;
    struct sent *sent = new_sent(seat, to, chance(50) ? 8 + below(50) : draw_len(to), false);
    struct command command = {.act = ACT_MQ_TRY_SEND,
                              .vpid = vpid,
                              .buf = buf,
                              .len_bytes = sent->len_bytes,
                              .match = sent->match,
                              .die_at = draw_death(2, 12)};
    content_fill(buf, sent->len_bytes, sent->serial);
    sent->state = GIVEN_UP;
    if (to->state == LIVES)
        inbox_add(sent);
    story_step(seat->generation, to, "%s tries to send %s to %s", name_of(seat->generation),
               describe(sent), name_of(to));
    if (!tell(seat, &command))
        return true;
    int status = reply_of(seat)->status;
    story_status(status);
    block_give(seat->process, buf);
    if (status == VELO_OK) {
        sent->state = OUT;
        run.messages++;
        return true;
    }
    inbox_remove(sent);
    /* A queue that had no connection to a generation cannot tell how it ended. */
    if (status != VELO_AGAIN && !(is_end(status) && to->state != LIVES))
        fail_run(seat->generation, to, "velo_mq_try_send gave %s", status_name(status));
    return true;
}

/* Sends have the first half of the requests, receives the other: neither must keep the other off.
 */
static bool free_request(const struct seat *seat, bool is_send, uint32_t *handle)
{
    uint32_t first = is_send ? 0 : REQUESTS / 2;

    for (uint32_t i = first; i < first + REQUESTS / 2; i++) {
        *handle = i;
        if (seat->sends[i] == NULL && seat->recvs[i] == NULL)
            return true;
    }
    return false;
}

static bool step_isend(struct seat *seat)
{
    uint32_t vpid = 0;
    uint32_t handle = 0;
    struct generation *to = some_peer(seat, &vpid);
    void *buf = to != NULL && free_request(seat, true, &handle) ? block_take(seat->process) : NULL;

    if (buf == NULL)
        return false;
    bool is_sync = chance(25);
    struct sent *sent = new_sent(seat, to, draw_len(to), is_sync);
    struct command command = {.act = ACT_MQ_ISEND,
                              .vpid = vpid,
                              .handle = handle,
                              .buf = buf,
                              .len_bytes = sent->len_bytes,
                              .match = sent->match,
                              .flags = is_sync ? VELO_MQ_SYNC : 0,
                              .die_at = draw_death(2, 12)};
    content_fill(buf, sent->len_bytes, sent->serial);
    sent->buf = buf;
    seat->sends[handle] = sent;
    run.messages++;
    if (to->state == LIVES)
        inbox_add(sent);
    story_step(seat->generation, to, "%s sends %s%s to %s", name_of(seat->generation),
               describe(sent), is_sync ? ", synchronous," : "", name_of(to));
    if (tell(seat, &command) && reply_of(seat)->status != VELO_OK)
        fail_run(seat->generation, to, "velo_mq_isend gave %s",
                 status_name(reply_of(seat)->status));
    return true;
}

/* ---- steps: receiving ------------------------------------------------------------------------ */

/* Draw the source and match bits for a receive or a probe. */
static struct recv *new_recv(const struct seat *seat)
{
    struct recv *recv = keep(sizeof *recv);
    uint32_t vpid = below(run.vpids);

    /* Of plain ports the queues make connections that the model of those does not count. */
    if (!run.is_queue[vpid])
        vpid = seat->generation->vpid;
    recv->number = ++run.serial;
    recv->step = run.step;
    recv->source = chance(60) ? (int)vpid : -1;
    recv->match = VELO_MQ_MATCH(1, vpid, below(TAGS));
    recv->cap_bytes = chance(10) ? 8 + below(5000) : BLOCK_BYTES;
    if (chance(40))
        recv->ignore |= VELO_MQ_IGNORE_TAG;
    if (recv->source < 0 && chance(70))
        recv->ignore |= VELO_MQ_IGNORE_RANK;
    return recv;
}

static void ask_for(struct command *command, const struct recv *recv)
{
    command->id = recv->source < 0 ? VELO_MQ_ANY_SOURCE : VELO_ID(0, (uint32_t)recv->source);
    command->match = recv->match;
    command->ignore = recv->ignore;
}

static void post(struct seat *seat, struct recv *recv)
{
    struct generation *generation = seat->generation;

    if (generation->recvs_last != NULL)
        generation->recvs_last->next = recv;
    else
        generation->recvs = recv;
    generation->recvs_last = recv;
}

static bool irecv(struct seat *seat, struct recv *recv)
{
    uint32_t handle = 0;
    void *buf = free_request(seat, false, &handle) ? block_take(seat->process) : NULL;

    if (buf == NULL)
        return false;
    struct command command = {
        .act = ACT_MQ_IRECV, .handle = handle, .buf = buf, .len_bytes = recv->cap_bytes};
    ask_for(&command, recv);
    recv->buf = buf;
    seat->recvs[handle] = recv;
    post(seat, recv);
    story_step(seat->generation, recv->source >= 0 ? run.by_vpid[recv->source] : NULL,
               "%s posts a receive for %s, %zu bytes", name_of(seat->generation), wish(recv),
               recv->cap_bytes);
    if (tell(seat, &command) && reply_of(seat)->status != VELO_OK)
        fail_run(seat->generation, NULL, "velo_mq_irecv gave %s",
                 status_name(reply_of(seat)->status));
    return true;
}

static bool step_irecv(struct seat *seat)
{
    return seat->generation->shape.is_mq && irecv(seat, new_recv(seat));
}

/* The message that a probe found must be there. */
static void check_found(const struct seat *seat, const struct recv *recv)
{
    const struct reply *reply = reply_of(seat);

    for (const struct sent *sent = seat->generation->inbox; sent != NULL; sent = sent->next)
        if (fits(recv, sent) && sent->from->vpid == reply->source && sent->match == reply->match &&
            sent->len_bytes == reply->len_bytes)
            return;
    fail_run(seat->generation, NULL,
             "a probe for %s found %zu bytes from id %u, tag %d: nothing that was sent to it",
             wish(recv), reply->len_bytes, reply->source, VELO_MQ_TAG(reply->match));
}

static bool step_probe(struct seat *seat)
{
    if (!seat->generation->shape.is_mq)
        return false;
    struct recv *recv = new_recv(seat);
    struct command command = {.act = ACT_MQ_PROBE};
    ask_for(&command, recv);
    story_step(seat->generation, NULL, "%s probes for %s", name_of(seat->generation), wish(recv));
    (void)tell(seat, &command);
    int status = reply_of(seat)->status;
    story_status(status);
    if (status == VELO_OK)
        check_found(seat, recv);
    else if (status != VELO_AGAIN)
        fail_run(seat->generation, NULL, "velo_mq_try_probe gave %s", status_name(status));
    return true;
}

static bool mprobe(struct seat *seat, uint32_t handle, struct recv *recv)
{
    struct command command = {.act = ACT_MQ_MPROBE, .handle = handle};

    ask_for(&command, recv);
    story_step(seat->generation, NULL, "%s probes for %s to take it", name_of(seat->generation),
               wish(recv));
    (void)tell(seat, &command);
    int status = reply_of(seat)->status;
    story_status(status);
    if (status == VELO_AGAIN)
        return false;
    if (status != VELO_OK)
        fail_run(seat->generation, NULL, "velo_mq_try_mprobe gave %s", status_name(status));
    check_found(seat, recv);
    story_outcome(", %zu bytes from id %u, tag %d", reply_of(seat)->len_bytes,
                  reply_of(seat)->source, VELO_MQ_TAG(reply_of(seat)->match));
    recv->is_probed = true;
    seat->probed[handle] = recv;
    return true;
}

static bool step_mprobe(struct seat *seat)
{
    uint32_t handle = below(PROBED);

    if (!seat->generation->shape.is_mq || seat->probed[handle] != NULL)
        return false;
    (void)mprobe(seat, handle, new_recv(seat));
    return true;
}

static bool mrecv(struct seat *seat, uint32_t probed)
{
    struct recv *recv = seat->probed[probed];
    uint32_t handle = 0;
    void *buf =
        recv != NULL && free_request(seat, false, &handle) ? block_take(seat->process) : NULL;

    if (buf == NULL)
        return false;
    struct command command = {.act = ACT_MQ_MRECV,
                              .handle = handle,
                              .other = probed,
                              .buf = buf,
                              .len_bytes = recv->cap_bytes};
    recv->buf = buf;
    seat->probed[probed] = NULL;
    seat->recvs[handle] = recv;
    post(seat, recv);
    story_step(seat->generation, NULL, "%s receives what it probed for at step %llu",
               name_of(seat->generation), (unsigned long long)recv->step);
    if (tell(seat, &command) && reply_of(seat)->status != VELO_OK)
        fail_run(seat->generation, NULL, "velo_mq_mrecv gave %s",
                 status_name(reply_of(seat)->status));
    return true;
}

static bool step_mrecv(struct seat *seat) { return mrecv(seat, below(PROBED)); }

static void cancel(struct seat *seat, uint32_t handle)
{
    struct recv *recv = seat->recvs[handle];
    struct command command = {.act = ACT_MQ_CANCEL, .handle = handle};

    story_step(seat->generation, NULL, "%s cancels its receive of step %llu",
               name_of(seat->generation), (unsigned long long)recv->step);
    (void)tell(seat, &command);
    int status = reply_of(seat)->status;
    story_status(status);
    if (status == VELO_ERR_STATE)
        return;
    if (status != VELO_OK)
        fail_run(seat->generation, NULL, "velo_mq_cancel gave %s", status_name(status));
    if (recv->passed_step != 0)
        fail_run(seat->generation, recv->passed_by->from,
                 "the receive posted at step %llu was passed over: %s fits it, but went to one "
                 "posted later, and this one could be cancelled",
                 (unsigned long long)recv->step, describe(recv->passed_by));
    seat->recvs[handle] = NULL;
    recvs_remove(seat->generation, recv);
    block_freeze(seat->process, recv->buf);
}

static bool step_cancel(struct seat *seat)
{
    uint32_t handle = below(REQUESTS);

    if (seat->recvs[handle] == NULL || seat->recvs[handle]->is_probed)
        return false;
    cancel(seat, handle);
    return true;
}

/* ---- steps: progress ------------------------------------------------------------------------- */

bool queues_progress(struct seat *seat, uint32_t rounds)
{
    struct command command = {.act = rounds ? ACT_MQ_PROGRESS : ACT_MQ_IDLE,
                              .count = rounds,
                              .timeout_ns = 20 * TEST_MS,
                              .die_at = draw_death(2, 12)};

    story_step(seat->generation, NULL, "%s %s", name_of(seat->generation),
               rounds ? "makes progress" : "waits a while");
    if (!tell(seat, &command))
        return true;
    int status = reply_of(seat)->status;
    if (status != VELO_OK && status != VELO_TIMEOUT)
        fail_run(seat->generation, NULL, "velo_mq_idle gave %s", status_name(status));
    return reply_of(seat)->events_len > 0;
}

static bool step_progress(struct seat *seat)
{
    if (!seat->generation->shape.is_mq)
        return false;
    (void)queues_progress(seat, 1 + below(6));
    return true;
}

static bool step_idle(struct seat *seat)
{
    if (!seat->generation->shape.is_mq)
        return false;
    (void)queues_progress(seat, 0);
    return true;
}

const struct action queue_actions[] = {
    {"mq-connect", step_connect, 40},   {"mq-disconnect", step_disconnect, 16},
    {"mq-try-send", step_try_send, 40}, {"mq-isend", step_isend, 100},
    {"mq-irecv", step_irecv, 70},       {"mq-probe", step_probe, 10},
    {"mq-mprobe", step_mprobe, 15},     {"mq-mrecv", step_mrecv, 60},
    {"mq-cancel", step_cancel, 12},     {"mq-progress", step_progress, 90},
    {"mq-idle", step_idle, 15},         {NULL, NULL, 0},
};

/* ---- everybody has had time ------------------------------------------------------------------ */

static bool is_sure(const struct sent *sent)
{
    return sent->state == OUT || (sent->state == UNDER_WAY && sent->from->state == LIVES);
}

/* The bound of what is unexpected pushes senders back, but not those that a receive waits for. */
static void check_recv(const struct generation *generation, const struct recv *recv)
{
    for (const struct sent *sent = generation->inbox; sent != NULL; sent = sent->next)
        if (fits(recv, sent) && is_sure(sent))
            fail_run(generation, sent->from,
                     "%s was sent to %s and fits the receive posted at step %llu, but they are not "
                     "matched",
                     describe(sent), name_of(generation), (unsigned long long)recv->step);
}

static void check_sends(const struct seat *seat)
{
    for (uint32_t i = 0; i < REQUESTS; i++) {
        const struct sent *sent = seat->sends[i];
        if (sent != NULL && sent->to->state != LIVES)
            fail_run(seat->generation, sent->to, "the send of %s to %s, which %s, does not end",
                     describe(sent), name_of(sent->to),
                     sent->to->state == DIED ? "died" : "was closed");
    }
}

bool queues_settle(struct seat *seat)
{
    bool any = false;

    for (uint32_t i = 0; i < PROBED; i++)
        any |= mrecv(seat, i);
    any |= queues_progress(seat, ROUNDS_MANY);
    any |= queues_progress(seat, 0);
    return any;
}

void queues_settled(void)
{
    for (struct seat *seat = seat_next(NULL); seat != NULL; seat = seat_next(seat)) {
        bool is_holding = false; /* Messages that were probed for are nobody else's. */
        for (uint32_t i = 0; i < PROBED; i++)
            is_holding |= seat->probed[i] != NULL;
        for (const struct recv *recv = seat->generation->recvs; recv && !is_holding;
             recv = recv->next)
            check_recv(seat->generation, recv);
        check_sends(seat);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

void queues_stop_receiving(struct seat *seat)
{
    for (uint32_t i = 0; i < REQUESTS; i++)
        if (seat->recvs[i] != NULL && !seat->recvs[i]->is_probed)
            cancel(seat, i);
}

static bool is_busy(const struct seat *seat)
{
    for (uint32_t i = 0; i < REQUESTS; i++)
        if (seat->sends[i] != NULL || seat->recvs[i] != NULL)
            return true;
    return false;
}

bool queues_drain(struct seat *seat)
{
    bool any = false;

    if (!seat->generation->shape.is_mq)
        return false;
    for (uint32_t i = 0; i < PROBED; i++) {
        struct recv *recv = new_recv(seat);
        recv->source = -1;
        recv->ignore = UINT64_MAX;
        recv->cap_bytes = BLOCK_BYTES;
        if (seat->probed[i] == NULL)
            any |= mprobe(seat, i, recv);
        any |= mrecv(seat, i);
    }
    any |= queues_progress(seat, ROUNDS_MANY);
    any |= queues_progress(seat, 0);
    return any || is_busy(seat);
}

void queues_drained(struct seat *seat)
{
    for (uint32_t i = 0; i < REQUESTS; i++) {
        if (seat->sends[i] != NULL)
            fail_run(seat->generation, seat->sends[i]->to, "the send of %s to %s never ends",
                     describe(seat->sends[i]), name_of(seat->sends[i]->to));
        if (seat->recvs[i] != NULL)
            fail_run(seat->generation, NULL, "the receive posted at step %llu never ends",
                     (unsigned long long)seat->recvs[i]->step);
    }
    for (const struct sent *sent = seat->generation->inbox; sent != NULL; sent = sent->next)
        if (sent->state == OUT)
            fail_run(seat->generation, sent->from, "%s was sent to %s but never arrives",
                     describe(sent), name_of(seat->generation));
}
