/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rma.h
 * @brief Remote memory: register, put, get, atomic updates, notifications.
 *
 * A port **registers** memory for its peers and hands them the **key**. A peer then reads, writes
 * or updates that memory without its owner's program taking part, and whoever asked for it is told
 * by a **notification**: at the requester when its operation is done, at the responder when its
 * memory was read, at the completer when its memory was written. Each port has one notification
 * queue, for all three.
 *
 * Memory from velo_mem_alloc() is mapped by the peers and reached with loads and stores. Other
 * memory is reached with cross-memory attach. Where the kernel forbids that, and for atomic updates
 * of it, the owner's library carries the operation out the next time it is called
 * (velo_rma_progress(), velo_notification_poll(), or any wait on the same velo_rma).
 *
 * Cross-memory attach is tried when a peer is connected, and left alone between ports opened to a
 * group. $VELO_RMA_ATTACH set to 0 forbids it; otherwise a unit permits it to every process of its
 * user, where the kernel lets it (Yama, PR_SET_PTRACER).
 *
 * Promises:
 *  - an operation outside a registration, or without the right, is refused, counted, reported to
 *    the requester, and touches nothing;
 *  - data is visible before the notification that announces it;
 *  - operations on one peer start in order; they end in order only around a velo_rma_fence();
 *  - no call but the waits blocks, and units that ask each other for much at once do not either;
 *  - after velo_mem_deregister() returned, nobody touches the memory;
 *  - a peer that dies in the middle of an operation delays nobody for longer than it takes to
 *    notice.
 *
 * Threads: one thread at a time uses a velo_rma and its peers and memories.
 *
 * Statuses are those of velo.h.
 */
#ifndef VELO_RMA_H
#define VELO_RMA_H

#include <velo/velo.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The RMA unit of a port; opaque. */
struct velo_rma;
/** The right to reach one peer's registered memory; opaque. */
struct velo_rma_peer;
/** Memory that peers may reach; opaque. */
struct velo_mem;

/** Names registered memory to its peers. Not secret and not guessable either; opaque. */
typedef uint64_t velo_key_t;

/** What a registration permits. */
enum velo_right {
    VELO_RIGHT_READ = 1,   /**< Get. */
    VELO_RIGHT_WRITE = 2,  /**< Put and immediate put. */
    VELO_RIGHT_ATOMIC = 4, /**< Updates: fetch-compare-and-add, fetch-op, compare-and-swap. */
    VELO_RIGHT_ALL = 7,    /**< All of them. */
};

/** As peer of a registration: every peer that may connect to the port. */
#define VELO_PEER_ANY UINT32_MAX

/** Registrations that one velo_rma can hold at once. */
#define VELO_MEMS_MAX 65536u
/** Operations that may be under way at once; more are VELO_AGAIN. */
#define VELO_RMA_OPS_MAX 1024u
/** Notifications the queue holds; while it is full, peers that would add one are pushed back. Each
 *  operation under way holds a place for its own. */
#define VELO_NOTIFICATIONS_MAX 4096u

/** Who is to be told when an operation is done. Flags; one that an operation does not have is
 *  VELO_ERR_ARG. */
enum velo_notify {
    VELO_NOTIFY_NONE = 0,      /**< Nobody. */
    VELO_NOTIFY_REQUESTER = 1, /**< Us: the operation is done. */
    VELO_NOTIFY_RESPONDER = 2, /**< The peer, of a get or an update: its memory was read. */
    VELO_NOTIFY_COMPLETER = 4, /**< The peer, of a put: its memory was written. */
};

/** The class of a notification. */
enum velo_notification_class {
    VELO_CLASS_REQUESTER = 1, /**< To the requester: its operation is done. */
    VELO_CLASS_RESPONDER = 2, /**< To the responder: its memory was read. */
    VELO_CLASS_COMPLETER = 4, /**< To the completer: its memory was written. */
    VELO_CLASS_ERROR = 8,     /**< To the requester: its operation failed. Comes unasked too. */
};

