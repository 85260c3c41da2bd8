/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file device.h
 * @brief A device: a transport with hardware to send with offers it in place of frames.
 *
 * Over frames (transport.h) the library does what all transports have in common. With a device it
 * does only the two ends. A sender fills a ring in memory of its own; the device takes each
 * published slot to the receiver's process, and puts it into the ring that the receive side reads.
 * The device may also carry out RMA operations: an operation that would need the owner's library is
 * offered to the device first.
 *
 * Names, connection tables and the locks that tell who lives stay in shared memory, as between
 * peers that share it: hardware knows nothing of them. A port whose map names a device uses it for
 * all of its peers.
 *
 * A device's functions work on the library's own structures (port.h, rma/unit.h). So a plug-in with
 * a device is built from the same source as the library that loads it, and needs that library as
 * libvelo.so: it calls functions that libvelo.map lists under VELO_PRIVATE. `transports/nic` is
 * one.
 *
 * Threads: as the public calls that lead here, unless a function says otherwise.
 */
#ifndef VELO_NET_DEVICE_H
#define VELO_NET_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <velo/rma.h>
#include <velo/velo.h>

struct op;
struct ring_rx;

/** As status of velo_device_rma.begin: the device carries the operation out. */
#define OFFLOADED 2

/** The part for RMA. If the device refuses an operation, the owner is asked after all, so that the
 * owner gives the reason. */
struct velo_device_rma {
    /** Can the device do anything for a unit? */
    bool (*is_possible)(struct velo_rma *rma);
    /** Begin an operation, the first that waits. OFFLOADED, VELO_AGAIN, MUST_ASK, or the reason why
     * nothing is possible with the peer any more. When it ends, call rma_ask_offloaded(). */
    int (*begin)(struct velo_rma_peer *peer, struct op *op);
    /** Go on with operations that are half posted, and end those that are done. Returns the number
     *  of operations that ended. */
    int (*progress)(struct velo_rma *rma);
    /** Have all operations on a peer end now, with this status. */
    void (*fail)(struct velo_rma_peer *peer, int status);
    /** The next message, as velo_try_peek() or, with a limit, velo_peek(); VELO_AGAIN: nothing came
     *  in time, or the device has done something. */
    int (*peek)(struct velo_rma *rma, struct velo_msg *msg, int64_t timeout_ns);
    /** Before a key is published: let the device reach the memory, if it can. */
    void (*enter)(struct velo_rma_mem *mem);
    /** After the key was taken back: on return the device reaches the memory no more. */
    void (*withdraw)(struct velo_rma_mem *mem);
    /** The unit closes. */
    void (*close)(struct velo_rma *rma);
};

struct velo_device {
    /* ---- ports ---- */

    /** The place of this process: its node, which replaces node 0, and the contexts that it takes
     * where it names none: `first`, and every `step` from there on. */
    void (*place)(int *node, uint32_t *first, uint32_t *step);
    /** Let messages come in for a port, which has its segment, and set the segment's `device`: from
     * then on peers connect. VELO_ERR_STATE, VELO_ERR_FULL, VELO_ERR_NO_MEMORY. */
    int (*open)(struct velo_port *port);
    /** Take in nothing more for a port. Its segment has no name any more. */
    void (*close)(struct velo_port *port);
    /** Take in what has come for the process's ports; costs the time of one poll. True: something
     * came for this port. Any thread. */
    bool (*poll)(struct velo_port *port);
    /** Sleep while *word == expected and nothing has come, at most that long; the word may change
     *  without a message. True: a signal handler ran. */
    bool (*wait)(struct velo_port *port, const uint32_t *word, uint32_t expected,
                 int64_t timeout_ns);
    /** May a sender whose process is gone be taken for dead, or may something still be on its way?
     */
    bool (*is_settled)(const struct velo_port *port);

    /* ---- connections ---- */

    /** Give a connection, which is set up, a ring of its own to fill. VELO_ERR_NO_MEMORY. */
    int (*connect)(struct velo_conn *conn);
    /** Tell the receiver, after all that was sent, that the sender has left. */
    void (*disconnect)(struct velo_conn *conn);
    /** Send the message that was just published. */
    void (*send)(struct velo_conn *conn);
    /** Send a ring's credits to its sender. */
    void (*credit)(struct velo_port *port, const struct ring_rx *rx);

    /* ---- remote memory ---- */

    const struct velo_device_rma *rma;
};

#endif
