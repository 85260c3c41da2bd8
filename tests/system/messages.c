/* SPDX-License-Identifier: Apache-2.0 */
/*
 * velo.h: connections from one generation to another. A message on one is received exactly once,
 * whole and in order, unless its receiver's generation ends; of a sender that is killed, what it
 * had under way may be missing.
 */
#include <stdio.h>

#include "run.h"

enum { LEN_MAX = 4096 };

/* A message under way. */
struct item {
    struct item *next;
    uint64_t serial;
    size_t len_bytes;
    uint8_t tag;
    uint64_t step;    /* In which it was sent. */
    bool is_doubtful; /* Its sender was killed in the middle. */
};

struct conn {
    struct generation *from;
    struct generation *to;
    struct item *first, *last;
    bool is_deferred; /* By its receiver. */
    bool has_left;    /* Its sender has disconnected. */
    bool is_told;     /* The receiver knows that it came to an end. */
    bool is_reserved;
    size_t reserved_bytes;
    struct conn *next; /* Of those to the same generation. */
};

/* ---- the model ------------------------------------------------------------------------------- */

static struct item *append(struct conn *conn, size_t len_bytes)
{
    struct item *item = keep(sizeof *item);

    item->serial = ++run.serial;
    item->step = run.step;
    item->len_bytes = len_bytes;
    item->tag = pattern_tag(item->serial);
    item->is_doubtful = true;
    if (conn->last != NULL)
        conn->last->next = item;
    else
        conn->first = item;
    conn->last = item;
    return item;
}

/* The message was not sent, though others may have been put behind it, or it cannot come any more.
 */
static void drop_item(struct conn *conn, const struct item *item)
{
    struct item **link = &conn->first;
    struct item *before = NULL;

    while (*link != NULL && *link != item) {
        before = *link;
        link = &(*link)->next;
    }
    if (*link == NULL)
        return;
    *link = item->next;
    if (conn->last == item)
        conn->last = before;
}

static void drop_first(struct conn *conn)
{
    conn->first = conn->first->next;
    if (conn->first == NULL)
        conn->last = NULL;
}

void messages_ended(struct seat *seat)
{
    for (struct conn *conn = seat->generation->conns_in; conn != NULL; conn = conn->next)
        conn->first = conn->last = NULL;
}

/* A connection of the seat, and its handle. */
static struct conn *some_conn(struct seat *seat, uint32_t *handle)
{
    if (seat->generation->shape.is_mq)
        return NULL;
    *handle = below(CONNS);
    return seat->conns[*handle];
}

