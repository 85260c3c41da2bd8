/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: opening and closing, names and ids, counters. */
#include <stdio.h>
#include <string.h>

#include "test.h"

static struct velo_port *open_in(const char *domain, int node, int vpid)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port = NULL;

    attr.domain = domain;
    attr.node = node;
    attr.vpid = vpid;
    CHECK_OK(velo_port_open(&attr, &port));
    return port;
}

TEST(a_port_opens_and_closes)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);

    CHECK_OK(velo_port_close(port));
}

TEST(closing_nothing_is_allowed)
{
    CHECK_OK(velo_port_close(NULL));
    CHECK_OK(velo_disconnect(NULL));
}

TEST(null_attributes_ask_for_the_defaults)
{
    struct velo_port *port = NULL;

    CHECK_OK(velo_port_open(NULL, &port));
    CHECK_EQ(velo_port_id(port), VELO_ID(0, 0));

    /* The default data_bytes of 64 KiB gives messages of a quarter of that. */
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    CHECK_EQ(velo_conn_max_bytes(conn), 16384);
    CHECK_OK(velo_port_close(port));
}

TEST(an_id_is_made_of_node_and_vpid)
{
    static const int values[] = {0, 1, 17, 128, 255};

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        for (size_t j = 0; j < ARRAY_LEN(values); j++) {
            struct velo_port *port = open_in(NULL, values[i], values[j]);
            velo_id_t id = velo_port_id(port);

            CHECK_EQ(id, VELO_ID(values[i], values[j]));
            CHECK_EQ(VELO_ID_NODE(id), values[i]);
            CHECK_EQ(VELO_ID_VPID(id), values[j]);
            CHECK_OK(velo_port_close(port));
        }
    }
}

TEST(any_takes_the_lowest_free_vpid)
{
    struct velo_port *a = port_open(VELO_VPID_ANY);
    struct velo_port *b = port_open(1);
    struct velo_port *c = port_open(VELO_VPID_ANY);

    CHECK_EQ(velo_port_id(a), VELO_ID(0, 0));
    CHECK_EQ(velo_port_id(c), VELO_ID(0, 2));
    CHECK_OK(velo_port_close(b));
    b = port_open(VELO_VPID_ANY);
    CHECK_EQ(velo_port_id(b), VELO_ID(0, 1));

    CHECK_OK(velo_port_close(a));
    CHECK_OK(velo_port_close(b));
    CHECK_OK(velo_port_close(c));
}

TEST(a_closed_id_can_be_opened_again)
{
    for (int i = 0; i < 300; i++) {
        struct velo_port *port = port_open(7);

        CHECK_EQ(velo_port_id(port), VELO_ID(0, 7));
        CHECK_OK(velo_port_close(port));
    }
}

/* A driver gives fewer contexts than there are ids: it has memory for so many rings
 * (driver/Documentation/admin-guide/velo.rst).
 */
#define CARD_CONTEXTS_MIN 120

TEST(all_contexts_of_a_node_can_be_open_at_once)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *ports[256];
    bool is_by_driver = test_is_by_card();
    int len = 0, status = VELO_OK;

    attr.depth_slots = 8;
    attr.data_bytes = 16384;
    attr.conns_max = 1;
    for (; len < 256 && (status = velo_port_open(&attr, &ports[len])) == VELO_OK; len++)
        CHECK_EQ(velo_port_id(ports[len]), VELO_ID(0, len));
    if (is_by_driver && len < 256)
        CHECK_STATUS(status, VELO_ERR_FULL);
    CHECK(len >= (is_by_driver ? CARD_CONTEXTS_MIN : 256));
    for (int i = 0; i < len; i++)
        CHECK_OK(velo_port_close(ports[i]));
}

TEST(nodes_and_domains_keep_their_messages_apart)
{
    char other[33];
    struct velo_port *ports[3];
    struct velo_msg msg;

    snprintf(other, sizeof(other), "%.30s-2", test_domain());
    ports[0] = open_in(NULL, 0, 5);
    ports[1] = open_in(NULL, 1, 5);
    ports[2] = open_in(other, 0, 5);

    for (size_t i = 0; i < 3; i++) {
        struct velo_conn *conn = port_connect(ports[i], velo_port_id(ports[i]));
        message_send(conn, 8, 100 + i);
    }
    for (size_t i = 0; i < 3; i++) {
        message_expect(ports[i], 8, 100 + i, velo_port_id(ports[i]));
        CHECK_STATUS(velo_try_peek(ports[i], &msg), VELO_AGAIN);
        CHECK_OK(velo_port_close(ports[i]));
    }
}

