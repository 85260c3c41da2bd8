/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file bcast.h
 * @brief One to many: the ring in shared memory, its writer and its readers.
 *
 * The ring is the tail of a segment (see lib/shm/layout.h) that has no port. The segment's
 * connection table has the readers: an entry each, which names the life that tells whether its
 * process goes on. Its rings of connections take no memory and are not used.
 *
 *     control | slots, a line each | data of long messages
 *
 * Messages are counted, from `depth_slots` on. Message n lies in slot n mod depth_slots, whose
 * header is then n + 1; n + 1 - depth_slots is what the lap before has left there, and 0 says that
 * a dropping writer is about to overwrite the slot. So a reader learns from the one line that it
 * reads anyway whether its message is there, is not there yet, or was overwritten.
 *
 * A long message lies in one piece in the data region, at its position modulo data_bytes.
 *
 * A dropping ring: readers copy a message, and then look whether the writer had begun to overwrite
 * it (edge 13). A ring that pushes back: the writer looks at the readers' counts when it has used
 * up the room that it knew of. A reader that joins says so first, and then, after a full fence,
 * starts at the writer's count (edge 16). If the writer did not see it when it last looked at the
 * counts, then the room that it took for free then ends at most depth_slots after that count.
 *
 * A comment beside each line names its writer.
 */
#ifndef VELO_BCAST_BCAST_H
#define VELO_BCAST_BCAST_H

#include <velo/bcast.h>

#include "../base/compiler.h"
#include "../base/error.h"
#include "../base/hook.h"
#include "../base/order.h"
#include "../core/guard.h"
#include "../core/source.h"
#include "../shm/domain.h"
#include "../shm/segment.h"
#include "../shm/wait.h"

#define BCAST_MAGIC UINT64_C(0x3154534143424c56) /* "VLBCAST1" */
#define BCAST_SLOT_WORDS (VELO_BCAST_INLINE_BYTES / 8u)
#define BCAST_DATA_BYTES_MAX (1u << 30)
/** How often a writer that finds no room asks at most whether the slowest reader lives. */
#define BCAST_ASK_NS (NS_PER_S / 1000)

struct bcast_place {
    _Alignas(SEG_ALIGN) uint64_t consumed; /* Reader: messages before this one are free. */
    _Alignas(SEG_ALIGN) uint32_t stuck;    /* Writer: it sleeps on `consumed`. */
};

struct bcast_control {
    /* Written once; the magic last. */
    _Alignas(SEG_ALIGN) uint64_t magic;
    uint32_t depth_slots;
    uint32_t flags;
    uint32_t msg_bytes_max;
    uint32_t data_bytes;

    _Alignas(SEG_ALIGN) uint64_t tail; /* Writer: messages published. */
    uint64_t overwritten;              /* Writer: data before this, less data_bytes, is gone. */

    _Alignas(
        SEG_ALIGN) uint32_t asleep; /* Readers sleep on it, and make it odd; the writer, even. */
    uint32_t fenced;                /* Readers: one of them cannot use membarrier. */

    struct bcast_place places[VELO_BCAST_READERS_MAX];
};

struct bcast_slot {
    _Alignas(SEG_ALIGN) uint64_t header;
    uint64_t about; /* Length, tag, and whether the payload is in the data region. */
    union {
        uint64_t words[BCAST_SLOT_WORDS];
        uint64_t position;
    };
};

_Static_assert(sizeof(struct bcast_slot) == SEG_ALIGN, "a slot is one line");

#define BCAST_ABOUT_TAG_LSB 32
#define BCAST_ABOUT_LONG (UINT64_C(1) << 40)

/** The mapped ring; sizes were checked. */
struct bcast_map {
    struct segment *segment;
    struct bcast_control *control;
    struct bcast_slot *slots; /* Readers: mapped for reading only. */
    char *data;
    uint64_t depth;
    uint64_t data_bytes;
    uint32_t msg_bytes_max;
    bool drops;
    bool fenced; /* This process, or the other side, cannot use membarrier. */
    velo_id_t id;
};

struct velo_bcast {
    struct bcast_map map;
    uint64_t process;     /* The mark of the process that opened it; see ../base/fork.h. */
    uint64_t next;        /* Number of the next message. */
    uint64_t limit;       /* It and those after it have no room, as far as we know. */
    uint64_t data_tail;   /* Position behind the last long message. */
    uint64_t data_limit;  /* Position of data without room. */
    uint64_t overwritten; /* Dropping: the largest end of data that was begun. */
    int64_t spin_max_ns;
    int64_t asked_ns; /* When we last asked whether a reader lives. */
    uint32_t slowest; /* The reader that the limits come from, its entry, and its count. */
    uint64_t slowest_entry;
    uint64_t slowest_count;
    uint64_t asleep_on;   /* Address of the count on which we sleep, or slept last; 0: none yet. */
    uint32_t interrupted; /* The wait for room has to end. */
    bool reserved;
    size_t reserved_bytes;
    uint32_t in_use;
    uint64_t starts[]; /* Of each slot's message: data_tail before it. */
};

struct velo_bcast_reader {
    struct bcast_map map;
    uint64_t process; /* As the writer's. */
    struct bcast_place *place;
    uint64_t next; /* Number of the next message. */
    uint64_t missed;
    uint64_t entry;         /* What the table says of us. */
    struct msg_source from; /* The ring; it has no user. */
    uint32_t index;
    uint32_t idle_polls;
    int64_t spin_max_ns;
    int64_t spin_ns;
    uint32_t interrupted; /* The wait has to end. */
    bool held;
    uint32_t in_use;
};

static inline struct bcast_slot *bcast_slot(const struct bcast_map *map, uint64_t number)
{
    return &map->slots[number & (map->depth - 1)];
}

/** Check attributes and fill in the domain. VELO_ERR_ARG. */
int bcast_attr(struct velo_bcast_attr *attr, const struct velo_bcast_attr *given,
               struct seg_domain *domain);
/** The domain of rings in the domain of a name (NULL: the default one). VELO_ERR_ARG. */
int bcast_domain(struct seg_domain *domain, const char *name, const char *group);
/** Read what a segment says of its ring; false if there is none yet. Read, not mapped, as the file
 *  may end before it. */
bool bcast_control_read(const struct segment *segment, struct bcast_control *control);
/** Map the ring of a segment that another process has made. VELO_ERR_NO_PEER: not there yet. */
int bcast_map_open(struct bcast_map *map);
void bcast_unmap(struct bcast_map *map);
/** Wake all readers that sleep. */
cold_path void bcast_wake(const struct bcast_map *map);
/** Every process's stores and loads before this come before those after it, or the kernel cannot do
 *  that, and the other side fences each time. */
void bcast_barrier(const struct bcast_map *map);

#endif
