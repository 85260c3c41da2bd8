/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rma.h
 * @brief Remote memory: register, put, get, atomic updates, notifications.
 * @example tutorial/remote_memory.c
 *
 * A port **registers** memory for its peers and hands them the **key**. A peer then reads, writes
 * or updates that memory without its owner's program taking part. If the operation asks for them,
 * **notifications** tell the requester that its operation is done, the responder that its memory
 * was read, the completer that its memory was written. Each port has one notification queue, for
 * all three.
 *
 * Memory from velo_rma_mem_alloc() is mapped by the peers and reached with loads and stores. Other
 * memory is reached with cross-memory attach. Where the kernel forbids that, and for atomic updates
 * of it, the owner's library carries the operation out the next time it is called
 * (velo_rma_progress(), velo_rma_try_poll(), or any wait on the same velo_rma).
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
 *  - only the waits block; units that ask each other for much at once do not block each other;
 *  - after velo_rma_mem_deregister() returned, nobody touches the memory;
 *  - a peer that dies in the middle of an operation delays others only until they notice its death.
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
struct velo_rma_mem;

/** Names registered memory to its peers. Not secret and not guessable either; opaque. */
typedef uint64_t velo_rma_key_t;

/** A place in a peer's registered memory. */
struct velo_rma_place {
    velo_rma_key_t key; /**< The registration. */
    uint64_t offset;    /**< From its first byte [bytes]. */
};

/** The place at @p offset in the registration @p key. */
static inline struct velo_rma_place velo_rma_place(velo_rma_key_t key, uint64_t offset)
{
    struct velo_rma_place place;
    place.key = key;
    place.offset = offset;
    return place;
}

/** The rights that a registration gives. */
enum velo_rma_right {
    VELO_RMA_RIGHT_READ = 1,   /**< Get. */
    VELO_RMA_RIGHT_WRITE = 2,  /**< Put and immediate put. */
    VELO_RMA_RIGHT_ATOMIC = 4, /**< Updates: fetch-compare-and-add, fetch-op, compare-and-swap. */
    VELO_RMA_RIGHT_ALL = 7,    /**< All of them. */
};

/** As peer of a registration: every peer that may connect to the port. */
#define VELO_RMA_PEER_ANY UINT32_MAX

/** Registrations that one velo_rma can hold at once. */
#define VELO_RMA_MEMS_MAX 65536u
/** Numbers that registrations can be published under: 1 to this. */
#define VELO_RMA_NUMBER_MAX 65534u
/** Operations that may be under way at once; more are VELO_AGAIN. */
#define VELO_RMA_OPS_MAX 1024u
/** Notifications the queue holds; while it is full, peers that would add one are pushed back. Each
 *  operation under way holds a place for its own. */
#define VELO_RMA_NOTIFICATIONS_MAX 4096u

/** Flags of an operation. One that an operation does not have is VELO_ERR_ARG. */
enum velo_rma_flag {
    VELO_RMA_NOTIFY_REQUESTER = 1, /**< Tell us: the operation is done. */
    VELO_RMA_NOTIFY_RESPONDER =
        2, /**< Tell the peer, of a get or an update: its memory was read. */
    VELO_RMA_NOTIFY_COMPLETER = 4, /**< Tell the peer, of a put: its memory was written. */
    VELO_RMA_ADD_ALWAYS = 8,       /**< velo_rma_fetch_compare_add(): with any old value. */
    VELO_RMA_ADD_AT_MOST = 16,     /**< The same: if the old value is at most `compare`, both as
                                        signed numbers. */
    VELO_RMA_TAIL_LAST = 32,       /**< velo_rma_put(): its end is visible after all the rest. */
};

/** The class of a notification. */
enum velo_rma_class {
    VELO_RMA_CLASS_REQUESTER = 1, /**< To the requester: its operation is done. */
    VELO_RMA_CLASS_RESPONDER = 2, /**< To the responder: its memory was read. */
    VELO_RMA_CLASS_COMPLETER = 4, /**< To the completer: its memory was written. */
    VELO_RMA_CLASS_ERROR = 8,     /**< To the requester: its operation failed. Comes unasked too. */
};

