/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers and writers of a ring (bcast.h) that are killed between any two of their steps.
 *
 * A victim is struck at each point of lib/bcast in turn, at some of its visits there. Of a reader's
 * death nobody may notice anything: the writer goes on, and another reader gets every message. Of a
 * writer's death its reader gets an error, after all that the writer was told it had sent and at
 * most the one message more that it had under way.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/bcast.h>

#include "base/hook.h"
#include "test.h"

enum { LEN_MAX = 400, DEPTH = 8, VICTIM_MSGS = 200 };

struct blow {
    unsigned point;
    unsigned visit;
    uint32_t flags; /* Of the ring. */
    int signal;
    atomic_uint struck;
    atomic_ullong sent; /* By a writer, as far as it was told. */
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

static size_t len_of(uint64_t number) { return 8 + test_mix(number) % (LEN_MAX - 7); }

static void send_numbered(struct velo_bcast *ring, uint64_t number)
{
    char buf[LEN_MAX];

    memcpy(buf, &number, 8);
    pattern_fill(buf + 8, len_of(number) - 8, number);
    CHECK_OK(velo_bcast_send(ring, buf, len_of(number), 0, TEST_PATIENCE_NS));
}

static uint64_t check_numbered(const struct velo_msg *msg)
{
    uint64_t number;

    CHECK(msg->len_bytes >= 8);
    memcpy(&number, msg->data, 8);
    CHECK_EQ(msg->len_bytes, len_of(number));
    CHECK(pattern_matches((const char *)msg->data + 8, msg->len_bytes - 8, number));
    return number;
}

static struct velo_bcast *open_ring(void)
{
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    struct velo_bcast *ring;

