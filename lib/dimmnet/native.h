/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file native.h
 * @brief The native engine: boards in shared memory, and a controller that runs in the caller.
 *
 * A board is the tail of a segment (see lib/shm/segment.h) that has no port. The segment's owner
 * made the board; its connection table has the processes, an entry and a lock each, that tells
 * whether one has it open.
 *
 *     control | table of PIDs | Prefetch Windows and LLCM of each process | SO-DIMM
 *
 * Write Windows are private: only their own process reads them, when it carries out its command. It
 * then writes into the memory of the target, whose board it has mapped.
 *
 * **The status ring** lies in LLCM and has many writers and one reader. An entry is one word: the
 * status, and in bits that a status does not use the number of the lap (cell_lap()). An entry that
 * is empty holds the lap for which it is empty, and nothing else. A writer takes the entry at the
 * count `written` by one compare-and-swap, from empty in this lap to its status, and then moves the
 * count on by another. A writer or reader that finds the entry at the count filled moves the count
 * on first: so a writer that dies between the two keeps nobody waiting. An entry of an earlier
 * lap means that the ring is full. The reader empties entries for the next lap once it has taken so
 * many.
 *
 * A comment beside each line names its writer.
 */
#ifndef VELO_DIMMNET_NATIVE_H
#define VELO_DIMMNET_NATIVE_H

#include "engine.h"

#include "../base/compiler.h"
#include "../base/error.h"
#include "../base/hook.h"
#include "../base/order.h"
#include "../shm/wait.h"

#define NATIVE_MAGIC UINT64_C(0x314d4d4944564c56) /* "VLVDIMM1" */
/** Words of Prefetch Windows and LLCM of a process: its Prefetch Windows have a page of their own.
 */
#define NATIVE_PREFETCH_WORDS 512u
#define NATIVE_MEMORY_WORDS (NATIVE_PREFETCH_WORDS + VELO_DIMMNET_LLCM_WORDS)

struct native_process {
    /* The privileged process. */
    _Alignas(SEG_ALIGN) uint64_t identity; /* dimmnet_identity. */
    uint64_t region_word;
    uint64_t region_words;

    _Alignas(SEG_ALIGN) uint64_t written;  /* Senders: statuses written. */
    _Alignas(SEG_ALIGN) uint32_t sleeping; /* Process: it sleeps on `written`. */

    _Alignas(SEG_ALIGN) uint64_t taken;   /* Process: statuses taken, as far as it has said. */
    _Alignas(SEG_ALIGN) uint32_t waiting; /* Senders: one sleeps on `taken`. */

    /* Senders: counters. */
    _Alignas(SEG_ALIGN) uint64_t received;
    uint64_t dropped_pgid;
    uint64_t dropped_malformed;
    uint64_t dropped_bounds;
    uint64_t dropped_status;

    /* Process: counters. */
    _Alignas(SEG_ALIGN) uint64_t sent;
    uint64_t refused;
};

struct native_control {
    /* Written once; the magic last. */
    _Alignas(SEG_ALIGN) uint64_t magic;
    uint64_t spec_hash;
    uint64_t lid;
    uint64_t processes;
    uint64_t sodimm_words;
    uint64_t board; /* Of boards in slots (slot.c): its number. */

    _Alignas(SEG_ALIGN) uint64_t patience; /* The privileged process, in cycles. */

    struct native_process process[VELO_DIMMNET_PROCESSES_MAX];
};

/** A mapped board; one for each segment and process, shared by all who use it. Sizes were checked.
 */
struct native_map {
    struct native_map *next;
    unsigned refs;
    struct segment *segment;
    struct native_control *control;
    uint64_t *pids;
    uint64_t *memories;
    uint64_t *sodimm;
    uint32_t lid;
    uint32_t processes;
    uint64_t sodimm_words;
    size_t map_bytes;
};

