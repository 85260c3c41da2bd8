/* SPDX-License-Identifier: Apache-2.0 */
#include "outgoing.h"

#include <stdio.h>

#include "../base/error.h"
#include "../base/order.h"

/* Find a free line that has memory: one that was used before, or the next one. */
static int find(const struct segment *segment, struct seg_outgoing **line)
{
    uint64_t *len = &segment->header->outgoing_len;
    uint64_t i = 0;
    while (i < *len && entry_state(seg_outgoing(segment, i)->entry) != ENTRY_FREE)
        i++;
    if (i == SEG_OUTGOING_MAX)
        return velo_fail(VELO_ERR_FULL,
                         "this port has %u connections over transports; open another",
                         SEG_OUTGOING_MAX);
    *line = seg_outgoing(segment, i);
    int status = i == *len ? seg_allocate(segment, *line, sizeof **line) : VELO_OK;
    if (status == VELO_OK && i == *len)
        order_show(len, i + 1);
    return status;
}

int outgoing_add(const struct segment *segment, velo_id_t peer, const char *transport,
                 struct seg_outgoing **line)
{
    seg_acquire();
    int status = find(segment, line);
    if (status == VELO_OK) {
        (void)snprintf((*line)->transport, sizeof(*line)->transport, "%s", transport);
        order_publish_entry(&(*line)->entry, entry_pack(ENTRY_READY, peer, 0));
    }
    seg_release();
    return status;
}

void outgoing_remove(struct seg_outgoing *line)
{
    if (!line)
        return;
    seg_acquire();
    order_publish_entry(&line->entry, entry_pack(ENTRY_FREE, 0, 0));
    seg_release();
}

void outgoing_count(struct seg_outgoing *line, const struct seg_ring *ring)
{
    order_show(&line->tx_msgs, order_counter(&ring->tx_msgs));
    order_show(&line->tx_bytes, order_counter(&ring->tx_bytes));
    order_show(&line->tx_again, order_counter(&ring->tx_again));
    order_show(&line->tx_sleeps, order_counter(&ring->tx_sleeps));
}
