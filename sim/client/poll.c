/* SPDX-License-Identifier: Apache-2.0 */
#include "poll.h"

#include <stddef.h>

/* Another thread of the process may do what this one waits for, and it may do it without a message:
 * where there are others, a joined poll lasts this long at most. */
#define BESIDE_PS (UINT64_C(1000) * PS_PER_NS)
/* After this many polls in vain, one after the other, the next ones are joined to one. */
#define POLLS_BEFORE_WAIT 8
/* A program that asks this often in vain, and does nothing else, waits too. */
#define TESTS_BEFORE_WAIT 4096
/* Polls that a thread makes outside between two naps. */
#define POLLS_OUTSIDE 32
/* A joined poll lasts this long at most: the caller may have a limit of its own. */
#define JOINED_PS (UINT64_C(100000) * PS_PER_NS)

static void (*take_news)(void);

static __thread uint32_t polls_in_vain;
static __thread uint32_t tests_in_vain;
static __thread uint32_t polls_outside;
static __thread bool is_outside;
static __thread uint64_t arrivals; /* As the last poll has found them. */
static __thread uint64_t polled_ps;

/* ---- polling --------------------------------------------------------------------------------- */

void sim_poll_on_news(void (*take)(void)) { take_news = take; }

void sim_poll_take_news(void)
{
    if (take_news)
        take_news();
}

static void end_poll(const struct sim_channel *channel, int status)
{
    is_outside = false;
    polls_in_vain++;
    if (status == SIM_OK)
        polls_in_vain = tests_in_vain = 0;
    polled_ps = channel->call.time_ps;
    sim_poll_take_news();
}

/* Between its polls the caller may also look at a clock, or at memory that others write. Then only
 * a limit ends a joined poll. A repeatable run needs no limit: its ranks wait for messages, and
 * where all of them do, the simulator lets one go on. */
static uint64_t joined_until_ps(const struct sim_channel *channel)
{
    if (sim_channel_has_threads())
        return channel->call.time_ps + BESIDE_PS;
    bool is_repeatable = sim_environment_number("VELO_SIM_REPEATABLE", 0) != 0;
    return is_repeatable ? SIM_NEVER : channel->call.time_ps + JOINED_PS;
}

/* The cost of computing between two calls is charged for calls that are made. */
static bool calls_cost_nothing(const struct sim_area *area)
{
    return area->compute_ps == 0 && area->compute_permille == 0;
}

/* What has come until then was there when the simulator last answered, and it said so. */
static bool finds_nothing(const struct sim_channel *channel)
{
    return channel->call.time_ps < channel->blind_ps && channel->seen == arrivals &&
           calls_cost_nothing(sim_channel_area());
}

void sim_poll_once(void)
{
    struct sim_channel *channel = sim_channel_self();
    if (is_outside && ++polls_outside <= POLLS_OUTSIDE)
        return;
    sim_channel_charge(channel, sim_channel_area()->poll_ps);
    if (!is_outside && polls_in_vain < POLLS_BEFORE_WAIT && finds_nothing(channel)) {
        end_poll(channel, SIM_AGAIN);
        return;
    }
    /* What the caller does between two polls in vain is the same each time. */
    uint64_t period_ps = channel->call.time_ps - polled_ps;
    bool is_joined = polls_in_vain >= POLLS_BEFORE_WAIT;
    end_poll(channel, is_joined ? sim_poll(channel, &arrivals, joined_until_ps(channel), period_ps)
                                : sim_look(channel, &arrivals));
}

void sim_poll_until(uint64_t deadline_ps)
{
    struct sim_channel *channel = sim_channel_self();
    uint64_t poll_ps = sim_channel_area()->poll_ps;
    sim_channel_charge(channel, poll_ps);
    end_poll(channel, sim_poll(channel, &arrivals, deadline_ps, poll_ps));
}

/* ---- what the thread does between its polls ----------------------------------------------------
 */

int sim_poll_store(uint32_t node, uint64_t address, const uint64_t *line, uint32_t len_words)
{
    struct sim_channel *channel = sim_channel_self();
    const struct sim_area *area = sim_channel_area();
    for (;;) {
        is_outside = false;
        polls_in_vain = tests_in_vain = 0;
        uint64_t period_ps = calls_cost_nothing(area) ? area->poll_ps : 0;
        int status = sim_store_until(channel, node, address, line, len_words, period_ps, &arrivals);
        if (status != SIM_AGAIN)
            return status;
        if (period_ps)
            end_poll(channel, SIM_OK);
        else
            sim_poll_once();
    }
}

void sim_poll_napped(void) { polls_in_vain = 0; }

void sim_poll_tested(void)
{
    if (++tests_in_vain < TESTS_BEFORE_WAIT)
        polls_in_vain = 0;
}

void sim_poll_pass(struct sim_channel *channel)
{
    uint64_t now_ns = channel->call.time_ps / PS_PER_NS;
    uint64_t poll_ns = sim_channel_area()->poll_ps / PS_PER_NS;
    (void)sim_sleep(channel, (now_ns + poll_ns + 1) * PS_PER_NS);
    sim_poll_napped();
}

/* ---- outside --------------------------------------------------------------------------------- */

void sim_poll_go_outside(void)
{
    static __thread uint64_t times;
    struct sim_channel *channel = sim_channel_self();
    if (!channel)
        return;
    (void)sim_outside(channel, ++times);
    polls_outside = 0;
    is_outside = true;
}

bool sim_poll_is_outside(void) { return is_outside; }

void sim_poll_come_back(void)
{
    if (is_outside) {
        struct sim_channel *channel = sim_channel_self();
        (void)sim_sleep(channel, channel->call.time_ps / PS_PER_NS * PS_PER_NS);
        sim_poll_napped();
    }
    is_outside = false;
}

void sim_poll_nap_outside(void) { polls_outside = 0; }
