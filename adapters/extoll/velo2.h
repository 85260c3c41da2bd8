/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file velo2.h
 * @brief Messages as EXTOLL's own library has them, over velo.
 * @example extoll_velo2.c
 *
 * For programs that were written for EXTOLL: they are compiled as they are, and linked with
 * `-lvelo2`. A new program uses velo.h. `docs/guides/extoll.md` says call by call what is the same
 * and what is not.
 *
 * A **port** is one context of this node, with one receive queue. A **connection** is the right to
 * send to one remote port; none of the two is more than a few words, which the caller keeps. A
 * message has up to VELO2_MTU bytes, a tag, a message type (0 to 3) and the address of its source.
 *
 * The node is $VELO_NODE (0 to 255). Without that it is what the job's launcher says: SLURM_NODEID,
 * or the rank and the rank on the node of Open MPI or Hydra; and else 0. The context is the lowest
 * free one of 252 (0 to 251). The domain is $VELO_DOMAIN, as for every program over velo.
 *
 * Messages of one connection arrive in order and whole. A full receiver pushes back. A sender that
 * waits for room meanwhile keeps what comes for the ports of its own process, up to 524,288
 * messages a port, so that two that fill each other go on.
 *
 * $VELO_EXTOLL_WAIT_MS is the longest wait for a port that is not open yet, and for room when
 * nothing more can be kept: 10,000 if it is not set, -1 for ever. $VELO2_MTU set to 64 has messages
 * of up to 64 bytes, as older hardware had. $VELO2_QUEUE_SLOTS (8 to 16,384, a power of two) is how
 * many messages of one source a port takes in before it pushes back; 1,024 if it is not set.
 *
 * Threads: several may use a port and its connections at once. One that waits in velo2_recv() takes
 * all that comes; meanwhile velo2_probe_recv() finds nothing.
 */
#ifndef VELO2_H
#define VELO2_H

#include <stdint.h>

#include "velo2_mod.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VELO2_API __attribute__((visibility("default")))

#define VELO2_MTU 120 /**< The longest message, in bytes. */

/** Number of a node. */
typedef uint32_t velo2_nodeid_t;
/** Number of a context on a node. */
typedef uint32_t velo2_vpid_t;

/** The result of a call. */
enum velo2_ret {
    VELO2_RET_SUCCESS = 0,      /**< Done. */
    VELO2_RET_ERROR = 1,        /**< Something else; velo_last_error() may know more. */
    VELO2_RET_NO_MSG = 2,       /**< No message is there. */
    VELO2_RET_NO_MATCH = 3,     /**< No message matches. No call of this library returns it. */
    VELO2_RET_ERR_FDOPEN = 4,   /**< The port's memory cannot be created. */
    VELO2_RET_ERR_MMAP = 5,     /**< The process is out of memory or of mappings. */
    VELO2_RET_INVALID_MBOX = 6, /**< There is no such context, it is not open, or it is gone. */
    VELO2_RET_INVALID_NODE = 7, /**< There is no such node. */
    VELO2_RET_TRY_AGAIN = 8,    /**< Nothing happened for want of room or of contexts. */
    VELO2_RET_INV_MTT = 9,      /**< The message type is not 0 to 3. */
    VELO2_RET_INV_MSG = 10,     /**< The message is too long, or there is none. */
};
/** The result of a call. */
typedef enum velo2_ret velo2_ret_t;

/** An open port. */
struct velo2_port {
    void *map; /**< Not NULL while the port is open. */
};
/** An open port. */
typedef struct velo2_port velo2_port_t;

/** Where a connection leads. */
struct velo2_dest {
    uint64_t raw; /**< VELO2_ADDR_PACK() of node and context. */
};

/** A connection. */
struct velo2_connection {
    struct velo2_dest dest; /**< Where it leads. */
    void *state_map;        /**< Not NULL while it is connected. */
};
/** A connection. */
typedef struct velo2_connection velo2_connection_t;

/**
 * Open a port: the lowest free context of this node.
 *
 * @param port  Receives the port.
 * @retval VELO2_RET_SUCCESS     The port is open.
 * @retval VELO2_RET_ERROR       port is NULL, or a variable of the environment makes no sense.
 * @retval VELO2_RET_ERR_FDOPEN  The shared-memory directory is not writable, or full.
 * @retval VELO2_RET_ERR_MMAP    Out of memory or mappings.
 * @retval VELO2_RET_TRY_AGAIN   All 252 contexts of the node are in use.
 * @thread Any thread.
 * @path cold
 * @see velo2_close, velo2_connect
 */
VELO2_API velo2_ret_t velo2_open(velo2_port_t *port);

/**
 * Close a port and all of its connections. Messages that were sent are still delivered; those that
 * were not received are lost.
 *
 * @param port  The port.
 * @retval VELO2_RET_SUCCESS  Closed; map is NULL.
 * @retval VELO2_RET_ERROR    The port is not open.
 * @thread One thread, while no other uses the port or its connections.
 * @path cold
 * @see velo2_open
 */
VELO2_API velo2_ret_t velo2_close(velo2_port_t *port);

/**
 * Prepare to send to a port. Nothing is exchanged with it: it need not be open yet.
 *
 * @param port  The port that sends.
 * @param con   Receives the connection.
 * @param node  The receiver's node.
 * @param vpid  The receiver's context.
 * @retval VELO2_RET_SUCCESS       Connected.
 * @retval VELO2_RET_ERROR         A pointer is NULL, or the port is not open.
 * @retval VELO2_RET_INVALID_NODE  node is above 255.
 * @retval VELO2_RET_INVALID_MBOX  vpid is above 251.
 * @retval VELO2_RET_ERR_MMAP      Out of memory.
 * @thread Any thread.
 * @path cold
 * @see velo2_disconnect, velo2_send
 */
