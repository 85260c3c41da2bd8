/* SPDX-License-Identifier: Apache-2.0 */
/* Two copies of the library in one process: who lives is known to both, and to others. */
#include <dlfcn.h>
#include <unistd.h>

#include "test.h"

/* The second copy; the first is linked. */
struct copy {
    __typeof__(velo_port_open) *port_open;
    __typeof__(velo_port_close) *port_close;
    __typeof__(velo_connect) *connect;
    __typeof__(velo_disconnect) *disconnect;
    __typeof__(velo_send) *send;
    __typeof__(velo_conn_status) *conn_status;
};

static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    CHECK(symbol != NULL);
    return symbol;
}

static struct copy copy_load(void)
{
    /* A name space of its own, so that nothing is shared but the process. */
    void *library = dlmopen(LM_ID_NEWLM, VELO_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    struct copy copy;

    CHECK(library != NULL);
    copy.port_open = find(library, "velo_port_open");
    copy.port_close = find(library, "velo_port_close");
    copy.connect = find(library, "velo_connect");
    copy.disconnect = find(library, "velo_disconnect");
    copy.send = find(library, "velo_send");
    copy.conn_status = find(library, "velo_conn_status");
    CHECK((void *)copy.port_open != (void *)velo_port_open);
    return copy;
}

static struct velo_port *copy_open(const struct copy *copy, int vpid)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;

    attr.domain = test_domain();
    attr.vpid = vpid;
    CHECK_OK(copy->port_open(&attr, &port));
    return port;
}

struct watch {
    int *step; /* 1: the child is connected; 2: it may look. */
};

/* In another process: is the receiver still taken to live? */
static void watch_body(void *arg)
{
    const struct watch *watch = arg;
    struct velo_port *port = port_open(9);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));

    __atomic_store_n(watch->step, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(watch->step, __ATOMIC_ACQUIRE) < 2)
        usleep(1000);
    CHECK_OK(velo_conn_status(conn));
    CHECK_OK(velo_send(conn, "x", 1, 0, VELO_FOREVER));
    CHECK_OK(velo_port_close(port));
}

TEST(a_second_copy_that_comes_and_goes_leaves_the_ports_of_the_first_alive)
{
    struct watch watch = {test_shared_alloc(sizeof(int))};
    pid_t child = child_start(watch_body, &watch);
    struct velo_port *port = port_open(0);
    struct copy copy = copy_load();
    struct velo_port *other = copy_open(&copy, 2);
    struct velo_conn *conn;
    char byte;

    CHECK_OK(copy.connect(other, VELO_ID(0, 0), &conn, 0));
    CHECK_OK(copy.conn_status(conn));
    CHECK_OK(copy.send(conn, "y", 1, 0, VELO_FOREVER));
    CHECK_OK(velo_recv(port, &byte, 1, NULL, TEST_PATIENCE_NS));
    CHECK_EQ(byte, 'y');
    CHECK_OK(copy.disconnect(conn));
    CHECK_OK(copy.port_close(other));
    while (__atomic_load_n(watch.step, __ATOMIC_ACQUIRE) < 1)
        usleep(1000);
    __atomic_store_n(watch.step, 2, __ATOMIC_RELEASE);
    CHECK_OK(velo_recv(port, &byte, 1, NULL, TEST_PATIENCE_NS));
    CHECK_EQ(byte, 'x');
    child_join(child);
    CHECK_OK(velo_port_close(port));
}

TEST(a_second_copy_cannot_open_a_port_that_the_first_has_open)
{
    struct velo_port *port = port_open(0);
    struct copy copy = copy_load();
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *other;

    attr.domain = test_domain();
    attr.vpid = 0;
    CHECK_STATUS(copy.port_open(&attr, &other), VELO_ERR_IN_USE);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(copy.port_open(&attr, &other));
    CHECK_STATUS(velo_port_open(&attr, &port), VELO_ERR_IN_USE);
    CHECK_OK(copy.port_close(other));
}

TEST(a_connection_of_one_copy_is_not_taken_for_dead_by_the_other)
{
    struct copy copy = copy_load();
    struct velo_port *port = port_open_sized(0, 0, 0, 1);
    struct velo_port *other = copy_open(&copy, 2);
    struct velo_conn *conn, *second;
    char byte;

    CHECK_OK(copy.connect(other, VELO_ID(0, 0), &conn, 0));
    /* The table is full: the receiver looks for the dead. */
    CHECK_STATUS(velo_connect(port, VELO_ID(0, 0), &second, 0), VELO_ERR_FULL);
    CHECK_STATUS(velo_recv(port, &byte, 1, NULL, TEST_MS), VELO_TIMEOUT);
    CHECK_OK(copy.send(conn, "z", 1, 0, VELO_FOREVER));
    CHECK_OK(velo_recv(port, &byte, 1, NULL, TEST_PATIENCE_NS));
    CHECK_EQ(byte, 'z');
    CHECK_OK(copy.port_close(other));
    CHECK_OK(velo_port_close(port));
}

static void child_body(void *arg)
{
    const struct copy *copy = arg;
    struct velo_port *port = port_open(4);
    struct velo_port *other = copy_open(copy, 5);

    CHECK_OK(velo_port_close(port));
    CHECK_OK(copy->port_close(other));
}

TEST(a_child_has_neither_ports_nor_locks_of_its_parent_in_either_copy)
{
    struct copy copy = copy_load();
    struct velo_port *port = port_open(0);
    struct velo_port *other = copy_open(&copy, 2);
    struct velo_conn *conn;

    child_join(child_start(child_body, &copy));
    CHECK_OK(velo_connect(port, VELO_ID(0, 2), &conn, 0));
    CHECK_OK(velo_conn_status(conn));
    CHECK_OK(velo_disconnect(conn));
    CHECK_OK(copy.connect(other, VELO_ID(0, 0), &conn, 0));
    CHECK_OK(copy.conn_status(conn));
    CHECK_OK(copy.port_close(other));
    CHECK_OK(velo_port_close(port));
}
