/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file posted.h
 * @brief The posted receives of a matching space.
 *
 * Receives with the same ignore bits are hashed by their other match bits, in a table of their own.
 * A program has few such masks (MPI libraries that come over libfabric have one in all receives),
 * so there are few tables. Receives with ignore bits that found no table stand in a list.
 */
#ifndef VELO_MQ_POSTED_H
#define VELO_MQ_POSTED_H

#include "internal.h"

/** Close all tables. */
void mq_posted_close(struct space *space);
bool mq_posted_open(struct space *space);
/** Add a receive that does not go to the table used last, or that is to be the first. */
void mq_posted_add_slow(struct space *space, struct transfer *op, bool is_first);
/** The earliest receive for such a message, taken out. NULL: none is posted. */
struct transfer *mq_posted_match_slow(struct space *space, uint64_t match, velo_id_t source);
/** The earliest receive that may get a message of this source; NULL: none. */
struct transfer *mq_posted_first_for(const struct space *space, velo_id_t source);
/** Take a receive out that is not in the table used last. */
void mq_posted_remove_slow(struct space *space, struct transfer *op);
/** Any receive, or NULL. */
struct transfer *mq_posted_any(const struct space *space);

/** The one that was posted first; either may be NULL. */
static inline struct transfer *earlier_of(struct transfer *one, struct transfer *other)
{
    return !one || (other && other->sequence < one->sequence) ? other : one;
}

static inline uint64_t posted_count(const struct space *space)
{
    return space->recent->table.count + space->elsewhere;
}

/** The table that holds all receives; NULL: none does. */
hot_inline struct posted *posted_only(const struct space *space)
{
    return likely(space->elsewhere == 0) ? space->recent : NULL;
}

/** Add a receive behind all others. */
hot_inline void posted_add(struct space *space, struct transfer *op)
{
    struct posted *posted = space->recent;
    if (unlikely(posted->ignore != op->ignore)) {
        mq_posted_add_slow(space, op, false);
        return;
    }
    op->place = posted->place;
    op->entry.match &= ~op->ignore;
    table_add(&posted->table, &op->entry);
}

/** Take a receive out. */
hot_inline void posted_remove(struct space *space, struct transfer *op)
{
    if (likely(op->place == space->recent->place))
        table_remove(&space->recent->table, &op->entry);
    else
        mq_posted_remove_slow(space, op);
}

/** The earliest receive for such a message, taken out. NULL: none is posted. */
hot_inline struct transfer *posted_match(struct space *space, uint64_t match, velo_id_t source)
{
    struct posted *posted = posted_only(space);
    if (unlikely(!posted))
        return mq_posted_match_slow(space, match, source);
    uint64_t key = match & ~posted->ignore;
    struct list *list = table_list(&posted->table, key);
    struct entry *entry = list_find(list, key, source);
    if (likely(entry)) {
        posted->table.count--;
        list_remove(list, &entry->link);
    }
    return (struct transfer *)entry;
}

#endif
