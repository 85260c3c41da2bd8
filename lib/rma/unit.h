/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file unit.h
 * @brief An RMA unit, its peers and its operations, as this process keeps them.
 *
 * An operation goes one of three ways. **Direct**: loads and stores, to allocated memory, which is
 * mapped, or to memory of our own process. **Attach**: cross-memory attach, a system call. Both are
 * done before the call returns. **Asked**: the owner's library does it, as a series of pieces; each
 * piece is one request message and has one answer, and both come in order. Over a device
 * (offload.h) the device does what it can, and the other operations are asked.
 *
 * Nothing blocks. An operation that finds no room waits in its peer's queue. A request that cannot
 * be answered, or a notification that does not fit, waits in the ring that it came through; see
 * velo_defer(). Answers come over a connection of their own and are always taken: an operation
 * holds the place of its notification from the start. So two units that ask each other cannot block
 * each other.
 */
#ifndef VELO_RMA_UNIT_H
#define VELO_RMA_UNIT_H

#include "offload.h"
#include "table.h"

#define PEERS_MAX VELO_CONNS_MAX
#define IDS_MAX (VELO_NODES * VELO_VPIDS)

/* ---- operations ------------------------------------------------------------------------------ */

/** An operation as the user asked for it. */
struct request {
    uint8_t op;     /* enum velo_rma_operation. */
    uint8_t notify; /* enum velo_rma_notify. */
    uint8_t how;    /* VELO_RMA_ADD_ALWAYS, VELO_RMA_ADD_AT_MOST or VELO_RMA_TAIL_LAST. */
    uint8_t update; /* Fetch-op: see rma_update_code(). */
    velo_rma_key_t key;
    uint64_t cookie;
    uint64_t len_bytes; /* In all. */
    uint64_t offset;
    char *local; /* NULL for an immediate put: the value is in word[0]. */
    union {
        struct velo_rma_stride stride; /* One block, unless strided. */
        uint64_t word[2];              /* Immediate put: the value. Updates: the operands. */
    };
    const struct velo_rma_piece *pieces; /* Of a list operation; else NULL. */
    size_t count;                        /* Of pieces, or blocks. */
};

/** A stretch of bytes without a gap. */
struct run {
    char *local;
    uint64_t offset;
    uint64_t len_bytes;
};

/** A position in a request. */
struct cursor {
    size_t index;    /* Of the block or piece. */
    uint64_t within; /* Bytes of it that are done. */
};

/** A request that was not done at once. */
struct op {
    struct op *next;
    struct request request;
    bool fenced;   /* It takes effect only when all before it have. */
    bool must_ask; /* Only the owner can do it: that was seen when it was posted. */
    int status;
    struct cursor sent;
    struct cursor answered;
    uint64_t pieces_sent;
    uint64_t pieces_answered;
    bool is_refused; /* By the device. */
    int *outcome;    /* Of rma_fetch(); else NULL. */
};

struct op_list {
    struct op *head;
    struct op *tail;
};

/* ---- memory ---------------------------------------------------------------------------------- */

struct velo_rma_mem {
    struct velo_rma *rma;
    uint64_t key; /* 0: not in use. */
    char *addr;
    uint64_t len_bytes;
    uint64_t rights;
    uint64_t peer;
    uint32_t number; /* See velo_rma_mem_publish(). */
    uint64_t arena_at;
    uint64_t arena_bytes;      /* 0: the memory is the caller's. */
    struct velo_rma_mem *next; /* Of the free ones, or of the allocated ones, by arena_at. */
    bool has_more;             /* It has a range of the arena, or a device was told of it. */
    uint32_t page;             /* The device's own: its first at the node, plus 1; 0: none. */
};

/* ---- peers ----------------------------------------------------------------------------------- */

struct velo_rma_peer {
    struct velo_rma *rma;
    struct velo_conn *conn; /* For requests and notifications. */
    struct table table;
    struct table_row *row;
    uint64_t active_ops; /* Done since the last look whether the peer lives. */
    velo_id_t id;
    bool is_local;      /* In this process: its memory is ours. */
    pid_t pid;          /* For cross-memory attach; 0: not permitted. */
    int64_t checked_ns; /* The last time at which its process was seen to live. */
    char *arena;
    uint64_t arena_bytes; /* Mapped so far. */
    int gone;             /* The reason why nothing is possible any more. */
    bool is_leaving;      /* It is gone, and its last answers may still lie in our ring. */

    struct op_list waiting; /* Not begun. */
    struct op_list asked;   /* Begun, in the order of their answers. */
    uint32_t asked_here;    /* Those of them whose answers write memory here. */
    struct op *sending;     /* The last of `asked`, if not all of it is sent. */
    bool fence;             /* The next operation is fenced. */
    uint32_t handle;        /* Answers name it to find this peer. */
    uint32_t seq_sent;      /* Of the next piece. */
    uint32_t seq_answered;  /* Of the next answer. */
    uint64_t piece_bytes;   /* The most that one message carries. */
    uint32_t pending;       /* All operations that are not done. */
    uint32_t offloaded;     /* Of these, the operations that the device carries out. */
    struct velo_rma_peer *next;
};

