/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file remote.h
 * @brief Remote memory at the node: a port's notification queue.
 *
 * The node notifies a context of two kinds of things. The outcomes of the context's own descriptors
 * are kept for the unit that posted them (offload.c). An operation of a peer that has read or
 * written memory here opens a gate: the peer has also sent a slot of its connection that waits for
 * this notification (wire.h, GATED) and says what the operation was. Either of the two may come
 * first.
 */
#ifndef VELO_NIC_REMOTE_H
#define VELO_NIC_REMOTE_H

#include "nic.h"

/** The most descriptors of a unit that are under way: fewer than the node's own queue holds. */
#define REMOTE_DESCRIPTORS_MAX 64u

/** The outcome of a descriptor. */
struct remote_outcome {
    uint8_t cookie;
    uint8_t error; /* enum velo_error of the spec. */
};

/** Open the notification queue; it is no error if it is open. VELO_ERR_NO_MEMORY, VELO_ERR_STATE.
 */
int remote_open(struct device_port *device);
void remote_close(struct device_port *device);

/** Take the next outcome. Any thread. */
bool remote_take_outcome(struct device_port *device, struct remote_outcome *outcome);
bool remote_has_outcome(const struct device_port *device);

/* ---- for in.c, with the lock held --------------------------------------------------------- */

/** Take in the node's notifications. */
void remote_drain(struct device_port *device);
/** A slot came that waits for a gate. False: too many wait. */
bool remote_gated(struct device_port *device, uint64_t word, uint8_t gate, uint32_t sender);
/** A slot came that waits for nothing; it may have waited before. */
void remote_slot_came(struct device_port *device, uint64_t word, uint32_t sender);

#endif
