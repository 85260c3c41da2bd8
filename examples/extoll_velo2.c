/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes send a counter back and forth through EXTOLL's interface for messages. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo2.h>

enum { ROUNDS = 10000 };

static void check(velo2_ret_t ret, const char *call)
{
    if (ret == VELO2_RET_SUCCESS)
        return;
    fprintf(stderr, "%s: result %d\n", call, (int)ret);
    exit(1);
}

static void expect(velo2_port_t *port, unsigned expected, uint32_t source)
{
    unsigned count = 0;
    uint32_t len = 0, srcid = 0;
    uint8_t tag = 0;
    check(velo2_recv(port, &count, sizeof count, &len, &srcid, &tag, 0), "velo2_recv");
    if (len == sizeof count && count == expected && srcid == source && tag == 7)
        return;
    fprintf(stderr, "expected %u, received %u of %#x\n", expected, count, srcid);
    exit(1);
}

/* Tell the other process where our port is, and learn where its is. */
static uint32_t exchange(uint32_t ours, const int *pipe_out, const int *pipe_in)
{
    uint32_t theirs;
    if (write(pipe_out[1], &ours, sizeof ours) != sizeof ours ||
        read(pipe_in[0], &theirs, sizeof theirs) != sizeof theirs)
        exit(1);
    return theirs;
}

int main(void)
{
    int down[2], up[2], status = 0;
    if (pipe(down) || pipe(up))
        return 1;
    pid_t child = fork();
    velo2_port_t port;
    velo2_connection_t con;
    check(velo2_open(&port), "velo2_open");
    uint32_t ours = VELO2_ADDR_PACK(velo2_get_nodeid(&port), velo2_get_vpid(&port));
    uint32_t theirs = child ? exchange(ours, down, up) : exchange(ours, up, down);
    check(velo2_connect(&port, &con, theirs & 0xffff, theirs >> 16), "velo2_connect");
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (!child)
            expect(&port, round, theirs);
        check(velo2_send(&con, &round, sizeof round, 7, 0), "velo2_send");
        if (child)
            expect(&port, round, theirs);
    }
    check(velo2_disconnect(&port, &con), "velo2_disconnect");
    check(velo2_close(&port), "velo2_close");
    if (child && (wait(&status) != child || status != 0))
        return 1;
    if (child)
        printf("%d round trips\n", ROUNDS);
    return 0;
}
