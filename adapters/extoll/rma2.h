/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rma2.h
 * @brief Remote memory as EXTOLL's own library has it, over velo.
 * @example extoll_rma2.c
 *
 * For programs that were written for EXTOLL: they are compiled as they are, and linked with
 * `-lrma2`. A new program uses rma.h. `docs/guides/extoll.md` says call by call what is the same
 * and what is not.
 *
 * A **port** is one context of this node, chosen as in velo2.h. Memory is **registered** and then
 * has a network logical address (NLA) for each byte, which peers name in their operations: a page's
 * number times 4,096, and the offset in the page. An operation tells each side that it names with a
 * **notification**, in a queue of 256 KiB, 16,384 of them unless it chooses otherwise; a program
 * frees them in the order in which it got them. Data are visible before their notification. Puts of
 * one connection take effect in order, and gets and locks after the puts before them.
 *
 * An operation that fails later, because its peer is gone or the memory is no longer registered,
 * leaves a notification with an error at the requester, even if it asked for none. A program that
 * waits for a notification goes on waiting when a peer dies: others may send one.
 *
 * Over simulated nodes and transports some operations need further calls of the process that posted
 * them, or of the one whose memory they name. Each call of rma2 or velo2 that waits, or looks in
 * vain, carries on with them, whichever port they are of.
 *
 * Specs and errors have a long and a short name, since programs may have either.
 *
 * $VELO_NODE, the launcher's variables, $VELO_DOMAIN and $VELO_EXTOLL_WAIT_MS are as in velo2.h.
 *
 * Threads: several may use a port at once.
 */
#ifndef RMA2_H
#define RMA2_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RMA2_API __attribute__((visibility("default")))

/** Number of a node. */
typedef uint16_t RMA2_Nodeid;
/** Number of a context on a node. */
typedef uint16_t RMA2_VPID;
/** Address of registered memory, for this process and its peers. */
typedef uint64_t RMA2_NLA;
/** 1 for yes, 0 for no. */
typedef int RMA2_Bool;
/** Class of a notification that a program sends. */
typedef uint8_t RMA2_Class;
/** An open port. */
typedef struct rma2_port *RMA2_Port;
/** A connection. */
typedef struct rma2_handle *RMA2_Handle;
/** enum RMA2_Spec, or-ed. */
typedef uint32_t RMA2_Notification_Spec;
/** enum RMA2_Option, or-ed. */
typedef uint32_t RMA2_Connection_Options;
/** enum RMA2_Modifier, or-ed. */
typedef uint32_t RMA2_Command_Modifier;
/** enum RMA2_Command_Code. */
typedef uint32_t RMA2_Command;

/** The result of a call. */
enum RMA2_Error_Code {
    RMA2_SUCCESS = 0,               /**< Done. */
    RMA2_ERR_ERROR = -1,            /**< Something else; velo_last_error() may know more. */
    RMA2_ERR_INV_HANDLE = -2,       /**< The handle is none of this port. */
    RMA2_ERR_INV_PORT = -3,         /**< The port is not open. */
    RMA2_ERR_INV_VALUE = -4,        /**< A value is out of range. */
    RMA2_ERR_NO_ROUTE = -5,         /**< There is no way to the node. */
    RMA2_ERR_PORTS_USED = -6,       /**< All 252 contexts of the node are in use. */
    RMA2_ERR_NO_MEM = -7,           /**< Out of memory or mappings. */
    RMA2_NO_NOTI = -9,              /**< No notification is there. */
    RMA2_ERR_POLL_EXCEEDED = -10,   /**< Polling took too long. */
    RMA2_ERR_WRONG_ARG = -11,       /**< An argument asks for what is not there. */
    RMA2_ERR_NOT_YET = -12,         /**< It is still in use; try again. */
    RMA2_ERR_NO_DESC_MEM = -13,     /**< There was no room for the operation in the time given. */
    RMA2_ERR_NO_MATCH = -15,        /**< No notification matches. */
    RMA2_ERR_WRONG_CMD = -16,       /**< The command is none that can be posted so. */
    RMA2_ERR_NO_DEVICE = -17,       /**< There is no such device. */
    RMA2_ERR_NO_CONNECT = -18,      /**< The peer's port is not open, or gone. */
    RMA2_ERR_INVALID_VERSION = -22, /**< The peer uses another version of velo. */
    RMA2_ERR_IOCTL = -23,           /**< A system call failed. */
    RMA2_ERR_MMAP = -24,            /**< Memory cannot be mapped. */
    RMA2_ERR_FD = -25,              /**< The port's memory cannot be created. */
    RMA2_ERR_MAP = -26,             /**< Memory cannot be mapped. */
    RMA2_ERR_ATU = 31,              /**< No memory is registered there. */
    RMA2_ERR_MLOCKLIMIT = 32,       /**< Too much memory is registered. */
};
/** The result of a call. */
typedef enum RMA2_Error_Code RMA2_ERROR;

/** Short names of results. */
enum RMA2_Error_Short {
    RMA2_INV_HANDLE = -2,       /**< RMA2_ERR_INV_HANDLE. */
    RMA2_INV_PORT = -3,         /**< RMA2_ERR_INV_PORT. */
    RMA2_INV_VALUE = -4,        /**< RMA2_ERR_INV_VALUE. */
    RMA2_NO_ROUTE = -5,         /**< RMA2_ERR_NO_ROUTE. */
    RMA2_PORTS_USED = -6,       /**< RMA2_ERR_PORTS_USED. */
    RMA2_NO_MEM = -7,           /**< RMA2_ERR_NO_MEM. */
    RMA2_POLL_EXCEEDED = -10,   /**< RMA2_ERR_POLL_EXCEEDED. */
    RMA2_WRONG_ARG = -11,       /**< RMA2_ERR_WRONG_ARG. */
    RMA2_NOT_YET = -12,         /**< RMA2_ERR_NOT_YET. */
    RMA2_NO_DESC_MEM = -13,     /**< RMA2_ERR_NO_DESC_MEM. */
    RMA2_NO_MATCH = -15,        /**< RMA2_ERR_NO_MATCH. */
    RMA2_WRONG_CMD = -16,       /**< RMA2_ERR_WRONG_CMD. */
    RMA2_NO_DEVICE = -17,       /**< RMA2_ERR_NO_DEVICE. */
    RMA2_NO_CONNECT = -18,      /**< RMA2_ERR_NO_CONNECT. */
    RMA2_INVALID_VERSION = -22, /**< RMA2_ERR_INVALID_VERSION. */
    RMA2_IOCTL = -23,           /**< RMA2_ERR_IOCTL. */
    RMA2_MMAP = -24,            /**< RMA2_ERR_MMAP. */
    RMA2_FD = -25,              /**< RMA2_ERR_FD. */
    RMA2_MAP = -26,             /**< RMA2_ERR_MAP. */
    RMA2_ATU = 31,              /**< RMA2_ERR_ATU. */
    RMA2_MLOCKLIMIT = 32,       /**< RMA2_ERR_MLOCKLIMIT. */
    RMA2_ERR_NO_NOTI = -9,      /**< RMA2_NO_NOTI. */
};

/** Which sides of an operation are notified. */
enum RMA2_Spec {
    RMA2_NO_NOTIFICATION = 0,        /**< None. */
    RMA2_REQUESTER_NOTIFICATION = 1, /**< The poster: the source of a put may be changed. */
    RMA2_RESPONDER_NOTIFICATION = 2, /**< The owner of memory that a get reads, or of a lock. */
    RMA2_COMPLETER_NOTIFICATION = 4, /**< The side where data were written: the peer of a put, the
                                          poster of a get or a lock. */
    RMA2_ALL_NOTIFICATIONS = 7,      /**< All that the operation has. */
    RMA2_REQUESTER = 1,              /**< RMA2_REQUESTER_NOTIFICATION. */
    RMA2_RESPONDER = 2,              /**< RMA2_RESPONDER_NOTIFICATION. */
    RMA2_COMPLETER = 4,              /**< RMA2_COMPLETER_NOTIFICATION. */
    RMA2_ALL = 7,                    /**< RMA2_ALL_NOTIFICATIONS. */
};

