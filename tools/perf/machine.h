/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the machine we run on. */
#ifndef VELO_BENCH_MACHINE_H
#define VELO_BENCH_MACHINE_H

#include <stdbool.h>

#define MACHINE_TEXT_BYTES 256

/* The name that the processor gives itself; "unknown" if it gives none. Fills and returns text. */
const char *machine_cpu_model(char text[MACHINE_TEXT_BYTES]);

/* CPUs that this process may run on, in ascending order; returns how many. */
unsigned machine_cpus(unsigned *cpus, unsigned cpus_max);

/* Bytes in a line of the first data cache; 0 if the system does not say. */
long machine_cache_line_bytes(void);

/* Does membarrier(2) offer the global expedited command? A receiver needs it to sleep. */
bool machine_has_membarrier(void);

#endif
