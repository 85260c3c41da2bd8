/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint.h"

#include <stdlib.h>

#define CONNECT_TIMEOUT_NS (INT64_C(20) * 1000000000)
#define IDLE_HELLO_BYTES 8u

/* --- setting up ------------------------------------------------------------------------------ */

static void check(const char *call, int status)
{
    if (status != VELO_OK) {
        endpoint_fail_call(call, status);
    }
}

static unsigned power_of_two_above(unsigned n)
{
    unsigned power = 1;
    while (power < n) {
        power *= 2;
    }
    return power;
}

/* Both ends derive the key of a flow, so it never travels. */
static uint64_t flow_key(const struct rank *rank, unsigned node, unsigned from, unsigned flow)
{
    uint64_t name = ((uint64_t)node << 32) | ((uint64_t)from << 16) | flow;
    return pattern_word(rank->options->seed, name, 1);
}

static unsigned char *buffer_new(size_t size_bytes)
{
    unsigned char *buf = aligned_alloc(4096, (size_bytes + 4096) & ~(size_t)4095);
    if (!buf) {
        rank_fail(EXIT_FAILED, "out of memory for a message buffer of %zu bytes", size_bytes);
    }
    memset(buf, 0, size_bytes);
    return buf;
}

static size_t largest_size(const struct plan *plan)
{
    size_t largest = PATTERN_FULL_BYTES;
    for (unsigned i = 0; i < plan->points_count; i++) {
        size_t size = plan->points[i].size_bytes;
        largest = size > largest ? size : largest;
    }
    return largest;
}

static struct velo_port_attr port_attr(const struct options *options, unsigned node, unsigned vpid)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    attr.domain = options->domain;
    attr.node = (int)node;
    attr.vpid = (int)vpid;
    attr.depth_slots = options->depth_slots;
    attr.data_bytes = options->data_bytes;
    attr.conns_max = VELO_CONNS_MAX;
    return attr;
}

void endpoint_open(struct endpoint *endpoint, const struct rank *rank, unsigned node, unsigned from)
{
    struct velo_port_attr attr = port_attr(rank->options, node, rank->index);
    *endpoint = (struct endpoint){
        .peer = VELO_ID(node, from),
        .cap_bytes = largest_size(rank->plan),
        .flows = power_of_two_above(rank->options->threads),
        /* The ring mode shows the cost of a wait without a limit. */
        .timeout_ns = rank->options->mode == MODE_RING ? VELO_FOREVER : RECV_TIMEOUT_NS,
        .poll = rank->options->poll,
        .in_place = rank->options->in_place,
    };
    endpoint->buf = buffer_new(endpoint->cap_bytes);
    endpoint->expected = buffer_new(endpoint->cap_bytes);
    for (unsigned flow = 0; flow < endpoint->flows; flow++) {
        endpoint->rx[flow].key = flow_key(rank, node, from, flow);
    }
    check("velo_port_open", velo_port_open(&attr, &endpoint->port));
}

void endpoint_connect(struct endpoint *endpoint, const struct rank *rank, unsigned node,
                      unsigned to, unsigned flow)
{
    struct flow_tx *tx = &endpoint->tx[flow];
    *tx = (struct flow_tx){
        .buf = buffer_new(endpoint->cap_bytes),
        .key = flow_key(rank, node, rank->index, flow),
        .flow = flow,
        .flows = endpoint->flows,
        .in_place = rank->options->in_place,
    };
    check("velo_connect",
          velo_connect(endpoint->port, VELO_ID(node, to), &tx->conn, CONNECT_TIMEOUT_NS));
}

/* These connections are closed with their port, so their handles are not kept. */
void endpoint_add_idle(struct endpoint *endpoint, const struct rank *rank, unsigned node,
                       unsigned to, unsigned count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct velo_conn *conn;
        check("velo_connect",
              velo_connect(endpoint->port, VELO_ID(node, to), &conn, CONNECT_TIMEOUT_NS));
        uint64_t hello = pattern_word(rank->options->seed, i, 0);
        check("velo_send", velo_send(conn, &hello, sizeof hello, 0, VELO_FOREVER));
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t hello;
        struct velo_msg msg;
        check("velo_recv",
              velo_recv(endpoint->port, &hello, sizeof hello, &msg, CONNECT_TIMEOUT_NS));
        if (msg.len_bytes != IDLE_HELLO_BYTES || msg.source != endpoint->peer) {
            endpoint_fail_msg(endpoint, &msg, 0, IDLE_HELLO_BYTES);
        }
    }
}

void endpoint_close(struct endpoint *endpoint)
{
    velo_port_close(endpoint->port);
    free(endpoint->buf);
    free(endpoint->expected);
    for (unsigned flow = 0; flow < endpoint->flows; flow++) {
        free(endpoint->tx[flow].buf);
    }
}

long endpoint_probe_max_bytes(const struct options *options)
{
    struct velo_port_attr attr = port_attr(options, 0, 0);
    struct velo_port *port;
    struct velo_conn *conn;
    int status = velo_port_open(&attr, &port);
    if (status != VELO_OK) {
        return status;
    }
    status = velo_connect(port, velo_port_id(port), &conn, 0);
    long max_bytes = status == VELO_OK ? (long)velo_conn_max_bytes(conn) : status;
    velo_port_close(port);
    return max_bytes;
}

/* --- checking -------------------------------------------------------------------------------- */

void endpoint_fail_call(const char *call, int status)
{
    rank_fail(EXIT_FAILED, "%s: %s. %s", call, velo_strerror(status), velo_last_error());
}

