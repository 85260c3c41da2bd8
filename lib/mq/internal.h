/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file internal.h
 * @brief The inside of a queue, a peer and a request; and the functions that the files share.
 *
 * A receive is posted, then matched; a send is sent at once, or it is announced. What comes next
 * depends on the message:
 *
 *     posted -> matched -> eager ---------------------------> done
 *                       -> rendezvous -> copy -> [FIN] -----> done
 *                                     -> get  -> [FIN] -----> done    (or, if it fails, copy)
 *
 * A file has one stage. Files call only those above them in this list:
 *
 *   posted.c      posted receives, and how a message finds its one
 *   peer.c        the peers that are known, their extra connection, which of them have work
 *   way.c         which way of long messages is faster
 *   offer.c       is a long message fetched; what its sender offers for that
 *   op.c          done: the ids of requests, and the end of one that has an id
 *   layout.c      messages whose data is not in one piece
 *   answer.c      CTS, FIN and refusals
 *   copy.c        long messages in pieces
 *   get.c         long messages that are fetched by RMA
 *   rendezvous.c  messages longer than eager: announced, accepted
 *   send.c        the hot path of sending; sends that wait for room
 *   recv.c        matched: the hot path of receiving; keeping unexpected messages
 *   ending.c      the end of peers, and of requests that wait for them
 *   connect.c     the user connects and disconnects
 *   probe.c       probe, matched probe, cancel
 *   mq.c          open, close, progress, waiting
 *   poll.c        the same for the one receive that its caller waits for
 *
 * `done` functions may call back into the library. They are called only when no message is held and
 * every list is in order. No function keeps a pointer into a list across such a call.
 */
#ifndef VELO_MQ_INTERNAL_H
#define VELO_MQ_INTERNAL_H

#include <string.h>

#include "../core/port.h"
#include "ids.h"
#include "match.h"
#include "pool.h"
#include "wire.h"

/** Time between two checks whether peers live that a request waits for. */
#define CHECK_INTERVAL_NS INT64_C(100000000)
/** Calls of progress that are enough to take what peers that have left had sent, if others send
 *  without end: each call takes a message, and each ring has its turn. */
#define LAST_ROUNDS_MAX (1u << 18)

/** A request under way waits for this. Means nothing once its status is not VELO_AGAIN. */
enum op_state {
    OP_POSTED = 1,    /* Receive: a message. */
    OP_POSTED_LAYOUT, /* The same, into a layout. */
    OP_ANSWERING,     /* Receive: room for a CTS or FIN. */
    OP_COPYING,       /* Receive: DATA. */
    OP_GETTING,       /* Receive: RMA. */
    OP_QUEUED,        /* Send: room for its EAGER, SYNC or RTS. */
    OP_ANNOUNCED,     /* Send: CTS or FIN. */
    OP_STREAMING,     /* Send: room for DATA. */
};

/** The library's part of a request. */
struct transfer {
    /* The members that a receive needs which finds its message at once come first. */
    struct entry entry; /* Its link is in the one list that belongs to its state. */
    union {
        uint64_t ignore;    /* Receive, posted. */
        velo_rma_key_t key; /* Receive, matched: the sender's registration, if any. */
    };
    union {
        uint64_t sequence; /* Receive, posted: its number in the order of posting. */
        int64_t start_ns;  /* Receive, matched, with a key: the time when its data began to come, or
                            * 0: it is not measured; */
        uint64_t address;  /* or, from a peer over a transport, where the data is there. */
    };
    char *buf;          /* With a layout: its state. */
    uint64_t len_bytes; /* Of buf. Receive, posted, into a layout: 0, so that the short ways leave
                         * all messages with data to mq_recv_start(); `end_bytes` is the length. */
    uint8_t state;      /* Beside the space: is_next() compares both at once. */
    uint8_t space;
    uint8_t kind;    /* enum mq_wire_kind. Send: of the message; receive: of the answer. */
    bool has_cookie; /* Receive: once matched. */
    union {
        int32_t place;   /* Receive, posted: the number of its table, or POSTED_TABLES. */
        int32_t outcome; /* Receive, matched: the status it will end with. */
    };
    uint64_t offset_bytes; /* Done so far. */
    uint64_t end_bytes;    /* To be done. */
    struct velo_mq_peer *peer;
    uint64_t id; /* Ours; 0: none. */
    union {
        uint64_t remote_id; /* The other side's. */
        uint64_t cookie;    /* Send, until it was sent or announced. */
    };
    union { /* Send: what its receiver may fetch from; NULL: nothing. */
        struct velo_rma_mem *mem;
        struct velo_exposed *exposed; /* To a peer over a transport. */
    };
    /* NULL: the data is in one piece. Receive: once matched, or in state OP_POSTED_LAYOUT. */
    const struct velo_mq_layout *layout;
    uint32_t piece_bytes; /* Receive, getting: of the get that is under way; 0: none. */
    int fetched;          /* Its status. */
};

