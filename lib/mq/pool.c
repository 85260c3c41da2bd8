/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <stdlib.h>

/* The longest VELO message must fit into the largest class. */
_Static_assert(((uint64_t)POOL_BYTES_MIN << (POOL_CLASSES - 1)) >=
                   sizeof(struct velo_mq_message) + UINT16_MAX,
               "too few classes");

static unsigned size_class(uint32_t len_bytes)
{
    uint64_t size_bytes = sizeof(struct velo_mq_message) + len_bytes;
    unsigned which = 0;
    while ((uint64_t)POOL_BYTES_MIN << which < size_bytes)
        which++;
    return which;
}

static uint64_t class_bytes(unsigned which) { return (uint64_t)POOL_BYTES_MIN << which; }

bool mq_pool_fits(const struct pool *pool, uint32_t len_bytes, uint64_t theirs_bytes)
{
    uint64_t size_bytes = class_bytes(size_class(len_bytes));
    uint64_t wanted_bytes = pool->used_bytes + theirs_bytes + size_bytes;
    return wanted_bytes <= pool->bound_bytes;
}

void mq_pool_trim(struct pool *pool)
{
    for (unsigned which = 0; which < POOL_CLASSES; which++) {
        while (pool->free[which]) {
            struct velo_mq_message *message = pool->free[which];
            pool->free[which] = (struct velo_mq_message *)message->entry.link.next;
            free(message);
        }
    }
    pool->cached_bytes = 0;
}

struct velo_mq_message *mq_pool_get(struct pool *pool, uint32_t len_bytes, uint64_t *theirs_bytes)
{
    unsigned which = size_class(len_bytes);
    struct velo_mq_message *message = pool->free[which];
    if (message) {
        pool->free[which] = (struct velo_mq_message *)message->entry.link.next;
        pool->cached_bytes -= class_bytes(which);
    } else {
        if (pool->used_bytes + pool->cached_bytes + class_bytes(which) > pool->bound_bytes)
            mq_pool_trim(pool); /* What other classes leave free counts, too. */
        message = malloc(class_bytes(which));
        if (!message)
            return NULL;
        message->size_class = (uint8_t)which;
    }
    *theirs_bytes += class_bytes(which);
    pool->used_bytes += class_bytes(which);
    if (pool->used_bytes > pool->peak_bytes)
        pool->peak_bytes = pool->used_bytes;
    return message;
}

void mq_pool_put(struct pool *pool, struct velo_mq_message *message, uint64_t *theirs_bytes)
{
    unsigned which = message->size_class;
    *theirs_bytes -= class_bytes(which);
    pool->used_bytes -= class_bytes(which);
    pool->cached_bytes += class_bytes(which);
    message->entry.link.next = (struct link *)pool->free[which];
    pool->free[which] = message;
}
