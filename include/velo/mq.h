/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mq.h
 * @brief Matched messages of any length, for MPI's point-to-point calls.
 * @example tutorial/matched.c
 *
 * A message carries 64 **match bits**. A receive names the match bits that it wants, bits to
 * **ignore** (wildcards), and optionally one source; it takes the earliest message that fits.
 * VELO_MQ_MATCH() packs MPI's context, source rank and tag into match bits.
 *
 * Promises:
 *  - of two messages from one peer that fit the same receive, the earlier one is matched first; of
 *    two receives that fit the same message, the earlier posted one gets it;
 *  - messages that nobody has asked for yet are kept in a bounded amount of memory; past it, their
 *    senders are pushed back one by one, and the others go on: one sender alone gets half of it, so
 *    there is always room for another. Neither long messages under way nor their answers wait
 *    behind messages that were pushed back. While a receive or a probe waits for a message that a
 *    sender may have sent, that sender is not pushed back, up to a limit that is an error;
 *  - no call blocks but velo_mq_wait() and velo_mq_idle(): everybody may send to everybody at once;
 *  - when a peer dies, its requests end with an error, never a hang. A port that is opened again
 *    under its id is another peer: requests with the old peer end, and nothing of them reaches the
 *    new one;
 *  - messages of one port keep their order when it disconnects and connects again;
 *  - all that comes from a peer is checked before it is used.
 *
 * Short messages (eager) travel in one VELO message; longer ones announce themselves (rendezvous)
 * and then either the receiver gets the data in one copy (RMA), or both sides copy it piece by
 * piece through the ring, which is faster up to some length and also works where the kernel forbids
 * cross-memory attach. Over hardware the node's RMA unit gets the data, and neither processor is
 * busy meanwhile.
 *
 * Receives without ignore bits, and the messages that they take, are found by hash, however many
 * there are. So are receives with ignore bits, as long as at most three kinds of ignore bits are
 * posted in a matching space at a time; those of further kinds are searched in order.
 *
 * For layers above that have more than one kind of message, a queue has several **matching
 * spaces**, numbered from 0: a receive takes messages of its own space only. The calls that name
 * none use the first. And a message may carry a **cookie**, a word beside its match bits that takes
 * no part in matching. The calls for both end with `_in`.
 *
 * Requests live in the caller's memory, so that no call allocates on the way of a short message. A
 * request belongs to the library from the call that starts it until its status is no longer
 * VELO_AGAIN; then it may be reused.
 *
 * Threads: one thread at a time uses a queue, its peers and its requests.
 *
 * Statuses are those of velo.h.
 */
#ifndef VELO_MQ_H
#define VELO_MQ_H

#include <velo/rma.h>
#include <velo/velo.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Queues of posted receives and of unexpected messages on top of one port; opaque. */
struct velo_mq;
/** A peer that messages can be sent to; opaque. */
struct velo_mq_peer;
/** A message that velo_mq_try_mprobe() took out of the queues; opaque. */
struct velo_mq_message;

/** As source of a receive: any peer. */
#define VELO_MQ_ANY_SOURCE UINT32_MAX

/** Matching spaces of a queue. */
#define VELO_MQ_SPACES 3

/** Match bits for MPI: context id (16 bits), source rank (16 bits), tag (32 bits). */
#define VELO_MQ_MATCH(context, rank, tag)                                                          \
    (((uint64_t)(uint16_t)(context) << 48) | ((uint64_t)(uint16_t)(rank) << 32) | (uint32_t)(tag))
/** Ignore bits for MPI_ANY_SOURCE. */
#define VELO_MQ_IGNORE_RANK (UINT64_C(0xffff) << 32)
/** Ignore bits for MPI_ANY_TAG: the sign is kept, so negative tags stay apart. */
#define VELO_MQ_IGNORE_TAG UINT64_C(0x7fffffff)
/** The context id in match bits. */
#define VELO_MQ_CONTEXT(match) ((uint16_t)((match) >> 48))
/** The source rank in match bits. */
#define VELO_MQ_RANK(match) ((uint16_t)((match) >> 32))
/** The tag in match bits. */
#define VELO_MQ_TAG(match) ((int32_t)(uint32_t)(match))

