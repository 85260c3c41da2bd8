/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "card.h"

/* ---- begin ----------------------------------------------------------------------------------- */

/* The share of the ring that the next connection gets: less and less, so that many find room. */
static uint16_t next_window(const struct endpoint *endpoint)
{
    uint32_t window = endpoint->slots / 64;
    if (window < WINDOW_MIN)
        window = WINDOW_MIN;
    return (uint16_t)(window > WINDOW_MAX ? WINDOW_MAX : window);
}

static uint32_t count_calls(const struct endpoint *endpoint)
{
    uint32_t count = 0;
    for (const struct conn *conn = endpoint->conns; conn; conn = conn->next)
        count += conn->state == CONN_CALLING;
    return count;
}

int conn_new(struct endpoint *endpoint, velo_id_t peer, uint16_t address, struct conn **out)
{
    uint16_t window = next_window(endpoint);
    if (endpoint->slots < window + SPARE || count_calls(endpoint) >= CALLS_MAX)
        return endpoint->base.calls->fail(
            VELO_ERR_FULL, "transport card: the ring of context %u has no room for one more peer",
            endpoint->context.number);
    struct conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        return endpoint->base.calls->fail(VELO_ERR_NO_MEMORY, "no memory for a connection");
    conn->endpoint = endpoint;
    conn->state = CONN_CALLING;
    conn->address = address;
    conn->window_in = window;
    endpoint->slots -= window + SPARE;
    circuits_init(&conn->circuits, &endpoint->base, peer);
    conn->next = endpoint->conns;
    endpoint->conns = conn;
    *out = conn;
    return VELO_OK;
}

struct conn *conn_find(const struct endpoint *endpoint, velo_id_t peer)
{
    struct conn *conn = endpoint->conns;
    while (conn && conn->circuits.peer != peer)
        conn = conn->next;
    return conn;
}

struct conn *conn_at(const struct endpoint *endpoint, uint16_t address)
{
    struct conn *conn = endpoint->conns;
    while (conn && conn->address != address)
        conn = conn->next;
    return conn;
}

/* ---- end ------------------------------------------------------------------------------------- */

static void keep_former(const struct conn *conn, uint32_t slots)
{
    struct endpoint *endpoint = conn->endpoint;
    struct former_conn *former = &endpoint->former_conns[endpoint->next_former++ % FORMER_MAX];
    endpoint->slots += former->slots;
    *former = (struct former_conn){.address = conn->address,
                                   .context_generation = conn->context_generation,
                                   .slots = slots,
                                   .ticks = patience_ticks(&endpoint->patience)};
}

void conn_end(struct conn *conn, int status, bool is_settled)
{
    struct endpoint *endpoint = conn->endpoint;
    if (conn->state == CONN_OVER)
        return;
    bool was_open = conn->state == CONN_OPEN;
    uint32_t slots = conn->window_in + SPARE;
    struct conn **at = &endpoint->conns;
    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    conn->state = CONN_OVER;
    fetches_end(conn, status);
    if (is_settled || !was_open)
        endpoint->slots += slots;
    if (was_open)
        keep_former(conn, is_settled ? 0 : slots);
    conn->next = endpoint->over;
    endpoint->over = conn;
    circuits_lose(&conn->circuits, status);
}

bool conn_was_at(const struct endpoint *endpoint, uint16_t address, uint16_t context_generation)
{
    for (uint32_t i = 0; i < FORMER_MAX; i++)
        if (endpoint->former_conns[i].ticks > 0 && endpoint->former_conns[i].address == address &&
            endpoint->former_conns[i].context_generation == context_generation)
            return true;
    return false;
}

void conn_free(struct conn *conn)
{
    circuits_free(&conn->circuits);
    free(conn);
}

void conns_sweep(struct endpoint *endpoint)
{
    while (endpoint->over) {
        struct conn *conn = endpoint->over;
        endpoint->over = conn->next;
        conn_free(conn);
    }
}
