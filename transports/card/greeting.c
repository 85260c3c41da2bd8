/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How two ports agree on a connection: HELLO, and REPLY. The hardware vouches for the sender, and
 * names.c says which port that context may be. If both call at once, the call of the lower id is
 * answered. A HELLO without an answer is said again: the peer may not be there yet, may not know
 * yet whom to expect, or a line was lost.
 */
#include <string.h>

#include "card.h"

#define AGAIN_NS_MIN INT64_C(2000000)

/* ---- sending --------------------------------------------------------------------------------- */

void greeting_call(struct conn *conn)
{
    struct endpoint *endpoint = conn->endpoint;
    endpoint->calls_made++;
    conn->call = endpoint->calls_made ? endpoint->calls_made : ++endpoint->calls_made;
    conn->owed = WIRE_HELLO;
    conn->again_ns = 0;
    conn->pause_ns = AGAIN_NS_MIN;
    (void)greeting_push(conn);
}

static uint64_t pack_introduction(const struct conn *conn, uint16_t call)
{
    return (uint64_t)conn->endpoint->base.attr.generation | wire_word(0, 0, conn->window_in, call);
}

static bool send_hello(struct conn *conn)
{
    const struct endpoint *endpoint = conn->endpoint;
    uint64_t line[WIRE_LINE_WORDS] = {0};
    line[1] =
        wire_word(conn->context_generation, endpoint->place.context_generation, 0, WIRE_VERSION);
    line[2] = VELO_SPEC_HASH;
    line[3] = endpoint->base.attr.id | (uint64_t)conn->circuits.peer << 32;
    line[4] = endpoint->domain_hash;
    line[5] = pack_introduction(conn, conn->call);
    return store_line(endpoint, conn->address, WIRE_HELLO, line, 2 + WIRE_HELLO_WORDS);
}

static bool send_answer(const struct endpoint *endpoint, uint16_t to, uint16_t to_generation,
                        enum wire_kind kind, uint64_t word)
{
    uint64_t line[WIRE_LINE_WORDS] = {
        0, wire_word(to_generation, endpoint->place.context_generation, 0, WIRE_VERSION), word};
    return store_line(endpoint, to, kind, line, 2 + WIRE_ANSWER_WORDS);
}

static bool send_reply(const struct conn *conn)
{
    return send_answer(conn->endpoint, conn->address, conn->context_generation, WIRE_REPLY,
                       pack_introduction(conn, conn->peer_call));
}

bool greeting_push(struct conn *conn)
{
    struct endpoint *endpoint = conn->endpoint;
    if (conn->owed == 0 && conn->state == CONN_CALLING && endpoint->base.now_ns >= conn->again_ns)
        conn->owed = WIRE_HELLO;
    if (conn->owed == 0)
        return true;
    if (!(conn->owed == WIRE_HELLO ? send_hello(conn) : send_reply(conn))) {
        endpoint->base.is_owing = true;
        return false;
    }
    if (conn->owed == WIRE_HELLO) {
        conn->again_ns = timer_now_ns() + conn->pause_ns;
        conn->pause_ns *= 2;
        if (conn->pause_ns > endpoint->patience.tick_ns)
            conn->pause_ns = endpoint->patience.tick_ns;
    }
    conn->owed = 0;
    return true;
}

/* The caller asks again if this is lost. */
static void refuse_call(const struct endpoint *endpoint, uint16_t from, const uint64_t *line,
                        int status)
{
    (void)send_answer(endpoint, from, wire_part(line[1], 1), WIRE_REFUSE,
                      (uint32_t)status | (uint64_t)wire_part(line[5], 3) << 32);
}

/* ---- HELLO ----------------------------------------------------------------------------------- */

static void open_conn(struct conn *conn, uint16_t context_generation, uint32_t generation,
                      uint16_t window)
{
    conn->context_generation = context_generation;
    conn->generation = generation;
    conn->window_out = window;
    conn->state = CONN_OPEN;
    conn->hearing.was_heard = true;
    conn->hearing.silent_ticks = 0;
    conn->owed = 0;
}

/* The connection that is to be opened, or is open already; NULL: none, as the own call goes first,
 * or as there is no room. */
static struct conn *conn_for(struct endpoint *endpoint, uint16_t from, velo_id_t peer,
                             const uint64_t *line)
{
    struct conn *conn = conn_at(endpoint, from);
    uint16_t call = wire_part(line[5], 3), context_generation = wire_part(line[1], 1);
    if (conn && conn->is_self)
        return NULL;
    bool is_said_again = conn && conn->state == CONN_OPEN && conn->peer_call == call &&
                         conn->context_generation == context_generation;
    if (is_said_again)
        return conn;
    bool is_crossing = conn && conn->state == CONN_CALLING && conn->circuits.peer == peer;
    if (is_crossing && endpoint->base.attr.id < peer)
        return NULL;
    if (is_crossing)
        return conn;
    if (conn) /* The peer has begun anew: it sends nothing of the old one any more. */
        conn_end(conn, VELO_ERR_PEER_DEAD, true);
    /* Its old context, or the one that somebody took for its own. */
    struct conn *other = conn_find(endpoint, peer);
    if (other && other->state == CONN_CALLING && endpoint->base.attr.id < peer)
        return NULL;
    if (other && other->state == CONN_CALLING) {
        other->address = from;
        return other;
    }
    if (other)
        conn_end(other, VELO_ERR_PEER_DEAD, false);
    int status = conn_new(endpoint, peer, from, &conn);
    if (status)
        refuse_call(endpoint, from, line, status);
    return status ? NULL : conn;
}

