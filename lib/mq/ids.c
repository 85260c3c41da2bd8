/* SPDX-License-Identifier: Apache-2.0 */
#include "ids.h"

#include <stdlib.h>
#include <sys/random.h>

#define LEN_FIRST 64u
#define LEN_MAX (1u << 24)
#define NONE UINT32_MAX

bool mq_ids_open(struct ids *ids)
{
    const size_t size_bytes = sizeof ids->generation;
    while (ids->generation == 0)
        if (getrandom(&ids->generation, size_bytes, 0) != (ssize_t)size_bytes)
            return false;
    return true;
}

static bool grow_ids(struct ids *ids)
{
    uint32_t len = ids->len ? ids->len * 2 : LEN_FIRST;
    if (len > LEN_MAX)
        return false;
    struct id_slot *slots = realloc(ids->slots, len * sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = ids->len; i < len; i++)
        slots[i] = (struct id_slot){.generation = ids->generation,
                                    .next_free = i + 1 < len ? i + 1 : NONE};
    ids->first_free = ids->len;
    ids->slots = slots;
    ids->len = len;
    return true;
}

uint64_t mq_ids_take(struct ids *ids, struct transfer *op)
{
    if ((ids->len == 0 || ids->first_free == NONE) && !grow_ids(ids))
        return 0;
    uint32_t index = ids->first_free;
    struct id_slot *slot = &ids->slots[index];
    ids->first_free = slot->next_free;
    slot->op = op;
    return (uint64_t)slot->generation << 32 | index;
}

void mq_ids_give(struct ids *ids, uint64_t id)
{
    struct id_slot *slot = &ids->slots[(uint32_t)id];
    slot->op = NULL;
    if (++slot->generation == 0)
        slot->generation = 1;
    slot->next_free = ids->first_free;
    ids->first_free = (uint32_t)id;
}

struct transfer *mq_ids_find(const struct ids *ids, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    if (index >= ids->len || ids->slots[index].generation != id >> 32)
        return NULL;
    return ids->slots[index].op;
}
