/* SPDX-License-Identifier: Apache-2.0 */
/** @file queue.h @brief Frames of a circuit that have come, and that the library has not had yet.
 */
#ifndef VELO_FAULTS_QUEUE_H
#define VELO_FAULTS_QUEUE_H

#include "../../lib/net/transport.h"
#include "settings.h"

/** A frame that was kept. */
struct kept {
    struct kept *next;
    int64_t due_us; /* It is taken in at this time. */
    struct velo_frame frame;
    char payload[];
};

/** All zero: empty. */
struct queue {
    struct kept *first; /* The earliest. */
    uint32_t len;
    uint64_t random;
};

/** Keep a frame. False: out of memory. */
bool queue_add(struct queue *queue, const struct settings *settings,
               const struct velo_frame *frame);
/** The frame to take in now, which the caller frees; NULL: none is due. */
struct kept *queue_take(struct queue *queue, const struct settings *settings);
/** Drop all. */
void queue_clear(struct queue *queue);

#endif
