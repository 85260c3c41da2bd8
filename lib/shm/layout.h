/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file layout.h
 * @brief The receive segment: its layout in shared memory, and how a process has it mapped.
 *
 * One segment holds one port's receive side. Its owner creates it; every sender maps it and writes
 * into a ring of its own. All positions are offsets. The owner never trusts sizes that stand here:
 * it keeps them privately. A comment beside each line names its writer.
 *
 *     header | connection table (one word each) | ring 0 | ring 1 | ... | outgoing table
 *     ring: 4 control lines, depth_slots slots of one line, data_bytes of data, 1 line unused
 *
 * The file is sparse: a ring takes memory when its connection is made and gives it back when the
 * connection ends. A ring is an odd number of lines long, so that equal slots of different rings
 * fall into different cache sets.
 *
 * The kernel tells which processes live, by locks that end with the process. The owner of a segment
 * holds a lock on a byte beyond the file's end: a process that opens the file by its name looks at
 * that one. A process that has the segment mapped looks at a lock of another file, see lives.h, and
 * so needs no descriptor of the segment; an entry names the life of its sender. After it is set up
 * only its owner has the segment's file open.
 *
 * A port id may be opened again and again. Each opening is a **generation** of its own, with a
 * random word that tells it from all others. The word stands in the segment's header, and for each
 * connection in the table entry of its sender. All that one process keeps of another names the
 * generation that it means.
 */
#ifndef VELO_SHM_LAYOUT_H
#define VELO_SHM_LAYOUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <velo/velo.h>

#include "../base/compiler.h"

#define SEG_MAGIC UINT64_C(0x314f4c4556) /* "VELO1" */
/** The version of the contract in spec/ and of the layout here: raised when they change. */
#define SEG_ABI (VELO_ABI_VERSION << 8 | 5u)
#define SEG_ALIGN 64
#define SEG_HEADER_BYTES 4096u
#define SEG_BELL_WORDS (VELO_CONNS_MAX / 64u)
#define SEG_OUTGOING_MAX VELO_CONNS_MAX
#define SEG_TRANSPORT_BYTES 16u /* Of a transport's name, with the zero behind it. */
/* One summary bit stands for this many connections: 32 bits in all, the width of a futex. */
#define SEG_CONNS_PER_SUMMARY_BIT (VELO_CONNS_MAX / 32u)

enum seg_state { SEG_OPEN = 1, SEG_CLOSED = 2, SEG_DEAD = 3 };

/** How the owner is to be woken. */
enum seg_sleep {
    SEG_AWAKE = 0,
    SEG_SLEEPS_ON_WORD = 1,  /* On `summary`. */
    SEG_SLEEPS_ON_FILES = 2, /* See doorbell.h. */
    SEG_ARMED = 3, /* On files, too: the program itself waits for the port's descriptor. */
};

/** Flags of a segment. */
enum {
    SEG_NEEDS_FENCE = 1,  /* The owner cannot use membarrier: senders must fence. */
    SEG_HAS_TAIL = 2,     /* The file goes on after the rings; see lib/rma/table.h, lib/bcast. */
    SEG_HAS_NO_RINGS = 4, /* Its rings have no memory: what uses it is in the tail. */
};

struct seg_header {
    /* Written once, before the segment has a name. */
    _Alignas(SEG_ALIGN) uint64_t magic;
    uint64_t spec_hash;
    uint32_t abi;
    uint32_t id;
    uint32_t depth_slots;
    uint32_t data_bytes;
    uint32_t conns_max;
    uint32_t flags;
    int64_t pid; /* Of the owner, in its own PID namespace; for people, not for decisions. */
    uint64_t ring_bytes;
    uint64_t lives_ino;    /* Of the file by which the owner lives; see lives.h. */
    uint32_t lives_number; /* In its name. */
    uint32_t generation;   /* Random, never 0: tells this segment from others under its name. */

