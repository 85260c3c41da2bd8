/* SPDX-License-Identifier: Apache-2.0 */
/* Counters. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "side.h"

static const struct side_attr counted = {.has_counters = true};
static const struct side_attr waited = {
    .has_counters = true, .wait = FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE};
static struct fi_context2 sent, got;

/* The counter of a side, after progress. */
static uint64_t value_of(struct fid_cntr *cntr)
{
    sides_progress();
    return fi_cntr_read(cntr);
}

TEST(a_counter_is_set_read_and_added_to)
{
    struct side side;

    side_open(&side, &counted);
    CHECK_EQ(fi_cntr_read(side.done), 0);
    CHECK_FI(fi_cntr_add(side.done, 5));
    UNTIL(fi_cntr_read(side.done) == 5);
    CHECK_FI(fi_cntr_add(side.done, 2));
    UNTIL(fi_cntr_read(side.done) == 7);
    CHECK_FI(fi_cntr_set(side.done, 1));
    UNTIL(fi_cntr_read(side.done) == 1);
    CHECK_EQ(fi_cntr_readerr(side.done), 0);
    side_close(&side);
}

/* Reading the counter alone makes the progress that the long message needs. */
TEST(a_counter_is_bound_to_an_endpoint_that_is_enabled)
{
    static char from[1 << 20], to[1 << 20];
    struct side side;
    int64_t end_ns;

    side_open_domain(&side, &counted);
    side.attr.has_counters = false;
    side_open_endpoint(&side);
    side.attr.has_counters = true;
    CHECK_FI(fi_ep_bind(side.ep, &side.done->fid, FI_SEND));
    fi_addr_t self = side_learn(&side, &side);
    POST(fi_trecv(side.ep, to, sizeof(to), NULL, FI_ADDR_UNSPEC, 1, 0, &got));
    POST(fi_tsend(side.ep, from, sizeof(from), NULL, self, 1, &sent));
    end_ns = test_now_ns() + TEST_PATIENCE_NS;
    while (fi_cntr_read(side.done) < 1 && test_now_ns() < end_ns)
        ;
    CHECK_EQ(fi_cntr_read(side.done), 1);
    CHECK_REFUSED(fi_ep_bind(side.ep, &side.cq->fid, FI_SEND), FI_EOPBADSTATE);
    side_close(&side);
}

TEST(errors_are_counted_apart)
{
    struct side side;

    side_open(&side, &counted);
    CHECK_FI(fi_cntr_adderr(side.done, 3));
    UNTIL(fi_cntr_readerr(side.done) == 3);
    CHECK_FI(fi_cntr_seterr(side.done, 1));
    UNTIL(fi_cntr_readerr(side.done) == 1);
    CHECK_EQ(fi_cntr_read(side.done), 0);
    side_close(&side);
}

TEST(each_message_is_counted_on_both_sides)
{
    struct pair pair;
    char byte = 1, room;

    pair_open(&pair, &counted);
    for (uint64_t i = 1; i <= 100; i++) {
        CHECK_FI(fi_recv(pair.b.ep, &room, 1, NULL, FI_ADDR_UNSPEC, &got));
        POST(fi_send(pair.a.ep, &byte, 1, NULL, pair.to_b, &sent));
        next_ok(&pair.b, &got, FI_RECV);
        next_ok(&pair.a, &sent, FI_SEND);
        UNTIL(value_of(pair.a.done) == i);
        UNTIL(value_of(pair.b.received) == i);
    }
    CHECK_EQ(fi_cntr_read(pair.a.received), 0);
    CHECK_EQ(fi_cntr_read(pair.b.done), 0);
    pair_close(&pair);
}

TEST(injects_are_counted_though_they_have_no_completion)
{
    struct pair pair;
    char byte = 1, room;

    pair_open(&pair, &counted);
    for (uint64_t i = 1; i <= 20; i++) {
        CHECK_FI(fi_trecv(pair.b.ep, &room, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &got));
        POST(fi_tinject(pair.a.ep, &byte, 1, pair.to_b, 1));
        next_ok(&pair.b, &got, FI_RECV);
        UNTIL(value_of(pair.a.done) == i);
    }
    nothing_more(&pair.a);
    pair_close(&pair);
}

