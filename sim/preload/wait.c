/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiting of shm/wait.h in virtual time. What a sleeper waits for comes over the device, or
 * another thread or process changes the word: it looks again after a slice at the latest.
 */
#include "../../lib/shm/wait.h"

#include "../../lib/base/order.h"
#include "../../transports/nic/device.h"
#include "../client/channel.h"

#define SLICE_NS INT64_C(1000000)

int64_t wait_now_ns(void)
{
    const struct sim_channel *channel = channel_self();
    return channel ? (int64_t)(channel->call.time_ps / PS_PER_NS) : 0;
}

/* Signals do not come in virtual time: what a handler changes is seen after the wait. */
bool wait_sleep(const uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    int64_t end_ns = wait_now_ns() + timeout_ns;
    int64_t now_ns = wait_now_ns();
    for (; order_flag(word) == expected && now_ns < end_ns; now_ns = wait_now_ns()) {
        int64_t left_ns = end_ns - now_ns < SLICE_NS ? end_ns - now_ns : SLICE_NS;
        device_wait((uint64_t)(now_ns + left_ns) * PS_PER_NS);
    }
    return false;
}

/* Sleepers look by themselves. */
void wait_wake(const uint32_t *word) { (void)word; }

/* Everybody fences: only the threads of one process share a ring here. */
bool wait_join_barrier(void) { return false; }

void wait_barrier_all(void) { order_full_fence(); }

bool wait_nap(int64_t nap_ns)
{
    struct sim_channel *channel = channel_self();
    (void)sim_sleep(channel, channel->call.time_ps + (uint64_t)nap_ns * PS_PER_NS);
    device_drain();
    return false;
}
