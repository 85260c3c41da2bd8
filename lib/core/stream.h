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

/** Look once for the next message of the current ring: returns its header; 0: none has come. */
hot_inline uint64_t port_look(const struct velo_port *port)
{
    GUARD_UNUSED(port, "port");
    struct ring_rx *rx = port->current;
    uint64_t header = ring_rx_look(rx);
    if (!ring_rx_match(rx, header))
        return 0;
    port_fetch_in_stream(port, rx);
    if (header == 0) /* A header that matches has its valid bit: spare callers the question. */
        __builtin_unreachable();
    return header;
}

/** port_look() saw nothing: is that ring the only place to look at? False: velo_try_peek() looks
 *  closer. Callers with a loop of their own mostly poll in vain. */
hot_inline bool port_is_quiet(struct velo_port *port)
{
    const struct ring_rx *rx = port->current;
    if (unlikely(rx->mode != RX_POLLED || port->active_count != 1 || rx->data_ahead > 0 ||
                 order_peek_summary(port->look) || port->held || port->departed))
        return false;
    port->messages_before = port->messages;
    return true;
}

/** Step behind that message. */
hot_inline void port_step_short(struct velo_port *port, const struct short_message *message)
{
    port_step(port, port->current, ring_cells_guessed(message->cells), message->len_bytes);
}

#endif