/** Options of a connection. */
enum RMA2_Option {
    RMA2_CONN_PHYSICAL = 0, /**< Physical addresses. Here addresses are NLAs in any case. */
    RMA2_CONN_TC0 = 0,      /**< Traffic class 0. The classes make no difference here. */
    RMA2_CONN_TC1 = 1,      /**< Traffic class 1. */
    RMA2_CONN_TC2 = 2,      /**< Traffic class 2. */
    RMA2_CONN_TC3 = 3,      /**< Traffic class 3. */
    RMA2_CONN_RRA = 4,      /**< To the register file, which is not there: each post fails. */
    RMA2_CONN_IRQ = 8,      /**< Notifications interrupt. Here they wake a sleeper in any case. */
    RMA2_CONN_DEFAULT = 16, /**< To registered memory. */
};

/** Modifiers of a command. */
enum RMA2_Modifier {
    RMA2_CMD_DEFAULT = 0, /**< None. */
    RMA2_CMD_MC = 1,      /**< Multicast, which is not there: the post fails. */
    RMA2_CMD_NTR = 2,     /**< Without effect here; it stands in the notification. */
    RMA2_CMD_ERA = 4,     /**< Reads another unit's memory, which is not there: the post fails. */
    RMA2_CMD_EWA = 8,     /**< Writes another unit's memory, which is not there: the post fails. */
};

/** Commands, as in descriptors and notifications. */
enum RMA2_Command_Code {
    RMA2_BT_GET = 0,           /**< rma2_post_get_bt(). */
    RMA2_QW_GET = 1,           /**< rma2_post_get_qw(). */
    RMA2_BT_PUT = 2,           /**< rma2_post_put_bt(). */
    RMA2_QW_PUT = 3,           /**< rma2_post_put_qw(). */
    RMA2_NOTIFICATION_PUT = 5, /**< rma2_post_notification(). */
    RMA2_IMMEDIATE_PUT = 6,    /**< rma2_post_immediate_put(). */
    RMA2_GET_BT_RSP = 10,      /**< What a get of bytes asked for has come. */
    RMA2_GET_QW_RSP = 11,      /**< What a get of words asked for has come. */
    RMA2_LOCK_REQ = 12,        /**< rma2_post_lock(). */
    RMA2_LOCK_RSP = 13,        /**< The outcome of rma2_post_lock() has come. */
    RMA2_PUTS = 7,             /**< For rma2_noti_match(): each put. */
    RMA2_GETS = 14,            /**< For rma2_noti_match(): each get. */
    RMA2_ANY = 15,             /**< For rma2_noti_match(): each command. */
};

/** When EXTOLL's library emptied its buffer of stores; see rma2_set_replay_mode(). */
enum RMA2_Replay_Mode {
    RMA2_REPLAY_MANUAL = 0, /**< Only when the program said so. */
    RMA2_REPLAY_POST = 1,   /**< At each post. */
    RMA2_REPLAY_NOTI = 2,   /**< At each look for a notification. */
    RMA2_REPLAY_CLOSE = 4,  /**< When a connection or the port closes. */
    RMA2_REPLAY_ALL = 7,    /**< At all of these. */
};
/** When EXTOLL's library emptied its buffer of stores. */
typedef enum RMA2_Replay_Mode RMA2_Replay_Buffer_Mode;

/** Where a lock is. */
enum RMA2_Lock_Target {
    RMA2_LOCK_COMPLETER = 0, /**< At the peer's completer. */
    RMA2_LOCK_RESPONDER = 1, /**< At the peer's responder. */
};

/** 64 bits of a notification. */
struct RMA2_Word {
    uint64_t value; /**< All of them. */
};

/** One notification. All is 0: there is none. */
struct RMA2_Notification {
    struct RMA2_Word word0; /**< Local address; of rma2_post_notification() the word; of a lock its
                                 value (bits 0 to 31), number (32 to 62), and whether it was added
                                 to (63). */
    struct RMA2_Word word1; /**< Size less 1 (bits 0 to 22) or class (0 to 7), context (23 to 30),
                                 node (32 to 47), type (48 to 50), command (51 to 54), modifier (55
                               to 60), error (61 to 63). */
};
/** One notification. */
typedef struct RMA2_Notification RMA2_Notification;

/** Registered memory. */
struct RMA2_Region {
    void *start;    /**< Its first page. */
    RMA2_NLA nla;   /**< The address of that for peers. */
    size_t size;    /**< Bytes from there to the end of what was registered. */
    void *internal; /**< The library's own. */
    size_t offset;  /**< Of the first byte that was registered, from there. */
};
/** Registered memory. */
typedef struct RMA2_Region RMA2_Region;

/** A put or get to be posted. */
struct RMA2_Descriptor {
    uint64_t value[8]; /**< Word 0: size less 1 from bit 40, modifier from 35, notifications from
                          32, node from 16, context from 8, command from 2, 3 in bits 0 and 1. Word
                          1: address read; of an immediate put the one written. Word 2: address
                          written, or immediate value. */
} __attribute__((aligned(16)));
/** A put or get to be posted. */
typedef struct RMA2_Descriptor RMA2_Descriptor;

extern RMA2_API const RMA2_Class RMA2_CLASS_ANY;   /**< Stands for each class. */
extern RMA2_API const RMA2_Nodeid RMA2_NODEID_ANY; /**< Stands for each node. */
extern RMA2_API const RMA2_VPID RMA2_VPID_ANY;     /**< Stands for each context. */
extern RMA2_API const RMA2_NLA RMA2_ANY_NLA;       /**< Stands for each address. */
/** Flags of rma2_noti_match(): none. */
extern RMA2_API const uint32_t RMA2_DEFAULT_FLAG;
/** Flags of rma2_noti_match(): wait until a notification is there. */
extern RMA2_API const uint32_t RMA2_BLOCK_FLAG;
/** Flags of rma2_noti_match(): the address is the one behind what was moved. */
extern RMA2_API const uint32_t RMA2_MATCH_LAST_NLA_FLAG;

/**
 * Open a port: the lowest free context of this node.
 *
 * @param port  Receives the port, owned by the caller until rma2_close().
 * @retval RMA2_SUCCESS         The port is open.
 * @retval RMA2_ERR_INV_PORT    port is NULL.
 * @retval RMA2_ERR_INV_VALUE   A variable of the environment makes no sense.
 * @retval RMA2_ERR_PORTS_USED  All 252 contexts of the node are in use.
 * @retval RMA2_ERR_FD          The shared-memory directory is not writable, or full.
 * @retval RMA2_ERR_NO_MEM      Out of memory or mappings.
 * @retval RMA2_ERR_ERROR       Something else failed.
 * @thread Any thread.
 * @path cold
 * @see rma2_close, rma2_connect
 */
RMA2_API RMA2_ERROR rma2_open(RMA2_Port *port);

/**
 * Close a port, its connections and its registrations.
 *
 * @param port  The port.
 * @retval RMA2_SUCCESS       Closed.
 * @retval RMA2_ERR_INV_PORT  port is NULL.
 * @thread One thread, while no other uses the port.
 * @path cold
 * @see rma2_open
 */
RMA2_API RMA2_ERROR rma2_close(RMA2_Port port);

