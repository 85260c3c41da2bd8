/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's waiting (lib/shm/wait.h) in virtual time. A sleeper waits for messages, and polls
 * for them. Another thread or process may also change the word that it looks at, without a message.
 */
#include "../../lib/shm/wait.h"

#include "../client/order.h"
#include "../client/poll.h"

/* A sleeper looks at its word again after this time at the latest. */
#define SLICE_NS INT64_C(1000000)

int64_t wait_now_ns(void)
{
    const struct sim_channel *channel = sim_channel_self();
    return channel ? (int64_t)(channel->call.time_ps / PS_PER_NS) : 0;
}

/* A signal does not end the wait: it has no virtual time. The caller sees after the wait what its
 * handler has changed. */
bool wait_sleep(const uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    int64_t end_ns = wait_now_ns() + timeout_ns;
    int64_t now_ns = wait_now_ns();
    for (; order_word_read(word) == expected && now_ns < end_ns; now_ns = wait_now_ns()) {
        int64_t left_ns = end_ns - now_ns < SLICE_NS ? end_ns - now_ns : SLICE_NS;
        sim_poll_until((uint64_t)(now_ns + left_ns) * PS_PER_NS);
    }
    return false;
}

/* Sleepers look by themselves. */
void wait_wake(const uint32_t *word) { (void)word; }

/* All senders fence: only the threads of one process share a ring here. */
bool wait_join_barrier(void) { return false; }

void wait_barrier_all(void) { order_fence(); }

bool wait_nap(int64_t nap_ns)
{
    struct sim_channel *channel = sim_channel_self();
    (void)sim_sleep(channel, channel->call.time_ps + (uint64_t)nap_ns * PS_PER_NS);
    sim_poll_take_news();
    return false;
}
