/* SPDX-License-Identifier: Apache-2.0 */
/* How a port finds its peers: by names that are handed over, and by a map. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <velo/rma.h>

#include "test.h"

static void open_two(struct velo_port *ports[2])
{
    for (int node = 0; node < 2; node++) {
        struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
        attr.node = node;
        attr.vpid = 0;
        CHECK_OK(velo_port_open(&attr, &ports[node]));
    }
}

/* Another machine sees nothing of this one's memory. */
static char *other_machine(void)
{
    static char dir[] = "/tmp/velo-machine-XXXXXX";
    CHECK(mkdtemp(dir) == dir);
    CHECK_EQ(setenv("VELO_SHM_DIR", dir, 1), 0);
    return dir;
}

TEST(a_peer_elsewhere_is_reached_by_its_name_and_not_without)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port = port_open(0), *other;
    struct velo_conn *conn;
    char name[VELO_PORT_NAME_BYTES_MAX];
    size_t name_bytes = 3;
    char *dir = other_machine();

    attr.vpid = 1;
    CHECK_OK(velo_port_open(&attr, &other));
    CHECK_FAILS(velo_connect(other, VELO_ID(0, 0), &conn, 0), VELO_ERR_NO_PEER, "[hosts]");
    CHECK_STATUS(velo_port_name(port, name, &name_bytes), VELO_ERR_TOO_BIG);
    name_bytes = sizeof name;
    CHECK_OK(velo_port_name(port, name, &name_bytes));
    CHECK_FAILS(velo_peer_name(other, VELO_ID(0, 0), "no such name", 12), VELO_ERR_ARG, "no name");
    CHECK_FAILS(velo_peer_name(other, VELO_ID(0, 0), name, name_bytes - 1), VELO_ERR_ARG,
                "provider");
    CHECK_OK(velo_peer_name(other, VELO_ID(0, 0), name, name_bytes));
    conn = port_connect(other, VELO_ID(0, 0));
    message_send(conn, 100, 1);
    message_expect(port, 100, 1, VELO_ID(0, 1));
    CHECK_OK(velo_port_close(other));
    CHECK_OK(velo_port_close(port));
    CHECK_EQ(rmdir(dir), 0);
}

/* The port that serves remote memory is beside the user's: the name of the user's is enough. */
TEST(remote_memory_needs_no_name_of_its_own)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port = port_open(0), *other;
    struct velo_rma *rma, *other_rma;
    struct velo_rma_peer *peer;
    char name[VELO_PORT_NAME_BYTES_MAX];
    size_t name_bytes = sizeof name;
    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK_OK(velo_port_name(port, name, &name_bytes));
    char *dir = other_machine();
    attr.vpid = 1;
    CHECK_OK(velo_port_open(&attr, &other));
    CHECK_OK(velo_rma_open(other, NULL, &other_rma));
    CHECK_OK(velo_peer_name(other, VELO_ID(0, 0), name, name_bytes));
    CHECK_OK(velo_rma_connect(other_rma, VELO_ID(0, 0), &peer, TEST_PATIENCE_NS));
    CHECK_OK(velo_rma_close(other_rma));
    CHECK_OK(velo_port_close(other));
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
    CHECK_EQ(rmdir(dir), 0);
}

/* A number of which the next 256 are free, too, most likely. */
static unsigned free_service(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, len), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port) < 60000 ? ntohs(address.sin_port)
                                           : 20000 + (unsigned)getpid() % 9999;
}

static void write_map(char *path, const char *hosts)
{
    int file = mkstemp(path);
    CHECK(file >= 0);
    CHECK(dprintf(file, "own = \"ofi\"\nothers = \"ofi\"\n[hosts]\n%s\n", hosts) > 0);
    close(file);
    CHECK_EQ(setenv("VELO_NETWORK", path, 1), 0);
}

TEST(a_map_of_hosts_leads_to_peers)
{
    char path[] = "/tmp/velo-map-XXXXXX", hosts[64];
    struct velo_port *ports[2];
    struct velo_rma *rma[2];
    struct velo_rma_peer *peer;
    (void)snprintf(hosts, sizeof hosts, "\"0-1\" = \"127.0.0.1:%u\"", free_service());
    write_map(path, hosts);
    open_two(ports);
    struct velo_conn *conn = port_connect(ports[0], VELO_ID(1, 0));
    message_send(conn, 100, 1);
    message_expect(ports[1], 100, 1, VELO_ID(0, 0));
    for (int i = 0; i < 2; i++)
        CHECK_OK(velo_rma_open(ports[i], NULL, &rma[i]));
    CHECK_OK(velo_rma_connect(rma[0], VELO_ID(1, 0), &peer, TEST_PATIENCE_NS));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(velo_rma_close(rma[i]));
        CHECK_OK(velo_port_close(ports[i]));
    }
    CHECK_EQ(unlink(path), 0);
}