    _Alignas(SEG_ALIGN) uint64_t state; /* Owner: enum seg_state. SEG_DEAD: any process sets it. */
    uint64_t device; /* Owner: its name for the hardware, see transports/nic; 0: natively none. */

    _Alignas(SEG_ALIGN) uint32_t sleeping; /* Owner: enum seg_sleep, wake it. */
    uint32_t reap_request;                 /* Senders: the table is full, look for the dead. */

    _Alignas(SEG_ALIGN) uint32_t summary; /* Senders set, owner takes: doorbell words to look at. */

    _Alignas(SEG_ALIGN) uint64_t bells[SEG_BELL_WORDS]; /* The same: one bit a connection. */

    /* Owner. */
    _Alignas(SEG_ALIGN) uint64_t rx_msgs;
    uint64_t rx_bytes;
    uint64_t rx_doorbells;
    uint64_t rx_sleeps;
    uint64_t rx_errors;
    uint64_t rx_conns;
    uint64_t rx_reclaimed;
    uint64_t kept_bytes;       /* Matched queues: memory of messages that nobody has asked for, */
    uint64_t kept_bound_bytes; /* and its bound; see lib/mq. */
    uint64_t outgoing_len;     /* Rows of the outgoing table that have memory. */

    /* Owner: how a transport reaches it; see lib/net/names.c. */
    _Alignas(SEG_ALIGN) uint64_t name_bytes; /* Written last; 0: not so far. */
    char name[VELO_PORT_NAME_BYTES_MAX];
};

/** Does the receiver look at a ring by itself, or does it want to be rung? */
enum ring_bell { BELL_POLLED = 0, BELL_RING = 1 };

struct seg_ring {
    _Alignas(SEG_ALIGN) uint32_t bell; /* Owner: enum ring_bell; read by the sender each time. */

    _Alignas(SEG_ALIGN) uint64_t consumed; /* Owner: cells before this position are free. */
    uint64_t data_consumed;                /* Owner: and data bytes before this one. */

    _Alignas(SEG_ALIGN) uint32_t waiting; /* Sender: it sleeps on `consumed`, wake it. */
    uint32_t tx_left; /* 1: its device is about to tell the owner that it left. */
    char transport[SEG_TRANSPORT_BYTES]; /* The sender's transport, for people; empty: memory. */

    _Alignas(SEG_ALIGN) uint64_t tx_msgs; /* Sender: counters. */
    uint64_t tx_bytes;
    uint64_t tx_again;
    uint64_t tx_sleeps;
    uint64_t tx_device;  /* As `device` of the header. */
    uint64_t tx_order;   /* Read after its port's connections of lower order; 0: after none. */
    uint64_t tx_end;     /* Position after its last message, once it has disconnected. */
    uint64_t tx_by_line; /* 1: it begins a line with each message; see lib/core/ring.h. */

    _Alignas(SEG_ALIGN) uint64_t slots[]; /* Sender; then the data region. */
};

/* See outgoing.h. Owner. */
struct seg_outgoing {
    _Alignas(SEG_ALIGN) uint64_t entry; /* As in the connection table, of the peer. */
    char transport[SEG_TRANSPORT_BYTES];
    uint64_t tx_msgs;
    uint64_t tx_bytes;
    uint64_t tx_again;
    uint64_t tx_sleeps;
};
#define SEG_OUTGOING_BYTES (SEG_OUTGOING_MAX * sizeof(struct seg_outgoing))

_Static_assert(sizeof(struct seg_outgoing) == SEG_ALIGN, "a connection is one line");
_Static_assert(sizeof(struct seg_header) <= SEG_HEADER_BYTES, "the header outgrew its page");
_Static_assert(sizeof(struct seg_ring) == (size_t)4 * SEG_ALIGN, "control lines of a ring");
_Static_assert(VELO_LINE_BYTES == SEG_ALIGN, "a slot is one line");
_Static_assert(VELO_INLINE_BYTES == VELO_LINE_BYTES - VELO_LINE_HEADER_BYTES,
               "velo.h says what the spec says");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "futexes use the low half of a word");