/** The operation that a notification speaks of. */
enum velo_rma_operation {
    VELO_RMA_OPERATION_PUT = 1, /**< velo_rma_put(), velo_rma_put_strided(), velo_rma_put_list(). */
    VELO_RMA_OPERATION_GET = 2, /**< velo_rma_get(), velo_rma_get_strided(), velo_rma_get_list(). */
    VELO_RMA_OPERATION_PUT_IMMEDIATE = 3,     /**< velo_rma_put_immediate(). */
    VELO_RMA_OPERATION_FETCH_COMPARE_ADD = 4, /**< velo_rma_fetch_compare_add(). */
    VELO_RMA_OPERATION_NOTIFY = 5,            /**< velo_rma_notify(). */
    VELO_RMA_OPERATION_FETCH_OP = 6,          /**< velo_rma_fetch_op(). */
    VELO_RMA_OPERATION_COMPARE_SWAP = 7,      /**< velo_rma_compare_swap(). */
};

/** One notification. */
struct velo_rma_notification {
    uint8_t class_;   /**< enum velo_rma_class. */
    uint8_t op;       /**< enum velo_rma_operation. */
    int16_t status;   /**< VELO_OK, or the error of the operation (class ERROR). */
    velo_id_t peer;   /**< The other side. */
    size_t len_bytes; /**< Bytes moved. At the responder of an update the bytes written: 0 where the
                           comparison failed, so that the word stayed. */
    uint64_t address; /**< At the requester the local address; at responder and completer the
                           address in its own memory that was read or written. */
    uint64_t cookie;  /**< The word given with the operation. */
    uint64_t word; /**< At the responder of an update the word after it; 0 where a device made the
                        update, which tells no outcome. Else 0. */
};

/** Counts of a velo_rma since it was opened. */
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
struct velo_rma_piece {
    void *local;      /**< Local memory; only read by a put. */
    uint64_t offset;  /**< From the remote place of the call [bytes]. */
    size_t len_bytes; /**< Length. */
};

/** A block pattern: count blocks of block_bytes, each side with a stride of its own. */
struct velo_rma_stride {
    size_t block_bytes;           /**< Length of one block. */
    uint64_t count;               /**< Number of blocks. */
    uint64_t local_stride_bytes;  /**< From the start of one block to the next in local memory. */
    uint64_t remote_stride_bytes; /**< The same in the remote registration. */
};

/** How a unit is to be opened. Start from VELO_RMA_ATTR_INIT and change what you need. */
struct velo_rma_attr {
    size_t size_bytes; /**< sizeof(struct velo_rma_attr): a later release may add members. */
    uint32_t flags;    /**< enum velo_rma_open_flag, or-ed. */
};

/** Flags of a unit. */
enum velo_rma_open_flag {
    /** Neither use cross-memory attach nor permit it to peers; as $VELO_RMA_ATTACH=0. */
    VELO_RMA_OPEN_NO_ATTACH = 1,
};

/** Attributes that ask for the defaults. */
#define VELO_RMA_ATTR_INIT {sizeof(struct velo_rma_attr), 0}

/**
 * Open the RMA unit of a port.
 *
 * @param port  An open port; must outlive the unit. At most one unit a port.
 * @param attr  How to open it; NULL asks for the defaults. Not kept.
 * @param rma   Receives the unit, owned by the caller until velo_rma_close().
 * @retval VELO_OK            Open; peers can reach what is registered from here on.
 * @retval VELO_ERR_ARG       port or rma is NULL, or attr holds what this library does not know.
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
VELO_API int velo_rma_open(struct velo_port *port, const struct velo_rma_attr *attr,
                           struct velo_rma **rma);

/**
 * Close the unit: closes its peers, deregisters everything.
 *
 * Waits for operations that are touching registered memory now, at most until their requester dies,
 * and no longer than the port's linger_ns.
 *
 * @param rma  The unit; NULL is allowed and does nothing.
 * @retval VELO_OK       Closed; nobody touches the registered memory any more.
 * @retval VELO_TIMEOUT  A requester that lives still touches a registration, which stays. No
 *                       operation begins any more; the unit stays the caller's, to be closed by
 *                       another call.
 * @thread One thread, while no other uses it.
 * @path cold
 */
