/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of the threads and processes that a thread of the cluster starts, and of threads that
 * wait for each other.
 */
#include <pthread.h>
#include <unistd.h>

#include "channel.h"
#include "internal.h"
#include "order.h"

static uint32_t channels_held; /* For threads and children of this process, so far. */
static uint32_t has_threads;
static void (*at_end)(void);
static __thread struct sim_channel *held_for_child;

/* ---- threads and processes that are started ---------------------------------------------------
 */

/* Virtual time would pass by a thread or process that only attaches when it first calls: a limit
 * that another thread gave it could be over before it has begun. */
static struct sim_channel *hold(void)
{
    const struct sim_channel *mine = sim_channel_mine();
    struct sim_channel *channel = mine ? channel_claim_free(mine->call.time_ps) : NULL;
    if (channel)
        channel->number = ++channels_held;
    return channel;
}

struct sim_channel *sim_channel_hold(void)
{
    struct sim_channel *channel = hold();
    if (channel)
        order_word_write(&has_threads, 1);
    return channel;
}

void sim_channel_take(struct sim_channel *channel)
{
    channel->pid = getpid();
    channel->tid = gettid();
}

void sim_channel_drop(struct sim_channel *channel)
{
    channel->pid = 0;
    order_turn_give(&channel->turn, SIM_TURN_FREE);
}

/* The first process of a rank is of the cluster before it first calls, and its children and theirs
 * with it, also those that execute another program. */
static void before_fork(void)
{
    if (channel_has_begun() || channel_is_held())
        (void)sim_channel_self();
    held_for_child = hold();
}

/* If the fork has failed, the simulator takes the channel back after a while. */
static void in_parent(void) { held_for_child = NULL; }

/* The thread's own channel is the parent's. */
static void in_child(void)
{
    channel_forget();
    if (held_for_child)
        sim_channel_take(held_for_child);
    held_for_child = NULL;
}

void threads_watch_forks(void) { (void)pthread_atfork(before_fork, in_parent, in_child); }

bool sim_channel_has_threads(void) { return order_word_read(&has_threads) != 0; }

struct sim_channel *sim_channel_beside(void)
{
    return sim_channel_has_threads() ? sim_channel_mine() : NULL;
}

void sim_channel_on_end(void (*ended)(void)) { at_end = ended; }

void threads_end(void)
{
    if (at_end)
        at_end();
}

bool sim_channel_any_waits(bool (*is)(int pid, const void *arg), const void *arg)
{
    const struct sim_channel *mine = sim_channel_mine();
    if (!sim_channel_area())
        return false;
    for (const struct sim_channel *channel = channels_begin(); channel < channels_end_of_all();
         channel++)
        if (channel != mine && order_turn_read(&channel->turn) == SIM_TURN_CALL &&
            is((int)order_word_read((const uint32_t *)&channel->pid), arg))
            return true;
    return false;
}

/* ---- threads that wait for each other ---------------------------------------------------------
 */

/* The calling thread has the turn: no other thread of its process changes a channel meanwhile. */

static bool is_before(const struct sim_channel *a, const struct sim_channel *b)
{
    return a->since_ps != b->since_ps ? a->since_ps < b->since_ps : a->number < b->number;
}

struct sim_channel *sim_channel_waiting_at(uint64_t place, bool is_woken)
{
    const struct sim_channel *mine = sim_channel_mine();
    struct sim_channel *first = NULL;
    for (struct sim_channel *channel = channels_begin(); channel < channels_end(); channel++)
        if (order_turn_read(&channel->turn) == SIM_TURN_CALL && channel->pid == mine->pid &&
            channel->call.op == SIM_SLEEP && channel->place == place &&
            (channel->woken_ps != 0) == is_woken && (!first || is_before(channel, first)))
            first = channel;
    return first;
}

bool sim_channel_is_of_thread(uint64_t thread)
{
    const struct sim_channel *mine = sim_channel_mine();
    const struct sim_channel *channel = channels_begin();
    const struct sim_channel *end = channels_end();
    while (channel < end && (order_turn_read(&channel->turn) == SIM_TURN_FREE ||
                             channel->pid != mine->pid || channel->thread != thread))
        channel++;
    return channel < end;
}
