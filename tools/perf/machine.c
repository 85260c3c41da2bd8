/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *machine_cpu_model(char text[MACHINE_TEXT_BYTES])
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];
    strcpy(text, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(text, MACHINE_TEXT_BYTES, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    return text;
}

unsigned machine_cpus(unsigned *cpus, unsigned cpus_max)
{
    cpu_set_t set;
    unsigned count = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 0;
    }
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && count < cpus_max; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            cpus[count++] = cpu;
        }
    }
    return count;
}

long machine_cache_line_bytes(void)
{
    long bytes = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
    return bytes > 0 ? bytes : 0;
}

bool machine_has_membarrier(void)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}