/** The operation that a notification speaks of. */
enum velo_rma_op {
    VELO_OP_PUT = 1,               /**< velo_put(), velo_put_strided(), velo_put_list(). */
    VELO_OP_GET = 2,               /**< velo_get(), velo_get_strided(), velo_get_list(). */
    VELO_OP_PUT_IMMEDIATE = 3,     /**< velo_put_immediate(). */
    VELO_OP_FETCH_COMPARE_ADD = 4, /**< velo_fetch_compare_add(). */
    VELO_OP_NOTIFY = 5,            /**< velo_notify(). */
    VELO_OP_FETCH_OP = 6,          /**< velo_fetch_op(). */
    VELO_OP_COMPARE_SWAP = 7,      /**< velo_compare_swap(). */
};

/** One notification. */
struct velo_notification {
    uint8_t class_;     /**< enum velo_notification_class. */
    uint8_t op;         /**< enum velo_rma_op. */
    int16_t status;     /**< VELO_OK, or why the operation failed (class ERROR). */
    velo_id_t peer;     /**< The other side. */
    uint64_t len_bytes; /**< Bytes moved. */
    uint64_t address;   /**< At the requester the local address; at responder and completer the
                             address in its own memory that was read or written. */
    uint64_t cookie;    /**< The word given with the operation. */
};

/** What a velo_rma has done since it was opened. */
struct velo_rma_counters {
    uint64_t puts;          /**< Put operations done, of every kind. */
    uint64_t gets;          /**< Get operations done, of every kind. */
    uint64_t atomics;       /**< Updates done, of every kind. */
    uint64_t bytes;         /**< Bytes moved by those. */
    uint64_t direct;        /**< Done by loads and stores, or by hardware. */
    uint64_t attach;        /**< Operations done by cross-memory attach. */
    uint64_t asked;         /**< Operations that the owner's library carried out for us. */
    uint64_t served;        /**< Operations that we carried out for peers. */
    uint64_t refused;       /**< Ours, that a peer's registration did not permit. */
    uint64_t refused_peers; /**< Peers' operations that ours did not permit. */
    uint64_t registered;    /**< Registrations now. */
};

/** One piece of a list operation. The list stays the caller's, and unchanged until the operation is
 *  done. */
struct velo_piece {
    void *local;        /**< Local memory; only read by a put. */
    uint64_t offset;    /**< Offset in the remote registration. */
    uint64_t len_bytes; /**< Length. */
};

/** A block pattern: count blocks of block_bytes, each side with a stride of its own. */
struct velo_stride {
    uint64_t block_bytes;         /**< Length of one block. */
    uint64_t count;               /**< Number of blocks. */
    uint64_t local_stride_bytes;  /**< From the start of one block to the next in local memory. */
    uint64_t remote_stride_bytes; /**< The same in the remote registration. */
};

/**
 * Open the RMA unit of a port.
 *
 * @param port  An open port; must outlive the unit. At most one unit a port.
 * @param rma   Receives the unit, owned by the caller until velo_rma_close().
 * @retval VELO_OK            Open; peers can reach what is registered from here on.
 * @retval VELO_ERR_ARG       An argument is NULL.
 * @retval VELO_ERR_STATE     The port has one already.
 * @retval VELO_ERR_ACCESS    The shared-memory directory is not writable.
 * @retval VELO_ERR_NO_SPACE  The shared-memory file system is full.
 * @retval VELO_ERR_NO_MEMORY Out of memory or mappings.
 * @retval VELO_ERR_SYSTEM    Another system call failed.
 * @thread Any thread.
 * @path cold
 * @source EXTOLL, high message rates, section III (RMA)
 * @see velo_rma_close
 */
VELO_API int velo_rma_open(struct velo_port *port, struct velo_rma **rma);

/**
 * Close the unit: deregisters everything, closes its peers.
 *
 * @param rma  The unit; NULL is allowed and does nothing.
 * @retval VELO_OK  Closed; nobody touches what was registered any more.
 * @thread One thread, while no other uses it.
 * @path cold
 */
