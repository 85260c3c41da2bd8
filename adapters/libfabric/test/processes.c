/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that make no calls, that die, and that leave without a word. */
#include <glob.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side.h"

#define LEN (1u << 20)
#define ACCESS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static const struct side_attr plain = {0};
static struct fi_context2 sent, got, done;
static unsigned char memory[LEN];

/* Wait for a flag of the meeting without a call of libfabric. */
static void sleep_until(struct meeting *meeting, int flag)
{
    for (int64_t end = test_now_ns() + TEST_PATIENCE_NS; !atomic_load(&meeting->flags[flag]);) {
        CHECK(test_now_ns() < end);
        test_sleep_ns(TEST_MS);
    }
}

/* --- automatic progress
 * -------------------------------------------------------------------------*/

static struct side_attr automatic = {.progress = FI_PROGRESS_AUTO};

/* Rank 1 posts its receives and makes no more calls; rank 0 waits for delivery. */
static void receiver_without_calls(struct meeting *meeting, int rank)
{
    static const size_t lens[] = {8, 5000, LEN};
    struct side side;
    fi_addr_t addrs[2];
    static struct fi_context2 contexts[3];
    static unsigned char in[3][LEN];

    side_open_among(&side, &automatic, meeting, rank, addrs);
    if (rank == 1) {
        for (uint64_t i = 0; i < 3; i++)
            CHECK_FI(fi_trecv(side.ep, in[i], lens[i], NULL, FI_ADDR_UNSPEC, i, 0, &contexts[i]));
        atomic_store(&meeting->flags[0], 1);
        sleep_until(meeting, 1);
        /* Delivery was told to the sender: all is there, though no call was made here. */
        for (uint64_t i = 0; i < 3; i++)
            CHECK_EQ(next(&side).error, 0);
        for (uint64_t i = 0; i < 3; i++)
            CHECK(pattern_matches(in[i], lens[i], i));
    } else {
        sleep_until(meeting, 0);
        for (uint64_t i = 0; i < 3; i++) {
            struct iovec iov = {memory, lens[i]};
            struct fi_msg_tagged msg = {&iov, NULL, 1, addrs[1], i, 0, &sent, 0};

            pattern_fill(memory, lens[i], i);
            POST(fi_tsendmsg(side.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
            next_ok(&side, &sent, FI_SEND);
        }
        atomic_store(&meeting->flags[1], 1);
    }
    meet(meeting);
    side_close(&side);
}

TEST(with_automatic_progress_a_receiver_makes_no_calls)
{
    needs(&automatic);
    processes_run(2, receiver_without_calls);
}

/* Rank 0 posts a large send and makes no more calls; rank 1 gets it. */
static void sender_without_calls(struct meeting *meeting, int rank)
{
    struct side side;
    fi_addr_t addrs[2];

    side_open_among(&side, &automatic, meeting, rank, addrs);
    if (rank == 0) {
        pattern_fill(memory, LEN, 1);
        POST(fi_tsend(side.ep, memory, LEN, NULL, addrs[1], 1, &sent));
        sleep_until(meeting, 0);
        next_ok(&side, &sent, FI_SEND);
    } else {
        CHECK_FI(fi_trecv(side.ep, memory, LEN, NULL, FI_ADDR_UNSPEC, 1, 0, &got));
        next_ok(&side, &got, FI_RECV);
        CHECK(pattern_matches(memory, LEN, 1));
        atomic_store(&meeting->flags[0], 1);
    }
    meet(meeting);
    side_close(&side);
}

TEST(with_automatic_progress_a_sender_of_much_makes_no_calls)
{
    needs(&automatic);
    processes_run(2, sender_without_calls);
}

static struct side_attr automatic_rma = {.caps = FI_MSG | FI_RMA | FI_ATOMIC,
                                         .progress = FI_PROGRESS_AUTO};

static void owner_without_calls(struct meeting *meeting, int rank)
{
    struct side side;
    fi_addr_t addrs[2];

    side_open_among(&side, &automatic_rma, meeting, rank, addrs);
    if (rank == 1) {
        struct fid_mr *mr;
        CHECK_FI(fi_mr_reg(side.domain, memory, LEN, ACCESS, 0, 3, 0, &mr, NULL));
        meeting->words[0] =
            side.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
        atomic_store(&meeting->flags[0], 1);
        sleep_until(meeting, 1);
        sides_progress(); /* For ThreadSanitizer: it does not see what orders two processes. */
        CHECK_EQ(*(uint64_t *)(void *)memory, 42);
        CHECK_FI(fi_close(&mr->fid));
    } else {
        static uint64_t word = 40, two = 2;

        sleep_until(meeting, 0);
        POST(fi_write(side.ep, &word, 8, NULL, addrs[1], meeting->words[0], 3, &done));
        next_ok(&side, &done, FI_WRITE);
        POST(fi_fetch_atomic(side.ep, &two, 1, NULL, &word, NULL, addrs[1], meeting->words[0], 3,
                             FI_UINT64, FI_SUM, &done));
        next_ok(&side, &done, FI_ATOMIC);
        CHECK_EQ(word, 40);
        atomic_store(&meeting->flags[1], 1);
    }
    meet(meeting);
    side_close(&side);
}

TEST(with_automatic_progress_the_owner_of_memory_makes_no_calls)
{
    needs(&automatic_rma);
    processes_run(2, owner_without_calls);
}

/* --- deaths
 * -------------------------------------------------------------------------------------*/

static const struct side_attr mortal = {.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV};
static const struct side_attr mortal_rma = {.caps = FI_MSG | FI_RMA | FI_ATOMIC};

/* Rank 1: is there, is known, and waits to be killed. */
static void victim(struct meeting *meeting, int rank)
{
    struct side side;
    fi_addr_t addrs[2];
    struct fid_mr *mr;
    bool has_memory = atomic_load(&meeting->flags[8]);

    side_open_among(&side, has_memory ? &mortal_rma : &mortal, meeting, rank, addrs);
    if (has_memory) {
        CHECK_FI(fi_mr_reg(side.domain, memory, LEN, ACCESS, 0, 3, 0, &mr, NULL));
        meeting->words[0] =
            side.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
    }
    if (atomic_load(&meeting->flags[9])) {
        POST(fi_tsend(side.ep, memory, LEN, NULL, addrs[0], 1, &sent));
        for (int i = 0; i < 100; i++)
            sides_progress();
    }
    atomic_store(&meeting->flags[0], 1);
    for (;;)
        pause();
}

static void velo_only(void)
{
    if (!is_velo())
        test_skip("others find out after minutes, or never");
}

/* Start a victim and learn of it. */
static struct meeting *live_with(struct side *side, bool has_memory, bool sends, fi_addr_t *addrs,
                                 pid_t *child)
{
    struct meeting *meeting = meeting_of(2);

    velo_only();
    needs(has_memory ? &mortal_rma : &mortal);
    atomic_store(&meeting->flags[8], has_memory);
    atomic_store(&meeting->flags[9], sends);
    *child = process_start(meeting, 1, victim);
    side_open_among(side, has_memory ? &mortal_rma : &mortal, meeting, 0, addrs);
    UNTIL(atomic_load(&meeting->flags[0]));
    return meeting;
}

/* The files of a process that was killed are removed by the next that opens an endpoint. */
static void sweep(void)
{
    struct side side;

    side_open(&side, &plain);
    side_close(&side);
}

/* Operations of the victim's end, with an error; how many were accepted must be told. */
static void all_fail(struct side *side, int accepted)
{
    for (int i = 0; i < accepted; i++)
        CHECK(next(side).error != 0);
    nothing_more(side);
}

TEST(a_send_that_waits_for_a_peer_that_is_killed_fails)
{
    struct side side;
    fi_addr_t addrs[2];
    pid_t child;

    live_with(&side, false, false, addrs, &child);
    CHECK_FI(fi_tsend(side.ep, memory, LEN, NULL, addrs[1], 1, &sent));
    for (int i = 0; i < 100; i++)
        sides_progress();
    child_kill(child);
    all_fail(&side, 1);
    side_close(&side);
    sweep();
}

TEST(a_send_that_waits_for_delivery_to_a_peer_that_is_killed_fails)
{
    struct side side;
    fi_addr_t addrs[2];
    pid_t child;
    struct iovec iov = {memory, 8};
    struct fi_msg_tagged msg = {&iov, NULL, 1, 0, 1, 0, &sent, 0};

    live_with(&side, false, false, addrs, &child);
    msg.addr = addrs[1];
    POST(fi_tsendmsg(side.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
    child_kill(child);
    all_fail(&side, 1);
    side_close(&side);
    sweep();
}

TEST(sends_to_a_peer_that_was_killed_fail_soon)
{
    struct side side;
    fi_addr_t addrs[2];
    pid_t child;
    bool has_failed = false;

    live_with(&side, false, false, addrs, &child);
    child_kill(child);
    for (int64_t end = test_now_ns() + TEST_PATIENCE_NS; !has_failed;) {
        ssize_t status = fi_tsend(side.ep, memory, 8, NULL, addrs[1], 1, &sent);

        CHECK(test_now_ns() < end);
        sides_progress();
        has_failed = status < 0 && status != -FI_EAGAIN;
        while (kept(&side) > 0)
            has_failed |= next(&side).error != 0;
    }
    side_close(&side);
    sweep();
}

TEST(a_receive_of_a_message_whose_sender_was_killed_fails)
{
    struct side side;
    fi_addr_t addrs[2];
    pid_t child;
    struct completion completion;
    static unsigned char in[LEN];

    live_with(&side, false, true, addrs, &child);
    sides_settle();
    child_kill(child);
    sides_settle();
    /* What the sender had to carry is gone; what it announced must not be waited for forever. */
    CHECK_FI(fi_trecv(side.ep, in, LEN, NULL, FI_ADDR_UNSPEC, 1, 0, &got));
    for (int64_t end = test_now_ns() + 3000 * TEST_MS; kept(&side) == 0 && test_now_ns() < end;)
        sides_progress();
    if (kept(&side) == 0) { /* Nothing was matched: then the receive is still there. */
        CHECK_FI(fi_cancel(&side.ep->fid, &got));
        next_error(&side, &got, FI_ECANCELED);
    } else {
        completion = next(&side);
        CHECK(completion.entry.op_context == &got);
    }
    side_close(&side);
    sweep();
}

TEST(operations_on_memory_of_a_peer_that_was_killed_fail)
{
    struct side side;
    fi_addr_t addrs[2];
    pid_t child;
    struct meeting *meeting;
    static uint64_t word = 1, old;
    ssize_t status[3];
    int accepted = 0;

    meeting = live_with(&side, true, false, addrs, &child);
    POST(fi_read(side.ep, &word, 8, NULL, addrs[1], meeting->words[0], 3, &done));
    next_ok(&side, &done, FI_READ);
    child_kill(child);
    for (int i = 0; i < 3; i++) {
        do {
            sides_progress();
            status[i] =
                i == 0   ? fi_read(side.ep, &word, 8, NULL, addrs[1], meeting->words[0], 3, &done)
                : i == 1 ? fi_write(side.ep, &word, 8, NULL, addrs[1], meeting->words[0], 3, &done)
                         : fi_fetch_atomic(side.ep, &word, 1, NULL, &old, NULL, addrs[1],
                                           meeting->words[0], 3, FI_UINT64, FI_SUM, &done);
        } while (status[i] == -FI_EAGAIN);
        accepted += status[i] == 0;
    }
    all_fail(&side, accepted);
    side_close(&side);
    sweep();
}

/* The others go on when one is killed. */
static void survivor(struct meeting *meeting, int rank)
{
    struct side side;
    fi_addr_t addrs[3];

    side_open_among(&side, &plain, meeting, rank, addrs);
    if (rank == 2) {
        atomic_store(&meeting->flags[0], 1);
        for (;;)
            pause();
    }
    POST(fi_tsend(side.ep, memory, LEN, NULL, addrs[2], 9, &done));
    UNTIL(atomic_load(&meeting->flags[1]));
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t found = 0;

        CHECK_FI(fi_trecv(side.ep, &found, 8, NULL, FI_ADDR_UNSPEC, i, 0, &got));
        POST(fi_tsend(side.ep, &i, 8, NULL, addrs[1 - rank], i, &sent));
        for (int due = 2; due > 0;) {
            struct completion completion = next(&side);
            if (completion.entry.op_context == &done) {
                CHECK(completion.error != 0);
                continue;
            }
            CHECK_EQ(completion.error, 0);
            due--;
        }
        CHECK_EQ(found, i);
    }
    atomic_fetch_add(&meeting->flags[2], 1);
    UNTIL(atomic_load(&meeting->flags[2]) == 2);
    side_close(&side);
}

TEST(the_others_go_on_when_one_is_killed)
{
    struct meeting *meeting = meeting_of(3);
    pid_t children[3];

    velo_only();
    for (int rank = 0; rank < 3; rank++)
        children[rank] = process_start(meeting, rank, survivor);
    for (int64_t end = test_now_ns() + TEST_PATIENCE_NS; !atomic_load(&meeting->flags[0]);)
        CHECK(test_now_ns() < end);
    child_kill(children[2]);
    atomic_store(&meeting->flags[1], 1);
    child_join(children[0]);
    child_join(children[1]);
    sweep();
}

/* --- leaving
 * ------------------------------------------------------------------------------------*/

static size_t count_files(void)
{
    char pattern[4096];
    glob_t found;
    size_t count;

    snprintf(pattern, sizeof(pattern), "%s/velo.%s*", test_shm_dir(), test_domain());
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    count = found.gl_pathc;
    globfree(&found);
    return count;
}

static void leaves_without_closing(struct meeting *meeting, int rank)
{
    struct side side;
    fi_addr_t addrs[2];
    uint64_t word = 1, found;

    side_open_among(&side, &plain, meeting, rank, addrs);
    CHECK_FI(fi_trecv(side.ep, &found, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &got));
    POST(fi_tinject(side.ep, &word, 8, addrs[1 - rank], 1));
    next_ok(&side, &got, FI_RECV);
    meet(meeting);
    exit(0);
}

TEST(an_exit_without_closing_leaves_no_file)
{
    velo_only();
    processes_run(2, leaves_without_closing);
    CHECK_EQ(count_files(), 0);
}

TEST(what_a_killed_process_left_is_removed_by_the_next)
{
    struct side side;
    fi_addr_t addrs[2];
    pid_t child;

    live_with(&side, false, false, addrs, &child);
    CHECK(count_files() >= 2);
    child_kill(child);
    side_close(&side);
    sweep();
    CHECK_EQ(count_files(), 0);
}

static void comes_and_goes(struct meeting *meeting, int rank)
{
    for (uint64_t round = 0; round < 10; round++) {
        struct side side;
        fi_addr_t addrs[2];
        uint64_t found = 0;

        side_open_among(&side, &plain, meeting, rank, addrs);
        CHECK_FI(fi_trecv(side.ep, &found, 8, NULL, FI_ADDR_UNSPEC, round, 0, &got));
        POST(fi_tsend(side.ep, &round, 8, NULL, addrs[1 - rank], round, &sent));
        UNTIL(kept(&side) == 2);
        CHECK_EQ(next(&side).error + next(&side).error, 0);
        CHECK_EQ(found, round);
        meet(meeting);
        side_close(&side);
    }
}

TEST(endpoints_that_come_and_go_find_each_other_again) { processes_run(2, comes_and_goes); }
