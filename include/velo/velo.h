/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file velo.h
 * @brief Messages: ports, connections, send and receive.
 * @example ping_pong.c
 *
 * A **port** is one communication context, named by a domain, a node id and a context id (vpid); it
 * owns one receive queue. A **connection** is the right to send to one remote port. A message has a
 * length of 0 to velo_conn_max_bytes() bytes, an 8-bit tag and the id of the port that sent it.
 *
 * Promises (they hold for every engine):
 *  - lossless and exactly once: a full receiver pushes back, nothing is ever discarded;
 *  - in order for each connection;
 *  - a sender that is stopped or killed between any two instructions loses at most its own
 *    unfinished message and delays nobody;
 *  - a receiver that closes or dies gives its senders an error, never a hang; messages that it has
 *    not taken by then are lost, although the sends succeeded (see velo_try_send());
 *  - a receiver checks all that it reads from a peer before it uses it.
 *
 * Threads: any number of threads may use different ports and connections at the same time. Only one
 * thread at a time receives from a port; only one thread at a time sends on a connection. Threads
 * that send to the same target open one connection each; that costs no lock and no shared line
 * between them. Debug builds end the process with a sentence when two threads use one object at
 * once.
 *
 * Processes: a port and its connections belong to the process that opened them, and so do units of
 * remote memory, queues and rings. After fork() the child must not use them; it opens its own, also
 * while the parent's other threads are inside calls. A call that closes one there does nothing, and
 * says VELO_OK; calls that open, connect or wait for a descriptor on one say VELO_ERR_STATE, and
 * over a network those that send and receive, too. The child may end without closing anything: the
 * parent's ports live on. A child that only calls one of the exec functions keeps nothing, since
 * all descriptors are closed then.
 *
 * Cancellation: no call of velo.h, rma.h, mq.h and bcast.h is a cancellation point. A thread that
 * pthread_cancel() has named goes on until its next point outside the library; a wait without limit
 * is ended first, by velo_port_interrupt() or velo_conn_interrupt(), or, of bcast.h, by
 * velo_bcast_interrupt() or velo_bcast_reader_interrupt(). Threads with asynchronous cancellation
 * must not call the library.
 *
 * Signals: a handler may call these four, velo_port_id(), velo_port_generation(), velo_strerror()
 * and velo_version() at any time. It may send and receive on a port that only handlers use and that
 * no network reaches. It must not open, connect or close. Both allocate memory, which the code that
 * it interrupts may be doing. Where that is a call of the library, no lock is in the way: a
 * handler's connect works, what it sends over a network leaves before that call returns, its waits
 * there end with VELO_ERR_INTERRUPTED, and open, connect and close say VELO_ERR_STATE. A wait that
 * sleeps ends with VELO_ERR_INTERRUPTED when a signal handler has run in its thread, with or
 * without SA_RESTART. The wait does not notice a handler that runs just before the sleep: if that
 * matters, the handler calls the one of the four that ends it. A handler must not use a connection
 * or a port that the code it interrupts may be using.
 *
 * Waiting: a call named velo_try_x never waits; a call that may wait takes a timeout in ns as its
 * last argument. 0 tries once, VELO_FOREVER waits without a limit; once the time has run out, the
 * call ends with VELO_TIMEOUT, and nothing has happened. Calls that wait for a peer to open tell
 * more: VELO_ERR_NO_PEER if nobody was there, VELO_TIMEOUT if somebody may be and did not answer.
 *
 * Lengths of memory in bytes are size_t. Counters, and offsets into another process's memory, are
 * uint64_t: they may be larger than a length of ours. Numbers of things that have a small limit are
 * uint32_t, or int where the call returns such a number.
 *
 * Every function returns VELO_OK (0) or a negative enum velo_status; calls that count something
 * return the number instead of VELO_OK. VELO_AGAIN and VELO_TIMEOUT are outcomes, not failures.
 * After a failure on a cold path velo_last_error() holds a sentence that says what happened and
 * what to do.
 */
#ifndef VELO_VELO_H
#define VELO_VELO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <velo/spec.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The release of these headers; velo_version() gives the library's. Within one major version,
 *  programs that were built with an older release run with a newer one. */
#define VELO_VERSION_MAJOR 1
#define VELO_VERSION_MINOR 0
#define VELO_VERSION_PATCH 0
#define VELO_VERSION_TEXT "1.0.0-rc1"

#define VELO_API __attribute__((visibility("default")))

/** The result of a call. Values are part of the ABI. */
enum velo_status {
    VELO_OK = 0,                /**< Done. */
    VELO_AGAIN = -1,            /**< Nothing to receive, or no room to send, right now. */
    VELO_TIMEOUT = -2,          /**< The time given ran out first. */
    VELO_ERR_ARG = -3,          /**< An argument is outside its documented range. */
    VELO_ERR_STATE = -4,        /**< The call does not fit what was called before. */
    VELO_ERR_TOO_BIG = -5,      /**< The message is longer than the ring or the buffer takes. */
    VELO_ERR_NO_PEER = -6,      /**< Nobody is there: no port of that id is open in the domain. */
    VELO_ERR_PEER_CLOSED = -7,  /**< The peer closed its port. */
    VELO_ERR_PEER_DEAD = -8,    /**< The peer's process ended without closing its port. */
    VELO_ERR_IN_USE = -9,       /**< A live process has that port open already. */
    VELO_ERR_FULL = -10,        /**< The peer's connection table, or the id space, is full. */
    VELO_ERR_ACCESS = -11,      /**< Not ours to open, or not registered for this use. */
    VELO_ERR_NO_SPACE = -12,    /**< The shared-memory file system is full. */
    VELO_ERR_NO_MEMORY = -13,   /**< The process is out of memory or of mappings. */
    VELO_ERR_VERSION = -14,     /**< The peer was built with another segment layout. */
    VELO_ERR_CORRUPT = -15,     /**< Shared memory holds what no correct peer writes. */
    VELO_ERR_SYSTEM = -16,      /**< A system call failed; velo_last_error() names it. */
    VELO_ERR_INTERRUPTED = -17, /**< A signal handler ran, or velo_port_interrupt(), in a wait. */
    VELO_ERR_CANCELLED = -18,   /**< The request was cancelled. */
    VELO_ERR_MISSED = -19, /**< A reader was too slow: messages were overwritten; see bcast.h. */
};

