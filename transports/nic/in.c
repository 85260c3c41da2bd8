/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines in: messages become slots of the receiver's ring again (wire.h), where the receive side
 * finds them as it would natively. Each line is checked: it must name a connection of its sender, a
 * position for which the sender had a credit, and bytes inside the data region. Other lines are
 * counted and dropped. A line that the host split comes in several slots (recombine.h).
 */
#include "../../lib/core/entry.h"
#include "../../lib/core/put.h"
#include "host_io.h"
#include "nic.h"
#include "remote.h"
#include "wire.h"

static void refuse_line(struct velo_port *port) { order_count(&port->shared->rx_errors, 1); }

static void take_slot(struct velo_port *port, const uint64_t *line, size_t len_bytes,
                      uint32_t sender, bool is_more)
{
    uint64_t entry;
    uint32_t index = wire_slot_index(line[1]);
    struct seg_ring *ring = nic_ring_of(port, index, sender, &entry);
    uint64_t *slot = ring ? put_slot_of(&port->shape, ring, line[1]) : NULL;
    if (!slot || len_bytes < 8 || (is_more && len_bytes != 16)) {
        refuse_line(port);
        return;
    }
    if (is_more) {
        slot[7] = line[2];
        return;
    }
    memcpy(slot + 1, line + 2, len_bytes - 8);
    remote_slot_came(nic_port(port), line[1], sender);
    nic_publish(port, ring, slot, wire_slot_header(line[1], entry_source(entry)), index);
}

static void take_gated(struct device_port *device, const uint64_t *line, size_t len_bytes,
                       uint32_t sender)
{
    uint64_t entry;
    struct velo_port *port = device->port;
    struct seg_ring *ring = nic_ring_of(port, wire_slot_index(line[1]), sender, &entry);
    uint64_t *slot = ring ? put_slot_of(&port->shape, ring, line[1]) : NULL;
    if (!slot || len_bytes != 8 + WIRE_GATED_BYTES + 8) {
        refuse_line(port);
        return;
    }
    memcpy(slot + 1, line + 2, WIRE_GATED_BYTES);
    if (!remote_gated(device, line[1], (uint8_t)line[6], sender))
        refuse_line(port);
}

static void take_data(struct velo_port *port, const uint64_t *line, size_t len_bytes,
                      uint32_t sender)
{
    uint64_t entry;
    struct seg_ring *ring = nic_ring_of(port, wire_data_index(line[1]), sender, &entry);
    if (!ring || len_bytes < 8 ||
        !put_data(&port->shape, ring, wire_data_position(line[1]), line + 2, len_bytes - 8))
        refuse_line(port);
}

static void take_leave(struct velo_port *port, uint32_t index, uint32_t sender)
{
    uint64_t entry;
    if (!nic_ring_of(port, index, sender, &entry)) {
        refuse_line(port);
        return;
    }
    /* If the owner meanwhile took the sender for dead, or refused it, the entry stays so. */
    if (order_claim_entry(&port->segment->entries[index], entry,
                          entry_in_state(entry, ENTRY_ENDED)))
        entry_ring(port->segment, index);
}

/* Credits that come for a connection that is closed are dropped. */
static void take_credit(struct velo_port *port, const uint64_t *line, uint32_t sender)
{
    pthread_mutex_lock(&port->conns_lock);
    for (struct velo_conn *conn = port->conns; conn; conn = conn->next) {
        if (conn->index != wire_data_index(line[1]) || nic_name_id(conn->net_name) != sender)
            continue;
        if (line[2] - ring_line(conn->tx.shared->consumed) > ring_line(conn->tx.cell_mask + 1))
            break; /* The credit is for an earlier connection of this place in the table. */
        order_publish_credit(&conn->tx.shared->data_consumed, line[3]);
        order_publish_credit(&conn->tx.shared->consumed, ring_at_line(line[2]));
        break;
    }
    pthread_mutex_unlock(&port->conns_lock);
}

/* A part of a line, or nothing that a node writes. Lines that will not be whole are refused, too.
 * True: the line is whole now. */
static bool take_part(struct device_port *device, const uint64_t *slot, uint64_t *line)
{
    uint64_t dropped = device->split.dropped;
    enum recombine_result result = recombine_take(&device->split, slot, line);
    for (; dropped < device->split.dropped; dropped++)
        refuse_line(device->port);
    if (result == RECOMBINE_REFUSED)
        refuse_line(device->port);
    return result == RECOMBINE_WHOLE;
}

static void take_line(struct device_port *device, const uint64_t *line)
{
    struct velo_port *port = device->port;
    uint64_t whole[8];
    device->news++;
    if (velo_header_len(line[0]) > VELO_INLINE_BYTES || velo_header_reserved(line[0]) != 0) {
        if (!take_part(device, line, whole))
            return;
        line = whole;
    }
    size_t len_bytes = velo_header_len(line[0]);
    uint32_t sender = velo_header_source(line[0]);
    unsigned kind = velo_header_tag(line[0]);
    bool is_slot = kind == LINE_SLOT || kind == LINE_MORE || kind == LINE_GATED;
    if ((is_slot ? wire_slot_generation(line[1]) : wire_data_generation(line[1])) !=
        device->generation)
        return;
    switch (kind) {
    case LINE_SLOT:
    case LINE_MORE:
        take_slot(port, line, len_bytes, sender, kind == LINE_MORE);
        break;
    case LINE_DATA:
        take_data(port, line, len_bytes, sender);
        break;
    case LINE_LEAVE:
        take_leave(port, wire_data_index(line[1]), sender);
        break;
    case LINE_CREDIT:
        take_credit(port, line, sender);
        break;
    case LINE_GATED:
        take_gated(device, line, len_bytes, sender);
        break;
    default:
        refuse_line(port);
    }
}

static void drain_ring(struct device_port *device)
{
    const struct host_context *context = &device->context;
    for (;;) {
        const uint64_t *slot = context->ring + device->head % context->ring_slots * SLOT_WORDS;
        uint64_t line[8];
        line[0] = order_read_header(slot);
        if (!velo_header_valid(line[0]) || velo_header_seq(line[0]) != (device->head & UINT16_MAX))
            return;
        memcpy(line + 1, slot + 1, sizeof line - sizeof line[0]);
        device->head++;
        order_show(&device->context.ring_head, device->head);
        host_io->work(HOST_COPY);
        take_line(device, line);
        nic_give_back(device, HOST_REG_READ_POINTERS, device->head, &device->head_told,
                      context->ring_slots / 4);
    }
}

void nic_drain(struct device_port *device)
{
    /* Remote memory comes first: the port has to hear of all that a sender did before it hears that
     * the sender has left. */
    remote_drain(device);
    drain_ring(device);
}
