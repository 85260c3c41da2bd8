/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file transport.h
 * @brief The seam between the library and a network. To add a transport, this file is enough.
 *
 * A **transport** carries messages between ports that share no memory. It is a plug-in, the shared
 * object `velo/libvelo-NAME.so` beside libvelo.so, with one symbol, `velo_transport`. The library
 * loads it when a port is opened whose map of nodes names it ($VELO_NETWORK, see network.h).
 *
 * The library (links.c) does what all transports have in common: places in the receiver's table,
 * rings, credits, back-pressure, order, sleeping. A transport opens **circuits**, each from one
 * port to one other, and carries **frames** over them, in both directions:
 *
 *     kind     word[0]              word[1]            payload                    from
 *     OPEN     -                    -                  struct velo_frame_open     sender
 *     ACCEPT   -                    -                  struct velo_frame_accept   receiver
 *     REFUSE   why: velo_status     -                  -                          receiver
 *     DATA     position of bytes    -                  bytes of a long message    sender
 *     SLOT     header of a slot     -                  at most 56 bytes           sender
 *     CREDIT   slots consumed       bytes consumed     -                          receiver
 *     LEAVE    position at the end  -                  -                          sender
 *     CLOSE    why: velo_status     -                  -                          receiver
 *
 * A transport keeps these promises; it is free in all else:
 *  - a frame arrives whole, once, and unchanged, or its circuit is lost;
 *  - of the sender's frames OPEN arrives first and LEAVE last; of the receiver's, ACCEPT first and
 *    CLOSE last; a SLOT arrives after the DATA that was sent before it. DATA may overtake DATA, and
 *    a SLOT another SLOT: positions say where they belong;
 *  - a circuit whose other end has died is lost, sooner or later.
 *
 * The library checks the content of frames. The transport vouches for the sender: see
 * `circuit_rang`.
 *
 * Threads: the library calls one function of an endpoint at a time, its circuits' included. A
 * transport needs no locks, and calls the library only from inside progress().
 *
 * `transports/loop` is an example. A transport with hardware of its own may offer a device in place
 * of frames.
 */
#ifndef VELO_NET_TRANSPORT_H
#define VELO_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <velo/velo.h>

#include "../core/exposed.h"

/** Raised with every incompatible change of this file, and of the structures that a device works on
 *  (core/net.h). */
#define VELO_TRANSPORT_VERSION 8u
/** The longest payload of a frame, unless a transport wants shorter ones. */
#define VELO_FRAME_BYTES_MAX 8192u
/** A transport takes payloads of at least this length: a slot holds as much. */
#define VELO_FRAME_BYTES_MIN VELO_INLINE_BYTES

/** How long frames are held back while a program computes, in ns, and how long at most if it looked
 *  at its ports until then. */
#define VELO_HOLD_NS 50000
#define VELO_HOLD_LONG_NS 1000000

enum velo_frame_kind {
    VELO_FRAME_OPEN = 1,
    VELO_FRAME_ACCEPT,
    VELO_FRAME_REFUSE,
    VELO_FRAME_DATA,
    VELO_FRAME_SLOT,
    VELO_FRAME_CREDIT,
    VELO_FRAME_LEAVE,
    VELO_FRAME_CLOSE,
};

struct velo_frame {
    uint32_t kind;          /**< enum velo_frame_kind. */
    uint32_t payload_bytes; /**< Length of the payload. */
    uint64_t word[2];
    const void *payload; /**< Valid during the call. */
};

/** Words that a frame of a kind carries. */
static inline uint32_t velo_frame_words(uint32_t kind)
{
    switch (kind) {
    case VELO_FRAME_CREDIT:
        return 2;
    case VELO_FRAME_REFUSE:
    case VELO_FRAME_DATA:
    case VELO_FRAME_SLOT:
    case VELO_FRAME_LEAVE:
    case VELO_FRAME_CLOSE:
        return 1;
    default:
        return 0;
    }
}

/** Payload of OPEN: the port that wants to send. */
struct velo_frame_open {
    uint64_t spec_hash;  /**< VELO_SPEC_HASH: both sides mean the same by a header. */
    uint32_t source;     /**< Port that sends. */
    uint32_t generation; /**< Its generation. */
    uint64_t order;      /**< See tx_order of struct seg_ring. */
};

/** Payload of ACCEPT: the ring that the sender fills. */
struct velo_frame_accept {
    uint32_t generation; /**< Of the receiver. */
    uint32_t depth_slots;
    uint32_t data_bytes;
    uint32_t reserved;
    uint64_t consumed;      /**< Position of the first slot. */
    uint64_t data_consumed; /**< And of the first byte of data. */
};

/** The library's end of a circuit; opaque. */
struct velo_link;
struct net_calls;

/** A port, as a transport is told of it. The strings live as long as the endpoint. */
struct velo_endpoint_attr {
    velo_id_t id;
    uint32_t generation;
    uint32_t node;      /**< The node that the map counts it as on. */
    const char *dir;    /**< Where the domain's segments lie. */
    const char *domain; /**< Its name. */
    bool is_shared;     /**< With the members of group `gid`; else with this user only. */
    uint32_t gid;
    void *owner; /**< For `circuit_rang`. */
};

/** What a port shows of itself in the domain's directory. */
struct velo_port_shown {
    uint32_t generation;
    uint32_t name_bytes;
    char name[VELO_PORT_NAME_BYTES_MAX];
};

