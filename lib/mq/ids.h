/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ids.h
 * @brief Names for requests that a peer has to name.
 *
 * An id is an index and a generation, so that an id that a peer made up, or uses too late, is found
 * out. It names a request of these queues only, not of earlier queues of the port or of its id.
 */
#ifndef VELO_MQ_IDS_H
#define VELO_MQ_IDS_H

#include <stdbool.h>
#include <stdint.h>

struct transfer;

struct id_slot {
    struct transfer *op; /* NULL: free. */
    uint32_t generation; /* Of the id in use, or of the next one. Never 0, so no id is 0. */
    uint32_t next_free;
};

struct ids {
    struct id_slot *slots;
    uint32_t len;
    uint32_t first_free;
    uint32_t generation; /* Of each new slot. Random, so that no id is one of earlier queues. */
};

/** False: the system gives no random numbers. */
bool mq_ids_open(struct ids *ids);

/** A new id; 0 if there is no memory. */
uint64_t mq_ids_take(struct ids *ids, struct transfer *op);
void mq_ids_give(struct ids *ids, uint64_t id);
/** The request of an id, or NULL. */
struct transfer *mq_ids_find(const struct ids *ids, uint64_t id);

#endif
