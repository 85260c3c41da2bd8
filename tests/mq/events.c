/* SPDX-License-Identifier: Apache-2.0 */
/* Queues in a program with an event loop of its own: it makes progress when the descriptor says so.
 */
#include <poll.h>
#include <stdlib.h>

#include "support.h"

#define LONG_BYTES 300000

static struct pollfd file_of(struct node *node)
{
    struct pollfd file = {.events = POLLIN};

    CHECK_OK(velo_port_fd(node->port, &file.fd));
    return file;
}

/* All there is to do now. Can its owner wait for the descriptor? While a send waits for room, it
 * cannot. */
static bool is_settled(struct node *node)
{
    while (velo_mq_progress(node->mq) > 0)
        ;
    int status = velo_mq_arm(node->mq);
    CHECK(status == VELO_OK || status == VELO_AGAIN);
    return status == VELO_OK;
}

static void get_across(struct node *nodes, size_t len_bytes)
{
    struct pollfd files[] = {file_of(&nodes[0]), file_of(&nodes[1])};
    struct velo_mq_request send = {0}, recv = {0};
    char *out = calloc(1, len_bytes), *in = calloc(1, len_bytes);

    CHECK(out && in);
    pattern_fill(out, len_bytes, len_bytes);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, in, len_bytes, &recv));
    CHECK_OK(velo_mq_isend(node_connect(&nodes[0], nodes[1].id), out, len_bytes, 1, 0, &send));
    while (recv.status == VELO_AGAIN || send.status == VELO_AGAIN) {
        bool may_wait = is_settled(&nodes[0]) & is_settled(&nodes[1]);

        if (may_wait && (recv.status == VELO_AGAIN || send.status == VELO_AGAIN))
            CHECK(poll(files, 2, TEST_PATIENCE_NS / TEST_MS) > 0);
    }
    CHECK_OK(recv.status);
    CHECK_OK(send.status);
    CHECK(pattern_matches(in, len_bytes, len_bytes));
    free(out);
    free(in);
}

TEST(an_event_loop_gets_messages_across)
{
    struct velo_mq_attr attr = VELO_MQ_ATTR_INIT;
    struct node nodes[2];

    if (is_simulated())
        test_skip("a node's host port has no descriptor");
    attr.path = VELO_MQ_PATH_COPY;
    nodes_open(nodes, 2, &attr, false);
    CHECK_FAILS(velo_mq_arm(NULL), VELO_ERR_ARG, "mq is NULL");
    CHECK_STATUS(velo_mq_arm(nodes[0].mq), VELO_ERR_STATE); /* Nobody has its descriptor. */
    for (int round = 0; round < 20; round++) {
        get_across(nodes, 100);
        get_across(nodes, LONG_BYTES);
    }
    nodes_close(nodes, 2);
}