TEST(the_domain_given_wins_over_the_environment)
{
    struct velo_port *given = open_in(test_domain(), 0, 3);
    struct velo_port *from_environment = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(from_environment, VELO_ID(0, 3));

    message_send(conn, 8, 1);
    message_expect(given, 8, 1, velo_port_id(from_environment));
    CHECK_OK(velo_port_close(given));
    CHECK_OK(velo_port_close(from_environment));
}

TEST(a_new_port_has_counted_nothing)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_port_counters counters;
    static const struct velo_port_counters zero;

    memset(&counters, 0xff, sizeof(counters));
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK(memcmp(&counters, &zero, sizeof(zero)) == 0);
    CHECK_OK(velo_port_close(port));
}

TEST(the_counters_add_up)
{
    struct velo_port *receiver = port_open(VELO_VPID_ANY);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *a = port_connect(sender, velo_port_id(receiver));
    struct velo_conn *b = port_connect(sender, velo_port_id(receiver));
    struct velo_port_counters rx, tx;
    uint64_t bytes = 0;
    unsigned char small[1];
    struct velo_msg msg;
    void *buf;

    for (uint32_t i = 0; i < 100; i++) {
        message_send(i % 2 ? a : b, i * 7, i);
        bytes += i * 7;
        /* A message that is refused or given back does not count. */
        if (i > 0)
            CHECK_STATUS(SOON(velo_try_recv(receiver, small, 1, &msg)), VELO_ERR_TOO_BIG);
        message_expect(receiver, i * 7, i, velo_port_id(sender));
    }
    CHECK_OK(velo_reserve(a, 4000, &buf, VELO_FOREVER));
    CHECK_OK(velo_commit(a, 9, 0));
    bytes += 9;
    CHECK_OK(velo_peek(receiver, &msg, TEST_PATIENCE_NS));
    CHECK_OK(velo_release(receiver));

    CHECK_OK(velo_port_counters(receiver, &rx, sizeof rx));
    CHECK_EQ(rx.rx_msgs, 101);
    CHECK_EQ(rx.rx_bytes, bytes);
    CHECK_EQ(rx.rx_conns, 2);
    CHECK_EQ(rx.rx_errors, 0);
    CHECK_EQ(rx.tx_msgs, 0);
    CHECK_EQ(rx.tx_conns, 0);
    CHECK_OK(velo_port_counters(sender, &tx, sizeof tx));
    CHECK_EQ(tx.tx_msgs, 101);
    CHECK_EQ(tx.tx_bytes, bytes);
    CHECK_EQ(tx.tx_conns, 2);
    CHECK_EQ(tx.tx_again, 0);
    CHECK_EQ(tx.rx_msgs, 0);

    while (velo_try_send(a, NULL, 0, 0) == VELO_OK)
        ;
    CHECK_OK(velo_port_counters(sender, &tx, sizeof tx));
    CHECK_EQ(tx.tx_again, 1);

    CHECK_OK(velo_disconnect(b));
    CHECK_OK(velo_port_counters(sender, &tx, sizeof tx));
    CHECK_EQ(tx.tx_conns, 1);

    CHECK_OK(velo_port_close(receiver));
    CHECK_OK(velo_port_close(sender));
}

