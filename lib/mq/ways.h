/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ways.h
 * @brief The ways of long messages, as a queue over shared memory with default attributes has them.
 */
#ifndef VELO_MQ_WAYS_H
#define VELO_MQ_WAYS_H

#include <stdbool.h>
#include <stdint.h>

/** Which messages are copied piece by piece, and which are fetched. */
struct mq_ways {
    int path;           /**< enum velo_mq_path. */
    uint64_t get_bytes; /**< Shorter messages are copied, unless the path is GET. */
    bool measures;      /**< From there on each receiver takes the way that it measures as faster;
                         * else it fetches, unless the path is COPY. */
};

/** Read $VELO_MQ_PATH and $VELO_MQ_GET_BYTES. VELO_ERR_ARG: one of them makes no sense. */
int mq_ways_from_environment(struct mq_ways *ways);

#endif
