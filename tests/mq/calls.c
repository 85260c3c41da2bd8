/* SPDX-License-Identifier: Apache-2.0 */
/* Each call: what it refuses, what it says about it, and the outcomes that are not failures. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define LONG_BYTES 300000u

static void check_open_fails(const struct velo_mq_attr *attr, const char *about)
{
    struct velo_port *port = port_open(0);
    struct velo_mq *mq = NULL;

    CHECK_FAILS(velo_mq_open(port, NULL, attr, &mq), VELO_ERR_ARG, about);
    CHECK(mq == NULL);
    CHECK_OK(velo_port_close(port));
}

TEST(opening_refuses_what_makes_no_sense)
{
    static const char *const bytes[] = {"VELO_MQ_EAGER_BYTES", "VELO_MQ_GET_BYTES",
                                        "VELO_MQ_UNEXPECTED_BYTES"};
    static const char *const nonsense[] = {
        "x", "-1", "0", "12q", "1kk", "99999999999999999999", "18446744073709551615k"};
    struct velo_mq_attr attr = VELO_MQ_ATTR_INIT;
    struct velo_mq *mq;
    struct velo_port *port = port_open(1);

    CHECK_FAILS(velo_mq_open(NULL, NULL, NULL, &mq), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_open(port, NULL, NULL, NULL), VELO_ERR_ARG, "NULL");
    for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
        for (size_t k = 0; k < ARRAY_LEN(nonsense); k++) {
            setenv(bytes[i], nonsense[k], 1);
            check_open_fails(NULL, bytes[i]);
        }
        unsetenv(bytes[i]);
    }
    setenv("VELO_MQ_PATH", "bus", 1);
    check_open_fails(NULL, "VELO_MQ_PATH");
    unsetenv("VELO_MQ_PATH");
    attr.path = 3;
    check_open_fails(&attr, "path");
    attr.path = -1;
    check_open_fails(&attr, "path");
    CHECK_OK(velo_mq_close(NULL));
    CHECK_OK(velo_port_close(port));
}

/* The longest message that goes at once, which is what eager_bytes sets. */
static size_t eager_limit(const struct velo_mq_attr *attr)
{
    static char buf[70000];
    struct node node;
    struct velo_mq_peer *peer;
    size_t longest = 0, too_long = sizeof(buf);

    nodes_open(&node, 1, attr, false);
    peer = node_connect(&node, node.id);
    while (too_long - longest > 1) {
        size_t len_bytes = longest + (too_long - longest) / 2;
        struct velo_mq_request recv = {0};
        if (velo_mq_try_send(peer, buf, len_bytes, 0) != VELO_OK) {
            too_long = len_bytes;
            continue;
        }
        longest = len_bytes;
        CHECK_OK(velo_mq_irecv(node.mq, node.id, 0, 0, NULL, 0, &recv));
        nodes_finish(&node, 1, &recv);
    }
    nodes_close(&node, 1);
    return longest;
}

TEST(the_environment_wins_over_the_default_but_not_over_the_caller)
{
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr), .eager_bytes = 100};

    setenv("VELO_MQ_EAGER_BYTES", "2k", 1);
    setenv("VELO_MQ_UNEXPECTED_BYTES", "1G", 1);
    CHECK_EQ(eager_limit(NULL), 2048);
    CHECK_EQ(eager_limit(&attr), 100);
    unsetenv("VELO_MQ_EAGER_BYTES");
    unsetenv("VELO_MQ_UNEXPECTED_BYTES");
}

TEST(an_eager_limit_above_what_the_ring_takes_is_cut)
{
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr), .eager_bytes = 1 << 20};

    CHECK_EQ(eager_limit(&attr), 16384 - 48);
}