/** Id of a port: node in the upper bits, vpid in the lower; see VELO_ID(). */
typedef uint32_t velo_id_t;

/** The id of context @p vpid on node @p node. */
#define VELO_ID(node, vpid)                                                                        \
    ((velo_id_t)(((uint32_t)(node) << VELO_ADDRESS_VPID_BITS) | (uint32_t)(vpid)))
/** The node part of an id. */
#define VELO_ID_NODE(id) ((uint32_t)(id) >> VELO_ADDRESS_VPID_BITS)
/** The context part of an id. */
#define VELO_ID_VPID(id) ((uint32_t)(id) & ((1u << VELO_ADDRESS_VPID_BITS) - 1u))

#define VELO_VPID_ANY (-1)    /**< Take the lowest free context of the node. */
#define VELO_FOREVER (-1)     /**< As timeout_ns: wait without a limit. */
#define VELO_INLINE_BYTES 56u /**< Payload that travels in the same line as its header. */
#define VELO_CONNS_MAX 4096u  /**< Most senders one port can take. */
/** Most characters of a domain's name. */
#define VELO_DOMAIN_NAME_MAX 64u
/** Most bytes of a name from velo_port_name(). */
#define VELO_PORT_NAME_BYTES_MAX 512u

/** One open port; opaque. */
struct velo_port;
/** One open connection; opaque. */
struct velo_conn;

/**
 * How a port is to be opened. Start from VELO_PORT_ATTR_INIT and change what you need; a zero in a
 * size means its default.
 */
struct velo_port_attr {
    /** sizeof(struct velo_port_attr): a later release may add members. */
    size_t size_bytes;
    /** Name of the domain: 1 to VELO_DOMAIN_NAME_MAX of [A-Za-z0-9_-]. NULL: $VELO_DOMAIN, else
     * "u<uid>". */
    const char *domain;
    /** Node id, 0 to 255. */
    int node;
    /** Context id, 0 to 255, or VELO_VPID_ANY. */
    int vpid;
    /** Slots in each sender's ring: a power of two, 8 to 16384. Default 256. A slot is a line of 64
     *  bytes: it takes one message, or, natively, up to four of at most 8 bytes each. */
    uint32_t depth_slots;
    /** Bytes for long messages in each sender's ring: a power of two, 16 KiB to 16 MiB. Default 64
     * KiB. */
    size_t data_bytes;
    /** Senders that may be connected at once: 1 to VELO_CONNS_MAX. Default 1024. */
    uint32_t conns_max;
    /** Name of the group whose members may connect too. NULL: this user only. */
    const char *group;
    /** Of enum velo_port_flag, or-ed. */
    uint32_t flags;
    /** Longest time, in ns, that closing waits for peers that live and stand still:
     *  velo_port_close() for messages to leave over a network, velo_rma_close() for operations that
     *  touch the unit's memory. 0: half a second. VELO_FOREVER: without limit. */
    int64_t linger_ns;
};

/** Flags of a port. */
enum velo_port_flag {
    /**
     * Receiving tells of senders that are gone. Behind the last message of a connection the calls
     * that receive return, once, why there will be no more, with `source` and `generation` in the
     * message and nothing else: VELO_ERR_PEER_CLOSED (it disconnected, or closed its port),
     * VELO_ERR_PEER_DEAD (its process ended; noticed by a receiver that sleeps, at most a second
     * later, or when the table is full), VELO_ERR_CORRUPT (its ring was damaged, and is not read
     * again). There is nothing to release after it. The sender's place in the table is taken until
     * then.
     */
    VELO_PORT_DEPARTURES = 1,
};

/** Attributes that ask for the defaults and any free context of node 0. */
#define VELO_PORT_ATTR_INIT                                                                        \
    {sizeof(struct velo_port_attr), NULL, 0, VELO_VPID_ANY, 0, 0, 0, NULL, 0, 0}

/** A message as it was received. Of one that velo_send_many() sends, data, len_bytes and tag count.
 */
struct velo_msg {
    const void *data;    /**< Payload. In place: valid until velo_release(). */
    size_t len_bytes;    /**< Payload length. */
    velo_id_t source;    /**< Port that sent it; taken from the connection, not from the message. */
    uint32_t generation; /**< Generation of that port: see velo_port_generation(). */
    void *user;          /**< What velo_source_set_user() set for that port; NULL: nothing yet. */
    uint8_t tag;         /**< The sender's tag. */
    uint64_t reserved;   /**< Room for members of later releases. Not written; needs no value. */
};

/** Counts of a port since it was opened. */
struct velo_port_counters {
    uint64_t rx_msgs;      /**< Messages received (released). */
    uint64_t rx_bytes;     /**< Payload bytes of those. */
    uint64_t rx_doorbells; /**< Times a sender had to point this receiver to its ring. */
    uint64_t rx_sleeps;    /**< Times the receiver slept. */
    uint64_t rx_errors;    /**< Slots refused because no correct sender writes them. */
    uint64_t rx_conns;     /**< Senders connected now. */
    uint64_t rx_reclaimed; /**< Connections of dead senders taken back. */
    uint64_t tx_msgs;      /**< Messages sent on open connections. */
    uint64_t tx_bytes;     /**< Payload bytes of those. */
    uint64_t tx_again;     /**< Times a full ring pushed back. */
    uint64_t tx_sleeps;    /**< Times a sender slept for room. */
    uint64_t tx_conns;     /**< Connections open now. */
};

