/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments outside their documented range: VELO_ERR_ARG, and nothing happens. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define ATTR_BYTES sizeof(struct velo_port_attr)

TEST(port_attributes_outside_their_range_are_refused_by_name)
{
    static const char too_long[] =
        "d2345678901234567890123456789012345678901234567890123456789012345";
    static const struct {
        const char *about;
        struct velo_port_attr attr;
    } cases[] = {
        {"domain", {ATTR_BYTES, "", 0, -1, 0, 0, 0, NULL, 0, 0}},
        {"domain", {ATTR_BYTES, too_long, 0, -1, 0, 0, 0, NULL, 0, 0}},
        {"domain", {ATTR_BYTES, "a/b", 0, -1, 0, 0, 0, NULL, 0, 0}},
        {"domain", {ATTR_BYTES, "../x", 0, -1, 0, 0, 0, NULL, 0, 0}},
        {"domain", {ATTR_BYTES, "a.b", 0, -1, 0, 0, 0, NULL, 0, 0}},
        {"domain", {ATTR_BYTES, "a b", 0, -1, 0, 0, 0, NULL, 0, 0}},
        {"domain", {ATTR_BYTES, "\xc3\xa4", 0, -1, 0, 0, 0, NULL, 0, 0}},
        {"node", {ATTR_BYTES, NULL, -1, -1, 0, 0, 0, NULL, 0, 0}},
        {"node", {ATTR_BYTES, NULL, 256, -1, 0, 0, 0, NULL, 0, 0}},
        {"node", {ATTR_BYTES, NULL, INT32_MAX, -1, 0, 0, 0, NULL, 0, 0}},
        {"vpid", {ATTR_BYTES, NULL, 0, -2, 0, 0, 0, NULL, 0, 0}},
        {"vpid", {ATTR_BYTES, NULL, 0, 256, 0, 0, 0, NULL, 0, 0}},
        {"vpid", {ATTR_BYTES, NULL, 0, INT32_MIN, 0, 0, 0, NULL, 0, 0}},
        {"depth_slots", {ATTR_BYTES, NULL, 0, -1, 1, 0, 0, NULL, 0, 0}},
        {"depth_slots", {ATTR_BYTES, NULL, 0, -1, 4, 0, 0, NULL, 0, 0}},
        {"depth_slots", {ATTR_BYTES, NULL, 0, -1, 24, 0, 0, NULL, 0, 0}},
        {"depth_slots", {ATTR_BYTES, NULL, 0, -1, 32768, 0, 0, NULL, 0, 0}},
        {"depth_slots", {ATTR_BYTES, NULL, 0, -1, UINT32_MAX, 0, 0, NULL, 0, 0}},
        {"data_bytes", {ATTR_BYTES, NULL, 0, -1, 0, 8192, 0, NULL, 0, 0}},
        {"data_bytes", {ATTR_BYTES, NULL, 0, -1, 0, 65537, 0, NULL, 0, 0}},
        {"data_bytes", {ATTR_BYTES, NULL, 0, -1, 0, 32u << 20, 0, NULL, 0, 0}},
        {"data_bytes", {ATTR_BYTES, NULL, 0, -1, 0, UINT32_MAX, 0, NULL, 0, 0}},
        {"conns_max", {ATTR_BYTES, NULL, 0, -1, 0, 0, VELO_CONNS_MAX + 1, NULL, 0, 0}},
        {"conns_max", {ATTR_BYTES, NULL, 0, -1, 0, 0, UINT32_MAX, NULL, 0, 0}},
        {"no-such-group", {ATTR_BYTES, NULL, 0, -1, 0, 0, 0, "no-such-group", 0, 0}},
        {"flags", {ATTR_BYTES, NULL, 0, -1, 0, 0, 0, NULL, 2, 0}},
        {"size_bytes", {0, NULL, 0, -1, 0, 0, 0, NULL, 0, 0}},
        {"size_bytes", {SIZE_MAX, NULL, 0, -1, 0, 0, 0, NULL, 0, 0}},
    };
    struct velo_port *port = NULL;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_FAILS(velo_port_open(&cases[i].attr, &port), VELO_ERR_ARG, cases[i].about);
    CHECK_FAILS(velo_port_open(NULL, NULL), VELO_ERR_ARG, "port");
}

