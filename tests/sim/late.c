/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks without MPI. The second one computes before its first call, which takes no virtual
 * time. The first one waits for it, with a short limit in virtual time.
 */
#include <stdio.h>
#include <stdlib.h>

#include <velo/velo.h>

/* Some tenths of a second, so that the first rank has made its call. */
#define COMPUTES 400000000u
/* Ten times the pause of a connect that finds nobody. */
#define PATIENCE_NS 10000000

static void check(int status, const char *call)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "rank %s %s: %s\n%s\n", getenv("OMPI_COMM_WORLD_RANK"), call,
            velo_strerror(status), velo_last_error());
    exit(EXIT_FAILURE);
}

int main(void)
{
    const char *text = getenv("OMPI_COMM_WORLD_RANK");
    int rank = text ? atoi(text) : 0;
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    struct velo_conn *conn;
    struct velo_msg msg;
    uint64_t got = 0, sent = 7;

    for (volatile uint32_t i = 0; rank == 1 && i < COMPUTES;)
        i = i + 1;
    attr.node = rank;
    check(velo_port_open(&attr, &port), "velo_port_open");
    check(velo_connect(port, VELO_ID(1 - rank, 0), &conn, PATIENCE_NS), "velo_connect");
    check(velo_send(conn, &sent, sizeof sent, 0, PATIENCE_NS), "velo_send");
    check(velo_recv(port, &got, sizeof got, &msg, PATIENCE_NS), "velo_recv");
    check(velo_port_close(port), "velo_port_close");
    return got == sent ? EXIT_SUCCESS : EXIT_FAILURE;
}
