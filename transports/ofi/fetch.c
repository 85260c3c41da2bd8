/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long messages: the receiver reads them from the sender's memory. A fetch is made of reads of
 * READ_BYTES, READS of a connection at a time. Each ends in memory of the transport and is copied
 * from there: a peer that stands still keeps the fabric waiting for longer than a program can.
 */
#include <stdlib.h>
#include <string.h>

#include "ofi.h"

struct exposed {
    struct velo_exposed shown; /* First. */
    struct fid_mr *mr;
};

/* ---- the side that has the memory ------------------------------------------------------------ */

struct velo_exposed *fetch_expose(const struct circuit *circuit, const void *base, size_t len_bytes)
{
    const struct conn *conn = (struct conn *)circuit->circuits;
    struct fabric *fabric = &conn->endpoint->fabric;
    bool is_possible = fabric->can_fetch && !conn->is_self;
    struct exposed *exposed = is_possible ? malloc(sizeof *exposed) : NULL;
    if (!exposed)
        return NULL;
    exposed->mr = fabric_expose(fabric, base, len_bytes);
    if (!exposed->mr) {
        free(exposed);
        return NULL;
    }
    bool is_by_address = fabric->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    exposed->shown = (struct velo_exposed){.key = fi_mr_key(exposed->mr),
                                           .address = is_by_address ? (uintptr_t)base : 0};
    return &exposed->shown;
}

void fetch_conceal(struct velo_exposed *shown)
{
    struct exposed *exposed = (struct exposed *)shown;
    (void)fi_close(&exposed->mr->fid);
    free(exposed);
}

/* ---- the side that reads it ------------------------------------------------------------------ */

static int open_reads(struct conn *conn)
{
    if (conn->reads)
        return VELO_OK;
    int status = fabric_allocate(conn->endpoint, (size_t)READS * READ_BYTES, &conn->read_memory);
    conn->reads = status ? NULL : calloc(READS, sizeof *conn->reads);
    if (!conn->reads)
        return VELO_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < READS; i++) {
        struct packet *packet = &conn->reads[i].packet;
        *packet =
            (struct packet){.use = PACKET_READ,
                            .conn = conn,
                            .next = conn->reads_free,
                            .desc = conn->read_memory.mr ? fi_mr_desc(conn->read_memory.mr) : NULL,
                            .data = conn->read_memory.base + (size_t)i * READ_BYTES};
        conn->reads_free = packet;
    }
    return VELO_OK;
}

static void end_fetch(struct fetch_base *fetch, int status)
{
    fetch_settle(fetch, status);
    fetch->begun_bytes = fetch->len_bytes; /* No more reads of it. */
}

/* False: not now. */
static bool begin_read(struct conn *conn, struct fetch *fetch)
{
    struct packet *packet = conn->reads_free;
    size_t left_bytes = fetch->base.len_bytes - fetch->base.begun_bytes;
    if (!packet)
        return false;
    struct velo_exposed from = {.key = fetch->from.key,
                                .address = fetch->from.address + fetch->base.begun_bytes};
    packet->len_bytes = left_bytes < READ_BYTES ? (uint32_t)left_bytes : READ_BYTES;
    if (offer_read(conn, packet, &from) == FABRIC_BUSY)
        return false;
    struct read *read = (struct read *)packet;
    conn->reads_free = packet->next;
    read->fetch = fetch;
    read->at_bytes = fetch->base.begun_bytes;
    fetch->base.begun_bytes += packet->len_bytes;
    fetch->base.parts++;
    conn->at_fabric++;
    return true;
}

void fetches_push(struct conn *conn)
{
    for (struct fetch_base *fetch = conn->fetches; fetch; fetch = fetch->next)
        while (fetch->begun_bytes < fetch->len_bytes)
            if (!begin_read(conn, (struct fetch *)fetch))
                return;
}

int fetch_begin(struct conn *conn, const struct fetch *wanted)
{
    if (conn->state != CONN_OPEN || conn->is_self)
        return VELO_ERR_PEER_DEAD;
    struct fetch *fetch = open_reads(conn) == VELO_OK ? malloc(sizeof *fetch) : NULL;
    if (!fetch)
        return VELO_ERR_NO_MEMORY;
    *fetch = *wanted;
    fetches_add(&conn->fetches, &fetch->base);
    fetches_push(conn);
    return VELO_OK;
}

void fetch_forget(struct endpoint *endpoint, const int *outcome)
{
    for (uint32_t i = 0; i < endpoint->conns_len; i++) {
        struct conn *conn = endpoint->conns[i];
        for (struct fetch_base *fetch = conn ? conn->fetches : NULL; fetch; fetch = fetch->next) {
            if (fetch->outcome != outcome)
                continue;
            end_fetch(fetch, VELO_ERR_CANCELLED);
            fetches_sweep(&conn->fetches);
            return;
        }
    }
}

void fetch_came(struct packet *packet, bool is_failed)
{
    struct conn *conn = packet->conn;
    struct read *read = (struct read *)packet;
    struct fetch *fetch = read->fetch;
    packet->next = conn->reads_free;
    conn->reads_free = packet;
    fetch->base.parts--;
    if (!is_failed && fetch->base.outcome) {
        memcpy(fetch->to + read->at_bytes, packet->data, packet->len_bytes);
        fetch->done_bytes += packet->len_bytes;
        if (fetch->done_bytes == fetch->base.len_bytes)
            end_fetch(&fetch->base, VELO_OK);
    }
    if (!is_failed)
        conn->hearing.was_heard = true; /* Its signs of life may wait behind its data. */
    fetches_sweep(&conn->fetches);
    if (conn->state == CONN_OPEN && !is_failed)
        fetches_push(conn);
}

void fetches_end(struct conn *conn, int status)
{
    for (struct fetch_base *fetch = conn->fetches; fetch; fetch = fetch->next)
        end_fetch(fetch, status);
    fetches_sweep(&conn->fetches);
}

void fetches_free(struct conn *conn)
{
    for (struct fetch_base *fetch = conn->fetches; fetch; fetch = fetch->next)
        fetch->parts = 0;
    fetches_end(conn, VELO_ERR_PEER_DEAD);
    fabric_free(&conn->read_memory);
    free(conn->reads);
}
