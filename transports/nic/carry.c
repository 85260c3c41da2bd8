/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings over a device: a published slot leaves as VELO messages (wire.h) and is put together again
 * in the receiver's ring, where the receive side finds it as it would natively. Both ends check:
 * what comes in names a connection of the one that sent it, a position for which that one had a
 * credit, and bytes inside the data region; the rest is counted and dropped.
 *
 * VELO paper, section 3: one store a line, and the receiver polls its own memory.
 */
#include "../../lib/core/carry.h"

#include <stdlib.h>

#include "../../lib/base/error.h"
#include "../../sim/preload/caller.h"
#include "../../sim/preload/nap.h"
#include "device.h"
#include "remote.h"
#include "wire.h"

/* Offsets in the node's registers (spec/velo_regs.rdl). */
#define REG_READ_POINTERS UINT64_C(0x8100000)
#define REG_CONTEXT_STRIDE UINT64_C(0x1000)
/* So long a poll lasts at most whose thread is not the only one: another may do what it waits for.
 */
#define BESIDE_PS (UINT64_C(1000) * PS_PER_NS)
/* After so many polls in vain, one after the other, the next ones until something comes are one. */
#define POLLS_BEFORE_WAIT 8
/* A program that looks so often in vain, and does nothing else, waits too. */
#define TESTS_BEFORE_WAIT 4096
/* Polls that a caller who is outside makes between two naps. */
#define POLLS_OUTSIDE 32
/* So long at most: the caller may have a limit of its own. */
#define JOINED_PS (UINT64_C(100000) * PS_PER_NS)
/* Longer than anything stays in the network that nobody holds up. */
#define SETTLED_PS (UINT64_C(1000000) * PS_PER_NS)

pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static struct device_port *devices;

static __thread uint32_t polls_in_vain;
static __thread uint32_t tests_in_vain;
static __thread uint32_t polls_outside;
static __thread bool outside;
static __thread uint64_t arrivals;
static __thread uint64_t polled_ps;
static uint64_t looks; /* To receive. */

/* ---- lines out ------------------------------------------------------------------------------- */

/* A write that the way to the node has no room for waits; what comes in must not wait for it. The
 * host model's pause comes after the write: it holds up the next one, not this. */
static void store(const struct device_port *device, uint64_t address, const uint64_t *line,
                  uint32_t words)
{
    struct sim_channel *channel = channel_self();
    for (;;) {
        outside = false;
        polls_in_vain = tests_in_vain = 0;
        if (sim_store(channel, device->node, address, line, words) != SIM_AGAIN)
            break;
        device_poll();
    }
    channel_charge(channel, channel_area()->gap_ps);
}

/* Send one message of whole words; `len_bytes` of it count, the connection's word too. */
static void send_line(const struct device_port *device, uint64_t name, enum wire_kind kind,
                      uint64_t *line, size_t len_bytes)
{
    uint32_t to = device_name_id(name);
    uint32_t words = 1 + (uint32_t)((len_bytes + 7) / 8);
    line[0] = velo_header_pack(0, (uint8_t)kind, (uint16_t)len_bytes, 0, 0);
    uint64_t target = velo_address_pack(0, (uint8_t)(words - 1), (uint8_t)to, (uint8_t)(to >> 8));
    store(device, velo_window_pack((uint32_t)target, (uint8_t)device->context, VELO_UNIT_VELO),
          line, words);
}

static void send_data(const struct device_port *device, const struct velo_conn *conn, uint64_t at,
                      size_t len_bytes)
{
    const char *data = conn->tx.data + (at & conn->tx.data_mask);
    for (size_t done = 0; done < len_bytes;) {
        uint64_t line[8] = {0};
        size_t piece = len_bytes - done < WIRE_BYTES_MAX ? len_bytes - done : WIRE_BYTES_MAX;
        line[1] = wire_data(at + done, device_name_life(conn->peer_device), conn->index);
        memcpy(line + 2, data + done, piece);
        send_line(device, conn->peer_device, WIRE_DATA, line, 8 + piece);
        done += piece;
    }
}

