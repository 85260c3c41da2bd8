/* SPDX-License-Identifier: Apache-2.0 */
#include "match.h"

#include <stdlib.h>

#define LISTS_LOG2_FIRST 8
#define LISTS_LOG2_MAX 24

static struct list *new_lists(size_t len)
{
    struct list *lists = malloc(len * sizeof *lists);
    for (size_t i = 0; lists && i < len; i++)
        list_init(&lists[i]);
    return lists;
}

bool mq_table_open(struct match_table *table)
{
    table->shift = 64 - LISTS_LOG2_FIRST;
    table->count = 0;
    table->count_max = (uint32_t)table_len(table);
    table->lists = new_lists(table_len(table));
    return table->lists != NULL;
}

void mq_table_close(struct match_table *table) { free(table->lists); }

static void grow_table(struct match_table *table)
{
    struct list *lists = new_lists(table_len(table) * 2);
    if (!lists)
        return;
    struct match_table larger = {.lists = lists, .shift = table->shift - 1, .count = table->count};
    /* Equal match bits come from one list, in order, so they are in order in the new one. */
    for (size_t i = 0; i < table_len(table); i++) {
        struct link *next;
        for (struct link *link = table->lists[i].first; link; link = next) {
            next = link->next;
            list_append(table_list(&larger, ((struct entry *)link)->match), link);
        }
    }
    free(table->lists);
    *table = larger;
}

void mq_table_make_room(struct match_table *table)
{
    if (table->shift > 64 - LISTS_LOG2_MAX)
        grow_table(table);
    /* Without memory, or at its largest, the table stays as it is until it is twice as full. */
    table->count_max = table->count < table_len(table)  ? (uint32_t)table_len(table)
                       : table->count <= UINT32_MAX / 2 ? table->count * 2
                                                        : UINT32_MAX;
}

void mq_table_add_growing(struct match_table *table, struct entry *entry)
{
    mq_table_make_room(table);
    table->count++;
    list_append(table_list(table, entry->match), &entry->link);
}

struct entry *mq_table_any(const struct match_table *table)
{
    for (size_t i = 0; table->count > 0 && i < table_len(table); i++)
        if (table->lists[i].first)
            return (struct entry *)table->lists[i].first;
    return NULL;
}
