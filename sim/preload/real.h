/* SPDX-License-Identifier: Apache-2.0 */
/** @file real.h @brief What the program gets from outside of the simulated cluster (real.c). */
#ifndef VELO_SIM_PRELOAD_REAL_H
#define VELO_SIM_PRELOAD_REAL_H

#include "../client/channel.h"

/** If the caller is the program: report that the run need not repeat itself. `what`: the call. */
void real_report(const void *caller, enum sim_cause cause, const char *what);

#endif