/* The slot's header is last: the gate stands behind its payload. */
static void send_gated(struct device_port *device, const struct velo_conn *conn,
                       const uint64_t *slot)
{
    uint64_t line[8] = {0};
    line[1] = wire_slot(slot[0], device_name_life(conn->peer_device), conn->index);
    memcpy(line + 2, slot + 1, WIRE_GATED_BYTES);
    line[6] = device->gate - 1;
    device->gate = 0;
    send_line(device, conn->peer_device, WIRE_GATED, line, 8 + WIRE_GATED_BYTES + 8);
}

bool carry_out(struct velo_conn *conn)
{
    struct device_port *device = conn->port->device;
    const struct ring_tx *tx = &conn->tx;
    const uint64_t *slot = tx->slots + ((tx->tail - 1) & tx->slot_mask) * SLOT_WORDS;
    uint64_t header = slot[0];
    size_t len_bytes = ring_len(header);
    size_t in_slot = len_bytes;
    uint32_t life = device_name_life(conn->peer_device);
    uint64_t line[8] = {0};
    if (order_read_entry(&conn->header->state) != SEG_OPEN)
        return true;
    channel_charge(channel_self(), channel_area()->call_ps);
    if (device->gate) {
        send_gated(device, conn, slot);
        return true;
    }
    if (header & VELO_HEADER_EXTERNAL_MASK) {
        send_data(device, conn, slot[1], len_bytes);
        in_slot = sizeof slot[1];
    } else if (len_bytes > WIRE_BYTES_MAX) {
        line[1] = wire_slot(header, life, conn->index);
        line[2] = slot[7];
        send_line(device, conn->peer_device, WIRE_MORE, line, 16);
        in_slot = WIRE_BYTES_MAX;
    }
    line[1] = wire_slot(header, life, conn->index);
    memcpy(line + 2, slot + 1, in_slot);
    send_line(device, conn->peer_device, WIRE_SLOT, line, 8 + in_slot);
    return true;
}

void device_send_empty(struct velo_conn *conn, uint64_t position, uint8_t tag)
{
    if (order_read_entry(&conn->header->state) != SEG_OPEN)
        return;
    uint64_t header =
        VELO_HEADER_VALID_MASK | (uint64_t)tag << VELO_HEADER_TAG_LSB | ring_seq(position);
    uint64_t line[8] = {0, wire_slot(header, device_name_life(conn->peer_device), conn->index)};
    send_line(conn->port->device, conn->peer_device, WIRE_SLOT, line, 8);
}

void device_store_descriptor(const struct device_port *device, const uint64_t *words, uint32_t len)
{
    store(device, velo_window_pack(0, (uint8_t)device->context, VELO_UNIT_RMA), words, len);
}

void carry_credit(struct velo_port *port, const struct ring_rx *rx)
{
    uint64_t sender = order_counter(&rx->shared->tx_device);
    if (sender == 0)
        return;
    uint64_t line[8] = {0, wire_data(0, device_name_life(sender), rx->index), rx->head,
                        rx->data_head};
    send_line(port->device, sender, WIRE_CREDIT, line, 24);
}

/* ---- lines in -------------------------------------------------------------------------------- */

static void refuse_line(struct velo_port *port) { order_count(&port->shared->rx_errors, 1); }

/* The ring of a connection, if it is one of the sender's. */
static struct seg_ring *ring_of(struct velo_port *port, uint32_t index, uint32_t sender,
                                uint64_t *entry)
{
    if (index >= port->shape.conns_max)
        return NULL;
    *entry = order_read_entry(&port->segment->entries[index]);
    struct seg_ring *ring = seg_ring(port->segment, index);
    bool is_open = entry_state(*entry) == ENTRY_READY;
    return is_open && device_name_id(order_counter(&ring->tx_device)) == sender ? ring : NULL;
}

static void ring_bell(struct velo_port *port, uint32_t index)
{
    order_ring(&port->shared->bells[index / 64], UINT64_C(1) << index % 64);
    order_ring_summary(&port->shared->summary, UINT32_C(1) << index / SEG_CONNS_PER_SUMMARY_BIT);
}