VELO_API int velo_rma_close(struct velo_rma *rma);

/**
 * Gain reach of a peer's registered memory.
 *
 * @param rma         The unit.
 * @param id          The peer's port, in the same domain; may be our own.
 * @param timeout_ns  How long to wait for it to open its unit; 0 tries once, VELO_FOREVER waits.
 * @param peer        Receives the peer, owned by the caller until velo_rma_disconnect() or
 *                    velo_rma_close().
 * @return As velo_connect().
 * @retval VELO_ERR_NO_PEER  No such port was open, with an RMA unit, in the time given.
 * @retval VELO_ERR_FULL     The peer's connection table is full, or this unit has VELO_CONNS_MAX
 *                           peers.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_rma_disconnect, velo_put, velo_get
 */
VELO_API int velo_rma_connect(struct velo_rma *rma, velo_id_t id, int64_t timeout_ns,
                              struct velo_rma_peer **peer);

/**
 * Give a peer up. Operations under way on it end with a VELO_ERR_PEER_CLOSED error notification.
 *
 * @param peer  The peer; NULL is allowed and does nothing.
 * @retval VELO_OK  Done.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_rma_connect
 */
VELO_API int velo_rma_disconnect(struct velo_rma_peer *peer);

/**
 * Register memory. Registrations may nest and overlap.
 *
 * No system call, but when there have never been so many before: the table of registrations has
 * room for 1,024 and then doubles.
 *
 * @param rma        The unit.
 * @param addr       First byte; the memory stays the caller's and must stay mapped.
 * @param len_bytes  Length, at least 1.
 * @param rights     enum velo_right, or-ed.
 * @param peer       The one peer that may use it, or VELO_PEER_ANY.
 * @param mem        Receives the registration, owned by the caller until velo_mem_deregister().
 * @retval VELO_OK            Registered.
 * @retval VELO_ERR_ARG       An argument is NULL or out of range.
 * @retval VELO_ERR_FULL      VELO_MEMS_MAX are registered already.
 * @retval VELO_ERR_NO_SPACE  The shared-memory file system has no room for a larger table.
 * @retval VELO_ERR_SYSTEM    Another system call failed.
 * @thread One thread at a time per unit.
 * @path hot
 * @source EXTOLL, high message rates, section IV (registration)
 * @see velo_mem_alloc, velo_mem_key, velo_mem_deregister
 */
VELO_API int velo_mem_register(struct velo_rma *rma, void *addr, size_t len_bytes, int rights,
                               velo_id_t peer, struct velo_mem **mem);

/**
 * Allocate memory that peers reach with loads and stores, and register it. Zeroed, page aligned.
 *
 * @param rma        The unit.
 * @param len_bytes  Length, at least 1.
 * @param rights     enum velo_right, or-ed.
 * @param peer       The one peer that may use it, or VELO_PEER_ANY.
 * @param mem        Receives the registration, owned by the caller until velo_mem_deregister(),
 *                   which frees the memory.
 * @retval VELO_OK            Allocated.
 * @retval VELO_ERR_ARG       An argument is NULL or out of range.
 * @retval VELO_ERR_FULL      VELO_MEMS_MAX are registered already.
 * @retval VELO_ERR_NO_SPACE  The shared-memory file system is full.
 * @retval VELO_ERR_NO_MEMORY Out of memory or mappings.
 * @retval VELO_ERR_SYSTEM    Another system call failed.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_mem_register, velo_mem_addr, velo_mem_deregister
 */
VELO_API int velo_mem_alloc(struct velo_rma *rma, size_t len_bytes, int rights, velo_id_t peer,
                            struct velo_mem **mem);

/**
 * End a registration; of allocated memory, also free it.
 *
 * Waits for operations that are touching the memory now, at most until their requester dies.
 *
 * @param mem  The registration; NULL is allowed and does nothing.
 * @retval VELO_OK  Nobody touches the memory any more; the key is worthless.
 * @thread One thread at a time per unit.
 * @path hot
 */