/* A connection table entry is one word, so that a claim names the sender in one step. */
enum entry_state {
    ENTRY_FREE = 0,    /* Anyone may claim it. Only the owner stores this. */
    ENTRY_CLAIMED = 1, /* A sender sets it up. */
    ENTRY_READY = 2,   /* In use. */
    ENTRY_REFUSED = 3, /* The owner found nonsense in the ring and will not read it again. */
    /* From here on its sender is done with it. */
    ENTRY_ENDED = 4,    /* The sender disconnected; the owner drains and frees it. */
    ENTRY_GIVEN_UP = 5, /* The sender got no memory for the ring; the owner frees it. */
    ENTRY_LOST = 6,     /* As ENTRY_ENDED, but the sender has died, as its network says. */
};
/** Beside the state: the owner's process fills the ring for a sender on another node, and says when
 * that has died. */
#define ENTRY_CARRIED (UINT64_C(1) << 8)

static inline uint64_t entry_pack(enum entry_state state, velo_id_t source, uint32_t generation)
{
    return (uint64_t)state | ((uint64_t)source << 16) | ((uint64_t)generation << 32);
}

static inline enum entry_state entry_state(uint64_t entry)
{
    return (enum entry_state)(entry & 0xff);
}

/** The same entry in another state. */
static inline uint64_t entry_in_state(uint64_t entry, enum entry_state state)
{
    return (entry & ~UINT64_C(0xff)) | (uint64_t)state;
}

static inline velo_id_t entry_source(uint64_t entry) { return (velo_id_t)((entry >> 16) & 0xffff); }

/** The generation of the sending port. */
static inline uint32_t entry_generation(uint64_t entry) { return (uint32_t)(entry >> 32); }

/** Sizes that follow from a port's attributes. Each side keeps its own checked copy. */
struct seg_shape {
    uint32_t depth_slots;
    uint32_t data_bytes;
    uint32_t conns_max;
    size_t table_bytes;
    size_t ring_bytes;
    size_t total_bytes;
};

/** A mapped segment. One for each file, shared by all users in this copy of the library; see
 *  process.h. */
struct segment {
    struct segment *next;
    unsigned refs;
    bool owned;      /* By a port of this process. */
    bool has_ringer; /* It has taken doorbell_ringer_take(). */
    int fd;          /* -1: closed; see seg_file_take(). */
    unsigned fd_users;
    int lives_fd;          /* See lives.h; -1: none. */
    uint64_t lives_ino;    /* Its device is the segment's. */
    uint32_t lives_number; /* In its name. */
    dev_t dev;
    ino_t ino;
    uint32_t generation; /* The life of its owner. */
    struct seg_shape shape;
    struct seg_header *header;
    uint64_t *entries;
    uint32_t outgoing_len;                         /* As in the header, which others may write. */
    uint64_t outgoing_used[SEG_OUTGOING_MAX / 64]; /* A bit a row. */
    char path[PATH_MAX];
};

/* So that the name of a doorbell's socket fits: see doorbell.c. */
#define SEG_DIR_MAX 88u

/** The directory of a domain's segments, and the users who may open them. */
struct seg_domain {
    char dir[SEG_DIR_MAX + 1];
    char name[VELO_DOMAIN_NAME_MAX + 1 + 6]; /* With room for "+rma", "+dimm" and "+bcast". */
    bool shared;                             /* With the members of `gid`. */
    gid_t gid;
};

static inline struct seg_outgoing *seg_outgoing(const struct segment *segment, uint64_t index)
{
    char *end = (char *)segment->header + segment->shape.total_bytes;
    return (struct seg_outgoing *)(end - SEG_OUTGOING_BYTES) + index;
}

static inline struct seg_ring *seg_ring(const struct segment *segment, uint32_t index)
{
    return (struct seg_ring *)((char *)segment->header + SEG_HEADER_BYTES +
                               segment->shape.table_bytes +
                               (size_t)index * segment->shape.ring_bytes);
}

#endif