    attr.depth_slots = DEPTH;
    attr.msg_bytes_max = LEN_MAX;
    attr.data_bytes = 1024;
    attr.flags = blow->flags;
    CHECK_OK(velo_bcast_open(&attr, &ring));
    return ring;
}

static void prepare(unsigned point, unsigned visit, uint32_t flags, int signal)
{
    if (!blow)
        blow = test_shared_alloc(sizeof *blow);
    CHECK_EQ(setenv("VELO_SPIN_NS", "0", 1), 0); /* All who wait sleep: each point is visited. */
    blow->point = point;
    blow->visit = visit;
    blow->flags = flags;
    blow->signal = signal;
    atomic_store(&blow->struck, 0);
    atomic_store(&blow->sent, 0);
}

/* ---- readers --------------------------------------------------------------------------------- */

/* Read a little, leave, and join again, until struck or until the ring is closed. */
static void be_a_reader(void *arg)
{
    struct velo_bcast_reader *reader;
    char buf[LEN_MAX];
    struct velo_msg msg;

    (void)arg;
    velo_test_hook = strike;
    while (velo_bcast_join(NULL, &reader, 0) == VELO_OK) {
        uint64_t last = 0;

        for (int i = 0; i < 20; i++) {
            int status = velo_bcast_recv(reader, buf, sizeof buf, &msg, TEST_MS);

            if (status == VELO_ERR_PEER_CLOSED)
                break;
            if (status == VELO_TIMEOUT || (status == VELO_ERR_MISSED && blow->flags))
                continue;
            CHECK_OK(status);
            uint64_t number = check_numbered(&msg);
            CHECK(last == 0 || number == last + 1 || (number > last && blow->flags));
            last = number;
        }
        CHECK_OK(velo_bcast_leave(reader));
    }
}

static void strike_a_reader(unsigned point, unsigned visit, uint32_t flags, int signal)
{
    struct velo_bcast_reader *other;
    struct velo_bcast *ring;
    char buf[LEN_MAX];
    struct velo_msg msg;
    uint64_t n = 1;

    prepare(point, visit, flags, signal);
    ring = open_ring();
    CHECK_OK(velo_bcast_join(NULL, &other, 0));
    pid_t victim = child_start(be_a_reader, NULL);
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    for (uint64_t after = 0; after < 3 * DEPTH; n++) {
        send_numbered(ring, n);
        CHECK_OK(velo_bcast_recv(other, buf, sizeof buf, &msg, TEST_PATIENCE_NS));
        CHECK_EQ(check_numbered(&msg), n);
        if (n % 5 == 0)
            test_sleep_ns(300 * TEST_US); /* The victim falls asleep. */
        after += atomic_load(&blow->struck);
        if (test_now_ns() > end_ns)
            test_fail(__FILE__, __LINE__, "no reader came to point %u", point);
    }
    if (signal == SIGSTOP) {
        kill(victim, SIGCONT);
        CHECK_OK(velo_bcast_close(ring));
        child_join(victim);
    } else {
        CHECK(WIFSIGNALED(child_wait(victim)));
        CHECK_EQ(velo_bcast_readers(ring), 1);
        CHECK_OK(velo_bcast_close(ring));
    }
    CHECK_OK(velo_bcast_leave(other));
}

static const unsigned reader_points[] = {HOOK_BCAST_LIVES,  HOOK_BCAST_CLAIMED, HOOK_BCAST_READY,
                                         HOOK_BCAST_PLACED, HOOK_BCAST_FOUND,   HOOK_BCAST_COPIED,
                                         HOOK_BCAST_ASLEEP, HOOK_BCAST_LEAVING, HOOK_BCAST_CONSUMED,
                                         HOOK_BCAST_FREED};
static const unsigned visits_struck[] = {1, 2, 7, 30};

static void strike_readers(uint32_t flags, int signal)
{
    for (size_t i = 0; i < ARRAY_LEN(reader_points); i++)
        for (size_t v = 0; v < ARRAY_LEN(visits_struck); v++)
            strike_a_reader(reader_points[i], visits_struck[v], flags, signal);
}

TEST(a_reader_killed_at_any_point_does_not_hold_the_writer_up) { strike_readers(0, SIGKILL); }

TEST(a_reader_of_a_dropping_ring_killed_at_any_point_harms_nobody)
{
    strike_readers(VELO_BCAST_DROP, SIGKILL);
}

TEST(a_reader_stopped_at_any_point_takes_no_mixed_message)
{
    strike_readers(VELO_BCAST_DROP, SIGSTOP);
}

/* ---- writers --------------------------------------------------------------------------------- */

static void be_the_writer(void *arg)
{
    struct velo_bcast *ring = open_ring();

    (void)arg;
    while (velo_bcast_readers(ring) < 1)
        test_sleep_ns(20 * TEST_US);
    velo_test_hook = strike;
    for (uint64_t n = 0; n < VICTIM_MSGS; n++) {
        if (n % 10 == 0)
            test_sleep_ns(300 * TEST_US); /* The reader falls asleep. */
        send_numbered(ring, n);
        atomic_store(&blow->sent, n + 1);
    }
    velo_test_hook = NULL;
    CHECK_OK(velo_bcast_close(ring));
}

static void strike_a_writer(unsigned point, unsigned visit, uint32_t flags)
{
    struct velo_bcast_reader *reader;
    char buf[LEN_MAX];
    struct velo_msg msg;
    uint64_t next = 0;
    int status;

    prepare(point, visit, flags, SIGKILL);
    pid_t victim = child_start(be_the_writer, NULL);
    CHECK_OK(velo_bcast_join(NULL, &reader, TEST_PATIENCE_NS));
    while ((status = velo_bcast_recv(reader, buf, sizeof buf, &msg, TEST_PATIENCE_NS)) == VELO_OK ||
           (status == VELO_ERR_MISSED && flags)) {
        if (status == VELO_OK) {
            uint64_t number = check_numbered(&msg);
            CHECK(flags ? number >= next : number == next);
            next = number + 1;
        }
        if (next % 16 == 15)
            test_sleep_ns(500 * TEST_US); /* The writer finds no room. */
    }
    CHECK_STATUS(status, VELO_ERR_PEER_DEAD);
    CHECK(WIFSIGNALED(child_wait(victim)));
    if (atomic_load(&blow->struck) != 1)
        test_fail(__FILE__, __LINE__, "the writer did not come to point %u", point);
    uint64_t sent = atomic_load(&blow->sent);
    if (flags) /* The last may have been overwritten by one that was not finished. */
        CHECK(next <= sent + 1);
    else
        CHECK(next == sent || next == sent + 1);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(open_ring())); /* Takes away what the dead one left. */
}

TEST(the_reader_of_a_writer_killed_at_any_point_gets_all_that_was_sent_and_an_error)
{
    static const unsigned points[] = {HOOK_BCAST_PAYLOAD, HOOK_BCAST_HEADER, HOOK_BCAST_TAIL,
                                      HOOK_BCAST_TAKEN, HOOK_BCAST_STUCK};

    for (size_t i = 0; i < ARRAY_LEN(points); i++)
        for (unsigned visit = 1; visit <= (points[i] >= HOOK_BCAST_TAKEN ? 2 : 12); visit++)
            strike_a_writer(points[i], visit, 0);
}

TEST(the_reader_of_a_dropping_writer_killed_at_any_point_takes_no_mixed_message)
{
    static const unsigned points[] = {HOOK_BCAST_BEGUN, HOOK_BCAST_PAYLOAD, HOOK_BCAST_HEADER,
                                      HOOK_BCAST_TAIL, HOOK_BCAST_TAKEN};

    for (size_t i = 0; i < ARRAY_LEN(points); i++)
        for (unsigned visit = 1; visit <= (points[i] >= HOOK_BCAST_TAKEN ? 2 : 12); visit++)
            strike_a_writer(points[i], visit, VELO_BCAST_DROP);
}