VELO_API int velo_mem_deregister(struct velo_mem *mem);

/**
 * The key that peers need; send it to them.
 *
 * @param mem  A registration.
 * @return The key.
 * @thread Any thread.
 * @path hot
 */
VELO_API velo_key_t velo_mem_key(const struct velo_mem *mem);

/**
 * Where the memory is in this process.
 *
 * @param mem  A registration.
 * @return Its first byte.
 * @thread Any thread.
 * @path hot
 */
VELO_API void *velo_mem_addr(const struct velo_mem *mem);

/**
 * Find what a peer has registered at an address of its own, for layers that are told addresses: a
 * key that they got earlier may be of a registration that has ended since.
 *
 * Looks through all that the peer has registered. Where registrations overlap, any of them.
 *
 * @param peer       The peer.
 * @param address    First byte, as velo_mem_addr() or the peer's program has it.
 * @param len_bytes  Length, at least 1.
 * @param rights     enum velo_right, or-ed: all that is needed.
 * @param key        Receives the key.
 * @param offset     Receives the offset of that byte in the registration.
 * @retval VELO_OK              Found; its owner may still end the registration at any time.
 * @retval VELO_ERR_ARG         A pointer is NULL, or len_bytes or rights are out of range.
 * @retval VELO_ERR_ACCESS      The peer has no such registration for us.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its unit.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_mem_key, velo_mem_addr
 */
VELO_API int velo_mem_find(struct velo_rma_peer *peer, uint64_t address, size_t len_bytes,
                           int rights, velo_key_t *key, uint64_t *offset);

/**
 * Write to a peer's memory.
 *
 * @param peer       The peer.
 * @param local      Source; not to be changed before the requester is notified or velo_rma_flush().
 * @param len_bytes  Length; 0 is allowed.
 * @param key        The peer's registration.
 * @param offset     First byte in it.
 * @param notify     enum velo_notify, or-ed.
 * @param cookie     Given to each side that is notified.
 * @retval VELO_OK              Under way, or done.
 * @retval VELO_AGAIN           No room; poll notifications, then try again.
 * @retval VELO_ERR_ARG         An argument is NULL or out of range.
 * @retval VELO_ERR_FULL        The peer cannot connect back to us to answer.
 * @retval VELO_ERR_ACCESS      Refused at once: no such registration, outside it, or no right.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its unit.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_CORRUPT     The peer's memory makes no sense.
 * @retval VELO_ERR_SYSTEM      A system call failed.
 * @thread One thread at a time per unit.
 * @path hot
 * @source EXTOLL, high message rates, section III (RMA)
 * @see velo_get, velo_put_immediate, velo_put_strided, velo_put_list, velo_rma_flush
 */
VELO_API int velo_put(struct velo_rma_peer *peer, const void *local, size_t len_bytes,
                      velo_key_t key, uint64_t offset, int notify, uint64_t cookie);

/**
 * Read a peer's memory.
 *
 * @param peer       The peer.
 * @param local      Destination; filled in when the requester is notified, or by velo_rma_flush().
 * @param len_bytes  Length; 0 is allowed.
 * @param key        The peer's registration.
 * @param offset     First byte in it.
 * @param notify     enum velo_notify, or-ed.
 * @param cookie     Given to each side that is notified.
 * @return As velo_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source EXTOLL, high message rates, section III (RMA)
 * @see velo_get_strided, velo_get_list, velo_rma_flush
 */
VELO_API int velo_get(struct velo_rma_peer *peer, void *local, size_t len_bytes, velo_key_t key,
                      uint64_t offset, int notify, uint64_t cookie);

/**
 * Write up to 8 bytes that are given by value.
 *
 * @param peer       The peer.
 * @param value      The bytes, the lowest first.
 * @param len_bytes  1 to 8. With 1, 2, 4 or 8, an aligned target and allocated memory the write is
 *                   one store.
 * @param key        The peer's registration.
 * @param offset     First byte in it.
 * @param notify     enum velo_notify, or-ed.
 * @param cookie     Given to each side that is notified.
 * @return As velo_put().
 * @thread One thread at a time per unit.
 * @path hot
 */
