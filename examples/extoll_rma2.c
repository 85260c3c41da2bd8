/* SPDX-License-Identifier: Apache-2.0 */
/* A process puts text into another's memory through EXTOLL's interface, and gets it back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rma2.h>

static char memory[8192] __attribute__((aligned(4096)));
static const char text[] = "written by a peer";

static void check(RMA2_ERROR error, const char *call)
{
    if (error == RMA2_SUCCESS)
        return;
    rma2_perror(error, call);
    exit(1);
}

static void wait_for(RMA2_Port port, RMA2_Command cmd)
{
    RMA2_Notification *notification;
    check(rma2_noti_get_block(port, &notification), "rma2_noti_get_block");
    if (rma2_noti_get_cmd(notification) != cmd || rma2_noti_get_size(notification) != sizeof text) {
        rma2_noti_dump(notification);
        exit(1);
    }
    check(rma2_noti_free(port, notification), "rma2_noti_free");
}

struct place {
    RMA2_Nodeid node;
    RMA2_VPID vpid;
    RMA2_NLA nla;
};

int main(void)
{
    int down[2], status = 0;
    struct place place;
    if (pipe(down))
        return 1;
    pid_t child = fork();
    RMA2_Port port;
    RMA2_Region region;
    check(rma2_open(&port), "rma2_open");
    check(rma2_register_nomalloc(port, memory, sizeof memory, &region), "rma2_register");
    if (child) { /* Whose memory it is: it says where, and waits until all is done. */
        place = (struct place){rma2_get_nodeid(port), rma2_get_vpid(port), region.nla};
        if (write(down[1], &place, sizeof place) != sizeof place)
            return 1;
        wait_for(port, RMA2_BT_PUT);
        wait_for(port, RMA2_BT_GET);
        printf("%s\n", memory + 100);
        return wait(&status) != child || status != 0 || strcmp(memory + 100, text) != 0 ||
               rma2_close(port) != RMA2_SUCCESS;
    }
    RMA2_Handle handle;
    if (read(down[0], &place, sizeof place) != sizeof place)
        return 1;
    check(rma2_connect(port, place.node, place.vpid, RMA2_CONN_DEFAULT, &handle), "rma2_connect");
    memcpy(memory, text, sizeof text);
    check(rma2_post_put_bt(port, handle, &region, 0, sizeof text, place.nla + 100, 4, 0), "put");
    check(rma2_post_get_bt(port, handle, &region, 4096, sizeof text, place.nla + 100, 6, 0), "get");
    wait_for(port, RMA2_GET_BT_RSP);
    return strcmp(memory + 4096, text) != 0 || rma2_close(port) != RMA2_SUCCESS;
}