/** The way of long messages. */
enum velo_mq_path {
    VELO_MQ_PATH_AUTO = 0, /**< Depends on length and permissions; see velo_mq_attr. */
    VELO_MQ_PATH_COPY = 1, /**< Always piece by piece through the ring. */
    VELO_MQ_PATH_GET = 2,  /**< One copy by RMA get where permitted, else as COPY. */
};

/**
 * How a queue is to be opened. A zero means the default; each can also be set by the environment
 * variable named beside it, which wins over the default but not over a value given here.
 */
struct velo_mq_attr {
    /** sizeof(struct velo_mq_attr): a later release may add members. */
    size_t size_bytes;
    /** Longest eager message; cut to velo_conn_max_bytes() of the peer, less 48.
     *  $VELO_MQ_EAGER_BYTES. */
    size_t eager_bytes;
    /** From this length on the data is fetched by RMA get, if it is not eager. Default: over
     * hardware 8 KiB; from a port that a transport reaches, if the transport can fetch, 16 KiB;
     * else from 1 MiB on, where that was measured to be faster. $VELO_MQ_GET_BYTES. */
    size_t get_bytes;
    /** Bound for messages nobody has asked for yet, headers included. A sender whose messages do
     * not fit is pushed back, unless a receive or a probe waits for a message that it may have
     * sent. Default: 64 MiB. $VELO_MQ_UNEXPECTED_BYTES. */
    size_t unexpected_bytes;
    /** Limit for these messages while a receive or a probe waits; past it, or once the system has
     * no more memory, the receive or probe fails with VELO_ERR_NO_MEMORY. Default: 16 times the
     * bound. $VELO_MQ_UNEXPECTED_LIMIT_BYTES. */
    size_t unexpected_limit_bytes;
    /** enum velo_mq_path. $VELO_MQ_PATH (auto, copy, get). */
    int path;
};

/** Attributes that ask for the defaults. */
#define VELO_MQ_ATTR_INIT {sizeof(struct velo_mq_attr), 0, 0, 0, 0, VELO_MQ_PATH_AUTO}

struct velo_mq_request;
/**
 * Called when a request is done, from inside the call that found out, which may be the one that
 * started it. May start and cancel requests, probe, and make progress; must not disconnect or
 * close.
 */
typedef void (*velo_mq_done_fn)(struct velo_mq_request *request);

/** A send or a receive. Set `done` and `user` before it is started; the rest needs no value. */
struct velo_mq_request {
    /* The caller's. */
    velo_mq_done_fn done; /**< Called when done; may be NULL. */
    void *user;           /**< Not looked at. */
    /* The outcome. */
    int status;           /**< VELO_AGAIN while under way; then VELO_OK or an error. */
    velo_id_t source;     /**< Receive: the port that sent it. */
    uint64_t match;       /**< Receive: the match bits of the message. */
    size_t len_bytes;     /**< Bytes sent, or received into the buffer; of a receive, so far. */
    size_t total_bytes;   /**< Receive: length of the message; above len_bytes it was truncated. */
    uint64_t reserved[2]; /**< Room for members of later releases. Not written; needs no value. */
    /* The library's. */
    uint64_t private_[24]; /**< Not to be touched. */
};

/**
 * Copies a message that is not in one piece, from @p offset_bytes on, to @p to: shared memory, not
 * to be read. Called from inside calls of the library, and must not call it; for one piece of the
 * message after the other, and at times once more for the last one.
 *
 * @return The bytes that were written, 1 to @p cap_bytes: fewer only if the next element does not
 *         fit. An eager message must fit.
 */
typedef size_t (*velo_mq_pack_fn)(void *state, uint64_t offset_bytes, void *to, size_t cap_bytes);
/**
 * Copies a piece of a message, which lies at @p offset_bytes in it, to its places. Called in the
 * same way. A piece begins where the one before ended, at any byte.
 */