TEST(failures_are_counted_as_errors)
{
    struct pair pair;
    char bytes[8] = {0}, room;

    pair_open(&pair, &counted);
    CHECK_FI(fi_recv(pair.b.ep, &room, 1, NULL, FI_ADDR_UNSPEC, &got));
    POST(fi_send(pair.a.ep, bytes, 8, NULL, pair.to_b, &sent));
    next_error(&pair.b, &got, FI_ETRUNC);
    UNTIL(fi_cntr_readerr(pair.b.received) == 1);
    CHECK_EQ(fi_cntr_read(pair.b.received), 0);
    pair_close(&pair);
}

TEST(a_wait_for_a_count_that_is_there_returns_at_once)
{
    struct side side;

    side_open(&side, &waited);
    CHECK_FI(fi_cntr_set(side.done, 10));
    CHECK_FI(fi_cntr_wait(side.done, 10, -1));
    CHECK_FI(fi_cntr_wait(side.done, 3, 0));
    side_close(&side);
}

TEST(a_wait_for_a_count_ends_after_its_time)
{
    struct side side;
    int64_t start_ns = test_now_ns();

    side_open(&side, &waited);
    CHECK_REFUSED(fi_cntr_wait(side.done, 1, 20), FI_ETIMEDOUT);
    CHECK(test_now_ns() - start_ns >= 19 * TEST_MS);
    side_close(&side);
}

static void *fail_soon(void *arg)
{
    struct side *side = arg;

    test_sleep_ns(20 * TEST_MS);
    CHECK_FI(fi_cntr_adderr(side->done, 1));
    return NULL;
}

TEST(a_wait_for_a_count_ends_with_an_error_if_one_is_counted)
{
    struct side side;
    pthread_t thread;

    needs(&waited);

    side_open(&side, &waited);
    CHECK_EQ(pthread_create(&thread, NULL, fail_soon, &side), 0);
    CHECK_REFUSED(fi_cntr_wait(side.done, 1, 8000), FI_EAVAIL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    side_close(&side);
}

static void *add_soon(void *arg)
{
    struct side *side = arg;

    test_sleep_ns(20 * TEST_MS);
    CHECK_FI(fi_cntr_add(side->done, 1));
    return NULL;
}

TEST(a_wait_for_a_count_is_woken_by_another_thread)
{
    struct side side;
    pthread_t thread;

    needs(&waited);
    side_open(&side, &waited);
    CHECK_EQ(pthread_create(&thread, NULL, add_soon, &side), 0);
    CHECK_FI(fi_cntr_wait(side.done, 1, 8000));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    side_close(&side);
}

static bool sleeps_without_limit;

/* The provider's sleeps come here, too: without their limit a lost wake-up is a hang. */
int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    return (int)syscall(SYS_poll, fds, nfds, sleeps_without_limit && timeout > 0 ? -1 : timeout);
}

#define WAITERS 3
#define COUNTS 300

struct waiters {
    struct side side;
    _Atomic uint64_t seen[WAITERS];
};

struct waiter {
    struct waiters *all;
    int number;
};

static void *waits_for_each_count(void *arg)
{
    struct waiter *waiter = arg;

    for (uint64_t i = 1; i <= COUNTS; i++) {
        CHECK_FI(fi_cntr_wait(waiter->all->side.done, i, -1));
        waiter->all->seen[waiter->number] = i;
    }
    return NULL;
}

TEST(each_of_several_threads_that_sleep_for_a_count_is_woken)
{
    static struct waiters all;
    struct side_attr attr = waited;
    struct waiter waiters[WAITERS];
    pthread_t threads[WAITERS];

    if (!is_velo())
        test_skip("others use no poll()");
    sleeps_without_limit = true;
    attr.threading = FI_THREAD_SAFE;
    side_open(&all.side, &attr);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){&all, i};
        CHECK_EQ(pthread_create(&threads[i], NULL, waits_for_each_count, &waiters[i]), 0);
    }
    for (uint64_t i = 1; i <= COUNTS; i++) {
        CHECK_FI(fi_cntr_add(all.side.done, 1));
        for (int waiter = 0; waiter < WAITERS; waiter++)
            while (all.seen[waiter] < i)
                (void)sched_yield();
    }
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    side_close(&all.side);
}