/**
 * Prepare to reach a peer's memory. Nothing is exchanged with it: its port need not be open yet.
 * The first operation waits for that, up to $VELO_EXTOLL_WAIT_MS.
 *
 * @param port     An open port.
 * @param nodeid   The peer's node.
 * @param vpid     The peer's context.
 * @param options  enum RMA2_Option, or-ed.
 * @param handle   Receives the connection, owned by the caller until rma2_disconnect() or
 * rma2_close().
 * @retval RMA2_SUCCESS        Connected.
 * @retval RMA2_ERR_INV_PORT   port is NULL.
 * @retval RMA2_ERR_INV_VALUE  handle is NULL, nodeid is above 255, or vpid above 251.
 * @retval RMA2_ERR_WRONG_ARG  options have a bit that is no option.
 * @retval RMA2_ERR_NO_MEM     Out of memory.
 * @thread Any thread.
 * @path cold
 * @see rma2_disconnect
 */
RMA2_API RMA2_ERROR rma2_connect(RMA2_Port port, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                 RMA2_Connection_Options options, RMA2_Handle *handle);

/**
 * End a connection. Waits for what was posted on it, up to $VELO_EXTOLL_WAIT_MS; what is not done
 * then leaves notifications with an error.
 *
 * @param port    An open port.
 * @param handle  A connection of it.
 * @retval RMA2_SUCCESS         Ended.
 * @retval RMA2_ERR_INV_PORT    port is NULL.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL, or of another port.
 * @thread Any thread.
 * @path cold
 * @see rma2_connect
 */
RMA2_API RMA2_ERROR rma2_disconnect(RMA2_Port port, RMA2_Handle handle);

/**
 * The node of a port.
 *
 * @param port  An open port.
 * @return The number of its node; RMA2_NODEID_ANY if port is NULL.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_Nodeid rma2_get_nodeid(RMA2_Port port);

/**
 * The context of a port.
 *
 * @param port  An open port.
 * @return The number of its context; RMA2_VPID_ANY if port is NULL.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_VPID rma2_get_vpid(RMA2_Port port);

/**
 * The node of a connection's peer.
 *
 * @param handle  A connection.
 * @return Its number; RMA2_NODEID_ANY if handle is NULL.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_Nodeid rma2_handle_get_node(RMA2_Handle handle);

/**
 * The context of a connection's peer.
 *
 * @param handle  A connection.
 * @return Its number; RMA2_VPID_ANY if handle is NULL.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_VPID rma2_handle_get_vpid(RMA2_Handle handle);

/**
 * Ask for interrupts by a connection's notifications: RMA2_CONN_IRQ, as of rma2_connect(). Here
 * they wake a thread that sleeps in any case.
 *
 * @param port    An open port.
 * @param handle  A connection of it.
 * @retval RMA2_SUCCESS         They wake.
 * @retval RMA2_ERR_INV_PORT    port is NULL.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL, or of another port.
 * @thread Any thread.
 * @path cold
 * @see rma2_get_interrupt
 */
RMA2_API RMA2_ERROR rma2_request_interrupt(RMA2_Port port, RMA2_Handle handle);

/**
 * Has a connection RMA2_CONN_IRQ?
 *
 * @param port    An open port.
 * @param handle  A connection of it.
 * @return RMA2_SUCCESS if it has, else RMA2_ERR_ERROR as a number without a sign.
 * @thread Any thread.
 * @path cold
 * @see rma2_request_interrupt
 */
RMA2_API uint32_t rma2_get_interrupt(RMA2_Port port, RMA2_Handle handle);

/**
 * Ask that a connection reach the register file of its peer's device, which is not there.
 *
 * @param port    An open port.
 * @param handle  A connection of it.
 * @retval RMA2_ERR_NO_DEVICE   There is no such device.
 * @retval RMA2_ERR_INV_PORT    port is NULL.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL.
 * @thread Any thread.
 * @path cold
 * @see rma2_get_rra
 */
RMA2_API RMA2_ERROR rma2_request_rra(RMA2_Port port, RMA2_Handle handle);

/**
 * Has a connection RMA2_CONN_RRA?
 *
 * @param port    An open port.
 * @param handle  A connection of it.
 * @return RMA2_SUCCESS if it was connected so, though each post fails; else RMA2_ERR_ERROR as a
 * number without a sign.
 * @thread Any thread.
 * @path cold
 * @see rma2_request_rra
 */
RMA2_API uint32_t rma2_get_rra(RMA2_Port port, RMA2_Handle handle);

/**
 * Ask that a connection take addresses as physical ones, which is not there: addresses are NLAs.
 *
 * @param port    An open port.
 * @param handle  A connection of it.
 * @retval RMA2_ERR_NO_DEVICE   There is no such device.
 * @retval RMA2_ERR_INV_PORT    port is NULL.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL.
 * @thread Any thread.
 * @path cold
 * @see rma2_get_physical_access
 */
RMA2_API RMA2_ERROR rma2_request_physical_access(RMA2_Port port, RMA2_Handle handle);

/**
 * Does a connection take addresses as physical ones?
 *
 * @param port    An open port.
 * @param handle  A connection of it.
 * @return RMA2_ERR_ERROR as a number without a sign: none does.
 * @thread Any thread.
 * @path cold
 * @see rma2_request_physical_access
 */
RMA2_API uint32_t rma2_get_physical_access(RMA2_Port port, RMA2_Handle handle);

/**
 * Choose a connection's traffic classes, which make no difference here.
 *
 * @param port         An open port.
 * @param handle       A connection of it.
 * @param request_tc   Class of operations, 0 to 3.
 * @param response_tc  Class of their answers, 0 to 3.
 * @retval RMA2_SUCCESS         rma2_get_tcs() tells them from now on.
 * @retval RMA2_ERR_INV_PORT    port is NULL.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL, or of another port.
 * @retval RMA2_ERR_INV_VALUE   A class is above 3.
 * @thread Any thread.
 * @path cold
 * @see rma2_get_tcs
 */
RMA2_API RMA2_ERROR rma2_request_tcs(RMA2_Port port, RMA2_Handle handle, uint32_t request_tc,
                                     uint32_t response_tc);

/**
 * A connection's traffic classes.
 *
 * @param port         An open port.
 * @param handle       A connection of it.
 * @param request_tc   Receives the class of operations.
 * @param response_tc  Receives the class of their answers.
 * @retval RMA2_SUCCESS         There they are.
 * @retval RMA2_ERR_INV_PORT    port is NULL.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL.
 * @retval RMA2_ERR_INV_VALUE   A pointer is NULL.
 * @thread Any thread.
 * @path cold
 * @see rma2_request_tcs
 */
RMA2_API RMA2_ERROR rma2_get_tcs(RMA2_Port port, RMA2_Handle handle, uint32_t *request_tc,
                                 uint32_t *response_tc);

/**
 * Choose the group of processes that reach each other. Here $VELO_DOMAIN does this, so there is
 * group 0 alone.
 *
 * @param port  An open port.
 * @param id    The group.
 * @retval RMA2_SUCCESS        It is 0.
 * @retval RMA2_ERR_NO_DEVICE  It is not.
 * @retval RMA2_ERR_INV_PORT   port is NULL.
 * @thread Any thread.
 * @path cold
 */
RMA2_API RMA2_ERROR rma2_set_protectionid(RMA2_Port port, uint16_t id);

/**
 * How many nodes a network can have.
 *
 * @param port  An open port.
 * @return 256; 0 if port is NULL.
 * @thread Any thread.
 * @path cold
 */
RMA2_API RMA2_Nodeid rma2_get_node_num(RMA2_Port port);

/**
 * How many contexts a node has for programs.
 *
 * @param port  An open port.
 * @return 252; 0 if port is NULL.
 * @thread Any thread.
 * @path cold
 */