typedef void (*velo_mq_unpack_fn)(void *state, uint64_t offset_bytes, const void *from,
                                  size_t len_bytes);

/**
 * The two copies of messages that are not in one piece: MPI's datatypes with gaps, lists of pieces.
 * They pack into the ring and unpack from it: nobody holds a packed copy of the whole.
 */
struct velo_mq_layout {
    velo_mq_pack_fn pack;     /**< Sends need it. */
    velo_mq_unpack_fn unpack; /**< Receives need it. */
};

/** The message that a probe found. */
struct velo_mq_info {
    velo_id_t source;     /**< The port that sent it. */
    uint64_t match;       /**< Its match bits. */
    size_t len_bytes;     /**< Its length. */
    uint64_t reserved[2]; /**< Room for members of later releases. Not written. */
};

/** The message that velo_mq_try_probe_in() found. */
struct velo_mq_found {
    struct velo_mq_info info; /**< As of velo_mq_try_probe(). */
    uint32_t flags;           /**< VELO_MQ_COOKIE: it has one. */
    uint64_t cookie;          /**< The cookie. */
    uint64_t reserved[2];     /**< Room for members of later releases. Not written. */
};

/** Counts of a queue since it was opened. */
struct velo_mq_counters {
    uint64_t sent;                   /**< Messages sent. */
    uint64_t received;               /**< Messages received. */
    uint64_t eager;                  /**< Messages received that came eager. */
    uint64_t copied;                 /**< Messages received piece by piece. */
    uint64_t fetched;                /**< Messages received by RMA get. */
    uint64_t unexpected;             /**< Messages that came before their receive. */
    uint64_t unexpected_bytes;       /**< Memory they take now. */
    uint64_t unexpected_peak_bytes;  /**< The most they ever took. */
    uint64_t unexpected_bound_bytes; /**< Past it, senders that nobody waits for are pushed back. */
    uint64_t unexpected_limit_bytes; /**< Past it, receives and probes that wait fail. */
    uint64_t deferred;               /**< Times a sender was pushed back for that bound. */
    uint64_t posted;                 /**< Receives waiting now. */
    uint64_t errors;                 /**< Messages refused because no correct peer sends them. */
};

/**
 * Open matched queues on a port. The port then belongs to them: the caller neither receives from it
 * nor connects from it until velo_mq_close().
 *
 * @param port  An open port; must outlive the queues.
 * @param rma   The port's RMA unit, for large messages in one copy; must outlive the queues. Its
 *              notifications stay the caller's. NULL: always piece by piece.
 * @param attr  How to open; NULL asks for the defaults. Not kept.
 * @param mq    Receives the queues, owned by the caller until velo_mq_close().
 * @retval VELO_OK            Open.
 * @retval VELO_ERR_ARG       An argument is out of range, or an environment variable makes no
 *                            sense.
 * @retval VELO_ERR_NO_MEMORY Out of memory.
 * @thread Any thread.
 * @path cold
 * @see velo_mq_close, velo_mq_connect
 */
VELO_API int velo_mq_open(struct velo_port *port, struct velo_rma *rma,
                          const struct velo_mq_attr *attr, struct velo_mq **mq);

/**
 * The data_bytes (velo_port_attr) of a port for queues with so many peers: large rings, in which
 * the pieces of a long message do not wait for each other, as long as all of them together stay
 * small.
 *
 * @param peers  The peers that may send long messages; 0: not known, taken for few.
 * @return Bytes: 262,144 with up to 16 peers, 65,536 with more than 32.
 * @thread Any thread.
 * @path cold
 * @see velo_port_open, velo_mq_open
 */
VELO_API size_t velo_mq_ring_bytes(uint32_t peers);

/**
 * Close the queues. Requests still under way end with VELO_ERR_CANCELLED; messages that were sent
 * are delivered.
 *
 * @param mq  The queues; NULL is allowed and does nothing.
 * @retval VELO_OK  Closed.
 * @thread One thread, while no other uses it.
 * @path cold
 */
