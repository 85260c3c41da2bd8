/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file table.h
 * @brief The part of an RMA unit that its peers see: the tail of its segment.
 *
 * A unit has a port of its own beside its user's, "<domain>+rma", over which notifications and
 * requests travel as ordinary messages. Behind the rings of that port's segment lies the tail:
 *
 *     header | a row for each connection | registrations, one entry each | arena
 *
 * velo_rma_mem_alloc() gives out memory of the arena. The arena grows with use, and freed memory is
 * given back to the system. So one file holds all that a unit shares: it has one owner's lock, and
 * one name to be removed.
 *
 * A **key** names an entry of the registrations (its low 16 bits) and the registration that is
 * meant (the rest: never the same twice). To use it, a requester writes the key into its
 * connection's row (it **enters**), and only then compares the key with the entry's. The owner
 * deregisters in the opposite order: it takes the key out of the entry, then waits until no row
 * holds it. At least one of the two sees the other.
 *
 * No key is below 65,536. Such a value goes to an owner whose table its requester does not see:
 * TABLE_KEY_ADDRESS with an address of the owner's as offset, any other but 0 for the registration
 * that has this number. 0 names no registration, also none of those without a number.
 *
 * A comment beside each line names its writer. Peers may write to all of the tail, so the owner
 * keeps privately what it relies on.
 */
#ifndef VELO_RMA_TABLE_H
#define VELO_RMA_TABLE_H

#include <velo/rma.h>

#include "../core/port.h"

#define TABLE_MAGIC UINT64_C(0x31414d524f4c4556) /* "VELORMA1" */
#define TABLE_INDEX_BITS 16
#define TABLE_KEY_ADDRESS (VELO_RMA_NUMBER_MAX + UINT64_C(1))
/** A part that is mapped begins at a multiple of the largest page size. */
#define TABLE_ALIGN_BYTES (UINT64_C(64) << 10)
#define TABLE_HEADER_BYTES 4096u
/** Registrations that have memory from the start; more get it as they come. */
#define TABLE_BACKED_MIN 1024u
/** Address space for velo_rma_mem_alloc() in one unit. */
#define ARENA_BYTES_MAX (UINT64_C(1) << 44)

struct table_header {
    /* Owner, once; the magic last. */
    _Alignas(SEG_ALIGN) uint64_t magic;
    uint64_t probe_address; /* Holds probe_value in the owner's private memory. */
    uint64_t probe_value;   /* Random: a peer that reads it there reads the right process, and no
                             * child of it, in which that memory is zero. */

    _Alignas(SEG_ALIGN) uint64_t backed; /* Owner: entries that have memory. */
    uint64_t rows_used;                  /* Requesters raise it: rows from here on are unused. */

    _Alignas(SEG_ALIGN) uint64_t refused; /* Requesters count here what they refused themselves. */
};

/** One connection's row. */
struct table_row {
    _Alignas(SEG_ALIGN) uint64_t active; /* Requester: the key it uses now; see order_enter(). */
    uint64_t unanswerable;               /* Owner: it cannot answer this requester. */
    uint64_t generation; /* Requester: of its port. If its connection is another's, it is dead. */
};

struct table_entry {
    _Alignas(SEG_ALIGN) uint64_t key; /* Owner; 0: none. The rest is fixed while a key stands. */
    uint64_t address;                 /* In the owner's memory. */
    uint64_t len_bytes;
    uint64_t arena_at; /* Offset in the arena plus 1; 0: not in it. */
    uint64_t rights;
    uint64_t peer;
    uint64_t page;   /* Its first page at the owner's node plus 1; 0: none, as always natively. */
    uint64_t number; /* The number under which peers find it; 0: none. The owner may change it. */
};

_Static_assert(VELO_RMA_MEMS_MAX == 1u << TABLE_INDEX_BITS, "a key's index");
_Static_assert(TABLE_KEY_ADDRESS >> TABLE_INDEX_BITS == 0, "a number is no key");
_Static_assert(sizeof(struct table_header) <= TABLE_HEADER_BYTES, "the header outgrew its page");
_Static_assert(sizeof(struct table_entry) == SEG_ALIGN, "an entry is one line");

/** The places of the parts in the file; they depend on the shape of the rings before them. */
struct table_layout {
    uint64_t header_at;
    uint64_t entries_at;
    uint64_t arena_at;
};

static inline uint64_t table_align(uint64_t at)
{
    return (at + TABLE_ALIGN_BYTES - 1) & ~(TABLE_ALIGN_BYTES - 1);
}

static inline struct table_layout table_layout(const struct seg_shape *shape)
{
    struct table_layout layout = {.header_at = table_align(shape->total_bytes)};
    uint64_t rows_bytes = shape->conns_max * sizeof(struct table_row);
    layout.entries_at = table_align(layout.header_at + TABLE_HEADER_BYTES + rows_bytes);
    layout.arena_at = layout.entries_at + VELO_RMA_MEMS_MAX * sizeof(struct table_entry);
    return layout;
}

/** A mapped tail, without its arena. */
struct table {
    struct table_layout at;
    struct table_header *header;
    struct table_row *rows;
    struct table_entry *entries; /* A requester's mapping of them is read-only. */
    uint64_t backed;             /* Owner: entries that have memory. */
};

/** Give the owner's segment its tail. VELO_ERR_NO_SPACE, _NO_MEMORY, _SYSTEM. */
int rma_table_create(struct table *table, const struct segment *segment, const uint64_t *probe);
/** Map a peer's tail. VELO_ERR_NO_PEER: it is not there yet. */
int rma_table_open(struct table *table, const struct segment *segment);
/** Unmap a tail. A table that is all zero is allowed. */
void rma_table_close(struct table *table);
/** Give memory to more entries. VELO_ERR_NO_SPACE, _SYSTEM. */
int rma_table_back(struct table *table, const struct segment *segment);

#endif
