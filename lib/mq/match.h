/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file match.h
 * @brief The two queues of matching: lists that requests and messages are members of, hashed by
 *        match bits.
 *
 * Posted receives and unexpected messages are kept in the same way: a table of lists, each in order
 * of arrival. Equal match bits share a list, so the first fitting member is the earliest.
 */
#ifndef VELO_MQ_MATCH_H
#define VELO_MQ_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <velo/mq.h>

#include "../base/copy.h"

/** Membership in a list. */
struct link {
    struct link *next;
    struct link **at; /* The pointer that points here. */
};

struct list {
    struct link *first;
    struct link **last; /* The end: where the next member is hung. */
};

#define member_of(pointer, type, member) ((type *)((uintptr_t)(pointer) - offsetof(type, member)))

hot_inline void list_init(struct list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

hot_inline void list_append(struct list *list, struct link *link)
{
    link->next = NULL;
    link->at = list->last;
    *list->last = link;
    list->last = &link->next;
}

static inline void list_prepend(struct list *list, struct link *link)
{
    link->next = list->first;
    link->at = &list->first;
    if (list->first)
        list->first->at = &link->next;
    else
        list->last = &link->next;
    list->first = link;
}

hot_inline void list_remove(struct list *list, struct link *link)
{
    *link->at = link->next;
    if (link->next)
        link->next->at = link->at;
    else
        list->last = link->at;
}

/** Take the first member out; NULL: there is none. */
static inline struct link *list_take_first(struct list *list)
{
    struct link *link = list->first;
    if (!link)
        return NULL;
    list->first = link->next;
    if (list->first)
        list->first->at = &list->first;
    else
        list->last = &list->first;
    return link;
}

/** A receive that looks for a message, or a message that looks for its receive. */
struct entry {
    struct link link;
    uint64_t match;
    velo_id_t source; /* In a receive it may be VELO_MQ_ANY_SOURCE. */
};

struct match_table {
    struct list *lists;
    uint32_t shift;     /* 64 less the binary logarithm of their number. */
    uint32_t count;     /* Entries. */
    uint32_t count_max; /* The table is made larger before it has more. */
};

/** False: out of memory. */
bool mq_table_open(struct match_table *table);
void mq_table_close(struct match_table *table);
/** Let a table that has become crowded have more entries: it is made larger, if there is memory. */
void mq_table_make_room(struct match_table *table);
/** Do that, and add an entry. */
void mq_table_add_growing(struct match_table *table, struct entry *entry);
/** Any entry, or NULL. */
struct entry *mq_table_any(const struct match_table *table);

hot_inline size_t table_len(const struct match_table *table)
{
    return (size_t)1 << (64 - table->shift);
}

hot_inline struct list *table_list(const struct match_table *table, uint64_t match)
{
    return &table->lists[(match * UINT64_C(0x9e3779b97f4a7c15)) >> table->shift];
}

/** Add an entry. (The rare case is a tail call, so that the usual one saves no registers.) */
hot_inline void table_add(struct match_table *table, struct entry *entry)
{
    if (unlikely(table->count == table->count_max)) {
        mq_table_add_growing(table, entry);
        return;
    }
    table->count++;
    list_append(table_list(table, entry->match), &entry->link);
}

hot_inline void table_remove(struct match_table *table, struct entry *entry)
{
    table->count--;
    list_remove(table_list(table, entry->match), &entry->link);
}

hot_inline bool source_fits(velo_id_t one, velo_id_t other)
{
    return one == other || one == VELO_MQ_ANY_SOURCE || other == VELO_MQ_ANY_SOURCE;
}

/** Add an entry before all others with its match bits. */
static inline void table_add_first(struct match_table *table, struct entry *entry)
{
    if (table->count == table->count_max)
        mq_table_make_room(table);
    table->count++;
    list_prepend(table_list(table, entry->match), &entry->link);
}

/** The earliest entry of one of the lists with these match bits and a source that fits, or NULL. */
hot_inline struct entry *list_find(const struct list *list, uint64_t match, velo_id_t source)
{
    for (struct link *link = list->first; link; link = link->next) {
        struct entry *entry = (struct entry *)link;
        if (likely(entry->match == match) && likely(source_fits(entry->source, source)))
            return entry;
    }
    return NULL;
}

/** The same of the whole table. */
hot_inline struct entry *table_find(const struct match_table *table, uint64_t match,
                                    velo_id_t source)
{
    return list_find(table_list(table, match), match, source);
}

#endif