TEST(connecting_refuses_what_makes_no_sense)
{
    struct node node;
    struct velo_mq_peer *peer, *again;

    nodes_open(&node, 1, NULL, false);
    CHECK_FAILS(velo_mq_connect(NULL, 0, &peer, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_connect(node.mq, 0, NULL, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_connect(node.mq, 1u << 20, &peer, 0), VELO_ERR_ARG, "id");
    CHECK_FAILS(velo_mq_connect(node.mq, VELO_MQ_ANY_SOURCE, &peer, 0), VELO_ERR_ARG, "id");
    CHECK_STATUS(velo_mq_connect(node.mq, VELO_ID(0, 9), &peer, 0), VELO_ERR_NO_PEER);
    CHECK(peer == NULL);
    peer = node_connect(&node, node.id);
    again = node_connect(&node, node.id);
    CHECK(peer == again);
    CHECK_OK(velo_mq_disconnect(NULL));
    nodes_close(&node, 1);
}

TEST(sending_and_receiving_refuse_what_makes_no_sense)
{
    struct node node;
    struct velo_mq_peer *peer;
    struct velo_mq_request request = {0};
    struct velo_mq_message *message;
    char buf[8] = "";

    nodes_open(&node, 1, NULL, false);
    peer = node_connect(&node, node.id);
    CHECK_FAILS(velo_mq_try_send(NULL, buf, 1, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_try_send(peer, NULL, 1, 0), VELO_ERR_ARG, "NULL");
    CHECK_STATUS(velo_mq_try_send(peer, buf, 1u << 20, 0), VELO_AGAIN);
    CHECK_FAILS(velo_mq_isend(NULL, buf, 1, 0, 0, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_isend(peer, NULL, 1, 0, 0, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_isend(peer, buf, 1, 0, 0, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_isend(peer, buf, 1, 0, 2, &request), VELO_ERR_ARG, "flags");
    CHECK_FAILS(velo_mq_irecv(NULL, 0, 0, 0, buf, 1, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_irecv(node.mq, 0, 0, 0, NULL, 1, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_irecv(node.mq, 0, 0, 0, buf, 1, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_try_probe(NULL, 0, 0, 0, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_try_mprobe(NULL, 0, 0, 0, &message, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_try_mprobe(node.mq, 0, 0, 0, NULL, NULL), VELO_ERR_ARG, "NULL");
    CHECK_OK(velo_mq_try_send(peer, buf, 8, 4));
    nodes_settle(&node, 1);
    CHECK_OK(velo_mq_try_mprobe(node.mq, node.id, 4, 0, &message, NULL));
    CHECK_FAILS(velo_mq_mrecv(NULL, message, buf, 8, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_mrecv(node.mq, NULL, buf, 8, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_mrecv(node.mq, message, NULL, 8, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_mrecv(node.mq, message, buf, 8, NULL), VELO_ERR_ARG, "NULL");
    CHECK_OK(velo_mq_mrecv(node.mq, message, buf, 8, &request));
    CHECK_FAILS(velo_mq_cancel(NULL, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_cancel(node.mq, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_wait(NULL, &request, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_wait(node.mq, NULL, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_wait(node.mq, &request, -2), VELO_ERR_ARG, "timeout_ns");
    CHECK_FAILS(velo_mq_progress(NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_spin(NULL, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_poll(NULL, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_poll(node.mq, NULL), VELO_ERR_ARG, "NULL");
    CHECK_STATUS(velo_mq_arm(NULL), VELO_ERR_ARG);
    CHECK_FAILS(velo_mq_idle(NULL, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_idle(node.mq, -2), VELO_ERR_ARG, "timeout_ns");
    CHECK_FAILS(velo_mq_counters(NULL, NULL, sizeof *NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_counters(node.mq, NULL, sizeof *NULL), VELO_ERR_ARG, "NULL");
    nodes_close(&node, 1);
}

TEST(only_a_receive_that_waits_can_be_cancelled)
{
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct velo_mq_request never = {0}, recv = {0}, send = {0};
    char *buf = calloc(1, LONG_BYTES);

    nodes_open(nodes, 2, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    CHECK_STATUS(velo_mq_cancel(nodes[1].mq, &never), VELO_ERR_STATE);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, buf, 8, &recv));
    CHECK_OK(velo_mq_cancel(nodes[1].mq, &recv));
    CHECK_STATUS(recv.status, VELO_ERR_CANCELLED);
    CHECK_STATUS(velo_mq_cancel(nodes[1].mq, &recv), VELO_ERR_STATE);
    CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, 1, 0, &send));
    CHECK_STATUS(velo_mq_cancel(nodes[0].mq, &send), VELO_ERR_STATE);
    nodes_settle(nodes, 2);
    CHECK_STATUS(send.status, VELO_AGAIN); /* The receive that was cancelled took nothing. */
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, buf, LONG_BYTES, &recv));
    CHECK_STATUS(velo_mq_cancel(nodes[1].mq, &recv), VELO_ERR_STATE); /* Matched. */
    nodes_finish(nodes, 2, &recv);
    CHECK_OK(recv.status);
    nodes_close(nodes, 2);
    free(buf);
}

TEST(waiting_gives_up_when_the_time_is_over)
{
    struct node node;
    struct velo_mq_request recv = {0};
    int64_t start_ns;
    char byte;

    nodes_open(&node, 1, NULL, false);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_MQ_ANY_SOURCE, 1, 0, &byte, 1, &recv));
    CHECK_STATUS(velo_mq_wait(node.mq, &recv, 0), VELO_TIMEOUT);
    CHECK_STATUS(velo_mq_idle(node.mq, 0), VELO_TIMEOUT);
    start_ns = test_now_ns();
    CHECK_STATUS(velo_mq_wait(node.mq, &recv, 150 * TEST_MS), VELO_TIMEOUT);
    CHECK(test_now_ns() - start_ns >= 150 * TEST_MS);
    start_ns = test_now_ns();
    CHECK_STATUS(velo_mq_idle(node.mq, 150 * TEST_MS), VELO_TIMEOUT);
    CHECK(test_now_ns() - start_ns >= 150 * TEST_MS);
    CHECK_EQ(velo_mq_progress(node.mq), 0);
    CHECK_OK(velo_mq_cancel(node.mq, &recv));
    nodes_close(&node, 1);
}

TEST(waiting_gives_up_in_time_while_other_messages_come_and_sends_wait)
{
    static struct velo_mq_request sends[1000];
    struct node nodes[2];
    struct velo_mq_peer *peer, *self;
    struct velo_mq_request recv = {0};
    int64_t start_ns;
    char byte = 0;

    nodes_open(nodes, 2, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    self = node_connect(&nodes[0], nodes[0].id);
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[0].id, 1, 0, &byte, 1, &recv));
    for (size_t i = 0; i < ARRAY_LEN(sends); i++) /* Nobody takes them. */
        CHECK_OK(velo_mq_isend(peer, &byte, 1, 2, 0, &sends[i]));
    CHECK_OK(velo_mq_try_send(self, &byte, 1, 3));
    start_ns = test_now_ns();
    CHECK_STATUS(velo_mq_wait(nodes[0].mq, &recv, 50 * TEST_MS), VELO_TIMEOUT);
    CHECK(test_now_ns() - start_ns >= 50 * TEST_MS);
    CHECK(test_now_ns() - start_ns < 5000 * TEST_MS);
    CHECK_OK(velo_mq_idle(nodes[0].mq, 50 * TEST_MS)); /* Work of our own is left. */
    nodes_close(nodes, 2);
}

TEST(idling_ends_when_something_comes)
{
    struct node node;
    struct velo_mq_peer *peer;
    struct velo_mq_request recv = {0};
    char byte = 1;

    nodes_open(&node, 1, NULL, false);
    peer = node_connect(&node, node.id);
    CHECK_OK(velo_mq_irecv(node.mq, node.id, 1, 0, &byte, 1, &recv));
    CHECK_OK(velo_mq_try_send(peer, &byte, 1, 1));
    while (recv.status == VELO_AGAIN) {
        CHECK_OK(velo_mq_idle(node.mq, TEST_PATIENCE_NS));
        (void)velo_mq_progress(node.mq);
    }
    nodes_close(&node, 1);
}

static int done_count;

static void count_done(struct velo_mq_request *request)
{
    (void)request;
    done_count++;
}

TEST(disconnecting_ends_what_is_under_way_on_both_sides)
{
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct velo_mq_request send = {.done = count_done}, recv = {0}, sync = {.done = count_done};
    struct velo_mq_request posted = {.done = count_done}, waiting[1200] = {0};
    char *out = calloc(1, LONG_BYTES), *in = calloc(1, LONG_BYTES), byte;

    nodes_open(nodes, 2, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    done_count = 0;
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, in, LONG_BYTES, &recv));
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, 1, 0, &byte, 1, &posted));
    CHECK_OK(velo_mq_isend(peer, out, LONG_BYTES, 1, 0, &send));
    while (recv.len_bytes < LONG_BYTES / 4) {
        (void)velo_mq_progress(nodes[1].mq);
        (void)velo_mq_progress(nodes[0].mq);
    }
    for (size_t i = 0; i < ARRAY_LEN(waiting); i++)
        CHECK_OK(velo_mq_isend(peer, out, 1, 3, 0, &waiting[i]));
    CHECK_OK(velo_mq_isend(peer, out, 1, 2, VELO_MQ_SYNC, &sync));
    CHECK_STATUS(waiting[1199].status, VELO_AGAIN);
    CHECK_OK(velo_mq_disconnect(peer));
    CHECK_STATUS(send.status, VELO_ERR_PEER_CLOSED);
    CHECK_STATUS(sync.status, VELO_ERR_PEER_CLOSED);
    CHECK_STATUS(posted.status, VELO_ERR_PEER_CLOSED);
    CHECK_STATUS(waiting[1199].status, VELO_ERR_PEER_CLOSED);
    CHECK_EQ(done_count, 3);
    nodes_finish(nodes, 2, &recv); /* The other side hears of it. */
    CHECK_STATUS(recv.status, VELO_ERR_PEER_CLOSED);
    peer = node_connect(&nodes[0], nodes[1].id); /* And all begins anew. */
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 9, 0, in, LONG_BYTES, &recv));
    CHECK_OK(velo_mq_isend(peer, out, LONG_BYTES, 9, 0, &send));
    nodes_finish(nodes, 2, &recv);
    CHECK_OK(recv.status);
    nodes_close(nodes, 2);
    free(out);
    free(in);
}

/* More of them than the peer's ring has room for. */
TEST(a_peer_hears_of_all_that_was_under_way_when_it_is_given_up)
{
    enum { SENDS = 40 };
    static struct velo_mq_request sends[SENDS], recvs[SENDS];
    struct node nodes[2];
    char *buf = calloc(1, LONG_BYTES); /* Its content does not matter. */

    node_open(&nodes[0], 0, 0, 0, NULL, false);
    node_open(&nodes[1], 1, 8, 0, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[1], nodes[0].id);
    struct velo_mq_peer *back = node_connect(&nodes[0], nodes[1].id);
    for (int i = 0; i < SENDS; i++) {
        CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, 1, 0, buf, LONG_BYTES, &recvs[i]));
        CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, 1, 0, &sends[i]));
    }
    while (recvs[SENDS - 1].len_bytes < LONG_BYTES / 100) {
        (void)velo_mq_progress(nodes[0].mq);
        (void)velo_mq_progress(nodes[1].mq);
    }
    CHECK_STATUS(sends[0].status, VELO_AGAIN);
    CHECK_OK(velo_mq_disconnect(back));
    for (int i = 0; i < SENDS; i++) {
        CHECK_STATUS(recvs[i].status, VELO_ERR_PEER_CLOSED);
        nodes_finish(nodes, 2, &sends[i]);
        CHECK_STATUS(sends[i].status, VELO_ERR_PEER_CLOSED);
    }
    node_close(&nodes[1]);
    node_close(&nodes[0]);
    free(buf);
}

TEST(closing_ends_what_is_under_way_and_delivers_what_was_sent)
{
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct velo_mq_request send = {.done = count_done}, recv = {.done = count_done};
    struct velo_mq_request wild = {.done = count_done}, theirs = {0}, sync = {0};
    struct velo_mq_message *message;
    char *out = calloc(1, LONG_BYTES), byte = 0;

    nodes_open(nodes, 2, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    done_count = 0;
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, 1, 0, &byte, 1, &recv));
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, 1, 5, &byte, 1, &wild));
    CHECK_OK(velo_mq_isend(peer, out, LONG_BYTES, 1, 0, &send));
    CHECK_OK(velo_mq_try_send(peer, "x", 1, 2));
    /* The closing side has kept one message, and has taken one aside. */
    peer = node_connect(&nodes[1], nodes[0].id);
    CHECK_OK(velo_mq_isend(peer, out, LONG_BYTES, 7, 0, &theirs));
    CHECK_OK(velo_mq_isend(peer, out, 1, 8, VELO_MQ_SYNC, &sync));
    nodes_settle(nodes, 2);
    CHECK_OK(velo_mq_try_mprobe(nodes[0].mq, nodes[1].id, 8, 0, &message, NULL));
    CHECK_OK(velo_mq_close(nodes[0].mq));
    CHECK_EQ(done_count, 3);
    CHECK_STATUS(send.status, VELO_ERR_CANCELLED);
    CHECK_STATUS(recv.status, VELO_ERR_CANCELLED);
    CHECK_STATUS(wild.status, VELO_ERR_CANCELLED);
    nodes_finish(&nodes[1], 1, &theirs);
    nodes_finish(&nodes[1], 1, &sync);
    CHECK_STATUS(theirs.status, VELO_ERR_PEER_CLOSED);
    CHECK_STATUS(sync.status, VELO_ERR_PEER_CLOSED);
    CHECK_OK(velo_port_close(nodes[0].port));
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 2, 0, &byte, 1, &recv));
    nodes_finish(&nodes[1], 1, &recv);
    CHECK_EQ(byte, 'x');
    nodes_close(&nodes[1], 1);
    free(out);
}

static void receive_again(struct velo_mq_request *request)
{
    done_count++;
    CHECK_FAILS(velo_mq_irecv(request->user, VELO_MQ_ANY_SOURCE, 1, 0, NULL, 0, request),
                VELO_ERR_STATE, "closed");
}

TEST(nothing_can_be_started_while_the_queues_close)
{
    struct node node;
    struct velo_mq_request recv = {.done = receive_again};

    nodes_open(&node, 1, NULL, false);
    recv.user = node.mq;
    done_count = 0;
    CHECK_OK(velo_mq_irecv(node.mq, VELO_MQ_ANY_SOURCE, 1, 0, NULL, 0, &recv));
    nodes_close(&node, 1);
    CHECK_EQ(done_count, 1);
    CHECK_STATUS(recv.status, VELO_ERR_CANCELLED);
}

TEST(all_rings_of_a_port_together_stay_small)
{
    CHECK_EQ(velo_mq_ring_bytes(0), 256 << 10);
    CHECK_EQ(velo_mq_ring_bytes(16), 256 << 10);
    CHECK_EQ(velo_mq_ring_bytes(17), 128 << 10);
    CHECK_EQ(velo_mq_ring_bytes(32), 128 << 10);
    CHECK_EQ(velo_mq_ring_bytes(33), 64 << 10);
    CHECK_EQ(velo_mq_ring_bytes(UINT32_MAX), 64 << 10);
}

TEST(counters_say_what_was_done)
{
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct velo_mq_request requests[3] = {0}, sends[3] = {0};
    struct velo_mq_counters counters;
    char *out = calloc(1, LONG_BYTES), *in = calloc(1, LONG_BYTES);

    nodes_open(nodes, 2, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, in, 8, &requests[0]));
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 8, in, 8, &requests[1]));
    CHECK_EQ(node_counters(&nodes[1]).posted, 2);
    CHECK_OK(velo_mq_try_send(peer, out, 8, 2));
    CHECK_OK(velo_mq_isend(peer, out, LONG_BYTES, 3, 0, &sends[0]));
    nodes_settle(nodes, 2);
    counters = node_counters(&nodes[1]);
    CHECK_EQ(counters.unexpected, 2);
    CHECK(counters.unexpected_bytes > 0);
    CHECK_EQ(counters.unexpected_peak_bytes, counters.unexpected_bytes);
    CHECK_EQ(counters.received, 0);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 2, 0, in, 8, &requests[2]));
    CHECK_OK(requests[2].status);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 3, 0, in, LONG_BYTES, &requests[2]));
    nodes_finish(nodes, 2, &requests[2]);
    counters = node_counters(&nodes[1]);
    CHECK_EQ(counters.unexpected_bytes, 0);
    CHECK_EQ(counters.received, 2);
    CHECK_EQ(counters.eager, 1);
    CHECK_EQ(counters.copied, 1);
    CHECK_EQ(counters.fetched, 0);
    CHECK_EQ(node_counters(&nodes[0]).sent, 2);
    CHECK_OK(velo_mq_cancel(nodes[1].mq, &requests[0]));
    CHECK_EQ(node_counters(&nodes[1]).posted, 1);
    nodes_close(nodes, 2);
    free(out);
    free(in);
}