/* The slot that a header word is meant for; NULL: its sender has no credit for it. */
static uint64_t *slot_of(const struct velo_port *port, struct seg_ring *ring, uint64_t word)
{
    uint64_t consumed = order_counter(&ring->consumed);
    uint16_t ahead = (uint16_t)(velo_header_seq(word) - (uint16_t)consumed);
    if (ahead >= port->shape.depth_slots)
        return NULL;
    return ring->slots + ((consumed + ahead) & (port->shape.depth_slots - 1)) * SLOT_WORDS;
}

static void publish(struct velo_port *port, struct seg_ring *ring, uint64_t *slot, uint64_t header,
                    uint32_t index)
{
    order_publish_header(slot, header);
    order_full_fence(); /* As a fenced sender: publish before the bell is read. */
    if (order_read_bell(&ring->bell) == BELL_RING)
        ring_bell(port, index);
}

static void take_slot(struct velo_port *port, const uint64_t *line, size_t len_bytes,
                      uint32_t sender, bool is_more)
{
    uint64_t entry;
    uint32_t index = wire_slot_index(line[1]);
    struct seg_ring *ring = ring_of(port, index, sender, &entry);
    uint64_t *slot = ring ? slot_of(port, ring, line[1]) : NULL;
    if (!slot || len_bytes < 8 || (is_more && len_bytes != 16)) {
        refuse_line(port);
        return;
    }
    if (is_more) {
        slot[7] = line[2];
        return;
    }
    memcpy(slot + 1, line + 2, len_bytes - 8);
    remote_slot_came(port->device, line[1], sender);
    publish(port, ring, slot, wire_slot_header(line[1], entry_source(entry)), index);
}

static void take_gated(struct device_port *device, const uint64_t *line, size_t len_bytes,
                       uint32_t sender)
{
    uint64_t entry;
    struct velo_port *port = device->port;
    struct seg_ring *ring = ring_of(port, wire_slot_index(line[1]), sender, &entry);
    uint64_t *slot = ring ? slot_of(port, ring, line[1]) : NULL;
    if (!slot || len_bytes != 8 + WIRE_GATED_BYTES + 8) {
        refuse_line(port);
        return;
    }
    memcpy(slot + 1, line + 2, WIRE_GATED_BYTES);
    if (!remote_gated(device, line[1], (uint8_t)line[6], sender))
        refuse_line(port);
}

void device_open_slot(struct velo_port *port, uint64_t word, uint32_t sender)
{
    uint64_t entry;
    uint32_t index = wire_slot_index(word);
    struct seg_ring *ring = ring_of(port, index, sender, &entry);
    uint64_t *slot = ring ? slot_of(port, ring, word) : NULL;
    if (slot)
        publish(port, ring, slot, wire_slot_header(word, entry_source(entry)), index);
}

static void take_data(struct velo_port *port, const uint64_t *line, size_t len_bytes,
                      uint32_t sender)
{
    uint64_t entry;
    struct seg_ring *ring = ring_of(port, wire_data_index(line[1]), sender, &entry);
    uint64_t at = wire_data_position(line[1]) & (port->shape.data_bytes - 1);
    if (!ring || len_bytes < 8 || at + (len_bytes - 8) > port->shape.data_bytes) {
        refuse_line(port);
        return;
    }
    char *data = (char *)(ring->slots + (size_t)port->shape.depth_slots * SLOT_WORDS);
    memcpy(data + at, line + 2, len_bytes - 8);
}

static void take_leave(struct velo_port *port, uint32_t index, uint32_t sender)
{
    uint64_t entry;
    if (!ring_of(port, index, sender, &entry)) {
        refuse_line(port);
        return;
    }
    /* The owner may have taken it for dead, or refused it, meanwhile: then that stands. */
    if (order_claim_entry(&port->segment->entries[index], entry,
                          entry_pack(ENTRY_ENDED, entry_source(entry), entry_life(entry))))
        ring_bell(port, index);
}