VELO_API int velo_put_immediate(struct velo_rma_peer *peer, uint64_t value, size_t len_bytes,
                                velo_key_t key, uint64_t offset, int notify, uint64_t cookie);

/**
 * Notify a peer; no memory is written. It arrives after what was put to it before.
 *
 * @param peer    The peer.
 * @param notify  VELO_NOTIFY_COMPLETER, and VELO_NOTIFY_REQUESTER if wanted.
 * @param cookie  Given to each side that is notified.
 * @return As velo_put().
 * @thread One thread at a time per unit.
 * @path hot
 */
VELO_API int velo_notify(struct velo_rma_peer *peer, int notify, uint64_t cookie);

/** Flag of velo_fetch_compare_add(): add whatever the old value is. */
#define VELO_ADD_ALWAYS 1

/**
 * Fetch a 64-bit word; if it equals `compare`, add to it; atomically.
 *
 * compare = expected and add = desired - expected is a compare-and-swap.
 *
 * @param peer     The peer.
 * @param old      Receives the old value when the requester is notified, or by velo_rma_flush().
 * @param key      The peer's registration; needs VELO_RIGHT_ATOMIC.
 * @param offset   Of the word; its address must be a multiple of 8, else VELO_ERR_ARG.
 * @param compare  Compared with.
 * @param add      Added.
 * @param flags    0 or VELO_ADD_ALWAYS.
 * @param notify   enum velo_notify, or-ed.
 * @param cookie   Given to each side that is notified.
 * @return As velo_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source EXTOLL, high message rates, section III (locks)
 * @see velo_fetch_op, velo_compare_swap
 */
VELO_API int velo_fetch_compare_add(struct velo_rma_peer *peer, uint64_t *old, velo_key_t key,
                                    uint64_t offset, uint64_t compare, uint64_t add, int flags,
                                    int notify, uint64_t cookie);

/** What velo_fetch_op() makes of a word and the operand. */
enum velo_atomic {
    VELO_ATOMIC_ADD = 1,  /**< Their sum. Integers wrap around. */
    VELO_ATOMIC_AND = 2,  /**< The bits that both have. Like all up to LXOR: of integers only. */
    VELO_ATOMIC_OR = 3,   /**< The bits that either has. */
    VELO_ATOMIC_XOR = 4,  /**< The bits that one of them has. */
    VELO_ATOMIC_LAND = 5, /**< 1 if neither is 0, else 0. */
    VELO_ATOMIC_LOR = 6,  /**< 0 if both are 0, else 1. */
    VELO_ATOMIC_LXOR = 7, /**< 1 if one of them is 0, else 0. */
    VELO_ATOMIC_SWAP = 8, /**< The operand. */
    VELO_ATOMIC_MIN = 9,  /**< The smaller one. A word that does not compare (NaN) stays. */
    VELO_ATOMIC_MAX = 10, /**< The larger one; the same. */
};

/** What the word is. */
enum velo_type {
    VELO_TYPE_INT32 = 1,  /**< int32_t. */
    VELO_TYPE_UINT32 = 2, /**< uint32_t. */
    VELO_TYPE_INT64 = 3,  /**< int64_t. */
    VELO_TYPE_UINT64 = 4, /**< uint64_t. */
    VELO_TYPE_FLOAT = 5,  /**< float, of 32 bits. */
    VELO_TYPE_DOUBLE = 6, /**< double, of 64 bits. */
};