VELO_API int velo_rma_close(struct velo_rma *rma);

/**
 * Gain reach of a peer's registered memory.
 *
 * @param rma         The unit.
 * @param id          The peer's port, in the same domain; may be our own.
 * @param peer        Receives the peer, owned by the caller until velo_rma_disconnect() or
 *                    velo_rma_close().
 * @param timeout_ns  How long to wait for it to open its unit; 0 tries once, VELO_FOREVER waits.
 * @return As velo_connect().
 * @retval VELO_ERR_NO_PEER  No such port was open, with an RMA unit, in the time given.
 * @retval VELO_TIMEOUT      As velo_connect(): it may be open, and has not answered.
 * @retval VELO_ERR_FULL     The peer's connection table is full, or this unit has VELO_CONNS_MAX
 *                           peers.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_rma_disconnect, velo_rma_put, velo_rma_get
 */
VELO_API int velo_rma_connect(struct velo_rma *rma, velo_id_t id, struct velo_rma_peer **peer,
                              int64_t timeout_ns);

/**
 * Does a peer still serve its memory? A system call: operations on mapped memory find out only now
 * and then. If it does not, all operations under way on it end: those that it has answered as they
 * were, the others with an error.
 *
 * @param peer  The peer.
 * @retval VELO_OK              It does.
 * @retval VELO_ERR_ARG         peer is NULL.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its unit.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_CORRUPT     The peer's memory makes no sense.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_rma_connect, velo_conn_status
 */
VELO_API int velo_rma_peer_status(struct velo_rma_peer *peer);

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
 * No system call, except when there are more registrations than ever before: their table has room
 * for 1,024 and then doubles.
 *
 * @param rma        The unit.
 * @param addr       First byte; the memory stays the caller's and must stay mapped.
 * @param len_bytes  Length, at least 1.
 * @param rights     enum velo_rma_right, or-ed.
 * @param peer       The one peer that may use it, or VELO_RMA_PEER_ANY.
 * @param mem        Receives the registration, owned by the caller until velo_rma_mem_deregister().
 * @retval VELO_OK            Registered.
 * @retval VELO_ERR_ARG       An argument is NULL or out of range.
 * @retval VELO_ERR_FULL      VELO_RMA_MEMS_MAX are registered already.
 * @retval VELO_ERR_NO_SPACE  The shared-memory file system has no room for a larger table.
 * @retval VELO_ERR_SYSTEM    Another system call failed.
 * @thread One thread at a time per unit.
 * @path hot
 * @source EXTOLL, high message rates, section IV (registration)
 * @see velo_rma_mem_alloc, velo_rma_mem_key, velo_rma_mem_deregister
 */
VELO_API int velo_rma_mem_register(struct velo_rma *rma, void *addr, size_t len_bytes,
                                   uint32_t rights, velo_id_t peer, struct velo_rma_mem **mem);

/**
 * Allocate memory that peers reach with loads and stores, and register it. Zeroed, page aligned.
 *
 * @param rma        The unit.
 * @param len_bytes  Length, at least 1.
 * @param rights     enum velo_rma_right, or-ed.
 * @param peer       The one peer that may use it, or VELO_RMA_PEER_ANY.
 * @param mem        Receives the registration, owned by the caller until velo_rma_mem_deregister(),
 *                   which frees the memory.
 * @retval VELO_OK            Allocated.
 * @retval VELO_ERR_ARG       An argument is NULL or out of range.
 * @retval VELO_ERR_FULL      VELO_RMA_MEMS_MAX are registered already.
 * @retval VELO_ERR_NO_SPACE  The shared-memory file system is full.
 * @retval VELO_ERR_NO_MEMORY Out of memory or mappings.
 * @retval VELO_ERR_SYSTEM    Another system call failed.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_rma_mem_register, velo_rma_mem_addr, velo_rma_mem_deregister
 */
