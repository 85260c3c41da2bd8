/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of velo-race; see race.c. */
#ifndef RACE_H
#define RACE_H

#include <stdbool.h>

#include <velo/velo.h>

/** End the program, with a reason, unless a call went well. */
void check(int status, const char *what);

/** From now on, or no longer: a range of a file that is mapped already is not mapped again. */
void race_map_once(bool once);

/** A ring of velo/bcast.h: this thread writes, and each of some others reads. */
void race_broadcast(const char *domain);

/** A status ring of velo/dimmnet.h: two threads send, and one takes. */
void race_statuses(const char *domain);

/** One port registers memory again and again, the other reads it. Each has a thread. */
void race_registrations(struct velo_port *owner, struct velo_port *requester);

#endif