RMA2_API RMA2_VPID rma2_get_proc_num(RMA2_Port port);

/**
 * Register memory for operations of this port and of its peers. Registrations may overlap.
 *
 * @param port     An open port.
 * @param address  First byte. Need not be the first of a page; offsets count from it.
 * @param size     Bytes, at least 1.
 * @param region   Receives the region, owned by the caller until rma2_unregister().
 * @retval RMA2_SUCCESS         Registered.
 * @retval RMA2_ERR_INV_PORT    port is NULL.
 * @retval RMA2_ERR_INV_VALUE   A pointer is NULL, or size is 0 or reaches beyond the address space.
 * @retval RMA2_ERR_MLOCKLIMIT  65,534 regions are registered already.
 * @retval RMA2_ERR_NO_MEM      Out of memory.
 * @retval RMA2_ERR_FD          The shared-memory file system is full.
 * @retval RMA2_ERR_ERROR       Something else failed.
 * @thread Any thread.
 * @path cold
 * @see rma2_unregister, rma2_get_nla, rma2_register_nomalloc
 */
RMA2_API RMA2_ERROR rma2_register(RMA2_Port port, void *address, size_t size, RMA2_Region **region);

/**
 * End a registration and free the region. Waits for operations that touch the memory now, up to
 * $VELO_EXTOLL_WAIT_MS.
 *
 * @param port    An open port.
 * @param region  A region from rma2_register().
 * @retval RMA2_SUCCESS        Nobody touches the memory any more.
 * @retval RMA2_ERR_INV_PORT   port is NULL.
 * @retval RMA2_ERR_INV_VALUE  region is NULL, or not registered with this port.
 * @retval RMA2_ERR_NOT_YET    A peer still touches the memory; the region stays the caller's.
 * @thread Any thread.
 * @path cold
 * @see rma2_register
 */
RMA2_API RMA2_ERROR rma2_unregister(RMA2_Port port, RMA2_Region *region);

/**
 * Register memory; the region is the caller's own.
 *
 * @param port     An open port.
 * @param address  First byte. Need not be the first of a page; offsets count from it.
 * @param size     Bytes, at least 1.
 * @param region   Filled in.
 * @return As rma2_register().
 * @thread Any thread.
 * @path cold
 * @see rma2_unregister_nofree
 */
RMA2_API RMA2_ERROR rma2_register_nomalloc(RMA2_Port port, void *address, size_t size,
                                           RMA2_Region *region);

/**
 * End a registration; the region is the caller's own.
 *
 * @param port    An open port.
 * @param region  A region from rma2_register_nomalloc().
 * @return As rma2_unregister().
 * @thread Any thread.
 * @path cold
 * @see rma2_register_nomalloc
 */
RMA2_API RMA2_ERROR rma2_unregister_nofree(RMA2_Port port, RMA2_Region *region);

/**
 * The address of a byte of a region, for peers.
 *
 * @param region  A region.
 * @param offset  The byte, from the first that was registered; the one behind the last is allowed.
 * @param nla     Receives the address.
 * @retval RMA2_SUCCESS        There it is.
 * @retval RMA2_ERR_INV_VALUE  A pointer is NULL, or offset is beyond the region.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_ERROR rma2_get_nla(RMA2_Region *region, size_t offset, RMA2_NLA *nla);

/**
 * The address of a byte of a region, for this process.
 *
 * @param region   A region.
 * @param offset   The byte, from the first that was registered; the one behind the last is allowed.
 * @param address  Receives the address.
 * @retval RMA2_SUCCESS        There it is.
 * @retval RMA2_ERR_INV_VALUE  A pointer is NULL, or offset is beyond the region.
 * @thread Any thread.
 * @path hot
 * @see rma2_get_nla
 */
RMA2_API RMA2_ERROR rma2_get_va(RMA2_Region *region, size_t offset, void **address);

/**
 * How much memory a region has.
 *
 * @param region  A region.
 * @param size    Receives the bytes that were registered.
 * @retval RMA2_SUCCESS        There it is.
 * @retval RMA2_ERR_INV_VALUE  A pointer is NULL.
 * @thread Any thread.
 * @path cold
 */
RMA2_API RMA2_ERROR rma2_get_size(RMA2_Region *region, size_t *size);

/**
 * How many pages a region touches.
 *
 * @param region  A region.
 * @param count   Receives the number of pages of 4,096 bytes.
 * @retval RMA2_SUCCESS        There it is.
 * @retval RMA2_ERR_INV_VALUE  A pointer is NULL.
 * @thread Any thread.
 * @path cold
 */
RMA2_API RMA2_ERROR rma2_get_page_count(RMA2_Region *region, size_t *count);

/**
 * Is a buffer wholly inside a region?
 *
 * @param region  A region.
 * @param start   First byte of a buffer.
 * @param size    Its bytes.
 * @return 1 if it is, else 0, also if region is NULL.
 * @thread Any thread.
 * @path cold
 */
RMA2_API RMA2_Bool rma2_get_region_contained(RMA2_Region *region, void *start, size_t size);

/**
 * Does a buffer share a byte with a region?
 *
 * @param region  A region.
 * @param start   First byte of a buffer.
 * @param size    Its bytes.
 * @return 1 if it does, else 0, also if region is NULL.
 * @thread Any thread.
 * @path cold
 */
RMA2_API RMA2_Bool rma2_get_region_overlap(RMA2_Region *region, void *start, size_t size);

/**
 * Is a buffer just what was registered as a region?
 *
 * @param region  A region.
 * @param start   First byte of a buffer.
 * @param size    Its bytes.
 * @return 1 if it is, else 0, also if region is NULL.
 * @thread Any thread.
 * @path cold
 */
RMA2_API RMA2_Bool rma2_get_region_equal(RMA2_Region *region, void *start, size_t size);

/**
 * Register memory: rma2_register(), as a registration costs too little to be kept.
 *
 * @param port     An open port.
 * @param address  First byte.
 * @param size     Bytes, at least 1.
 * @param region   Receives the region, owned by the caller until rma2_unregister_cached().
 * @return As rma2_register().
 * @thread Any thread.
 * @path cold
 * @see rma2_unregister_cached
 */
RMA2_API RMA2_ERROR rma2_register_cached(RMA2_Port port, void *address, size_t size,
                                         RMA2_Region **region);

/**
 * End a registration: rma2_unregister().
 *
 * @param port    An open port.
 * @param region  A region from rma2_register_cached().
 * @return As rma2_unregister().
 * @thread Any thread.
 * @path cold
 * @see rma2_register_cached
 */
RMA2_API RMA2_ERROR rma2_unregister_cached(RMA2_Port port, RMA2_Region *region);

/**
 * Register 4,096 bytes for operations of this port alone: its peers do not reach them.
 *
 * @param port     An open port.
 * @param address  First byte. Need not be the first of a page; offsets count from it.
 * @param region   Receives the region, owned by the caller until rma2_unregister_adhoc().
 * @return As rma2_register().
 * @thread Any thread.
 * @path cold
 * @see rma2_unregister_adhoc
 */
RMA2_API RMA2_ERROR rma2_register_adhoc(RMA2_Port port, void *address, RMA2_Region **region);

/**
 * End a registration: rma2_unregister().
 *
 * @param port    An open port.
 * @param region  A region from rma2_register_adhoc().
 * @return As rma2_unregister().
 * @thread Any thread.
 * @path cold
 * @see rma2_register_adhoc
 */
RMA2_API RMA2_ERROR rma2_unregister_adhoc(RMA2_Port port, RMA2_Region *region);

