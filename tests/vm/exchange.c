/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of two programs on two nodes that send each other messages of many lengths, and check all
 * that comes: exchange NODE.VPID NODE.VPID, its own port's id and the other's. The two start in any
 * order.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <velo/velo.h>

enum { MESSAGES = 200, STEP_BYTES = 37, LONGEST_BYTES = 3000, PATIENCE_S = 120 };
static const int64_t patience_ns = PATIENCE_S * INT64_C(1000000000);

static void check(int status, const char *call)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

static velo_id_t parse_id(const char *text)
{
    unsigned node, vpid;
    char rest;
    if (sscanf(text, "%u.%u%c", &node, &vpid, &rest) == 2 && node < 256 && vpid < 256)
        return VELO_ID(node, vpid);
    fprintf(stderr, "%s is not NODE.VPID\n", text);
    exit(2);
}

static size_t length(unsigned number) { return number * STEP_BYTES % (LONGEST_BYTES + 1); }

/* Differs from byte to byte, message to message and sender to sender. */
static uint8_t byte_of(velo_id_t sender, unsigned number, size_t at)
{
    return (uint8_t)(sender * 131u + number * 17u + at * 7u + at / 256);
}

static void send(struct velo_conn *conn, velo_id_t self, unsigned number)
{
    uint8_t bytes[LONGEST_BYTES];
    for (size_t i = 0; i < length(number); i++)
        bytes[i] = byte_of(self, number, i);
    check(velo_send(conn, bytes, length(number), (uint8_t)number, VELO_FOREVER), "velo_send");
}

static void expect(struct velo_port *port, velo_id_t peer, unsigned number)
{
    uint8_t bytes[LONGEST_BYTES];
    struct velo_msg msg;
    check(velo_recv(port, bytes, sizeof bytes, &msg, patience_ns), "velo_recv");
    bool is_right =
        msg.source == peer && msg.len_bytes == length(number) && msg.tag == (uint8_t)number;
    for (size_t i = 0; is_right && i < length(number); i++)
        is_right = bytes[i] == byte_of(peer, number, i);
    if (is_right)
        return;
    fprintf(stderr, "message %u is not what was sent\n", number);
    exit(1);
}

/* The other program may not have begun: then its node answers nobody. */
static struct velo_conn *connect_to(struct velo_port *port, velo_id_t peer)
{
    struct velo_conn *conn = NULL;
    time_t end = time(NULL) + PATIENCE_S;
    int status;
    do
        status = velo_connect(port, peer, &conn, patience_ns);
    while ((status == VELO_ERR_NO_PEER || status == VELO_TIMEOUT) && time(NULL) < end &&
           usleep(100000) == 0);
    check(status, "velo_connect");
    return conn;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s NODE.VPID NODE.VPID\n", argv[0]);
        return 2;
    }
    velo_id_t self = parse_id(argv[1]), peer = parse_id(argv[2]);
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    attr.node = (int)VELO_ID_NODE(self);
    attr.vpid = (int)VELO_ID_VPID(self);
    check(velo_port_open(&attr, &port), "velo_port_open");
    struct velo_conn *conn = connect_to(port, peer);
    for (unsigned i = 0; i < MESSAGES; i++) {
        send(conn, self, i);
        expect(port, peer, i);
    }
    check(velo_port_close(port), "velo_port_close");
    printf("%s and %s exchanged %d messages\n", argv[1], argv[2], MESSAGES);
    return 0;
}
