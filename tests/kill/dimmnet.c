/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that send by lib/dimmnet, or take statuses, are killed at each point in turn, at some
 * of its visits there. Of a sender's death the receiver and another sender notice nothing: every
 * status that comes tells of words that are whole, and the dead one's last status is the only one
 * that may be missing. Of a receiver's death its senders notice nothing, and whoever opens its
 * context next goes on.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/dimmnet.h>

#include "base/hook.h"
#include "shm/inspect.h"
#include "test.h"

enum { LEN_WORDS = 40, VICTIM_SENDS = 150, OTHERS_SENDS = 150, TARGET_PID = 1 };

struct blow {
    unsigned point;
    unsigned visit;
    int signal;
    atomic_uint struck;
    atomic_uint sent; /* By the victim, as far as it was told. */
};

static struct blow *blow; /* Shared with the victim. */
static unsigned visits;

static void strike(unsigned point)
{
    if (point != blow->point || ++visits != blow->visit)
        return;
    atomic_store(&blow->struck, 1);
    kill(getpid(), blow->signal);
}

static struct velo_dimmnet_board *prepare(unsigned point, unsigned visit, int signal)
{
    struct velo_dimmnet_board_attr attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_board *board;

    if (!blow)
        blow = test_shared_alloc(sizeof *blow);
    CHECK_EQ(setenv("VELO_SPIN_NS", "0", 1), 0); /* All who wait sleep: each point is visited. */
    blow->point = point;
    blow->visit = visit;
    blow->signal = signal;
    atomic_store(&blow->struck, 0);
    atomic_store(&blow->sent, 0);
    attr.lid = 1;
    attr.processes = 3;
    attr.sodimm_bytes = 3 << 20;
    attr.patience_ns = 10000000;
    CHECK_OK(velo_dimmnet_board_open(&attr, &board));
    CHECK_OK(velo_dimmnet_board_pid(board, TARGET_PID, 1, 0));
    return board;
}

static struct velo_dimmnet *context_open(int wid)
{
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet *context;

    attr.lid = 1;
    attr.wid = wid;
    CHECK_OK(velo_dimmnet_open(&attr, &context, 0));
    return context;
}

/* Sender `wid` has places of its own: a status that says so must find these words there. */
static void send_numbered(struct velo_dimmnet *context, int wid, unsigned number)
{
    uint64_t words[LEN_WORDS];
    struct velo_dimmnet_target target = {.pid = TARGET_PID,
                                         .word = (uint32_t)((wid * 256 + (int)number) * LEN_WORDS),
                                         .tag = (uint8_t)number,
                                         .status = 1};

    for (unsigned i = 0; i < LEN_WORDS; i++)
        words[i] = number * 1000 + i;
    CHECK_OK(velo_dimmnet_send(context, &target, words, LEN_WORDS));
}

static void check_numbered(struct velo_dimmnet *context, const struct velo_dimmnet_status *status)
{
    struct velo_dimmnet_transfer load = {
        .len_words = LEN_WORDS,
        .local_word = (uint32_t)((status->wid * 256 + status->tag) * LEN_WORDS)};
    const uint64_t *words = velo_dimmnet_prefetch(context);

    CHECK_OK(velo_dimmnet_load(context, &load));
    CHECK_OK(velo_dimmnet_quiet(context, TEST_PATIENCE_NS));
    CHECK_OK(velo_dimmnet_refresh(context, 0, LEN_WORDS));
    for (unsigned i = 0; i < LEN_WORDS; i++)
        CHECK_EQ(words[i], status->tag * 1000 + i);
}

/* ---- senders --------------------------------------------------------------------------------- */

static void be_a_sender(void *arg)
{
    (void)arg;
    velo_test_hook = strike;
    struct velo_dimmnet *context = context_open(1);

    for (unsigned i = 0; i < VICTIM_SENDS; i++) {
        send_numbered(context, 1, i);
        atomic_store(&blow->sent, i + 1);
    }
    CHECK_OK(velo_dimmnet_close(context));
}

