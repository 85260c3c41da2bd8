/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to a peer is offered to the fabric. */
#include "ofi.h"

static enum fabric_sent note_sent(struct conn *conn, enum fabric_sent sent)
{
    backoff_note(&conn->backoff, sent == FABRIC_REFUSED);
    return sent == FABRIC_REFUSED ? FABRIC_BUSY : sent;
}

enum fabric_sent offer_packet(struct conn *conn, struct packet *packet)
{
    enum fabric_sent sent = FABRIC_BUSY;
    if (!backoff_lasts(&conn->backoff))
        sent = note_sent(conn, fabric_send(&conn->endpoint->fabric, packet, conn->address));
    conn->endpoint->base.is_owing |= sent == FABRIC_BUSY;
    return sent;
}

enum fabric_sent offer_read(struct conn *conn, struct packet *packet,
                            const struct velo_exposed *from)
{
    enum fabric_sent sent = FABRIC_BUSY;
    if (!backoff_lasts(&conn->backoff))
        sent = note_sent(conn, fabric_read(&conn->endpoint->fabric, packet, conn->address, from));
    conn->endpoint->base.is_owing |= sent == FABRIC_BUSY;
    return sent;
}