TEST(port_attributes_at_the_ends_of_their_range_are_taken)
{
    static const struct velo_port_attr cases[] = {
        {ATTR_BYTES, NULL, 255, 255, 0, 0, 0, NULL, 0, 0},
        {ATTR_BYTES, NULL, 0, -1, 8, 0, 0, NULL, 0, 0},
        {ATTR_BYTES, NULL, 0, -1, 16384, 0, 0, NULL, 0, 0},
        {ATTR_BYTES, NULL, 0, -1, 0, 16384, 0, NULL, 0, 0},
        {ATTR_BYTES, NULL, 0, -1, 0, 16u << 20, 0, NULL, 0, 0},
        {ATTR_BYTES, NULL, 0, -1, 0, 0, 1, NULL, 0, 0},
        {ATTR_BYTES, NULL, 0, -1, 0, 0, 4096, NULL, 0, 0},
    };
    struct velo_port *port;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_OK(velo_port_open(&cases[i], &port));
        message_send(port_connect(port, velo_port_id(port)), 4096, i);
        message_expect(port, 4096, i, velo_port_id(port));
        CHECK_OK(velo_port_close(port));
    }
}

TEST(a_bad_domain_in_the_environment_is_refused)
{
    struct velo_port *port = NULL;

    setenv("VELO_DOMAIN", "a/b", 1);
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_ARG, "domain");
    setenv("VELO_DOMAIN", test_domain(), 1);
}

TEST(connect_refuses_bad_arguments)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = NULL;

    CHECK_FAILS(velo_connect(NULL, 0, &conn, 0), VELO_ERR_ARG, "port");
    CHECK_FAILS(velo_connect(port, 0, NULL, 0), VELO_ERR_ARG, "conn");
    CHECK_FAILS(velo_connect(port, 0, &conn, -2), VELO_ERR_ARG, "timeout_ns");
    CHECK_FAILS(velo_connect(port, 0, &conn, INT64_MIN), VELO_ERR_ARG, "timeout_ns");
    CHECK_FAILS(velo_connect(port, VELO_ID(256, 0), &conn, 0), VELO_ERR_ARG, "peer");
    CHECK_FAILS(velo_connect(port, UINT32_MAX, &conn, 0), VELO_ERR_ARG, "peer");
    CHECK_OK(velo_port_close(port));
}

TEST(counters_refuse_null)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_port_counters counters;

    CHECK_STATUS(velo_port_counters(NULL, &counters, sizeof counters), VELO_ERR_ARG);
    CHECK_STATUS(velo_port_counters(port, NULL, sizeof *NULL), VELO_ERR_ARG);
    CHECK_OK(velo_port_close(port));
}

TEST(sending_refuses_null)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_msg msg, x = {.data = "x", .len_bytes = 1}, no_data = {.len_bytes = 1};
    void *place;

    CHECK_STATUS(velo_try_send(NULL, "x", 1, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_send(conn, NULL, 1, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_send(conn, NULL, 4096, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_sendv(NULL, &(struct iovec){"x", 1}, 1, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_sendv(conn, &(struct iovec){NULL, 1}, 1, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_sendv(conn, NULL, 1, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_sendv(conn, &(struct iovec){"x", 1}, -1, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_sendv(conn, NULL, 1, 0, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_send_many(NULL, &x, 1, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_send_many(conn, NULL, 1, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_send_many(conn, &x, -1, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_send_many(conn, &x, 1, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_send_many(conn, &no_data, 1, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_send(NULL, "x", 1, 0, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_send(conn, NULL, 1, 0, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_send(conn, NULL, 4096, 0, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_reserve(NULL, 1, &place), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_reserve(conn, 1, NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_reserve(NULL, 1, &place, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_reserve(conn, 1, NULL, VELO_FOREVER), VELO_ERR_ARG);
    CHECK_STATUS(velo_commit(NULL, 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_commit(conn, 0, 0), VELO_ERR_STATE);
    CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
    CHECK_OK(velo_port_close(port));
}

TEST(receiving_refuses_null_and_times_below_forever)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_msg msg;
    char buf[8];

    message_send(conn, 8, 1); /* Refused before a look at what is there. */
    CHECK_STATUS(velo_try_recv(NULL, buf, 8, &msg), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_recv(port, NULL, 8, &msg), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv(NULL, buf, 8, &msg, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv(port, NULL, 8, &msg, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv(port, buf, 8, &msg, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv(port, buf, 8, &msg, INT64_MIN), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv_many(NULL, &msg, 1, buf, 8, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv_many(port, NULL, 1, buf, 8, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv_many(port, &msg, 0, buf, 8, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv_many(port, &msg, -1, buf, 8, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv_many(port, &msg, 1, NULL, 8, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_recv_many(port, &msg, 1, buf, 8, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_peek(NULL, &msg), VELO_ERR_ARG);
    CHECK_STATUS(velo_try_peek(port, NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_peek(NULL, &msg, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_peek(port, NULL, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_peek(port, &msg, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_release(NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_release(port), VELO_ERR_STATE);
    message_expect(port, 8, 1, velo_port_id(port));
    CHECK_OK(velo_port_close(port));
}
