/* SPDX-License-Identifier: Apache-2.0 */
/* Sends its argument to the port 1 of this user: see receiver.c. */
#include <stdio.h>
#include <string.h>

#include <velo/velo.h>

int main(int argc, char **argv)
{
    const char *text = argc > 1 ? argv[1] : "hello";
    struct velo_port *port;
    struct velo_conn *conn;
    int status = velo_port_open(NULL, &port); /* Under the lowest number that is free. */
    if (status == VELO_OK)                    /* Waits for the receiver, at most 10 seconds. */
        status = velo_connect(port, VELO_ID(0, 1), &conn, INT64_C(10000000000));
    if (status == VELO_OK)
        status = velo_send(conn, text, strlen(text), 0, VELO_FOREVER);
    if (status != VELO_OK) {
        fprintf(stderr, "%s\n%s\n", velo_strerror(status), velo_last_error());
        return 1;
    }
    return velo_port_close(port) != VELO_OK;
}
