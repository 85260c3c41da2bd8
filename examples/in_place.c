/* SPDX-License-Identifier: Apache-2.0 */
/* A producer builds vectors directly in its consumer's memory; neither side copies them. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.h>

enum { CONSUMER = 0, PRODUCER = 1, VECTORS = 50000, ITEMS_MAX = 512 };
static const int64_t patience_ns = INT64_C(5000000000);
static struct velo_port_attr attr = VELO_PORT_ATTR_INIT;

static void check(int status, const char *call)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

static void produce(struct velo_port *port)
{
    struct velo_conn *conn;
    check(velo_connect(port, VELO_ID(0, CONSUMER), &conn, patience_ns), "velo_connect");
    for (uint64_t vector = 0; vector < VECTORS; vector++) {
        void *buf;
        check(velo_reserve(conn, ITEMS_MAX * sizeof(uint64_t), &buf, VELO_FOREVER), "velo_reserve");
        uint64_t *items = buf;
        uint64_t count = vector % ITEMS_MAX + 1; /* Fewer than were reserved is fine. */
        for (uint64_t i = 0; i < count; i++)
            items[i] = vector + i;
        check(velo_commit(conn, count * sizeof *items, 0), "velo_commit");
    }
}

static bool consume(struct velo_port *port)
{
    uint64_t damaged = 0;
    for (uint64_t vector = 0; vector < VECTORS; vector++) {
        struct velo_msg msg;
        check(velo_peek(port, &msg, patience_ns), "velo_peek");
        const uint64_t *items = msg.data;
        damaged += msg.len_bytes != (vector % ITEMS_MAX + 1) * sizeof *items;
        for (uint64_t i = 0; i < msg.len_bytes / sizeof *items; i++)
            damaged += items[i] != vector + i;
        check(velo_release(port), "velo_release");
    }
    printf("%d vectors in place, %" PRIu64 " damaged items\n", VECTORS, damaged);
    return damaged == 0;
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "in-place-%d", (int)getpid());
    attr.domain = domain;
    pid_t child = fork();
    attr.vpid = child == 0 ? PRODUCER : CONSUMER;
    struct velo_port *port;
    check(velo_port_open(&attr, &port), "velo_port_open");
    if (child == 0)
        produce(port);
    bool good = child == 0 || consume(port);
    check(velo_port_close(port), "velo_port_close");
    int status = 0;
    return good && (child == 0 || (wait(&status) == child && status == 0)) ? 0 : 1;
}
