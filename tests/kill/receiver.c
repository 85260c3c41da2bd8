/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receivers that are killed or that close: their senders get an error in bounded time, whatever
 * they are doing, and the name can be used again.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { RECEIVER = 5, RECEIVER_CONNS = 16 };
enum way { TRY_SEND, SEND, RESERVE, WAYS };

/* Messages of the receiver to the others. */
struct notice {
    atomic_uint received;
    atomic_int close;
    bool receives;
};

/* ---- senders that stream or wait ------------------------------------------------------------- */

struct sender {
    struct velo_conn *conn;
    enum way way;
    size_t len_bytes;
    atomic_uint sent;
    int status; /* The status that ended it. */
};

static int send_one(struct sender *self)
{
    static const char buf[4096];
    void *place;
    int status;

    if (self->way == TRY_SEND)
        return velo_try_send(self->conn, buf, self->len_bytes, 0);
    if (self->way == SEND)
        return velo_send(self->conn, buf, self->len_bytes, 0, VELO_FOREVER);
    status = velo_reserve(self->conn, self->len_bytes, &place, VELO_FOREVER);
    if (status != VELO_OK)
        return status;
    memset(place, 0, self->len_bytes);
    return velo_commit(self->conn, self->len_bytes, 0);
}

static void *send_until_error(void *arg)
{
    struct sender *self = arg;

    do {
        self->status = send_one(self);
        if (self->status == VELO_OK)
            atomic_fetch_add(&self->sent, 1);
    } while (self->status == VELO_OK || self->status == VELO_AGAIN);
    return NULL;
}

static void join_in_time(pthread_t thread)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += TEST_PATIENCE_NS / 1000000000;
    CHECK_EQ(pthread_timedjoin_np(thread, NULL, &end), 0);
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static void receive(void *arg)
{
    struct notice *notice = arg;
    struct velo_port *port = port_open_sized(RECEIVER, 8, 16384, RECEIVER_CONNS);
    char buf[4096];

    while (atomic_load(&notice->close) == 0) {
        if (!notice->receives)
            test_sleep_ns(TEST_MS);
        else if (velo_recv(port, buf, sizeof(buf), NULL, TEST_MS) == VELO_OK)
            atomic_fetch_add(&notice->received, 1);
    }
    CHECK_OK(velo_port_close(port));
}

enum ending { KILLED, CLOSED };