VELO_API int velo_mq_close(struct velo_mq *mq);

/**
 * Make a peer known. Receiving from it needs no peer.
 *
 * @param mq          The queues.
 * @param id          The peer's port; may be our own.
 * @param peer        Receives the peer, owned by the caller until velo_mq_disconnect() or
 *                    velo_mq_close(). Connecting twice gives the same peer, unless the port
 *                    was closed or has died meanwhile: then this is another one.
 * @param timeout_ns  How long to wait for it to open; see velo_connect().
 * @return As velo_connect().
 * @thread One thread at a time per queue.
 * @path cold
 * @see velo_mq_disconnect, velo_mq_isend
 */
VELO_API int velo_mq_connect(struct velo_mq *mq, velo_id_t id, struct velo_mq_peer **peer,
                             int64_t timeout_ns);

/**
 * The generation of the port that a peer is: what velo_port_generation() gives there.
 *
 * @param peer  The peer.
 * @return The generation.
 * @thread One thread at a time per queue.
 * @path cold
 * @see velo_mq_connect
 */
VELO_API uint32_t velo_mq_peer_generation(const struct velo_mq_peer *peer);

/**
 * Give a peer up. Its requests still under way end with VELO_ERR_PEER_CLOSED, also the receives
 * that are posted for it alone.
 *
 * @param peer  The peer; NULL is allowed and does nothing.
 * @retval VELO_OK  Done.
 * @thread One thread at a time per queue.
 * @path cold
 */
VELO_API int velo_mq_disconnect(struct velo_mq_peer *peer);

/**
 * Send a short message at once, without a request.
 *
 * @param peer       The peer.
 * @param buf        The message; free for reuse on return.
 * @param len_bytes  Its length.
 * @param match      Its match bits.
 * @retval VELO_OK              Sent.
 * @retval VELO_AGAIN           Not now, or too long for eager: use velo_mq_isend().
 * @retval VELO_ERR_ARG         An argument is NULL.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_CORRUPT     The peer's memory makes no sense,
 *                              or the peer cannot connect back to
 *                              answer, and refuses our messages.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_isend
 */
VELO_API int velo_mq_try_send(struct velo_mq_peer *peer, const void *buf, size_t len_bytes,
                              uint64_t match);

/** Flags of sends and receives. A call tells which of them it takes. */
enum velo_mq_flag {
    VELO_MQ_SYNC = 1,   /**< Done only when the message was matched (MPI_Ssend). */
    VELO_MQ_COOKIE = 2, /**< The message carries a cookie. */
    VELO_MQ_FIRST = 4,  /**< The receive stands before all that were posted earlier. */
};

/**
 * Start to send a message.
 *
 * @param peer       The peer.
 * @param buf        The message; not to be changed until the request is done.
 * @param len_bytes  Its length, any.
 * @param match      Its match bits.
 * @param flags      VELO_MQ_SYNC or 0.
 * @param request    The request; see above. May be done on return.
 * @retval VELO_OK       Started; errors that come later are in the request.
 * @retval VELO_ERR_ARG  An argument is NULL or out of range.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_try_send, velo_mq_wait, velo_mq_progress
 */
VELO_API int velo_mq_isend(struct velo_mq_peer *peer, const void *buf, size_t len_bytes,
                           uint64_t match, uint32_t flags, struct velo_mq_request *request);

/**
 * Start to receive a message.
 *
 * A receive from one port ends with VELO_ERR_PEER_DEAD when that port's process has died, even if
 * nothing was ever sent to it: after a while of silence a connection is made to notice that. It
 * waits for a port that is not open yet. A message that was begun and cannot be finished ends its
 * receive in the same way, or with VELO_ERR_PEER_CLOSED: once the port's name is gone, or belongs
 * to another port, nothing tells whether the port was closed.
 *
 * @param mq         The queues.
 * @param source     The one port to receive from, or VELO_MQ_ANY_SOURCE.
 * @param match      The match bits wanted.
 * @param ignore     Bits of match that do not matter.
 * @param buf        Receives the message; not to be touched until the request is done.
 * @param cap_bytes  Its size. A longer message fills it, is truncated, and ends the request with
 *                   VELO_ERR_TOO_BIG.
 * @param request    The request; see above. May be done on return.
 * @retval VELO_OK         Started.
 * @retval VELO_ERR_ARG    An argument is NULL or out of range.
 * @retval VELO_ERR_STATE  The queues are being closed; nothing was started.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_wait, velo_mq_progress, velo_mq_cancel
 */
