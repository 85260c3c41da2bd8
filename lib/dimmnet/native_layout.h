/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file native_layout.h
 * @brief The native engine: boards in shared memory, and a controller that runs in the caller.
 *
 * A board is the tail of a segment (see lib/shm/layout.h) that has no port. The segment's owner
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
#ifndef VELO_DIMMNET_NATIVE_LAYOUT_H
#define VELO_DIMMNET_NATIVE_LAYOUT_H

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

/** A process of a board that a context has open. Its entry in the board's segment names a life. */
struct native_claim {
    uint32_t wid;
    uint32_t generation;
};

struct native_slot {
    struct dimmnet_slot slot;
    struct native_map *home;
    struct native_process *self;
    uint32_t lid;
    struct native_claim claim;
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

#endif