/* libfabric has endpoints, but not there: it has no error of its own. */
TEST(an_interface_that_is_not_there_is_named)
{
    struct velo_port *port;
    CHECK_EQ(setenv("VELO_OFI_INTERFACE", "nowhere0", 1), 0);
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_SYSTEM, "at nowhere0 that takes");
    CHECK(!strstr(velo_last_error(), "Success"));
}

TEST(a_port_that_the_map_names_and_nobody_has_is_named)
{
    char path[] = "/tmp/velo-map-XXXXXX", hosts[64];
    struct velo_port *port;
    struct velo_conn *conn;
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    (void)snprintf(hosts, sizeof hosts, "\"0-1\" = \"127.0.0.1:%u\"", free_service());
    write_map(path, hosts);
    attr.vpid = 0;
    CHECK_OK(velo_port_open(&attr, &port));
    CHECK_FAILS(velo_connect(port, VELO_ID(1, 7), &conn, 0), VELO_TIMEOUT,
                "nobody answers as port 1.7");
    CHECK_OK(velo_port_close(port));
    CHECK_EQ(unlink(path), 0);
}

TEST(a_line_of_hosts_that_makes_no_sense_is_named)
{
    static const char *const bad[] = {"0 = \"\"",       "0 = \"host:0\"", "0 = \"host:65536\"",
                                      "0 = \"host:x\"", "256 = \"host\"", "\"3-2\" = \"host\"",
                                      "0 = host"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char path[] = "/tmp/velo-map-XXXXXX";
        struct velo_port *port;
        write_map(path, bad[i]);
        CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_ARG, "[hosts]");
        CHECK_EQ(unlink(path), 0);
    }
}

/* ---- forks ----------------------------------------------------------------------------------- */

enum { FILES_MAX = 64 };

/* Numbers at which the process listens by TCP. */
static int listening(in_port_t numbers[FILES_MAX])
{
    int count = 0;

    for (int fd = 3; fd < 4 * FILES_MAX && count < FILES_MAX; fd++) {
        struct sockaddr_in own = {0};
        socklen_t len = sizeof own, on_bytes = sizeof(int);
        int on = 0;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &on_bytes) == 0 && on &&
            getsockname(fd, (struct sockaddr *)&own, &len) == 0 && own.sin_family == AF_INET)
            numbers[count++] = own.sin_port;
    }
    return count;
}

static int bound(int type, const char *address, in_port_t number)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = number};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK_EQ(inet_pton(AF_INET, address, &own.sin_addr), 1);
    if (bind(fd, (const struct sockaddr *)&own, sizeof own) == 0)
        return fd;
    (void)close(fd); /* libfabric listens at all addresses. */
    return -1;
}

struct sockets {
    int fds[2 * FILES_MAX];
    int len;
};

static void look_for_them(void *arg)
{
    const struct sockets *sockets = arg;
    in_port_t numbers[FILES_MAX];

    for (int i = 0; i < sockets->len; i++)
        CHECK(fcntl(sockets->fds[i], F_GETFD) >= 0);
    CHECK_EQ(listening(numbers), 0);
}

TEST(a_child_keeps_sockets_of_the_program_that_have_the_endpoint_s_number)
{
    struct velo_port *port = port_open(0), *peer;
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct sockets sockets = {.len = 0};
    in_port_t numbers[FILES_MAX];

    attr.node = 1;
    attr.vpid = 0;
    CHECK_OK(velo_port_open(&attr, &peer));
    struct velo_conn *conn = port_connect(peer, VELO_ID(0, 0));
    message_send(conn, 40, 0);
    message_expect(port, 40, 0, VELO_ID(1, 0));
    int count = listening(numbers);
    CHECK(count > 0);
    for (int i = 0; i < count; i++) {
        int datagrams = bound(SOCK_DGRAM, "127.0.0.1", numbers[i]);
        int elsewhere = bound(SOCK_STREAM, "127.0.0.77", numbers[i]);
        CHECK(datagrams >= 0);
        sockets.fds[sockets.len++] = datagrams;
        if (elsewhere >= 0)
            sockets.fds[sockets.len++] = elsewhere;
    }
    child_join(child_start(look_for_them, &sockets));
    message_send(conn, 40, 1);
    message_expect(port, 40, 1, VELO_ID(1, 0));
    for (int i = 0; i < sockets.len; i++)
        CHECK_EQ(close(sockets.fds[i]), 0);
    CHECK_OK(velo_port_close(peer));
    CHECK_OK(velo_port_close(port));
}