VELO_API int velo_mq_irecv(struct velo_mq *mq, velo_id_t source, uint64_t match, uint64_t ignore,
                           void *buf, size_t cap_bytes, struct velo_mq_request *request);

/**
 * As velo_mq_isend(), with data that is not in one piece. It goes through the ring, and is not
 * fetched.
 *
 * @param peer       The peer.
 * @param layout     Its pack() gives the data. Must stay until the request is done.
 * @param state      For pack(). The data is not to be changed until the request is done.
 * @param len_bytes  Length of the message, any.
 * @param match      Its match bits.
 * @param flags      VELO_MQ_SYNC or 0.
 * @param request    The request. May be done on return. VELO_ERR_ARG: pack() gave less or more than
 *                   it may; the receive, if there is one, ends with VELO_ERR_PEER_CLOSED.
 * @retval VELO_OK       Started; errors that come later are in the request.
 * @retval VELO_ERR_ARG  An argument is NULL or out of range.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_irecv_layout, velo_mq_isend
 */
VELO_API int velo_mq_isend_layout(struct velo_mq_peer *peer, const struct velo_mq_layout *layout,
                                  void *state, size_t len_bytes, uint64_t match, uint32_t flags,
                                  struct velo_mq_request *request);

/**
 * As velo_mq_irecv(), to a place that is not in one piece. The message is not fetched, however it
 * was sent.
 *
 * @param mq         The queues.
 * @param source     As velo_mq_irecv().
 * @param match      As velo_mq_irecv().
 * @param ignore     As velo_mq_irecv().
 * @param layout     Its unpack() takes the data. Must stay until the request is done.
 * @param state      For unpack().
 * @param cap_bytes  The most that unpack() takes. A longer message is truncated, and ends the
 *                   request with VELO_ERR_TOO_BIG.
 * @param request    As velo_mq_irecv().
 * @return As velo_mq_irecv().
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_isend_layout, velo_mq_mrecv_layout
 */
VELO_API int velo_mq_irecv_layout(struct velo_mq *mq, velo_id_t source, uint64_t match,
                                  uint64_t ignore, const struct velo_mq_layout *layout, void *state,
                                  size_t cap_bytes, struct velo_mq_request *request);

/**
 * As velo_mq_try_send(), in a matching space and with a cookie.
 *
 * @param peer       The peer.
 * @param space      The matching space, below VELO_MQ_SPACES.
 * @param buf        The message; free for reuse on return.
 * @param len_bytes  Its length.
 * @param match      Its match bits.
 * @param flags      VELO_MQ_COOKIE or 0.
 * @param cookie     Its cookie, with VELO_MQ_COOKIE.
 * @return As velo_mq_try_send(); VELO_ERR_ARG also if there is no such space or flag.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_isend_in, velo_mq_cookie
 */
VELO_API int velo_mq_try_send_in(struct velo_mq_peer *peer, uint32_t space, const void *buf,
                                 size_t len_bytes, uint64_t match, uint32_t flags, uint64_t cookie);

/**
 * As velo_mq_isend(), in a matching space and with a cookie.
 *
 * @param peer       The peer.
 * @param space      The matching space, below VELO_MQ_SPACES.
 * @param buf        The message; not to be changed until the request is done.
 * @param len_bytes  Its length, any.
 * @param match      Its match bits.
 * @param flags      VELO_MQ_SYNC and VELO_MQ_COOKIE, or-ed.
 * @param cookie     Its cookie, with VELO_MQ_COOKIE.
 * @param request    The request. May be done on return.
 * @return As velo_mq_isend(); VELO_ERR_ARG also if there is no such space.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_try_send_in
 */
