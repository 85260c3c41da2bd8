/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file port.h
 * @brief A port and a connection, as this process keeps them.
 */
#ifndef VELO_CORE_PORT_H
#define VELO_CORE_PORT_H

#include <pthread.h>

#include "../shm/doorbell.h"
#include "guard.h"
#include "inside.h"
#include "net.h"
#include "ring.h"

/** The most rings that the receiver looks at on every poll; each costs about a nanosecond. More
 *  senders than that take turns, or ring. */
#define POLLED_MAX 8
/** Lines that are taken from one ring before a look at the others and at the doorbells. */
#define RX_BURST 32

struct velo_port {
    /* The members that a poll needs come first. */
    struct ring_rx
        *current; /* The ring under the cursor; `none` if there is none, or while held. */
    struct seg_header *shared;
    /* Not 0 if there is more to look at than the active rings: the summary of the doorbells, or for
     * a port with a network a word that always says so. */
    const uint32_t *look;
    uint64_t messages; /* Received so far; also the clock by which rings grow stale. */
    uint64_t bytes;    /* Payload of those. */
    uint32_t active_count;
    uint32_t cursor;         /* The active ring to look at next. */
    struct ring_rx **active; /* Rings to look at: draining or polled. */

    struct ring_rx none;         /* Never has a message. */
    struct ring_rx *held;        /* By velo_try_peek(). */
    struct ring_message message; /* The last one found off the fast path. */
    uint64_t messages_before;    /* `messages` when none was there last; see linger(), peek(). */
    int32_t singles;             /* Waits in a row that brought one message each. */
    bool lingering;
    bool has_net; /* `net` is another than `no_net`. */
    uint32_t polled_count;
    uint32_t deferred_count;
    uint32_t behind_count;
    uint32_t waits;            /* Waits that began with no spin budget. */
    uint32_t interrupted;      /* The wait has to end. */
    uint32_t unit_interrupted; /* That of the unit beside the port has to. */
    uint32_t *interrupt;       /* Which of the two, and of which port, is for this one's waits. */
    uint64_t unit_word;        /* Address of the word on which the unit sleeps; 0: there is none. */
    uint64_t unit_generation;  /* Of its doorbell. */
    bool tells_departures;     /* VELO_PORT_DEPARTURES. */
    struct ring_rx *departed;  /* Rings whose end is still to be told, the earliest first. */
    bool has_users;            /* velo_source_set_user() was called. */
    bool promote;              /* Poll busy rings, rather than let them ring each time. */
    int64_t spin_ns;
    int64_t spin_max_ns;
    int64_t reaped_ns;

    int64_t linger_ns; /* The longest wait of calls that close. */

    struct seg_shape shape;
    struct ring_rx *rings; /* By entry index. */
    struct segment *segment;
    struct seg_domain domain;
    velo_id_t id;
    uint32_t flags;   /* Of the segment. */
    uint64_t process; /* The mark of the process that opened it; see ../base/fork.h. */
    bool fenced;      /* This process cannot take part in barriers: its senders fence. */
    bool by_line;     /* Its senders begin a line with each message. */

    uint32_t in_use; /* By a call that receives; see guard.h. */

    const struct net_plug *plug;
    struct network *network;     /* The map of nodes: lib/net/network.h. */
    const struct net_calls *net; /* Never NULL. */
    void *net_own;               /* Of these calls. */
    struct doorbell doorbell;    /* Rung while the port sleeps on descriptors. */
    int epoll_fd;                /* See velo_port_fd(); -1: not asked for. */

    pthread_mutex_t conns_lock;
    struct velo_conn *conns;
    uint64_t orders;                  /* Connections made by port_connect_in_order(). */
    struct velo_port_counters closed; /* The counts of connections that are gone. */
};

/** Step behind a message that lies in its line, or in the data region, and count it. */
hot_inline void port_step(struct velo_port *port, struct ring_rx *rx, uint32_t cells,
                          uint32_t len_bytes)
{
    ring_rx_step(rx, cells);
    order_show(&port->messages, port->messages + 1);
    order_show(&port->bytes, port->bytes + len_bytes);
}

/** As velo_port_open(), with a network that is plugged in. */
int port_open_plugged(const struct velo_port_attr *attr, const struct net_plug *plug,
                      struct velo_port **out);
