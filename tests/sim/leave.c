/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender leaves by the network, and its place in the receiver's table is free when that has come.
 * Until then nothing says that it lives: run with a bus that is slower (--dma-ns) than the time
 * after which silence is taken for death.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { SLOTS = 8, DATA_BYTES = 16384, PLACES = 1 };
#define ROUNDS 20u
/* By then a message is there, however slow the bus. */
#define ARRIVED_NS (10 * TEST_MS)

/* The only place, as soon as the connection before has left it. */
static struct velo_conn *take_place(struct velo_port *port)
{
    struct velo_conn *conn = NULL;
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    int status;

    while ((status = velo_connect(port, VELO_ID(0, 0), &conn, 0)) == VELO_ERR_FULL) {
        CHECK(test_now_ns() < end_ns);
        test_sleep_ns(10 * TEST_US);
    }
    CHECK_OK(status);
    return conn;
}

static struct velo_port *come_and_go(void)
{
    struct velo_port *port = port_open(1);

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct velo_conn *conn = take_place(port);

        message_send(conn, 8, i);
        CHECK_OK(velo_disconnect(conn));
    }
    return port;
}

static void leave(void *arg)
{
    (void)arg;
    CHECK_OK(velo_port_close(come_and_go()));
}

static void leave_and_die(void *arg)
{
    struct velo_port *port = come_and_go();

    (void)arg;
    message_send(take_place(port), 8, ROUNDS);
    test_sleep_ns(ARRIVED_NS);
    (void)kill(getpid(), SIGKILL);
}

static void expect_messages(struct velo_port *port, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        message_expect(port, 8, i, VELO_ID(0, 1));
}

static void check_reclaimed(struct velo_port *port, uint64_t count)
{
    struct velo_port_counters counters;

    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK_EQ(counters.rx_reclaimed, count);
}

TEST(who_leaves_is_not_taken_for_dead_before_the_network_has_told)
{
    struct velo_port *port = port_open_sized(0, SLOTS, DATA_BYTES, PLACES);
    pid_t child = child_start(leave, NULL);

    expect_messages(port, ROUNDS);
    child_join(child);
    check_reclaimed(port, 0);
    CHECK_OK(velo_port_close(port));
}

TEST(who_dies_in_the_place_of_one_that_left_is_found_dead)
{
    struct velo_port *port = port_open_sized(0, SLOTS, DATA_BYTES, PLACES);
    pid_t child = child_start(leave_and_die, NULL);
    struct velo_conn *conn;

    expect_messages(port, ROUNDS + 1);
    CHECK_EQ(WTERMSIG(child_wait(child)), SIGKILL);
    /* Its place is free again, for the receiver itself. */
    CHECK_STATUS(velo_recv(port, NULL, 0, NULL, TEST_PATIENCE_NS), VELO_TIMEOUT);
    check_reclaimed(port, 1);
    conn = port_connect(port, VELO_ID(0, 0));
    CHECK_OK(velo_disconnect(conn));
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1))); /* Whoever has its name next removes its files. */
}