/** The way of a long message's data. */
enum way { WAY_GET, WAY_COPY };

/** The recent cost of a way. */
struct way_cost {
    uint32_t tries;
    uint32_t ps_per_byte;
};

/** One generation of a port that messages are sent to, or come from. A port that is opened again
 * under its id is another peer: requests with the old one do not go on with the new one. */
struct velo_mq_peer {
    /* The members that a short send needs come first. */
    struct velo_conn *conn; /* For messages; NULL unless velo_mq_connect() made the peer known. */
    uint64_t direct_end_bytes; /* Shorter messages may go at once. 0: others wait, or it is gone. */
    struct velo_mq *mq;
    uint32_t eager_bytes;
    uint32_t first_bytes; /* Payload that goes with an RTS. */
    uint32_t piece_bytes; /* Payload of a DATA. */
    uint32_t bulk_bytes;  /* The same while much is left. */
    velo_id_t id;
    uint32_t generation;
    int gone;                /* The reason why nothing can be sent any more. */
    bool is_active;          /* Among mq->active. */
    bool is_deferred;        /* Among mq->deferred. */
    bool is_known;           /* velo_mq_connect() made it known. */
    uint32_t last_rounds;    /* Calls of progress since it was found gone, see LAST_ROUNDS_MAX. */
    uint32_t last_checks;    /* `checks` of the queue then. */
    bool requests_ended;     /* It is gone, and its requests have ended. */
    bool receives_ended;     /* It is gone, and receives posted for it have ended. */
    bool no_get;             /* There is no RMA to it. */
    bool stages;             /* Pieces of announced sends are copied ahead. */
    bool cannot_answer;      /* It has to hear that: what it sends is refused. */
    struct link active;      /* In mq->active: it has something to send, or is gone. */
    struct velo_conn *extra; /* For everything else; opened when needed. */
    void *reserved;          /* Room in `extra` for a DATA that is reserved; NULL: none is. */
    uint32_t reserved_bytes; /* For payload; piece_bytes at least. */
    uint32_t staged_bytes;   /* Of the piece that lies there. */
    struct transfer *staged; /* The announced send whose next piece that is; NULL: none. */
    struct list refusals;    /* Requests of the peer that will not be answered. */
    struct list answers;     /* Receives that have a CTS or FIN to send. */
    struct list streams;     /* Sends that have DATA to send. */
    struct list sends;       /* Sends in state OP_QUEUED. */
    uint32_t ids;            /* Requests that it knows by an id. */
    struct velo_rma_peer *rma;
    struct way_cost ways[2]; /* By enum way. */
    uint32_t ways_used;      /* Messages since a trial of the slower way. */
    uint32_t ways_period; /* The number of messages after which the next trial comes; 0: not yet. */
    enum way way;         /* The faster one, once both are known. */
    uint64_t unexpected_bytes;
    uint32_t kept;        /* Messages that were kept, also those that were probed. */
    struct link deferred; /* In mq->deferred, with the length of the message: */
    uint32_t deferred_len_bytes;
    struct velo_mq_peer *next;
    struct velo_mq_peer *next_generation; /* Of the same id. */
};

/** The most messages that one call of progress takes once they come in a stream. */
#define MQ_BURST_MAX 32u

/** One id, as receives from it see it. */
struct source {
    struct velo_mq_peer *generations; /* All that are known, the newest first. */
    uint32_t asked;                   /* The last check of it. */
    int gone; /* Its process had died before any of its generations was known. */
};