static void be_the_other(void *arg)
{
    struct velo_dimmnet *context = context_open(2);

    (void)arg;
    for (unsigned i = 0; i < OTHERS_SENDS; i++) {
        send_numbered(context, 2, i);
        if (i % 10 == 0)
            test_sleep_ns(100 * TEST_US); /* The receiver falls asleep. */
    }
    CHECK_OK(velo_dimmnet_close(context));
}

static void strike_a_sender(unsigned point, unsigned visit, int signal)
{
    struct velo_dimmnet_board *board = prepare(point, visit, signal);
    struct velo_dimmnet *receiver = context_open(0);
    pid_t victim = child_start(be_a_sender, NULL);
    pid_t other = child_start(be_the_other, NULL);
    struct velo_dimmnet_status status;
    unsigned taken[3] = {0};
    bool is_over = false;

    /* The victim's statuses end; the other's all come. */
    while (!is_over || velo_dimmnet_poll(receiver, NULL) != VELO_AGAIN) {
        CHECK(!is_over);
        int got = velo_dimmnet_wait(receiver, &status, 50 * TEST_MS);
        if (got == VELO_OK) {
            CHECK_EQ(status.tag, taken[status.wid]);
            taken[status.wid]++;
            check_numbered(receiver, &status);
        } else {
            CHECK_STATUS(got, VELO_TIMEOUT);
            is_over = taken[2] == OTHERS_SENDS && atomic_load(&blow->struck) == 1;
        }
    }
    child_join(other);
    if (signal == SIGSTOP)
        kill(victim, SIGKILL);
    CHECK(WIFSIGNALED(child_wait(victim)));
    unsigned sent = atomic_load(&blow->sent);
    CHECK(taken[1] == sent || taken[1] == sent + 1);
    struct velo_dimmnet *heir = context_open(1);
    send_numbered(heir, 1, 200);
    CHECK_OK(velo_dimmnet_wait(receiver, &status, TEST_PATIENCE_NS));
    CHECK_EQ(status.tag, 200);
    CHECK_OK(velo_dimmnet_close(heir));
    CHECK_OK(velo_dimmnet_close(receiver));
    CHECK_OK(velo_dimmnet_board_close(board));
}

static const unsigned sender_points[] = {HOOK_DIMMNET_REACHED, HOOK_DIMMNET_COPIED,
                                         HOOK_DIMMNET_POSTED, HOOK_DIMMNET_COUNTED};

static void strike_senders(int signal)
{
    static const unsigned visits_struck[] = {1, 2, 40};

    for (size_t i = 0; i < ARRAY_LEN(sender_points); i++)
        for (size_t v = 0; v < ARRAY_LEN(visits_struck); v++)
            strike_a_sender(sender_points[i], visits_struck[v], signal);
}

TEST(a_dimmnet_sender_killed_at_any_point_harms_nobody) { strike_senders(SIGKILL); }
TEST(a_dimmnet_sender_stopped_at_any_point_delays_nobody) { strike_senders(SIGSTOP); }

TEST(a_process_killed_while_it_opens_leaves_its_context_free)
{
    struct velo_dimmnet_board *board = prepare(HOOK_DIMMNET_CLAIMED, 1, SIGKILL);
    pid_t victim = child_start(be_a_sender, NULL);

    CHECK(WIFSIGNALED(child_wait(victim)));
    CHECK_EQ(atomic_load(&blow->struck), 1);
    CHECK_OK(velo_dimmnet_close(context_open(1)));
    CHECK_OK(velo_dimmnet_board_close(board));
}

/* ---- receivers ------------------------------------------------------------------------------- */

static void be_the_receiver(void *arg)
{
    struct velo_dimmnet *context = context_open(0);
    struct velo_dimmnet_status status;

    (void)arg;
    velo_test_hook = strike;
    for (;;) {
        int got = velo_dimmnet_wait(context, &status, TEST_MS);
        if (got != VELO_TIMEOUT)
            CHECK_OK(got);
        if (got == VELO_OK)
            atomic_fetch_add(&blow->sent, 1);
    }
}

