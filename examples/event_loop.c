/* SPDX-License-Identifier: Apache-2.0 */
/* One loop waits for messages and for a pipe at the same time, and uses no processor meanwhile. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.h>

enum { LOOP = 0, PEER = 1, ROUNDS = 20 };
static const int64_t patience_ns = INT64_C(5000000000);
static struct velo_port_attr attr = VELO_PORT_ATTR_INIT;

static void check(int status, const char *call)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

/* Says the same thing by both ways, now and then. */
static int talk(struct velo_port *port, int pipe_fd)
{
    struct velo_conn *conn;
    check(velo_connect(port, VELO_ID(0, LOOP), &conn, patience_ns), "velo_connect");
    for (int round = 0; round < ROUNDS; round++) {
        check(velo_send(conn, "ping", 4, 0, patience_ns), "velo_send");
        check(write(pipe_fd, "ping", 4) == 4 ? VELO_OK : VELO_ERR_SYSTEM, "write");
        usleep(2000);
    }
    return 0;
}

static int listen_to(struct velo_port *port, int pipe_fd)
{
    struct pollfd files[2] = {{.events = POLLIN}, {.fd = pipe_fd, .events = POLLIN}};
    int messages = 0, writes = 0;
    char buf[64];
    check(velo_port_fd(port, &files[0].fd), "velo_port_fd");
    while (messages < ROUNDS || writes < ROUNDS) {
        while (velo_try_recv(port, buf, sizeof buf, NULL) == VELO_OK)
            messages++;
        if (velo_port_arm(port) != VELO_OK)
            continue; /* Something has come meanwhile. */
        if (poll(files, 2, 5000) > 0 && files[1].revents && read(pipe_fd, buf, 4) == 4)
            writes++;
    }
    printf("%d messages, %d writes to the pipe\n", messages, writes);
    return messages == ROUNDS && writes == ROUNDS ? 0 : 1;
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "event-loop-%d", (int)getpid());
    attr.domain = domain;
    int pipe_fds[2];
    check(pipe(pipe_fds) == 0 ? VELO_OK : VELO_ERR_SYSTEM, "pipe");
    pid_t child = fork();
    attr.vpid = child == 0 ? PEER : LOOP;
    struct velo_port *port;
    check(velo_port_open(&attr, &port), "velo_port_open");
    int status = child == 0 ? talk(port, pipe_fds[1]) : listen_to(port, pipe_fds[0]);
    check(velo_port_close(port), "velo_port_close");
    return child > 0 && wait(NULL) == child ? status : 0;
}
