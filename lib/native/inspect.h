/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file inspect.h
 * @brief Look at the ports of a domain from outside, without taking part.
 */
#ifndef VELO_NATIVE_INSPECT_H
#define VELO_NATIVE_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include <velo/velo.h>

struct velo_port_view {
    velo_id_t id;
    long pid;   /* In its own PID namespace. */
    bool alive; /* Its process holds the segment's lock. */
    uint32_t depth_slots;
    uint32_t data_bytes;
    uint32_t conns_max;
    uint64_t segment_bytes; /* Address space. */
    uint64_t memory_bytes;  /* Memory in use. */
    struct velo_counters counters;
    const char *path; /* Valid during the call. */
};

/**
 * Call `each` for every port of a domain, lowest id first; a non-zero return ends the walk and is
 * returned. Segments that cannot be read are left out.
 *
 * @param domain  NULL: $VELO_DOMAIN, else this user's.
 * @retval VELO_OK or what `each` returned; VELO_ERR_ARG, VELO_ERR_ACCESS, VELO_ERR_NO_MEMORY.
 */
int velo_inspect_domain(const char *domain,
                        int (*each)(void *arg, const struct velo_port_view *view), void *arg);

#endif
