/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that are silent: they are lost after a while. To the others this side says that it lives.
 */
#include "ofi.h"

/* The fabric may take a while to make a connection. */
#define STUCK_TICKS 3u
/* A HELLO is said again after this time. */
#define GREETING_TICKS 2u
#define CANDIDATE_TICKS 5u

/* A connection that says nothing else says that it lives. If the fabric does not even take that,
 * and has nothing of ours, then it has lost the peer and finds nobody there. */
static void keep_alive(struct conn *conn)
{
    if (conn->was_busy)
        conn->was_busy = false;
    else
        packet_acknowledge(conn);
    bool is_stuck = conn->owes_ack && !conn->is_ack_sent && conn->at_fabric == 0;
    conn->stuck_ticks = is_stuck ? conn->stuck_ticks + 1 : 0;
    if (conn->stuck_ticks >= STUCK_TICKS)
        conn_end(conn, VELO_ERR_PEER_DEAD);
}

static void tick_conn(struct conn *conn)
{
    const struct endpoint *endpoint = conn->endpoint;
    uint32_t ticks = patience_ticks(&endpoint->settings.patience);
    if (conn->is_self)
        return;
    uint32_t silent_ticks = hearing_tick(&conn->hearing);
    conn->greeting_ticks++;
    if (conn->state == CONN_CANDIDATE || conn->state == CONN_REJECTING)
        ticks = CANDIDATE_TICKS;
    if (silent_ticks >= ticks) {
        conn_end(conn, conn->state == CONN_OPEN ? VELO_ERR_PEER_DEAD : VELO_TIMEOUT);
    } else if (conn->state == CONN_OPEN) {
        keep_alive(conn);
    } else if (conn->state == CONN_CALLING && conn->greeting_ticks >= GREETING_TICKS &&
               conn->owed == 0 && !conn_find(endpoint, conn->circuits.peer, CONN_CANDIDATE)) {
        greeting_again(conn);
    }
}

void silence_tick(struct endpoint *endpoint)
{
    endpoint->rejected = 0;
    for (uint32_t i = 0; i < endpoint->conns_len; i++) {
        if (endpoint->former_conns[i].ticks > 0)
            endpoint->former_conns[i].ticks--;
        if (endpoint->conns[i])
            tick_conn(endpoint->conns[i]);
    }
}