/** Receives with the same ignore bits. Their match bits are 0 there. */
struct posted {
    uint64_t ignore;
    struct match_table table;
    int32_t place; /* Its own number. */
};

/** The most kinds of ignore bits at a time that have a table. */
#define POSTED_TABLES 4

/** One matching space: the receives posted in it, and the messages of it that nobody has asked for.
 */
struct space {
    struct posted posted[POSTED_TABLES]; /* The first one is of those without ignore bits. */
    struct posted *recent;               /* Of these: the one that got the last receive. */
    uint64_t elsewhere;                  /* Receives in the others, and in the list: */
    struct list wild;                    /* Those that found no table, in the order of posting. */
    uint32_t tables;                     /* That are open. */
    struct match_table unexpected;
    struct list arrivals; /* The same messages in order of arrival. */
};

/** The message that a probe waits for. */
struct wanted {
    uint64_t match;
    uint64_t ignore;
    velo_id_t source;
    uint8_t space;
};

/** A message that stays in its ring although others behind it are waited for. */
struct over {
    velo_id_t source;
    uint32_t len_bytes;
    bool is_limit; /* It exceeds the limit. Else there is no memory. */
};

/** Work of progress beside receiving. */
enum work {
    WORK_PEERS = 1,  /* mq->active is not empty. */
    WORK_RESUME = 2, /* Deferred messages may be receivable now. */
    WORK_GETS = 4,   /* mq->gets is not empty. */
    WORK_REAP = 8,   /* A peer is gone: end the receives that are posted for it. */
    WORK_OVER = 16,  /* mq->over is in the way of a receive: end the receive. */
};

/** A receive must look at this before it is posted. */
enum before_post {
    BEFORE_UNEXPECTED = 1,
    BEFORE_DEFERRED = 2,
    BEFORE_CLOSING = 4,
};

struct velo_mq {
    struct velo_port *port;
    uint32_t work;        /* enum work, or-ed. */
    uint32_t before_post; /* enum before_post, or-ed. */
    uint32_t burst;       /* Messages to take in one call beyond the first; MQ_BURST_MAX at most. */
    uint32_t idle_polls;
    struct space spaces[VELO_MQ_SPACES]; /* The first one is that of calls that name none. */
    uint64_t sequence;                   /* Of the receive posted last. Begins in the middle: */
    uint64_t sequence_first;             /* Of the one that was posted before all others last. */
    struct velo_mq_counters counters;

    struct list probed; /* Messages that velo_mq_try_mprobe() took. */
    struct pool pool;
    const struct wanted *probed_for; /* By a probe that is looking. NULL: found, or none. */

    struct ids ids;
    struct list active;   /* Peers. */
    struct list deferred; /* Peers. */
    bool defers_unknown;  /* Also a message of a peer that there is no memory to note. */
    struct over over;     /* The last such message. */
    struct list gets;     /* Receives. */
    uint32_t active_count;
    uint32_t stalls; /* Fruitless rounds in a row. */
    int64_t checked_ns;
    uint32_t checks;
    uint32_t last_rounds; /* Calls in which no receives could end, see LAST_ROUNDS_MAX. */

    struct velo_rma *rma;
    uint32_t eager_bytes;
    uint64_t get_bytes;
    bool measures_ways; /* The user has not chosen a way. */
    int path;
    struct velo_mq_peer *peers;
    struct source *by_node[VELO_NODES];
};

/** A message that has come, from a ring or from the pool. */
struct arrival {
    uint64_t match;
    uint64_t sender_id;
    uint64_t total_bytes;
    uint64_t key;
    uint64_t address;
    uint64_t cookie;
    const void *data;
    uint32_t len_bytes; /* Of data. */
    velo_id_t source;
    uint32_t generation;
    uint8_t kind;
    uint8_t space;
    bool has_cookie;
};

_Static_assert(sizeof(struct transfer) <= sizeof((struct velo_mq_request *)0)->private_,
               "a request has no room for its private part");

hot_inline struct transfer *op_of(struct velo_mq_request *request)
{
    return (struct transfer *)(uintptr_t)request->private_;
}

hot_inline struct velo_mq_request *request_of(struct transfer *op)
{
    return member_of(op, struct velo_mq_request, private_);
}

