/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: many to one, all to all, more of them than cores; and fairness among connections. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

struct job {
    int vpid;
    uint32_t peers;
    uint32_t msgs;
};

static size_t numbered_len(velo_id_t source, uint64_t i)
{
    return (size_t)(test_mix(source * UINT64_C(1000003) + i) % (i % 10 == 0 ? 3000 : 100));
}

static uint64_t numbered_seed(velo_id_t source, uint64_t i) { return (uint64_t)source << 40 | i; }

static void send_to_port_0(void *arg)
{
    const struct job *job = arg;
    struct velo_port *port = port_open(job->vpid);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    velo_id_t self = velo_port_id(port);

    for (uint64_t i = 0; i < job->msgs; i++)
        message_send(conn, numbered_len(self, i), numbered_seed(self, i));
    CHECK_OK(velo_port_close(port));
}

TEST(many_processes_send_to_one_and_each_keeps_its_order)
{
    enum { SENDERS = 8 };
    const uint32_t msgs = test_rounds(20000);
    struct velo_port *port = port_open_sized(0, 32, 16384, SENDERS);
    uint32_t received[SENDERS + 1] = {0};
    struct job jobs[SENDERS];
    pid_t children[SENDERS];

    for (int i = 0; i < SENDERS; i++) {
        jobs[i] = (struct job){i + 1, 0, msgs};
        children[i] = child_start(send_to_port_0, &jobs[i]);
    }
    for (uint32_t total = 0; total < SENDERS * msgs; total++) {
        struct velo_msg msg;
        uint32_t i;

        CHECK_OK(velo_peek(port, &msg, TEST_PATIENCE_NS));
        CHECK(msg.source >= 1 && msg.source <= SENDERS);
        i = received[msg.source]++;
        message_check(&msg, numbered_len(msg.source, i), numbered_seed(msg.source, i), msg.source);
        CHECK_OK(velo_release(port));
    }
    for (int i = 0; i < SENDERS; i++)
        child_join(children[i]);
    CHECK_OK(velo_port_close(port));
}

static void poll_a_port_of_its_own(void *stop)
{
    struct velo_port *port = port_open(1);

    while (!atomic_load((atomic_int *)stop))
        CHECK_STATUS(velo_try_recv(port, NULL, 0, NULL), VELO_AGAIN);
    CHECK_OK(velo_port_close(port));
}

