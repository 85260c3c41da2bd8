/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rma2_internal.h
 * @brief A port of rma2, its connections and its notifications, as this process keeps them.
 *
 * An NLA is the address that its byte has in its owner's process: so NLAs count by pages and bytes,
 * and a peer's registration is found by velo_rma_mem_find(). Each connection remembers what it
 * found, and looks again when the peer refuses it.
 *
 * The cookie holds all that a notification says beside rma.h's own members.
 */
#ifndef EXTOLL_RMA2_INTERNAL_H
#define EXTOLL_RMA2_INTERNAL_H

#include <velo/rma.h>

#include "carry_on.h"
#include "place.h"
#include "rma2.h"
#include "turn.h"

#define unlikely(condition) __builtin_expect(!!(condition), 0)
#define hot_inline static inline __attribute__((always_inline))
#define likely(condition) __builtin_expect(!!(condition), 1)

#define PAGE_BYTES 4096u
#define QUEUE_BYTES (256u << 10)
#define QUEUE_ENTRIES (QUEUE_BYTES / (uint32_t)sizeof(RMA2_Notification))
#define SIZE_MAX_BYTES (UINT32_C(1) << 23)
#define TRAFFIC_CLASSES_ALL 3u
#define RESPONSE_TC_AT 8
#define LOCKS 4096u
#define LOCK_TARGETS 2u
#define CLASSES 256u
/* Locks that are asked for at once. */
#define LOCK_OPS VELO_RMA_OPS_MAX
/* The numbers under which peers find what a port has for them. */
#define NUMBER_LOCKS 1u
#define NUMBER_CLASSES 2u
/* Stretches of its peer's memory that a connection remembers. */
#define KNOWN 8u
/* Notifications of rma.h that are taken at once; each becomes two at most. */
#define NOTES 8

/** Registered memory of this port. */
struct area {
    uint64_t from;
    uint64_t end;
    struct velo_rma_mem *mem;
};

/** A lock that was asked for, until its outcome is here. */
struct lock_op {
    uint64_t old;
    int32_t cmp;
    int32_t add;
    struct lock_op *next; /* Of the free ones. */
};

struct rma2_port {
    struct velo_port *port;
    struct velo_rma *rma;
    struct turn turn;
    int64_t wait_ns;
    uint32_t posts;      /* Tried at once; */
    uint32_t slow_posts; /* the others, and those that failed. */

    RMA2_Notification *queue;
    uint32_t queue_entries; /* As many as may be in it, */
    uint32_t queue_mask;    /* and its places less 1, a power of two less 1. */
    uint32_t segment_bytes; /* As the program set it. */
    RMA2_Replay_Buffer_Mode replay_mode;
    uint32_t arrived; /* Notifications that were put into the queue, */
    uint32_t taken;   /* that the program got, */
    uint32_t freed;   /* and that it gave back. */

    struct velo_rma_mem *locks;
    /* A notification with a class is a put of one byte to its own: so a node can carry it out. */
    struct velo_rma_mem *classes;
    uint64_t classes_at;
    unsigned char class_marks[CLASSES]; /* That put's local address: which class it was. */

    struct area *areas;
    uint32_t areas_count;
    uint32_t areas_max;
    uint32_t area_last; /* The one that was found last. */

    struct lock_op *lock_ops;
    struct lock_op *lock_free;
    struct rma2_handle *handles;
    struct rma2_port *next; /* Of this process. */
};

/** A stretch of a peer's memory that one key opens. */
struct known {
    uint64_t from;
    uint64_t end;
    velo_rma_key_t key;
    uint64_t base; /* The address of the key's first byte. */
};

struct rma2_handle {
    struct rma2_port *port;
    struct velo_rma_peer *peer; /* NULL: it was not there yet. */
    velo_id_t id;
    RMA2_Connection_Options options; /* And the class of answers above them. */
    velo_rma_key_t key_last; /* Of the operation before: one with another may overtake it. */
    struct known known[KNOWN];
    uint32_t known_next;
    uint32_t known_last;         /* The one that was found last. */
    struct velo_rma_place locks; /* Key 0: not looked up yet. */
    struct velo_rma_place classes;
    struct rma2_handle *next;
};

/* Word 1 of a notification. A cookie has the same shape, with the spec in place of the type, and a
 * lock's number and place where a notification names the other side: so a notification is made of a
 * cookie by a few masks. */
#define SIZE_BITS 23
#define VPID_AT 23
#define NODE_AT 32
#define TYPE_AT 48
#define CMD_AT 51
#define MODE_AT 55
#define ERROR_AT 61
#define NUMBER_AT 23
#define NUMBER_BITS 13
#define SLOT_AT 36
#define SLOT_BITS 12
#define SIZE_MASK ((UINT64_C(1) << SIZE_BITS) - 1)
#define CMD_MASK (UINT64_C(15) << CMD_AT)
#define MODE_MASK (UINT64_C(15) << MODE_AT)

/* Word 0 of a descriptor. Of a notification with a class this stands in place of the size, of a
 * lock the target. */
#define WORD0_VALID 3u
#define COUNT_AT 40
#define MODIFIER_AT 35
#define SPEC_AT 32
#define DESC_NODE_AT 16
#define DESC_VPID_AT 8
#define DESC_CMD_AT 2
/* Of a lock: word 1 has its number, and above what it is compared with; word 2 what is added. */
#define LOCK_NUMBER_BITS UINT32_C(0xffffff)
#define LOCK_VALUE_AT 32
#define MODIFIERS_ALL 15u

static inline uint64_t cookie_make(RMA2_Command cmd, RMA2_Command_Modifier mode,
                                   RMA2_Notification_Spec spec, uint32_t size)
{
    return (uint64_t)(size - 1) | (uint64_t)spec << TYPE_AT | (uint64_t)cmd << CMD_AT |
           (uint64_t)mode << MODE_AT;
}

static inline uint64_t cookie_of_lock(uint32_t number, uint32_t slot)
{
    return (uint64_t)number << NUMBER_AT | (uint64_t)slot << SLOT_AT;
}

static inline uint64_t cookie_part(uint64_t cookie, unsigned at, unsigned bits)
{
    return cookie >> at & ((UINT64_C(1) << bits) - 1);
}

/** The result that stands for a status of rma.h. */
RMA2_ERROR rma2_result(int status);
/** Give the port, which holds no notification, a queue of so many. */
RMA2_ERROR rma2_make_queue(struct rma2_port *port, uint32_t entries);
/** The pointer by which a port's list leads to this connection; NULL: it is NULL or another port's.
 * The caller has the port's turn. */
struct rma2_handle **rma2_link_to(struct rma2_port *port, const struct rma2_handle *handle);
/** Is this memory registered with the port? */
bool rma2_is_registered(struct rma2_port *port, RMA2_NLA address, uint64_t len_bytes);
/** Take in what has come, as far as the queue has room, waiting for it at most so long. Returns
 * what velo_rma_poll() did; 0 also if there is no room. */
int rma2_take_in(struct rma2_port *port, int64_t timeout_ns);
/** Carry on with the other ports of this process, but for those that other threads use now. True:
 * there was something to do. NULL: with all. */
bool rma2_carry_on(const struct rma2_port *own);
/** Does this process have more than one port? */
bool rma2_has_others(void);
/** Connect now, if that was not possible before; wait for the peer. VELO_OK or an error. */
int rma2_connect_late(struct rma2_handle *handle);

#endif
