/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to a peer is offered to the fabric. */
#include "ofi.h"

static bool is_paused(struct conn *conn)
{
    bool is_paused = backoff_lasts(&conn->backoff);
    conn->endpoint->base.is_owing |= is_paused;
    return is_paused;
}

static enum fabric_sent note_offer(struct conn *conn, enum fabric_sent sent)
{
    backoff_note(&conn->backoff, sent == FABRIC_REFUSED);
    if (sent == FABRIC_REFUSED)
        sent = FABRIC_BUSY;
    conn->endpoint->base.is_owing |= sent == FABRIC_BUSY;
    return sent;
}

enum fabric_sent offer_packet(struct conn *conn, struct packet *packet)
{
    if (is_paused(conn))
        return FABRIC_BUSY;
    return note_offer(conn, fabric_send(&conn->endpoint->fabric, packet, conn->address));
}

enum fabric_sent offer_read(struct conn *conn, struct packet *packet,
                            const struct velo_exposed *from)
{
    if (is_paused(conn))
        return FABRIC_BUSY;
    return note_offer(conn, fabric_read(&conn->endpoint->fabric, packet, conn->address, from));
}