/**
 * Open a port.
 *
 * Creates the receive segment `velo.<domain>.<node>.<vpid>` in /dev/shm ($VELO_SHM_DIR if set) with
 * mode 0600, or 0660 and the group given. A segment that a dead process left under that name is
 * removed first; one of a live process never is. The first port that a process opens also removes
 * the segments of this user's dead processes in all other domains in which no port lives any more.
 *
 * $VELO_MESSAGE_LINES set to 1 gives each message that the port sends a line of its own. Otherwise
 * short ones share a line, which is faster where a message waits for its line to travel.
 *
 * Long payloads are copied as is best on this processor. $VELO_COPY (auto, lines, string, libc) and
 * $VELO_COPY_BYTES, the length from which on a copy is long, choose another way for this process;
 * `velo info` shows the choice. Peers need not agree.
 *
 * @param attr  How to open it; NULL asks for the defaults. Not kept.
 * @param port  Receives the port, owned by the caller until velo_port_close().
 * @retval VELO_OK            The port is open and can be connected to.
 * @retval VELO_ERR_ARG       An attribute is outside its range, a flag is unknown, the group does
 * not exist, $VELO_COPY or $VELO_COPY_BYTES makes no sense, or $VELO_SHM_DIR has more than 88
 * bytes.
 * @retval VELO_ERR_IN_USE    A live process has this port open.
 * @retval VELO_ERR_FULL      VELO_VPID_ANY found no free context on the node.
 * @retval VELO_ERR_ACCESS    The directory is not writable, or another user's file has the name.
 * @retval VELO_ERR_NO_SPACE  The shared-memory file system is full.
 * @retval VELO_ERR_NO_MEMORY Out of memory or mappings.
 * @retval VELO_ERR_SYSTEM    Another system call failed.
 * @thread Any thread.
 * @path cold
 * @source VELO paper, section 3 (context minimization, figure 2)
 * @see velo_port_close, velo_connect
 */
VELO_API int velo_port_open(const struct velo_port_attr *attr, struct velo_port **port);

/**
 * Close a port and every connection opened from it.
 *
 * Messages already sent on its connections are still delivered. Over a network they may have to
 * leave first, and the call waits for that: no longer than the port's linger_ns, and for no peer
 * that is lost. A program that must not lose a message to a peer that stands still asks for a
 * longer time, or waits for an answer. Messages waiting in the port's own queue are dropped with
 * it; peers that go on sending get VELO_ERR_PEER_CLOSED. Pointers from velo_try_peek() and
 * velo_reserve() become invalid.
 *
 * @param port  The port; NULL is allowed and does nothing.
 * @retval VELO_OK  Closed.
 * @thread One thread, while no other uses the port or its connections.
 * @path cold
 * @see velo_port_open
 */
VELO_API int velo_port_close(struct velo_port *port);

/**
 * All that another machine needs to reach a port over a network.
 *
 * The name is opaque. Hand it to the peer by other means, and there to velo_peer_name(). It holds
 * until the port is closed. Of several transports of a port the first that has names gives it.
 *
 * @param port       An open port.
 * @param name       Receives the name, of at most VELO_PORT_NAME_BYTES_MAX bytes.
 * @param len_bytes  In: room for the name. Out: its length; 0: peers need no name to reach the
 *                   port, or cannot reach it over a network.
 * @retval VELO_OK           The name, or a length of 0.
 * @retval VELO_ERR_ARG      An argument is NULL.
 * @retval VELO_ERR_TOO_BIG  There is not enough room.
 * @thread Any thread.
 * @path cold
 * @see velo_peer_name, velo_connect
 */
VELO_API int velo_port_name(const struct velo_port *port, void *name, size_t *len_bytes);

/**
 * Tell a port how to reach a peer over a network.
 *
 * To be called before velo_connect(). The name is used for connections that are made from then on.
 * A peer of which the map of nodes names the host needs none, and keeps that address.
 *
 * @param port       The port that will connect.
 * @param peer       Id of the peer.
 * @param name       What velo_port_name() gave on the peer's side. Copied.
 * @param len_bytes  Its length; 0 is allowed and does nothing.
 * @retval VELO_OK             It is kept, or the peer is reached without a name.
 * @retval VELO_ERR_ARG        An argument is NULL or outside its range, or the name is none.
 * @retval VELO_ERR_NO_MEMORY  Out of memory.
 * @thread Any thread.
 * @path cold
 * @see velo_port_name, velo_connect
 */
VELO_API int velo_peer_name(struct velo_port *port, velo_id_t peer, const void *name,
                            size_t len_bytes);

/**
 * The id under which a port can be reached.
 *
 * @param port  An open port.
 * @return The id; velo_connect() of a peer in the same domain takes it.
 * @thread Any thread.
 * @path hot
 * @see velo_connect
 */
VELO_API velo_id_t velo_port_id(const struct velo_port *port);

/**
 * End a wait on a port, and one on its RMA unit: the one that is under way, or else the next.
 *
 * velo_recv(), velo_recv_many(), velo_peek(), and the waits of queues on the port then return
 * VELO_ERR_INTERRUPTED, once; so do, once, velo_rma_poll(), velo_rma_flush() and velo_rma_arm() if
 * the port has a unit: a wait of theirs that was about to sleep ends a tenth of a second later.
 * Calls that do not wait take no notice. Waits for room on a connection have velo_conn_interrupt().
 * The port must stay open until the call has returned, also where the wait that it ends is the last
 * one.
 *
 * @param port  An open port.
 * @thread Any thread, and signal handlers.
 * @path cold
 * @see velo_recv, velo_conn_interrupt
 */
VELO_API void velo_port_interrupt(struct velo_port *port);

