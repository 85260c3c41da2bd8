/* SPDX-License-Identifier: Apache-2.0 */
/* A process asks for two messages by their tags, in another order than they were sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/mq.h>

enum { RECEIVER = 0, SENDER = 1, SHORT = 7, LONG = 8, LONG_BYTES = 1 << 20 };
static const int64_t patience_ns = INT64_C(5000000000);
static struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
static char data[LONG_BYTES];

static void check(int status, const char *call)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

static void send_both(struct velo_mq *mq)
{
    struct velo_mq_peer *peer;
    struct velo_mq_request first = {0}, second = {0};
    memset(data, 'x', sizeof data);
    check(velo_mq_connect(mq, VELO_ID(0, RECEIVER), &peer, patience_ns), "velo_mq_connect");
    check(velo_mq_isend(peer, data, sizeof data, LONG, 0, &first), "velo_mq_isend");
    check(velo_mq_isend(peer, "short", 6, SHORT, 0, &second), "velo_mq_isend");
    check(velo_mq_wait(mq, &first, patience_ns), "velo_mq_wait");
    check(velo_mq_wait(mq, &second, patience_ns), "velo_mq_wait");
}

static int receive(struct velo_mq *mq, uint64_t tag)
{
    struct velo_mq_request request = {0};
    check(velo_mq_irecv(mq, VELO_MQ_ANY_SOURCE, tag, 0, data, sizeof data, &request),
          "velo_mq_irecv");
    check(velo_mq_wait(mq, &request, patience_ns), "velo_mq_wait");
    return (int)request.len_bytes;
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "matched-%d", (int)getpid());
    attr.domain = domain;
    pid_t child = fork();
    attr.vpid = child == 0 ? SENDER : RECEIVER;
    struct velo_port *port;
    struct velo_rma *rma; /* Long messages go by it. */
    struct velo_mq *mq;
    check(velo_port_open(&attr, &port), "velo_port_open");
    check(velo_rma_open(port, NULL, &rma), "velo_rma_open");
    check(velo_mq_open(port, rma, NULL, &mq), "velo_mq_open");
    int bad = 0, status = 0;
    if (child == 0) {
        send_both(mq);
    } else {
        bad = receive(mq, SHORT) != 6 || strcmp(data, "short") != 0;
        bad |= receive(mq, LONG) != LONG_BYTES || data[LONG_BYTES - 1] != 'x';
        puts(bad ? "not what was sent" : "short came first, then long");
    }
    check(velo_mq_close(mq), "velo_mq_close");
    check(velo_rma_close(rma), "velo_rma_close");
    check(velo_port_close(port), "velo_port_close");
    return bad || (child != 0 && (wait(&status) != child || status != 0));
}
