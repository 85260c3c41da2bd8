/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that are not there, not there any more, or there already. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* Own port 5 until killed. */
struct owner {
    atomic_int ready;
    atomic_int child;
    bool with_child;
};

static _Noreturn void sleep_until_killed(void)
{
    for (;;)
        pause();
}

static void own_port_5(void *arg)
{
    struct owner *owner = arg;
    struct velo_port *port = port_open(5);

    (void)port;
    if (owner->with_child) {
        pid_t child = fork();

        CHECK(child >= 0);
        if (child == 0)
            sleep_until_killed(); /* It must not tell that its parent is ready. */
        atomic_store(&owner->child, child);
    }
    atomic_store(&owner->ready, 1);
    sleep_until_killed();
}

static pid_t owner_start(struct owner *owner)
{
    pid_t pid = child_start(own_port_5, owner);

    while (atomic_load(&owner->ready) == 0)
        test_sleep_ns(100 * TEST_US);
    return pid;
}

/* A port from before the death: where none lives, anybody who starts takes the name away. */
static struct velo_port *watcher_open(void) { return port_open(9); }

static void check_dead_and_reclaim(struct velo_port *watcher)
{
    struct velo_conn *conn = NULL;

    CHECK_FAILS(velo_connect(watcher, VELO_ID(0, 5), &conn, 0), VELO_ERR_PEER_DEAD, "5");
    CHECK_OK(velo_port_close(watcher));
    struct velo_port *port = port_open(5);
    message_send(port_connect(port, VELO_ID(0, 5)), 8, 1);
    message_expect(port, 8, 1, VELO_ID(0, 5));
    CHECK_OK(velo_port_close(port));
}

TEST(an_unknown_peer_is_reported)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = NULL;

    CHECK_FAILS(velo_connect(port, VELO_ID(3, 77), &conn, 0), VELO_ERR_NO_PEER, "3.77");
    CHECK(conn == NULL);
    CHECK_OK(velo_port_close(port));
}

TEST(a_name_is_in_use_while_its_process_lives)
{
    struct owner *owner = test_shared_alloc(sizeof(*owner));
    pid_t pid = owner_start(owner);
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port = NULL;

    attr.vpid = 5;
    CHECK_FAILS(velo_port_open(&attr, &port), VELO_ERR_IN_USE, "vpid");

    /* Neither connected to, nor stopped, does it lose its name. */
    struct velo_port *other = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(other, VELO_ID(0, 5));
    CHECK_FAILS(velo_port_open(&attr, &port), VELO_ERR_IN_USE, "vpid");
    kill(pid, SIGSTOP);
    CHECK_FAILS(velo_port_open(&attr, &port), VELO_ERR_IN_USE, "vpid");
    CHECK_OK(velo_send(conn, "x", 1, 0, VELO_FOREVER));
    CHECK_OK(velo_port_close(other));
    CHECK_FAILS(velo_port_open(&attr, &port), VELO_ERR_IN_USE, "vpid");

    struct velo_port *watcher = watcher_open();
    child_kill(pid);
    check_dead_and_reclaim(watcher);
}

TEST(a_name_is_in_use_in_the_process_that_opened_it)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port = port_open(5), *second = NULL;

    attr.vpid = 5;
    CHECK_FAILS(velo_port_open(&attr, &second), VELO_ERR_IN_USE, "vpid");
    /* The refusal took nothing from the port: it still counts as alive. */
    message_send(port_connect(port, VELO_ID(0, 5)), 8, 1);
    message_expect(port, 8, 1, VELO_ID(0, 5));
    CHECK_OK(velo_port_close(port));
}

TEST(a_segment_of_a_killed_process_is_taken_away)
{
    for (int i = 0; i < 10; i++) {
        struct owner *owner = test_shared_alloc(sizeof(*owner));
        struct velo_port *watcher = watcher_open();

        child_kill(owner_start(owner));
        check_dead_and_reclaim(watcher);
    }
}

TEST(any_takes_a_vpid_that_a_dead_process_left)
{
    struct velo_port *ports[6];
    struct owner *owner = test_shared_alloc(sizeof(*owner));

    child_kill(owner_start(owner));
    for (int i = 0; i < 6; i++) {
        ports[i] = port_open(VELO_VPID_ANY);
        CHECK_EQ(velo_port_id(ports[i]), VELO_ID(0, i));
    }
    for (int i = 0; i < 6; i++)
        CHECK_OK(velo_port_close(ports[i]));
}

/* kill(pid, 0) still finds a process that nobody has waited for. */
TEST(a_killed_process_is_dead_before_it_is_reaped)
{
    struct owner *owner = test_shared_alloc(sizeof(*owner));
    struct velo_port *watcher = watcher_open();
    pid_t pid = owner_start(owner);
    siginfo_t info;

    kill(pid, SIGKILL);
    CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    check_dead_and_reclaim(watcher);
    child_wait(pid);
}

/* Descriptors and mappings that a child inherits must not keep its parent's port alive. */
TEST(a_killed_process_is_dead_though_its_child_lives_on)
{
    struct owner *owner = test_shared_alloc(sizeof(*owner));
    struct velo_port *watcher = watcher_open();

    owner->with_child = true;
    child_kill(owner_start(owner));
    check_dead_and_reclaim(watcher);
    CHECK(atomic_load(&owner->child) > 0); /* kill(0) would reach all who run this test. */
    kill(atomic_load(&owner->child), SIGKILL);
}

TEST(a_full_node_refuses_another_context)
{
    struct velo_port *ports[256], *extra = NULL;

    for (int i = 0; i < 256; i++)
        ports[i] = port_open_sized(VELO_VPID_ANY, 8, 16384, 1);
    CHECK_FAILS(velo_port_open(NULL, &extra), VELO_ERR_FULL, "node");
    for (int i = 0; i < 256; i++)
        CHECK_OK(velo_port_close(ports[i]));
}

TEST(a_full_connection_table_is_reported)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 0, 0, 1);
    struct velo_conn *conn = port_connect(port, velo_port_id(port)), *extra = NULL;

    CHECK_FAILS(velo_connect(port, velo_port_id(port), &extra, 0), VELO_ERR_FULL, "conns_max");
    CHECK_FAILS(velo_connect(port, velo_port_id(port), &extra, TEST_MS), VELO_ERR_FULL,
                "conns_max");
    message_send(conn, 8, 1);
    message_expect(port, 8, 1, velo_port_id(port));
    CHECK_OK(velo_port_close(port));
}
