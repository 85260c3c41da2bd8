/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file inspect.h
 * @brief Look at the rings of a domain (velo/bcast.h) from outside, without taking part.
 */
#ifndef VELO_BCAST_INSPECT_H
#define VELO_BCAST_INSPECT_H

#include <stdbool.h>

#include <velo/bcast.h>

struct velo_ring_view {
    velo_id_t id;
    long pid;   /* The writer's, in its own PID namespace. */
    bool alive; /* The writer lives. */
    bool drops; /* It overwrites what slow readers have not taken; else it waits for them. */
    uint32_t depth_slots;
    uint32_t msg_bytes_max;
    uint32_t readers_max;
    uint32_t readers;      /* That live. */
    uint64_t msgs;         /* Written since the ring was opened. */
    uint64_t behind_msgs;  /* Of them, those that the slowest living reader has not taken. */
    uint64_t memory_bytes; /* In use. */
};

/**
 * Call `each` for every ring of a domain, in no order; a non-zero return ends the walk and is
 * returned. Rings that cannot be read are left out. For a process that has none open itself.
 *
 * @param domain  NULL: $VELO_DOMAIN, else this user's.
 * @retval VELO_OK or what `each` returned; VELO_ERR_ARG, VELO_ERR_ACCESS.
 */
int velo_inspect_rings(const char *domain,
                       int (*each)(void *arg, const struct velo_ring_view *view), void *arg);

#endif
