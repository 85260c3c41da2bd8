/* SPDX-License-Identifier: Apache-2.0 */
/* Long messages of the matched queues: the receiver's node reads them from the sender's memory. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <velo/mq.h>

#include "test.h"

#define SENDER VELO_ID(0, 1)
#define MATCH 7
#define MOST_BYTES ((size_t)200 << 10)
#define LOCKED_BYTES ((size_t)20000)

/* The shortest that is fetched; pieces, pages and packets that end within it. */
static const size_t lengths[] = {16385, 65536, 65537, 150001};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static unsigned char byte_at(size_t at, size_t len_bytes)
{
    return (unsigned char)(at * 7 + at / 251 + len_bytes);
}

static struct velo_mq *open_mq(int vpid, struct velo_port **port)
{
    struct velo_mq *mq;
    *port = port_open(vpid);
    CHECK_OK(velo_mq_open(*port, NULL, NULL, &mq));
    return mq;
}

static void fill(unsigned char *data, size_t len_bytes)
{
    for (size_t at = 0; at < len_bytes; at++)
        data[at] = byte_at(at, len_bytes);
}

/* All that was sent is there, and nothing behind it. */
static bool is_right(const unsigned char *data, size_t len_bytes)
{
    for (size_t at = 0; at < MOST_BYTES; at++)
        if (data[at] != (at < len_bytes ? byte_at(at, len_bytes) : 0))
            return false;
    return true;
}

static void send_all(void *arg)
{
    struct velo_port *port;
    struct velo_mq *mq = open_mq(1, &port);
    struct velo_mq_peer *peer;
    unsigned char *data = malloc(MOST_BYTES);
    (void)arg;
    CHECK(data);
    CHECK_OK(velo_mq_connect(mq, VELO_ID(0, 0), &peer, TEST_PATIENCE_NS));
    for (size_t i = 0; i < LENGTHS; i++) {
        struct velo_mq_request send = {0};
        fill(data + i, lengths[i]); /* Not where a page begins. */
        CHECK_OK(velo_mq_isend(peer, data + i, lengths[i], MATCH, 0, &send));
        CHECK_OK(velo_mq_wait(mq, &send, TEST_PATIENCE_NS));
    }
    CHECK_OK(velo_mq_close(mq));
    CHECK_OK(velo_port_close(port));
    free(data);
}

static void receive(struct velo_mq *mq, unsigned char *data, size_t len_bytes)
{
    struct velo_mq_request recv = {0};
    memset(data, 0, MOST_BYTES);
    CHECK_OK(velo_mq_irecv(mq, SENDER, MATCH, 0, data, MOST_BYTES, &recv));
    CHECK_OK(velo_mq_wait(mq, &recv, TEST_PATIENCE_NS));
    CHECK_EQ(recv.len_bytes, len_bytes);
    CHECK(is_right(data, len_bytes));
}

TEST(each_long_message_is_fetched)
{
    struct velo_port *port;
    struct velo_mq *mq = open_mq(0, &port);
    struct velo_mq_counters counters;
    unsigned char *data = malloc(MOST_BYTES);
    pid_t peer = child_start(send_all, NULL);
    CHECK(data);
    for (size_t i = 0; i < LENGTHS; i++)
        receive(mq, data, lengths[i]);
    CHECK_OK(velo_mq_counters(mq, &counters, sizeof counters));
    CHECK_EQ(counters.fetched, LENGTHS);
    CHECK_EQ(counters.copied, 0);
    child_join(peer);
    CHECK_OK(velo_mq_close(mq));
    CHECK_OK(velo_port_close(port));
    free(data);
}

/* More at once than descriptors may be under way. */
TEST(many_long_messages_are_fetched_at_once)
{
    enum { MESSAGES = 36, EACH_BYTES = 17000 };
    struct velo_port *ports[2];
    struct velo_mq *mqs[2] = {open_mq(0, &ports[0]), open_mq(1, &ports[1])};
    struct velo_mq_request send[MESSAGES] = {0}, recv[MESSAGES] = {0};
    struct velo_mq_counters counters;
    struct velo_mq_peer *peer;
    unsigned char *out = malloc(MESSAGES * EACH_BYTES), *in = calloc(MESSAGES, EACH_BYTES);
    int64_t end_ns = test_now_ns() + 6 * TEST_PATIENCE_NS; /* A million cycles of a node. */
    bool is_done = false;
    CHECK(out && in);
    CHECK_OK(velo_mq_connect(mqs[1], VELO_ID(0, 0), &peer, TEST_PATIENCE_NS));
    for (size_t i = 0; i < MESSAGES; i++) {
        fill(out + i * EACH_BYTES, EACH_BYTES - i);
        CHECK_OK(velo_mq_isend(peer, out + i * EACH_BYTES, EACH_BYTES - i, MATCH, 0, &send[i]));
        CHECK_OK(
            velo_mq_irecv(mqs[0], SENDER, MATCH, 0, in + i * EACH_BYTES, EACH_BYTES, &recv[i]));
    }
    while (!is_done && test_now_ns() < end_ns) {
        is_done = true;
        for (int i = 0; i < 2; i++)
            (void)velo_mq_progress(mqs[i]);
        for (size_t i = 0; i < MESSAGES; i++)
            is_done &= send[i].status != VELO_AGAIN && recv[i].status != VELO_AGAIN;
    }
    for (size_t i = 0; i < MESSAGES; i++) {
        CHECK_OK(send[i].status);
        CHECK_OK(recv[i].status);
        CHECK(memcmp(in + i * EACH_BYTES, out + i * EACH_BYTES, EACH_BYTES - i) == 0);
    }
    CHECK_OK(velo_mq_counters(mqs[0], &counters, sizeof counters));
    CHECK_EQ(counters.fetched, MESSAGES);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(velo_mq_close(mqs[i]));
        CHECK_OK(velo_port_close(ports[i]));
    }
    free(out);
    free(in);
}

