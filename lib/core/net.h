/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file net.h
 * @brief The network of a port, as the core sees it: one table, which lib/net plugs in.
 *
 * The core moves messages through memory and knows no network. A port that does not share memory
 * with all of its peers has a network: a table of functions, `port->net`, which the core calls on
 * its slow paths alone. A port without one has the table `no_net`, which does nothing; paths that
 * are hot look at `port->has_net`. There are two kinds of networks:
 *
 *  - One stands **beside** memory (lib/net/carriers.c): it makes the connections for which
 *    `reaches` holds, by a segment of its own that stands in for the receiver's. All others are
 *    made in memory.
 *  - One stands **in place of** memory (transports/nic): `carries_all`. Each connection has its
 *    entry in the receiver's segment, but the sender fills a ring of its own, which the network
 *    takes to the receiver's process. Names, tables and the locks that tell who lives stay in
 *    shared memory.
 *
 * Threads: as the public calls that lead here, unless a function says otherwise.
 */
#ifndef VELO_CORE_NET_H
#define VELO_CORE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <velo/velo.h>

#include "../shm/segment.h"
#include "exposed.h"

struct network;
struct ring_rx;
struct rma_offload;

/** What gives a port its network; velo_port_open() has one. */
struct net_plug {
    /** Set the port's map of nodes, and its network if it needs one, before it has a segment. A
     * port that is opened beside another gets the map of that one (`beside`); else NULL. */
    int (*attach)(struct velo_port *port, const struct velo_port *beside);
    /** Free the port's map. Also after attach() has failed. */
    void (*detach)(struct velo_port *port);
};

/** As timeout_ns of `connect`: do not wait, not even for the answer of a peer that was asked. The
 *  next call for the same peer goes on with that. VELO_TIMEOUT: there is no answer yet. */
#define NET_TRY INT64_MIN

struct net_calls {
    /** In place of memory. Senders fence and begin a line with each message. Threads do not spin,
     *  since nothing comes while they look at memory alone. */
    bool carries_all;
    /** How a receiver that is in sleep() is woken. */
    enum seg_sleep sleeps;

    /* ---- ports ---- */

    /** The place of this process: its node, which replaces node 0, and the contexts that it takes
     *  where it names none: `first`, and every `step` from there on. Else they stay as they are. */
    void (*place)(int *node, uint32_t *first, uint32_t *step);
    /** The port has its segment: let peers reach it. If this fails, nothing of it is left. */
    int (*open)(struct velo_port *port);
    /** The port closes, and no call uses it any more: see that what was sent leaves. */
    void (*leave)(struct velo_port *port);
    /** Its segment has no name any more: take in nothing more. */
    void (*close)(struct velo_port *port);

    /* ---- receiving ---- */

    /** Take in what has come, and send what could not be sent before. True: something came. Any
     *  thread. */
    bool (*progress)(struct velo_port *port);
    /** A ring that always has messages has come to its pause; its credits may just be published. */
    void (*ring_paused)(struct velo_port *port, const struct ring_rx *rx);
    /** Sleep until something may have come, or the port is woken. True: a signal handler ran. */
    bool (*sleep)(struct velo_port *port, int64_t timeout_ns);
    /** May a sender whose process is gone be taken for dead, or may something still be on its way?
     */
    bool (*is_settled)(const struct velo_port *port);
    /** Add the descriptors that show that something has come to an epoll. VELO_ERR_SYSTEM;
     *  VELO_ERR_STATE: there are none. */
    int (*add_descriptors)(const struct velo_port *port, int epoll_fd);
    /** The program is about to wait for them. False: there is something to do already. */
    bool (*arm)(struct velo_port *port);

    /** Does the network connect to this peer, and not memory? */
    bool (*reaches)(const struct velo_port *port, velo_id_t peer);

    /* ---- connections; those behind `connect` only if it is beside memory ---- */

    /** Sleep until a connection that it carries has room: *credits is not `seen` any more, or that
     *  may be so. True: a signal handler ran. */
    bool (*sleep_for_room)(struct velo_conn *conn, const uint32_t *credits, uint32_t seen,
                           int64_t timeout_ns);
    /** Tell the receiver, after all that was sent, that the sender has left. */
    void (*disconnect)(struct velo_conn *conn);

    /** Connect to a peer that it reaches; as velo_connect(). */
    int (*connect)(struct velo_conn *conn, velo_id_t peer, int64_t timeout_ns);
    /** Take in what has come for a connection by now, such as the end of its peer. */
    void (*look)(struct velo_conn *conn);
    /** Memory that the peer of such a connection fetches; as the calls of a transport. NULL: it
     *  cannot be done. */
    struct velo_exposed *(*expose)(struct velo_conn *conn, const void *memory, size_t len_bytes);
    void (*conceal)(struct velo_port *port, velo_id_t peer, struct velo_exposed *exposed);
    int (*fetch)(struct velo_conn *conn, void *to, size_t len_bytes,
                 const struct velo_exposed *from, int *outcome);
    void (*forget)(struct velo_port *port, velo_id_t peer, const int *outcome);

    /* ---- only if it is in place of memory ---- */

    /** Does a peer's network take messages for it? Its segment exists before. */
    bool (*takes_messages)(const struct seg_header *peer);
    /** A connection is set up, and has a ring of its own: set its `carry`. */
    int (*join)(struct velo_conn *conn);
    /** What carries out operations on remote memory: rma/offload.h. */
    const struct rma_offload *offload;
};

#endif
