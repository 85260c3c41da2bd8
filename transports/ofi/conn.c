/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "ofi.h"

/* Packets of a connection that is over may come for this long. */
#define FORMER_TICKS 2u
#define ACK_BYTES sizeof(struct wire_header)

/* ---- the table ------------------------------------------------------------------------------- */

static bool grow_table(struct endpoint *endpoint)
{
    uint32_t len = endpoint->conns_len ? 2 * endpoint->conns_len : 16;
    if (len > CONNS_MAX)
        return false;
    struct conn **conns = realloc(endpoint->conns, len * sizeof *conns);
    if (conns)
        endpoint->conns = conns;
    struct former_conn *former_conns =
        conns ? realloc(endpoint->former_conns, len * sizeof *former_conns) : NULL;
    if (!former_conns)
        return false;
    endpoint->former_conns = former_conns;
    memset(conns + endpoint->conns_len, 0, (len - endpoint->conns_len) * sizeof *conns);
    memset(former_conns + endpoint->conns_len, 0,
           (len - endpoint->conns_len) * sizeof *former_conns);
    endpoint->conns_len = len;
    return true;
}

struct conn *conn_new(struct endpoint *endpoint, velo_id_t peer, enum conn_state state)
{
    uint32_t index = 0;
    while (index < endpoint->conns_len &&
           (endpoint->conns[index] || endpoint->former_conns[index].ticks > 0))
        index++;
    if (endpoint->over_len >= OVER_MAX || (index == endpoint->conns_len && !grow_table(endpoint)))
        return NULL;
    struct conn *conn = calloc(1, sizeof *conn + sizeof(struct wire_greeting) + ACK_BYTES);
    if (!conn)
        return NULL;
    *conn = (struct conn){
        .endpoint = endpoint, .state = state, .index = index, .address = FI_ADDR_UNSPEC};
    conn->greeting =
        (struct packet){.use = PACKET_GREETING, .conn = conn, .data = (char *)(conn + 1)};
    circuits_init(&conn->circuits, &endpoint->base, peer);
    endpoint->conns[index] = conn;
    endpoint->candidates += state == CONN_CANDIDATE;
    return conn;
}

struct conn *conn_find(const struct endpoint *endpoint, velo_id_t peer, enum conn_state state)
{
    for (uint32_t i = 0; i < endpoint->conns_len; i++) {
        struct conn *conn = endpoint->conns[i];
        if (conn && conn->circuits.peer == peer && conn->state == state)
            return conn;
    }
    return NULL;
}

/* ---- begin and end --------------------------------------------------------------------------- */

int conn_open(struct conn *conn)
{
    struct endpoint *endpoint = conn->endpoint;
    size_t len_bytes = (size_t)TX_PACKETS * WIRE_PACKET_BYTES;
    conn->packets = calloc(TX_PACKETS, sizeof *conn->packets);
    int status = conn->packets
                     ? fabric_allocate(endpoint, len_bytes + WIRE_PACKET_BYTES, &conn->memory)
                     : VELO_ERR_NO_MEMORY;
    if (status)
        return status;
    void *desc = conn->memory.mr ? fi_mr_desc(conn->memory.mr) : NULL;
    for (uint32_t i = 0; i < TX_PACKETS; i++) {
        conn->packets[i] =
            (struct packet){.use = PACKET_TX,
                            .conn = conn,
                            .next = conn->free,
                            .desc = desc,
                            .data = conn->memory.base + (size_t)i * WIRE_PACKET_BYTES};
        conn->free = &conn->packets[i];
    }
    conn->ack = (struct packet){.use = PACKET_ACK,
                                .conn = conn,
                                .desc = desc,
                                .len_bytes = ACK_BYTES,
                                .data = conn->memory.base + len_bytes};
    endpoint->candidates -= conn->state == CONN_CANDIDATE;
    conn->state = CONN_OPEN;
    conn->hearing.was_heard = true;
    return VELO_OK;
}

static void unlist_conn(struct conn *conn)
{
    struct conn **at = &conn->endpoint->filled;
    while (*at && *at != conn)
        at = &(*at)->next_listed;
    if (*at)
        *at = conn->next_listed;
    conn->is_listed = false;
}

void conn_end(struct conn *conn, int status)
{
    struct endpoint *endpoint = conn->endpoint;
    if (conn->state == CONN_OVER)
        return;
    if (conn->is_listed)
        unlist_conn(conn);
    if (conn->state == CONN_OPEN)
        endpoint->former_conns[conn->index] =
            (struct former_conn){.token = conn->token_in, .ticks = FORMER_TICKS};
    endpoint->candidates -= conn->state == CONN_CANDIDATE;
    endpoint->conns[conn->index] = NULL;
    conn->state = CONN_OVER;
    conn->owed = 0;
    fetches_end(conn, status);
    circuits_lose(&conn->circuits, status);
    conn->next_listed = endpoint->over;
    endpoint->over = conn;
    endpoint->over_len++;
}

void conn_free(struct conn *conn)
{
    conn->endpoint->rejections -= conn->is_rejection;
    fabric_remove(&conn->endpoint->fabric, conn->address);
    circuits_free(&conn->circuits);
    fetches_free(conn);
    fabric_free(&conn->memory);
    free(conn->packets);
    free(conn);
}

void conns_sweep(struct endpoint *endpoint)
{
    struct conn **at = &endpoint->over;
    while (*at) {
        struct conn *conn = *at;
        if (conn->at_fabric > 0 || conn->is_ack_sent || conn->is_greeting_sent) {
            at = &conn->next_listed;
            continue;
        }
        *at = conn->next_listed;
        endpoint->over_len--;
        conn_free(conn);
    }
}
