/* SPDX-License-Identifier: Apache-2.0 */
/* Which back this process has: the simulated cluster if $VELO_SIM names one, else the card. */
#include <stdlib.h>

#include "host_io.h"

static __attribute__((constructor)) void choose(void)
{
    const char *cluster = getenv("VELO_SIM");
    host_io = cluster && *cluster ? &host_io_sim : &host_io_card;
}
