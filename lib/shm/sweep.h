/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file sweep.h
 * @brief Remove the segments that dead processes left, of all domains.
 *
 * The name of a dead port is still of use: a connect to it ends in VELO_ERR_PEER_DEAD, but a name
 * that is gone means "not there yet, wait". So the name stays while a port of its domain lives,
 * since only such ports connect to it; the next velo_port_open() of that id replaces it. If no port
 * of a domain lives, all its names are removed at once.
 *
 * A segment is dead when its owner's lock is free: it gets its name only once it is complete and
 * locked, and the lock ends with the process, in any PID namespace. Segments of other users stay.
 */
#ifndef VELO_SHM_SWEEP_H
#define VELO_SHM_SWEEP_H

#include "inspect.h"

/** How to walk over the domains of a directory. */
struct sweep {
    const char *dir;
    const char *only;   /* This domain; NULL: all. */
    const char *spared; /* Leave this one alone, even if no port in it lives; NULL: none. */
    bool removes;       /* Remove dead segments; else only look. */
    bool in_living;     /* Remove them also where a port of the domain lives. */
    bool is_hasty;      /* Leave a domain as soon as a port in it is found to live. */
    /** Called for each domain, lowest name first; a non-zero return ends the walk. May be NULL. */
    int (*each)(void *arg, const struct velo_domain_view *view);
    void *arg;
};

/** Walk over the domains of a directory. After seg_acquire(). VELO_OK or what `each` returned;
 * VELO_ERR_ACCESS, VELO_ERR_NO_MEMORY, VELO_ERR_FULL. */
int sweep_run(const struct sweep *sweep);

#endif