VELO_API int velo_rma_mem_alloc(struct velo_rma *rma, size_t len_bytes, uint32_t rights,
                                velo_id_t peer, struct velo_rma_mem **mem);

/**
 * End a registration; of allocated memory, also free it.
 *
 * Waits for operations that are touching the memory now, at most until their requester dies. No
 * operation begins any more, however the call ends.
 *
 * @param mem         The registration; NULL is allowed and does nothing.
 * @param timeout_ns  Longest wait, in ns; 0 looks once, VELO_FOREVER waits without limit.
 * @retval VELO_OK       Nobody touches the memory any more; the key is worthless.
 * @retval VELO_TIMEOUT  A requester that lives still touches the memory. The registration stays the
 *                       caller's, to be deregistered by another call; its key is worthless already.
 * @retval VELO_ERR_ARG  timeout_ns is below -1.
 * @thread One thread at a time per unit.
 * @path hot
 */
VELO_API int velo_rma_mem_deregister(struct velo_rma_mem *mem, int64_t timeout_ns);

/**
 * The key that peers need; send it to them.
 *
 * @param mem  A registration.
 * @return The key.
 * @thread Any thread.
 * @path hot
 */
VELO_API velo_rma_key_t velo_rma_mem_key(const struct velo_rma_mem *mem);

/**
 * Where the memory is in this process.
 *
 * @param mem  A registration.
 * @return Its first byte.
 * @thread Any thread.
 * @path hot
 */
VELO_API void *velo_rma_mem_addr(const struct velo_rma_mem *mem);

/**
 * Find a peer's registration at an address of its own. For layers that work with addresses: a key
 * that they got earlier may be of a registration that has ended since.
 *
 * Looks through all of the peer's registrations. If several overlap, it finds any of them. A peer
 * that shares no memory with us is not asked: its library looks when an operation comes, and
 * refuses it if there is no such registration.
 *
 * @param peer       The peer.
 * @param address    First byte, as velo_rma_mem_addr() or the peer's program has it.
 * @param len_bytes  Length, at least 1.
 * @param rights     enum velo_rma_right, or-ed: all that is needed.
 * @param place      Receives the place of that byte.
 * @retval VELO_OK              Found; its owner may still end the registration at any time.
 * @retval VELO_ERR_ARG         A pointer is NULL, or len_bytes or rights are out of range.
 * @retval VELO_ERR_ACCESS      The peer has no such registration for us.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its unit.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_rma_mem_key, velo_rma_mem_addr
 */
VELO_API int velo_rma_mem_find(struct velo_rma_peer *peer, uint64_t address, size_t len_bytes,
                               uint32_t rights, struct velo_rma_place *place);

/**
 * Let peers find a registration by a number, so that nobody has to send them its key.
 *
 * @param mem     The registration.
 * @param number  1 to VELO_RMA_NUMBER_MAX, or 0: by none any more. If two registrations have the
 *                same one, peers find any of them.
 * @retval VELO_OK       Published, until the registration ends.
 * @retval VELO_ERR_ARG  mem is NULL, or number is out of range.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_rma_mem_lookup
 */
VELO_API int velo_rma_mem_publish(struct velo_rma_mem *mem, uint32_t number);

