/* SPDX-License-Identifier: Apache-2.0 */
/* `velo info` and `velo top` are told of each connection, with the transport that reaches the peer.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bcast/inspect.h"
#include "shm/inspect.h"
#include "shm/outgoing.h"
#include "shm/shape.h"
#include "test.h"

enum { PORTS = 3, LINES = 8 };

/* A line for each port: its connections, and how many messages it has sent. */
struct seen {
    char text[LINES][256];
    int len;
};

static int note(void *arg, const struct velo_port_view *view)
{
    struct seen *seen = arg;
    char *line = seen->text[seen->len++];
    int at = snprintf(line, sizeof seen->text[0], "%u:", VELO_ID_VPID(view->id));

    for (size_t i = 0; i < view->conns_len; i++) {
        const struct velo_conn_view *conn = &view->conns[i];
        CHECK_EQ(conn->port, view->id);
        at += snprintf(line + at, sizeof seen->text[0] - (size_t)at, " %s%c%u", conn->transport,
                       conn->is_outgoing ? '>' : '<', VELO_ID_VPID(conn->peer));
    }
    snprintf(line + at, sizeof seen->text[0] - (size_t)at, " sent %u",
             (unsigned)view->counters.tx_msgs);
    return 0;
}

static void look(void *arg) { CHECK_OK(velo_inspect_domain(test_domain(), note, arg)); }

/* In a child: looking opens files, and closing them would drop the locks of a process that has
 * ports. */
static void expect(const char *const *lines, int len)
{
    struct seen *seen = test_shared_alloc(sizeof *seen);

    child_join(child_start(look, seen));
    CHECK_EQ(seen->len, len);
    for (int i = 0; i < len; i++)
        if (strcmp(seen->text[i], lines[i]) != 0)
            test_fail(__FILE__, __LINE__, "expected '%s', found '%s'", lines[i], seen->text[i]);
}

/* The program says the same. */
static void expect_json(const char *text)
{
#ifdef VELO_INFO
    static char json[65536];
    FILE *output = popen(VELO_INFO " --json", "r");
    CHECK(output != NULL);
    size_t len = fread(json, 1, sizeof json - 1, output);
    json[len] = '\0';
    CHECK_EQ(pclose(output), 0);
    if (!strstr(json, text))
        test_fail(__FILE__, __LINE__, "expected %s in %s", text, json);
#else
    (void)text;
#endif
}

/* Until all that was sent has come. */
static void settle(struct velo_port *const *ports, int len)
{
    struct velo_msg msg;
    char buf[8];

    for (int looks = 0; looks < 100; looks++) {
        for (int i = 0; i < len; i++)
            (void)velo_try_recv(ports[i], buf, sizeof buf, &msg);
        test_sleep_ns(TEST_MS);
    }
}

/* Vpids 0 and 2 share memory, vpid 1 is reached over a transport. */
TEST(each_connection_is_shown_with_what_reaches_its_peer)
{
    static const char *const connected[] = {"0: shm<2 loop>1 loop>1 sent 3",
                                            "1: loop<0 loop<0 sent 0", "2: shm>0 sent 1"};
    static const char *const left[] = {"0: loop>1 sent 2", "1: loop<0 sent 0", "2: sent 0"};
    struct velo_port *ports[PORTS];
    struct velo_conn *conns[PORTS];
    struct velo_msg msg;
    char buf[8];

    CHECK_EQ(setenv("VELO_NETWORK", "loop,spread=2", 1), 0);
    for (int i = 0; i < PORTS; i++)
        ports[i] = port_open(i);
    conns[0] = port_connect(ports[0], VELO_ID(0, 1));
    conns[1] = port_connect(ports[0], VELO_ID(0, 1));
    conns[2] = port_connect(ports[2], VELO_ID(0, 0));
    CHECK_OK(velo_send(conns[0], "x", 1, 7, VELO_FOREVER));
    for (int i = 0; i < PORTS; i++)
        CHECK_OK(velo_send(conns[i], "x", 1, 7, VELO_FOREVER));
    /* Of those in shared memory a sender shows its counters now and then. */
    CHECK_OK(velo_recv(ports[0], buf, sizeof buf, &msg, TEST_PATIENCE_NS));
    expect(connected, PORTS);
    expect_json("\"connections\":{\"shm\":{\"in\":[\"0.2\"]},"
                "\"loop\":{\"out\":[\"0.1\",\"0.1\"]}},\"counters\"");
    expect_json("\"connections\":{\"shm\":{\"out\":[\"0.0\"]}},\"counters\"");
    CHECK_OK(velo_disconnect(conns[1]));
    CHECK_OK(velo_disconnect(conns[2]));
    settle(ports, PORTS);
    expect(left, PORTS);
    expect_json("\"connections\":{},\"counters\"");
    for (int i = 0; i < PORTS; i++)
        CHECK_OK(velo_port_close(ports[i]));
    CHECK_EQ(unsetenv("VELO_NETWORK"), 0);
}

TEST(a_connection_that_ended_leaves_its_line_to_the_next)
{
    static const char *const one[] = {"0: loop<0 loop>0 sent 0"};
    struct velo_port *port;

    CHECK_EQ(setenv("VELO_NETWORK", "loop,own=loop", 1), 0);
    port = port_open(0);
    for (int i = 0; i < 3; i++) {
        struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
        expect(one, 1);
        CHECK_OK(velo_disconnect(conn));
        settle(&port, 1);
    }
    CHECK_OK(velo_port_close(port));
    CHECK_EQ(unsetenv("VELO_NETWORK"), 0);
}