static void strike_the_receiver(unsigned point, unsigned visit)
{
    struct velo_dimmnet_board *board = prepare(point, visit, SIGKILL);
    struct velo_dimmnet_counters counters;
    pid_t victim = child_start(be_the_receiver, NULL);
    struct velo_dimmnet *sender = context_open(2);
    struct velo_dimmnet_status status;
    unsigned sent = 0;
    unsigned taken = 0;
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;

    while (atomic_load(&blow->struck) == 0 || sent % 100 != 0) {
        send_numbered(sender, 2, sent++ % 250);
        if (sent % 50 == 0)
            test_sleep_ns(200 * TEST_US); /* The victim falls asleep. */
        if (test_now_ns() > end_ns)
            test_fail(__FILE__, __LINE__, "no receiver came to point %u", point);
    }
    CHECK(WIFSIGNALED(child_wait(victim)));
    for (unsigned i = 0; i < 100; i++)
        send_numbered(sender, 2, sent++ % 250);
    /* The heir takes what the dead one had not said that it took. */
    struct velo_dimmnet *heir = context_open(0);
    while (velo_dimmnet_poll(heir, &status) == VELO_OK)
        taken++;
    CHECK_OK(velo_dimmnet_board_counters(board, &counters, sizeof counters));
    CHECK(taken + atomic_load(&blow->sent) + counters.dropped_status >= sent);
    for (unsigned i = 0; i < 1000; i++) {
        send_numbered(sender, 2, i % 250);
        CHECK_OK(velo_dimmnet_wait(heir, &status, TEST_PATIENCE_NS));
        CHECK_EQ(status.tag, i % 250);
    }
    CHECK_OK(velo_dimmnet_close(heir));
    CHECK_OK(velo_dimmnet_close(sender));
    CHECK_OK(velo_dimmnet_board_close(board));
}

TEST(a_dimmnet_receiver_killed_at_any_point_is_inherited)
{
    static const unsigned points[] = {HOOK_DIMMNET_ASLEEP, HOOK_DIMMNET_TAKEN,
                                      HOOK_DIMMNET_EMPTIED};

    for (size_t i = 0; i < ARRAY_LEN(points); i++)
        for (unsigned visit = 1; visit <= 5; visit += 2)
            strike_the_receiver(points[i], visit);
}

/* A sender that waits for room is killed there: the ring is as it was. */
static void fill_the_ring(void *arg)
{
    struct velo_dimmnet *context = context_open(1);

    (void)arg;
    velo_test_hook = strike;
    for (unsigned i = 0; i < 2 * VELO_DIMMNET_STATUS_ENTRIES; i++)
        send_numbered(context, 1, i % 250);
}

TEST(a_dimmnet_sender_killed_while_it_waits_for_room_leaves_the_ring_usable)
{
    struct velo_dimmnet_board *board = prepare(HOOK_DIMMNET_WAITING, 1, SIGKILL);
    struct velo_dimmnet *receiver = context_open(0);
    struct velo_dimmnet_status status;
    pid_t victim = child_start(fill_the_ring, NULL);

    CHECK(WIFSIGNALED(child_wait(victim)));
    CHECK_EQ(atomic_load(&blow->struck), 1);
    for (unsigned i = 0; i < VELO_DIMMNET_STATUS_ENTRIES; i++) {
        CHECK_OK(velo_dimmnet_poll(receiver, &status));
        CHECK_EQ(status.tag, i % 250);
    }
    CHECK_STATUS(velo_dimmnet_poll(receiver, &status), VELO_AGAIN);
    CHECK_OK(velo_dimmnet_close(receiver));
    CHECK_OK(velo_dimmnet_board_close(board));
}

/* ---- boards ---------------------------------------------------------------------------------- */

static void fail_to_open(void *arg)
{
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet *guest;

    (void)arg;
    attr.lid = 2;
    CHECK_STATUS(velo_dimmnet_open(&attr, &guest, 0), VELO_ERR_NO_PEER);
    atomic_fetch_add(&blow->struck, 1);
}

/* In another process, and in the one that makes the board. */
static void open_too_early(unsigned point)
{
    if (point != HOOK_DIMMNET_SET)
        return;
    CHECK_EQ(child_wait(child_start(fail_to_open, NULL)), 0);
    fail_to_open(NULL);
}