/**
 * Write to remote memory. A program that polls the end finds all the rest, and finds what was put
 * over the same connection before. The completer's notification comes after the data, once.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param region    Local memory.
 * @param offset    First byte in it, from the first that was registered.
 * @param size      Bytes, 1 to 8 MiB.
 * @param remote    The remote address.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @retval RMA2_SUCCESS          Under way, or done.
 * @retval RMA2_ERR_INV_PORT     port is NULL.
 * @retval RMA2_ERR_INV_HANDLE   handle is NULL, or of another port.
 * @retval RMA2_ERR_INV_VALUE    A size, an offset or spec is out of range, or an address is not a
 * multiple of 8 where whole words are moved.
 * @retval RMA2_ERR_WRONG_ARG    The modifier asks for multicast or another unit's memory.
 * @retval RMA2_ERR_ATU          Local memory is not registered; or the remote one is not, if that
 * shows at once.
 * @retval RMA2_ERR_NO_DEVICE    The connection is to a register file (RMA2_CONN_RRA).
 * @retval RMA2_ERR_NO_CONNECT   The peer did not open its port in time, closed it, or died.
 * @retval RMA2_ERR_NO_DESC_MEM  There was no room for the operation in $VELO_EXTOLL_WAIT_MS: the
 * notification queue is full, or the peer's is.
 * @retval RMA2_ERR_ERROR        Something else failed.
 * @thread Any thread.
 * @path hot
 * @see rma2_post_get_bt, rma2_get_nla, rma2_noti_get_block
 */
RMA2_API RMA2_ERROR rma2_post_put_bt(RMA2_Port port, RMA2_Handle handle, RMA2_Region *region,
                                     uint32_t offset, uint32_t size, RMA2_NLA remote,
                                     RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);

/**
 * Read remote memory. The requester's notification comes to this port, as the completer's does,
 * which says that the data are here; the responder's to the peer.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param region    Local memory.
 * @param offset    First byte in it, from the first that was registered.
 * @param size      Bytes, 1 to 8 MiB.
 * @param remote    The remote address.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_get_block
 */
RMA2_API RMA2_ERROR rma2_post_get_bt(RMA2_Port port, RMA2_Handle handle, RMA2_Region *region,
                                     uint32_t offset, uint32_t size, RMA2_NLA remote,
                                     RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);

/**
 * Write whole 64-bit words to remote memory.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param region    Local memory.
 * @param offset    First byte in it, from the first that was registered.
 * @param size      Bytes, 1 to 8 MiB, a multiple of 8, as the addresses are.
 * @param remote    The remote address.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_get_block
 */
RMA2_API RMA2_ERROR rma2_post_put_qw(RMA2_Port port, RMA2_Handle handle, RMA2_Region *region,
                                     uint32_t offset, uint32_t size, RMA2_NLA remote,
                                     RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);

/**
 * Read whole 64-bit words of remote memory.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param region    Local memory.
 * @param offset    First byte in it, from the first that was registered.
 * @param size      Bytes, 1 to 8 MiB, a multiple of 8, as the addresses are.
 * @param remote    The remote address.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_post_get_bt
 */
RMA2_API RMA2_ERROR rma2_post_get_qw(RMA2_Port port, RMA2_Handle handle, RMA2_Region *region,
                                     uint32_t offset, uint32_t size, RMA2_NLA remote,
                                     RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier);

/**
 * Write to remote memory, from an address.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param local     The local address, of registered memory.
 * @param size      Bytes, 1 to 8 MiB.
 * @param remote    The remote address.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_get_block
 */
RMA2_API RMA2_ERROR rma2_post_put_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA local,
                                            uint32_t size, RMA2_NLA remote,
                                            RMA2_Notification_Spec spec,
                                            RMA2_Command_Modifier modifier);

/**
 * Read remote memory, to an address.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param local     The local address, of registered memory.
 * @param size      Bytes, 1 to 8 MiB.
 * @param remote    The remote address.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_post_get_bt
 */
RMA2_API RMA2_ERROR rma2_post_get_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA local,
                                            uint32_t size, RMA2_NLA remote,
                                            RMA2_Notification_Spec spec,
                                            RMA2_Command_Modifier modifier);

/**
 * Write whole 64-bit words to remote memory, from an address.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param local     The local address, of registered memory.
 * @param size      Bytes, 1 to 8 MiB, a multiple of 8, as the addresses are.
 * @param remote    The remote address.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_get_block
 */
RMA2_API RMA2_ERROR rma2_post_put_qw_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA local,
                                            uint32_t size, RMA2_NLA remote,
                                            RMA2_Notification_Spec spec,
                                            RMA2_Command_Modifier modifier);

/**
 * Read whole 64-bit words of remote memory, to an address.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param local     The local address, of registered memory.
 * @param size      Bytes, 1 to 8 MiB, a multiple of 8, as the addresses are.
 * @param remote    The remote address.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_post_get_bt
 */
RMA2_API RMA2_ERROR rma2_post_get_qw_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA local,
                                            uint32_t size, RMA2_NLA remote,
                                            RMA2_Notification_Spec spec,
                                            RMA2_Command_Modifier modifier);

/**
 * Write up to 8 bytes that are given by value.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param size      Bytes, 1 to 8.
 * @param value     The bytes, the lowest first.
 * @param remote    The remote address.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_get_block
 */
RMA2_API RMA2_ERROR rma2_post_immediate_put(RMA2_Port port, RMA2_Handle handle, uint32_t size,
                                            uint64_t value, RMA2_NLA remote,
                                            RMA2_Notification_Spec spec,
                                            RMA2_Command_Modifier modifier);

/**
 * Notify a peer: a class and a word, after the data that were put before.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param noti_class  The class; the peer has it from rma2_noti_get_notiput_class().
 * @param value     The word; the peer has it from rma2_noti_get_notiput_payload().
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_get_notiput_class, rma2_noti_get_notiput_payload
 */
RMA2_API RMA2_ERROR rma2_post_notification(RMA2_Port port, RMA2_Handle handle,
                                           RMA2_Class noti_class, uint64_t value,
                                           RMA2_Notification_Spec spec,
                                           RMA2_Command_Modifier modifier);

/**
 * Fetch a lock of the peer; if it is not above a value, add to it; atomically.
 *
 * A port has 4,096 locks at each of the two targets, all 0 when it is opened; they live in memory
 * of the port, which nothing else reaches. The requester's notification, with the value that is
 * compared with and result 0, comes to this port, then the completer's, with the lock's value from
 * now on and whether it was added to; the responder's to the peer. Each has the number.
 *
 * @param port      An open port.
 * @param handle    A connection of it.
 * @param target    RMA2_LOCK_COMPLETER or RMA2_LOCK_RESPONDER.
 * @param number    The lock, 0 to 4,095.
 * @param cmp       Compared with: the lock is added to if it is at most that.
 * @param add       Added. A lock has to stay in 32 bits.
 * @param spec      Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier  enum RMA2_Modifier.
 * @return As rma2_post_put_bt().
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_get_lock_value, rma2_noti_get_lock_number, rma2_noti_get_lock_result
 */
RMA2_API RMA2_ERROR rma2_post_lock(RMA2_Port port, RMA2_Handle handle, int target, uint32_t number,
                                   int32_t cmp, int32_t add, RMA2_Notification_Spec spec,
                                   RMA2_Command_Modifier modifier);

/**
 * Fill in a descriptor for a put or a get.
 *
 * @param descriptor  Filled in.
 * @param handle      The connection.
 * @param command     RMA2_BT_GET, RMA2_QW_GET, RMA2_BT_PUT or RMA2_QW_PUT.
 * @param size        Bytes, 1 to 8 MiB.
 * @param spec        Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier    enum RMA2_Modifier.
 * @param read_address   The address read: of a put a local one.
 * @param write_address  The address written: of a get a local one.
 * @retval RMA2_SUCCESS         Filled in.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL.
 * @retval RMA2_ERR_INV_VALUE   descriptor is NULL, or size or spec is out of range.
 * @retval RMA2_ERR_WRONG_ARG   The modifier is none.
 * @retval RMA2_ERR_WRONG_CMD   The command is neither a put nor a get.
 * @thread Any thread.
 * @path hot
 * @see rma2_post_descriptor
 */
