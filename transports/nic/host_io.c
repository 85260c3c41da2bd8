/* SPDX-License-Identifier: Apache-2.0 */
#include "host_io.h"

#include <stdlib.h>

const struct host_io *host_io;
int (*host_fail)(int status, const char *format, ...);

static __attribute__((constructor)) void choose(void)
{
    const char *cluster = getenv("VELO_SIM");
    host_io = cluster && *cluster ? &host_io_sim : &host_io_card;
}