/* A program may have been built with an older or a newer release. */
TEST(structs_of_other_releases_are_understood)
{
    struct {
        struct velo_port_attr known;
        uint64_t later;
    } newer = {VELO_PORT_ATTR_INIT, 0};
    struct {
        struct velo_port_counters known;
        uint64_t later[2];
    } counters;
    struct velo_port_attr older = {.size_bytes = offsetof(struct velo_port_attr, depth_slots),
                                   .vpid = 7,
                                   .depth_slots = 3}; /* Not read. */
    struct velo_port *port;

    CHECK_OK(velo_port_open(&older, &port));
    CHECK_EQ(velo_port_id(port), VELO_ID(0, 7));
    CHECK_OK(velo_port_close(port));
    /* The attributes as they were before linger_ns. */
    older = (struct velo_port_attr){.size_bytes = offsetof(struct velo_port_attr, linger_ns),
                                    .vpid = 7,
                                    .linger_ns = -5}; /* Not read. */
    CHECK_OK(velo_port_open(&older, &port));
    memset(&counters, 0xff, sizeof(counters));
    CHECK_OK(velo_port_counters(port, &counters.known, sizeof(counters)));
    CHECK(counters.known.rx_msgs == 0 && counters.later[0] == 0 && counters.later[1] == 0);
    memset(&counters, 0xff, sizeof(counters));
    CHECK_OK(velo_port_counters(port, &counters.known, sizeof(uint64_t)));
    CHECK(counters.known.rx_msgs == 0 && counters.known.rx_bytes == UINT64_MAX);
    CHECK_OK(velo_port_close(port));

    newer.known.size_bytes = sizeof(newer);
    CHECK_OK(velo_port_open(&newer.known, &port));
    CHECK_OK(velo_port_close(port));
    newer.later = 1; /* Asks for something. */
    CHECK_FAILS(velo_port_open(&newer.known, &port), VELO_ERR_ARG, "does not know");
}

/* A program that was built with a release before had memory for fewer members: the library writes
 * nothing behind those that it has always written. */
TEST(the_room_for_later_members_of_a_message_is_not_written)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_msg msg;
    char buf[300];

    for (int round = 0; round < 4; round++) {
        size_t len_bytes = round % 2 ? sizeof(buf) : 8;

        message_send(conn, len_bytes, 1);
        memset(&msg, 0xa5, sizeof(msg));
        if (round < 2) {
            CHECK_OK(velo_recv(port, buf, sizeof(buf), &msg, TEST_PATIENCE_NS));
        } else {
            CHECK_OK(velo_peek(port, &msg, TEST_PATIENCE_NS));
            CHECK_OK(velo_release(port));
        }
        CHECK_EQ(msg.len_bytes, len_bytes);
        CHECK(msg.user == NULL);
        CHECK_EQ(msg.reserved, UINT64_C(0xa5a5a5a5a5a5a5a5));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(every_status_has_a_name_and_a_meaning)
{
    static const char *const names[] = {"VELO_OK",
                                        "VELO_AGAIN",
                                        "VELO_TIMEOUT",
                                        "VELO_ERR_ARG",
                                        "VELO_ERR_STATE",
                                        "VELO_ERR_TOO_BIG",
                                        "VELO_ERR_NO_PEER",
                                        "VELO_ERR_PEER_CLOSED",
                                        "VELO_ERR_PEER_DEAD",
                                        "VELO_ERR_IN_USE",
                                        "VELO_ERR_FULL",
                                        "VELO_ERR_ACCESS",
                                        "VELO_ERR_NO_SPACE",
                                        "VELO_ERR_NO_MEMORY",
                                        "VELO_ERR_VERSION",
                                        "VELO_ERR_CORRUPT",
                                        "VELO_ERR_SYSTEM",
                                        "VELO_ERR_INTERRUPTED",
                                        "VELO_ERR_CANCELLED",
                                        "VELO_ERR_MISSED"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *text = velo_strerror(-(int)i);
        size_t name_len = strlen(names[i]);

        CHECK(strncmp(text, names[i], name_len) == 0);
        CHECK(strncmp(text + name_len, ": ", 2) == 0);
        CHECK(strlen(text) > name_len + 4);
    }
    CHECK(velo_strerror(1) != NULL);
    CHECK(velo_strerror(-19) != NULL);
    CHECK(velo_strerror(INT32_MIN) != NULL);
}

TEST(the_version_names_release_and_abi)
{
    char abi[32];

    snprintf(abi, sizeof(abi), " abi %u", VELO_ABI_VERSION);
    CHECK(strstr(velo_version(), abi) != NULL);
    CHECK(velo_version()[0] >= '0' && velo_version()[0] <= '9');
}
