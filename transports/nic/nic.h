/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file nic.h
 * @brief A port's part at its node, and the functions that the files of this folder share.
 */
#ifndef VELO_NIC_NIC_H
#define VELO_NIC_NIC_H

#include <pthread.h>

#include "../../lib/core/port.h"
#include "../../lib/net/network.h"
#include "../../lib/net/transport.h"
#include "../../lib/rma/offload.h"
#include "host_io.h"
#include "recombine.h"
#include "wire.h"

/** Guards the list of this process's ports. It is also held while messages for them are taken in.
 */
extern pthread_mutex_t nic_lock;

/** A port's part at its node. */
struct device_port {
    struct velo_port *port;
    struct device_port *next; /* Of this process. */
    struct host_context context;
    uint32_t generation;          /* Of the context; see wire.h. */
    uint64_t head;                /* Slots taken out. */
    uint64_t head_told;           /* Slots that the hardware knows are taken out. */
    uint64_t news;                /* Lines taken in so far. */
    uint64_t seen;                /* Lines taken in before the last poll for it. */
    uint64_t poll;                /* The last poll whose messages this port has looked at. */
    struct device_remote *remote; /* Remote memory; NULL: not open. See remote.h. */
    struct recombine split;       /* Lines that came in parts. */
    uint32_t gate;                /* Of the slot that is published next, plus 1; 0: none. */
    int64_t suspicion_ns;         /* A sender seems to be dead since then; 0: none does. */
    uint64_t suspicion_news;
};

static inline struct device_port *nic_port(const struct velo_port *port) { return port->net_own; }

/** The name of a port for its peers: the source as in the spec's header word, and the generation of
 *  its context. Never 0. */
static inline uint64_t nic_name(const struct device_port *device)
{
    return (uint64_t)device->generation << 32 |
           (UINT64_C(1) + (device->context.node << 8 | device->context.number));
}

static inline uint32_t nic_name_id(uint64_t name) { return (uint32_t)name - 1; }
static inline uint32_t nic_name_generation(uint64_t name) { return (uint32_t)(name >> 32); }

/** For RMA. */
extern const struct rma_offload nic_rma;

/** Send the message that a connection has published last. */
void nic_send(struct velo_conn *conn);
/** Send a ring's credits to its sender. */
void nic_credit(struct velo_port *port, const struct ring_rx *rx);
/** Send one message of whole words to a port; `len_bytes` of its payload count. */
void nic_send_line(const struct device_port *device, uint64_t name, enum line_kind kind,
                   uint64_t *line, size_t len_bytes);
/** Write a descriptor of this many words to the RMA unit. */
void nic_send_descriptor(const struct device_port *device, const uint64_t *words,
                         uint32_t len_words);
/** Give the slot at a position, which was sent gated, a meaning of its own: an empty message. */
void nic_send_empty(struct velo_conn *conn, uint64_t position, uint8_t tag);

/** Take in what has come for a port. With nic_lock held. */
void nic_drain(struct device_port *device);
/** The ring of the connection with an index, if that is open and the sender's; else NULL. `entry`:
 *  its entry in the port's table. */
struct seg_ring *nic_ring_of(struct velo_port *port, uint32_t index, uint32_t sender,
                             uint64_t *entry);
/** Publish a slot whose payload is there. */
void nic_publish(struct velo_port *port, const struct seg_ring *ring, uint64_t *slot,
                 uint64_t header, uint32_t index);
/** Publish a slot that a sender to this port has left gated, unless its connection is no more. */
void nic_open_slot(struct velo_port *port, uint64_t word, uint32_t sender);
/** Let the node use the slots of a ring or queue before `head` again, once they are a quarter more
 * than the node knows of. `read_pointers`: the register for that, of context 0. */
void nic_give_back(const struct device_port *device, uint64_t read_pointers, uint64_t head,
                   uint64_t *head_told, uint64_t quarter);

#endif