struct native_slot {
    struct dimmnet_slot slot;
    struct native_map *home;
    struct native_process *self;
    uint32_t lid;
    uint32_t wid;
    uint64_t command_0;
    uint64_t pattern_local;
    uint64_t pattern_remote;
    uint64_t done;
    uint64_t error;
    int64_t spin_max_ns;
    uint64_t taken; /* What the ring's entries have been emptied up to. */
    struct seg_domain domain;
    struct native_map *boards[1u << VELO_DIMMNET_COMMAND_LID_BITS]; /* By LID, those met so far. */
    _Alignas(SEG_ALIGN) uint64_t write[DIMMNET_WRITE_WORDS];
};

struct native_board {
    struct dimmnet_board board;
    struct native_map *map;
};

static inline uint64_t *native_prefetch(const struct native_map *map, uint32_t wid)
{
    return map->memories + (size_t)wid * NATIVE_MEMORY_WORDS;
}

static inline uint64_t *native_llcm(const struct native_map *map, uint32_t wid)
{
    return native_prefetch(map, wid) + NATIVE_PREFETCH_WORDS;
}

/* ---- native_map.c: the memory of boards ------------------------------------------------------- */

/** Make a board's segment. It cannot be opened before native_map_show(). */
int native_map_create(const struct seg_domain *domain, uint32_t lid, uint32_t processes,
                      uint64_t sodimm_bytes, struct native_map **out);
/** Its maker has set the board up: from now on processes can open it, this one too. */
void native_map_show(struct native_map *map);
/** Map a board that another process made. VELO_ERR_NO_PEER: not there yet. */
int native_map_open(const struct seg_domain *domain, uint32_t lid, struct native_map **out);
void native_map_put(struct native_map *map);
/** Take a process that nobody has open. Its lock, seg_lock_entry(), says that it is taken.
 *  VELO_ERR_ARG, VELO_ERR_FULL, VELO_ERR_IN_USE. */
int native_map_claim(const struct native_map *map, int wid, uint32_t *taken);
/** VELO_OK while the board is there, without a system call: a death may go unnoticed. */
int native_map_status(const struct native_map *map);

/* ---- native_ring.c: statuses ------------------------------------------------------------------ */

/** Empty the ring of a process that nobody has open. */
void native_ring_reset(const struct native_map *map, uint32_t wid);
/** Leave a status with a process; VELO_OK also if it was dropped. VELO_ERR_PEER_DEAD, _PEER_CLOSED.
 */
int native_ring_post(const struct native_map *map, uint32_t wid, uint64_t status);
/** Statuses written, those of writers that did not come so far among them. */
uint64_t native_ring_written(const struct native_slot *slot);
/** The process has taken statuses up to this count, modulo 2^32. */
void native_ring_take(struct native_slot *slot, uint32_t count);
int native_ring_sleep(struct native_slot *slot, uint32_t seen, int64_t sleep_ns);

/* ---- native_copy.c: words in their order ------------------------------------------------------ */

/** Words of one memory, in the order of an access. */
struct native_words {
    uint64_t *memory;
    uint64_t limit_words; /* Of the memory. */
    uint32_t first_word;
    uint32_t access; /* VELO_DIMMNET_ACCESS_x. */
    uint32_t element_words;
    int32_t step_words;
    const void *list; /* Offsets of 32 bits. */
};

/** Are all of them inside the memory? */
bool native_words_fit(const struct native_words *words, uint32_t len_words);
/** Copy; both fit. An offset that changes meanwhile is left out. */
void native_copy(const struct native_words *to, const struct native_words *from,
                 uint32_t len_words);

/* ---- native_packet.c: what a controller does with packets and commands ------------------------- */

int native_botf(struct native_slot *slot, uint64_t botf);
int native_aotf(struct native_slot *slot, unsigned header, uint64_t word);
int native_command(struct native_slot *slot, uint64_t word_0, uint64_t word_1);

#endif