/* Credits may come for a connection that is closed: they are nobody's then. */
static void take_credit(struct velo_port *port, const uint64_t *line, uint32_t sender)
{
    pthread_mutex_lock(&port->conns_lock);
    for (struct velo_conn *conn = port->conns; conn; conn = conn->next) {
        if (conn->index != wire_data_index(line[1]) || device_name_id(conn->peer_device) != sender)
            continue;
        if (line[2] - conn->tx.shared->consumed > conn->tx.slot_mask + 1)
            break; /* Of a connection that was here before. */
        order_publish_credit(&conn->tx.shared->data_consumed, line[3]);
        order_publish_credit(&conn->tx.shared->consumed, line[2]);
        break;
    }
    pthread_mutex_unlock(&port->conns_lock);
}

static void take_line(struct device_port *device, const uint64_t *line)
{
    struct velo_port *port = device->port;
    size_t len_bytes = velo_header_len(line[0]);
    uint32_t sender = velo_header_source(line[0]);
    unsigned kind = velo_header_tag(line[0]);
    bool is_slot = kind == WIRE_SLOT || kind == WIRE_MORE || kind == WIRE_GATED;
    device->news++;
    if (len_bytes > VELO_INLINE_BYTES || velo_header_reserved(line[0]) != 0) {
        refuse_line(port);
        return;
    }
    if ((is_slot ? wire_slot_life(line[1]) : wire_data_life(line[1])) != device->life)
        return;
    switch (kind) {
    case WIRE_SLOT:
    case WIRE_MORE:
        take_slot(port, line, len_bytes, sender, kind == WIRE_MORE);
        break;
    case WIRE_DATA:
        take_data(port, line, len_bytes, sender);
        break;
    case WIRE_LEAVE:
        take_leave(port, wire_data_index(line[1]), sender);
        break;
    case WIRE_CREDIT:
        take_credit(port, line, sender);
        break;
    case WIRE_GATED:
        take_gated(device, line, len_bytes, sender);
        break;
    default:
        refuse_line(port);
    }
}

/* A quarter of the ring at a time, as the native receive side does. */
void device_give_back(const struct device_port *device, uint64_t read_pointers, uint64_t head,
                      uint64_t *told, uint64_t quarter)
{
    struct sim_channel *channel = channel_self();
    if (head - *told < quarter)
        return;
    *told = head;
    (void)sim_register_write(channel, device->node,
                             read_pointers + device->context * REG_CONTEXT_STRIDE,
                             head & UINT16_MAX);
}

static void drain(struct device_port *device, struct sim_channel *channel)
{
    for (;;) {
        const uint64_t *slot = device->ring + device->head % SIM_RING_SLOTS * SLOT_WORDS;
        uint64_t line[8];
        line[0] = order_read_header(slot);
        if (!velo_header_valid(line[0]) || velo_header_seq(line[0]) != (device->head & UINT16_MAX))
            return;
        memcpy(line + 1, slot + 1, sizeof line - sizeof line[0]);
        device->head++;
        channel_charge(channel, channel_area()->copy_ps);
        take_line(device, line);
        device_give_back(device, REG_READ_POINTERS, device->head, &device->told,
                         SIM_RING_SLOTS / 4);
    }
}

void device_drain(void)
{
    struct sim_channel *channel = channel_self();
    pthread_mutex_lock(&device_lock);
    for (struct device_port *device = devices; device; device = device->next) {
        remote_drain(device, channel); /* First: whoever leaves was told of all that it did. */
        drain(device, channel);
    }
    pthread_mutex_unlock(&device_lock);
}

/* ---- polling --------------------------------------------------------------------------------- */

static void end_poll(const struct sim_channel *channel, int status)
{
    outside = false;
    polls_in_vain++;
    if (status == SIM_OK)
        polls_in_vain = tests_in_vain = 0;
    polled_ps = channel->call.time_ps;
    device_drain();
}