VELO_API int velo_mq_isend_in(struct velo_mq_peer *peer, uint32_t space, const void *buf,
                              size_t len_bytes, uint64_t match, uint32_t flags, uint64_t cookie,
                              struct velo_mq_request *request);

/**
 * As velo_mq_irecv(), in a matching space; or before all receives that were posted earlier. So one
 * buffer can take messages one after the other, each behind the one before.
 *
 * @param mq         The queues.
 * @param space      The matching space, below VELO_MQ_SPACES.
 * @param source     As velo_mq_irecv().
 * @param match      As velo_mq_irecv().
 * @param ignore     As velo_mq_irecv().
 * @param buf        As velo_mq_irecv().
 * @param cap_bytes  As velo_mq_irecv().
 * @param flags      VELO_MQ_FIRST or 0.
 * @param request    As velo_mq_irecv().
 * @return As velo_mq_irecv(); VELO_ERR_ARG also if there is no such space or flag.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_cookie, velo_mq_irecv
 */
VELO_API int velo_mq_irecv_in(struct velo_mq *mq, uint32_t space, velo_id_t source, uint64_t match,
                              uint64_t ignore, void *buf, size_t cap_bytes, uint32_t flags,
                              struct velo_mq_request *request);

/**
 * The cookie of the message that a receive took.
 *
 * @param request  A receive that is done.
 * @param cookie   Receives the cookie.
 * @retval VELO_OK       It has one.
 * @retval VELO_AGAIN    It has none.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_irecv_in
 */
VELO_API int velo_mq_cookie(const struct velo_mq_request *request, uint64_t *cookie);

/**
 * Is there a message that such a receive would take? It stays.
 *
 * @param mq      The queues.
 * @param source  As velo_mq_irecv().
 * @param match   As velo_mq_irecv().
 * @param ignore  As velo_mq_irecv().
 * @param info    Receives what it is; may be NULL.
 * @retval VELO_OK       There is.
 * @retval VELO_AGAIN    There is none.
 * @retval VELO_ERR_ARG  mq is NULL.
 * @retval VELO_ERR_NO_MEMORY  More was sent ahead of it than the limit of the queues, or than the
 *                             system has memory for.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_try_mprobe
 */
VELO_API int velo_mq_try_probe(struct velo_mq *mq, velo_id_t source, uint64_t match,
                               uint64_t ignore, struct velo_mq_info *info);

/**
 * Take such a message out of the queues, to be received only by velo_mq_mrecv().
 *
 * @param mq       The queues.
 * @param source   As velo_mq_irecv().
 * @param match    As velo_mq_irecv().
 * @param ignore   As velo_mq_irecv().
 * @param message  Receives it, owned by the caller until velo_mq_mrecv().
 * @param info     Receives what it is; may be NULL.
 * @retval VELO_OK       There was one.
 * @retval VELO_AGAIN    There is none.
 * @retval VELO_ERR_ARG  mq or message is NULL.
 * @retval VELO_ERR_NO_MEMORY  More was sent ahead of it than the limit of the queues, or than the
 *                             system has memory for.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_try_probe, velo_mq_mrecv
 */
VELO_API int velo_mq_try_mprobe(struct velo_mq *mq, velo_id_t source, uint64_t match,
                                uint64_t ignore, struct velo_mq_message **message,
                                struct velo_mq_info *info);

/**
 * As velo_mq_try_probe() or, with a place for the message, velo_mq_try_mprobe(), in a matching
 * space.
 *
 * @param mq       The queues.
 * @param space    The matching space, below VELO_MQ_SPACES.
 * @param source   As velo_mq_irecv().
 * @param match    As velo_mq_irecv().
 * @param ignore   As velo_mq_irecv().
 * @param message  Receives the message, owned by the caller until velo_mq_mrecv(); NULL: it stays.
 * @param found    Receives what it is.
 * @retval VELO_OK       There is one.
 * @retval VELO_AGAIN    There is none.
 * @retval VELO_ERR_ARG  mq or found is NULL, or there is no such space.
 * @retval VELO_ERR_NO_MEMORY  More was sent ahead of it than the limit of the queues, or than the
 *                             system has memory for.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_mrecv
 */