RMA2_API RMA2_ERROR rma2_desc_set_put_get(RMA2_Descriptor *descriptor, RMA2_Handle handle,
                                          RMA2_Command command, uint32_t size,
                                          RMA2_Notification_Spec spec,
                                          RMA2_Command_Modifier modifier, RMA2_NLA read_address,
                                          RMA2_NLA write_address);

/**
 * Get memory for a descriptor.
 *
 * @param port        An open port.
 * @param descriptor  Receives it, aligned, owned by the caller until rma2_desc_free().
 * @retval RMA2_SUCCESS          There it is.
 * @retval RMA2_ERR_INV_PORT     port is NULL.
 * @retval RMA2_ERR_INV_VALUE    descriptor is NULL.
 * @retval RMA2_ERR_NO_DESC_MEM  Out of memory.
 * @thread Any thread.
 * @path cold
 * @see rma2_desc_free
 */
RMA2_API RMA2_ERROR rma2_desc_alloc(RMA2_Port port, RMA2_Descriptor **descriptor);

/**
 * Give a descriptor's memory back.
 *
 * @param port        An open port.
 * @param descriptor  One from rma2_desc_alloc(), or NULL.
 * @retval RMA2_SUCCESS       Given back.
 * @retval RMA2_ERR_INV_PORT  port is NULL.
 * @thread Any thread.
 * @path cold
 * @see rma2_desc_alloc
 */
RMA2_API RMA2_ERROR rma2_desc_free(RMA2_Port port, RMA2_Descriptor *descriptor);

/**
 * How many descriptors rma2_desc_alloc() has left. Only memory bounds them.
 *
 * @param port   An open port.
 * @param count  Receives INT_MAX.
 * @retval RMA2_SUCCESS        There it is.
 * @retval RMA2_ERR_INV_PORT   port is NULL.
 * @retval RMA2_ERR_INV_VALUE  count is NULL.
 * @thread Any thread.
 * @path cold
 */
RMA2_API RMA2_ERROR rma2_desc_query_free(RMA2_Port port, int *count);

/**
 * Fill in a descriptor for an immediate put.
 *
 * @param descriptor     Filled in.
 * @param handle         A connection.
 * @param spec           Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier       enum RMA2_Modifier.
 * @param size           Bytes, 1 to 8.
 * @param write_address  The remote address.
 * @param value          The bytes, the lowest first.
 * @retval RMA2_SUCCESS         Filled in.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL.
 * @retval RMA2_ERR_INV_VALUE   descriptor is NULL, or a number is out of range.
 * @retval RMA2_ERR_WRONG_ARG   The modifier is none.
 * @thread Any thread.
 * @path hot
 * @see rma2_post_descriptor, rma2_post_immediate_put
 */
RMA2_API RMA2_ERROR rma2_desc_set_immediate_put(RMA2_Descriptor *descriptor, RMA2_Handle handle,
                                                RMA2_Notification_Spec spec,
                                                RMA2_Command_Modifier modifier, uint32_t size,
                                                RMA2_NLA write_address, uint64_t value);

/**
 * Fill in a descriptor for a notification with a class.
 *
 * @param descriptor  Filled in.
 * @param handle      A connection.
 * @param spec        Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier    enum RMA2_Modifier.
 * @param noti_class  The class.
 * @param value       The word.
 * @retval RMA2_SUCCESS         Filled in.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL.
 * @retval RMA2_ERR_INV_VALUE   descriptor is NULL, or a number is out of range.
 * @retval RMA2_ERR_WRONG_ARG   The modifier is none.
 * @thread Any thread.
 * @path hot
 * @see rma2_post_descriptor, rma2_post_notification
 */
RMA2_API RMA2_ERROR rma2_desc_set_noti_put(RMA2_Descriptor *descriptor, RMA2_Handle handle,
                                           RMA2_Notification_Spec spec,
                                           RMA2_Command_Modifier modifier, RMA2_Class noti_class,
                                           uint64_t value);

/**
 * Change the class and the word of a descriptor for a notification with a class.
 *
 * @param descriptor  One that rma2_desc_set_noti_put() filled in.
 * @param noti_class  The class.
 * @param value       The word.
 * @retval RMA2_SUCCESS        Changed.
 * @retval RMA2_ERR_INV_VALUE  descriptor is NULL.
 * @thread Any thread.
 * @path hot
 * @see rma2_desc_set_noti_put, rma2_post_descriptor
 */
RMA2_API RMA2_ERROR rma2_desc_set_notification_value(RMA2_Descriptor *descriptor,
                                                     RMA2_Class noti_class, uint64_t value);

/**
 * Fill in a descriptor for a lock.
 *
 * @param descriptor  Filled in.
 * @param handle      A connection.
 * @param spec        Which sides are notified, or-ed; see enum RMA2_Spec.
 * @param modifier    enum RMA2_Modifier.
 * @param target      RMA2_LOCK_COMPLETER or RMA2_LOCK_RESPONDER.
 * @param number      The lock, 0 to 4,095.
 * @param cmp         Compared with, an int32_t: the lock is added to if it is at most that.
 * @param add         Added, an int32_t.
 * @retval RMA2_SUCCESS         Filled in.
 * @retval RMA2_ERR_INV_HANDLE  handle is NULL.
 * @retval RMA2_ERR_INV_VALUE   descriptor is NULL, or a number is out of range.
 * @retval RMA2_ERR_WRONG_ARG   The modifier is none.
 * @thread Any thread.
 * @path hot
 * @see rma2_post_descriptor, rma2_post_lock
 */
RMA2_API RMA2_ERROR rma2_desc_set_lock(RMA2_Descriptor *descriptor, RMA2_Handle handle,
                                       RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier,
                                       uint8_t target, uint32_t number, uint32_t cmp, uint32_t add);

/**
 * Post a descriptor: a put, a get, an immediate put, a notification or a lock.
 *
 * @param port        An open port.
 * @param handle      A connection of it, to the node and context that the descriptor names.
 * @param descriptor  The descriptor; not kept.
 * @return As rma2_post_put_bt().
 * @retval RMA2_ERR_WRONG_CMD  The command is none that can be posted, or the descriptor is none.
 * @thread Any thread.
 * @path hot
 * @see rma2_desc_set_put_get
 */
RMA2_API RMA2_ERROR rma2_post_descriptor(RMA2_Port port, RMA2_Handle handle,
                                         RMA2_Descriptor *descriptor);

/**
 * Take the next notification if one is there. Never waits.
 *
 * @param port          An open port.
 * @param notification  Receives it; it stays in the queue until rma2_noti_free().
 * @retval RMA2_SUCCESS        Taken.
 * @retval RMA2_NO_NOTI        None is there that was not taken before.
 * @retval RMA2_ERR_INV_PORT   port is NULL.
 * @retval RMA2_ERR_INV_VALUE  notification is NULL.
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_free, rma2_noti_get_block
 */
RMA2_API RMA2_ERROR rma2_noti_probe(RMA2_Port port, RMA2_Notification **notification);

/**
 * Take the next notification, waiting for it. Waits on when a peer dies, even the only one: another
 * process may still send one. An operation of this port that fails for that ends the wait, since it
 * leaves a notification with an error.
 *
 * @param port          An open port.
 * @param notification  Receives it; it stays in the queue until rma2_noti_free().
 * @retval RMA2_SUCCESS         Taken.
 * @retval RMA2_ERR_INV_PORT    port is NULL.
 * @retval RMA2_ERR_INV_VALUE   notification is NULL.
 * @retval RMA2_ERR_NO_DESC_MEM All of the queue are taken, and none is freed.
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_free, rma2_noti_probe
 */