/**
 * Find a peer's registration by its number.
 *
 * Looks through all of the peer's registrations. A peer that shares no memory with us is not asked:
 * its library looks when an operation comes, and refuses it if there is no such registration.
 *
 * @param peer    The peer.
 * @param number  As the peer gave it to velo_rma_mem_publish().
 * @param rights  enum velo_rma_right, or-ed: all that is needed.
 * @param place   Receives the place of the first byte.
 * @retval VELO_OK              Found; its owner may still end the registration at any time.
 * @retval VELO_ERR_ARG         A pointer is NULL, or number or rights are out of range.
 * @retval VELO_ERR_ACCESS      The peer has no such registration for us.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its unit.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_rma_mem_publish, velo_rma_mem_find
 */
VELO_API int velo_rma_mem_lookup(struct velo_rma_peer *peer, uint32_t number, uint32_t rights,
                                 struct velo_rma_place *place);

/**
 * Write to a peer's memory.
 *
 * With VELO_RMA_TAIL_LAST a program may poll the end of what is written: its last 8, 4, 2 or 1
 * bytes, as many as its alignment there permits, are written in one piece, after all others.
 *
 * @param peer       The peer.
 * @param local      Source; not to be changed before the requester is notified or velo_rma_flush().
 * @param len_bytes  Length; 0 is allowed.
 * @param remote     First byte there.
 * @param flags      enum velo_rma_flag, or-ed.
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
 * @see velo_rma_get, velo_rma_put_immediate, velo_rma_put_strided, velo_rma_put_list,
 * velo_rma_flush
 */
VELO_API int velo_rma_put(struct velo_rma_peer *peer, const void *local, size_t len_bytes,
                          struct velo_rma_place remote, uint32_t flags, uint64_t cookie);

/**
 * Read a peer's memory.
 *
 * @param peer       The peer.
 * @param local      Destination; filled in when the requester is notified, or by velo_rma_flush().
 * @param len_bytes  Length; 0 is allowed.
 * @param remote     First byte there.
 * @param flags      enum velo_rma_flag, or-ed.
 * @param cookie     Given to each side that is notified.
 * @return As velo_rma_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source EXTOLL, high message rates, section III (RMA)
 * @see velo_rma_get_strided, velo_rma_get_list, velo_rma_flush
 */
VELO_API int velo_rma_get(struct velo_rma_peer *peer, void *local, size_t len_bytes,
                          struct velo_rma_place remote, uint32_t flags, uint64_t cookie);

/**
 * Write up to 8 bytes that are given by value.
 *
 * @param peer       The peer.
 * @param value      The bytes, the lowest first.
 * @param len_bytes  1 to 8. With 1, 2, 4 or 8, an aligned target and allocated memory the write is
 *                   one store.
 * @param remote     First byte there.
 * @param flags      enum velo_rma_flag, or-ed.
 * @param cookie     Given to each side that is notified.
 * @return As velo_rma_put().
 * @thread One thread at a time per unit.
 * @path hot
 */
VELO_API int velo_rma_put_immediate(struct velo_rma_peer *peer, uint64_t value, size_t len_bytes,
                                    struct velo_rma_place remote, uint32_t flags, uint64_t cookie);

/**
 * Notify a peer; no memory is written. The notification arrives after the data of earlier puts.
 *
 * @param peer    The peer.
 * @param flags   VELO_RMA_NOTIFY_COMPLETER, and VELO_RMA_NOTIFY_REQUESTER if wanted.
 * @param cookie  Given to each side that is notified.
 * @return As velo_rma_put().
 * @thread One thread at a time per unit.
 * @path hot
 */
VELO_API int velo_rma_notify(struct velo_rma_peer *peer, uint32_t flags, uint64_t cookie);

/**
 * Fetch a 64-bit word; if it equals `compare`, add to it; atomically.
 *
 * With VELO_RMA_ADD_AT_MOST it is added to if it is not above `compare`, with VELO_RMA_ADD_ALWAYS
 * in any case. Both together are VELO_ERR_ARG.
 *
 * compare = expected and add = desired - expected is a compare-and-swap.
 *
 * @param peer     The peer.
 * @param old      Receives the old value when the requester is notified, or by velo_rma_flush().
 * @param remote   The word, in a registration with VELO_RMA_RIGHT_ATOMIC; its address must be a
 *                 multiple of 8, else VELO_ERR_ARG.
 * @param compare  Compared with.
 * @param add      Added.
 * @param flags    enum velo_rma_flag, or-ed.
 * @param cookie   Given to each side that is notified.
 * @return As velo_rma_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source EXTOLL, high message rates, section III (locks)
 * @see velo_rma_fetch_op, velo_rma_compare_swap
 */
