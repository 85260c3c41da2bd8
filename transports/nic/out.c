/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines out: a published slot of a connection's ring leaves as one or more VELO messages (wire.h).
 * VELO paper, section 3: one store a line.
 */
#include "host_io.h"
#include "nic.h"
#include "wire.h"

/* While the way to the node is full, arriving messages are taken in. */
static void store_line(const struct device_port *device, unsigned unit, uint64_t address,
                       const uint64_t *line, uint32_t len_words)
{
    while (!host_io->store(&device->context, unit, address, line, len_words))
        host_io->poll();
}

/* Send one message of whole words. `len_bytes`: its length, with the connection's word. */
void nic_send_line(const struct device_port *device, uint64_t name, enum line_kind kind,
                   uint64_t *line, size_t len_bytes)
{
    uint32_t to = nic_name_id(name);
    uint32_t words = 1 + (uint32_t)((len_bytes + 7) / 8);
    line[0] = velo_header_pack(0, (uint8_t)kind, (uint16_t)len_bytes, 0, 0);
    line[0] = recombine_checked(line, words);
    uint64_t target = velo_address_pack(0, (uint8_t)(words - 1), (uint8_t)to, (uint8_t)(to >> 8));
    store_line(device, VELO_UNIT_VELO, target, line, words);
}

static void send_data(const struct device_port *device, const struct velo_conn *conn, uint64_t at,
                      size_t len_bytes)
{
    const char *data = conn->tx.data + (at & conn->tx.data_mask);
    for (size_t done = 0; done < len_bytes;) {
        uint64_t line[8] = {0};
        size_t piece = len_bytes - done < WIRE_BYTES_MAX ? len_bytes - done : WIRE_BYTES_MAX;
        line[1] = wire_data(at + done, nic_name_generation(conn->net_name), conn->index);
        memcpy(line + 2, data + done, piece);
        nic_send_line(device, conn->net_name, LINE_DATA, line, 8 + piece);
        done += piece;
    }
}

/* The gate stands behind the slot's payload. */
static void send_gated(struct device_port *device, const struct velo_conn *conn,
                       const uint64_t *slot)
{
    uint64_t line[8] = {0};
    line[1] = wire_slot(slot[0], nic_name_generation(conn->net_name), conn->index);
    memcpy(line + 2, slot + 1, WIRE_GATED_BYTES);
    line[6] = device->gate - 1;
    device->gate = 0;
    nic_send_line(device, conn->net_name, LINE_GATED, line, 8 + WIRE_GATED_BYTES + 8);
}

void nic_send(struct velo_conn *conn)
{
    struct device_port *device = nic_port(conn->port);
    const struct ring_tx *tx = &conn->tx;
    const uint64_t *slot = ring_tx_cell(tx, tx->tail - ring_at_line(1));
    uint64_t header = slot[0];
    size_t len_bytes = ring_len(header);
    size_t in_slot = len_bytes;
    uint32_t generation = nic_name_generation(conn->net_name);
    uint64_t line[8] = {0};
    if (order_read_entry(&conn->header->state) != SEG_OPEN)
        return;
    host_io->work(HOST_CALL);
    if (device->gate) {
        send_gated(device, conn, slot);
        return;
    }
    if (header & VELO_HEADER_EXTERNAL_MASK) {
        send_data(device, conn, slot[1], len_bytes);
        in_slot = sizeof slot[1];
    } else if (len_bytes > WIRE_BYTES_MAX) {
        line[1] = wire_slot(header, generation, conn->index);
        line[2] = slot[7];
        nic_send_line(device, conn->net_name, LINE_MORE, line, 16);
        in_slot = WIRE_BYTES_MAX;
    }
    line[1] = wire_slot(header, generation, conn->index);
    memcpy(line + 2, slot + 1, in_slot);
    nic_send_line(device, conn->net_name, LINE_SLOT, line, 8 + in_slot);
}

void nic_send_empty(struct velo_conn *conn, uint64_t position, uint8_t tag)
{
    if (order_read_entry(&conn->header->state) != SEG_OPEN)
        return;
    uint64_t header =
        VELO_HEADER_VALID_MASK | (uint64_t)tag << VELO_HEADER_TAG_LSB | ring_seq(position);
    uint64_t line[8] = {0, wire_slot(header, nic_name_generation(conn->net_name), conn->index)};
    nic_send_line(nic_port(conn->port), conn->net_name, LINE_SLOT, line, 8);
}

void nic_send_descriptor(const struct device_port *device, const uint64_t *words, uint32_t len)
{
    store_line(device, VELO_UNIT_RMA, 0, words, len);
}

void nic_credit(struct velo_port *port, const struct ring_rx *rx)
{
    uint64_t sender = order_counter(&rx->shared->tx_device);
    if (sender == 0)
        return;
    uint64_t line[8] = {0, wire_data(0, nic_name_generation(sender), rx->index),
                        ring_line(rx->head), rx->data_head};
    nic_send_line(nic_port(port), sender, LINE_CREDIT, line, 24);
}