/** The request is the caller's again. */
hot_inline void complete(struct velo_mq_request *request, int status)
{
    request->status = status;
    if (request->done)
        request->done(request);
}

/** Send a message of payload and trailer, built in the receiver's memory. */
hot_inline int send_built(struct velo_conn *conn, const void *buf, size_t len_bytes,
                          const void *trailer, size_t trailer_bytes, uint8_t tag)
{
    void *to;
    int status = velo_try_reserve(conn, len_bytes + trailer_bytes, &to);
    if (unlikely(status))
        return status;
    copy_in(to, buf, len_bytes);
    memcpy((char *)to + len_bytes, trailer, trailer_bytes);
    return velo_commit(conn, len_bytes + trailer_bytes, tag);
}

/** Copy a trailer out, once: its sender can still write to it, and the checked value must be the
 * one that is used. False: the message is too short. */
static inline bool mq_wire_read(const struct velo_msg *msg, void *trailer, size_t trailer_bytes)
{
    if (msg->len_bytes < trailer_bytes)
        return false;
    memcpy(trailer, (const char *)msg->data + msg->len_bytes - trailer_bytes, trailer_bytes);
    return true;
}

static inline uint8_t mq_tag_of(enum mq_wire_kind kind, uint32_t space, bool has_cookie)
{
    return (uint8_t)(kind | (space << MQ_WIRE_SPACE_SHIFT) | (has_cookie ? MQ_WIRE_COOKIE : 0u));
}

/** Send the message of a request: payload, cookie if it has one, and the trailer of its kind. */
static inline int mq_send_more(const struct transfer *op, size_t len_bytes, const void *trailer,
                               size_t trailer_bytes)
{
    char more[WIRE_TRAILER_MAX];
    size_t cookie_bytes = op->has_cookie ? sizeof op->cookie : 0;
    memcpy(more, &op->cookie, cookie_bytes);
    memcpy(more + cookie_bytes, trailer, trailer_bytes);
    return send_built(op->peer->conn, op->buf, len_bytes, more, cookie_bytes + trailer_bytes,
                      mq_tag_of((enum mq_wire_kind)op->kind, op->space, op->has_cookie));
}

/* ---- recv.c ---------------------------------------------------------------------------------- */

/** Take the message that is held, and the messages behind it if they come in a stream. */
int mq_recv_burst(struct velo_mq *mq, const struct velo_msg *first);
/** Take the next message, whose header is this, or 0 if none is in the current ring; and those
 * behind it if they come in a stream. Returns the number of events. */
int mq_recv_next(struct velo_mq *mq, uint64_t header);
/** Take the message that is held. */
void mq_recv_take(struct velo_mq *mq, const struct velo_msg *msg);
/** Give a matched message to its receive. True: call complete() with op->outcome after the message
 *  has been released. False: the receive goes on. */
bool mq_recv_start(struct velo_mq *mq, struct transfer *op, const struct arrival *arrival);
/** The same for a message that was kept; it is freed. */
void mq_recv_kept(struct velo_mq *mq, struct transfer *op, struct velo_mq_message *message);
/** The earliest kept message that such a receive would take, or NULL. */
struct velo_mq_message *mq_recv_find_kept(const struct velo_mq *mq, uint8_t space, velo_id_t source,
                                          uint64_t match, uint64_t ignore);
/** Take a kept message out of the queues. */
void mq_recv_unlink_kept(struct velo_mq *mq, struct velo_mq_message *message);
/** Free a kept message; messages that were pushed back may fit now. */
void mq_recv_free_kept(struct velo_mq *mq, struct velo_mq_message *message);
/** May a deferred peer have sent a message for such a receive? */
bool mq_recv_is_deferred(const struct velo_mq *mq, velo_id_t source);
/** The caller tells the program of mq->over. The message may be in the way of another receive, or
 *  one of another port may: such a receive is told at the next look. */
void mq_recv_told_over(struct velo_mq *mq);
/** End one receive that waits for what mq->over is in the way of. Returns the number of events. */
int mq_recv_give_up(struct velo_mq *mq);
/** VELO_ERR_NO_MEMORY, with the words for mq->over. */
int mq_recv_fail_over(const struct velo_mq *mq);
/** Have velo look at deferred connections again. */
void mq_recv_resume(struct velo_mq *mq);

