/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long message that the node's RMA unit begins to fetch and cannot. Natively no get fails after
 * its call.
 */
#include <sys/mman.h>

#include "../mq/support.h"

#define LONG_BYTES 40000u
#define MAPPED_BYTES 40960u
#define SEED 7
#define FETCH_NS (400 * TEST_US)

static void *map(void)
{
    void *memory =
        mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    return memory;
}

/* The node cannot read what the sender itself could not. */
TEST(a_message_that_the_node_fails_to_fetch_is_copied)
{
    struct node nodes[2];
    struct velo_mq_request send = {0}, recv = {0};
    struct velo_rma_notification notification;
    unsigned char *out = map(), *in = map();
    int64_t end_ns;

    pattern_fill(out, LONG_BYTES, SEED);
    nodes_open(nodes, 2, NULL, true);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, in, LONG_BYTES, &recv));
    CHECK_OK(velo_mq_isend(node_connect(&nodes[0], nodes[1].id), out, LONG_BYTES, 1, 0, &send));
    CHECK(mprotect(out, MAPPED_BYTES, PROT_NONE) == 0);
    for (end_ns = test_now_ns() + FETCH_NS; test_now_ns() < end_ns;)
        (void)velo_mq_progress(nodes[1].mq);
    CHECK_STATUS(recv.status, VELO_AGAIN);
    CHECK_EQ(recv.len_bytes, 0);
    CHECK(mprotect(out, MAPPED_BYTES, PROT_READ) == 0);
    nodes_finish(nodes, 2, &recv);
    nodes_finish(nodes, 2, &send);
    CHECK_OK(recv.status);
    CHECK_OK(send.status);
    CHECK(pattern_matches(in, LONG_BYTES, SEED));
    CHECK_EQ(node_counters(&nodes[1]).copied, 1);
    CHECK_EQ(node_counters(&nodes[1]).fetched, 0);
    /* The unit's notifications are its owner's, who asked for nothing. */
    CHECK_EQ(velo_rma_try_poll(nodes[1].rma, &notification, 1), 0);
    nodes_close(nodes, 2);
    munmap(out, MAPPED_BYTES);
    munmap(in, MAPPED_BYTES);
}
