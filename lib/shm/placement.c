/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender takes the memory of its ring, so by default the ring would lie on the sender's node. The
 * receiver polls it, and a poll that misses must not cross to another node more often than a
 * message comes. The policy belongs to the file: it holds for all processes that map it.
 */
#include "placement.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES_MAX 1024u
#define MASK_BITS (8u * sizeof(unsigned long))

void placement_here(void *at, size_t len_bytes)
{
    unsigned long mask[NODES_MAX / MASK_BITS] = {0};
    unsigned cpu;
    unsigned node;
    if (getcpu(&cpu, &node) || node >= NODES_MAX)
        return;
    mask[node / MASK_BITS] = 1ul << node % MASK_BITS;
    (void)syscall(SYS_mbind, at, len_bytes, MPOL_PREFERRED, mask, NODES_MAX + 1ul, 0u);
}
