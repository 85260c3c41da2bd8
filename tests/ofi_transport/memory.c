/* SPDX-License-Identifier: Apache-2.0 */
/* What a port takes of the system beside its own rings. */
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

#define PORT_KB_MAX 32768

static long resident_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    (void)fclose(status);
    CHECK(kb > 0);
    return kb;
}

TEST(a_port_takes_less_memory_than_libfabric_would)
{
    struct velo_port *ports[2];
    CHECK_EQ(unsetenv("FI_OFI_RXM_MSG_RX_SIZE"), 0); /* As a user's program has it. */
    for (int i = 0; i < 2; i++) {
        long before_kb = resident_kb();
        ports[i] = port_open(i);
        CHECK(resident_kb() - before_kb < PORT_KB_MAX);
    }
    for (int i = 0; i < 2; i++)
        CHECK_OK(velo_port_close(ports[i]));
}
