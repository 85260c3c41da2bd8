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

/** A connection of a port: to one that it sends to, or from one that sends to it. */
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
    /* Those by shared memory first, then by transport; of each first those that send to it. One to
     * a peer whose segment cannot be read is not seen, unless it goes over a transport. */
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

/** What there is of a domain: numbers of segments, of which a port has one and its RMA unit one. */
struct velo_domain_view {
    const char *name; /* Valid during the call. */
    unsigned alive;
    unsigned dead;
    unsigned unknown;   /* Of other users, not to be looked at: they may be alive. */
    unsigned removable; /* Dead, of this user, and of no more use to a living port. */
    unsigned removed;
    unsigned failed;       /* Could not be removed; velo_last_error() says why. */
    uint64_t memory_bytes; /* In use by all of them. */
    uint64_t removable_bytes;
};

struct velo_clean {
    const char *domain; /* This one, where others live, too; NULL: all in which nobody lives. */
    bool removes;       /* Remove what is removable; else only look. */
};

/**
 * Call `each` for every domain in $VELO_SHM_DIR, or for one, after what its dead processes left is
 * removed if that is wanted; a non-zero return ends the walk and is returned. For a process without
 * ports of its own.
 *
 * @retval VELO_OK or what `each` returned; VELO_ERR_ARG, VELO_ERR_ACCESS, VELO_ERR_NO_MEMORY;
 *         VELO_ERR_FULL: more segments than anybody has.
 */
int velo_clean(const struct velo_clean *clean,
               int (*each)(void *arg, const struct velo_domain_view *view), void *arg);

#endif
