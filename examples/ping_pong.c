/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes send a counter back and forth and print the mean half round trip. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <velo/velo.h>

enum { PING = 0, PONG = 1, ROUNDS = 100000 };
static const int64_t patience_ns = INT64_C(5000000000);
static struct velo_port_attr attr = VELO_PORT_ATTR_INIT;

static void check(int status, const char *call)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

static void expect(struct velo_port *port, uint64_t expected)
{
    uint64_t count;
    struct velo_msg msg;
    check(velo_recv(port, &count, sizeof count, &msg, patience_ns), "velo_recv");
    if (msg.len_bytes == sizeof count && count == expected)
        return;
    fprintf(stderr, "expected %" PRIu64 ", received %" PRIu64 "\n", expected, count);
    exit(1);
}

static void run(int self, int peer)
{
    attr.vpid = self;
    struct velo_port *port;
    struct velo_conn *conn;
    check(velo_port_open(&attr, &port), "velo_port_open");
    check(velo_connect(port, VELO_ID(0, peer), &conn, patience_ns), "velo_connect");

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (self == PONG)
            expect(port, round);
        check(velo_send(conn, &round, sizeof round, 0, VELO_FOREVER), "velo_send");
        if (self == PING)
            expect(port, round);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t took_ns =
        (end.tv_sec - start.tv_sec) * INT64_C(1000000000) + end.tv_nsec - start.tv_nsec;
    if (self == PING)
        printf("%d round trips, %" PRId64 " ns each way\n", ROUNDS, took_ns / 2 / ROUNDS);
    check(velo_port_close(port), "velo_port_close");
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "ping-pong-%d", (int)getpid());
    attr.domain = domain;
    pid_t child = fork();
    run(child == 0 ? PONG : PING, child == 0 ? PING : PONG);
    int status = 0;
    return child != 0 && (wait(&status) != child || status != 0);
}