RMA2_API RMA2_ERROR rma2_noti_get_block(RMA2_Port port, RMA2_Notification **notification);

/**
 * Take the next notification if it is one of a kind. Only the next is looked at.
 *
 * @param port          An open port.
 * @param cmd           Its command, RMA2_PUTS, RMA2_GETS or RMA2_ANY.
 * @param nodeid        The other side's node, or RMA2_NODEID_ANY.
 * @param vpid          The other side's context, or RMA2_VPID_ANY.
 * @param type          The side that it is for.
 * @param nla           Its local address, or RMA2_ANY_NLA.
 * @param flags         RMA2_DEFAULT_FLAG, or RMA2_BLOCK_FLAG and RMA2_MATCH_LAST_NLA_FLAG, or-ed.
 * @param notification  Receives it, or the one that does not match; it stays in the queue until
 * rma2_noti_free(). NULL: none is there.
 * @retval RMA2_SUCCESS          Taken.
 * @retval RMA2_NO_NOTI          None is there that was not taken before.
 * @retval RMA2_ERR_NO_MATCH     The next one is another, and is not taken.
 * @retval RMA2_ERR_INV_PORT     port is NULL.
 * @retval RMA2_ERR_INV_VALUE    notification is NULL.
 * @retval RMA2_ERR_NO_DESC_MEM  All of the queue are taken, and none is freed: of a call
 * that waits.
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_match_block, rma2_noti_probe, rma2_noti_free
 */
RMA2_API RMA2_ERROR rma2_noti_match(RMA2_Port port, RMA2_Command cmd, RMA2_Nodeid nodeid,
                                    RMA2_VPID vpid, RMA2_Notification_Spec type, RMA2_NLA nla,
                                    int flags, RMA2_Notification **notification);

/**
 * Wait for the next notification, and take it if it is one of a kind.
 *
 * @param port          An open port.
 * @param cmd           Its command, RMA2_PUTS, RMA2_GETS or RMA2_ANY.
 * @param nodeid        The other side's node, or RMA2_NODEID_ANY.
 * @param vpid          The other side's context, or RMA2_VPID_ANY.
 * @param type          The side that it is for.
 * @param nla           Its local address, or RMA2_ANY_NLA.
 * @param flags         RMA2_DEFAULT_FLAG or RMA2_MATCH_LAST_NLA_FLAG.
 * @param notification  As of rma2_noti_match().
 * @return As rma2_noti_match().
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_match
 */
RMA2_API RMA2_ERROR rma2_noti_match_block(RMA2_Port port, RMA2_Command cmd, RMA2_Nodeid nodeid,
                                          RMA2_VPID vpid, RMA2_Notification_Spec type, RMA2_NLA nla,
                                          int flags, RMA2_Notification **notification);

/**
 * Take the next notification if it is a peer's, of a class.
 *
 * @param port          An open port.
 * @param noti_class    Its class, or RMA2_CLASS_ANY.
 * @param nodeid        The other side's node, or RMA2_NODEID_ANY.
 * @param vpid          The other side's context, or RMA2_VPID_ANY.
 * @param notification  As of rma2_noti_match().
 * @return As rma2_noti_match().
 * @thread Any thread.
 * @path hot
 * @see rma2_post_notification
 */
RMA2_API RMA2_ERROR rma2_noti_noti_match(RMA2_Port port, RMA2_Class noti_class, RMA2_Nodeid nodeid,
                                         RMA2_VPID vpid, RMA2_Notification **notification);

/**
 * Take the next notification if it is of a lock of this port.
 *
 * @param port          An open port.
 * @param number        The lock.
 * @param nodeid        The other side's node, or RMA2_NODEID_ANY.
 * @param vpid          The other side's context, or RMA2_VPID_ANY.
 * @param notification  As of rma2_noti_match().
 * @return As rma2_noti_match().
 * @thread Any thread.
 * @path hot
 * @see rma2_post_lock
 */
RMA2_API RMA2_ERROR rma2_noti_lock_match(RMA2_Port port, uint32_t number, RMA2_Nodeid nodeid,
                                         RMA2_VPID vpid, RMA2_Notification **notification);

/**
 * Wait for the next notification, and take it if it is a peer's, of a class.
 *
 * @param port          An open port.
 * @param noti_class    Its class, or RMA2_CLASS_ANY.
 * @param nodeid        The other side's node, or RMA2_NODEID_ANY.
 * @param vpid          The other side's context, or RMA2_VPID_ANY.
 * @param notification  As of rma2_noti_match().
 * @return As rma2_noti_match().
 * @thread Any thread.
 * @path hot
 * @see rma2_post_notification
 */
RMA2_API RMA2_ERROR rma2_noti_noti_match_block(RMA2_Port port, RMA2_Class noti_class,
                                               RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                               RMA2_Notification **notification);

/**
 * Wait for the next notification, and take it if it is of a lock of this port.
 *
 * @param port          An open port.
 * @param number        The lock.
 * @param nodeid        The other side's node, or RMA2_NODEID_ANY.
 * @param vpid          The other side's context, or RMA2_VPID_ANY.
 * @param notification  As of rma2_noti_match().
 * @return As rma2_noti_match().
 * @thread Any thread.
 * @path hot
 * @see rma2_post_lock
 */
RMA2_API RMA2_ERROR rma2_noti_lock_match_block(RMA2_Port port, uint32_t number, RMA2_Nodeid nodeid,
                                               RMA2_VPID vpid, RMA2_Notification **notification);

/**
 * Copy a notification, so that it can be freed and still be read.
 *
 * @param notification  The notification.
 * @param copy          Receives the copy. It is of no queue: rma2_noti_free() refuses it.
 * @retval RMA2_SUCCESS        Copied.
 * @retval RMA2_ERR_INV_VALUE  A pointer is NULL.
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_free
 */
RMA2_API RMA2_ERROR rma2_noti_dup(RMA2_Notification *notification, RMA2_Notification *copy);

/**
 * Free a notification: the oldest that was taken and is not freed.
 *
 * @param port          An open port.
 * @param notification  The notification; its words are 0 from now on.
 * @retval RMA2_SUCCESS        Freed.
 * @retval RMA2_ERR_INV_PORT   port is NULL.
 * @retval RMA2_ERR_INV_VALUE  It is not the oldest, or none is taken.
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_probe, rma2_noti_get_block
 */
RMA2_API RMA2_ERROR rma2_noti_free(RMA2_Port port, RMA2_Notification *notification);

/**
 * Print a notification to the standard output.
 *
 * @param notification  The notification.
 * @thread Any thread.
 * @path cold
 */
RMA2_API void rma2_noti_dump(RMA2_Notification *notification);

/**
 * Print a notification to a file.
 *
 * @param notification  The notification.
 * @param file          The file.
 * @thread Any thread.
 * @path cold
 * @see rma2_noti_dump
 */
RMA2_API void rma2_noti_fdump(RMA2_Notification *notification, FILE *file);

/**
 * Print a notification into a string.
 *
 * @param notification  The notification.
 * @param text          Receives a line, cut if there is too little room.
 * @param size          Size of text.
 * @thread Any thread.
 * @path cold
 * @see rma2_noti_dump
 */
RMA2_API void rma2_noti_sdump(RMA2_Notification *notification, char *text, int size);

/**
 * How much a whole operation moved. EXTOLL's hardware notified of its last packet; here a
 * notification is of the whole operation in any case.
 *
 * @param start         The operation's first address; not looked at.
 * @param notification  The notification.
 * @return Bytes: those of rma2_noti_get_size().
 * @thread Any thread.
 * @path hot
 * @see rma2_noti_get_size
 */
