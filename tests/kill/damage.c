/* SPDX-License-Identifier: Apache-2.0 */
/* A ring in which both its ends find damage: its entry is its sender's as long as that lives. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/hook.h"
#include "core/entry.h"
#include "core/port.h"
#include "test.h"

static struct velo_port *only_place_open(void)
{
    struct velo_port_attr attr = {.size_bytes = sizeof(attr), .vpid = 1, .conns_max = 1};
    struct velo_port *port;

    CHECK_OK(velo_port_open(&attr, &port));
    return port;
}

static uint64_t *entry_of(struct velo_port *port) { return &port->segment->entries[0]; }

static enum entry_state state_of(struct velo_port *port)
{
    return entry_state(order_read_entry(entry_of(port)));
}

/* Where the next message of an admitted sender may come. */
static void damage(struct velo_port *port)
{
    const struct ring_rx *rx = &port->rings[0];
    uint64_t foul = rx->expect ^ (RING_CHECK & ~(VELO_HEADER_SEQ_MASK | VELO_HEADER_VALID_MASK));

    memcpy(&seg_ring(port->segment, 0)->slots[rx->head % port->shape.depth_slots], &foul,
           sizeof foul);
}

/* What a sender does that finds damage. */
static void refuse_as_sender(struct velo_port *port)
{
    uint64_t entry = order_read_entry(entry_of(port));

    CHECK_EQ(entry_state(entry), ENTRY_READY);
    CHECK(order_claim_entry(entry_of(port), entry, entry_in_state(entry, ENTRY_REFUSED)));
}

static void expect_place(struct velo_port *port)
{
    struct velo_port *next = port_open(3);

    CHECK_EQ(state_of(port), ENTRY_FREE);
    message_send(port_connect(next, VELO_ID(0, 1)), 8, 3);
    message_expect(port, 8, 3, VELO_ID(0, 3));
    CHECK_OK(velo_port_close(next));
    CHECK_OK(velo_port_close(port));
}

static struct velo_port *hook_port;

static void refuse_at_the_same_time(unsigned point)
{
    if (point != HOOK_REFUSING || !hook_port)
        return;
    refuse_as_sender(hook_port);
    hook_port = NULL;
}

TEST(a_sender_that_finds_damage_with_its_receiver_keeps_its_entry)
{
    struct velo_port *port = only_place_open();
    struct velo_port *sender = port_open(2);
    struct velo_conn *conn = port_connect(sender, VELO_ID(0, 1)), *other;

    CHECK_STATUS(velo_try_recv(port, NULL, 0, NULL), VELO_AGAIN);
    damage(port);
    entry_ring(port->segment, 0);
    hook_port = port;
    velo_test_hook = refuse_at_the_same_time;
    CHECK_STATUS(velo_try_recv(port, NULL, 0, NULL), VELO_AGAIN);
    velo_test_hook = NULL;
    CHECK(!hook_port);
    CHECK_EQ(state_of(port), ENTRY_REFUSED);
    CHECK_STATUS(velo_try_connect(sender, VELO_ID(0, 1), &other), VELO_ERR_FULL);
    CHECK_OK(velo_disconnect(conn));
    CHECK_STATUS(velo_try_recv(port, NULL, 0, NULL), VELO_AGAIN);
    CHECK_OK(velo_port_close(sender));
    expect_place(port);
}

static void connect_and_stay(void *arg)
{
    atomic_int *is_connected = arg;

    (void)port_connect(port_open(2), VELO_ID(0, 1));
    atomic_store(is_connected, 1);
    for (;;)
        pause();
}

TEST(a_sender_that_finds_damage_and_dies_leaves_its_entry)
{
    atomic_int *is_connected = test_shared_alloc(sizeof(*is_connected));
    struct velo_port *port = only_place_open();
    pid_t sender = child_start(connect_and_stay, is_connected);

    while (atomic_load(is_connected) == 0)
        test_sleep_ns(100 * TEST_US);
    CHECK_STATUS(velo_try_recv(port, NULL, 0, NULL), VELO_AGAIN);
    child_kill(sender);
    damage(port);
    refuse_as_sender(port);
    /* Before the receiver sees the damage it hears of the death. */
    order_set_flag(&port->shared->reap_request, 1);
    order_ring_summary(&port->shared->summary, 1);
    for (int polls = 0; polls < 10; polls++)
        CHECK_STATUS(velo_try_recv(port, NULL, 0, NULL), VELO_AGAIN);
    CHECK_OK(velo_port_close(port_open(2))); /* That takes the dead one's segment away. */
    expect_place(port);
}
