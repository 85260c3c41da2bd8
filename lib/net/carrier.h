/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file carrier.h
 * @brief A port's transports: to load and open them, to take in what has come, to wait for them.
 *
 * A port that shares memory with all of its peers has no carriers: its `carriers` is NULL. Each
 * endpoint has a lock of its own: the receiving thread and those that send may all look for frames
 * that have come. A port with a device (device.h) has one carrier, without an endpoint.
 */
#ifndef VELO_NET_CARRIER_H
#define VELO_NET_CARRIER_H

#include <pthread.h>

#include "device.h"
#include "../core/port.h"
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
    uint32_t held;        /* The transport holds frames back; see attend_soon(). */
    uint32_t late;        /* If they are there when the thread looks next, it sends them. */
    bool is_closing;      /* Lines that peers open are hung up. */
    pthread_mutex_t lock; /* Of the endpoint, its lines, and the links. */
    struct velo_link *links;
};

/** Find out whether a transport that a port's map names has a device, before the port has a
 * segment. VELO_ERR_ARG: there is no such transport, or the map does not use a device for all
 * peers; VELO_ERR_VERSION; VELO_ERR_STATE: a device, but this library is linked into the program.
 */
int carriers_find_device(struct velo_port *port);
/** Open a port, which has its segment, to all transports that its map names, or to its device. The
 *  transport's status; as above; VELO_ERR_STATE: the process was started on a simulated cluster,
 *  and its map does not lead there. */
int carriers_open(struct velo_port *port);
/** Wait a while until all that was sent has left, then close them. A device works until it is
 *  closed. */
void carriers_close(struct velo_port *port);
/** The transport that reaches a peer by frames; NULL: shared memory does, or the port's device. */
struct carrier *carrier_to(const struct velo_port *port, velo_id_t peer);
/** Take in what has come, and send what could not be sent before. True: something came. Any thread.
 */
bool carriers_progress(struct velo_port *port);
/** The same, by the thread that looks after ports; see attend.h. */
void carriers_attend(struct velo_port *port);
/** The same for transports that have held frames back for long. True: there was one. */
bool carriers_attend_held(struct velo_port *port);
/** With the carrier's lock held: something was sent, and more may follow. */
void carrier_sent(struct carrier *carrier);
/** Before a wait for the descriptors: send what is held back. False: there is something to do. */
bool carriers_arm(struct velo_port *port);
/** The process ends: what was sent is to arrive. */
void carriers_send_last(struct velo_port *port);
/** Sleep until something may have come, or seg_wake_owner() wakes the port. True: a signal handler
 *  ran. */
bool carriers_sleep(struct velo_port *port, int64_t timeout_ns);
/** The same for a thread that waits for room: nothing wakes it, so it looks again soon. */
bool carriers_nap(struct velo_port *port);

/** carriers_progress(), if the port has carriers. */
hot_inline bool carriers_look(struct velo_port *port)
{
    return unlikely(port->carriers) && carriers_progress(port);
}

#endif