/* Less than a line, a line, or up to all that fits. */
static size_t draw_len(void)
{
    switch (below(4)) {
    case 0:
        return below(57);
    case 1:
        return below(300);
    default:
        return below(LEN_MAX + 1);
    }
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void check_connect(const struct seat *seat, const struct generation *to, uint32_t vpid,
                          int status)
{
    bool is_absent = status == VELO_ERR_NO_PEER || status == VELO_TIMEOUT ||
                     status == VELO_ERR_PEER_DEAD || status == VELO_ERR_PEER_CLOSED;

    if ((to != NULL && (to->state != LIVES || to->is_hidden)) || edges_excuse(seat, status))
        return; /* It ended while the call stood still. */
    if (status == VELO_ERR_INTERRUPTED && reply_of(seat)->signals > 0)
        return;
    if (to == NULL && !is_absent)
        fail_run(seat->generation, NULL, "connecting to id %u, which nobody has, gave %s", vpid,
                 status_name(status));
    if (to != NULL && status != VELO_OK &&
        !(status == VELO_ERR_FULL && to->conns_count >= to->shape.conns_max))
        fail_run(seat->generation, to, "connecting to a live port gave %s: %s", status_name(status),
                 reply_of(seat)->error);
}

static bool step_connect(struct seat *seat)
{
    uint32_t handle = below(CONNS);
    uint32_t vpid = below(run.vpids);
    struct generation *to = run.by_vpid[vpid];

    if (seat->generation->shape.is_mq || seat->conns[handle] != NULL || run.is_queue[vpid])
        return false;
    struct command command = {
        .act = ACT_CONNECT, .handle = handle, .id = VELO_ID(0, vpid), .die_at = draw_death(3, 8)};
    story_step(seat->generation, to, "%s connects to id %u, which is %s", name_of(seat->generation),
               vpid, name_of(to));
    struct generation *from = seat->generation;
    if (to != NULL)
        to->conns_count++;
    if (!tell(seat, &command))
        return true;
    int status = reply_of(seat)->status;
    story_status(status);
    check_connect(seat, to, vpid, status);
    if (status != VELO_OK)
        return true;
    if (reply_of(seat)->generation != to->word)
        fail_run(seat->generation, to,
                 "a connection to %s says that it leads to another generation", name_of(to));
    struct conn *conn = keep(sizeof *conn);
    *conn = (struct conn){.from = from, .to = to, .next = to->conns_in};
    to->conns_in = conn;
    seat->conns[handle] = conn;
    return true;
}

static bool step_disconnect(struct seat *seat)
{
    uint32_t handle = 0;
    struct conn *conn = some_conn(seat, &handle);

    if (conn == NULL)
        return false;
    struct command command = {.act = ACT_DISCONNECT, .handle = handle, .die_at = draw_death(3, 8)};
    story_step(seat->generation, conn->to, "%s disconnects from %s", name_of(seat->generation),
               name_of(conn->to));
    conn->has_left = true;
    if (!tell(seat, &command))
        return true;
    story_status(reply_of(seat)->status);
    if (reply_of(seat)->status != VELO_OK)
        fail_run(seat->generation, conn->to, "velo_disconnect failed");
    seat->conns[handle] = NULL;
    return true;
}

static bool step_status(struct seat *seat)
{
    uint32_t handle = 0;
    struct conn *conn = some_conn(seat, &handle);

    if (conn == NULL)
        return false;
    struct command command = {.act = ACT_CONN_STATUS, .handle = handle};
    story_step(seat->generation, conn->to, "%s asks for the status of %s",
               name_of(seat->generation), name_of(conn->to));
    (void)tell(seat, &command);
    int status = reply_of(seat)->status;
    story_status(status);
    if (!status_fits(conn->to, status))
        fail_run(seat->generation, conn->to, "velo_conn_status gave %s", status_name(status));
    return true;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* A send that came back: the message is under way, or never was. */
static void sent(const struct seat *seat, struct conn *conn, struct item *item, int status)
{
    story_status(status);
    if (status == VELO_OK) {
        item->is_doubtful = false;
        run.messages++;
        if (conn->to->replaced_step != 0 && conn->to->replaced_step < item->step)
            fail_run(seat->generation, conn->to,
                     "a send to %s went well, though its id has been opened again since it died",
                     name_of(conn->to));
        if (messages_due(conn->to))
            edges_rings(conn->to);
    } else {
        drop_item(conn, item);
        if (!status_fits(conn->to, status) && status != VELO_AGAIN)
            fail_run(seat->generation, conn->to, "a send gave %s", status_name(status));
    }
    if (conn->to->state != LIVES)
        conn->first = conn->last = NULL;
}

static bool step_send(struct seat *seat)
{
    uint32_t handle = 0;
    struct conn *conn = some_conn(seat, &handle);
    void *buf = conn != NULL ? block_take(seat->process) : NULL;

    if (buf == NULL)
        return false;
    /* A call that waits may only be made where it must not wait: nobody else moves meanwhile. */
    bool waits = conn->to->state != LIVES;
    size_t len_bytes = draw_len();
    struct item *item = append(conn, len_bytes);
    struct command command = {.act = waits ? ACT_SEND : ACT_TRY_SEND,
                              .handle = handle,
                              .buf = buf,
                              .len_bytes = len_bytes,
                              .tag = item->tag,
                              .die_at = draw_death(3, 8)};
    content_fill(buf, len_bytes, item->serial);
    story_step(seat->generation, conn->to, "%s sends message %llu (%zu bytes) to %s",
               name_of(seat->generation), (unsigned long long)item->serial, len_bytes,
               name_of(conn->to));
    if (!tell(seat, &command))
        return true;
    int status = reply_of(seat)->status;
    block_give(seat->process, buf);
    if (conn->is_reserved && status == VELO_ERR_STATE) {
        story_outcome(": not while a reservation is open");
        drop_item(conn, item);
        return true;
    }
    sent(seat, conn, item, status);
    return true;
}

static bool step_reserve(struct seat *seat)
{
    uint32_t handle = 0;
    struct conn *conn = some_conn(seat, &handle);

    if (conn == NULL || conn->is_reserved)
        return false;
    size_t len_bytes = draw_len();
    struct command command = {
        .act = ACT_RESERVE, .handle = handle, .len_bytes = len_bytes, .die_at = draw_death(3, 8)};
    story_step(seat->generation, conn->to, "%s reserves %zu bytes at %s", name_of(seat->generation),
               len_bytes, name_of(conn->to));
    if (!tell(seat, &command))
        return true;
    int status = reply_of(seat)->status;
    story_status(status);
    conn->is_reserved = status == VELO_OK;
    conn->reserved_bytes = len_bytes;
    if (status != VELO_OK && status != VELO_AGAIN && !status_fits(conn->to, status))
        fail_run(seat->generation, conn->to, "a reservation gave %s", status_name(status));
    return true;
}

static bool step_commit(struct seat *seat)
{
    uint32_t handle = 0;
    struct conn *conn = some_conn(seat, &handle);
    void *buf = conn != NULL && conn->is_reserved ? block_take(seat->process) : NULL;

    if (buf == NULL)
        return false;
    size_t len_bytes = below((uint32_t)conn->reserved_bytes + 1);
    struct item *item = append(conn, len_bytes);
    struct command command = {.act = ACT_COMMIT,
                              .handle = handle,
                              .buf = buf,
                              .len_bytes = len_bytes,
                              .tag = item->tag,
                              .die_at = draw_death(3, 8)};
    content_fill(buf, len_bytes, item->serial);
    story_step(seat->generation, conn->to, "%s commits message %llu (%zu bytes) to %s",
               name_of(seat->generation), (unsigned long long)item->serial, len_bytes,
               name_of(conn->to));
    if (!tell(seat, &command))
        return true;
    block_give(seat->process, buf);
    conn->is_reserved = false;
    sent(seat, conn, item, reply_of(seat)->status);
    return true;
}

bool messages_due(const struct generation *generation)
{
    if (generation->is_blurred)
        return false;
    for (const struct conn *conn = generation->conns_in; conn != NULL; conn = conn->next)
        if (conn->first != NULL && !conn->first->is_doubtful && !conn->is_deferred)
            return true;
    return false;
}

struct item *messages_prepare(struct seat *seat, struct conn *conn, struct command *command)
{
    void *buf = conn->is_reserved ? NULL : block_take(seat->process);

    if (buf == NULL)
        return NULL;
    struct item *item = append(conn, draw_len());
    content_fill(buf, item->len_bytes, item->serial);
    command->signal.buf = buf;
    command->signal.len_bytes = item->len_bytes;
    command->signal.tag = item->tag;
    return item;
}

void messages_by_handler(const struct seat *seat, struct conn *conn, struct item *item, int status,
                         void *buf)
{
    story_outcome(", the handler's message %llu to %s", (unsigned long long)item->serial,
                  name_of(conn->to));
    block_give(seat->process, buf);
    if (status == VELO_OK || !conn->to->is_unclear)
        sent(seat, conn, item, status);
    else
        drop_item(conn, item);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* A message came that does not fit: print it. */
_Noreturn static void fail_received(const struct seat *seat, const void *buf)
{
    const struct reply *reply = reply_of(seat);
    uint64_t serial = content_serial(buf, reply->len_bytes);
    char next[256] = "";
    int len = 0;

    for (const struct conn *conn = seat->generation->conns_in; conn != NULL; conn = conn->next)
        if (conn->from->vpid == reply->source && conn->first != NULL && len < 200)
            len += snprintf(next + len, sizeof next - (size_t)len, " %llu%s from generation %u",
                            (unsigned long long)conn->first->serial,
                            conn->is_deferred ? " (deferred)" : "", conn->from->number);
    fail_run(seat->generation, run.by_vpid[reply->source % VPIDS],
             "a message of %zu bytes from id %u was received that nobody sends now; by its content "
             "it is message %llu%s; due from that id:%s",
             reply->len_bytes, reply->source, (unsigned long long)serial,
             content_is(buf, reply->len_bytes, serial) ? "" : ", but damaged", next);
}

static bool is_next(const struct conn *conn, const struct reply *reply, const void *buf)
{
    const struct item *item = conn->first;

    return item != NULL && !conn->is_deferred && conn->from->vpid == reply->source &&
           conn->from->word == reply->generation && item->len_bytes == reply->len_bytes &&
           item->tag == reply->tag &&
           (buf == NULL || content_is(buf, item->len_bytes, item->serial));
}

static struct conn *find_conn(const struct seat *seat, const void *buf)
{
    for (struct conn *conn = seat->generation->conns_in; conn != NULL; conn = conn->next)
        if (is_next(conn, reply_of(seat), buf))
            return conn;
    fail_received(seat, buf);
}

/* Has it come to its end, for this reason, and is all of it received? */
static bool is_over(const struct conn *conn, int status)
{
    const struct generation *from = conn->from;
    bool is_right = status == VELO_ERR_PEER_DEAD
                        ? from->state == DIED
                        : conn->has_left || from->state == CLOSED || from->is_unclear;

    return is_right && !conn->is_told && (conn->first == NULL || conn->first->is_doubtful);
}

/* The port tells that one of its senders is gone. */
static void departed(const struct seat *seat, int status)
{
    const struct reply *reply = reply_of(seat);
    struct conn *found = NULL;

    /* Of two connections of a dead sender, one may have left before: dead is said of the other. */
    for (struct conn *conn = seat->generation->conns_in; conn != NULL; conn = conn->next)
        if (conn->from->vpid == reply->source && conn->from->word == reply->generation &&
            is_over(conn, status) && (found == NULL || (found->has_left && !conn->has_left)))
            found = conn;
    if (found != NULL) {
        found->is_told = true;
        return;
    }
    /* One that was killed while it connected had a connection that we do not know. */
    for (const struct generation *generation = run.generations; generation != NULL;
         generation = generation->next)
        if (generation->word == reply->generation && generation->vpid == reply->source &&
            generation->state == DIED)
            return;
    fail_run(seat->generation, run.by_vpid[reply->source % VPIDS],
             "a receive told %s of id %u, which is not so, or not yet", status_name(status),
             reply->source);
}

static bool is_departure(const struct seat *seat, int status)
{
    return seat->generation->shape.tells_departures &&
           (status == VELO_ERR_PEER_CLOSED || status == VELO_ERR_PEER_DEAD);
}

static bool receive(struct seat *seat, enum act act, size_t cap_bytes)
{
    void *buf = block_take(seat->process);

    if (buf == NULL)
        return false;
    edges_awake(seat->generation);
    struct command command = {.act = act,
                              .buf = buf,
                              .len_bytes = cap_bytes,
                              .timeout_ns =
                                  run.is_quiet ? 1500 * TEST_MS : below(3) * 700 * TEST_MS};
    story_step(seat->generation, NULL, "%s receives", name_of(seat->generation));
    if (!tell(seat, &command))
        return false; /* It was killed while it stood before a sleep: nobody knows what it took. */
    const struct reply *reply = reply_of(seat);
    int status = reply->status;
    if (status == VELO_OK) {
        struct conn *conn = find_conn(seat, buf);
        story_outcome(": message %llu (%zu bytes) of %s", (unsigned long long)conn->first->serial,
                      reply->len_bytes, name_of(conn->from));
        digest(conn->first->serial);
        run.receives++;
        drop_first(conn);
        block_freeze(seat->process, buf);
        return true;
    }
    story_status(status);
    block_give(seat->process, buf);
    if (is_departure(seat, status)) {
        story_outcome(" of id %u", reply->source);
        departed(seat, status);
        return true;
    }
    if (act == ACT_RECV_WAIT && status == VELO_ERR_INTERRUPTED) {
        edges_interrupted(seat);
        return true;
    }
    if (act == ACT_RECV_WAIT && status == VELO_TIMEOUT)
        edges_waited(seat);
    bool is_too_big = status == VELO_ERR_TOO_BIG && reply->len_bytes > cap_bytes;
    if (is_too_big)
        (void)find_conn(seat, NULL);
    else if (status != VELO_AGAIN && status != VELO_TIMEOUT)
        fail_run(seat->generation, NULL, "a receive gave %s", status_name(status));
    return !(status == VELO_AGAIN || status == VELO_TIMEOUT);
}

static bool step_recv(struct seat *seat)
{
    static const enum act ways[] = {ACT_RECV, ACT_RECV, ACT_RECV_IN_PLACE, ACT_RECV_WAIT};

    if (seat->generation->shape.is_mq)
        return false;
    enum act act = ways[below(ARRAY_LEN(ways))];
    (void)receive(seat, act, act != ACT_RECV_IN_PLACE && chance(10) ? below(60) : LEN_MAX);
    return true;
}

static bool step_defer(struct seat *seat)
{
    if (seat->generation->shape.is_mq)
        return false;
    edges_awake(seat->generation);
    struct command command = {.act = ACT_DEFER};
    story_step(seat->generation, NULL, "%s defers what comes next", name_of(seat->generation));
    (void)tell(seat, &command);
    int status = reply_of(seat)->status;
    story_status(status);
    if (status == VELO_OK) {
        struct conn *conn = find_conn(seat, NULL);
        struct conn *same = conn->next;
        while (same != NULL && !is_next(same, reply_of(seat), NULL))
            same = same->next;
        /* Two of that length and tag: which one is deferred shows only later. */
        conn->is_deferred = same == NULL;
        seat->generation->is_blurred |= same != NULL;
    } else if (is_departure(seat, status)) {
        departed(seat, status);
    } else if (status != VELO_AGAIN) {
        fail_run(seat->generation, NULL, "velo_try_peek and velo_defer gave %s",
                 status_name(status));
    }
    return true;
}

static bool step_resume(struct seat *seat)
{
    if (seat->generation->shape.is_mq)
        return false;
    edges_awake(seat->generation);
    seat->generation->is_blurred = false;
    struct command command = {.act = ACT_RESUME};
    story_step(seat->generation, NULL, "%s resumes", name_of(seat->generation));
    (void)tell(seat, &command);
    for (struct conn *conn = seat->generation->conns_in; conn != NULL; conn = conn->next)
        conn->is_deferred = false;
    return true;
}

const struct action message_actions[] = {
    {"connect", step_connect, 40}, {"disconnect", step_disconnect, 15},
    {"status", step_status, 5},    {"send", step_send, 120},
    {"reserve", step_reserve, 15}, {"commit", step_commit, 60},
    {"recv", step_recv, 100},      {"defer", step_defer, 8},
    {"resume", step_resume, 8},    {NULL, NULL, 0},
};

/* ---- the end --------------------------------------------------------------------------------- */

bool messages_drain(struct seat *seat)
{
    bool any = false;

    if (seat->generation->shape.is_mq)
        return false;
    (void)step_resume(seat);
    while (receive(seat, ACT_RECV, LEN_MAX) || receive(seat, ACT_RECV_WAIT, LEN_MAX))
        any = true;
    return any;
}

void messages_drained(struct seat *seat)
{
    for (const struct conn *conn = seat->generation->conns_in; conn != NULL; conn = conn->next)
        if (conn->first != NULL && !conn->first->is_doubtful)
            fail_run(seat->generation, conn->from,
                     "message %llu (%zu bytes) from %s to %s was sent but never arrives",
                     (unsigned long long)conn->first->serial, conn->first->len_bytes,
                     name_of(conn->from), name_of(conn->to));
    for (const struct conn *conn = seat->generation->conns_in; conn != NULL; conn = conn->next)
        if (seat->generation->shape.tells_departures && !conn->is_told &&
            (conn->has_left || conn->from->state != LIVES))
            fail_run(seat->generation, conn->from, "%s is never told that %s has left it",
                     name_of(seat->generation), name_of(conn->from));
}
