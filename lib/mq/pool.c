/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <stdlib.h>

/* The largest of a doubling's eight classes is the next power of two. */
#define CLASSES_PER_DOUBLING 8u

/* The longest VELO message must fit into the largest class. */
_Static_assert(((uint64_t)POOL_BYTES_MIN << ((POOL_CLASSES - 1) / CLASSES_PER_DOUBLING)) >=
                   sizeof(struct velo_mq_message) + UINT16_MAX,
               "too few classes");

/* Class 0 has POOL_BYTES_MIN; from there on each doubling is made in eight equal steps, so that at
 * most a ninth of a block is not used. */
static uint64_t class_bytes(unsigned which)
{
    unsigned doubling = which / CLASSES_PER_DOUBLING;
    uint64_t base_bytes = (uint64_t)POOL_BYTES_MIN << doubling;
    return base_bytes + which % CLASSES_PER_DOUBLING * (base_bytes / CLASSES_PER_DOUBLING);
}

static unsigned size_class(uint32_t len_bytes)
{
    uint64_t size_bytes = sizeof(struct velo_mq_message) + len_bytes;
    if (size_bytes <= POOL_BYTES_MIN)
        return 0;
    unsigned doubling = 63u - (unsigned)__builtin_clzll((size_bytes - 1) / POOL_BYTES_MIN);
    uint64_t base_bytes = (uint64_t)POOL_BYTES_MIN << doubling;
    uint64_t step_bytes = base_bytes / CLASSES_PER_DOUBLING;
    uint64_t steps = (size_bytes - base_bytes + step_bytes - 1) / step_bytes;
    return doubling * CLASSES_PER_DOUBLING + (unsigned)steps;
}

bool mq_pool_fits(const struct pool *pool, uint32_t len_bytes, uint64_t theirs_bytes)
{
    uint64_t size_bytes = class_bytes(size_class(len_bytes));
    uint64_t wanted_bytes = pool->used_bytes + theirs_bytes + size_bytes;
    return wanted_bytes <= pool->bound_bytes;
}

bool mq_pool_fits_limit(const struct pool *pool, uint32_t len_bytes)
{
    return pool->used_bytes + class_bytes(size_class(len_bytes)) <= pool->limit_bytes;
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
            mq_pool_trim(pool); /* Free blocks of other classes count, too. */
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
