/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file carry.h
 * @brief What carries a ring's lines from its sender to its receiver.
 *
 * Natively nothing does: the sender writes the receiver's memory, and everything here is empty.
 * Built with VELO_DEVICE (transports/nic), a sender fills a ring of its own, the network's messages
 * take its lines along, and the receiver's library puts them into the ring that its receive side
 * reads. Names, connection tables and who lives stay where they are, in shared memory: the part of
 * a driver.
 */
#ifndef VELO_CORE_CARRY_H
#define VELO_CORE_CARRY_H

#include <stdlib.h>

#include "../base/error.h"
#include "../shm/wait.h"
#include "carrier.h"

#ifdef VELO_DEVICE

/** Can a process reach a peer's memory by itself? */
#define CARRY_SHARES_MEMORY 0
/** Does a look for messages have to ask the device? */
#define CARRY_POLLS 1

/** Where a process is placed: its node, in place of node 0, and which contexts it takes where it
 *  leaves that open: `first`, and every `step` from there on. */
void carry_place(int *node, uint32_t *first, uint32_t *step);
/** Have messages come in for a port whose segment is there. VELO_ERR_STATE, _FULL. */
int carry_open(struct velo_port *port);
void carry_close(struct velo_port *port);
/** Can a port be sent to already? Its segment is there before its context takes messages. */
bool carry_is_reachable(const struct segment *segment);
/** Give a connection that is set up a ring of its own to fill. VELO_ERR_NO_MEMORY. */
int carry_connect(struct velo_conn *conn);
/** Tell the receiver, after all that was sent, that the sender has left. False: not connected. */
bool carry_disconnect(struct velo_conn *conn);
/** Take in what has come for the process's ports; costs the time of one poll. True: for this one,
 *  too. Any thread. */
bool carry_in(struct velo_port *port);
/** Sleep while *word == expected and nothing has come, at most so long. True: a signal handler ran.
 */
bool carry_sleep(const uint32_t *word, uint32_t expected, int64_t timeout_ns);
/** Send the message that was just published. True: it was sent so. */
bool carry_out(struct velo_conn *conn);
/** Tell a ring's sender what was consumed. */
void carry_credit(struct velo_port *port, const struct ring_rx *rx);
/** May a sender whose process is gone be taken for dead, or may something still be on its way? */
bool carry_is_settled(const struct velo_port *port);

#else

#define CARRY_SHARES_MEMORY 1
#define CARRY_POLLS 0

static inline void carry_place(int *node, uint32_t *first, uint32_t *step)
{
    (void)node;
    *first = 0;
    *step = 1;
}
/* A program that was started on the simulated cluster must not run beside it unnoticed. */
static inline int carry_open(struct velo_port *port)
{
    (void)port;
    return getenv("VELO_SIM")
               ? velo_fail(VELO_ERR_STATE, "VELO_SIM names a simulated cluster, but this is the "
                                           "library of the real machine; see `velo sim`")
               : VELO_OK;
}
static inline void carry_close(struct velo_port *port) { (void)port; }
static inline bool carry_is_reachable(const struct segment *segment)
{
    (void)segment;
    return true;
}
static inline int carry_connect(struct velo_conn *conn)
{
    (void)conn;
    return VELO_OK;
}
static inline bool carry_disconnect(struct velo_conn *conn)
{
    (void)conn;
    return false;
}
hot_inline bool carry_in(struct velo_port *port)
{
    return unlikely(port->carriers) && carriers_progress(port);
}
static inline bool carry_sleep(const uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    return wait_sleep(word, expected, timeout_ns);
}
hot_inline bool carry_out(struct velo_conn *conn)
{
    (void)conn;
    return false;
}
static inline void carry_credit(struct velo_port *port, const struct ring_rx *rx)
{
    (void)port;
    (void)rx;
}
static inline bool carry_is_settled(const struct velo_port *port)
{
    (void)port;
    return true;
}

#endif

#endif