/**
 * A descriptor for event loops: poll(), epoll and the like show it readable when something may have
 * come for the port. Nothing is read from it.
 *
 * It becomes readable only after velo_port_arm(). A loop receives with velo_try_recv() until
 * VELO_AGAIN, arms, waits for the descriptor, and begins anew; velo_port_arm() shows it.
 *
 * @param port  An open port.
 * @param fd    Receives the descriptor, the same at each call; owned by the port, which closes it.
 * @retval VELO_OK          It is there.
 * @retval VELO_ERR_ARG     An argument is NULL.
 * @retval VELO_ERR_STATE   The port is at a node's host port, which has none.
 * @retval VELO_ERR_SYSTEM  No descriptor is to be had: ask again once there is one.
 * @retval VELO_ERR_NO_SPACE  The directory of the segment has no room for the name of a socket by
 * which senders wake the port.
 * @retval VELO_ERR_ACCESS  This process may not make that socket.
 * @retval VELO_ERR_NO_MEMORY Out of memory.
 * @thread The thread that receives from the port.
 * @path cold
 * @see velo_port_arm
 */
VELO_API int velo_port_fd(struct velo_port *port, int *fd);

/**
 * Have the descriptor of a port tell, once, of what comes from now on. Never waits.
 *
 * Each wait of an event loop needs a call before it:
 *
 *     for (;;) {
 *         while (velo_try_recv(port, buf, sizeof buf, &msg) == VELO_OK)
 *             handle(&msg);
 *         if (velo_port_arm(port) == VELO_OK)
 *             poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1000);
 *     }
 *
 * The descriptor may become readable without reason. A loop with nothing else to do should come
 * back each second: velo_port_arm() also finds senders that have died.
 *
 * @param port  A port whose descriptor has been asked for.
 * @retval VELO_OK        Armed: nothing is there; the descriptor becomes readable when that
 * changes.
 * @retval VELO_AGAIN     Something may be there: receive first.
 * @retval VELO_ERR_INTERRUPTED  velo_port_interrupt() was called.
 * @retval VELO_ERR_ARG   port is NULL.
 * @retval VELO_ERR_STATE A message is held by velo_peek(), or velo_port_fd() was never called.
 * @thread The thread that receives from the port.
 * @path hot
 * @see velo_port_fd, velo_try_recv
 */
VELO_API int velo_port_arm(struct velo_port *port);

/**
 * Which opening of its id a port is.
 *
 * An id may be opened again after its port was closed, or has died. Each opening is a generation of
 * its own, with a random word that no other has. A message names the generation of its source, and
 * a connection that of its peer. They tell a peer that came back from the one before.
 *
 * @param port  An open port.
 * @return The generation; never 0.
 * @thread Any thread.
 * @path hot
 * @see velo_conn_generation
 */
VELO_API uint32_t velo_port_generation(const struct velo_port *port);

/**
 * Read a port's counters.
 *
 * The snapshot is not atomic: counters that move meanwhile may be one message apart.
 *
 * @param port      An open port.
 * @param counters  Receives the values; owned by the caller.
 * @param counters_bytes  sizeof *counters: a later release may add counters at the end.
 * @retval VELO_OK       Filled in; counters that this library does not know are 0.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread Any thread; not during velo_port_close().
 * @path cold
 */
VELO_API int velo_port_counters(struct velo_port *port, struct velo_port_counters *counters,
                                size_t counters_bytes);

/**
 * Connect a port to a peer.
 *
 * Takes one entry of the peer's connection table and the memory of one ring in the peer's segment.
 * A port may open several connections to the same peer, one for each sending thread; each has its
 * own order.
 *
 * A dead process's port is known as dead as long as some port of its domain lives, or until it is
 * opened again. Once no port of the domain lives, the dead port may be forgotten: then it counts as
 * not opened yet.
 *
 * @param port        The sending port.
 * @param peer        Id of the receiving port, in the same domain; may be the port itself.
 * @param conn        Receives the connection, owned by the caller until velo_disconnect() or
 *                    velo_port_close().
 * @param timeout_ns  How long to wait for the peer to open its port, in ns; 0 tries once,
 *                    VELO_FOREVER waits without limit. Over a network a try may wait ten seconds
 *                    for an answer.
 * @retval VELO_OK              Connected.
 * @retval VELO_ERR_ARG         An argument is NULL or outside its range.
 * @retval VELO_TIMEOUT         Over a network: nothing has said in the time given whether the port
 *                              is open. Its process stands still, or the network loses all.
 * @retval VELO_ERR_NO_PEER     No such port was open in the time given.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port meanwhile.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_FULL        The peer's connection table is full.
 * @retval VELO_ERR_ACCESS      The peer's segment belongs to another user and is not opened to us,
 *                              or somebody has removed the file that tells whether the peer lives,
 *                              or the peer has another secret (transport ofi).
 * @retval VELO_ERR_NO_SPACE    The shared-memory file system has no room for the ring.
 * @retval VELO_ERR_NO_MEMORY   Out of memory or mappings.
 * @retval VELO_ERR_VERSION     The peer uses another version of velo.
 * @retval VELO_ERR_CORRUPT     The peer's segment makes no sense.
 * @retval VELO_ERR_SYSTEM      Another system call failed.
 * @retval VELO_ERR_INTERRUPTED A signal handler ran in the wait.
 * @thread Any thread.
 * @path cold
 * @source VELO paper, section 3 (grants by page mapping)
 * @see velo_disconnect, velo_send
 */
VELO_API int velo_connect(struct velo_port *port, velo_id_t peer, struct velo_conn **conn,
                          int64_t timeout_ns);

/**
 * Connect a port to a peer, without a wait.
 *
 * As velo_connect(). Over a network the first call asks the peer, and later calls for the same peer
 * look whether it has answered; velo_connect() goes on with that question, too. The question is
 * given up when the port is closed.
 *
 * @param port  The sending port.
 * @param peer  Id of the receiving port, in the same domain; may be the port itself.
 * @param conn  Receives the connection, as velo_connect() gives it.
 * @retval VELO_OK           Connected.
 * @retval VELO_AGAIN        Over a network: the peer has not answered yet. Try again.
 * @retval VELO_ERR_NO_PEER  No such port is open now.
 * @retval VELO_ERR_FULL     The peer's connection table is full. It looks for senders that have
 *                           died, so a later try may find room.
 * @return Other statuses as velo_connect().
 * @thread Any thread.
 * @path cold
 * @see velo_connect
 */