VELO_API int velo_rma_fetch_compare_add(struct velo_rma_peer *peer, uint64_t *old,
                                        struct velo_rma_place remote, uint64_t compare,
                                        uint64_t add, uint32_t flags, uint64_t cookie);

/** The new word that velo_rma_fetch_op() makes of the old one and the operand. */
enum velo_rma_atomic {
    VELO_RMA_ATOMIC_ADD = 1, /**< Their sum. Integers wrap around. */
    VELO_RMA_ATOMIC_AND = 2, /**< The bits that both have. Like all up to LXOR: of integers only. */
    VELO_RMA_ATOMIC_OR = 3,  /**< The bits that either has. */
    VELO_RMA_ATOMIC_XOR = 4, /**< The bits that one of them has. */
    VELO_RMA_ATOMIC_LAND = 5, /**< 1 if neither is 0, else 0. */
    VELO_RMA_ATOMIC_LOR = 6,  /**< 0 if both are 0, else 1. */
    VELO_RMA_ATOMIC_LXOR = 7, /**< 1 if one of them is 0, else 0. */
    VELO_RMA_ATOMIC_SWAP = 8, /**< The operand. */
    VELO_RMA_ATOMIC_MIN = 9,  /**< The smaller one. A word that does not compare (NaN) stays. */
    VELO_RMA_ATOMIC_MAX = 10, /**< The larger one; the same. */
};

/** The type of a word. */
enum velo_rma_type {
    VELO_RMA_TYPE_INT32 = 1,  /**< int32_t. */
    VELO_RMA_TYPE_UINT32 = 2, /**< uint32_t. */
    VELO_RMA_TYPE_INT64 = 3,  /**< int64_t. */
    VELO_RMA_TYPE_UINT64 = 4, /**< uint64_t. */
    VELO_RMA_TYPE_FLOAT = 5,  /**< float, of 32 bits. */
    VELO_RMA_TYPE_DOUBLE = 6, /**< double, of 64 bits. */
};

/**
 * Fetch a word and replace it by the result of an operation on it and an operand; atomically.
 *
 * Atomic to all updates of the same word by this call, velo_rma_compare_swap() and
 * velo_rma_fetch_compare_add(), to the owner's own atomic operations, and to puts of the whole word
 * with velo_rma_put_immediate(). An ADD of 0, or an OR with it, is an atomic read.
 *
 * @param peer     The peer.
 * @param old      Receives the old value, of the given type, when the requester is notified, or by
 *                 velo_rma_flush(); NULL: nobody wants it.
 * @param remote   The word, in a registration with VELO_RMA_RIGHT_ATOMIC; its address must be a
 *                 multiple of its size, else VELO_ERR_ARG.
 * @param atomic   The operation.
 * @param type     The type of the word and of the operand.
 * @param operand  The operand, of that type; not kept.
 * @param flags    enum velo_rma_flag, or-ed.
 * @param cookie   Given to each side that is notified.
 * @return As velo_rma_put(); VELO_ERR_ARG also where the operation is none of that type.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_rma_compare_swap, velo_rma_fetch_compare_add
 */
VELO_API int velo_rma_fetch_op(struct velo_rma_peer *peer, void *old, struct velo_rma_place remote,
                               enum velo_rma_atomic atomic, enum velo_rma_type type,
                               const void *operand, uint32_t flags, uint64_t cookie);