/* Before that its processes are not enabled, and what is sent to them is dropped. */
TEST(a_board_cannot_be_opened_before_it_is_set_up)
{
    struct velo_dimmnet_board *board = prepare(0, 0, 0), *other;
    struct velo_dimmnet_board_attr board_attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet *guest;

    board_attr.lid = attr.lid = 2;
    velo_test_hook = open_too_early;
    CHECK_OK(velo_dimmnet_board_open(&board_attr, &other));
    velo_test_hook = NULL;
    CHECK_EQ(atomic_load(&blow->struck), 2);
    CHECK_OK(velo_dimmnet_open(&attr, &guest, 0));
    CHECK_OK(velo_dimmnet_close(guest));
    CHECK_OK(velo_dimmnet_board_close(other));
    CHECK_OK(velo_dimmnet_board_close(board));
}

static void make_a_board_and_wait(void *arg)
{
    struct velo_dimmnet_board_attr attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_board *board;

    (void)arg;
    attr.lid = 2;
    CHECK_OK(velo_dimmnet_board_open(&attr, &board));
    for (;;)
        pause();
}

TEST(the_death_of_whoever_made_a_board_is_told_to_all_who_use_it)
{
    struct velo_dimmnet_board *board = prepare(0, 0, 0);
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet *guest;
    struct velo_dimmnet *sender = context_open(1);
    struct velo_dimmnet_target target = {.pid = 2, .memory = VELO_DIMMNET_LLCM, .status = 1};
    uint64_t word = 1;
    int status = VELO_OK;
    pid_t victim = child_start(make_a_board_and_wait, NULL);

    CHECK_OK(velo_dimmnet_board_pid(board, 2, 2, 0));
    attr.lid = 2;
    CHECK_OK(velo_dimmnet_open(&attr, &guest, TEST_PATIENCE_NS));
    CHECK_OK(velo_dimmnet_send(sender, &target, &word, 1));
    child_kill(victim);
    CHECK_OK(velo_dimmnet_wait(guest, NULL, TEST_PATIENCE_NS));
    /* A sender hears of it when the ring is full, at the latest. */
    for (int i = 0; status == VELO_OK && i <= (int)VELO_DIMMNET_STATUS_ENTRIES + 1; i++)
        status = velo_dimmnet_send(sender, &target, &word, 1);
    CHECK_STATUS(status, VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_dimmnet_peer_status(sender, 2), VELO_ERR_PEER_DEAD);
    while ((status = velo_dimmnet_wait(guest, NULL, TEST_PATIENCE_NS)) == VELO_OK)
        ;
    CHECK_STATUS(status, VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_dimmnet_close(guest));
    /* Made anew, it is found. */
    struct velo_dimmnet_board *again;
    struct velo_dimmnet_board_attr board_attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    board_attr.lid = 2;
    CHECK_OK(velo_dimmnet_board_open(&board_attr, &again));
    CHECK_OK(velo_dimmnet_send(sender, &target, &word, 1));
    CHECK_OK(velo_dimmnet_peer_status(sender, 2));
    CHECK_OK(velo_dimmnet_board_close(again));
    CHECK_OK(velo_dimmnet_close(sender));
    CHECK_OK(velo_dimmnet_board_close(board));
}

static int count_removed(void *arg, const struct velo_domain_view *view)
{
    *(unsigned *)arg += view->removed;
    return 0;
}

TEST(the_board_of_a_dead_process_is_cleaned_away)
{
    /* It lives: else another program that starts takes the domain away first. */
    struct velo_dimmnet_board *alive = prepare(0, 0, 0);
    struct velo_clean clean = {.domain = test_domain(), .removes = true};
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet *guest;
    unsigned removed = 0;
    pid_t victim = child_start(make_a_board_and_wait, NULL);

    attr.lid = 2;
    CHECK_OK(velo_dimmnet_open(&attr, &guest, TEST_PATIENCE_NS));
    CHECK_OK(velo_dimmnet_close(guest));
    CHECK_OK(velo_clean(&clean, count_removed, &removed));
    CHECK_EQ(removed, 0);
    child_kill(victim);
    CHECK_OK(velo_clean(&clean, count_removed, &removed));
    CHECK_EQ(removed, 1);
    CHECK_STATUS(velo_dimmnet_open(&attr, &guest, 0), VELO_ERR_NO_PEER);
    CHECK_OK(velo_dimmnet_board_close(alive));
}