VELO_API int velo_try_connect(struct velo_port *port, velo_id_t peer, struct velo_conn **conn);

/**
 * End a wait for room on a connection: the one that is under way, or else the next.
 *
 * velo_send(), velo_sendv() or velo_reserve() then returns VELO_ERR_INTERRUPTED, once, and nothing
 * was sent; velo_send_many() ends, too, and returns how many messages it had sent before, if any:
 * then the next wait returns VELO_ERR_INTERRUPTED. A wait that was about to sleep ends a tenth of a
 * second later. Calls that find room, or do not wait, take no notice. The connection must
 * stay open until the call has returned.
 *
 * @param conn  An open connection.
 * @thread Any thread, and signal handlers.
 * @path cold
 * @see velo_send, velo_port_interrupt
 */
VELO_API void velo_conn_interrupt(struct velo_conn *conn);

/**
 * End a connection.
 *
 * Messages already sent are still delivered; a reservation that was not committed is dropped.
 *
 * @param conn  The connection; NULL is allowed and does nothing.
 * @retval VELO_OK  Disconnected.
 * @thread The thread that sends on the connection.
 * @path cold
 * @see velo_connect
 */
VELO_API int velo_disconnect(struct velo_conn *conn);

/**
 * The longest message a connection takes.
 *
 * @param conn  An open connection.
 * @return Bytes: a quarter of the receiver's data_bytes, at most 65,535; never below 4,096.
 * @thread Any thread.
 * @path hot
 */
VELO_API size_t velo_conn_max_bytes(const struct velo_conn *conn);

/**
 * Which generation of its peer a connection leads to.
 *
 * @param conn  An open connection.
 * @return The value of velo_port_generation() there.
 * @thread Any thread.
 * @path hot
 * @see velo_port_generation
 */
VELO_API uint32_t velo_conn_generation(const struct velo_conn *conn);

/**
 * Send a message if there is room now.
 *
 * Up to VELO_INLINE_BYTES the message is one line, written once and published by its last store. No
 * system call, no lock, no allocation; an atomic operation only when the receiver asked to be
 * woken. The buffer is free for reuse on return.
 *
 * VELO_OK says that the message stands in the peer's queue. The peer receives it, even if this
 * process ends now, unless it closes its port or dies before that.
 *
 * A sender hears of the death of its peer with the next message, on every connection to it, once
 * any process has found the peer dead; at the latest when the ring is full, or in a ring of more
 * than 256 slots after 256 messages and a millisecond. It hears that a peer closed in the call
 * after one that had to wake the peer, or when the ring is full. velo_conn_status() finds out at
 * once, and then every call on the connection returns that error.
 *
 * @param conn       The connection.
 * @param buf        Payload; may be NULL when len_bytes is 0.
 * @param len_bytes  Payload length, 0 to velo_conn_max_bytes().
 * @param tag        Delivered with the message.
 * @retval VELO_OK              The message is in the peer's queue.
 * @retval VELO_AGAIN           The ring is full; nothing was sent.
 * @retval VELO_ERR_ARG         conn is NULL, or buf is NULL with a length above 0.
 * @retval VELO_ERR_STATE       A reservation is open on the connection.
 * @retval VELO_ERR_TOO_BIG     len_bytes is above velo_conn_max_bytes().
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port; what it had not received is lost.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended; what it had not received is lost.
 * @retval VELO_ERR_CORRUPT     The peer's credits make no sense, or it refused a damaged ring.
 * @thread One thread at a time per connection.
 * @path hot
 * @source VELO paper, section 3 (atomic PIO message triggering)
 * @see velo_send, velo_reserve
 */
VELO_API int velo_try_send(struct velo_conn *conn, const void *buf, size_t len_bytes, uint8_t tag);

/**
 * Send a message, waiting while the ring is full.
 *
 * Like velo_try_send(), but waits for room: it spins first, then sleeps until the receiver has made
 * room. It returns with an error when the receiver dies or closes.
 *
 * @param conn       The connection.
 * @param buf        Payload; may be NULL when len_bytes is 0.
 * @param len_bytes  Payload length, 0 to velo_conn_max_bytes().
 * @param tag        Delivered with the message.
 * @param timeout_ns  Longest wait for room, in ns; 0 tries once, VELO_FOREVER waits without limit.
 * @retval VELO_OK              The message is in the peer's queue; see velo_try_send().
 * @retval VELO_TIMEOUT         There was no room in the time given; nothing was sent. The peer
 * lives.
 * @retval VELO_ERR_ARG         conn is NULL, buf is NULL with a length above 0, or timeout_ns is
 *                              below -1.
 * @retval VELO_ERR_STATE       A reservation is open on the connection.
 * @retval VELO_ERR_TOO_BIG     len_bytes is above velo_conn_max_bytes().
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_CORRUPT     The peer's credits make no sense, it refused a damaged ring, or
 * messages in the ring were overwritten while this call slept.
 * @retval VELO_ERR_INTERRUPTED A signal handler ran while this call slept, or
 *                              velo_conn_interrupt(); nothing was sent.
 * @thread One thread at a time per connection.
 * @path hot
 * @source VELO paper, section 3 (integrated end-to-end flow control)
 * @see velo_try_send
 */
VELO_API int velo_send(struct velo_conn *conn, const void *buf, size_t len_bytes, uint8_t tag,
                       int64_t timeout_ns);

/**
 * Send a message whose payload lies in several pieces, if there is room now.
 *
 * The pieces arrive as one message, one behind the other. Otherwise as velo_try_send().
 *
 * @param conn        The connection.
 * @param pieces      The pieces; may be NULL when pieces_len is 0. Not kept.
 * @param pieces_len  Number of pieces, 0 or more.
 * @param tag         Delivered with the message.
 * @return As velo_try_send().
 * @retval VELO_ERR_ARG      conn is NULL, pieces is NULL with a number above 0, a piece has a
 *                           length and no address, or the number is negative.
 * @retval VELO_ERR_TOO_BIG  The sum of the lengths is above velo_conn_max_bytes().
 * @thread One thread at a time per connection.
 * @path hot
 * @see velo_sendv, velo_try_send
 */
