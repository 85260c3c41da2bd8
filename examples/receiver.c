/* SPDX-License-Identifier: Apache-2.0 */
/* Opens port 1 and prints the message that comes: see sender.c. */
#include <stdio.h>

#include <velo/velo.h>

int main(void)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    struct velo_msg msg;
    char text[256];
    attr.vpid = 1;
    int status = velo_port_open(&attr, &port);
    if (status == VELO_OK) /* Waits, at most 60 seconds. */
        status = velo_recv(port, text, sizeof text, &msg, INT64_C(60000000000));
    if (status != VELO_OK) {
        fprintf(stderr, "%s\n%s\n", velo_strerror(status), velo_last_error());
        return 1;
    }
    printf("%.*s\n", (int)msg.len_bytes, text);
    return velo_port_close(port) != VELO_OK;
}