/* What the two have in common by the fork, the child must leave alone. */
TEST(a_child_that_polls_a_port_of_its_own_takes_nothing_from_its_parent)
{
    struct velo_port *port = port_open_sized(0, 8, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    atomic_int *stop = test_shared_alloc(sizeof *stop);
    pid_t child = child_start(poll_a_port_of_its_own, stop);
    struct velo_port_counters counters;

    for (uint64_t i = 0; i < 300; i++) {
        message_send(conn, i, i);
        message_expect(port, i, i, velo_port_id(port));
    }
    atomic_store(stop, 1);
    child_join(child);
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK_EQ(counters.rx_errors, 0);
    CHECK_OK(velo_port_close(port));
}

struct inherited {
    struct velo_port *port;
    struct velo_conn *conn;
    bool ends_by_exit;
};

static void close_what_is_the_parents(void *arg)
{
    const struct inherited *of_parent = arg;
    struct velo_conn *conn;
    int fd;

    CHECK_STATUS(velo_connect(of_parent->port, VELO_ID(0, 0), &conn, 0), VELO_ERR_STATE);
    CHECK(strstr(velo_last_error(), "parent") != NULL);
    CHECK_STATUS(velo_port_fd(of_parent->port, &fd), VELO_ERR_STATE);
    if (test_is_carried()) {
        CHECK_STATUS(velo_try_recv(of_parent->port, NULL, 0, NULL), VELO_ERR_STATE);
        CHECK_STATUS(velo_try_send(of_parent->conn, NULL, 0, 0), VELO_ERR_STATE);
    }
    CHECK_OK(velo_disconnect(of_parent->conn));
    CHECK_OK(velo_port_close(of_parent->port));
    /* As destructors of C++, Rust and Python may do it once more. */
    CHECK_OK(velo_port_close(of_parent->port));
    if (of_parent->ends_by_exit)
        exit(0);
}

/* The functions that close come from many places in a child: atexit(), destructors, a collector. */
TEST(a_child_that_closes_what_its_parent_opened_closes_nothing)
{
    enum { CHILDREN = 2 };
    struct velo_port *port = port_open(0), *peer = port_open(1);
    struct inherited inherited = {.port = port, .conn = port_connect(port, VELO_ID(0, 1))};
    struct velo_conn *back = port_connect(peer, VELO_ID(0, 0));

    for (uint64_t i = 0; i < CHILDREN; i++) {
        message_send(inherited.conn, 40, 2 * i); /* Under way while the child closes. */
        inherited.ends_by_exit = i > 0;
        child_join(child_start(close_what_is_the_parents, &inherited));
        message_expect(peer, 40, 2 * i, VELO_ID(0, 0));
        message_send(inherited.conn, 40, 2 * i + 1);
        message_expect(peer, 40, 2 * i + 1, VELO_ID(0, 0));
        CHECK_OK(velo_conn_status(back));
        message_send(back, 40, i);
        message_expect(port, 40, i, VELO_ID(0, 1));
        CHECK_OK(velo_disconnect(port_connect(peer, VELO_ID(0, 0))));
    }
    CHECK_OK(velo_port_close(peer));
    CHECK_OK(velo_port_close(port));
}

static void talk_to_all(void *arg)
{
    const struct job *job = arg;
    struct velo_port *port = port_open_sized(job->vpid, 16, 16384, 0);
    struct velo_conn *conns[8];
    uint32_t sent[8] = {0}, received[8] = {0};
    uint32_t to_send = job->peers * job->msgs, to_receive = to_send;
    int64_t progress_ns = test_now_ns();
    unsigned char buf[4096];
    struct velo_msg msg;
    velo_id_t self = velo_port_id(port);

    for (uint32_t peer = 0; peer < job->peers; peer++)
        conns[peer] = port_connect(port, VELO_ID(0, peer));
    while (to_send > 0 || to_receive > 0) {
        for (uint32_t peer = 0; peer < job->peers; peer++) {
            size_t len = numbered_len(self, sent[peer]);
            uint64_t seed = numbered_seed(self, sent[peer]);

            if (sent[peer] == job->msgs)
                continue;
            pattern_fill(buf, len, seed);
            if (velo_try_send(conns[peer], buf, len, pattern_tag(seed)) == VELO_OK)
                sent[peer]++, to_send--;
        }
        /* Once everything is sent there is nothing to do but to wait for the others. */
        while (to_receive > 0) {
            int status = to_send > 0 ? velo_try_recv(port, buf, sizeof(buf), &msg)
                                     : velo_recv(port, buf, sizeof(buf), &msg, TEST_PATIENCE_NS);
            if (status == VELO_AGAIN)
                break;
            CHECK_OK(status);
            CHECK(msg.source < job->peers);
            uint32_t i = received[msg.source]++;
            message_check(&msg, numbered_len(msg.source, i), numbered_seed(msg.source, i),
                          msg.source);
            to_receive--;
            progress_ns = test_now_ns();
        }
        CHECK(test_now_ns() - progress_ns < TEST_PATIENCE_NS);
    }
    CHECK_OK(velo_port_close(port));
}

TEST(all_processes_send_to_all)
{
    enum { PEERS = 5 };
    struct job jobs[PEERS];
    pid_t children[PEERS];

    for (int i = 0; i < PEERS; i++) {
        jobs[i] = (struct job){i, PEERS, test_rounds(3000)};
        children[i] = child_start(talk_to_all, &jobs[i]);
    }
    for (int i = 0; i < PEERS; i++)
        child_join(children[i]);
}

static void pass_around(void *arg)
{
    const struct job *job = arg;
    uint32_t previous = ((uint32_t)job->vpid + job->peers - 1) % job->peers;
    struct velo_port *port = port_open(job->vpid);
    struct velo_conn *next = port_connect(port, VELO_ID(0, ((uint32_t)job->vpid + 1) % job->peers));

    for (uint64_t lap = 0; lap < job->msgs; lap++) {
        if (job->vpid == 0)
            message_send(next, 8, lap);
        message_expect(port, 8, lap, VELO_ID(0, previous));
        if (job->vpid != 0)
            message_send(next, 8, lap);
    }
    CHECK_OK(velo_port_close(port));
}

TEST(eight_processes_in_a_ring_make_progress_on_any_number_of_cores)
{
    enum { PEERS = 8 };
    struct job jobs[PEERS];
    pid_t children[PEERS];

    for (int i = 0; i < PEERS; i++) {
        jobs[i] = (struct job){i, PEERS, test_rounds(3000)};
        children[i] = child_start(pass_around, &jobs[i]);
    }
    for (int i = 0; i < PEERS; i++)
        child_join(children[i]);
}

static void fill(struct velo_conn *conn, uint32_t which)
{
    int status;

    do
        status = velo_try_send(conn, &which, sizeof(which), 0);
    while (status == VELO_OK);
    CHECK_STATUS(status, VELO_AGAIN);
}

/* Receive until the message 2 comes, with the stream's ring never empty meanwhile. */
static void expect_2_soon(struct velo_port *port, struct velo_conn *stream, uint32_t patience_msgs)
{
    uint32_t which = 0;

    for (uint32_t received = 0; which != 2; received++) {
        CHECK(received <= patience_msgs);
        CHECK_OK(SOON(velo_try_recv(port, &which, sizeof(which), NULL)));
        fill(stream, 1);
    }
}

TEST(a_sender_that_streams_does_not_starve_another)
{
    enum { DEPTH = 64, ROUNDS = 200 };
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, DEPTH, 16384, 0);
    struct velo_conn *stream = port_connect(port, velo_port_id(port));
    struct velo_conn *other = port_connect(port, velo_port_id(port));

    fill(stream, 1);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_OK(velo_send(other, &(uint32_t){2}, 4, 0, VELO_FOREVER));
        expect_2_soon(port, stream, 2 * DEPTH);

        /* A sender that has just connected does not have to wait, either. */
        struct velo_conn *new = port_connect(port, velo_port_id(port));
        CHECK_OK(velo_send(new, &(uint32_t){2}, 4, 0, VELO_FOREVER));
        expect_2_soon(port, stream, 2 * DEPTH);
        CHECK_OK(velo_disconnect(new));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(of_many_senders_that_stream_none_is_starved)
{
    /* How long one connection may be favoured is the engine's choice, within reason. */
    enum { CONNS = 100, DEPTH = 8, TURN_MSGS = 64 };
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, DEPTH, 16384, 0);
    struct velo_conn *conns[CONNS];
    uint32_t last[CONNS] = {0};

    for (uint32_t i = 0; i < CONNS; i++)
        fill(conns[i] = port_connect(port, velo_port_id(port)), i);
    for (uint32_t now = 1; now <= 4 * CONNS * TURN_MSGS; now++) {
        uint32_t which;

        CHECK_OK(SOON(velo_try_recv(port, &which, sizeof(which), NULL)));
        last[which] = now;
        fill(conns[which], which);
        for (uint32_t i = 0; i < CONNS; i++)
            CHECK(now - last[i] <= CONNS * TURN_MSGS);
    }
    CHECK_OK(velo_port_close(port));
}