VELO_API int velo_try_sendv(struct velo_conn *conn, const struct iovec *pieces, int pieces_len,
                            uint8_t tag);

/**
 * Send a message whose payload lies in several pieces, waiting while the ring is full.
 *
 * @param conn        The connection.
 * @param pieces      The pieces; may be NULL when pieces_len is 0. Not kept.
 * @param pieces_len  Number of pieces, 0 or more.
 * @param tag         Delivered with the message.
 * @param timeout_ns  Longest wait for room, in ns; 0 tries once, VELO_FOREVER waits without limit.
 * @return As velo_send().
 * @retval VELO_ERR_ARG      As velo_try_sendv(), or timeout_ns is below -1.
 * @thread One thread at a time per connection.
 * @path hot
 * @see velo_try_sendv, velo_send
 */
VELO_API int velo_sendv(struct velo_conn *conn, const struct iovec *pieces, int pieces_len,
                        uint8_t tag, int64_t timeout_ns);

/**
 * Send several messages, waiting while the ring is full.
 *
 * They arrive one by one and in order, as if each were sent by velo_send(). The receiver is woken
 * once for all of them, or for those that fit into the ring, and a network gets them together: that
 * is what a message of a burst costs less. The receiver may take the first while the others are
 * written.
 *
 * The call stops at the first message that it cannot send, and returns how many it has sent: it is
 * the index of that message. Nothing of that one and of those behind it was sent. A call that
 * begins with it tells the reason.
 *
 * @param conn        The connection.
 * @param msgs        The messages: data (may be NULL where len_bytes is 0), len_bytes and tag of
 *                    each. Other members are not looked at, so messages that were received can be
 *                    sent on. Not kept.
 * @param msgs_len    Their number; 0 does nothing.
 * @param timeout_ns  Longest wait for room, in ns, of the whole call; 0 waits for none, and
 *                    VELO_FOREVER waits without limit.
 * @return The number of messages that are in the peer's queue (see velo_try_send()); or, when none
 *         is, the reason why the first was not sent:
 * @retval VELO_TIMEOUT         There was no room in the time given.
 * @retval VELO_ERR_ARG         conn is NULL, msgs is NULL or its number negative, timeout_ns is
 *                              below -1, or data is NULL with a length above 0.
 * @retval VELO_ERR_STATE       A reservation is open on the connection.
 * @retval VELO_ERR_TOO_BIG     len_bytes is above velo_conn_max_bytes().
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended. Also returned when some messages were
 *                              sent: what the peer had not received is lost.
 * @retval VELO_ERR_CORRUPT     As velo_send().
 * @retval VELO_ERR_INTERRUPTED A signal handler ran while this call slept, or
 *                              velo_conn_interrupt(). When some messages were sent, the next wait
 *                              on the connection tells of it.
 * @thread One thread at a time per connection.
 * @path hot
 * @see velo_recv_many, velo_send
 */
VELO_API int velo_send_many(struct velo_conn *conn, const struct velo_msg *msgs, int msgs_len,
                            int64_t timeout_ns);

/**
 * Reserve room in the receiver's memory to build a message in place, if there is room now.
 *
 * At most one reservation is open on a connection. It stays open until velo_commit(); a sender that
 * dies meanwhile loses only this message.
 *
 * @param conn       The connection.
 * @param len_bytes  The most that will be committed, 0 to velo_conn_max_bytes().
 * @param buf        Receives the address to write to, at least 8-byte aligned; owned by the caller
 *                   until velo_commit() or velo_disconnect(). Shared memory: do not read it back to
 *                   decide anything.
 * @retval VELO_OK              Reserved.
 * @retval VELO_AGAIN           The ring is full.
 * @retval VELO_ERR_ARG         An argument is NULL.
 * @retval VELO_ERR_STATE       A reservation is open already.
 * @retval VELO_ERR_TOO_BIG     len_bytes is above velo_conn_max_bytes().
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port; seen when velo_try_send() would see it.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended (seen when the ring is full).
 * @retval VELO_ERR_CORRUPT     The peer's credits make no sense, or it refused a damaged ring.
 * @thread One thread at a time per connection.
 * @path hot
 * @see velo_reserve, velo_commit
 */
VELO_API int velo_try_reserve(struct velo_conn *conn, size_t len_bytes, void **buf);

/**
 * Reserve room in the receiver's memory to build a message in place, waiting while the ring is
 * full.
 *
 * @param conn       The connection.
 * @param len_bytes  The most that will be committed, 0 to velo_conn_max_bytes().
 * @param buf        Receives the address to write to; see velo_try_reserve().
 * @param timeout_ns  Longest wait for room, in ns; 0 tries once, VELO_FOREVER waits without limit.
 * @retval VELO_OK              Reserved.
 * @retval VELO_TIMEOUT         There was no room in the time given; nothing is reserved.
 * @retval VELO_ERR_ARG         An argument is NULL, or timeout_ns is below -1.
 * @retval VELO_ERR_STATE       A reservation is open already.
 * @retval VELO_ERR_TOO_BIG     len_bytes is above velo_conn_max_bytes().
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_CORRUPT     The peer's credits make no sense, or it refused a damaged ring.
 * @retval VELO_ERR_INTERRUPTED A signal handler ran while this call slept, or
 *                              velo_conn_interrupt(); nothing is reserved.
 * @thread One thread at a time per connection.
 * @path hot
 * @see velo_try_reserve, velo_commit
 */
VELO_API int velo_reserve(struct velo_conn *conn, size_t len_bytes, void **buf, int64_t timeout_ns);

