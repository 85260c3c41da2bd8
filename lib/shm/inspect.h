/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file inspect.h
 * @brief Look at the ports of a domain from outside, without taking part.
 */
#ifndef VELO_SHM_INSPECT_H
#define VELO_SHM_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <velo/velo.h>

/** A connection of a port: to a port that it sends to, or from one that sends to it. */
struct velo_conn_view {
    velo_id_t port;
    velo_id_t peer;
    bool is_outgoing;
    char transport[16]; /* "shm": they share memory. */
};

struct velo_port_view {
    velo_id_t id;
    long pid;   /* In its own PID namespace. */
    bool alive; /* Its process holds the segment's lock. */
    uint32_t depth_slots;
    uint32_t data_bytes;
    uint32_t conns_max;
    uint64_t segment_bytes; /* Address space. */
    uint64_t memory_bytes;  /* Memory in use. */
    /* Private memory of the messages that nobody has asked for, and its bound; see mq.h. */
    uint64_t kept_bytes;
    uint64_t kept_bound_bytes;
    struct velo_port_counters counters;
    const char *path; /* Valid during the call, as the next. */
    /* Connections over shared memory come first, then those over each transport; of each kind those
     * that send to the port come first. A connection over shared memory to a peer whose segment
     * cannot be read is not seen. */
    const struct velo_conn_view *conns;
    size_t conns_len;
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

struct seg_domain;
struct segment;

/** Map a segment for reading; false if it cannot be read or is none. Opening and closing it loses
 * no lock of a process that has not opened it itself. Give it to velo_inspect_unmap() in any case.
 */
bool velo_inspect_map(struct segment *segment, const char *path, uint64_t *memory_bytes);
void velo_inspect_unmap(struct segment *segment);

/**
 * Call `each` for the path of every file that is named as a segment of a domain is; a non-zero
 * return ends the walk and is returned.
 *
 * @retval VELO_OK or what `each` returned; VELO_ERR_ACCESS.
 */
int velo_inspect_paths(const struct seg_domain *domain, int (*each)(void *arg, const char *path),
                       void *arg);

/** The segments of a domain, counted: a port has one, and its RMA unit has one. */
struct velo_domain_view {
    const char *name; /* Valid during the call. */
    unsigned alive;
    unsigned dead;
    unsigned unknown;   /* Of other users, and not readable: they may be alive. */
    unsigned removable; /* Dead, of this user, and no living port needs them. */
    unsigned removed;
    unsigned failed;       /* Could not be removed; velo_last_error() says why. */
    uint64_t memory_bytes; /* In use by all of them. */
    uint64_t removable_bytes;
};

struct velo_clean {
    const char *domain; /* Only this one, with living ports or not; NULL: all without such. */
    bool removes;       /* Remove the removable segments; else only look. */
};

/**
 * Call `each` for every domain in $VELO_SHM_DIR, or for one. If that is wanted, the segments that
 * dead processes left in it are removed before the call. A non-zero return ends the walk and is
 * returned. For a process without ports of its own.
 *
 * @retval VELO_OK or what `each` returned; VELO_ERR_ARG, VELO_ERR_ACCESS, VELO_ERR_NO_MEMORY;
 *         VELO_ERR_FULL: more segments than anybody has.
 */
int velo_clean(const struct velo_clean *clean,
               int (*each)(void *arg, const struct velo_domain_view *view), void *arg);

#endif
