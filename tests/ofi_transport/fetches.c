/* SPDX-License-Identifier: Apache-2.0 */
/* Long messages of the matched queues: they are read from their sender's memory. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <velo/mq.h>

#include "stranger.h"

#define SENDER VELO_ID(0, 1)
#define MIB ((size_t)1 << 20)
#define MATCH 7

static const size_t lengths[] = {16385, 65536, (256 << 10) + 1, MIB - 1, 3 * MIB + 5};
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

/* Sends each length. */
static void send_all(void *arg)
{
    struct velo_port *port;
    struct velo_mq *mq = open_mq(1, &port);
    struct velo_mq_peer *peer;
    unsigned char *data = malloc(4 * MIB);
    (void)arg;
    CHECK(data);
    CHECK_OK(velo_mq_connect(mq, VELO_ID(0, 0), &peer, TEST_PATIENCE_NS));
    for (size_t i = 0; i < LENGTHS; i++) {
        struct velo_mq_request send = {0};
        for (size_t at = 0; at < lengths[i]; at++)
            data[at] = byte_at(at, lengths[i]);
        CHECK_OK(velo_mq_isend(peer, data, lengths[i], MATCH, 0, &send));
        CHECK_OK(velo_mq_wait(mq, &send, TEST_PATIENCE_NS));
    }
    CHECK_OK(velo_mq_close(mq));
    CHECK_OK(velo_port_close(port));
    free(data);
}

TEST(each_long_message_is_fetched)
{
    struct velo_port *port;
    struct velo_mq *mq = open_mq(0, &port);
    struct velo_mq_counters counters;
    unsigned char *data = malloc(4 * MIB);
    pid_t peer = child_start(send_all, NULL);
    CHECK(data);
    for (size_t i = 0; i < LENGTHS; i++) {
        struct velo_mq_request recv = {0};
        size_t wrong = 0;
        memset(data, 0, 4 * MIB);
        CHECK_OK(velo_mq_irecv(mq, SENDER, MATCH, 0, data, 4 * MIB, &recv));
        CHECK_OK(velo_mq_wait(mq, &recv, TEST_PATIENCE_NS));
        CHECK_EQ(recv.len_bytes, lengths[i]);
        for (size_t at = 0; at < 4 * MIB; at++)
            wrong += data[at] != (at < lengths[i] ? byte_at(at, lengths[i]) : 0);
        CHECK_EQ(wrong, 0);
    }
    CHECK_OK(velo_mq_counters(mq, &counters, sizeof counters));
    CHECK_EQ(counters.fetched, LENGTHS);
    CHECK_EQ(counters.copied, 0);
    child_join(peer);
    CHECK_OK(velo_mq_close(mq));
    CHECK_OK(velo_port_close(port));
    free(data);
}

/* Sends a long message, so that there are connections both ways. Then it announces one and stands
 * still. */
static void announce(void *arg)
{
    struct velo_port *port;
    struct velo_mq *mq = open_mq(1, &port);
    struct velo_mq_peer *peer;
    struct velo_mq_request send = {0};
    unsigned char *data = calloc(1, MIB);
    (void)arg;
    CHECK_OK(velo_mq_connect(mq, VELO_ID(0, 0), &peer, TEST_PATIENCE_NS));
    CHECK_OK(velo_mq_isend(peer, data, MIB, MATCH, 0, &send));
    CHECK_OK(velo_mq_wait(mq, &send, TEST_PATIENCE_NS));
    CHECK_OK(velo_mq_isend(peer, data, MIB, MATCH, 0, &send));
    (void)velo_mq_progress(mq); /* This lets the announcement out. */
    CHECK_EQ(raise(SIGSTOP), 0);
    (void)velo_mq_wait(mq, &send, TEST_PATIENCE_NS);
    (void)velo_mq_close(mq);
    (void)velo_port_close(port);
}

/* The receive ends in time, and what comes when its sender goes on is written nowhere. */
TEST(a_sender_that_stands_still_is_lost_and_writes_nothing_later)
{
    struct velo_port *port;
    struct velo_mq *mq = open_mq(0, &port);
    struct velo_mq_request recv = {0};
    unsigned char *data = calloc(1, MIB);
    size_t wrong = 0;
    int status;
    pid_t peer = child_start(announce, NULL);
    CHECK_OK(velo_mq_irecv(mq, SENDER, MATCH, 0, data, MIB, &recv));
    CHECK_OK(velo_mq_wait(mq, &recv, TEST_PATIENCE_NS));
    CHECK_EQ(waitpid(peer, &status, WUNTRACED), peer);
    CHECK(WIFSTOPPED(status));
    CHECK_OK(velo_mq_irecv(mq, SENDER, MATCH, 0, data, MIB, &recv));
    CHECK_STATUS(velo_mq_wait(mq, &recv, TEST_PATIENCE_NS), VELO_ERR_PEER_DEAD);
    CHECK_EQ(recv.total_bytes, MIB); /* It was announced. */
    memset(data, 0x55, MIB);
    CHECK_EQ(kill(peer, SIGCONT), 0);
    for (int64_t end_ns = test_now_ns() + 300000000; test_now_ns() < end_ns;)
        (void)velo_mq_progress(mq);
    for (size_t at = 0; at < MIB; at++)
        wrong += data[at] != 0x55;
    CHECK_EQ(wrong, 0);
    child_kill(peer);
    CHECK_OK(velo_mq_close(mq));
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1))); /* Takes the dead one's file away. */
    free(data);
}

TEST(a_stranger_reads_nothing_without_its_key)
{
    const uint64_t guesses[] = {0, 1, 77};
    struct velo_port *ports[2];
    struct velo_mq *mqs[2] = {open_mq(0, &ports[0]), open_mq(1, &ports[1])};
    struct velo_mq_request send = {0}, recv = {0};
    struct velo_mq_peer *peer;
    unsigned char *data = malloc(MIB), *in = calloc(1, MIB);
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    memset(data, 0x77, MIB);
    CHECK_OK(velo_mq_connect(mqs[0], SENDER, &peer, TEST_PATIENCE_NS));
    CHECK_OK(velo_mq_isend(peer, data, MIB, MATCH, 0, &send));
    for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++) {
        struct stranger *stranger = stranger_open(ports[0]);
        unsigned char stolen[64] = {0};
        CHECK(!stranger_read(stranger, stolen, sizeof stolen, guesses[i]));
        for (size_t at = 0; at < sizeof stolen; at++)
            CHECK_EQ(stolen[at], 0);
        stranger_close(stranger);
    }
    CHECK_OK(velo_mq_irecv(mqs[1], VELO_ID(0, 0), MATCH, 0, in, MIB, &recv));
    while (recv.status == VELO_AGAIN && test_now_ns() < end_ns) {
        (void)velo_mq_progress(mqs[0]);
        (void)velo_mq_progress(mqs[1]);
    }
    CHECK_OK(recv.status);
    CHECK(memcmp(data, in, MIB) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(velo_mq_close(mqs[i]));
        CHECK_OK(velo_port_close(ports[i]));
    }
    free(data);
    free(in);
}