/**
 * Send the message that was built in a reservation.
 *
 * @param conn       The connection.
 * @param len_bytes  Its length, at most what was reserved.
 * @param tag        Delivered with the message.
 * @retval VELO_OK              The message is in the peer's queue; see velo_try_send().
 * @retval VELO_ERR_ARG         conn is NULL.
 * @retval VELO_ERR_STATE       No reservation is open.
 * @retval VELO_ERR_TOO_BIG     len_bytes is above what was reserved; the reservation stays open.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended; the reservation is closed.
 * @thread One thread at a time per connection.
 * @path hot
 * @see velo_try_reserve, velo_reserve
 */
VELO_API int velo_commit(struct velo_conn *conn, size_t len_bytes, uint8_t tag);

/**
 * Receive a message into a buffer if one is there.
 *
 * @param port       The port.
 * @param buf        Receives the payload; may be NULL when cap_bytes is 0.
 * @param cap_bytes  Size of buf.
 * @param msg        Receives length, source and tag; its data points to buf. May be NULL.
 * @retval VELO_OK           A message was received.
 * @retval VELO_AGAIN        None is there.
 * @retval VELO_ERR_PEER_CLOSED  A sender has left. This and the next two come only from a port
 *                           with VELO_PORT_DEPARTURES.
 * @retval VELO_ERR_PEER_DEAD    A sender's process has ended.
 * @retval VELO_ERR_CORRUPT      A sender's ring was damaged, and is not read again.
 * @retval VELO_ERR_ARG      port is NULL, or buf is NULL with cap_bytes above 0.
 * @retval VELO_ERR_STATE    A message is held by velo_try_peek().
 * @retval VELO_ERR_TOO_BIG  The next message does not fit; it stays, and msg holds its length,
 *                           source and tag.
 * @thread One thread at a time per port.
 * @path hot
 * @source VELO paper, section 3 (the receiver polls a cached buffer in its own memory)
 * @see velo_recv, velo_try_peek
 */
VELO_API int velo_try_recv(struct velo_port *port, void *buf, size_t cap_bytes,
                           struct velo_msg *msg);

/**
 * Receive a message into a buffer, waiting for one.
 *
 * Spins for a while, then sleeps until a sender wakes it. The length of the spin depends on its
 * last waits: if spinning did not pay, it soon sleeps at once, so that ranks that outnumber the
 * cores do not starve each other. $VELO_SPIN_NS sets the longest spin (default 50,000; 0 sleeps at
 * once).
 *
 * @param port        The port.
 * @param buf         Receives the payload; may be NULL when cap_bytes is 0.
 * @param cap_bytes   Size of buf.
 * @param msg         Receives length, source and tag; its data points to buf. May be NULL.
 * @param timeout_ns  Longest wait, in ns; 0 polls once, VELO_FOREVER waits without limit.
 * @retval VELO_OK           A message was received.
 * @retval VELO_TIMEOUT      None came in the time given.
 * @retval VELO_ERR_INTERRUPTED  None came; a signal handler ran, or velo_port_interrupt().
 * @retval VELO_ERR_PEER_CLOSED  A sender has left. This and the next two come only from a port
 *                           with VELO_PORT_DEPARTURES.
 * @retval VELO_ERR_PEER_DEAD    A sender's process has ended.
 * @retval VELO_ERR_CORRUPT      A sender's ring was damaged, and is not read again.
 * @retval VELO_ERR_ARG      port is NULL, buf is NULL with cap_bytes above 0, or timeout_ns is
 *                           below -1.
 * @retval VELO_ERR_STATE    A message is held by velo_try_peek().
 * @retval VELO_ERR_TOO_BIG  The next message does not fit; it stays, and msg holds its length,
 *                           source and tag.
 * @thread One thread at a time per port.
 * @path hot
 * @see velo_try_recv, velo_peek
 */
VELO_API int velo_recv(struct velo_port *port, void *buf, size_t cap_bytes, struct velo_msg *msg,
                       int64_t timeout_ns);

/**
 * Receive several messages, waiting for the first.
 *
 * Waits as velo_recv(), and then takes those that are there: of each connection in order, and as
 * many as there is room for. The payloads stand in the buffer one behind the other, each at a
 * multiple of 8 bytes from its beginning. A message that does not fit behind them, a departure, or
 * any other reason to stop stays for the next call.
 *
 * @param port        The port.
 * @param msgs        Receives length, source and tag of each message; data points to its payload in
 *                    buf. Those behind the number that is returned are undefined.
 * @param msgs_max    Its length: at least 1.
 * @param buf         Receives the payloads; may be NULL when cap_bytes is 0.
 * @param cap_bytes   Size of buf.
 * @param timeout_ns  Longest wait for the first message, in ns; 0 polls once, VELO_FOREVER waits
 *                    without limit.
 * @return The number of messages received, at least 1; or, when there is none, the reason:
 * @retval VELO_TIMEOUT      None came in the time given.
 * @retval VELO_ERR_INTERRUPTED  None came; a signal handler ran, or velo_port_interrupt().
 * @retval VELO_ERR_PEER_CLOSED  A sender has left: the first of msgs tells which. This and the next
 *                           two come only from a port with VELO_PORT_DEPARTURES.
 * @retval VELO_ERR_PEER_DEAD    A sender's process has ended.
 * @retval VELO_ERR_CORRUPT      A sender's ring was damaged, and is not read again.
 * @retval VELO_ERR_ARG      port or msgs is NULL, msgs_max is below 1, buf is NULL with cap_bytes
 *                           above 0, or timeout_ns is below -1.
 * @retval VELO_ERR_STATE    A message is held by velo_try_peek().
 * @retval VELO_ERR_TOO_BIG  The next message does not fit into buf; it stays, and the first of msgs
 *                           holds its length, source and tag.
 * @thread One thread at a time per port.
 * @path hot
 * @see velo_send_many, velo_recv
 */
VELO_API int velo_recv_many(struct velo_port *port, struct velo_msg *msgs, int msgs_max, void *buf,
                            size_t cap_bytes, int64_t timeout_ns);

