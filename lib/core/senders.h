/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file senders.h
 * @brief The senders of a port: those that are connected, that are polled, and that must ring.
 *
 * A poll looks at the active rings: rings that are always polled, and rings whose sender rang and
 * which are not empty yet. All others are parked: their senders set a doorbell bit after each
 * message, and one summary word tells whether any bit is set. So the cost of a poll depends on the
 * number of busy senders, not on that of connected ones. To sleep, a receiver parks all rings.
 *
 * All calls are the receiving thread's.
 */
#ifndef VELO_CORE_SENDERS_H
#define VELO_CORE_SENDERS_H

#include "port.h"

/** Set up the receive side. */
int rx_open(struct velo_port *port);
/** Wake the senders that wait for room, and free the receive side. */
void rx_close(struct velo_port *port);
/** Take the doorbell bits: admit new senders, activate rings, let go of senders that left. */
void rx_take_bells(struct velo_port *port);
/** The draining ring under the cursor is empty: poll it from now on, let it ring again, or let go.
 */
void rx_settle(struct velo_port *port, struct ring_rx *rx);
/** Ask the senders of polled rings to ring again: all of them, or those that have been silent while
 *  others sent. The rings stay active, so that messages from before are still found. */
void rx_park(struct velo_port *port, bool all);
/** Take nothing more from an active ring until rx_resume(). */
void rx_defer(struct velo_port *port, struct ring_rx *rx);
/** Look at deferred rings again. */
void rx_resume(struct velo_port *port);
/** Let go of the first ring in the list of departures, which has been told. */
void rx_forget_departed(struct velo_port *port);
/** Never read this ring again: no correct sender writes such slots. */
void rx_refuse(struct velo_port *port, struct ring_rx *rx);
/** May the last messages of a generation of a port that has left, as `departure` says, still be on
 *  their way over a network? A port that is closed ends its rings behind them; not all transports
 *  can tell of a dead one's. */
VELO_PRIVATE bool rx_may_be_late(const struct velo_port *port, velo_id_t source,
                                 uint32_t generation, int departure);
/** Refuse all that this sender writes: the layer above cannot answer it. */
void rx_refuse_from(struct velo_port *port, velo_id_t source, uint32_t generation);
/** Look for senders that died without a word. A system call for each connection. */
void rx_reap(struct velo_port *port);

#endif