static inline bool peer_is_idle(const struct velo_rma_peer *peer) { return peer->pending == 0; }

/** Does each operation on the peer's memory need the owner's library? Then its registrations cannot
 *  be seen, either. */
static inline bool rma_peer_is_remote(const struct velo_rma_peer *peer)
{
    return !peer->table.header;
}

/** An answer to puts of a peer that is still to be sent: others may come behind them. */
struct puts_served {
    struct velo_conn *conn; /* It holds a reservation for the answer. NULL: there is none. */
    char *place;
    uint32_t handle;
    uint32_t seq; /* Of the last one. */
    uint32_t count;
};

/* ---- the unit -------------------------------------------------------------------------------- */

struct velo_rma {
    struct velo_port *port;           /* Our own, beside the user's. */
    struct velo_port *owner;          /* The user's. */
    const struct rma_offload *device; /* What carries out operations for us. */
    struct table table;
    struct velo_rma_counters counters;
    bool may_attach;
    bool is_plain;        /* No connection is deferred, and there is no device. */
    uint32_t leaving;     /* Peers that are gone, and whose last answers are still to be taken. */
    uint32_t last_rounds; /* Calls of progress for these. */
    bool deferred;        /* Some connection is deferred... */
    bool stalled;         /* ...because the notification queue was full. */
    bool interrupted;     /* A wait has to end. */
    uint32_t polls;
    uint64_t *probe; /* A page with a random word: see table_header. */

    struct velo_rma_notification *queue;
    uint32_t queue_head;
    uint32_t queue_tail;

    struct velo_rma_mem *mems; /* By a key's index. */
    struct velo_rma_mem *mems_free;
    struct velo_rma_mem *allocated;
    uint32_t mems_used; /* Members of `mems` from here on have never been used. */
    uint64_t key_step;
    uint64_t key_last;

    struct op *ops;
    struct op *ops_free;
    uint32_t ops_used; /* Each holds a place in the queue. */

    struct velo_rma_peer *peers;
    struct velo_rma_peer *by_handle[PEERS_MAX];
    uint32_t handle_next;
    struct velo_conn **repliers; /* Connections for our answers; by the other unit's id. */
    struct puts_served served;
    struct offload *offload; /* The device's own; NULL until the device has something to do. */
};

/* ---- notifications --------------------------------------------------------------------------- */

/** Is there room for one more, beside the places that operations under way hold? */
static inline bool queue_has_room(const struct velo_rma *rma)
{
    return rma->queue_tail - rma->queue_head + rma->ops_used < VELO_RMA_NOTIFICATIONS_MAX;
}

/** Add one; there is room. */
static inline void queue_push(struct velo_rma *rma,
                              const struct velo_rma_notification *notification)
{
    rma->queue[rma->queue_tail++ % VELO_RMA_NOTIFICATIONS_MAX] = *notification;
}

/* ---- updates (update.c) ---------------------------------------------------------------------- */

/** The code of a fetch-op, in one byte: its enum velo_rma_atomic, and from bit 4 on its enum
 *  velo_rma_type. */
static inline uint8_t rma_update_code(unsigned atomic, unsigned type)
{
    return (uint8_t)(type << 4 | atomic);
}

/** The length of the word that an update is for; 0: there is no such update. */
size_t rma_update_bytes(uint8_t update);
/** Can a fetch-compare-add be asked for in this way? */
static inline bool rma_is_update_how(uint32_t how)
{
    return how == 0 || how == VELO_RMA_ADD_ALWAYS || how == VELO_RMA_ADD_AT_MOST;
}

/** Update the word at an aligned place. Returns its value before that. */
uint64_t rma_update(char *at, const struct request *request);
/** Of an update of a word that was `old`: `*word` is what it is now. Returns the bytes written, 0
 * if the comparison failed. */
uint64_t rma_update_outcome(const struct request *request, uint64_t old, uint64_t *word);

/** VELO_RMA_TAIL_LAST: how many of these bytes before an address are written in one piece. */
hot_inline size_t rma_tail_bytes(const char *end, size_t len_bytes)
{
    const uintptr_t at = (uintptr_t)end | sizeof(uint64_t);
    size_t bytes = at & -at; /* The lowest bit. */
    while (bytes > len_bytes)
        bytes /= 2;
    return bytes;
}

/* ---- the end of an operation (done.c) ------------------------------------------------------------------------ */

/** A request has ended: count it and notify its requester. There is room for that. */
void rma_request_done(struct velo_rma_peer *peer, const struct request *request, int status);

/* ---- doing it ourselves (reach.c) ------------------------------------------------------------ */

/** As status: the owner must be asked. */
#define MUST_ASK 1

/** Find out whether attach reaches a peer's memory. */
void rma_reach_probe(struct velo_rma_peer *peer);
/** Do a request now. VELO_OK, VELO_AGAIN, MUST_ASK, or an error. */
int rma_reach_do(struct velo_rma_peer *peer, const struct request *request);
/** Check a request without doing it. VELO_OK, MUST_ASK, or an error. */
int rma_reach_check(struct velo_rma_peer *peer, const struct request *request);
/** `remote`: the node's address of the registration that a request names. `address`: the request's
 *  address in its owner's memory. False: the node does not know the registration. For devices. */
