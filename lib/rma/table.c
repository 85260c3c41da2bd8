/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/error.h"
#include "../shm/memory.h"

static void *map_part(const struct segment *segment, uint64_t at, uint64_t end, int protection)
{
    void *base =
        mmap(NULL, end - at, protection, MAP_SHARED | MAP_NORESERVE, segment->fd, (off_t)at);
    return base == MAP_FAILED ? NULL : base;
}

static int map_parts(struct table *table, const struct segment *segment, int entries_protection)
{
    const struct table_layout *at = &table->at;
    table->header = map_part(segment, at->header_at, at->entries_at, PROT_READ | PROT_WRITE);
    table->entries = map_part(segment, at->entries_at, at->arena_at, entries_protection);
    if (!table->header || !table->entries) {
        rma_table_close(table);
        (void)velo_fail(VELO_ERR_NO_MEMORY, "no memory to map %s", segment->path);
        return VELO_ERR_NO_MEMORY;
    }
    table->rows = (struct table_row *)((char *)table->header + TABLE_HEADER_BYTES);
    return VELO_OK;
}

void rma_table_close(struct table *table)
{
    if (table->header)
        munmap(table->header, table->at.entries_at - table->at.header_at);
    if (table->entries)
        munmap(table->entries, table->at.arena_at - table->at.entries_at);
    *table = (struct table){0};
}

int rma_table_back(struct table *table, const struct segment *segment)
{
    uint64_t more = table->backed ? table->backed : TABLE_BACKED_MIN;
    uint64_t at = table->at.entries_at + table->backed * sizeof(struct table_entry);
    int status = seg_allocate_at(segment, (off_t)at, more * sizeof(struct table_entry));
    if (status)
        return status;
    table->backed += more;
    order_publish_entry(&table->header->backed, table->backed);
    return VELO_OK;
}

int rma_table_create(struct table *table, const struct segment *segment, const uint64_t *probe)
{
    table->at = table_layout(&segment->shape);
    int status = seg_allocate_at(segment, (off_t)table->at.header_at,
                                 table->at.entries_at - table->at.header_at);
    if (status == VELO_OK)
        status = map_parts(table, segment, PROT_READ | PROT_WRITE);
    if (status == VELO_OK)
        status = rma_table_back(table, segment);
    if (status)
        return status;
    table->header->probe_address = (uintptr_t)probe;
    table->header->probe_value = *probe;
    order_publish_entry(&table->header->magic, TABLE_MAGIC);
    return VELO_OK;
}

int rma_table_open(struct table *table, const struct segment *segment)
{
    uint64_t magic = 0;
    table->at = table_layout(&segment->shape);
    /* The magic is read, not mapped: the file may end before it. */
    if (pread(segment->fd, &magic, sizeof magic, (off_t)table->at.header_at) != sizeof magic ||
        magic != TABLE_MAGIC)
        return velo_fail(VELO_ERR_NO_PEER, "the peer is still opening its RMA unit");
    int status = map_parts(table, segment, PROT_READ);
    if (status == VELO_OK)
        (void)order_read_entry(&table->header->magic); /* Acquire: all set before it is seen. */
    return status;
}