VELO2_API velo2_ret_t velo2_connect(velo2_port_t *port, velo2_connection_t *con,
                                    velo2_nodeid_t node, velo2_vpid_t vpid);

/**
 * End a connection. Messages that were sent are still delivered.
 *
 * @param port  The port that sends.
 * @param con   The connection.
 * @retval VELO2_RET_SUCCESS  Ended; the members of con are 0.
 * @retval VELO2_RET_ERROR    A pointer is NULL, or there is no such connection of this port.
 * @thread The thread that sends on the connection.
 * @path cold
 * @see velo2_connect
 */
VELO2_API velo2_ret_t velo2_disconnect(velo2_port_t *port, velo2_connection_t *con);

/**
 * The node of a port.
 *
 * @param port  An open port.
 * @return The number of its node; of a port that is not open, UINT32_MAX.
 * @thread Any thread.
 * @path hot
 * @see velo2_get_vpid
 */
VELO2_API velo2_nodeid_t velo2_get_nodeid(velo2_port_t *port);

/**
 * The context of a port.
 *
 * @param port  An open port.
 * @return The number of its context; of a port that is not open, UINT32_MAX.
 * @thread Any thread.
 * @path hot
 * @see velo2_get_nodeid
 */
VELO2_API velo2_vpid_t velo2_get_vpid(velo2_port_t *port);

/**
 * Send a message. The buffer is free for reuse on return.
 *
 * Waits while the receiver has no room, as long as the receiver lives. The first send waits for a
 * port that is not open yet, up to $VELO_EXTOLL_WAIT_MS. After a failure the connection is of no
 * further use, but for VELO2_RET_INV_MTT, VELO2_RET_INV_MSG and VELO2_RET_TRY_AGAIN.
 *
 * @param con  The connection.
 * @param msg  The message; may be NULL if len is 0.
 * @param len  Its length in bytes, up to VELO2_MTU. It arrives with just this length.
 * @param tag  Delivered with the message.
 * @param mtt  The message type, 0 to 3; delivered with the message.
 * @retval VELO2_RET_SUCCESS       The message is in the receiver's queue. It is lost if the
 * receiver closes or dies before it takes it; a later send fails then, see docs/guides/extoll.md.
 * @retval VELO2_RET_ERROR         con is NULL or not connected, or something else failed.
 * @retval VELO2_RET_INV_MSG       msg is NULL with a length above 0, or len is above the MTU.
 * @retval VELO2_RET_INV_MTT       mtt is above 3.
 * @retval VELO2_RET_INVALID_MBOX  The receiver did not open its port in time, closed it, or died.
 * @retval VELO2_RET_TRY_AGAIN     There was no room for $VELO_EXTOLL_WAIT_MS, and nothing more that
 * came for us could be kept. Nothing was sent.
 * @thread Any thread.
 * @path hot
 * @source VELO paper, section 3 (atomic PIO message triggering)
 * @see velo2_recv, velo2_probe_recv
 */
VELO2_API velo2_ret_t velo2_send(velo2_connection_t *con, const void *msg, unsigned int len,
                                 uint8_t tag, uint8_t mtt);

/**
 * Receive a message, waiting for one. Waits on when a peer dies, even the only one: another process
 * may still send one.
 *
 * @param port   The port.
 * @param buf    Receives the message; may be NULL if max is 0.
 * @param max    Size of buf in bytes.
 * @param len    Receives the message's length; may be NULL.
 * @param srcid  Receives VELO2_ADDR_PACK() of its source; may be NULL.
 * @param tag    Receives its tag; may be NULL.
 * @param mtt    Receives its message type; may be NULL.
 * @retval VELO2_RET_SUCCESS  A message was received.
 * @retval VELO2_RET_ERROR    port is NULL or not open, buf is NULL with a size, or the queue is
 * damaged.
 * @retval VELO2_RET_INV_MSG  The next message is longer than max. It stays, and len, srcid, tag and
 * mtt are its own.
 * @thread Any thread.
 * @path hot
 * @source VELO paper, section 3 (the receiver polls a cached buffer in its own memory)
 * @see velo2_probe_recv
 */
VELO2_API velo2_ret_t velo2_recv(velo2_port_t *port, void *buf, unsigned int max, uint32_t *len,
                                 uint32_t *srcid, uint8_t *tag, uint8_t *mtt);

/**
 * Receive a message if one is there. Never waits.
 *
 * @param port   The port.
 * @param buf    Receives the message; may be NULL if max is 0.
 * @param max    Size of buf in bytes.
 * @param len    Receives the message's length; may be NULL.
 * @param srcid  Receives VELO2_ADDR_PACK() of its source; may be NULL.
 * @param tag    Receives its tag; may be NULL.
 * @param mtt    Receives its message type; may be NULL.
 * @return As velo2_recv().
 * @retval VELO2_RET_NO_MSG   None is there.
 * @thread Any thread.
 * @path hot
 * @see velo2_recv
 */
VELO2_API velo2_ret_t velo2_probe_recv(velo2_port_t *port, void *buf, unsigned int max,
                                       uint32_t *len, uint32_t *srcid, uint8_t *tag, uint8_t *mtt);

#ifdef __cplusplus
}
#endif

#endif