/* A segment's memory may hold anything. */
static void scribble(void *arg)
{
    struct segment segment = {0};
    char path[4096];
    int fd;

    (void)arg;
    CHECK_OK(seg_shape_init(&segment.shape, 8, 16384, 4));
    snprintf(path, sizeof path, "%s/velo.%s.0.0", test_shm_dir(), test_domain());
    fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    segment.header =
        mmap(NULL, segment.shape.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(segment.header != MAP_FAILED);
    memset(seg_ring(&segment, 0)->transport, '"', SEG_TRANSPORT_BYTES);
    segment.header->outgoing_len = UINT64_MAX;
    for (uint32_t i = 0; i < SEG_OUTGOING_MAX; i += SEG_OUTGOING_MAX - 1) {
        seg_outgoing(&segment, i)->entry = entry_pack(ENTRY_READY, VELO_ID(0, 7), 1);
        memset(seg_outgoing(&segment, i)->transport, 0xff, SEG_TRANSPORT_BYTES);
    }
}

TEST(a_transport_s_name_that_is_none_is_shown_without_harm)
{
    static const char *const lines[] = {
        "0: ...............<1 ...............>7 ...............>7 sent 0", "1: sent 0"};
    struct velo_port *port = port_open_sized(0, 8, 16384, 4);
    struct velo_port *sender = port_open(1);
    struct velo_conn *conn = port_connect(sender, VELO_ID(0, 0));

    child_join(child_start(scribble, NULL));
    expect(lines, 2);
    CHECK_OK(velo_disconnect(conn));
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(port));
}

static int note_ring(void *arg, const struct velo_ring_view *view)
{
    struct velo_ring_view *seen = arg;
    CHECK_EQ(seen->depth_slots, 0); /* There is one. */
    *seen = *view;
    return 0;
}

static void look_for_rings(void *arg)
{
    CHECK_OK(velo_inspect_rings(test_domain(), note_ring, arg));
}

static struct velo_ring_view ring_seen(void)
{
    struct velo_ring_view *seen = test_shared_alloc(sizeof *seen);
    child_join(child_start(look_for_rings, seen));
    return *seen;
}

static void join_and_die(void *arg)
{
    struct velo_bcast_reader *reader;
    (void)arg;
    CHECK_OK(velo_bcast_join(&(struct velo_bcast_attr)VELO_BCAST_ATTR_INIT, &reader, 0));
    _exit(0);
}

TEST(a_ring_is_shown_with_its_living_readers_and_how_far_the_slowest_is_behind)
{
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    struct velo_bcast *ring;
    struct velo_bcast_reader *fast, *slow;
    struct velo_msg msg;
    char buf[8];

    CHECK_EQ(ring_seen().depth_slots, 0);
    attr.depth_slots = 16;
    attr.readers_max = 4;
    CHECK_OK(velo_bcast_open(&attr, &ring));
    CHECK_OK(velo_bcast_join(&attr, &fast, 0));
    CHECK_OK(velo_bcast_join(&attr, &slow, 0));
    child_join(child_start(join_and_die, NULL));
    for (int i = 0; i < 5; i++)
        CHECK_OK(velo_bcast_send(ring, "x", 1, 7, 0));
    for (int i = 0; i < 3; i++)
        CHECK_OK(velo_bcast_recv(fast, buf, sizeof buf, &msg, 0));

    struct velo_ring_view seen = ring_seen();
    CHECK(seen.alive && !seen.drops);
    CHECK_EQ(seen.depth_slots, 16);
    CHECK_EQ(seen.readers_max, 4);
    CHECK_EQ(seen.readers, 2);
    CHECK_EQ(seen.msgs, 5);
    CHECK_EQ(seen.behind_msgs, 5);
    expect_json("],\"rings\":[{\"id\":0,\"node\":0,\"vpid\":0,");
    expect_json("\"readers\":2,\"readers_max\":4,\"msgs\":5,\"behind_msgs\":5,");

    CHECK_OK(velo_bcast_leave(slow));
    seen = ring_seen();
    CHECK_EQ(seen.readers, 1);
    CHECK_EQ(seen.behind_msgs, 2);
    CHECK_OK(velo_bcast_leave(fast));
    CHECK_OK(velo_bcast_close(ring));
    CHECK_EQ(ring_seen().depth_slots, 0);
    expect_json("\"rings\":[]");
}

/* What `velo info` says of the copies is what a port of this environment does. */
TEST(info_tells_the_copies_and_the_way_of_long_messages)
{
    static const struct {
        const char *name, *value, *expected;
    } cases[] = {
        {"VELO_COPY", "lines", "{\"by\":\"lines\",\"long_bytes\":null,\"reason\":\"VELO_COPY\""},
        {"VELO_COPY", "libc", "{\"by\":\"libc\",\"long_bytes\":6144,\"reason\":\"VELO_COPY\""},
        {"VELO_COPY_BYTES", "777", "\"long_bytes\":777,\"reason\":\"VELO_COPY_BYTES\""},
        {"VELO_MQ_PATH", "auto", "\"path\":\"measured\",\"path_bytes\":1048576}"},
        {"VELO_MQ_PATH", "copy", "\"path\":\"copy\",\"path_bytes\":0}"},
        {"VELO_MQ_PATH", "get", "\"path\":\"get\",\"path_bytes\":0}"},
        {"VELO_MQ_GET_BYTES", "64k", "\"path\":\"get\",\"path_bytes\":65536}"},
        {"VELO_RMA_ATTACH", "0", "\"path\":\"copy\",\"path_bytes\":0}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        setenv(cases[i].name, cases[i].value, 1);
        expect_json(cases[i].expected);
        unsetenv(cases[i].name);
    }
}
