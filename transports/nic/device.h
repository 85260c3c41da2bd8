/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file device.h
 * @brief This process's ports at the device: where their hardware rings are and how far they are
 * read.
 */
#ifndef VELO_DEVICE_DEVICE_H
#define VELO_DEVICE_DEVICE_H

#include <pthread.h>

#include "../../lib/core/port.h"

struct sim_channel;

/** Of the list of this process's ports, and of taking in what came for them. */
extern pthread_mutex_t device_lock;

/** What a port has at its node. */
struct device_port {
    struct velo_port *port;
    struct device_port *next; /* Of this process. */
    uint32_t node;
    uint32_t context;
    uint32_t life;                /* Of the context; see wire.h. */
    const uint64_t *ring;         /* In the node's memory. */
    uint64_t head;                /* Slots taken out. */
    uint64_t told;                /* Slots that the hardware knows are taken out. */
    uint64_t news;                /* Lines taken in so far. */
    uint64_t seen;                /* Of those, before the last carry_in(). */
    uint64_t look;                /* The last one that this port took part in. */
    struct device_remote *remote; /* Remote memory; NULL: not open. See remote.h. */
    uint32_t gate;                /* Of the slot that is published next, plus 1; 0: none. */
    uint64_t suspicion_ps;        /* Since when somebody was found dead; 0: nobody. */
    uint64_t suspicion_news;
};

/** Who a port is to its peers: to the hardware, as the spec's header word names a source, and its
 *  context's life. Never 0. */
static inline uint64_t device_name(const struct device_port *device)
{
    return (uint64_t)device->life << 32 | (UINT64_C(1) + (device->node << 8 | device->context));
}

static inline uint32_t device_name_id(uint64_t name) { return (uint32_t)name - 1; }
static inline uint32_t device_name_life(uint64_t name) { return (uint32_t)(name >> 32); }

/** Give the slot at a position, which was sent gated, a meaning of its own: an empty message. */
void device_send_empty(struct velo_conn *conn, uint64_t position, uint8_t tag);
/** Whoever sends to this port may have left a slot gated; publish it, unless it is no more. */
void device_open_slot(struct velo_port *port, uint64_t word, uint32_t sender);
/** Write a descriptor of so many words to the RMA unit. */
void device_store_descriptor(const struct device_port *device, const uint64_t *words, uint32_t len);

/** Let the node use again what was taken out of a ring or queue up to `head`, once that is a
 * quarter of it more than it was told; `read_pointers`: the registers of all contexts for that. */
void device_give_back(const struct device_port *device, uint64_t read_pointers, uint64_t head,
                      uint64_t *told, uint64_t quarter);

/** Take in what has come for all ports of this process. No time passes. */
void device_drain(void);
/** Poll once: let a poll's time pass, or, after some polls in vain, the time until something comes,
 *  as if they had gone on. Then take in what came. */
void device_poll(void);
/** The same, until something comes, but not beyond a time. */
void device_wait(uint64_t deadline_ps);
/** What happens from now on happens outside of the cluster, as far as polls go; see SIM_OUTSIDE.
 * The thread comes back by any other call, or by polling often without a nap. */
void device_go_outside(void);
/** The caller has taken a nap, and looks at something else than its ports: its polls in vain are
 * not one after the other. */
void device_napped(void);
/** The program looks whether something has come, and has other things to do if not: its polls in
 * vain are not one after the other, unless it does nothing else for long. */
void device_tested(void);
/** Let a poll's time pass for who does nothing but to try again what another thread has. */
void device_pass_poll(struct sim_channel *channel);
/** Is this thread outside? */
bool device_is_outside(void);
/** If so, be back before anything else happens: with all others who are. */
void device_come_back(void);
/** Somebody takes a nap; whoever is outside then goes on polling in vain. */
void device_nap_outside(void);

#endif
