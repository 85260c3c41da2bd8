/* SPDX-License-Identifier: Apache-2.0 */
#include "outgoing.h"

#include <stdio.h>

#include "../base/error.h"
#include "../base/order.h"
#include "memory.h"
#include "registry.h"

#define BIT(index) (UINT64_C(1) << (index) % 64)

/* Find a free row that has memory: one that was used before, or the next one. What stands in the
 * segment is for people: others may write there, so we do not go by it. */
static int find_free_row(struct segment *segment, uint32_t *index)
{
    uint32_t i = 0;
    while (i < segment->outgoing_len && segment->outgoing_used[i / 64] & BIT(i))
        i++;
    if (i == SEG_OUTGOING_MAX)
        return velo_fail(VELO_ERR_FULL,
                         "this port has %u connections over transports; open another",
                         SEG_OUTGOING_MAX);
    *index = i;
    if (i < segment->outgoing_len)
        return VELO_OK;
    int status = seg_allocate(segment, seg_outgoing(segment, i), sizeof(struct seg_outgoing));
    if (status == VELO_OK)
        order_show(&segment->header->outgoing_len, ++segment->outgoing_len);
    return status;
}

int outgoing_add(struct segment *segment, velo_id_t peer, const char *transport,
                 struct seg_outgoing **row)
{
    uint32_t index = 0;
    seg_acquire();
    int status = find_free_row(segment, &index);
    if (status == VELO_OK) {
        *row = seg_outgoing(segment, index);
        segment->outgoing_used[index / 64] |= BIT(index);
        (void)snprintf((*row)->transport, sizeof(*row)->transport, "%s", transport);
        order_publish_entry(&(*row)->entry, entry_pack(ENTRY_READY, peer, 0));
    }
    seg_release();
    return status;
}

void outgoing_remove(struct segment *segment, struct seg_outgoing *row)
{
    if (!row)
        return;
    size_t index = (size_t)(row - seg_outgoing(segment, 0));
    seg_acquire();
    order_publish_entry(&row->entry, entry_pack(ENTRY_FREE, 0, 0));
    segment->outgoing_used[index / 64] &= ~BIT(index);
    seg_release();
}

void outgoing_count(struct seg_outgoing *row, const struct seg_ring *ring)
{
    order_show(&row->tx_msgs, order_counter(&ring->tx_msgs));
    order_show(&row->tx_bytes, order_counter(&ring->tx_bytes));
    order_show(&row->tx_again, order_counter(&ring->tx_again));
    order_show(&row->tx_sleeps, order_counter(&ring->tx_sleeps));
}