/* The caller may look at a clock, or at what others do in memory, who need not be waiting: then
 * only a limit ends its polls. Ranks of a job wait for messages, and the cluster lets one go on
 * where all do; they need none, and would pay for it with each look at something else. */
static uint64_t joined_until(const struct sim_channel *channel)
{
    if (start_has_threads())
        return channel->call.time_ps + BESIDE_PS;
    bool is_repeatable = channel_number("VELO_SIM_REPEATABLE", 0) != 0;
    return is_repeatable ? SIM_NEVER : channel->call.time_ps + JOINED_PS;
}

void device_poll(void)
{
    struct sim_channel *channel = channel_self();
    if (outside && ++polls_outside <= POLLS_OUTSIDE)
        return;
    channel_charge(channel, channel_area()->poll_ps);
    /* What the caller does between two polls in vain is the same each time. */
    uint64_t period_ps = channel->call.time_ps - polled_ps;
    bool joined = polls_in_vain >= POLLS_BEFORE_WAIT;
    end_poll(channel, joined ? sim_poll(channel, &arrivals, joined_until(channel), period_ps)
                             : sim_look(channel, &arrivals));
}

void device_wait(uint64_t deadline_ps)
{
    struct sim_channel *channel = channel_self();
    channel_charge(channel, channel_area()->poll_ps);
    end_poll(channel, sim_poll(channel, &arrivals, deadline_ps, channel_area()->poll_ps));
}

void device_go_outside(void)
{
    static __thread uint64_t times;
    struct sim_channel *channel = channel_self();
    if (!channel)
        return;
    (void)sim_outside(channel, ++times);
    polls_outside = 0;
    outside = true;
}

void device_napped(void) { polls_in_vain = 0; }

void carry_asked(const void *caller)
{
    if (caller_at(caller) == CALLER_PROGRAM)
        device_tested();
}

void device_tested(void)
{
    if (++tests_in_vain < TESTS_BEFORE_WAIT)
        polls_in_vain = 0;
}

bool device_is_outside(void) { return outside; }

void device_come_back(void)
{
    if (outside)
        nap_for_ns(channel_self(), 0);
    outside = false;
}

void device_pass_poll(struct sim_channel *channel)
{
    nap_for_ns(channel, (int64_t)(channel_area()->poll_ps / PS_PER_NS) + 1);
}

void device_nap_outside(void) { polls_outside = 0; }

/* One look takes in what has come for all ports of the process. A port that took no part in the
 * last one yet has it for nothing: so it does not matter which of two ports that are polled in
 * turns comes first, which a program may decide by how often it polled while it was outside. */
bool carry_in(struct velo_port *port)
{
    struct device_port *device = port->device;
    uint64_t look = order_counter(&looks);
    if (device->look == look) {
        order_show(&looks, ++look);
        device_poll();
    }
    device->look = look;
    bool is_new = device->news != device->seen;
    device->seen = device->news;
    return is_new;
}

bool carry_is_settled(const struct velo_port *port)
{
    struct device_port *device = port->device;
    uint64_t now_ps = channel_self()->call.time_ps;
    bool is_new = device->suspicion_ps == 0 || device->suspicion_news != device->news;
    if (!is_new && now_ps >= device->suspicion_ps + SETTLED_PS) {
        device->suspicion_ps = 0;
        return true;
    }
    if (is_new) {
        device->suspicion_ps = now_ps;
        device->suspicion_news = device->news;
    }
    return false;
}

/* ---- ports and connections ------------------------------------------------------------------- */

/* Ranks that share a node take turns with its contexts, so that who comes first decides nothing. */
void carry_place(int *node, uint32_t *first, uint32_t *step)
{
    uint64_t rank = channel_number("VELO_SIM_RANK", 0);
    uint64_t ranks_a_node = channel_number("VELO_SIM_RANKS_A_NODE", 1);
    *step = ranks_a_node < 1 || ranks_a_node > SIM_CONTEXTS ? 1 : (uint32_t)ranks_a_node;
    *first = (uint32_t)(rank % *step);
    if (*node == 0)
        *node = (int)(rank / *step % VELO_NODES);
}