VELO_PRIVATE bool rma_reach_at_node(struct velo_rma_peer *peer, const struct request *request,
                                    uint64_t *remote, uint64_t *address);

/* ---- asking (ask.c) -------------------------------------------------------------------------- */

/** Must a request wait for operations that the device still does? */
static inline bool rma_is_behind_device(const struct velo_rma_peer *peer,
                                        const struct request *request)
{
    return request->op == VELO_RMA_OPERATION_NOTIFY && peer->offloaded > 0;
}

/** Do a request now if that is possible without asking; as rma_reach_do(). */
int rma_do_now(struct velo_rma_peer *peer, const struct request *request);
/** Queue a request. `must_ask`: only the owner can do it. VELO_OK or VELO_AGAIN. */
int rma_ask_post(struct velo_rma_peer *peer, const struct request *request, bool must_ask);
/** Have the device, and only the device, do a request without notifications; as rma_fetch(). */
int rma_ask_device(struct velo_rma_peer *peer, const struct request *request, int *outcome);
/** Go on with operations that wait or are half sent. Returns the number of operations that ended.
 */
int rma_ask_pump(struct velo_rma_peer *peer);
/** Take an answer. Returns the number of operations that ended. */
int rma_ask_answered(struct velo_rma *rma, const struct velo_msg *msg);
/** The device has ended an operation. MUST_ASK: the device does not do it. */
VELO_PRIVATE void rma_ask_offloaded(struct velo_rma_peer *peer, struct op *op, int status);
/** Does this status mean that nothing is possible with the peer any more? */
static inline bool is_final(int status)
{
    return status == VELO_ERR_PEER_CLOSED || status == VELO_ERR_PEER_DEAD ||
           status == VELO_ERR_CORRUPT;
}

/** End all operations that are under way with a peer. */
VELO_PRIVATE void rma_ask_fail(struct velo_rma_peer *peer, int status);
/** A peer is gone. Progress takes the answers that it sent before it left, then ends what is left.
 */
VELO_PRIVATE void rma_ask_lose(struct velo_rma_peer *peer, int status);
/** End the operations with peers that were found gone before this call of progress, if `is_dry`:
 * all that had come before it has been taken. If others send without end, so many calls are enough,
 * too. Returns the number of operations that ended. */
int rma_ask_end_leaving(struct velo_rma *rma, bool is_dry);
/** Look whether peers live that owe us an answer. */
void rma_ask_check_peers(struct velo_rma *rma);

/* ---- serving (serve.c) ----------------------------------------------------------------------- */

/** Carry out the request in a message. False: not now, defer it. */
bool rma_serve_request(struct velo_rma *rma, const struct velo_msg *msg);
/** Send the answer to puts that were served, if there is one. */
void rma_serve_answer(struct velo_rma *rma);
/** Take a notification. False: not now, defer it. */
bool rma_serve_note(struct velo_rma *rma, const struct velo_msg *msg);
/** End the connections that answers go over. */
void rma_serve_close(struct velo_rma *rma);

/* ---- progress (progress.c) ------------------------------------------------------------------- */

/** Take in what has come, waiting at most that long for it, and go on with operations that wait. */
int rma_progress(struct velo_rma *rma, int64_t timeout_ns);

/* ---- messages between units ------------------------------------------------------------------ */

/** The tag of a message. The unit that gets a message checks its sizes and numbers. */
enum wire_tag { WIRE_REQUEST = 1, WIRE_ANSWER = 2, WIRE_NOTE = 3, WIRE_NOTHING = 4 };

/** One piece of an operation; a put's bytes follow. */
struct wire_request {
    uint8_t op;
    uint8_t notify; /* In the last piece only. */
    uint8_t how;    /* Of an update. */
    uint8_t update;
    uint32_t reserved;
    uint32_t handle;
    uint32_t seq;
    uint64_t key;
    uint64_t offset;
    uint64_t len_bytes;
    uint64_t cookie;
    uint64_t first_offset; /* Of the whole operation, */
    uint64_t total_bytes;  /* for the notification. */
    uint64_t word[2];      /* Of an update. */
};

/** The answer to one piece, and to puts right before it that were done; a get's bytes follow. */
struct wire_answer {
    uint32_t before; /* How many. */
    uint32_t handle;
    uint32_t seq; /* Of the one piece. */
    int32_t status;
    uint64_t old;
};

/** A notification. */
struct wire_note {
    uint8_t class_;
    uint8_t op;
    uint8_t reserved[6];
    uint64_t len_bytes;
    uint64_t address;
    uint64_t cookie;
};

/** The notification of an update. */
struct wire_note_update {
    struct wire_note note;
    uint64_t word;
};

_Static_assert(sizeof(struct wire_request) == 80, "on the wire");
_Static_assert(sizeof(struct wire_answer) == 24, "on the wire");
_Static_assert(sizeof(struct wire_note) == 32, "on the wire");
_Static_assert(sizeof(struct wire_note_update) == 40, "on the wire");

#endif