/** Functions of the library that a transport calls. */
struct velo_transport_calls {
    /** A peer has opened a circuit to this port. The link's first frame has to be OPEN. NULL: no
     *  memory, hang up. The transport has made sure that the peer may reach this port at all. */
    struct velo_link *(*circuit_rang)(void *owner, void *circuit);
    /** A frame came. The link may hang its circuit up in this call. */
    void (*frame_came)(struct velo_link *link, const struct velo_frame *frame);
    /** There may be room on a circuit whose last send found none. The link sends in this call. */
    void (*room_came)(struct velo_link *link);
    /** The circuit is broken: VELO_ERR_PEER_DEAD, or a status that says more. Its link hangs it up.
     */
    void (*circuit_lost)(struct velo_link *link, int status);
    /** Keep a sentence for velo_last_error() and return the status. */
    int (*fail)(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
    /** Count what was refused, since no correct peer sends it; `velo info` shows the count. */
    void (*count_refused)(void *owner, uint64_t count);
    /** The machine that has the node of a port, as the map of nodes says ([hosts]), and the service
     *  number of that port there. NULL: the map does not say. */
    const char *(*host_of)(void *owner, velo_id_t id, uint32_t *service);
    /** The name that a peer's port has shown in the domain's directory: that of a port of this
     *  machine. VELO_ERR_NO_PEER, VELO_ERR_PEER_CLOSED, VELO_ERR_PEER_DEAD: there is none. */
    int (*find_name)(void *owner, velo_id_t peer, struct velo_port_shown *shown);
    /** The node that a port counts as on, as the map of nodes says. */
    uint32_t (*node_of)(void *owner, velo_id_t id);
};

/** A transport. All functions return VELO_OK or a status with a sentence (`fail`). */
struct velo_transport {
    uint32_t version;           /**< VELO_TRANSPORT_VERSION. */
    uint32_t payload_bytes_max; /**< VELO_FRAME_BYTES_MIN to VELO_FRAME_BYTES_MAX. */
    const char *name;           /**< As in its file's name. */
    /** What it means if a circuit that was dialed is lost with VELO_ERR_ACCESS, and what to do: a
     * part of a sentence, behind "port 0.1". NULL: that does not happen. */
    const char *no_access;
    /** It carries by a node's host port: on a simulated cluster, if $VELO_SIM names one. */
    bool uses_node;
    /** NULL: the transport carries frames. Else a **device**: hardware that moves messages itself,
     * as the core's network in place of memory (core/net.h); then nothing behind this is used. It
     *  works on the library's own structures. So it is built from the same source as the library
     *  that loads it, and needs that library as libvelo.so: it calls functions that libvelo.map
     *  lists under VELO_PRIVATE. `transports/nic` is one. */
    const struct net_calls *device;
    /** A port opens: let peers reach it. VELO_ERR_*, and the port does not open. */
    int (*open)(const struct velo_endpoint_attr *attr, const struct velo_transport_calls *calls,
                void **endpoint);
    /** The port closes. All of its circuits are hung up. */
    void (*close)(void *endpoint);
    /** Open a circuit to a peer, for a link. VELO_ERR_NO_PEER: it is not there; not (yet) open.
     * Does not wait for the peer. */
    int (*dial)(void *endpoint, velo_id_t peer, struct velo_link *link, void **circuit);
    /** Send a frame. VELO_AGAIN: there is no room now, and nothing of the frame was taken. Once
     *  there may be room the descriptor shows it, and progress() calls `room_came`: nobody looks
     *  again before. Other failures are reported by `circuit_lost`. */
    int (*send)(void *circuit, const struct velo_frame *frame);
    /** Nothing more is sent on a circuit, and all that comes is dropped. Frames that were sent
     * still arrive. */
    void (*hang_up)(void *circuit);
    /** Take in frames that have come: no more than some 32 of a circuit, so that other circuits
     * need not wait. True if there was anything. */
    bool (*progress)(void *endpoint);
    /** A descriptor that poll() shows readable as long as progress() has something to do; the same
     *  one as long as the endpoint lives. */
    int (*descriptor)(void *endpoint);

    /* The rest is for transports that need it; NULL: this one does not. */

    /** All that another machine needs to reach this port: velo_port_name(). */
    size_t (*own_name)(void *endpoint, char name[VELO_PORT_NAME_BYTES_MAX]);
    /** How a peer is reached: velo_peer_name(). */
    int (*learn)(void *endpoint, velo_id_t peer, const void *name, size_t len_bytes);
    /** The program has just sent, and may send more. True: frames are held back for now; the
     *  library calls progress(), which sends them, within VELO_HOLD_LONG_NS. */
    bool (*sent)(void *endpoint);
    /** The program, or the thread that looks after the port, is about to wait for the descriptor.
     *  Send all that is held back. False: there is something to do already. */
    bool (*arm)(void *endpoint);
    /** The process ends, maybe without closing its ports. Wait until peers have taken what was
     *  sent, but for a second at most. The program may go on to send. */
    void (*finish)(void *endpoint);

    /* All four or none. */

    /** Let the peer of a circuit fetch memory of this process. NULL: it cannot be done. */
    struct velo_exposed *(*expose)(void *circuit, const void *memory, size_t len_bytes);
    /** No longer. A fetch that is under way fails, and may take its connection along. */
    void (*conceal)(void *endpoint, struct velo_exposed *exposed);
    /** Fetch what the peer of a circuit has exposed. *outcome is VELO_AGAIN until progress() has
     * the status. VELO_OK: it has begun; else it is not possible. */
    int (*fetch)(void *circuit, void *to, size_t len_bytes, const struct velo_exposed *from,
                 int *outcome);
    /** Nothing is written to a fetch's memory, or outcome, any more. */
    void (*forget)(void *endpoint, const int *outcome);
};

#endif
