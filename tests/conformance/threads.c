/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: each on a port or a connection of its own, all at once, or several in succession. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 6 };

static void run_threads(void *(*body)(void *), void *args, size_t arg_bytes)
{
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, body, (char *)args + i * arg_bytes), 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

struct sender {
    struct velo_port *port;
    velo_id_t peer;
    uint32_t index;
    uint32_t msgs;
};

static void *send_numbered(void *arg)
{
    const struct sender *self = arg;
    struct velo_conn *conn = port_connect(self->port, self->peer);
    unsigned char buf[2048];

    for (uint32_t i = 0; i < self->msgs; i++) {
        uint64_t seed = (uint64_t)self->index << 32 | i;
        size_t len = 8 + (size_t)(test_mix(seed) % 200) * (i % 16 == 0 ? 10 : 1);

        pattern_fill(buf + 8, len - 8, seed);
        memcpy(buf, &seed, 8);
        CHECK_OK(velo_send(conn, buf, len, pattern_tag(seed), VELO_FOREVER));
    }
    CHECK_OK(velo_disconnect(conn));
    return NULL;
}

static void expect_numbered(struct velo_port *port, uint32_t senders, uint32_t msgs)
{
    uint32_t received[THREADS] = {0};

    for (uint64_t total = 0; total < (uint64_t)senders * msgs; total++) {
        struct velo_msg msg;
        uint64_t seed;

        CHECK_OK(velo_peek(port, &msg, TEST_PATIENCE_NS));
        CHECK(msg.len_bytes >= 8);
        memcpy(&seed, msg.data, 8);
        CHECK(seed >> 32 < senders);
        CHECK_EQ((uint32_t)seed, received[seed >> 32]++);
        CHECK_EQ(msg.tag, pattern_tag(seed));
        CHECK(pattern_matches((const char *)msg.data + 8, msg.len_bytes - 8, seed));
        CHECK_OK(velo_release(port));
    }
}

TEST(threads_with_a_connection_each_send_to_one_port)
{
    const uint32_t msgs = test_rounds(20000);
    struct velo_port *receiver = port_open(VELO_VPID_ANY);
    struct velo_port *source = port_open(VELO_VPID_ANY);
    struct sender senders[THREADS];
    pthread_t threads[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
        senders[i] = (struct sender){source, velo_port_id(receiver), i, msgs};
        CHECK_EQ(pthread_create(&threads[i], NULL, send_numbered, &senders[i]), 0);
    }
    expect_numbered(receiver, THREADS, msgs);
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);

    struct velo_port_counters counters;
    CHECK_OK(velo_port_counters(source, &counters, sizeof counters));
    CHECK_EQ(counters.tx_msgs, THREADS * msgs);
    CHECK_OK(velo_port_close(source));
    CHECK_OK(velo_port_close(receiver));
}

/* Every thread has a port and passes what it receives on to the next. */
static void *pass_on(void *arg)
{
    int index = *(int *)arg;
    velo_id_t previous = VELO_ID(0, (index + THREADS - 1) % THREADS);
    struct velo_port *port = port_open(index);
    struct velo_conn *next = port_connect(port, VELO_ID(0, (index + 1) % THREADS));

    for (uint64_t lap = 0; lap < test_rounds(2000); lap++) {
        if (index == 0)
            message_send(next, lap % 500, lap);
        message_expect(port, lap % 500, lap, previous);
        if (index != 0)
            message_send(next, lap % 500, lap);
    }
    CHECK_OK(velo_port_close(port));
    return NULL;
}

TEST(threads_with_a_port_each_pass_messages_around)
{
    int indices[THREADS];

    for (int i = 0; i < THREADS; i++)
        indices[i] = i;
    run_threads(pass_on, indices, sizeof(indices[0]));
}

struct shared_port {
    struct velo_port *port;
    struct velo_conn *conn;
    pthread_mutex_t lock;
    uint64_t sent, received;
};

static void *take_a_turn(void *arg)
{
    struct shared_port *shared = *(struct shared_port **)arg;

    for (uint32_t turn = 0; turn < test_rounds(2000); turn++) {
        pthread_mutex_lock(&shared->lock);
        for (int i = 0; i < 5; i++)
            message_send(shared->conn, shared->sent % 100, shared->sent), shared->sent++;
        for (int i = 0; i < 5; i++, shared->received++)
            message_expect(shared->port, shared->received % 100, shared->received,
                           velo_port_id(shared->port));
        pthread_mutex_unlock(&shared->lock);
    }
    return NULL;
}

TEST(threads_use_one_port_and_one_connection_in_succession)
{
    struct shared_port shared = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct shared_port *args[THREADS];

    shared.port = port_open_sized(VELO_VPID_ANY, 16, 16384, 0);
    shared.conn = port_connect(shared.port, velo_port_id(shared.port));
    for (size_t i = 0; i < THREADS; i++)
        args[i] = &shared;
    run_threads(take_a_turn, args, sizeof(args[0]));
    CHECK_EQ(shared.received, THREADS * test_rounds(2000) * 5);
    CHECK_OK(velo_port_close(shared.port));
}

