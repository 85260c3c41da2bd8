/* SPDX-License-Identifier: Apache-2.0 */
/* Four processes send to one, which checks that nothing is lost, doubled or out of order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.h>

enum { RECEIVER = 0, SENDERS = 4, MESSAGES_EACH = 250000 };
static const int64_t patience_ns = INT64_C(5000000000);
static struct velo_port_attr attr = VELO_PORT_ATTR_INIT;

static void check(int status, const char *call)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

static int send_all(int vpid)
{
    struct velo_port *port;
    struct velo_conn *conn;
    attr.vpid = vpid;
    check(velo_port_open(&attr, &port), "velo_port_open");
    check(velo_connect(port, VELO_ID(0, RECEIVER), &conn, patience_ns), "velo_connect");
    for (uint64_t i = 0; i < MESSAGES_EACH; i++)
        check(velo_send(conn, &i, sizeof i, (uint8_t)vpid, VELO_FOREVER), "velo_send");
    check(velo_port_close(port), "velo_port_close");
    return 0;
}

static void receive_all(void)
{
    struct velo_port *port;
    uint64_t next[SENDERS] = {0};
    attr.vpid = RECEIVER;
    check(velo_port_open(&attr, &port), "velo_port_open");
    for (uint64_t count = 0; count < (uint64_t)SENDERS * MESSAGES_EACH; count++) {
        uint64_t i;
        struct velo_msg msg;
        check(velo_recv(port, &i, sizeof i, &msg, patience_ns), "velo_recv");
        uint32_t sender = VELO_ID_VPID(msg.source) - 1;
        if (msg.len_bytes != sizeof i || sender >= SENDERS || i != next[sender]++) {
            fprintf(stderr, "wrong message %" PRIu64 " from sender %" PRIu32 "\n", i, sender);
            exit(1);
        }
    }
    printf("%d messages from each of %d senders, all in order\n", MESSAGES_EACH, SENDERS);
    check(velo_port_close(port), "velo_port_close");
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "many-to-one-%d", (int)getpid());
    attr.domain = domain;
    for (int vpid = 1; vpid <= SENDERS; vpid++) {
        if (fork() == 0)
            return send_all(vpid);
    }
    receive_all();
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