static void end_a_receiver(enum ending ending, bool receives, int64_t after_ns)
{
    static const size_t lens[] = {8, 1000};
    struct sender senders[WAYS * ARRAY_LEN(lens)];
    pthread_t threads[ARRAY_LEN(senders)];
    struct notice *notice = test_shared_alloc(sizeof(*notice));

    notice->receives = receives;
    pid_t receiver = child_start(receive, notice);
    struct velo_port *port = port_open(VELO_VPID_ANY);
    for (size_t i = 0; i < ARRAY_LEN(senders); i++) {
        senders[i] = (struct sender){.conn = port_connect(port, VELO_ID(0, RECEIVER)),
                                     .way = (enum way)(i % WAYS),
                                     .len_bytes = lens[i / WAYS]};
        CHECK_EQ(pthread_create(&threads[i], NULL, send_until_error, &senders[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(senders); i++) {
        while (atomic_load(&senders[i].sent) == 0)
            test_sleep_ns(50 * TEST_US);
    }
    test_sleep_ns(after_ns);
    if (ending == KILLED) {
        child_kill(receiver);
    } else {
        atomic_store(&notice->close, 1);
        child_join(receiver);
    }
    for (size_t i = 0; i < ARRAY_LEN(senders); i++) {
        join_in_time(threads[i]);
        CHECK_STATUS(senders[i].status,
                     ending == KILLED ? VELO_ERR_PEER_DEAD : VELO_ERR_PEER_CLOSED);
        CHECK_OK(velo_disconnect(senders[i].conn));
    }

    /* The name can be used again, by us too. */
    struct velo_port *next = port_open(RECEIVER);
    message_send(port_connect(port, VELO_ID(0, RECEIVER)), 100, 1);
    message_expect(next, 100, 1, velo_port_id(port));
    CHECK_OK(velo_port_close(next));
    CHECK_OK(velo_port_close(port));
}

TEST(senders_that_wait_for_room_learn_that_their_receiver_was_killed)
{
    end_a_receiver(KILLED, false, 50 * TEST_MS);
}

TEST(senders_that_wait_for_room_learn_that_their_receiver_closed)
{
    end_a_receiver(CLOSED, false, 50 * TEST_MS);
}

TEST(senders_that_stream_learn_that_their_receiver_was_killed)
{
    struct rng rng = {test_seed()};

    for (int i = 0; i < 10; i++)
        end_a_receiver(KILLED, true, rng_below(&rng, 3000000));
}

TEST(senders_that_stream_learn_that_their_receiver_closed)
{
    struct rng rng = {test_seed()};

    for (int i = 0; i < 10; i++)
        end_a_receiver(CLOSED, true, rng_below(&rng, 3000000));
}

/* ---- one receiver after the other, killed at random ------------------------------------------ */

enum { SENDERS = 3 };

struct numbered {
    uint64_t number;
    uint64_t seed;
};

/* Check that each source counts up by one; the first number seen of it is as good as any. */
static void receive_numbered(void *arg)
{
    struct notice *notice = arg;
    struct velo_port *port = port_open_sized(RECEIVER, 8, 16384, RECEIVER_CONNS);
    uint64_t next[SENDERS] = {0};
    struct velo_msg msg;

    for (;;) {
        struct numbered id;

        CHECK_OK(velo_peek(port, &msg, VELO_FOREVER));
        CHECK(msg.source < SENDERS && msg.len_bytes >= sizeof(id));
        memcpy(&id, msg.data, sizeof(id));
        CHECK(next[msg.source] == 0 || id.number == next[msg.source]);
        CHECK_EQ(id.seed, test_mix(id.number * SENDERS + msg.source));
        CHECK(pattern_matches((const char *)msg.data + sizeof(id), msg.len_bytes - sizeof(id),
                              id.seed));
        next[msg.source] = id.number + 1;
        atomic_fetch_add(&notice->received, 1);
        CHECK_OK(velo_release(port));
    }
}

struct faithful_sender {
    int vpid;
    int64_t pause_max_ns;
    atomic_int *stop;
};

/* Send, and when the receiver is gone connect to the next one of its name. */
static void send_to_whoever_receives(void *arg)
{
    const struct faithful_sender *self = arg;
    struct velo_port *port = port_open(self->vpid);
    struct rng rng = {test_seed() + (uint64_t)self->vpid};
    struct velo_conn *conn = NULL;
    char buf[4096];

    for (struct numbered id = {1, 0}; atomic_load(self->stop) == 0; id.number++) {
        size_t len = sizeof(id) + rng_below(&rng, id.number % 4 ? 40 : 4000);
        int status = VELO_OK;

        if (conn == NULL) {
            status = velo_connect(port, VELO_ID(0, RECEIVER), &conn, 100 * TEST_MS);
            if (status != VELO_OK) {
                CHECK(status == VELO_ERR_NO_PEER || status == VELO_ERR_PEER_DEAD);
                conn = NULL;
                continue;
            }
        }
        id.seed = test_mix(id.number * SENDERS + (uint64_t)self->vpid);
        memcpy(buf, &id, sizeof(id));
        pattern_fill(buf + sizeof(id), len - sizeof(id), id.seed);
        status = velo_send(conn, buf, len, 0, VELO_FOREVER);
        if (status != VELO_OK) {
            CHECK_STATUS(status, VELO_ERR_PEER_DEAD);
            CHECK_OK(velo_disconnect(conn));
            conn = NULL;
        }
        if (self->pause_max_ns > 0)
            test_sleep_ns(rng_below(&rng, (uint32_t)self->pause_max_ns));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(receivers_killed_at_random_are_succeeded_by_others_of_their_name)
{
    const char *rounds_text = getenv("VELO_KILL_ROUNDS");
    long rounds = rounds_text != NULL ? strtol(rounds_text, NULL, 10) : 200;
    struct notice *notice = test_shared_alloc(sizeof(*notice));
    atomic_int *stop = test_shared_alloc(sizeof(*stop));
    struct faithful_sender senders[SENDERS];
    struct rng rng = {test_seed()};
    pid_t children[SENDERS];

    for (int i = 0; i < SENDERS; i++) {
        /* One streams, the others leave the receiver time to sleep. */
        senders[i] = (struct faithful_sender){i, i * 150 * TEST_US, stop};
        children[i] = child_start(send_to_whoever_receives, &senders[i]);
    }
    for (long round = 0; round < rounds; round++) {
        unsigned received = atomic_load(&notice->received);
        pid_t receiver = child_start(receive_numbered, notice);

        for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
             atomic_load(&notice->received) < received + 10;) {
            CHECK(test_now_ns() < end_ns);
            test_sleep_ns(100 * TEST_US);
        }
        test_sleep_ns(rng_below(&rng, 3000000));
        kill(receiver, SIGKILL);
        int status = child_wait(receiver);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* Not of a failed check. */
    }
    atomic_store(stop, 1);
    for (int i = 0; i < SENDERS; i++)
        child_join(children[i]);
    CHECK_OK(velo_port_close(port_open(RECEIVER)));
}
