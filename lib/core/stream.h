/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file stream.h
 * @brief Taking short messages one after the other, for a protocol above.
 *
 * Such a message is read where it lies. It is not held and described first, which takes longer than
 * the message itself. All other messages are left to velo_try_peek().
 */
#ifndef VELO_CORE_STREAM_H
#define VELO_CORE_STREAM_H

#include "port.h"

/* After this many messages without a wait, lines ahead are asked for; see receive.c. */
#define STREAM_RUN 8

/** A message that lies in its line. The ring goes on behind it without a pause. */
struct short_message {
    const char *data; /* A peer can still write to it. */
    uint32_t len_bytes;
    uint32_t cells;
    uint8_t tag;
};

/** Read the header of the next message. False: this message is not as simple as that. */
hot_inline bool short_message_read(const struct ring_rx *rx, uint64_t header,
                                   struct short_message *message)
{
    message->data = (const char *)(rx->cell + 1);
    message->len_bytes = ring_len(header);
    message->cells = ring_cells(message->len_bytes);
    message->tag = ring_tag(header);
    return likely(!(header & VELO_HEADER_EXTERNAL_MASK)) &&
           likely(ring_rx_holds(rx, message->cells)) &&
           likely(rx->head + LINE_CELLS < rx->pause_at);
}

/** Ask for a line ahead if the messages come in a stream. */
hot_inline void port_fetch_in_stream(const struct velo_port *port, const struct ring_rx *rx)
{
    if (port->messages - port->messages_before >= STREAM_RUN)
        ring_rx_fetch_line(rx, CELLS_AHEAD / 2);
}

/** Look once for the next message of the current ring. False: none has come, or another one. */
hot_inline bool port_next_short(const struct velo_port *port, struct short_message *message)
{
    GUARD_UNUSED(port, "port");
    struct ring_rx *rx = port->current;
    uint64_t header = ring_rx_look(rx);
    if (unlikely(!ring_rx_match(rx, header)))
        return false;
    port_fetch_in_stream(port, rx);
    return short_message_read(rx, header, message);
}

/** Step behind that message. */
hot_inline void port_step_short(struct velo_port *port, const struct short_message *message)
{
    port_step(port, port->current, ring_cells_guessed(message->cells), message->len_bytes);
}

#endif
