/* SPDX-License-Identifier: Apache-2.0 */
/* A program as EXTOLL's were: two nodes, a context of velo2 and one of rma2 on each. */
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rma2.h>
#include <velo2.h>

#include "play.h"

enum { SIZE = 4096, BURST = 100 };

static unsigned char memory[2 * SIZE] __attribute__((aligned(4096)));
static velo2_port_t messages_port;
static RMA2_Port port;
static RMA2_Region *region;

void close_all(void)
{
    if (region)
        (void)rma2_unregister(port, region);
    if (port)
        (void)rma2_close(port);
    if (messages_port.map)
        (void)velo2_close(&messages_port);
}

static void check2(velo2_ret_t ret, const char *call)
{
    if (ret != VELO2_RET_SUCCESS)
        give_up(call, "it failed", "");
}

static void check(RMA2_ERROR error, const char *call)
{
    char text[128];
    if (error == RMA2_SUCCESS)
        return;
    rma2_serror(error, text, sizeof text);
    give_up(call, text, "");
}

#define DO2(call) check2(call, #call)
#define DO(call) check(call, #call)

/* The calls that wait have no limit. */
static void receive(void *to, uint32_t len, uint8_t tag)
{
    int64_t end_ns = now_ns() + patience_ns;
    uint32_t got;
    uint8_t got_tag;
    velo2_ret_t ret;
    while ((ret = velo2_probe_recv(&messages_port, to, len, &got, NULL, &got_tag, NULL)) ==
           VELO2_RET_NO_MSG) {
        expect_before(end_ns, "velo2_probe_recv");
        (void)sched_yield();
    }
    DO2(ret);
    expect(got == len && got_tag == tag, "a message's length or tag");
}

static void await_notification(uint32_t size)
{
    int64_t end_ns = now_ns() + patience_ns;
    RMA2_Notification *note;
    RMA2_ERROR error;
    while ((error = rma2_noti_probe(port, &note)) == RMA2_NO_NOTI) {
        expect_before(end_ns, "rma2_noti_probe");
        (void)sched_yield();
    }
    DO(error);
    expect(rma2_noti_get_size(note) == size, "a notification's size");
    DO(rma2_noti_free(port, note));
}

struct place {
    RMA2_NLA nla;
    RMA2_VPID vpid;
};

/* The first operation of a connection waits for the other side's port. */
static void both(int role)
{
    velo2_connection_t con;
    RMA2_Handle handle;
    struct place mine, theirs;
    unsigned char byte = 0;
    DO2(velo2_open(&messages_port));
    DO(rma2_open(&port));
    DO(rma2_register(port, memory, sizeof memory, &region));
    DO2(velo2_connect(&messages_port, &con, (velo2_nodeid_t)!role, 0));
    DO(rma2_get_nla(region, SIZE, &mine.nla));
    mine.vpid = rma2_get_vpid(port);
    DO2(velo2_send(&con, &mine, sizeof mine, 5, 0));
    receive(&theirs, sizeof theirs, 5);
    DO(rma2_connect(port, (RMA2_Nodeid)!role, theirs.vpid, RMA2_CONN_DEFAULT, &handle));
    memcpy(memory, data, SIZE);
    DO(rma2_post_put_bt(port, handle, region, 0, SIZE, theirs.nla, RMA2_COMPLETER_NOTIFICATION,
                        RMA2_CMD_DEFAULT));
    await_notification(SIZE);
    expect(memcmp(memory + SIZE, data, SIZE) == 0, "the bytes of a put");
    for (int i = 0; i < BURST; i++)
        DO2(velo2_send(&con, &byte, 1, 1, 0));
    for (int i = 0; i < BURST; i++)
        receive(&byte, 1, 1);
    DO(rma2_disconnect(port, handle));
}

const struct scene scenes[] = {{"both", both}, {NULL, NULL}};
