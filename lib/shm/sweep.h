/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file sweep.h
 * @brief Take away the segments that dead processes left, of all domains.
 *
 * The name of a dead port still tells something: to connect to it ends in VELO_ERR_PEER_DEAD, where
 * a name that is gone means "not there yet, wait". So it stays for as long as a port of its domain
 * lives, since only those connect to it; the next velo_port_open() of that id replaces it. A domain
 * in which nobody lives has nobody to tell anything, and goes at once.
 *
 * A segment is dead when its owner's lock is free: it gets its name only once it is complete and
 * locked, and the lock goes with the process, whatever PID namespace that is in. Segments of other
 * users stay.
 */
#ifndef VELO_SHM_SWEEP_H
#define VELO_SHM_SWEEP_H

#include "inspect.h"

/** What to do with the domains of a directory. */
struct sweep {
    const char *dir;
    const char *only;   /* This domain; NULL: all. */
    const char *spared; /* Leave this one alone, even if nobody in it lives; NULL: none. */
    bool removes;       /* What may be removed; else only look. */
    bool in_living;     /* It may be removed where a port of the domain lives, too. */
    bool is_hasty;      /* Look no further into a domain once a port in it lives. */
    /** Called for each domain, lowest name first; a non-zero return ends the walk. NULL: nobody. */
    int (*each)(void *arg, const struct velo_domain_view *view);
    void *arg;
};

/** Walk over the domains of a directory. After seg_acquire(). VELO_OK or what `each` returned;
 * VELO_ERR_ACCESS, VELO_ERR_NO_MEMORY, VELO_ERR_FULL. */
int sweep_run(const struct sweep *sweep);

#endif
