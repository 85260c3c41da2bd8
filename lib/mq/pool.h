/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pool.h
 * @brief Memory for messages that nobody has asked for yet: bounded, in size classes.
 *
 * A message is kept if it fits into the free memory and leaves as much free as its sender already
 * takes. So one sender alone gets half of the bound, and there is always room for the others. A
 * message that a receive or probe may wait for is kept even beyond the bound, up to a limit; see
 * may_keep() in recv.c.
 */
#ifndef VELO_MQ_POOL_H
#define VELO_MQ_POOL_H

#include "match.h"

#define POOL_CLASSES 81
#define POOL_BYTES_MIN 128u

/** A message that was kept. */
struct velo_mq_message {
    struct entry entry;  /* By match bits. */
    struct link arrival; /* In order of arrival; once probed, among the probed messages. */
    struct velo_mq_peer *peer;
    uint64_t sender_id;
    uint64_t total_bytes;
    uint64_t key;
    uint64_t address;
    uint64_t cookie;
    uint32_t len_bytes; /* Of data. */
    uint8_t kind;
    uint8_t size_class;
    bool is_probed;
    uint8_t space;
    bool has_cookie;
    char data[];
};

struct pool {
    uint64_t bound_bytes;
    uint64_t limit_bytes; /* At least the bound. */
    uint64_t used_bytes;
    uint64_t peak_bytes;
    uint64_t cached_bytes; /* Free, but not given back to the system. */
    struct velo_mq_message *free[POOL_CLASSES];
};

/** Does a message of this length fit? Its sender takes `theirs_bytes` already. */
bool mq_pool_fits(const struct pool *pool, uint32_t len_bytes, uint64_t theirs_bytes);
/** Does it fit into the limit? */
bool mq_pool_fits_limit(const struct pool *pool, uint32_t len_bytes);
/** Memory for a message of this length; NULL: the system has none. Adds to `theirs_bytes`. */
struct velo_mq_message *mq_pool_get(struct pool *pool, uint32_t len_bytes, uint64_t *theirs_bytes);
void mq_pool_put(struct pool *pool, struct velo_mq_message *message, uint64_t *theirs_bytes);
/** Give free memory back to the system. */
void mq_pool_trim(struct pool *pool);

#endif