/* ---- send.c ---------------------------------------------------------------------------------- */

/** Send what waits for room in the message connection. Returns the number of events, and the status
 *  that it stopped at. */
int mq_send_waiting(struct velo_mq_peer *peer, int *status);

/* ---- rendezvous.c ---------------------------------------------------------------------------- */

/** A receive has its RTS: have the rest of the message sent, or get it. As mq_recv_start(). */
bool mq_rendezvous_accept(struct velo_mq *mq, struct transfer *op, const struct arrival *arrival);
/** Send the RTS of a send. */
int mq_rendezvous_announce(struct transfer *op);
/** Take a message of this kind, which is held, and release it. False: it makes no sense, and is
 * still held. */
bool mq_rendezvous_on_cts(struct velo_mq *mq, const struct velo_msg *msg);
bool mq_rendezvous_on_fin(struct velo_mq *mq, const struct velo_msg *msg);

/* ---- get.c ----------------------------------------------------------------------------------- */

/** Start to get a message, if its sender offers that and it is worth while. */
bool mq_get_start(struct transfer *op, const struct arrival *arrival);
/** A receive that is being got ends: nothing more is written to its buffer. */
void mq_get_stop(struct transfer *op);
/** Go on with the gets. Returns the number of events. */
int mq_get_progress(struct velo_mq *mq);

/* ---- copy.c ---------------------------------------------------------------------------------- */

/** Copy the next piece of an announced send ahead, if there is room. */
void mq_copy_stage(struct transfer *op);
/** Take a DATA; as mq_rendezvous_on_cts(). */
bool mq_copy_on_data(struct velo_mq *mq, const struct velo_msg *msg);
/** If *status is VELO_OK: send DATA that wait for room. Returns the number of events, and the
 * status that it stopped at. */
int mq_copy_push(struct velo_mq_peer *peer, int *status);

/* ---- answer.c -------------------------------------------------------------------------------- */

/** Have the sender send the rest of the message. */
void mq_answer_cts(struct transfer *op);
/** A get failed: have the message copied after all. */
void mq_answer_copy_instead(struct transfer *op);
/** Tell the sender that its message was matched, or has come; as mq_recv_start(). */
bool mq_answer_fin(struct transfer *op);
/** Tell a peer, now or when there is room, that its request will not be answered. */
void mq_answer_refuse(struct velo_mq_peer *peer, uint64_t id);
/** Forget the refusals that wait for room. */
void mq_answer_drop_refusals(struct velo_mq_peer *peer);
/** Commit what was written to the reserved room of the extra connection. */
int mq_answer_commit(struct velo_mq_peer *peer, size_t len_bytes, enum mq_wire_kind kind);
/** Send refusals and answers that wait for room; as mq_copy_push(). */
int mq_answer_push(struct velo_mq_peer *peer, int *status);

/* ---- layout.c -------------------------------------------------------------------------------- */

/** Send the first message of a request with a layout, of up to this much payload, which is packed
 *  where the peer reads it; as mq_send_more(). *packed_bytes: of the payload. */
int mq_layout_send(const struct transfer *op, size_t most_bytes, const void *trailer,
                   size_t trailer_bytes, uint64_t *packed_bytes);

/** This receive is into a layout, whose state it has as its buffer. */
static inline void mq_layout_receives(struct transfer *op, const struct velo_mq_layout *layout,
                                      size_t cap_bytes)
{
    op->state = OP_POSTED_LAYOUT;
    op->layout = layout;
    op->len_bytes = 0;
    op->end_bytes = cap_bytes;
}

/** Copy the data of a send from where it has got to. Returns the length; 0: the layout gave none.
 */
static inline size_t mq_data_in(const struct transfer *op, void *to, size_t len_bytes)
{
    if (unlikely(op->layout))
        return op->layout->pack(op->buf, op->offset_bytes, to, len_bytes);
    copy_in(to, op->buf + op->offset_bytes, len_bytes);
    return len_bytes;
}

/** Copy data that has come to its place in the buffer of a receive. */
static inline void mq_data_out(const struct transfer *op, uint64_t offset_bytes, const void *from,
                               size_t len_bytes)
{
    if (likely(!op->layout))
        copy_out(op->buf + offset_bytes, from, len_bytes);
    else if (len_bytes > 0)
        op->layout->unpack(op->buf, offset_bytes, from, len_bytes);
}