/**
 * Fetch a word and replace it by what an operation makes of it and an operand; atomically.
 *
 * Atomic to all updates of the same word by this call, velo_compare_swap() and
 * velo_fetch_compare_add(), to the owner's own atomic operations, and to puts of the whole word
 * with velo_put_immediate(). An ADD of 0, or an OR with it, is an atomic read.
 *
 * @param peer     The peer.
 * @param old      Receives the old value, of the given type, when the requester is notified, or by
 *                 velo_rma_flush(); NULL: nobody wants it.
 * @param key      The peer's registration; needs VELO_RIGHT_ATOMIC.
 * @param offset   Of the word; its address must be a multiple of its size, else VELO_ERR_ARG.
 * @param atomic   The operation.
 * @param type     What the word and the operand are.
 * @param operand  The operand, of that type; not kept.
 * @param notify   enum velo_notify, or-ed.
 * @param cookie   Given to each side that is notified.
 * @return As velo_put(); VELO_ERR_ARG also where the operation is none of that type.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_compare_swap, velo_fetch_compare_add
 */
VELO_API int velo_fetch_op(struct velo_rma_peer *peer, void *old, velo_key_t key, uint64_t offset,
                           enum velo_atomic atomic, enum velo_type type, const void *operand,
                           int notify, uint64_t cookie);

/**
 * Fetch a word; if it equals another, replace it; atomically. Words are equal if all their bits
 * are.
 *
 * Atomic to the same as velo_fetch_op().
 *
 * @param peer       The peer.
 * @param old        Receives the old value when the requester is notified, or by velo_rma_flush();
 *                   NULL: nobody wants it.
 * @param key        The peer's registration; needs VELO_RIGHT_ATOMIC.
 * @param offset     Of the word; its address must be a multiple of len_bytes, else VELO_ERR_ARG.
 * @param compare    The word that is expected; not kept.
 * @param desired    The word that replaces it; not kept.
 * @param len_bytes  Length of a word: 4 or 8.
 * @param notify     enum velo_notify, or-ed.
 * @param cookie     Given to each side that is notified.
 * @return As velo_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_fetch_op, velo_fetch_compare_add
 */
VELO_API int velo_compare_swap(struct velo_rma_peer *peer, void *old, velo_key_t key,
                               uint64_t offset, const void *compare, const void *desired,
                               size_t len_bytes, int notify, uint64_t cookie);

/**
 * Write blocks to a peer's memory: one operation, one notification.
 *
 * @param peer    The peer.
 * @param local   First byte of the first block; not to be changed before the requester is notified
 *                or velo_rma_flush().
 * @param key     The peer's registration.
 * @param offset  First byte of the first block in it.
 * @param stride  The pattern; not kept.
 * @param notify  enum velo_notify, or-ed.
 * @param cookie  Given to each side that is notified.
 * @return As velo_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source DIMMnet-2, strided access
 * @see velo_put, velo_get_strided, velo_put_list
 */
VELO_API int velo_put_strided(struct velo_rma_peer *peer, const void *local, velo_key_t key,
                              uint64_t offset, const struct velo_stride *stride, int notify,
                              uint64_t cookie);

/**
 * Read blocks of a peer's memory: one operation, one notification.
 *
 * @param peer    The peer.
 * @param local   First byte of the first block; filled in when the requester is notified, or by
 *                velo_rma_flush().
 * @param key     The peer's registration.
 * @param offset  First byte of the first block in it.
 * @param stride  The pattern; not kept.
 * @param notify  enum velo_notify, or-ed.
 * @param cookie  Given to each side that is notified.
 * @return As velo_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source DIMMnet-2, strided access
 * @see velo_get, velo_put_strided, velo_get_list
 */
VELO_API int velo_get_strided(struct velo_rma_peer *peer, void *local, velo_key_t key,
                              uint64_t offset, const struct velo_stride *stride, int notify,
                              uint64_t cookie);

/**
 * Write a list of pieces to a peer's memory: one operation, one notification.
 *
 * The local memory is not to be changed before the requester is notified or velo_rma_flush().
 *
 * @param peer    The peer.
 * @param key     The peer's registration.
 * @param pieces  The list; see struct velo_piece.
 * @param count   Pieces in it; 0 is allowed.
 * @param notify  enum velo_notify, or-ed.
 * @param cookie  Given to each side that is notified.
 * @return As velo_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source DIMMnet-2, list access
 * @see velo_put, velo_get_list, velo_put_strided
 */
