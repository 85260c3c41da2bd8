/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file spin.h
 * @brief Polling one ring.
 */
#ifndef VELO_CORE_SPIN_H
#define VELO_CORE_SPIN_H

#include "port.h"

/** May a ring be polled in one loop? Beside it there is at most one other, for example the one by
 * which the same peer sends the pieces of long messages. */
hot_inline bool spin_may(const struct velo_port *port, const struct ring_rx *rx)
{
    return likely(rx->mode == RX_POLLED) && likely(port->active_count <= 2);
}

/* Has a message come in this ring, too? */
static inline bool spin_sees(const struct ring_rx *rx)
{
    const uint64_t *next = ring_rx_cell(rx, ring_line_up(rx->head));
    return (order_read_header(rx->cell) & RING_CHECK) == rx->expect ||
           (order_read_header(next) & RING_CHECK) == rx->expect + ring_seq(LINE_CELLS);
}

/**
 * Poll a ring for which spin_may() holds, so many times, or until the word `look` is not 0 or
 * something has come in the other ring.
 *
 * This loop decides the latency more than anything else: it is short, keeps in registers what it
 * needs, and leaves with the header as soon as that is there.
 *
 * @return The next header; 0: none has come.
 */
hot_inline uint64_t spin_ring(const struct velo_port *port, struct ring_rx *rx,
                              const uint32_t *look, uint32_t polls)
{
    const uint64_t *cell = rx->cell;
    const uint64_t expect = rx->expect;
    const uint64_t *next = ring_rx_cell(rx, ring_line_up(rx->head));
    const uint64_t next_expect = expect + ring_seq(LINE_CELLS);
    const bool is_long = rx->data_ahead > 0;
    const struct ring_rx *other =
        port->active_count == 2 ? port->active[port->active[0] == rx] : NULL;
    for (; polls > 0; polls--) {
        order_pause();
        if (is_long)
            ring_rx_fetch_data(rx, port->shape.data_bytes);
        uint64_t header = order_read_header(cell);
        if ((header & RING_CHECK) == expect)
            return header;
        if (unlikely(order_peek_summary(look)) || (other && spin_sees(other)))
            break;
        if (next != cell && (order_read_header(next) & RING_CHECK) == next_expect &&
            likely((header = ring_rx_turn(rx)) != 0))
            return header;
    }
    return 0;
}

#endif