/**
 * Fetch a word; if it equals another, replace it; atomically. Words are equal if all their bits
 * are.
 *
 * Atomic to the same as velo_rma_fetch_op().
 *
 * @param peer       The peer.
 * @param old        Receives the old value when the requester is notified, or by velo_rma_flush();
 *                   NULL: nobody wants it.
 * @param len_bytes  Length of a word: 4 or 8.
 * @param remote   The word, in a registration with VELO_RMA_RIGHT_ATOMIC; its address must be a
 *                 multiple of len_bytes, else VELO_ERR_ARG.
 * @param compare    The word that is expected; not kept.
 * @param desired    The word that replaces it; not kept.
 * @param flags      enum velo_rma_flag, or-ed.
 * @param cookie     Given to each side that is notified.
 * @return As velo_rma_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_rma_fetch_op, velo_rma_fetch_compare_add
 */
VELO_API int velo_rma_compare_swap(struct velo_rma_peer *peer, void *old, size_t len_bytes,
                                   struct velo_rma_place remote, const void *compare,
                                   const void *desired, uint32_t flags, uint64_t cookie);

/**
 * Write blocks to a peer's memory: one operation, one notification.
 *
 * @param peer    The peer.
 * @param local   First byte of the first block; not to be changed before the requester is notified
 *                or velo_rma_flush().
 * @param stride  The pattern; not kept.
 * @param remote  First byte of the first block there.
 * @param flags   enum velo_rma_flag, or-ed.
 * @param cookie  Given to each side that is notified.
 * @return As velo_rma_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source DIMMnet-2, strided access
 * @see velo_rma_put, velo_rma_get_strided, velo_rma_put_list
 */
VELO_API int velo_rma_put_strided(struct velo_rma_peer *peer, const void *local,
                                  const struct velo_rma_stride *stride,
                                  struct velo_rma_place remote, uint32_t flags, uint64_t cookie);

/**
 * Read blocks of a peer's memory: one operation, one notification.
 *
 * @param peer    The peer.
 * @param local   First byte of the first block; filled in when the requester is notified, or by
 *                velo_rma_flush().
 * @param stride  The pattern; not kept.
 * @param remote  First byte of the first block there.
 * @param flags   enum velo_rma_flag, or-ed.
 * @param cookie  Given to each side that is notified.
 * @return As velo_rma_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source DIMMnet-2, strided access
 * @see velo_rma_get, velo_rma_put_strided, velo_rma_get_list
 */
VELO_API int velo_rma_get_strided(struct velo_rma_peer *peer, void *local,
                                  const struct velo_rma_stride *stride,
                                  struct velo_rma_place remote, uint32_t flags, uint64_t cookie);

/**
 * Write a list of pieces to a peer's memory: one operation, one notification.
 *
 * The local memory is not to be changed before the requester is notified or velo_rma_flush().
 *
 * @param peer    The peer.
 * @param pieces  The list; see struct velo_rma_piece.
 * @param count   Pieces in it; 0 is allowed.
 * @param remote  The place to which the offsets of the pieces are added.
 * @param flags   enum velo_rma_flag, or-ed.
 * @param cookie  Given to each side that is notified.
 * @return As velo_rma_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source DIMMnet-2, list access
 * @see velo_rma_put, velo_rma_get_list, velo_rma_put_strided
 */
VELO_API int velo_rma_put_list(struct velo_rma_peer *peer, const struct velo_rma_piece *pieces,
                               size_t count, struct velo_rma_place remote, uint32_t flags,
                               uint64_t cookie);

/**
 * Read a list of pieces of a peer's memory: one operation, one notification.
 *
 * The local memory is filled in when the requester is notified, or by velo_rma_flush().
 *
 * @param peer    The peer.
 * @param pieces  The list; see struct velo_rma_piece.
 * @param count   Pieces in it; 0 is allowed.
 * @param remote  The place to which the offsets of the pieces are added.
 * @param flags   enum velo_rma_flag, or-ed.
 * @param cookie  Given to each side that is notified.
 * @return As velo_rma_put().
 * @thread One thread at a time per unit.
 * @path hot
 * @source DIMMnet-2, list access
 * @see velo_rma_get, velo_rma_put_list, velo_rma_get_strided
 */
