/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames into lines and back. A frame goes as a whole: it is taken only if the window has room for
 * all of its lines. What the node does not take at once waits in the connection.
 */
#include <string.h>

#include "card.h"

/* ---- sending --------------------------------------------------------------------------------- */

/* The peer is told how many of its lines were taken, and that this side lives. */
static void note_told(struct conn *conn)
{
    conn->taken_told = conn->taken;
    conn->owes_ack = false;
    conn->was_busy = true;
}

static bool send_line(struct conn *conn, enum wire_kind kind, uint64_t *line, uint32_t words,
                      uint16_t sequence)
{
    const struct endpoint *endpoint = conn->endpoint;
    line[1] = wire_word(conn->context_generation, endpoint->place.context_generation, sequence,
                        conn->taken);
    if (!store_line(endpoint, conn->address, kind, line, words))
        return false;
    note_told(conn);
    return true;
}

bool frame_push(struct conn *conn)
{
    for (; conn->out_gone < conn->out_len; conn->out_gone++, conn->sent++)
        if (!send_line(conn, conn->out_gone == 0 ? WIRE_FRAME : WIRE_MORE,
                       conn->out[conn->out_gone], conn->out_words[conn->out_gone], conn->sent)) {
            conn->endpoint->base.is_owing = true;
            return false;
        }
    conn->out_len = conn->out_gone = 0;
    return true;
}

static uint32_t lines_left(const struct conn *conn)
{
    return conn->window_out - (uint32_t)(uint16_t)(conn->sent - conn->acked);
}

bool frame_has_room(const struct conn *conn)
{
    return conn->state == CONN_OPEN && !conn->is_leaving && conn->out_len == 0 &&
           lines_left(conn) > 0;
}

int frame_send(struct circuit *circuit, const struct velo_frame *frame)
{
    struct conn *conn = (struct conn *)circuit->circuits;
    char bytes[WIRE_FRAME_BYTES];
    if (conn->state == CONN_OVER)
        return VELO_OK; /* The library hears of that. */
    if (conn->state != CONN_OPEN || conn->is_leaving || !frame_push(conn))
        return VELO_AGAIN;
    uint32_t len_bytes = wire_frame_bytes(frame->kind, frame->payload_bytes);
    if ((len_bytes + WIRE_BYTES - 1) / WIRE_BYTES > lines_left(conn))
        return VELO_AGAIN;
    host_io->work(HOST_CALL);
    (void)circuit_put_frame(circuit, frame, bytes);
    for (uint32_t at = 0; at < len_bytes; at += WIRE_BYTES) {
        uint32_t piece = len_bytes - at < WIRE_BYTES ? len_bytes - at : WIRE_BYTES;
        memcpy(conn->out[conn->out_len] + 2, bytes + at, piece);
        conn->out_words[conn->out_len++] = (uint8_t)(2 + piece / 8);
    }
    (void)frame_push(conn);
    return VELO_OK;
}

static bool is_open(const struct circuits *circuits)
{
    return ((const struct conn *)circuits)->state == CONN_OPEN;
}

const struct circuits_use frame_circuits = {
    .circuit_bytes = sizeof(struct circuit), .is_open = is_open, .send = frame_send};

bool frame_mark(struct conn *conn, enum wire_kind kind)
{
    uint64_t line[WIRE_LINE_WORDS] = {0};
    if (!frame_push(conn) || lines_left(conn) == 0 || !send_line(conn, kind, line, 2, conn->sent))
        return false;
    conn->sent++;
    return true;
}

/* Where a frame is half sent, its other lines say it. */
void frame_acknowledge(struct conn *conn)
{
    uint64_t line[WIRE_LINE_WORDS] = {0};
    conn->owes_ack = false;
    if (conn->is_self || send_line(conn, WIRE_ACK, line, 2, 0))
        return;
    conn->owes_ack = conn->endpoint->base.is_owing = true;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void end_frame(struct conn *conn)
{
    const struct wire_envelope *envelope = (const struct wire_envelope *)(const void *)conn->in;
    const struct velo_frame frame = wire_frame(envelope);
    conn->in_len = conn->in_bytes = 0;
    /* The hardware says which context the sender is. */
    if (!circuits_take(&conn->circuits, conn->generation, envelope, &frame))
        endpoint_refuse(&conn->endpoint->base);
}

/* The length of the frame that begins; 0: it is none. */
static uint32_t read_length(const uint64_t *line, uint32_t words)
{
    return words < 3 ? 0
                     : wire_length((const struct wire_envelope *)(line + 2), WIRE_PAYLOAD_BYTES);
}

/* False: there is something that is no frame. */
static bool take_piece(struct conn *conn, bool begins, const uint64_t *line, uint32_t words)
{
    uint32_t len_bytes = (words - 2) * 8;
    if (begins != (conn->in_bytes == 0))
        return false;
    if (begins)
        conn->in_bytes = read_length(line, words);
    if (len_bytes == 0 || conn->in_len + len_bytes > conn->in_bytes)
        return false;
    memcpy(conn->in + conn->in_len, line + 2, len_bytes);
    conn->in_len += len_bytes;
    if (conn->in_len == conn->in_bytes)
        end_frame(conn);
    return true;
}

/* False: the peer has no credit for the line, or it is none. */
static bool take_sequence(struct conn *conn, enum wire_kind kind, const uint64_t *line,
                          uint32_t words)
{
    if ((uint16_t)(conn->taken - conn->taken_told) >= conn->window_in)
        return false;
    conn->taken++;
    if (conn->is_self)
        conn->acked = conn->taken_told = conn->taken;
    if (kind == WIRE_FRAME || kind == WIRE_MORE)
        return take_piece(conn, kind == WIRE_FRAME, line, words);
    conn->has_left = kind == WIRE_BYE;
    return words == 2;
}

void frame_take(struct conn *conn, enum wire_kind kind, const uint64_t *line, uint32_t words)
{
    uint16_t sequence = wire_part(line[1], 2), taken = wire_part(line[1], 3);
    struct endpoint *endpoint = conn->endpoint;
    if (conn->is_self)
        taken = conn->acked; /* What this side has taken is newer. */
    if ((uint16_t)(taken - conn->acked) > (uint16_t)(conn->sent - conn->acked)) {
        endpoint_refuse(&endpoint->base);
        return;
    }
    conn->hearing.was_heard = true;
    conn->acked = taken;
    if (kind == WIRE_ACK)
        return;
    if (sequence != conn->taken) {
        conn_end(conn, VELO_ERR_PEER_DEAD, false); /* A line was lost. */
        return;
    }
    if (!take_sequence(conn, kind, line, words)) {
        endpoint_refuse(&endpoint->base);
        conn_end(conn, VELO_ERR_CORRUPT, false);
    }
    if (conn->state != CONN_OPEN)
        return;
    if (conn->has_left) {
        frame_acknowledge(conn);
        conn_end(conn, VELO_ERR_PEER_DEAD, true);
    } else if (!conn->is_self &&
               (uint16_t)(conn->taken - conn->taken_told) >= conn->window_in / 4) {
        frame_acknowledge(conn);
    }
}