/* ---- op.c ------------------------------------------------------------------------------------ */

/** Give a request an id that its peer may use. False: no memory. */
bool mq_op_name(struct transfer *op);
/** Take back a request's id, the registration of its memory, and what was copied ahead of it. */
void mq_op_unname(struct transfer *op);
/** The request of an id, if the sender of this message may name it: this very generation of a port.
 *  NULL: it may not, or there is none. */
struct transfer *mq_op_find(const struct velo_mq *mq, uint64_t id, const struct velo_msg *msg);
/** A send with an id is over. */
void mq_op_end_send(struct transfer *op, int status);

/* ---- offer.c --------------------------------------------------------------------------------- */

/** Does a peer share no memory with us, so that a transport fetches? */
bool mq_offer_is_carried(const struct velo_mq_peer *peer);
/** Is a message of this length fetched, if it can be? */
bool mq_offer_is_worth_it(const struct velo_mq_peer *peer, uint64_t len_bytes);
/** Open the RMA connection if it is not open. False: there is no RMA to the peer. */
bool mq_offer_connect_rma(struct velo_mq_peer *peer);
/** Forget the RMA connection. */
void mq_offer_disconnect(struct velo_mq_peer *peer);
/** Let the receiver of this send get it, if that is worth while. */
void mq_offer_make(struct transfer *op);
/** What the RTS says of it. */
struct velo_exposed mq_offer_of(const struct transfer *op);
/** Take that offer back. */
void mq_offer_revoke(struct transfer *op);

/* ---- way.c ----------------------------------------------------------------------------------- */

/** The way for a message: mostly the one that was faster lately. Its start_ns is 0 if its time says
 *  nothing about others. */
enum way mq_way_choose(struct transfer *op);
/** The data of a receive has come, in the way that was chosen for it. */
void mq_way_measured(const struct transfer *op, enum way way);
/** A get that was offered has failed. */
void mq_way_failed(const struct transfer *op);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/** The entry of an id; NULL if there is no memory, or no such id. */
struct source *mq_source_get(struct velo_mq *mq, velo_id_t id);
/** The generations of an id that are known, the newest first; NULL: none. */
struct velo_mq_peer *mq_peer_first_generation(const struct velo_mq *mq, velo_id_t id);
/** One generation of a port. It is made known if it was not. NULL: no memory, or no such id. */
struct velo_mq_peer *mq_peer_get(struct velo_mq *mq, velo_id_t id, uint32_t generation);
/** The payload that goes with an RTS, at most. */
uint32_t mq_peer_first_bytes(const struct velo_mq *mq);
/** Open the extra connection if it is not open. */
int mq_peer_open_extra(struct velo_mq_peer *peer);
/** The same to answer the peer. If that fails, the peer is lost, and is told so: else it would wait
 * for ever. */
int mq_peer_open_way_back(struct velo_mq_peer *peer);
/** This is a peer's extra connection. */
void mq_peer_set_extra(struct velo_mq_peer *peer, struct velo_conn *extra);
/** Have progress look at this peer. */
void mq_peer_activate(struct velo_mq_peer *peer);
/** Have it look there no more. */
void mq_peer_deactivate(struct velo_mq_peer *peer);
/** A call on one of its connections failed: progress will end its requests, after it has taken what
 *  the peer sent before it left. */
void mq_peer_lost(struct velo_mq_peer *peer, int status);

/* ---- ending.c -------------------------------------------------------------------------------- */

/** Send what waits for a peer, or end its requests if it is gone. `is_dry`: all that had come
 * before this call has been taken. Returns the number of events. */
int mq_peer_push(struct velo_mq_peer *peer, bool is_dry);
/** End everything that is under way with a peer, and its connections. */
void mq_peer_end(struct velo_mq_peer *peer, int status);
/** Ask the kernel about peers that requests wait for. */
void mq_peer_check(struct velo_mq *mq);
/** End the receives that are posted for peers that are gone; then forget the end of those peers to
 *  which the user has not connected. */
int mq_peer_reap(struct velo_mq *mq);

#endif
