/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as EXTOLL's were: a launcher starts one process on each of two nodes. Each sends to the
 * other's first context where its memory is, and puts into it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rma2.h>
#include <velo2.h>

enum { SIZE = 4096, ROUNDS = 50 };
static unsigned char memory[2 * SIZE] __attribute__((aligned(4096)));

static void check(int is_good, const char *what)
{
    if (is_good)
        return;
    fprintf(stderr, "%s is wrong\n", what);
    exit(1);
}

struct place {
    RMA2_NLA nla;
    RMA2_VPID vpid;
};

static void put(RMA2_Port port, RMA2_Handle handle, RMA2_Region *region, RMA2_NLA to, int round)
{
    RMA2_Notification *note;
    memset(memory, round + 1, SIZE);
    check(rma2_post_put_bt(port, handle, region, 0, SIZE, to, RMA2_COMPLETER_NOTIFICATION, 0) ==
              RMA2_SUCCESS,
          "a put");
    check(rma2_noti_get_block(port, &note) == RMA2_SUCCESS && rma2_noti_get_size(note) == SIZE &&
              memory[SIZE] == round + 1 && memory[2 * SIZE - 1] == round + 1 &&
              rma2_noti_free(port, note) == RMA2_SUCCESS,
          "what was put");
}

int main(void)
{
    velo2_port_t messages;
    velo2_connection_t con;
    RMA2_Port port;
    RMA2_Handle handle;
    RMA2_Region region;
    struct place mine, theirs;
    uint32_t len, source;
    uint8_t tag;
    check(velo2_open(&messages) == VELO2_RET_SUCCESS && rma2_open(&port) == RMA2_SUCCESS, "open");
    const velo2_nodeid_t node = velo2_get_nodeid(&messages);
    check(node < 2 && velo2_get_vpid(&messages) == 0, "this process's place");
    check(rma2_get_nodeid(port) == node, "the node of rma2");
    check(rma2_register_nomalloc(port, memory, sizeof memory, &region) == RMA2_SUCCESS, "region");
    check(velo2_connect(&messages, &con, 1 - node, 0) == VELO2_RET_SUCCESS, "connection");
    mine = (struct place){region.nla + SIZE, rma2_get_vpid(port)};
    check(velo2_send(&con, &mine, sizeof mine, 5, 0) == VELO2_RET_SUCCESS, "the first send");
    check(velo2_recv(&messages, &theirs, sizeof theirs, &len, &source, &tag, 0) ==
                  VELO2_RET_SUCCESS &&
              len == sizeof theirs && source == VELO2_ADDR_PACK(1 - node, 0) && tag == 5,
          "the first message");
    check(rma2_connect(port, (RMA2_Nodeid)(1 - node), theirs.vpid, RMA2_CONN_DEFAULT, &handle) ==
              RMA2_SUCCESS,
          "the connection of rma2");
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char byte = (unsigned char)round;
        put(port, handle, &region, theirs.nla, round);
        check(velo2_send(&con, &byte, 1, 0, 0) == VELO2_RET_SUCCESS, "a send");
        check(velo2_recv(&messages, &byte, 1, &len, NULL, NULL, 0) == VELO2_RET_SUCCESS &&
                  len == 1 && byte == round,
              "a message");
    }
    printf("node %u: %d rounds\n", (unsigned)node, ROUNDS);
    check(rma2_close(port) == RMA2_SUCCESS && velo2_close(&messages) == VELO2_RET_SUCCESS, "close");
    return 0;
}
