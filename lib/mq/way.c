/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the two ways of long messages is faster: measured, message by message. */
#include <sys/mman.h>
#include <unistd.h>

#include "../shm/wait.h"
#include "internal.h"

/* Each way is tried WAY_TRIES times before the two are compared. The slower one is tried again
 * after WAY_TRIAL_FIRST messages, and each time that it is slower again, after twice as many, up to
 * WAY_TRIAL_MOST. */
#define WAY_TRIES 2u
#define WAY_TRIAL_FIRST 64u
#define WAY_TRIAL_MOST 1024u
/* Pages of a buffer that are looked at. */
#define SAMPLES 4u

/* Has the kernel still to find memory for a receive's buffer? */
static bool is_fresh(const struct transfer *op)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned absent = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        unsigned char present = 1;
        uintptr_t at = (uintptr_t)op->buf + op->end_bytes / SAMPLES * i + op->end_bytes / 8;
        if (mincore((void *)(at & ~(page_bytes - 1)), page_bytes, &present) == 0)
            absent += (present & 1) == 0;
    }
    return absent > SAMPLES / 2;
}

/* Returns the way that was faster lately. The other one is tried now and then: the processes may
 * have moved. */
static enum way choose(struct velo_mq_peer *peer)
{
    const struct way_cost *ways = peer->ways;
    if (ways[WAY_GET].tries < WAY_TRIES)
        return WAY_GET;
    if (ways[WAY_COPY].tries < WAY_TRIES)
        return WAY_COPY;
    enum way faster = ways[WAY_GET].ps_per_byte < ways[WAY_COPY].ps_per_byte ? WAY_GET : WAY_COPY;
    if (faster != peer->way || peer->ways_period == 0) {
        peer->way = faster;
        peer->ways_used = 0;
        peer->ways_period = WAY_TRIAL_FIRST;
    }
    if (++peer->ways_used < peer->ways_period)
        return faster;
    peer->ways_used = 0;
    if (peer->ways_period < WAY_TRIAL_MOST)
        peer->ways_period *= 2;
    return faster == WAY_GET ? WAY_COPY : WAY_GET;
}

/* Where the kernel has still to find memory, that takes longer than either way, and the copy takes
 * one page fault after the other. Such a message is fetched, unless that has failed, and it says
 * nothing about messages into memory that is there. */
enum way mq_way_choose(struct transfer *op)
{
    struct velo_mq_peer *peer = op->peer;
    op->start_ns = 0;
    if (is_fresh(op))
        return peer->ways[WAY_GET].ps_per_byte == UINT32_MAX ? WAY_COPY : WAY_GET;
    op->start_ns = wait_now_ns();
    return choose(peer);
}

/* Keep the least cost of a way, since a process may have lost its processor meanwhile. Higher costs
 * raise it slowly. */
static void add_cost(struct way_cost *cost, uint32_t ps_per_byte)
{
    cost->ps_per_byte = cost->tries == 0 || ps_per_byte < cost->ps_per_byte
                            ? ps_per_byte
                            : cost->ps_per_byte + (ps_per_byte - cost->ps_per_byte) / 8;
    cost->tries += cost->tries < WAY_TRIES;
}

void mq_way_measured(const struct transfer *op, enum way way)
{
    uint64_t ps = (uint64_t)(wait_now_ns() - op->start_ns) * 1000 / op->end_bytes;
    add_cost(&op->peer->ways[way], ps < UINT32_MAX ? (uint32_t)ps : UINT32_MAX);
}

/* The kernel may forbid a get that was offered, and forbid the next one, too. So a get that failed
 * counts as the dearest one, without a second try. The trials come all the same. */
void mq_way_failed(const struct transfer *op)
{
    op->peer->ways[WAY_GET] = (struct way_cost){.tries = WAY_TRIES, .ps_per_byte = UINT32_MAX};
}
