/* SPDX-License-Identifier: Apache-2.0 */
/* velo2.h: ports, connections, messages. Each test by the page of the call, over whatever carries.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <velo2.h>

#include "settings.h"
#include "test.h"

#define SUCCESS VELO2_RET_SUCCESS

static velo2_port_t opened(void)
{
    velo2_port_t port = {NULL};
    CHECK_EQ(velo2_open(&port), SUCCESS);
    CHECK(port.map != NULL);
    return port;
}

static velo2_port_t fresh(void)
{
    settings_clear();
    return opened();
}

static velo2_connection_t connected(velo2_port_t *port, velo2_nodeid_t node, velo2_vpid_t vpid)
{
    velo2_connection_t con;
    CHECK_EQ(velo2_connect(port, &con, node, vpid), SUCCESS);
    return con;
}

static velo2_connection_t to_itself(velo2_port_t *port)
{
    return connected(port, velo2_get_nodeid(port), velo2_get_vpid(port));
}

static void expect_nothing(velo2_port_t *port)
{
    char buf[VELO2_MTU];
    CHECK_EQ(velo2_probe_recv(port, buf, sizeof buf, NULL, NULL, NULL, NULL), VELO2_RET_NO_MSG);
}

static void send_number(velo2_connection_t *con, uint64_t number)
{
    CHECK_EQ(velo2_send(con, &number, sizeof number, (uint8_t)number, 0), SUCCESS);
}

static void expect_number(velo2_port_t *port, uint64_t expected)
{
    uint64_t number = ~expected;
    uint32_t len = 0;
    uint8_t tag = 0;
    CHECK_EQ(velo2_recv(port, &number, sizeof number, &len, NULL, &tag, 0), SUCCESS);
    CHECK_EQ(len, sizeof number);
    CHECK_EQ(number, expected);
    CHECK_EQ(tag, (uint8_t)expected);
}

/* ---- ports ----------------------------------------------------------------------------------- */

TEST(an_open_port_has_a_map_and_a_place)
{
    velo2_port_t port = fresh();
    CHECK_EQ(velo2_get_nodeid(&port), 0);
    CHECK(velo2_get_vpid(&port) < 252);
    CHECK_EQ(velo2_close(&port), SUCCESS);
    CHECK(port.map == NULL);
}

TEST(a_closed_port_is_refused_by_each_call)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = {{1}, NULL};
    char buf[8];
    CHECK_EQ(velo2_close(&port), SUCCESS);
    CHECK_EQ(velo2_close(&port), VELO2_RET_ERROR);
    CHECK_EQ(velo2_connect(&port, &con, 0, 0), VELO2_RET_ERROR);
    CHECK_EQ(velo2_disconnect(&port, &con), VELO2_RET_ERROR);
    CHECK_EQ(velo2_recv(&port, buf, 8, NULL, NULL, NULL, 0), VELO2_RET_ERROR);
    CHECK_EQ(velo2_probe_recv(&port, buf, 8, NULL, NULL, NULL, NULL), VELO2_RET_ERROR);
    CHECK_EQ(velo2_send(&con, buf, 8, 0, 0), VELO2_RET_ERROR);
    CHECK_EQ(velo2_get_nodeid(&port), UINT32_MAX);
    CHECK_EQ(velo2_get_vpid(&port), UINT32_MAX);
}

TEST(a_null_pointer_is_refused_by_each_call)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    CHECK_EQ(velo2_open(NULL), VELO2_RET_ERROR);
    CHECK_EQ(velo2_close(NULL), VELO2_RET_ERROR);
    CHECK_EQ(velo2_connect(NULL, &con, 0, 0), VELO2_RET_ERROR);
    CHECK_EQ(velo2_connect(&port, NULL, 0, 0), VELO2_RET_ERROR);
    CHECK_EQ(velo2_disconnect(NULL, &con), VELO2_RET_ERROR);
    CHECK_EQ(velo2_disconnect(&port, NULL), VELO2_RET_ERROR);
    CHECK_EQ(velo2_send(NULL, "", 0, 0, 0), VELO2_RET_ERROR);
    CHECK_EQ(velo2_recv(NULL, NULL, 0, NULL, NULL, NULL, 0), VELO2_RET_ERROR);
    CHECK_EQ(velo2_recv(&port, NULL, 1, NULL, NULL, NULL, 0), VELO2_RET_ERROR);
    CHECK_EQ(velo2_probe_recv(NULL, NULL, 0, NULL, NULL, NULL, NULL), VELO2_RET_ERROR);
    CHECK_EQ(velo2_probe_recv(&port, NULL, 1, NULL, NULL, NULL, NULL), VELO2_RET_ERROR);
    CHECK_EQ(velo2_get_nodeid(NULL), UINT32_MAX);
    CHECK_EQ(velo2_get_vpid(NULL), UINT32_MAX);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(ports_that_are_open_at_once_have_contexts_of_their_own)
{
    velo2_port_t a = fresh();
    velo2_port_t b = opened();
    CHECK(velo2_get_vpid(&a) != velo2_get_vpid(&b));
    velo2_vpid_t first = velo2_get_vpid(&a);
    CHECK_EQ(velo2_close(&a), SUCCESS);
    a = opened();
    CHECK_EQ(velo2_get_vpid(&a), first);
    CHECK_EQ(velo2_close(&a), SUCCESS);
    CHECK_EQ(velo2_close(&b), SUCCESS);
}

