/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that are silent: they are lost after a while. To the others this side says that it lives.
 */
#include "card.h"

/* One that nobody has seen is called for so long. */
#define GUESS_TICKS 2u
/* A port of this machine that is gone for so long has nothing on its way any more. */
#define DEAD_TICKS 2u

/* On this machine one can see that a port is gone, or another one has its place. */
static bool is_gone(struct conn *conn)
{
    struct velo_port_shown shown;
    const struct endpoint *endpoint = conn->endpoint;
    if (!conn->is_here)
        return false;
    int status =
        endpoint->base.calls->find_name(endpoint->base.attr.owner, conn->circuits.peer, &shown);
    bool is_there = status == VELO_OK && shown.generation == conn->generation;
    conn->dead_ticks = is_there ? 0 : conn->dead_ticks + 1;
    return conn->dead_ticks >= DEAD_TICKS;
}

static void tick_conn(struct conn *conn)
{
    const struct endpoint *endpoint = conn->endpoint;
    uint32_t ticks = patience_ticks(&endpoint->patience);
    int status = conn->state == CONN_OPEN ? VELO_ERR_PEER_DEAD : VELO_TIMEOUT;
    /* The library asks again as long as its caller wants to wait for one that may come. */
    if (conn->state == CONN_CALLING && conn->is_guessed)
        ticks = GUESS_TICKS;
    if (conn->is_self)
        return;
    uint32_t silent_ticks = hearing_tick(&conn->hearing);
    if (is_gone(conn)) {
        conn_end(conn, status, true);
    } else if (silent_ticks >= ticks) {
        conn_end(conn, status, false);
    } else if (conn->state == CONN_OPEN) {
        /* Where a mark finds no room the peer takes nothing in, so it would not hear of it. */
        if (!conn->was_busy)
            (void)frame_mark(conn, WIRE_ALIVE);
        conn->was_busy = false;
    }
}

void silence_tick(struct endpoint *endpoint)
{
    for (uint32_t i = 0; i < FORMER_MAX; i++)
        if (endpoint->former_conns[i].ticks > 0 && --endpoint->former_conns[i].ticks == 0) {
            endpoint->slots += endpoint->former_conns[i].slots;
            endpoint->former_conns[i].slots = 0;
        }
    struct conn *next;
    for (struct conn *conn = endpoint->conns; conn; conn = next) {
        next = conn->next;
        tick_conn(conn);
    }
}