/* With $VELO_SIM_SPREAD, ports of one node are on one simulated node after the other: for programs
 * that know of one node only, and tests that are to use the network. */
static uint32_t node_of(velo_id_t id, uint32_t nodes)
{
    uint32_t spread = channel_number("VELO_SIM_SPREAD", 0) ? VELO_ID_VPID(id) : 0;
    return (VELO_ID_NODE(id) + spread) % nodes;
}

/* Ids may name more nodes than there are: they share them then. A port that has another's id in
 * another domain gets another context; ids of the first half and units beside them do not meet. */
static int open_context(struct device_port *device, struct sim_channel *channel, velo_id_t id,
                        bool is_beside)
{
    uint32_t node = node_of(id, channel_area()->nodes);
    uint64_t context = (VELO_ID_VPID(id) + (is_beside ? SIM_CONTEXTS / 2 : 0)) % SIM_CONTEXTS;
    uint64_t opened;
    if (sim_port_open(channel, node, &context, &opened) != SIM_OK)
        return velo_fail(VELO_ERR_FULL, "all %u contexts of the simulated node %u are in use",
                         SIM_CONTEXTS, node);
    device->node = node;
    device->context = (uint32_t)context;
    device->life = (uint32_t)opened & WIRE_LIFE_MASK;
    device->ring = (const uint64_t *)(const void *)(channel_memory(device->node) +
                                                    (size_t)device->context * SIM_RING_BYTES);
    return VELO_OK;
}

int carry_open(struct velo_port *port)
{
    struct sim_channel *channel = channel_self();
    if (!channel)
        return VELO_ERR_STATE;
    struct device_port *device = calloc(1, sizeof *device);
    if (!device)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    int status = open_context(device, channel, port->id, (port->flags & SEG_HAS_TAIL) != 0);
    if (status) {
        free(device);
        return status;
    }
    device->port = port;
    port->device = device;
    /* Virtual time passes only while we wait. */
    port->spin_max_ns = 0;
    port->spin_ns = 0;
    port->promote = false;
    pthread_mutex_lock(&device_lock);
    device->next = devices;
    devices = device;
    pthread_mutex_unlock(&device_lock);
    order_publish_entry(&port->segment->header->device, device_name(device));
    return VELO_OK;
}

void carry_close(struct velo_port *port)
{
    struct device_port *device = port->device;
    if (!device)
        return;
    pthread_mutex_lock(&device_lock);
    struct device_port **link = &devices;
    while (*link != device)
        link = &(*link)->next;
    *link = device->next;
    pthread_mutex_unlock(&device_lock);
    (void)sim_port_close(channel_self(), device->node, device->context);
    remote_close(device);
    free(device);
    port->device = NULL;
}

bool carry_is_reachable(const struct segment *segment)
{
    return order_read_entry(&segment->header->device) != 0;
}

int carry_connect(struct velo_conn *conn)
{
    struct ring_tx *tx = &conn->tx;
    struct seg_ring *theirs = tx->shared;
    struct seg_ring *ours = aligned_alloc(SEG_ALIGN, conn->segment->shape.ring_bytes);
    if (!ours)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a ring");
    memset(ours, 0, sizeof *ours);
    ours->bell = BELL_POLLED;
    ours->consumed = tx->tail;
    ours->data_consumed = tx->data_tail;
    tx->data = (char *)ours + (tx->data - (char *)theirs);
    tx->slots = ours->slots;
    tx->shared = ours;
    conn->bell = &ours->bell;
    conn->peer_device = order_read_entry(&conn->header->device);
    order_show(&theirs->tx_device, device_name(conn->port->device));
    return VELO_OK;
}

bool carry_disconnect(struct velo_conn *conn)
{
    uint64_t line[8] = {0, wire_data(0, device_name_life(conn->peer_device), conn->index)};
    if (order_read_entry(&conn->header->state) == SEG_OPEN)
        send_line(conn->port->device, conn->peer_device, WIRE_LEAVE, line, 8);
    free(conn->tx.shared);
    return true;
}