TEST(a_node_has_252_contexts_and_no_more)
{
    if (is_simulated())
        test_skip("a simulated node has fewer");
    static velo2_port_t ports[252];
    velo2_port_t more = {NULL};
    settings_clear();
    setenv("VELO2_QUEUE_SLOTS", "8", 1);
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        ports[i] = opened();
        CHECK_EQ(velo2_get_vpid(&ports[i]), i);
    }
    CHECK_EQ(velo2_open(&more), VELO2_RET_TRY_AGAIN);
    CHECK(more.map == NULL);
    velo2_connection_t con = connected(&ports[0], 0, 251);
    send_number(&con, 7);
    expect_number(&ports[251], 7);
    for (size_t i = 0; i < ARRAY_LEN(ports); i++)
        CHECK_EQ(velo2_close(&ports[i]), SUCCESS);
}

/* ---- the node -------------------------------------------------------------------------------- */

static void expect_node(velo2_nodeid_t node)
{
    velo2_port_t port = opened();
    CHECK_EQ(velo2_get_nodeid(&port), node);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(the_environment_says_which_node_this_is)
{
    if (is_simulated())
        test_skip("there are two simulated nodes");
    settings_clear();
    setenv("OMPI_COMM_WORLD_RANK", "7", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    expect_node(0); /* Without the size it says nothing. */
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    expect_node(3);
    setenv("SLURM_NODEID", "5", 1);
    expect_node(5);
    setenv("VELO_NODE", "255", 1);
    expect_node(255);
    settings_clear();
    setenv("PMI_RANK", "4", 1);
    setenv("MPI_LOCALRANKID", "0", 1);
    setenv("MPI_LOCALNRANKS", "4", 1);
    expect_node(1);
}

TEST(a_node_that_cannot_be_is_refused)
{
    static const char *const values[] = {"256", "-1", "one", "1x"};
    velo2_port_t port;
    settings_clear();
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        setenv("VELO_NODE", values[i], 1);
        CHECK_EQ(velo2_open(&port), VELO2_RET_ERROR);
        CHECK(port.map == NULL);
    }
    unsetenv("VELO_NODE");
    setenv("SLURM_NODEID", "256", 1);
    CHECK_EQ(velo2_open(&port), VELO2_RET_ERROR);
}

TEST(settings_that_make_no_sense_are_refused)
{
    static const char *const settings[][2] = {
        {"VELO2_MTU", "100"},           {"VELO2_MTU", "128"},
        {"VELO2_QUEUE_SLOTS", "4"},     {"VELO2_QUEUE_SLOTS", "100"},
        {"VELO2_QUEUE_SLOTS", "32768"}, {"VELO_EXTOLL_WAIT_MS", "-2"},
        {"VELO_EXTOLL_WAIT_MS", "soon"}};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        velo2_port_t port;
        settings_clear();
        setenv(settings[i][0], settings[i][1], 1);
        CHECK_EQ(velo2_open(&port), VELO2_RET_ERROR);
    }
}

TEST(ports_on_several_nodes_reach_each_other)
{
    settings_clear();
    velo2_port_t a = opened();
    setenv("VELO_NODE", "1", 1);
    velo2_port_t b = opened();
    uint32_t source = 0;
    char byte = 0;
    velo2_connection_t con = connected(&a, 1, velo2_get_vpid(&b));
    CHECK_EQ(velo2_send(&con, "x", 1, 0, 0), SUCCESS);
    CHECK_EQ(velo2_recv(&b, &byte, 1, NULL, &source, NULL, 0), SUCCESS);
    CHECK_EQ(source, VELO2_ADDR_PACK(0, velo2_get_vpid(&a)));
    con = connected(&b, 0, velo2_get_vpid(&a));
    CHECK_EQ(velo2_send(&con, "y", 1, 0, 0), SUCCESS);
    CHECK_EQ(velo2_recv(&a, &byte, 1, NULL, &source, NULL, 0), SUCCESS);
    CHECK_EQ(source, VELO2_ADDR_PACK(1, velo2_get_vpid(&b)));
    CHECK_EQ(velo2_close(&a), SUCCESS);
    CHECK_EQ(velo2_close(&b), SUCCESS);
}

