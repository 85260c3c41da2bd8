/* SPDX-License-Identifier: Apache-2.0 */
/* A process counts in the memory of another, and notifies it at the end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/rma.h>

enum { OWNER = 0, COUNTER = 1, COUNTS = 1000 };
static const int64_t patience_ns = INT64_C(5000000000);
static struct velo_port_attr attr = VELO_PORT_ATTR_INIT;

static void check(int status, const char *call)
{
    if (status != VELO_OK) {
        fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
        exit(1);
    }
}

static int count(struct velo_port *port, struct velo_rma *rma)
{
    struct velo_rma_peer *owner;
    struct velo_msg msg;
    uint64_t key, old;
    check(velo_recv(port, &key, sizeof key, &msg, patience_ns), "velo_recv");
    check(velo_rma_connect(rma, VELO_ID(0, OWNER), &owner, patience_ns), "velo_rma_connect");
    for (int i = 0; i < COUNTS; i++) {
        uint32_t flags = VELO_RMA_ADD_ALWAYS | (i == COUNTS - 1 ? VELO_RMA_NOTIFY_RESPONDER : 0);
        check(velo_rma_fetch_compare_add(owner, &old, velo_rma_place(key, 0), 0, 1, flags, 0),
              "velo_rma_fetch_compare_add");
        check(velo_rma_flush(owner, patience_ns), "velo_rma_flush");
    }
    return 0;
}

static int own(struct velo_port *port, struct velo_rma *rma)
{
    struct velo_rma_mem *mem;
    struct velo_conn *conn;
    struct velo_rma_notification done;
    check(velo_rma_mem_alloc(rma, 8, VELO_RMA_RIGHT_ATOMIC, VELO_ID(0, COUNTER), &mem), "alloc");
    velo_rma_key_t key = velo_rma_mem_key(mem);
    check(velo_connect(port, VELO_ID(0, COUNTER), &conn, patience_ns), "velo_connect");
    check(velo_send(conn, &key, sizeof key, 0, VELO_FOREVER), "velo_send");
    check(velo_rma_poll(rma, &done, 1, patience_ns) == 1 ? done.status : 1, "velo_rma_poll");
    const uint64_t *word = velo_rma_mem_addr(mem);
    printf("counted to %" PRIu64 "\n", *word);
    return *word != COUNTS;
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "remote-memory-%d", (int)getpid());
    attr.domain = domain;
    pid_t child = fork();
    attr.vpid = child == 0 ? COUNTER : OWNER;
    struct velo_port *port;
    struct velo_rma *rma;
    check(velo_port_open(&attr, &port), "velo_port_open");
    check(velo_rma_open(port, NULL, &rma), "velo_rma_open");
    int bad = child == 0 ? count(port, rma) : own(port, rma);
    check(velo_rma_close(rma), "velo_rma_close");
    check(velo_port_close(port), "velo_port_close");
    int status = 0;
    return bad || (child != 0 && (wait(&status) != child || status != 0));
}