TEST(five_hundred_and_twelve_connections_to_one_port_all_deliver)
{
    enum { CONNS = 512, MSGS = 100 };
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 16, 16384, CONNS);
    struct velo_port *source = port_open(VELO_VPID_ANY);
    static struct velo_conn *conns[CONNS];
    static uint32_t sent[CONNS], received[CONNS];
    struct rng rng = {test_seed()};
    uint32_t to_send = CONNS * MSGS, to_receive = CONNS * MSGS;

    for (uint32_t i = 0; i < CONNS; i++)
        conns[i] = port_connect(source, velo_port_id(port));
    memset(sent, 0, sizeof(sent));
    memset(received, 0, sizeof(received));
    while (to_receive > 0) {
        uint32_t body[2] = {rng_below(&rng, CONNS), 0};

        /* A burst on a few connections, then silence: each falls idle and comes back many times. */
        while (to_send > 0 && sent[body[0]] == MSGS)
            body[0] = (body[0] + 1) % CONNS;
        for (uint32_t n = rng_below(&rng, 10); n > 0 && sent[body[0]] < MSGS; n--) {
            body[1] = sent[body[0]];
            if (velo_try_send(conns[body[0]], body, sizeof(body), 0) != VELO_OK)
                break;
            sent[body[0]]++;
            to_send--;
        }
        for (uint32_t n = rng_below(&rng, to_send > 0 ? 10 : 1000); n > 0; n--) {
            if (to_receive == to_send) {
                CHECK_STATUS(velo_try_recv(port, body, sizeof(body), NULL), VELO_AGAIN);
                break;
            }
            /* Nothing may be overlooked. */
            CHECK_OK(SOON(velo_try_recv(port, body, sizeof(body), NULL)));
            CHECK(body[0] < CONNS);
            CHECK_EQ(body[1], received[body[0]]++);
            to_receive--;
        }
    }
    CHECK_OK(velo_port_close(source));
    CHECK_OK(velo_port_close(port));
}

TEST(a_port_takes_as_many_connections_as_it_was_opened_for)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, VELO_CONNS_MAX);
    static struct velo_conn *conns[VELO_CONNS_MAX];
    static bool seen[VELO_CONNS_MAX];
    struct velo_conn *extra = NULL;

    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < VELO_CONNS_MAX; i++) {
        conns[i] = port_connect(port, velo_port_id(port));
        CHECK_OK(velo_try_send(conns[i], &i, sizeof(i), 0));
    }
    CHECK_STATUS(velo_connect(port, velo_port_id(port), &extra, 0), VELO_ERR_FULL);
    for (uint32_t i = 0; i < VELO_CONNS_MAX; i++) {
        uint32_t which;

        CHECK_OK(SOON(velo_try_recv(port, &which, sizeof(which), NULL)));
        CHECK(which < VELO_CONNS_MAX && !seen[which]);
        seen[which] = true;
    }
    CHECK_OK(velo_port_close(port));
}