/* ---- connections ----------------------------------------------------------------------------- */

TEST(a_connection_says_where_it_leads_until_it_ends)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = connected(&port, 0x12, 0x34);
    CHECK_EQ(con.dest.raw, 0x340012);
    CHECK(con.state_map != NULL);
    CHECK_EQ(velo2_disconnect(&port, &con), SUCCESS);
    CHECK_EQ(con.dest.raw, 0);
    CHECK(con.state_map == NULL);
    CHECK_EQ(velo2_disconnect(&port, &con), VELO2_RET_ERROR);
    CHECK_EQ(velo2_send(&con, "x", 1, 0, 0), VELO2_RET_ERROR);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(nodes_and_contexts_that_cannot_be_are_refused)
{
    velo2_port_t port = fresh();
    velo2_connection_t con;
    CHECK_EQ(velo2_connect(&port, &con, 256, 0), VELO2_RET_INVALID_NODE);
    CHECK(con.state_map == NULL);
    for (velo2_vpid_t vpid = 252; vpid < 256; vpid++)
        CHECK_EQ(velo2_connect(&port, &con, 0, vpid), VELO2_RET_INVALID_MBOX);
    CHECK_EQ(velo2_connect(&port, &con, UINT32_MAX, UINT32_MAX), VELO2_RET_INVALID_NODE);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(another_ports_connection_is_not_ended)
{
    velo2_port_t a = fresh();
    velo2_port_t b = opened();
    velo2_connection_t con = to_itself(&a);
    CHECK_EQ(velo2_disconnect(&b, &con), VELO2_RET_ERROR);
    send_number(&con, 3);
    expect_number(&a, 3);
    CHECK_EQ(velo2_disconnect(&a, &con), SUCCESS);
    CHECK_EQ(velo2_close(&a), SUCCESS);
    CHECK_EQ(velo2_close(&b), SUCCESS);
}

TEST(several_connections_lead_to_one_port)
{
    velo2_port_t port = fresh();
    velo2_connection_t cons[5];
    for (size_t i = 0; i < ARRAY_LEN(cons); i++)
        cons[i] = to_itself(&port);
    for (size_t i = 0; i < ARRAY_LEN(cons); i++) {
        send_number(&cons[i], i);
        expect_number(&port, i);
    }
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(a_connection_may_be_copied_by_value)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    velo2_connection_t copy = con;
    velo2_port_t same = port;
    send_number(&copy, 1);
    expect_number(&same, 1);
    send_number(&con, 2);
    expect_number(&port, 2);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(what_is_sent_arrives_after_the_connection_has_ended)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    for (uint64_t i = 0; i < 20; i++)
        send_number(&con, i);
    CHECK_EQ(velo2_disconnect(&port, &con), SUCCESS);
    for (uint64_t i = 0; i < 20; i++)
        expect_number(&port, i);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Send and receive one message; nothing beyond it is written. */
static void round_trip(velo2_port_t *port, velo2_connection_t *con, unsigned len, uint8_t mtt)
{
    unsigned char sent[VELO2_MTU], buf[VELO2_MTU + 16];
    uint32_t got_len = 0, source = 0;
    uint8_t tag = 0, got_mtt = 9;
    const uint64_t seed = len * 4 + mtt + 1;
    pattern_fill(sent, len, seed);
    memset(buf, 0xee, sizeof buf);
    CHECK_EQ(velo2_send(con, sent, len, pattern_tag(seed), mtt), SUCCESS);
    CHECK_EQ(velo2_recv(port, buf, sizeof buf, &got_len, &source, &tag, &got_mtt), SUCCESS);
    CHECK_EQ(got_len, len);
    CHECK_EQ(tag, pattern_tag(seed));
    CHECK_EQ(got_mtt, mtt);
    CHECK_EQ(source, con->dest.raw);
    CHECK(pattern_matches(buf, len, seed));
    for (size_t i = len; i < sizeof buf; i++)
        CHECK_EQ(buf[i], 0xee);
}

TEST(each_length_arrives_to_the_byte)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    for (unsigned len = 0; len <= VELO2_MTU; len++)
        round_trip(&port, &con, len, 0);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(each_message_type_arrives_with_each_length)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    for (uint8_t mtt = 1; mtt <= 3; mtt++)
        for (unsigned len = 0; len <= VELO2_MTU; len += (unsigned)scaled(1, 30))
            round_trip(&port, &con, len, mtt);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(messages_of_all_types_keep_their_order)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    for (unsigned i = 0; i < 100; i++)
        CHECK_EQ(velo2_send(&con, &i, sizeof i, 0, (uint8_t)(i % 4)), SUCCESS);
    for (unsigned i = 0; i < 100; i++) {
        unsigned got = 0;
        uint8_t mtt = 9;
        CHECK_EQ(velo2_recv(&port, &got, sizeof got, NULL, NULL, NULL, &mtt), SUCCESS);
        CHECK_EQ(got, i);
        CHECK_EQ(mtt, i % 4);
    }
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(each_tag_arrives)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    for (unsigned tag = 0; tag < 256; tag++) {
        uint8_t got = (uint8_t)~tag;
        CHECK_EQ(velo2_send(&con, NULL, 0, (uint8_t)tag, 0), SUCCESS);
        CHECK_EQ(velo2_recv(&port, NULL, 0, NULL, NULL, &got, 0), SUCCESS);
        CHECK_EQ(got, tag);
    }
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(what_cannot_be_sent_is_refused_and_harms_nothing)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    char buf[VELO2_MTU + 1] = {0};
    CHECK_EQ(velo2_send(&con, buf, VELO2_MTU + 1, 0, 0), VELO2_RET_INV_MSG);
    CHECK_EQ(velo2_send(&con, buf, UINT32_MAX, 0, 0), VELO2_RET_INV_MSG);
    CHECK_EQ(velo2_send(&con, NULL, 1, 0, 0), VELO2_RET_INV_MSG);
    CHECK_EQ(velo2_send(&con, buf, 1, 0, 4), VELO2_RET_INV_MTT);
    CHECK_EQ(velo2_send(&con, buf, 1, 0, 255), VELO2_RET_INV_MTT);
    expect_nothing(&port);
    send_number(&con, 5);
    expect_number(&port, 5);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(messages_of_older_hardware_have_64_bytes)
{
    settings_clear();
    setenv("VELO2_MTU", "64", 1);
    velo2_port_t port = opened();
    velo2_connection_t con = to_itself(&port);
    char buf[65] = {0};
    round_trip(&port, &con, 64, 0);
    round_trip(&port, &con, 64, 2);
    CHECK_EQ(velo2_send(&con, buf, 65, 0, 0), VELO2_RET_INV_MSG);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(a_probe_finds_nothing_where_nothing_is)
{
    velo2_port_t port = fresh();
    expect_nothing(&port);
    velo2_connection_t con = to_itself(&port);
    expect_nothing(&port);
    send_number(&con, 1);
    expect_number(&port, 1);
    expect_nothing(&port);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(a_probe_receives_as_a_wait_does)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    char buf[VELO2_MTU] = "";
    uint32_t len = 0, source = 0;
    uint8_t tag = 0, mtt = 0;
    velo2_ret_t ret;
    CHECK_EQ(velo2_send(&con, "probe", 6, 77, 3), SUCCESS);
    do
        ret = velo2_probe_recv(&port, buf, sizeof buf, &len, &source, &tag, &mtt);
    while (ret == VELO2_RET_NO_MSG);
    CHECK_EQ(ret, SUCCESS);
    CHECK(strcmp(buf, "probe") == 0 && len == 6 && tag == 77 && mtt == 3);
    CHECK_EQ(source, con.dest.raw);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(a_buffer_that_is_too_short_leaves_the_message)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    for (uint8_t type = 0; type < 4; type++) {
        unsigned char sent[100], buf[100];
        uint32_t len = 0;
        uint8_t tag = 0, mtt = 9;
        pattern_fill(sent, sizeof sent, type);
        CHECK_EQ(velo2_send(&con, sent, sizeof sent, 8, type), SUCCESS);
        CHECK_EQ(velo2_send(&con, sent, 1, 9, 0), SUCCESS);
        for (unsigned max = 0; max < 100; max += 33) {
            memset(buf, 0xee, sizeof buf);
            CHECK_EQ(velo2_recv(&port, buf, max, &len, NULL, &tag, &mtt), VELO2_RET_INV_MSG);
            CHECK(len == 100 && tag == 8 && mtt == type && buf[0] == 0xee);
        }
        CHECK_EQ(velo2_probe_recv(&port, buf, 100, &len, NULL, &tag, NULL), SUCCESS);
        CHECK(tag == 8 && pattern_matches(buf, 100, type));
        CHECK_EQ(velo2_recv(&port, buf, 1, &len, NULL, &tag, NULL), SUCCESS);
        CHECK(tag == 9 && len == 1);
    }
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(queues_wrap_around_under_all_lengths_and_types)
{
    settings_clear();
    setenv("VELO2_QUEUE_SLOTS", "8", 1);
    velo2_port_t port = opened();
    velo2_connection_t con = to_itself(&port);
    for (unsigned i = 0; i < scaled(2000, 60); i++)
        round_trip(&port, &con, i * 7 % (VELO2_MTU + 1), (uint8_t)(i % 3));
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

/* ---- back-pressure --------------------------------------------------------------------------- */

TEST(more_than_the_queue_holds_can_be_sent_to_oneself)
{
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    const uint64_t count = scaled(10000, 1500);
    for (uint64_t i = 0; i < count; i++)
        send_number(&con, i);
    for (uint64_t i = 0; i < count; i++)
        expect_number(&port, i);
    expect_nothing(&port);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(what_is_kept_for_a_sender_is_bounded)
{
    if (is_simulated())
        test_skip("half a million messages");
    settings_clear();
    setenv("VELO_EXTOLL_WAIT_MS", "20", 1);
    setenv("VELO2_QUEUE_SLOTS", "8", 1);
    velo2_port_t port = opened();
    velo2_connection_t con = to_itself(&port);
    uint64_t sent = 0;
    while (velo2_send(&con, &sent, sizeof sent, (uint8_t)sent, 0) == SUCCESS)
        sent++;
    CHECK(sent >= 524288 && sent < 524288 + 64);
    CHECK_EQ(velo2_send(&con, &sent, sizeof sent, 0, 0), VELO2_RET_TRY_AGAIN);
    for (uint64_t i = 0; i < sent; i++)
        expect_number(&port, i);
    expect_nothing(&port);
    send_number(&con, 1); /* It goes on. */
    expect_number(&port, 1);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

/* Two processes; each knows its own number and where the other's port is. */
struct meeting {
    velo2_vpid_t vpids[8];
    int ready[8];
    uint64_t count;
    int order;
};

static void meet(struct meeting *meeting, int self, velo2_port_t *port)
{
    meeting->vpids[self] = velo2_get_vpid(port);
    __atomic_store_n(&meeting->ready[self], 1, __ATOMIC_RELEASE);
}

static velo2_vpid_t find(struct meeting *meeting, int other)
{
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
         !__atomic_load_n(&meeting->ready[other], __ATOMIC_ACQUIRE);) {
        CHECK(test_now_ns() < end_ns);
        test_sleep_ns(100 * TEST_US);
    }
    return meeting->vpids[other];
}

static void wait_order(struct meeting *meeting, int order)
{
    while (__atomic_load_n(&meeting->order, __ATOMIC_ACQUIRE) < order)
        test_sleep_ns(100 * TEST_US);
}

static void fill_each_other(struct meeting *meeting, int self)
{
    velo2_port_t port = opened();
    meet(meeting, self, &port);
    velo2_connection_t con = connected(&port, 0, find(meeting, 1 - self));
    for (uint64_t i = 0; i < meeting->count; i++)
        send_number(&con, i);
    for (uint64_t i = 0; i < meeting->count; i++)
        expect_number(&port, i);
    send_number(&con, 99); /* Neither closes before the other has all. */
    expect_number(&port, 99);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

static void second_fills(void *arg) { fill_each_other(arg, 1); }

TEST(two_that_fill_each_other_go_on)
{
    struct meeting *meeting = test_shared_alloc(sizeof *meeting);
    settings_clear();
    setenv("VELO2_QUEUE_SLOTS", "64", 1);
    meeting->count = scaled(20000, 300);
    pid_t child = child_start(second_fills, meeting);
    fill_each_other(meeting, 0);
    child_join(child);
}

static void send_many(void *arg)
{
    struct meeting *meeting = arg;
    velo2_port_t port = opened();
    velo2_connection_t con = connected(&port, 0, find(meeting, 0));
    for (uint64_t i = 0; i < meeting->count; i++)
        send_number(&con, i);
    wait_order(meeting, 1); /* Else another takes over the context, and is the same source. */
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(each_source_keeps_its_order)
{
    enum { SOURCES = 4 };
    struct meeting *meeting = test_shared_alloc(sizeof *meeting);
    pid_t children[SOURCES];
    uint32_t sources[SOURCES];
    uint64_t next[SOURCES] = {0};
    size_t known = 0;
    settings_clear();
    meeting->count = scaled(5000, 50);
    for (int i = 0; i < SOURCES; i++)
        children[i] = child_start(send_many, meeting);
    velo2_port_t port = opened();
    meet(meeting, 0, &port);
    for (uint64_t i = 0; i < SOURCES * meeting->count; i++) {
        uint64_t number = 0;
        uint32_t source = 0;
        size_t s = 0;
        CHECK_EQ(velo2_recv(&port, &number, sizeof number, NULL, &source, NULL, 0), SUCCESS);
        while (s < known && sources[s] != source)
            s++;
        if (s == known) {
            CHECK(known < SOURCES);
            sources[known++] = source;
        }
        CHECK_EQ(number, next[s]++);
    }
    __atomic_store_n(&meeting->order, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < SOURCES; i++)
        child_join(children[i]);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

static void receive_late(void *arg)
{
    struct meeting *meeting = arg;
    velo2_port_t port = opened();
    meet(meeting, 1, &port);
    wait_order(meeting, 1);
    for (uint64_t i = 0; i < meeting->count; i++)
        expect_number(&port, i);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

static void *give_order(void *arg)
{
    struct meeting *meeting = arg;
    test_sleep_ns(20 * TEST_MS);
    __atomic_store_n(&meeting->order, 1, __ATOMIC_RELEASE);
    return NULL;
}

TEST(a_sender_waits_for_a_receiver_that_lives_but_has_no_room)
{
    struct meeting *meeting = test_shared_alloc(sizeof *meeting);
    pthread_t thread;
    settings_clear();
    setenv("VELO2_QUEUE_SLOTS", "8", 1);
    setenv("VELO_EXTOLL_WAIT_MS", "1", 1); /* It is not for this wait. */
    meeting->count = 200;
    pid_t child = child_start(receive_late, meeting);
    velo2_port_t port = opened();
    velo2_connection_t con = connected(&port, 0, find(meeting, 1));
    CHECK_EQ(pthread_create(&thread, NULL, give_order, meeting), 0);
    for (uint64_t i = 0; i < meeting->count; i++)
        send_number(&con, i);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    child_join(child);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

/* ---- peers that are not there ---------------------------------------------------------------- */

static void open_late(void *arg)
{
    struct meeting *meeting = arg;
    wait_order(meeting, 1);
    velo2_port_t port = opened();
    CHECK_EQ(velo2_get_vpid(&port), 1);
    for (uint64_t i = 0; i < 10; i++)
        expect_number(&port, i);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(the_first_send_waits_for_a_port_that_is_not_open_yet)
{
    struct meeting *meeting = test_shared_alloc(sizeof *meeting);
    pthread_t thread;
    settings_clear();
    pid_t child = child_start(open_late, meeting);
    velo2_port_t port = opened();
    CHECK_EQ(velo2_get_vpid(&port), 0);
    velo2_connection_t con = connected(&port, 0, 1);
    CHECK(con.state_map != NULL);
    CHECK_EQ(pthread_create(&thread, NULL, give_order, meeting), 0);
    for (uint64_t i = 0; i < 10; i++)
        send_number(&con, i);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    child_join(child);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

TEST(a_send_to_a_port_that_never_opens_ends_with_an_error)
{
    settings_clear();
    setenv("VELO_EXTOLL_WAIT_MS", "10", 1);
    velo2_port_t port = opened();
    velo2_connection_t con = connected(&port, 0, 200);
    CHECK_EQ(velo2_send(&con, "x", 1, 0, 0), VELO2_RET_INVALID_MBOX);
    CHECK_EQ(velo2_send(&con, "x", 1, 0, 1), VELO2_RET_INVALID_MBOX);
    CHECK_EQ(velo2_disconnect(&port, &con), SUCCESS);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

/* Send until it fails; it must, sooner or later. */
static velo2_ret_t send_until_it_fails(velo2_connection_t *con)
{
    velo2_ret_t ret = SUCCESS;
    for (int i = 0; i < 100000 && ret == SUCCESS; i++)
        ret = velo2_send(con, "x", 1, 0, 0);
    return ret;
}

TEST(a_receiver_that_closes_is_an_error_to_its_senders)
{
    velo2_port_t a = fresh();
    velo2_port_t b = opened();
    velo2_connection_t con = connected(&a, 0, velo2_get_vpid(&b));
    send_number(&con, 1);
    expect_number(&b, 1);
    CHECK_EQ(velo2_close(&b), SUCCESS);
    CHECK_EQ(send_until_it_fails(&con), VELO2_RET_INVALID_MBOX);
    CHECK_EQ(velo2_send(&con, "x", 1, 0, 0), VELO2_RET_INVALID_MBOX);
    CHECK_EQ(velo2_close(&a), SUCCESS);
}

TEST(a_port_that_opens_again_is_not_reached_by_an_old_connection)
{
    velo2_port_t a = fresh();
    velo2_port_t b = opened();
    velo2_vpid_t vpid = velo2_get_vpid(&b);
    velo2_connection_t con = connected(&a, 0, vpid);
    send_number(&con, 1);
    expect_number(&b, 1);
    CHECK_EQ(velo2_close(&b), SUCCESS);
    b = opened();
    CHECK_EQ(velo2_get_vpid(&b), vpid);
    CHECK_EQ(send_until_it_fails(&con), VELO2_RET_INVALID_MBOX);
    expect_nothing(&b);
    velo2_connection_t again = connected(&a, 0, vpid);
    send_number(&again, 2);
    expect_number(&b, 2);
    CHECK_EQ(velo2_close(&a), SUCCESS);
    CHECK_EQ(velo2_close(&b), SUCCESS);
}

static void open_and_wait(void *arg)
{
    struct meeting *meeting = arg;
    velo2_port_t port = opened();
    meet(meeting, 1, &port);
    wait_order(meeting, 1);
}

TEST(a_receiver_that_dies_is_an_error_to_its_senders)
{
    if (is_simulated())
        test_skip("a killed process of a cluster ends it");
    struct meeting *meeting = test_shared_alloc(sizeof *meeting);
    settings_clear();
    pid_t child = child_start(open_and_wait, meeting);
    velo2_port_t port = opened();
    velo2_connection_t con = connected(&port, 0, find(meeting, 1));
    CHECK_EQ(velo2_send(&con, "x", 1, 0, 0), SUCCESS);
    child_kill(child);
    CHECK_EQ(send_until_it_fails(&con), VELO2_RET_INVALID_MBOX);
    velo2_port_t same = opened(); /* It takes the name, and with it what is left. */
    CHECK_EQ(velo2_close(&same), SUCCESS);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

/* ---- waiting and threads --------------------------------------------------------------------- */

static void *send_late(void *arg)
{
    velo2_connection_t *con = arg;
    test_sleep_ns(20 * TEST_MS);
    send_number(con, 42);
    return NULL;
}

TEST(a_receive_waits_for_its_message)
{
    velo2_port_t a = fresh();
    velo2_port_t b = opened();
    velo2_connection_t con = connected(&a, 0, velo2_get_vpid(&b));
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_late, &con), 0);
    expect_number(&b, 42);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(velo2_close(&a), SUCCESS);
    CHECK_EQ(velo2_close(&b), SUCCESS);
}

static void on_signal(int number) { (void)number; }

static void *disturb(void *arg)
{
    pthread_t *waiting = ((void **)arg)[0];
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pthread_kill(*waiting, SIGUSR1), 0);
        test_sleep_ns(TEST_MS);
    }
    return send_late(((void **)arg)[1]);
}

TEST(signals_do_not_end_a_receive)
{
    if (is_simulated())
        test_skip("time is virtual, signals are not");
    velo2_port_t a = fresh();
    velo2_port_t b = opened();
    velo2_connection_t con = connected(&a, 0, velo2_get_vpid(&b));
    pthread_t self = pthread_self(), thread;
    void *arg[] = {&self, &con};
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    CHECK_EQ(pthread_create(&thread, NULL, disturb, arg), 0);
    expect_number(&b, 42);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(velo2_close(&a), SUCCESS);
    CHECK_EQ(velo2_close(&b), SUCCESS);
}

TEST(a_probe_does_not_wait_for_another_threads_receive)
{
    velo2_port_t a = fresh();
    velo2_port_t b = opened();
    velo2_connection_t con = connected(&a, 0, velo2_get_vpid(&b));
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_late, &con), 0);
    for (int i = 0; i < 100; i++)
        expect_nothing(&a); /* Nothing comes to this one. */
    expect_number(&b, 42);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(velo2_close(&a), SUCCESS);
    CHECK_EQ(velo2_close(&b), SUCCESS);
}

struct crowd {
    velo2_port_t *port;
    velo2_connection_t *con;
    uint64_t count;
    unsigned char *seen;
    uint64_t from;
};

static void *send_part(void *arg)
{
    struct crowd *crowd = arg;
    for (uint64_t i = 0; i < crowd->count; i++)
        send_number(crowd->con, crowd->from + i);
    return NULL;
}

static void *receive_part(void *arg)
{
    struct crowd *crowd = arg;
    for (uint64_t i = 0; i < crowd->count; i++) {
        uint64_t number = 0;
        CHECK_EQ(velo2_recv(crowd->port, &number, sizeof number, NULL, NULL, NULL, 0), SUCCESS);
        CHECK_EQ(__atomic_fetch_add(&crowd->seen[number], 1, __ATOMIC_RELAXED), 0);
    }
    return NULL;
}

TEST(threads_share_a_connection_and_a_port)
{
    if (is_simulated())
        test_skip("threads that wait for each other take turns there");
    enum { THREADS = 3 };
    velo2_port_t port = fresh();
    velo2_connection_t con = to_itself(&port);
    const uint64_t count = scaled(4000, 40);
    unsigned char *seen = calloc(THREADS, count);
    struct crowd crowds[THREADS];
    pthread_t senders[THREADS], receivers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        crowds[i] = (struct crowd){&port, &con, count, seen, (uint64_t)i * count};
        CHECK_EQ(pthread_create(&receivers[i], NULL, receive_part, &crowds[i]), 0);
        CHECK_EQ(pthread_create(&senders[i], NULL, send_part, &crowds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(senders[i], NULL), 0);
        CHECK_EQ(pthread_join(receivers[i], NULL), 0);
    }
    for (uint64_t i = 0; i < THREADS * count; i++)
        CHECK_EQ(seen[i], 1);
    free(seen);
    CHECK_EQ(velo2_close(&port), SUCCESS);
}

/* ---- against a model ------------------------------------------------------------------------- */

/* Ports, connections between them, and for each connection what is under way. */
enum { PORTS = 4, UNDER_WAY = 64 };

struct model {
    velo2_port_t ports[PORTS];
    velo2_connection_t cons[PORTS][PORTS];
    uint64_t sent[PORTS][PORTS];
    uint64_t received[PORTS][PORTS];
};

static unsigned length_of(uint64_t seed) { return (unsigned)(test_mix(seed) % (VELO2_MTU + 1)); }

static void model_send(struct model *model, size_t from, size_t to)
{
    unsigned char buf[VELO2_MTU];
    if (model->sent[from][to] - model->received[from][to] == UNDER_WAY)
        return;
    uint64_t seed = model->sent[from][to]++ << 8 | from << 4 | to;
    pattern_fill(buf, length_of(seed), seed);
    CHECK_EQ(velo2_send(&model->cons[from][to], buf, length_of(seed), pattern_tag(seed),
                        (uint8_t)(seed >> 8 & 3)),
             SUCCESS);
}

static void model_receive(struct model *model, size_t to)
{
    unsigned char buf[VELO2_MTU];
    uint32_t len, source;
    uint8_t tag, mtt;
    size_t from = 0;
    velo2_ret_t ret =
        velo2_probe_recv(&model->ports[to], buf, sizeof buf, &len, &source, &tag, &mtt);
    if (ret == VELO2_RET_NO_MSG)
        return;
    CHECK_EQ(ret, SUCCESS);
    while (source != VELO2_ADDR_PACK(0, velo2_get_vpid(&model->ports[from])))
        CHECK(++from < PORTS);
    CHECK(model->received[from][to] < model->sent[from][to]);
    uint64_t seed = model->received[from][to]++ << 8 | from << 4 | to;
    CHECK_EQ(len, length_of(seed));
    CHECK_EQ(tag, pattern_tag(seed));
    CHECK_EQ(mtt, seed >> 8 & 3);
    CHECK(pattern_matches(buf, len, seed));
}

static bool is_under_way(const struct model *model)
{
    for (size_t i = 0; i < PORTS * PORTS; i++)
        if (model->sent[i / PORTS][i % PORTS] != model->received[i / PORTS][i % PORTS])
            return true;
    return false;
}

TEST(random_calls_do_what_a_simple_model_does)
{
    static struct model model;
    struct rng rng = {test_seed()};
    settings_clear();
    setenv("VELO2_QUEUE_SLOTS", "16", 1);
    memset(&model, 0, sizeof model);
    for (size_t i = 0; i < PORTS; i++)
        model.ports[i] = opened();
    for (size_t i = 0; i < PORTS * PORTS; i++)
        model.cons[i / PORTS][i % PORTS] =
            connected(&model.ports[i / PORTS], 0, velo2_get_vpid(&model.ports[i % PORTS]));
    for (size_t step = 0; step < scaled(200000, 600); step++) {
        size_t from = rng_below(&rng, PORTS), to = rng_below(&rng, PORTS);
        switch (rng_below(&rng, 200)) {
        case 0: /* A connection ends; what is under way goes on, in its order. */
            if (model.sent[from][to] != model.received[from][to])
                break;
            CHECK_EQ(velo2_disconnect(&model.ports[from], &model.cons[from][to]), SUCCESS);
            model.cons[from][to] =
                connected(&model.ports[from], 0, velo2_get_vpid(&model.ports[to]));
            break;
        default:
            if (rng_below(&rng, 2))
                model_send(&model, from, to);
            else
                model_receive(&model, to);
        }
    }
    while (is_under_way(&model))
        for (size_t i = 0; i < PORTS; i++)
            model_receive(&model, i);
    for (size_t i = 0; i < PORTS; i++) {
        expect_nothing(&model.ports[i]);
        CHECK_EQ(velo2_close(&model.ports[i]), SUCCESS);
    }
}