void endpoint_fail_recv(const struct endpoint *endpoint, int status)
{
    if (status == VELO_TIMEOUT) {
        rank_fail(EXIT_VERIFY,
                  "verification failed: nothing came for %d s; message %llu of flow 0 is lost, or "
                  "its sender hangs",
                  (int)(RECV_TIMEOUT_NS / 1000000000), (unsigned long long)endpoint->rx[0].seq);
    }
    endpoint_fail_call("receiving", status);
}

void endpoint_fail_msg(const struct endpoint *endpoint, const struct velo_msg *msg, unsigned flow,
                       size_t size_bytes)
{
    const struct flow_rx *rx = &endpoint->rx[flow];
    uint64_t first = 0;
    memcpy(&first, msg->data, msg->len_bytes < sizeof first ? msg->len_bytes : sizeof first);
    rank_fail(EXIT_VERIFY,
              "verification failed: expected message %llu of flow %u: %zu bytes, tag %u, source "
              "0x%x, first word 0x%llx; received %zu bytes, tag %u, source 0x%x, first word 0x%llx",
              (unsigned long long)rx->seq, flow, size_bytes,
              (unsigned)(uint8_t)(rx->seq * endpoint->flows + flow), endpoint->peer,
              (unsigned long long)pattern_word(rx->key, rx->seq, 0), msg->len_bytes, msg->tag,
              msg->source, (unsigned long long)first);
}

static void check_every_byte(const struct endpoint *endpoint, const unsigned char *data,
                             size_t size_bytes, unsigned flow, uint64_t seq)
{
    const struct flow_rx *rx = &endpoint->rx[flow];
    unsigned char *expected = endpoint->expected;
    pattern_fill(expected, size_bytes, rx->key, rx->base);
    if (size_bytes > PATTERN_FULL_BYTES) {
        pattern_stamp(expected, size_bytes, rx->key, seq);
    }
    for (size_t at = 0; at < size_bytes; at++) {
        if (data[at] != expected[at]) {
            rank_fail(
                EXIT_VERIFY,
                "verification failed: message %llu of flow %u, %zu bytes: byte %zu is 0x%02x, "
                "expected 0x%02x",
                (unsigned long long)seq, flow, size_bytes, at, data[at], expected[at]);
        }
    }
}

void endpoint_expect(struct endpoint *endpoint, size_t size_bytes)
{
    pattern_fill(endpoint->expected, size_bytes, endpoint->rx[0].key, endpoint->rx[0].base);
}

void endpoint_compare(struct endpoint *endpoint, size_t size_bytes, const struct velo_msg *msg)
{
    const struct flow_rx *rx = &endpoint->rx[0];
    if (size_bytes <= PATTERN_FULL_BYTES || msg->len_bytes != size_bytes) {
        return; /* endpoint_verify() finds every error. */
    }
    pattern_stamp(endpoint->expected, size_bytes, rx->key, rx->seq);
    if (memcmp(endpoint->expected, msg->data, size_bytes) != 0) {
        check_every_byte(endpoint, msg->data, size_bytes, 0, rx->seq);
    }
}

void endpoint_check_last(const struct endpoint *endpoint, size_t size_bytes, unsigned flow)
{
    /* Short messages were compared in full already; those in place are gone. */
    if (!endpoint->in_place && size_bytes > PATTERN_FULL_BYTES) {
        check_every_byte(endpoint, endpoint->buf, size_bytes, flow, endpoint->rx[flow].seq - 1);
    }
}

void endpoint_rebase(struct endpoint *endpoint)
{
    for (unsigned flow = 0; flow < endpoint->flows; flow++) {
        endpoint->rx[flow].base = endpoint->rx[flow].seq;
    }
}

void flow_tx_rebase(struct flow_tx *flow, size_t size_bytes)
{
    pattern_fill(flow->buf, size_bytes, flow->key, flow->seq);
}

/* --- messages -------------------------------------------------------------------------------- */

int flow_tx_post_in_place(struct flow_tx *flow, size_t size_bytes)
{
    void *room;
    int status = velo_reserve(flow->conn, size_bytes, &room, VELO_FOREVER);
    if (status != VELO_OK) {
        return status;
    }
    if (size_bytes == sizeof(uint64_t)) { /* A program would store it, and call nothing. */
        memcpy(room, flow->buf, sizeof(uint64_t));
    } else {
        memcpy(room, flow->buf, size_bytes);
    }
    return velo_commit(flow->conn, size_bytes, flow->tag);
}

void flow_tx_send_fresh(struct flow_tx *flow, size_t size_bytes, unsigned msgs)
{
    for (unsigned i = 0; i < msgs; i++) {
        flow_tx_rebase(flow, size_bytes);
        flow_tx_prepare(flow, size_bytes);
        flow_tx_post(flow, size_bytes);
    }
}

void endpoint_recv_fresh(struct endpoint *endpoint, size_t size_bytes, unsigned msgs)
{
    for (unsigned i = 0; i < msgs; i++) {
        struct velo_msg msg;
        endpoint_rebase(endpoint);
        endpoint_take(endpoint, &msg);
        unsigned flow = msg.tag & (endpoint->flows - 1);
        if (msg.len_bytes == size_bytes) { /* Else endpoint_verify() reports it. */
            check_every_byte(endpoint, msg.data, size_bytes, flow, endpoint->rx[flow].base);
        }
        endpoint_verify(endpoint, size_bytes, &msg);
    }
}