VELO_API int velo_rma_get_list(struct velo_rma_peer *peer, const struct velo_rma_piece *pieces,
                               size_t count, struct velo_rma_place remote, uint32_t flags,
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
 * @retval VELO_ERR_INTERRUPTED The same; a signal handler ran, or velo_port_interrupt().
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
 * @see velo_rma_fence, velo_rma_try_poll
 */
VELO_API int velo_rma_flush(struct velo_rma_peer *peer, int64_t timeout_ns);

/**
 * Carry out operations that peers asked for, and take in their answers.
 *
 * @param rma  The unit.
 * @return The number of operations carried out or completed; 0: none was.
 * @retval VELO_ERR_ARG  rma is NULL.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_rma_try_poll
 */
VELO_API int velo_rma_progress(struct velo_rma *rma);

/**
 * Take notifications that are there. Also makes progress.
 *
 * @param rma                The unit.
 * @param notifications      Receives them, the oldest first.
 * @param notifications_max  Its length: at least 1.
 * @return The number of notifications taken; 0: there is none.
 * @retval VELO_ERR_ARG  An argument is NULL or out of range.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_rma_poll
 */
VELO_API int velo_rma_try_poll(struct velo_rma *rma, struct velo_rma_notification *notifications,
                               int notifications_max);

/**
 * Take notifications, waiting for the first as velo_recv() waits.
 *
 * @param rma                The unit.
 * @param notifications      Receives them, the oldest first.
 * @param notifications_max  Its length: at least 1.
 * @param timeout_ns         Longest wait; 0 polls once, VELO_FOREVER waits without limit.
 * @return The number of notifications taken, at least 1.
 * @retval VELO_TIMEOUT  None came in the time given.
 * @retval VELO_ERR_INTERRUPTED  None came; a signal handler ran, or velo_port_interrupt().
 * @retval VELO_ERR_ARG  An argument is NULL or out of range.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_rma_try_poll
 */
VELO_API int velo_rma_poll(struct velo_rma *rma, struct velo_rma_notification *notifications,
                           int notifications_max, int64_t timeout_ns);

/**
 * A descriptor for event loops, as velo_port_fd(): readable when a notification may have come, or
 * a peer asks for something.
 *
 * @param rma  The unit.
 * @param fd   Receives the descriptor, owned by the unit.
 * @return As velo_port_fd().
 * @thread One thread at a time per unit.
 * @path cold
 * @see velo_rma_arm
 */
VELO_API int velo_rma_fd(struct velo_rma *rma, int *fd);

/**
 * Have the descriptor of a unit tell, once, of what comes from now on; see velo_port_arm().
 *
 * @param rma  A unit whose descriptor has been asked for.
 * @retval VELO_OK        Armed: there is nothing to do; the descriptor becomes readable then.
 * @retval VELO_AGAIN     There is something to do: call velo_rma_try_poll() first. Also while an
 *                        operation waits for room, which no descriptor tells.
 * @retval VELO_ERR_INTERRUPTED  velo_port_interrupt() was called.
 * @retval VELO_ERR_ARG   rma is NULL.
 * @retval VELO_ERR_STATE velo_rma_fd() was never called.
 * @thread One thread at a time per unit.
 * @path hot
 * @see velo_rma_fd, velo_rma_try_poll
 */
VELO_API int velo_rma_arm(struct velo_rma *rma);

/**
 * Read the counters.
 *
 * @param rma       The unit.
 * @param counters  Receives the values.
 * @param counters_bytes  sizeof *counters: a later release may add counters at the end.
 * @retval VELO_OK       Filled in; counters that this library does not know are 0.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread One thread at a time per unit.
 * @path cold
 */
VELO_API int velo_rma_counters(struct velo_rma *rma, struct velo_rma_counters *counters,
                               size_t counters_bytes);

#ifdef __cplusplus
}
#endif

#endif