VELO_API int velo_put_list(struct velo_rma_peer *peer, velo_key_t key,
                           const struct velo_piece *pieces, size_t count, int notify,
                           uint64_t cookie);

/**
 * Read a list of pieces of a peer's memory: one operation, one notification.
 *
 * The local memory is filled in when the requester is notified, or by velo_rma_flush().
 *
 * @param peer    The peer.
 * @param key     The peer's registration.
 * @param pieces  The list; see struct velo_piece.
 * @param count   Pieces in it; 0 is allowed.
 * @param notify  enum velo_notify, or-ed.
 * @param cookie  Given to each side that is notified.
 * @return As velo_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source DIMMnet-2, list access
 * @see velo_get, velo_put_list, velo_get_strided
 */
VELO_API int velo_get_list(struct velo_rma_peer *peer, velo_key_t key,
                           const struct velo_piece *pieces, size_t count, int notify,
                           uint64_t cookie);

/**
 * Operations on this peer that are posted from here on take effect after those posted before.
 *
 * @param peer  The peer.
 * @retval VELO_OK       Ordered; waits for nothing itself.
 * @retval VELO_ERR_ARG  peer is NULL.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_rma_flush
 */
VELO_API int velo_rma_fence(struct velo_rma_peer *peer);

/**
 * Wait until every operation posted on a peer is done: data written is visible there, data read is
 * here.
 *
 * @param peer        The peer.
 * @param timeout_ns  Longest wait; 0 looks once, VELO_FOREVER waits without limit.
 * @retval VELO_OK              All done; operations that failed have left error notifications.
 * @retval VELO_TIMEOUT         Some are still under way.
 * @retval VELO_ERR_INTERRUPTED The same; a signal handler ran.
 * @retval VELO_AGAIN           Some are still under way, and our notification queue is full and
 *                              pushes peers back; poll it, then flush again. Waiting on could be
 *                              for ever: two units might wait for each other.
 * @retval VELO_ERR_ARG         peer is NULL, or timeout_ns is below -1.
 * @retval VELO_ERR_FULL        The peer cannot connect back to us to answer.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its unit.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_CORRUPT     The peer's memory makes no sense.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_rma_fence, velo_notification_poll
 */
VELO_API int velo_rma_flush(struct velo_rma_peer *peer, int64_t timeout_ns);

/**
 * Carry out what peers asked for, and take in what they answered.
 *
 * @param rma  The unit.
 * @return The number of operations carried out or completed.
 * @retval VELO_OK  None (0). There is no failure.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_notification_poll
 */
VELO_API int velo_rma_progress(struct velo_rma *rma);

/**
 * Take the next notification if there is one. Also makes progress.
 *
 * @param rma           The unit.
 * @param notification  Receives it.
 * @retval VELO_OK       One was taken.
 * @retval VELO_AGAIN    There is none.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_notification_wait
 */
VELO_API int velo_notification_poll(struct velo_rma *rma, struct velo_notification *notification);

/**
 * Take the next notification, waiting for one as velo_recv_wait() waits.
 *
 * @param rma           The unit.
 * @param notification  Receives it.
 * @param timeout_ns    Longest wait; 0 polls once, VELO_FOREVER waits without limit.
 * @retval VELO_OK       One was taken.
 * @retval VELO_TIMEOUT  None came in the time given.
 * @retval VELO_ERR_INTERRUPTED  The same; a signal handler ran.
 * @retval VELO_ERR_ARG  An argument is NULL or out of range.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_notification_poll
 */
VELO_API int velo_notification_wait(struct velo_rma *rma, struct velo_notification *notification,
                                    int64_t timeout_ns);

/**
 * Read the counters.
 *
 * @param rma       The unit.
 * @param counters  Receives the values.
 * @retval VELO_OK       Filled in.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread One thread at a time per unit.
 * @path cold
 */
VELO_API int velo_rma_counters(struct velo_rma *rma, struct velo_rma_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
