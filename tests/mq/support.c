/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <stdlib.h>
#include <string.h>

/* Rounds without an event after which nobody has anything to do. */
#define QUIET_ROUNDS 4
/* Simulated, what was sent is on its way for less than that. */
#define ON_ITS_WAY_NS (20 * TEST_US)
/* Between machines nothing but time tells that nothing is on its way, nor by a card that is
 * simulated beside its guest. */
#define QUIET_NS (10 * TEST_MS)
#define QUIET_BY_CARD_NS (50 * TEST_MS)

void node_open(struct node *node, int vpid, uint32_t depth_slots, uint32_t data_bytes,
               const struct velo_mq_attr *attr, bool with_rma)
{
    *node = (struct node){.port = port_open_sized(vpid, depth_slots, data_bytes, 0)};
    node->id = velo_port_id(node->port);
    if (with_rma)
        CHECK_OK(velo_rma_open(node->port, NULL, &node->rma));
    CHECK_OK(velo_mq_open(node->port, node->rma, attr, &node->mq));
}

void node_close(struct node *node)
{
    CHECK_OK(velo_mq_close(node->mq));
    CHECK_OK(velo_rma_close(node->rma));
    CHECK_OK(velo_port_close(node->port));
}

void nodes_open(struct node *nodes, int count, const struct velo_mq_attr *attr, bool with_rma)
{
    for (int i = 0; i < count; i++)
        node_open(&nodes[i], i, 0, 0, attr, with_rma);
}

void nodes_close(struct node *nodes, int count)
{
    for (int i = 0; i < count; i++)
        node_close(&nodes[i]);
}

struct velo_mq_peer *node_connect(struct node *node, velo_id_t id)
{
    struct velo_mq_peer *peer = NULL;

    CHECK_OK(velo_mq_connect(node->mq, id, &peer, TEST_PATIENCE_NS));
    CHECK(peer != NULL);
    return peer;
}

struct velo_mq_counters node_counters(struct node *node)
{
    struct velo_mq_counters counters;

    CHECK_OK(velo_mq_counters(node->mq, &counters, sizeof counters));
    return counters;
}

static int progress_all(struct node *nodes, int count)
{
    int events = 0;

    for (int i = 0; i < count; i++)
        events += velo_mq_progress(nodes[i].mq);
    return events;
}

/* The longest time for which what was sent is under way, by the clock that we see. */
static int64_t quiet_ns(void)
{
    const char *network = getenv("VELO_NETWORK");

    if (test_is_by_node() && !is_simulated())
        return QUIET_BY_CARD_NS;
    return network && strstr(network, "ofi") ? QUIET_NS : 0;
}

void nodes_settle(struct node *nodes, int count)
{
    int64_t deadline_ns = test_now_ns() + TEST_PATIENCE_NS;
    int64_t silence_ns = quiet_ns();
    int64_t event_ns = test_now_ns();

    for (int quiet = 0; quiet < QUIET_ROUNDS || test_now_ns() < event_ns + silence_ns; quiet++) {
        if (progress_all(nodes, count) > 0) {
            quiet = -1;
            event_ns = test_now_ns();
        } else if (is_simulated()) {
            test_sleep_ns(ON_ITS_WAY_NS);
        }
        CHECK(test_now_ns() < deadline_ns);
    }
}

void nodes_finish(struct node *nodes, int count, const struct velo_mq_request *request)
{
    int64_t deadline_ns = test_now_ns() + TEST_PATIENCE_NS;

    while (request->status == VELO_AGAIN) {
        (void)progress_all(nodes, count);
        CHECK(test_now_ns() < deadline_ns);
    }
}