static void *open_and_close(void *arg)
{
    atomic_uchar *taken = *(atomic_uchar **)arg;

    for (int i = 0; i < 200; i++) {
        struct velo_port *port = port_open(VELO_VPID_ANY);
        uint32_t vpid = VELO_ID_VPID(velo_port_id(port));

        CHECK_EQ(atomic_exchange(&taken[vpid], 1), 0);
        message_send(port_connect(port, velo_port_id(port)), 30, 1);
        message_expect(port, 30, 1, velo_port_id(port));
        atomic_store(&taken[vpid], 0);
        CHECK_OK(velo_port_close(port));
    }
    return NULL;
}

TEST(threads_that_open_ports_at_once_get_different_ids)
{
    atomic_uchar taken[256] = {0};
    atomic_uchar *args[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        args[i] = taken;
    run_threads(open_and_close, args, sizeof(args[0]));
}

/* The threads of one process connect and disconnect all the time, to a table that is too short for
 * all of them, so that the receiver keeps looking for dead senders. It must take none for dead. */
enum { ROUNDS = 500 };

static void *connect_and_disconnect(void *arg)
{
    const struct sender *self = arg;
    struct rng rng = {test_seed() + self->index};

    for (uint32_t i = 0; i < self->msgs; i++) {
        uint64_t seed = (uint64_t)self->index << 32 | i;
        struct velo_conn *conn = NULL;
        int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
        int status;

        while ((status = velo_connect(self->port, self->peer, &conn, 0)) == VELO_ERR_FULL) {
            CHECK(test_now_ns() < end_ns);
            test_sleep_ns(10 * TEST_US);
        }
        CHECK_OK(status);
        if (i % 2) /* Others close theirs meanwhile. */
            test_sleep_ns(rng_below(&rng, 300000));
        CHECK_OK(velo_send(conn, &seed, sizeof(seed), pattern_tag(seed), VELO_FOREVER));
        CHECK_OK(velo_disconnect(conn));
        /* Wait for the answer: order holds for one connection, not from one to the next. */
        CHECK_OK(velo_recv(self->port, NULL, 0, NULL, TEST_PATIENCE_NS));
    }
    return NULL;
}

static void connect_and_disconnect_in_threads(void *arg)
{
    uint32_t count = *(const uint32_t *)arg;
    struct sender senders[THREADS];
    pthread_t threads[THREADS];

    for (uint32_t i = 0; i < count; i++) {
        senders[i] = (struct sender){port_open((int)i + 1), VELO_ID(0, 0), i, ROUNDS};
        CHECK_EQ(pthread_create(&threads[i], NULL, connect_and_disconnect, &senders[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_OK(velo_port_close(senders[i].port));
    }
}

static void check_that_none_is_taken_for_dead(uint32_t threads, uint32_t conns_max)
{
    struct velo_port *receiver = port_open_sized(0, 8, 16384, conns_max);
    struct velo_conn *answers[THREADS];
    uint32_t received[THREADS] = {0};
    struct velo_port_counters counters;
    pid_t child = child_start(connect_and_disconnect_in_threads, &threads);

    for (uint32_t i = 0; i < threads; i++)
        answers[i] = port_connect(receiver, VELO_ID(0, i + 1));
    for (uint32_t total = 0; total < threads * ROUNDS; total++) {
        struct velo_msg msg;
        uint64_t seed;

        CHECK_OK(velo_recv(receiver, &seed, sizeof(seed), &msg, TEST_PATIENCE_NS));
        CHECK(seed >> 32 < threads);
        CHECK_EQ((uint32_t)seed, received[seed >> 32]++);
        CHECK_EQ(msg.source, VELO_ID(0, (uint32_t)(seed >> 32) + 1));
        CHECK_OK(velo_send(answers[seed >> 32], NULL, 0, 0, VELO_FOREVER));
    }
    child_join(child);
    CHECK_OK(velo_port_counters(receiver, &counters, sizeof counters));
    CHECK_EQ(counters.rx_reclaimed, 0);
    CHECK_OK(velo_port_close(receiver));
}

TEST(connections_that_come_and_go_in_many_threads_are_never_taken_for_dead)
{
    check_that_none_is_taken_for_dead(THREADS, THREADS / 2);
}

/* With two, it happens that none is connected: then the process lets go of the peer's segment, and
 * the other thread may be about to take it up again. */
TEST(connections_that_come_and_go_in_two_threads_are_never_taken_for_dead)
{
    check_that_none_is_taken_for_dead(2, 1);
}

static void *fail_in_another_thread(void *arg)
{
    (void)arg;
    CHECK_EQ(velo_last_error()[0], '\0');
    CHECK_STATUS(velo_port_open(NULL, NULL), VELO_ERR_ARG);
    CHECK(velo_last_error()[0] != '\0');
    return NULL;
}

TEST(the_last_error_belongs_to_its_thread)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    char before[512];
    pthread_t thread;

    attr.node = 256;
    CHECK_STATUS(velo_port_open(&attr, &port), VELO_ERR_ARG);
    strncpy(before, velo_last_error(), sizeof(before) - 1);
    before[sizeof(before) - 1] = '\0';
    CHECK(before[0] != '\0');
    CHECK_EQ(pthread_create(&thread, NULL, fail_in_another_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(strcmp(before, velo_last_error()) == 0);
}

/* Where the main thread has ended, the system shows the process no files of its own. */
static void *go_on_alone(void *arg)
{
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; access("/proc/self/fd/0", F_OK) == 0;)
        CHECK(test_now_ns() < end_ns);
    struct velo_port *port = port_open(0);

    message_send(port_connect(port, VELO_ID(0, 1)), 40, 1);
    message_expect(port, 40, 2, VELO_ID(0, 1));
    CHECK_OK(velo_port_close(port));
    _exit(0);
    return arg;
}

static void leave_a_thread_behind(void *arg)
{
    pthread_t thread;

    (void)arg;
    CHECK_EQ(pthread_create(&thread, NULL, go_on_alone, NULL), 0);
    pthread_exit(NULL);
}

static void answer(void *arg)
{
    struct velo_port *port = port_open(1);

    (void)arg;
    message_expect(port, 40, 1, VELO_ID(0, 0));
    message_send(port_connect(port, VELO_ID(0, 0)), 40, 2);
    CHECK_OK(velo_port_close(port));
}

TEST(a_thread_goes_on_where_the_main_thread_has_ended)
{
    pid_t peer = child_start(answer, NULL);

    child_join(child_start(leave_a_thread_behind, NULL));
    child_join(peer);
}

enum cancelled_call { CANCELLED_RECV, CANCELLED_SEND, CANCELLED_CONNECT, CANCELLED_CALLS };

struct cancelled {
    enum cancelled_call call;
    struct velo_port *port;
    struct velo_conn *conn;
    atomic_int status; /* Of the call; 1: it has not returned. */
};

/* In a frame of its own: AddressSanitizer does not see one end that a cancelled thread leaves. */
static __attribute__((noinline)) int make_call(const struct cancelled *self)
{
    struct velo_conn *conn;
    char byte;

    if (self->call == CANCELLED_RECV)
        return velo_recv(self->port, &byte, 1, NULL, VELO_FOREVER);
    if (self->call == CANCELLED_SEND)
        return velo_send(self->conn, "x", 1, 0, VELO_FOREVER);
    return velo_connect(self->port, VELO_ID(0, 9), &conn, VELO_FOREVER);
}

static void *call_and_be_cancelled(void *arg)
{
    struct cancelled *self = arg;

    atomic_store(&self->status, make_call(self));
    while (atomic_load(&self->status) != 2) /* For ever. */
        pthread_testcancel();
    return NULL;
}

/* The call ends as if nobody had asked, and the thread behind it. */
TEST(a_thread_that_is_cancelled_ends_behind_its_call)
{
    for (int call = 0; call < CANCELLED_CALLS; call++) {
        struct velo_port *port = port_open_sized(1, 8, 16384, 0), *late = NULL;
        struct cancelled cancelled = {(enum cancelled_call)call, port, NULL, 1};
        struct velo_conn *conn = port_connect(port, velo_port_id(port));
        pthread_t thread;
        void *ending;
        char byte;

        cancelled.conn = conn;
        while (call == CANCELLED_SEND && velo_try_send(conn, "x", 1, 0) == VELO_OK)
            ;
        CHECK_EQ(pthread_create(&thread, NULL, call_and_be_cancelled, &cancelled), 0);
        test_sleep_ns(20 * TEST_MS);
        CHECK_EQ(pthread_cancel(thread), 0);
        test_sleep_ns(20 * TEST_MS);
        CHECK_EQ(atomic_load(&cancelled.status), 1);
        if (call == CANCELLED_RECV)
            CHECK_OK(velo_send(conn, "x", 1, 0, TEST_PATIENCE_NS));
        else if (call == CANCELLED_CONNECT)
            late = port_open(9);
        while (call == CANCELLED_SEND && atomic_load(&cancelled.status) == 1)
            (void)velo_recv(port, &byte, 1, NULL, TEST_MS);
        CHECK_EQ(pthread_join(thread, &ending), 0);
        CHECK(ending == PTHREAD_CANCELED);
        CHECK_EQ(atomic_load(&cancelled.status), VELO_OK);
        CHECK_OK(velo_port_close(port));
        CHECK_OK(velo_port_close(late));
    }
}