RMA2_API uint32_t rma2_noti_get_total_size(RMA2_NLA start, RMA2_Notification *notification);

/**
 * The modifier of the operation that a notification is of.
 *
 * @param notification  The notification.
 * @return enum RMA2_Modifier.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_Command_Modifier rma2_noti_get_mode(RMA2_Notification *notification);

/**
 * The command that a notification is of.
 *
 * @param notification  The notification.
 * @return One of enum RMA2_Command_Code.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_Command rma2_noti_get_cmd(RMA2_Notification *notification);

/**
 * The side that a notification is for.
 *
 * @param notification  The notification.
 * @return RMA2_REQUESTER_NOTIFICATION, RMA2_RESPONDER_NOTIFICATION or RMA2_COMPLETER_NOTIFICATION.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_Notification_Spec rma2_noti_get_notification_type(RMA2_Notification *notification);

/**
 * The node of the other side.
 *
 * @param notification  The notification.
 * @return Its number.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_Nodeid rma2_noti_get_remote_nodeid(RMA2_Notification *notification);

/**
 * The context of the other side.
 *
 * @param notification  The notification.
 * @return Its number.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_VPID rma2_noti_get_remote_vpid(RMA2_Notification *notification);

/**
 * Where memory of this port was read or written.
 *
 * @param notification  The notification.
 * @return The address.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_NLA rma2_noti_get_local_address(RMA2_Notification *notification);

/**
 * How much was moved.
 *
 * @param notification  The notification.
 * @return Bytes, of the whole operation.
 * @thread Any thread.
 * @path hot
 */
RMA2_API uint32_t rma2_noti_get_size(RMA2_Notification *notification);

/**
 * Why an operation failed.
 *
 * @param notification  The notification.
 * @return 0: it did not. 1: no memory is registered there. 2: the peer is gone. 3: another reason.
 * @thread Any thread.
 * @path hot
 */
RMA2_API uint8_t rma2_noti_get_error(RMA2_Notification *notification);

/**
 * The word of rma2_post_notification().
 *
 * @param notification  The notification.
 * @return The word.
 * @thread Any thread.
 * @path hot
 */
RMA2_API uint64_t rma2_noti_get_notiput_payload(RMA2_Notification *notification);

/**
 * The class of rma2_post_notification().
 *
 * @param notification  The notification.
 * @return The class.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_Class rma2_noti_get_notiput_class(RMA2_Notification *notification);

/**
 * A lock's value.
 *
 * @param notification  The notification.
 * @return Of the completer's notification the value after the operation; of the requester's the
 * value that is compared with; of a notification to the lock's owner 0.
 * @thread Any thread.
 * @path hot
 */
RMA2_API int32_t rma2_noti_get_lock_value(RMA2_Notification *notification);

/**
 * The number of a lock.
 *
 * @param notification  The notification.
 * @return The number.
 * @thread Any thread.
 * @path hot
 */
RMA2_API uint32_t rma2_noti_get_lock_number(RMA2_Notification *notification);

/**
 * Whether rma2_post_lock() added.
 *
 * @param notification  The notification.
 * @return Of the completer's notification 1 if it did, 0 if the lock is above; else 0.
 * @thread Any thread.
 * @path hot
 */
RMA2_API uint8_t rma2_noti_get_lock_result(RMA2_Notification *notification);

/**
 * The size of the notification queue.
 *
 * @param port  An open port.
 * @return Bytes, 16 for each notification: 262,144 unless rma2_set_queue_size() chose another; 0 if
 * port is NULL.
 * @thread Any thread.
 * @path hot
 * @see rma2_set_queue_size
 */
RMA2_API uint32_t rma2_get_queue_size(RMA2_Port port);

/**
 * Choose the size of the notification queue, before there is traffic.
 *
 * @param port   An open port.
 * @param bytes  16 for each notification: a multiple of 4,096, at most 1 GiB.
 * @retval RMA2_SUCCESS        So it is.
 * @retval RMA2_ERR_INV_PORT   port is NULL.
 * @retval RMA2_ERR_INV_VALUE  bytes is 0, no multiple of 4,096, or too large.
 * @retval RMA2_ERR_NOT_YET    A notification is in the queue; the size stays.
 * @retval RMA2_ERR_NO_MEM     Out of memory; the size stays.
 * @thread Any thread.
 * @path cold
 * @see rma2_get_queue_size
 */
RMA2_API RMA2_ERROR rma2_set_queue_size(RMA2_Port port, uint32_t bytes);

/**
 * The size of one piece of the notification queue. Here it is in one piece in any case.
 *
 * @param port  An open port.
 * @return Bytes: what rma2_set_queue_segment_size() chose, else the size of the queue; 0 if port is
 * NULL.
 * @thread Any thread.
 * @path cold
 * @see rma2_get_queue_size
 */
RMA2_API uint32_t rma2_get_queue_segment_size(RMA2_Port port);

/**
 * Choose the size of one piece of the notification queue, which makes no difference here.
 *
 * @param port   An open port.
 * @param bytes  A multiple of 4,096, at most 1 GiB.
 * @retval RMA2_SUCCESS        rma2_get_queue_segment_size() tells it from now on.
 * @retval RMA2_ERR_INV_PORT   port is NULL.
 * @retval RMA2_ERR_INV_VALUE  bytes is 0, no multiple of 4,096, or too large.
 * @thread Any thread.
 * @path cold
 * @see rma2_get_queue_segment_size
 */
RMA2_API RMA2_ERROR rma2_set_queue_segment_size(RMA2_Port port, uint32_t bytes);

/**
 * Does nothing, and needs not: EXTOLL's hardware had a buffer between a program's stores and the
 * device, which this call emptied. Here there is none; docs/guides/extoll.md says how operations
 * make progress.
 *
 * @param port  An open port.
 * @retval RMA2_SUCCESS       There is nothing to drain.
 * @retval RMA2_ERR_INV_PORT  port is NULL.
 * @thread Any thread.
 * @path hot
 */
RMA2_API RMA2_ERROR rma2_replay_buffer_drain(RMA2_Port port);

/**
 * Choose when that buffer is emptied, which makes no difference here.
 *
 * @param port  An open port; with NULL nothing happens.
 * @param mode  enum RMA2_Replay_Mode.
 * @thread Any thread.
 * @path cold
 * @see rma2_get_replay_buffer_mode, rma2_replay_buffer_drain
 */
RMA2_API void rma2_set_replay_mode(RMA2_Port port, RMA2_Replay_Buffer_Mode mode);

/**
 * When that buffer is emptied.
 *
 * @param port  An open port.
 * @return What rma2_set_replay_mode() chose; RMA2_REPLAY_MANUAL before, and if port is NULL.
 * @thread Any thread.
 * @path cold
 * @see rma2_set_replay_mode
 */
RMA2_API RMA2_Replay_Buffer_Mode rma2_get_replay_buffer_mode(RMA2_Port port);

/**
 * The name and meaning of a result.
 *
 * @param error   The result of a call.
 * @param buffer  Receives them, cut if there is too little room.
 * @param length  Size of buffer.
 * @thread Any thread.
 * @path cold
 * @see rma2_perror
 */
RMA2_API void rma2_serror(RMA2_ERROR error, char *buffer, int length);

/**
 * Print the name and meaning of a result to the standard error.
 *
 * @param error   The result of a call.
 * @param header  Printed before them.
 * @thread Any thread.
 * @path cold
 * @see rma2_serror
 */
RMA2_API void rma2_perror(RMA2_ERROR error, const char *header);

#ifdef __cplusplus
}
#endif

#endif