VELO_API int velo_mq_try_probe_in(struct velo_mq *mq, uint32_t space, velo_id_t source,
                                  uint64_t match, uint64_t ignore, struct velo_mq_message **message,
                                  struct velo_mq_found *found);

/**
 * Receive a message that velo_mq_try_mprobe() took.
 *
 * @param mq         The queues.
 * @param message    The message; gone on return.
 * @param buf        As velo_mq_irecv().
 * @param cap_bytes  As velo_mq_irecv().
 * @param request    As velo_mq_irecv().
 * @retval VELO_OK       Started.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_try_mprobe
 */
VELO_API int velo_mq_mrecv(struct velo_mq *mq, struct velo_mq_message *message, void *buf,
                           size_t cap_bytes, struct velo_mq_request *request);

/**
 * As velo_mq_mrecv(), to a place that is not in one piece.
 *
 * @param mq         The queues.
 * @param message    The message; gone on return.
 * @param layout     As velo_mq_irecv_layout().
 * @param state      As velo_mq_irecv_layout().
 * @param cap_bytes  As velo_mq_irecv_layout().
 * @param request    As velo_mq_irecv().
 * @retval VELO_OK       Started.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_try_mprobe
 */
VELO_API int velo_mq_mrecv_layout(struct velo_mq *mq, struct velo_mq_message *message,
                                  const struct velo_mq_layout *layout, void *state,
                                  size_t cap_bytes, struct velo_mq_request *request);

/**
 * Cancel a receive that has not been matched.
 *
 * @param mq       The queues.
 * @param request  A receive.
 * @retval VELO_OK         Cancelled: it will take no message; its status is VELO_ERR_CANCELLED,
 *                         `done` is not called.
 * @retval VELO_ERR_ARG    An argument is NULL.
 * @retval VELO_ERR_STATE  Too late, or not a receive: the request ends normally.
 * @thread One thread at a time per queue.
 * @path cold
 * @see velo_mq_irecv
 */
VELO_API int velo_mq_cancel(struct velo_mq *mq, struct velo_mq_request *request);

/**
 * Take in what has come and send what is waiting, without blocking.
 *
 * @param mq  The queues.
 * @return The number of events handled; 0: there was nothing to do.
 * @retval VELO_ERR_ARG  mq is NULL.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_wait, velo_mq_idle
 */
VELO_API int velo_mq_progress(struct velo_mq *mq);

/**
 * Make progress until a request is done: spins, then sleeps, as velo_recv().
 *
 * @param mq          The queues.
 * @param request     A started request.
 * @param timeout_ns  Longest wait; 0 looks once, VELO_FOREVER waits without limit.
 * @return The request's status, or VELO_TIMEOUT.
 * @retval VELO_OK              Done.
 * @retval VELO_TIMEOUT         Still under way.
 * @retval VELO_ERR_INTERRUPTED Still under way; a signal handler ran, or velo_port_interrupt().
 * @retval VELO_ERR_ARG         mq or request is NULL, or timeout_ns is below -1.
 * @retval VELO_ERR_CANCELLED   It was cancelled, or the queues were closed.
 * @retval VELO_ERR_TOO_BIG     The message was longer than the buffer, which it fills.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port, or was given up.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_NO_MEMORY   Out of memory, here or at the peer.
 * @retval VELO_ERR_CORRUPT     The peer's memory makes no sense,
 *                              or the peer cannot connect back to
 *                              answer, and refuses our messages.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_progress, velo_mq_idle
 */
VELO_API int velo_mq_wait(struct velo_mq *mq, struct velo_mq_request *request, int64_t timeout_ns);

