/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of the rings of this process's ports: which one a line is for, and showing it to the
 * receiver.
 */
#include "../../lib/core/entry.h"
#include "../../lib/core/put.h"
#include "nic.h"
#include "wire.h"

struct seg_ring *nic_ring_of(struct velo_port *port, uint32_t index, uint32_t sender,
                             uint64_t *entry)
{
    if (index >= port->shape.conns_max)
        return NULL;
    *entry = order_read_entry(&port->segment->entries[index]);
    struct seg_ring *ring = seg_ring(port->segment, index);
    bool is_open = entry_state(*entry) == ENTRY_READY;
    return is_open && nic_name_id(order_counter(&ring->tx_device)) == sender ? ring : NULL;
}

void nic_publish(struct velo_port *port, const struct seg_ring *ring, uint64_t *slot,
                 uint64_t header, uint32_t index)
{
    if (put_publish(ring, slot, header))
        entry_ring(port->segment, index);
}

void nic_open_slot(struct velo_port *port, uint64_t word, uint32_t sender)
{
    uint64_t entry;
    uint32_t index = wire_slot_index(word);
    struct seg_ring *ring = nic_ring_of(port, index, sender, &entry);
    uint64_t *slot = ring ? put_slot_of(&port->shape, ring, word) : NULL;
    if (slot)
        nic_publish(port, ring, slot, wire_slot_header(word, entry_source(entry)), index);
}