/* May the caller have this port? False: it was told, or is to ask again. */
static bool is_welcome(struct endpoint *endpoint, uint16_t from, const uint64_t *line,
                       bool *is_here)
{
    velo_id_t peer = (uint32_t)line[3], to = (uint32_t)(line[3] >> 32);
    struct place place;
    if (line[2] != VELO_SPEC_HASH || wire_part(line[1], 3) != WIRE_VERSION) {
        refuse_call(endpoint, from, line, VELO_ERR_VERSION);
        return false;
    }
    if (to != endpoint->base.attr.id || line[4] != endpoint->domain_hash) {
        if (to == endpoint->base.attr.id &&
            port_place_beside(&endpoint->base.port, line[4], &place))
            (void)send_answer(
                endpoint, from, wire_part(line[1], 1), WIRE_REDIRECT,
                wire_word(place.address, place.context_generation, wire_part(line[5], 3), 0));
        else
            refuse_call(endpoint, from, line, VELO_ERR_NO_PEER);
        return false;
    }
    int status = names_check(endpoint, peer, from, wire_part(line[1], 1), is_here);
    if (status == VELO_ERR_ACCESS) {
        endpoint_refuse(&endpoint->base);
        refuse_call(endpoint, from, line, status);
    }
    return status == VELO_OK;
}

static void take_hello(struct endpoint *endpoint, uint16_t from, const uint64_t *line)
{
    velo_id_t peer = (uint32_t)line[3];
    uint16_t window = wire_part(line[5], 2);
    bool is_here = false;
    if (window < WINDOW_MIN || window > INT16_MAX || (uint32_t)line[5] == 0 ||
        VELO_ID_NODE(peer) >= VELO_NODES || wire_part(line[5], 3) == 0) {
        endpoint_refuse(&endpoint->base);
        return;
    }
    if (!is_welcome(endpoint, from, line, &is_here))
        return;
    struct conn *conn = conn_for(endpoint, from, peer, line);
    if (!conn)
        return;
    if (conn->state != CONN_OPEN) {
        conn->call = 0;
        conn->peer_call = wire_part(line[5], 3);
        conn->is_here = is_here;
        open_conn(conn, wire_part(line[1], 1), (uint32_t)line[5], window);
    }
    conn->owed = WIRE_REPLY;
    (void)greeting_push(conn);
}

/* ---- its answers ----------------------------------------------------------------------------- */

static int status_in(uint64_t word)
{
    int status = (int)(uint32_t)word;
    return status < 0 && status >= VELO_ERR_CANCELLED ? status : VELO_ERR_CORRUPT;
}

/* What a HELLO's answer says of the peer's generation has to agree with what was known of it. */
static bool is_asked(const struct conn *conn, uint16_t call, uint16_t context_generation)
{
    return conn && conn->state == CONN_CALLING && conn->call == call &&
           (conn->context_generation == 0 || conn->context_generation == context_generation);
}

static void take_reply(struct conn *conn, const uint64_t *line)
{
    uint16_t window = wire_part(line[2], 2);
    uint32_t generation = (uint32_t)line[2];
    /* Another port than the one whose segment was found on this machine has answered. */
    bool is_other = conn->is_here && conn->generation != generation;
    if (window < WINDOW_MIN || window > INT16_MAX || generation == 0 || is_other) {
        endpoint_refuse(&conn->endpoint->base);
        conn_end(conn, is_other ? VELO_ERR_NO_PEER : VELO_ERR_CORRUPT, false);
        return;
    }
    open_conn(conn, wire_part(line[1], 1), generation, window);
}

/* A port sends its callers elsewhere on its own node, and only once. */
static void take_redirect(struct conn *conn, const uint64_t *line)
{
    uint16_t address = wire_part(line[2], 0);
    if (conn->is_redirected || wire_node(address) != wire_node(conn->address) ||
        conn_at(conn->endpoint, address)) {
        conn_end(conn, VELO_ERR_NO_PEER, true);
        return;
    }
    conn->address = address;
    conn->context_generation = wire_part(line[2], 1);
    conn->is_redirected = true;
    conn->hearing.was_heard = true;
    greeting_call(conn);
}

static void take_answer(struct endpoint *endpoint, uint16_t from, enum wire_kind kind,
                        const uint64_t *line)
{
    struct conn *conn = conn_at(endpoint, from);
    unsigned part = kind == WIRE_REPLY ? 3 : 2;
    if (!is_asked(conn, wire_part(line[2], part), wire_part(line[1], 1)))
        return; /* It is an answer to what was said twice. */
    if (kind == WIRE_REPLY)
        take_reply(conn, line);
    else if (kind == WIRE_REFUSE)
        conn_end(conn, status_in(line[2]), true);
    else
        take_redirect(conn, line);
}

void greeting_take(struct endpoint *endpoint, uint16_t from, enum wire_kind kind,
                   const uint64_t *line, uint32_t words)
{
    if (words != 2 + (kind == WIRE_HELLO ? WIRE_HELLO_WORDS : WIRE_ANSWER_WORDS))
        endpoint_refuse(&endpoint->base);
    else if (kind == WIRE_HELLO)
        take_hello(endpoint, from, line);
    else
        take_answer(endpoint, from, kind, line);
}