/** Open a port for the library's own use beside a port: of the same id, in the domain named
 *  "<domain><suffix>", where no user's port can be. Its segment may have a tail. */
int port_open_beside(const struct velo_port *port, const char *suffix, uint32_t conns_max,
                     struct velo_port **out);

/** velo_port_interrupt() of a port ends a wait of the one beside it, too, until that closes. */
void port_interrupts_unit(struct velo_port *port, struct velo_port *unit);
void port_has_no_unit(struct velo_port *port);

/** As velo_connect(), for the library's own use: to a peer that is there, whose table may be full
 * of senders that have died. It has half a second to find them. */
int port_connect_present(struct velo_port *port, velo_id_t peer, struct velo_conn **conn);

/** As velo_connect(). If a port makes several such connections to one peer, one after the other,
 * the peer reads all messages of an earlier one before those of a later one. */
int port_connect_in_order(struct velo_port *port, velo_id_t peer, struct velo_conn **conn,
                          int64_t timeout_ns);
/** A message's word is in its slot; see send.h. */
#define CONN_WORD_APART 0x80u
/** The word in the slot of the held message. False: it has none. */
bool port_held_word(const struct velo_port *port, uint64_t *word);

/** Give a port that is being opened a network. */
static inline void port_set_net(struct velo_port *port, const struct net_calls *net)
{
    port->net = net;
    port->has_net = true;
}

/** Take in what has come over the port's network, which it has. True: something came. Out of line,
 *  so that callers only look at port->has_net. */
bool port_net_progress(struct velo_port *port);

/** The same, if it has one. */
hot_inline bool port_look_at_net(struct velo_port *port)
{
    return unlikely(port->has_net) && port_net_progress(port);
}

/** Enter the network for a call of it; see inside.h, which is not for one in place of memory.
 * False: the thread is inside already, and this is a signal handler. */
static inline bool port_enter_net(const struct velo_port *port)
{
    return port->net->carries_all || inside_enter();
}

static inline void port_leave_net(const struct velo_port *port)
{
    if (!port->net->carries_all)
        inside_leave();
}

/** Is a peer reached over a network beside memory? */
static inline bool port_net_reaches(const struct velo_port *port, velo_id_t peer)
{
    return unlikely(port->has_net) && port->net->reaches(port, peer);
}

struct velo_conn {
    struct ring_tx tx;
    const uint32_t *bell; /* Of the ring; see order_read_bell(). */
    struct seg_header *header;
    uint32_t index;
    bool fenced;              /* Fence between publish and doorbell: one side has no membarrier. */
    bool reserved;            /* A reservation is open; tx.limit is 0 meanwhile. */
    uint32_t interrupted;     /* The wait for room has to end. */
    int gone;                 /* The reason why nothing can be sent any more; tx.limit is 0 then. */
    uint32_t again;           /* VELO_AGAIN in a row. */
    uint64_t received_before; /* The port's message count at the last reservation. */
    size_t reserved_bytes;
    uint64_t reserved_at;
    uint64_t reserved_limit;
    uint64_t built[VELO_INLINE_BYTES / sizeof(uint64_t)]; /* A reserved short message. */
    void (*carry)(struct velo_conn *conn); /* Sends published slots; NULL: the peer reads them. */
    bool stands_in;                        /* `segment` stands in for that of a remote peer. */
    union {                                /* The network's own, if there is `carry`: */
        void *net_own;                     /* beside memory, its end of the connection; */
        uint64_t net_name;                 /* in place of memory, its name for the receiver. */
    };
    uint64_t order;    /* See tx_order of seg_ring. */
    uint32_t in_use;   /* By a call that sends; see guard.h. */
    int64_t looked_ns; /* The time of the last look whether the receiver lives. */
    struct segment *segment;
    struct velo_port *port;
    struct velo_conn *next;
    struct put_off put_off; /* What a handler has sent; see inside.h. */
};

/** Is it known that the peer has left? A look at memory alone: it finds no death that nobody has
 *  found. */
static inline bool conn_has_lost_peer(const struct velo_conn *conn)
{
    return conn->gone || order_read_entry(&conn->header->state) != SEG_OPEN;
}

#endif
