/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file carrier.h
 * @brief A port's transports.
 *
 * Each endpoint has a lock of its own: the receiving thread and those that send may all look for
 * frames that have come.
 */
#ifndef VELO_NET_CARRIER_H
#define VELO_NET_CARRIER_H

#include <pthread.h>

#include "../core/port.h"
#include "network.h"
#include "transport.h"

/** One transport of a port. */
struct carrier {
    struct carrier *next;
    struct velo_port *port;
    const struct velo_transport *transport;
    void *endpoint;
    uint32_t index;       /* Of the network's names. */
    uint32_t pending;     /* Something could not be sent yet. */
    uint32_t attended;    /* The attending thread works on it. */
    uint32_t held;        /* The transport holds frames back; see held_add(). */
    uint32_t held_is_due; /* If they are there when the thread looks next, it sends them. */
    bool is_closing;      /* Circuits that peers open are hung up. */
    pthread_mutex_t lock; /* Of the endpoint, its circuits, and the links. */
    struct velo_link *links;
};

/** The transports of a port. */
struct carriers {
    struct velo_port *port;
    struct carrier *first;
    uint64_t looks;      /* The program's looks at them so far... */
    uint64_t looks_seen; /* ...and when attend.c saw the count last. */
    uint32_t is_closing; /* The program looks, until they are closed. */
    struct carriers *next_attended;
};

/** Those of a port whose network they are (carriers.h). */
static inline struct carriers *carriers_of(const struct velo_port *port) { return port->net_own; }

/** The transport that reaches a peer by frames; NULL: shared memory does. */
struct carrier *carrier_to(const struct velo_port *port, velo_id_t peer);
/** With the carrier's lock held: something was sent, and more may follow. */
void carrier_sent(struct carrier *carrier);
/** The frames that were held back are about to leave: the attending thread need not come. */
void carrier_release(struct carrier *carrier);
/** Before a wait for the descriptors: send what is held back. False: there is something to do. */
bool carriers_arm(struct carriers *carriers);

#endif