/* Reads the queue whenever its descriptor says so. */
static void *sleeps_on_the_descriptor(void *arg)
{
    struct waiters *all = arg;
    struct fid *fids[] = {&all->side.cq->fid};
    struct fi_cq_tagged_entry entry;
    struct pollfd fd = {.events = POLLIN};

    CHECK_FI(fi_control(fids[0], FI_GETWAIT, &fd.fd));
    for (uint64_t i = 1; i <= COUNTS; i++) {
        ssize_t count;
        while ((count = fi_cq_read(all->side.cq, &entry, 1)) == -FI_EAGAIN)
            if (fi_trywait(all->side.fabric, fids, 1) == 0)
                CHECK_EQ(poll(&fd, 1, -1), 1);
        CHECK_EQ(count, 1);
        all->seen[0] = i;
    }
    return NULL;
}

TEST(a_descriptor_tells_what_a_call_of_another_thread_brings)
{
    static struct waiters all;
    struct side_attr attr = waited;
    pthread_t thread;
    fi_addr_t self;
    char byte = 1, room;

    if (!is_velo())
        test_skip("others use no poll()");
    sleeps_without_limit = true;
    attr.threading = FI_THREAD_SAFE;
    attr.bind_flags = FI_SELECTIVE_COMPLETION;
    attr.reads_itself = true;
    all.seen[0] = 0;
    side_open(&all.side, &attr);
    self = side_learn(&all.side, &all.side);
    CHECK_EQ(pthread_create(&thread, NULL, sleeps_on_the_descriptor, &all), 0);
    for (uint64_t i = 1; i <= COUNTS; i++) {
        struct iovec iov = {&room, 1};
        struct fi_msg recv = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
        /* The message is there before its receive: what wakes is no message. */
        POST(fi_inject(all.side.ep, &byte, 1, self));
        for (int look = 0; look < 50; look++) {
            (void)fi_cntr_read(all.side.received);
            (void)sched_yield();
        }
        CHECK_FI(fi_recvmsg(all.side.ep, &recv, FI_COMPLETION));
        while (all.seen[0] < i)
            (void)sched_yield();
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    side_close(&all.side);
}

static void waits_for_counts(struct meeting *meeting, int rank)
{
    struct side side;
    fi_addr_t addrs[2];
    static uint64_t words[500];

    side_open_among(&side, &waited, meeting, rank, addrs);
    for (uint64_t i = 0; i < 500; i++) {
        if (rank == 0) {
            POST(fi_inject(side.ep, &i, 8, addrs[1]));
        } else {
            CHECK_FI(fi_recv(side.ep, &words[i], 8, NULL, addrs[0], &got));
            CHECK_FI(fi_cntr_wait(side.received, i + 1, 8000));
            CHECK_EQ(words[i], i);
        }
    }
    meet(meeting);
    side_close(&side);
}

TEST(a_wait_for_a_count_is_woken_by_each_message)
{
    needs(&waited);
    processes_run(2, waits_for_counts);
}

TEST(an_endpoint_with_a_counter_and_a_queue_that_selects_counts_what_is_not_selected)
{
    struct side_attr attr = {.has_counters = true, .bind_flags = FI_SELECTIVE_COMPLETION};
    struct pair pair;
    char byte = 1, room;

    pair_open(&pair, &attr);
    CHECK_FI(fi_recv(pair.b.ep, &room, 1, NULL, FI_ADDR_UNSPEC, &got));
    POST(fi_send(pair.a.ep, &byte, 1, NULL, pair.to_b, &sent));
    UNTIL(value_of(pair.a.done) == 1);
    UNTIL(value_of(pair.b.received) == 1);
    nothing_more(&pair.a);
    nothing_more(&pair.b);
    pair_close(&pair);
}
