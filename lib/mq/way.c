/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the two ways of long messages is faster: measured, message by message. */
#include "../shm/wait.h"
#include "internal.h"

/* Each way is tried WAY_TRIES times before the two are compared. The slower one is tried again
 * after WAY_TRIAL_FIRST messages, and each time that it is slower again, after twice as many, up to
 * WAY_TRIAL_MOST. */
#define WAY_TRIES 2u
#define WAY_TRIAL_FIRST 64u
#define WAY_TRIAL_MOST 1024u

/* Returns the way that was faster lately. The other one is tried now and then: the processes may
 * have moved. */
enum way mq_way_choose(struct velo_mq_peer *peer)
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