/* Announces a message whose memory nobody can read until it is told to go on. */
static void announce_what_is_locked(void *go_on)
{
    struct velo_port *port;
    struct velo_mq *mq = open_mq(1, &port);
    struct velo_mq_peer *peer;
    struct velo_mq_request send = {0};
    unsigned char *data =
        mmap(NULL, MOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(data != MAP_FAILED);
    fill(data, LOCKED_BYTES);
    CHECK_OK(velo_mq_connect(mq, VELO_ID(0, 0), &peer, TEST_PATIENCE_NS));
    CHECK_OK(velo_mq_isend(peer, data, LOCKED_BYTES, MATCH, 0, &send));
    CHECK_EQ(mprotect(data, MOST_BYTES, PROT_NONE), 0);
    while (!atomic_load((atomic_int *)go_on))
        test_sleep_ns(TEST_MS);
    CHECK_EQ(mprotect(data, MOST_BYTES, PROT_READ), 0);
    CHECK_OK(velo_mq_wait(mq, &send, TEST_PATIENCE_NS));
    CHECK_OK(velo_mq_close(mq));
    CHECK_OK(velo_port_close(port));
}

TEST(what_cannot_be_fetched_is_copied)
{
    if (!is_simulated())
        test_skip("a driver has pinned the memory, so it can be fetched");
    struct velo_port *port;
    struct velo_mq *mq = open_mq(0, &port);
    struct velo_mq_request recv = {0};
    struct velo_mq_counters counters;
    struct velo_mq_info info;
    atomic_int *go_on = test_shared_alloc(sizeof *go_on);
    unsigned char *data = calloc(1, MOST_BYTES);
    pid_t peer = child_start(announce_what_is_locked, go_on);
    CHECK(data);
    while (velo_mq_try_probe(mq, SENDER, MATCH, 0, &info) != VELO_OK)
        (void)velo_mq_progress(mq);
    CHECK_OK(velo_mq_irecv(mq, SENDER, MATCH, 0, data, MOST_BYTES, &recv));
    for (int64_t end_ns = test_now_ns() + 200 * TEST_MS; test_now_ns() < end_ns;)
        (void)velo_mq_progress(mq); /* It asks the node, which cannot. */
    atomic_store(go_on, 1);
    CHECK_OK(velo_mq_wait(mq, &recv, TEST_PATIENCE_NS));
    CHECK(is_right(data, LOCKED_BYTES));
    CHECK_OK(velo_mq_counters(mq, &counters, sizeof counters));
    CHECK_EQ(counters.fetched, 0);
    CHECK_EQ(counters.copied, 1);
    child_join(peer);
    CHECK_OK(velo_mq_close(mq));
    CHECK_OK(velo_port_close(port));
    free(data);
}

/* Announces a message, and waits to be killed. */
static void announce(void *arg)
{
    struct velo_port *port;
    struct velo_mq *mq = open_mq(1, &port);
    struct velo_mq_peer *peer;
    struct velo_mq_request send = {0};
    unsigned char *data = calloc(1, MOST_BYTES);
    CHECK(data);
    CHECK_OK(velo_mq_connect(mq, VELO_ID(0, 0), &peer, TEST_PATIENCE_NS));
    CHECK_OK(velo_mq_isend(peer, data, MOST_BYTES, MATCH, 0, &send));
    (void)arg;
    (void)velo_mq_wait(mq, &send, TEST_PATIENCE_NS);
}

TEST(a_receive_ends_when_its_sender_is_killed_before_it_is_fetched)
{
    struct velo_port *port;
    struct velo_mq *mq = open_mq(0, &port);
    struct velo_mq_request recv = {0};
    struct velo_mq_info info;
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    int status;
    unsigned char *data = malloc(MOST_BYTES);
    pid_t peer = child_start(announce, NULL);
    CHECK(data);
    while ((status = velo_mq_try_probe(mq, SENDER, MATCH, 0, &info)) == VELO_AGAIN &&
           test_now_ns() < end_ns)
        (void)velo_mq_progress(mq);
    CHECK_OK(status);
    CHECK_EQ(info.len_bytes, MOST_BYTES);
    child_kill(peer);
    CHECK_OK(velo_mq_irecv(mq, SENDER, MATCH, 0, data, MOST_BYTES, &recv));
    CHECK_STATUS(velo_mq_wait(mq, &recv, TEST_PATIENCE_NS), VELO_ERR_PEER_DEAD);
    memset(data, 0x55, MOST_BYTES);
    test_sleep_ns(TEST_MS);
    (void)velo_mq_progress(mq);
    for (size_t at = 0; at < MOST_BYTES; at++)
        CHECK_EQ(data[at], 0x55);
    CHECK_OK(velo_mq_close(mq));
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1))); /* Takes the dead one's file away. */
    free(data);
}