/**
 * Look at the next message in place if one is there.
 *
 * The message stays in the receive ring, uncopied, until velo_release(). Its bytes lie in memory
 * that the sender can still write: where the sender is not trusted, copy before you check.
 *
 * @param port  The port.
 * @param msg   Receives address, length, source and tag.
 * @retval VELO_OK         A message is held; call velo_release() when done.
 * @retval VELO_AGAIN      None is there.
 * @retval VELO_ERR_PEER_CLOSED  A sender has left. This and the next two come only from a port
 *                           with VELO_PORT_DEPARTURES.
 * @retval VELO_ERR_PEER_DEAD    A sender's process has ended.
 * @retval VELO_ERR_CORRUPT      A sender's ring was damaged, and is not read again.
 * @retval VELO_ERR_ARG    An argument is NULL.
 * @retval VELO_ERR_STATE  A message is held already.
 * @thread One thread at a time per port.
 * @path hot
 * @see velo_release, velo_peek
 */
VELO_API int velo_try_peek(struct velo_port *port, struct velo_msg *msg);

/**
 * Look at the next message in place, waiting for one.
 *
 * @param port        The port.
 * @param msg         Receives address, length, source and tag.
 * @param timeout_ns  Longest wait, in ns; 0 polls once, VELO_FOREVER waits without limit.
 * @retval VELO_OK         A message is held; call velo_release() when done.
 * @retval VELO_TIMEOUT    None came in the time given.
 * @retval VELO_ERR_INTERRUPTED  None came; a signal handler ran, or velo_port_interrupt().
 * @retval VELO_ERR_PEER_CLOSED  A sender has left. This and the next two come only from a port
 *                           with VELO_PORT_DEPARTURES.
 * @retval VELO_ERR_PEER_DEAD    A sender's process has ended.
 * @retval VELO_ERR_CORRUPT      A sender's ring was damaged, and is not read again.
 * @retval VELO_ERR_ARG    An argument is NULL, or timeout_ns is below -1.
 * @retval VELO_ERR_STATE  A message is held already.
 * @thread One thread at a time per port.
 * @path hot
 * @see velo_try_peek, velo_recv
 */
VELO_API int velo_peek(struct velo_port *port, struct velo_msg *msg, int64_t timeout_ns);

/**
 * Give the message held by velo_try_peek() back to its ring.
 *
 * @param port  The port.
 * @retval VELO_OK         Released; the pointers to it are invalid now.
 * @retval VELO_ERR_ARG    port is NULL.
 * @retval VELO_ERR_STATE  No message is held.
 * @thread One thread at a time per port.
 * @path hot
 * @see velo_try_peek
 */
VELO_API int velo_release(struct velo_port *port);

/**
 * Leave the message held by velo_try_peek() where it is, and take nothing more from its connection
 * until velo_resume(). The other connections go on; its sender is pushed back when its ring is
 * full.
 *
 * For receivers that bound their memory: messages that do not fit stay with their sender.
 *
 * @param port  The port.
 * @retval VELO_OK         Deferred; the pointers to the message are invalid now.
 * @retval VELO_ERR_ARG    port is NULL.
 * @retval VELO_ERR_STATE  No message is held.
 * @thread One thread at a time per port.
 * @path cold
 * @see velo_resume
 */
VELO_API int velo_defer(struct velo_port *port);

/**
 * Take from deferred connections again; each goes on with the message that was deferred.
 *
 * @param port  The port.
 * @retval VELO_OK       Resumed, if any was deferred.
 * @retval VELO_ERR_ARG  port is NULL.
 * @thread One thread at a time per port.
 * @path cold
 * @see velo_defer
 */
VELO_API int velo_resume(struct velo_port *port);

/**
 * Keep a pointer for the port that sent a message: the messages that come from it carry the pointer
 * as `user`. So a receiver finds what it knows of a sender without a table.
 *
 * The pointer stands with all connections of that port, one generation of it, also those that it
 * makes later while one of them is left. The departures that the receiving port tells
 * (VELO_PORT_DEPARTURES) carry it, too: behind the last one nobody holds it any more.
 *
 * @param port  The receiving port.
 * @param msg   A message, or a departure, from the source: its source and generation are looked at.
 * @param user  The pointer; NULL takes it away. Not looked at.
 * @retval VELO_OK           Set; messages received from now on carry it.
 * @retval VELO_ERR_ARG      port or msg is NULL.
 * @retval VELO_ERR_NO_PEER  The source has no connection to the port, or none any more.
 * @thread One thread at a time per port.
 * @path cold
 * @see velo_recv, velo_peek
 */
VELO_API int velo_source_set_user(struct velo_port *port, const struct velo_msg *msg, void *user);

/**
 * Does the peer of a connection still take messages? A system call: for programs that wait for an
 * answer and have nothing to send.
 *
 * @param conn  The connection.
 * @retval VELO_OK              It does.
 * @retval VELO_ERR_ARG         conn is NULL.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_CORRUPT     The peer refused this connection for a damaged ring.
 * @thread One thread at a time per connection.
 * @path cold
 */
VELO_API int velo_conn_status(struct velo_conn *conn);

/**
 * The name and meaning of a status.
 *
 * @param status  A value of enum velo_status.
 * @return A constant string, such as "VELO_AGAIN: nothing there now"; never NULL.
 * @thread Any thread.
 * @path cold
 * @see velo_last_error
 */
VELO_API const char *velo_strerror(int status);

/**
 * The error in this thread's last failed cold call, and what to do about it.
 *
 * @return A string that stays valid until this thread's next failing call; empty if none failed.
 * @thread Any thread; each has its own.
 * @path cold
 * @see velo_strerror
 */
VELO_API const char *velo_last_error(void);

/**
 * The version of the library.
 *
 * @return A constant string: release and segment layout, such as "1.0.0 abi 1".
 * @thread Any thread.
 * @path cold
 */
VELO_API const char *velo_version(void);

#ifdef __cplusplus
}
#endif

#endif
