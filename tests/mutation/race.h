/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of velo-race; see race.c. */
#ifndef RACE_H
#define RACE_H

#include <velo/velo.h>

/** End the program, with a reason, unless a call went well. */
void check(int status, const char *what);

/** One port registers memory again and again, the other reads it. Each has a thread. */
void race_registrations(struct velo_port *owner, struct velo_port *requester);

#endif
