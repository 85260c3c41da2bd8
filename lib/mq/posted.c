/* SPDX-License-Identifier: Apache-2.0 */
#include "posted.h"

bool mq_posted_open(struct space *space)
{
    list_init(&space->wild);
    space->tables = 1;
    space->recent = &space->posted[0];
    return mq_table_open(&space->posted[0].table);
}

void mq_posted_close(struct space *space)
{
    for (uint32_t i = 0; i < space->tables; i++)
        mq_table_close(&space->posted[i].table);
}

/* The table for receives with these ignore bits; POSTED_TABLES: there is none for them. An empty
 * one may change its mask, but the first one keeps the receives without. */
static uint32_t table_for(struct space *space, uint64_t ignore)
{
    uint32_t free_table = POSTED_TABLES;
    for (uint32_t i = 0; i < space->tables; i++) {
        if (space->posted[i].ignore == ignore)
            return i;
        if (i > 0 && space->posted[i].table.count == 0)
            free_table = i;
    }
    if (free_table == POSTED_TABLES && space->tables < POSTED_TABLES &&
        mq_table_open(&space->posted[space->tables].table)) {
        free_table = space->tables++;
        space->posted[free_table].place = (int32_t)free_table;
    }
    if (free_table < POSTED_TABLES)
        space->posted[free_table].ignore = ignore;
    return free_table;
}

void mq_posted_add_slow(struct space *space, struct transfer *op, bool is_first)
{
    uint32_t place = table_for(space, op->ignore);
    op->place = (int32_t)place;
    op->entry.match &= ~op->ignore;
    if (place == POSTED_TABLES) {
        space->elsewhere++;
        if (is_first)
            list_prepend(&space->wild, &op->entry.link);
        else
            list_append(&space->wild, &op->entry.link);
        return;
    }
    uint64_t count = posted_count(space);
    space->recent = &space->posted[place];
    space->elsewhere = count - space->recent->table.count;
    if (is_first)
        table_add_first(&space->recent->table, &op->entry);
    else
        table_add(&space->recent->table, &op->entry);
}

void mq_posted_remove_slow(struct space *space, struct transfer *op)
{
    space->elsewhere--;
    if (op->place == POSTED_TABLES)
        list_remove(&space->wild, &op->entry.link);
    else
        table_remove(&space->posted[op->place].table, &op->entry);
}

static struct transfer *find_wild(const struct space *space, uint64_t match, velo_id_t source)
{
    for (struct link *link = space->wild.first; link; link = link->next) {
        struct transfer *op = (struct transfer *)link;
        if (((op->entry.match ^ match) & ~op->ignore) == 0 && source_fits(op->entry.source, source))
            return op;
    }
    return NULL;
}

struct transfer *mq_posted_match_slow(struct space *space, uint64_t match, velo_id_t source)
{
    struct transfer *op = find_wild(space, match, source);
    for (uint32_t i = 0; i < space->tables; i++) {
        const struct posted *posted = &space->posted[i];
        if (posted->table.count > 0)
            op = earlier_of(
                op, (struct transfer *)table_find(&posted->table, match & ~posted->ignore, source));
    }
    if (op)
        posted_remove(space, op);
    return op;
}

/* The list's first receive that may get a message of this source. */
static struct transfer *first_of(const struct list *list, velo_id_t source)
{
    for (struct link *link = list->first; link; link = link->next) {
        struct transfer *op = (struct transfer *)link;
        if (source_fits(op->entry.source, source))
            return op;
    }
    return NULL;
}

struct transfer *mq_posted_first_for(const struct space *space, velo_id_t source)
{
    struct transfer *op = first_of(&space->wild, source);
    for (uint32_t t = 0; t < space->tables; t++) {
        const struct match_table *table = &space->posted[t].table;
        for (size_t i = 0; table->count > 0 && i < table_len(table); i++)
            op = earlier_of(op, first_of(&table->lists[i], source));
    }
    return op;
}

struct transfer *mq_posted_any(const struct space *space)
{
    for (uint32_t i = 0; i < space->tables; i++)
        if (space->posted[i].table.count > 0)
            return (struct transfer *)mq_table_any(&space->posted[i].table);
    return (struct transfer *)space->wild.first;
}