/**
 * Make progress until a request is done, but for about a microsecond only, and never sleep. For
 * callers that wait for a request and have other things to look at now and then.
 *
 * @param mq       The queues.
 * @param request  A started request.
 * @return The request's status; VELO_AGAIN: it is still under way.
 * @retval VELO_OK              Done.
 * @retval VELO_AGAIN           Still under way.
 * @retval VELO_ERR_ARG         mq or request is NULL.
 * @retval VELO_ERR_CANCELLED   It was cancelled, or the queues were closed.
 * @retval VELO_ERR_TOO_BIG     The message was longer than the buffer, which it fills.
 * @retval VELO_ERR_PEER_CLOSED The peer closed its port, or was given up.
 * @retval VELO_ERR_PEER_DEAD   The peer's process has ended.
 * @retval VELO_ERR_NO_MEMORY   Out of memory, here or at the peer.
 * @retval VELO_ERR_CORRUPT     The peer's memory makes no sense,
 *                              or the peer cannot connect back to
 *                              answer, and refuses our messages.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_wait, velo_mq_progress
 */
VELO_API int velo_mq_poll(struct velo_mq *mq, struct velo_mq_request *request);

/**
 * Make progress like velo_mq_progress(), but wait up to half a microsecond for a message, and never
 * sleep. For callers that wait for any of their requests, and know that a message will come soon.
 *
 * @param mq       The queues.
 * @param request  A started request that is likely to be the next one that is done: if it is a
 * receive of matching space 0, and no other is posted there, its message takes the shortest way. No
 * promise: whatever comes goes to the receive that it matches. NULL: none.
 * @return The number of events handled; 0: nothing came.
 * @retval VELO_ERR_ARG  mq is NULL.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_mq_progress, velo_mq_poll
 */
VELO_API int velo_mq_spin(struct velo_mq *mq, struct velo_mq_request *request);

/**
 * Sleep until something comes, and handle it as velo_mq_progress() does. For callers with an event
 * loop of their own that have nothing else to do. While sends wait for room it sleeps for
 * microseconds only.
 *
 * @param mq          The queues.
 * @param timeout_ns  Longest sleep; 0 looks once, VELO_FOREVER sleeps without limit.
 * @retval VELO_OK       Something was done, or is left to do: look at your requests, call progress.
 * @retval VELO_TIMEOUT  Nothing has.
 * @retval VELO_ERR_INTERRUPTED  A signal handler ran, or velo_port_interrupt().
 * @retval VELO_ERR_ARG  mq is NULL, or timeout_ns is below -1.
 * @thread One thread at a time per queue.
 * @path cold
 * @see velo_mq_progress, velo_mq_wait
 */
VELO_API int velo_mq_idle(struct velo_mq *mq, int64_t timeout_ns);

/**
 * Have the descriptor of the queues' port, velo_port_fd(), tell, once, of what comes from now on.
 *
 * For event loops: call velo_mq_progress() until it returns 0, arm, wait for the descriptor, begin
 * anew; see velo_port_arm().
 *
 * @param mq  The queues, on a port whose descriptor has been asked for.
 * @retval VELO_OK        Armed: there is nothing to do; the descriptor becomes readable then.
 * @retval VELO_AGAIN     There is something to do: call velo_mq_progress() first. Also while a send
 *                        waits for room, which no descriptor tells.
 * @retval VELO_ERR_INTERRUPTED  velo_port_interrupt() was called.
 * @retval VELO_ERR_ARG   mq is NULL.
 * @retval VELO_ERR_STATE velo_port_fd() was never called.
 * @thread One thread at a time per queue.
 * @path hot
 * @see velo_port_fd, velo_mq_progress
 */
VELO_API int velo_mq_arm(struct velo_mq *mq);

/**
 * Read the counters.
 *
 * @param mq        The queues.
 * @param counters  Receives the values.
 * @param counters_bytes  sizeof *counters: a later release may add counters at the end.
 * @retval VELO_OK       Filled in; counters that this library does not know are 0.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread One thread at a time per queue.
 * @path cold
 */
VELO_API int velo_mq_counters(struct velo_mq *mq, struct velo_mq_counters *counters,
                              size_t counters_bytes);

#ifdef __cplusplus
}
#endif

#endif
