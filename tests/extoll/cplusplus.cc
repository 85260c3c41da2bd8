// SPDX-License-Identifier: Apache-2.0
// The headers, their macros and their flags in C++; and what programs may rely on at compile time.
#include <rma2.h>
#include <velo2.h>

#include <cstddef>
#include <cstring>

static_assert(sizeof(velo2_port_t) == sizeof(void *));
static_assert(offsetof(velo2_connection_t, dest.raw) == 0);
static_assert(offsetof(velo2_connection_t, state_map) == 8);
static_assert(VELO2_ADDR_PACK(0xffff, 0xff) == 0xffffff);
static_assert(sizeof(RMA2_Notification) == 16);
static_assert(offsetof(RMA2_Notification, word1.value) == 8);
static_assert(sizeof(RMA2_Descriptor) == 64 && alignof(RMA2_Descriptor) == 16);
static_assert(sizeof(RMA2_Region) <= 112);

int main()
{
    static char memory[4096];
    velo2_port_t messages;
    velo2_connection_t con;
    RMA2_Port port;
    RMA2_Handle handle;
    RMA2_Region *region;
    char text[8] = "";
    if (velo2_open(&messages) != VELO2_RET_SUCCESS || rma2_open(&port) != RMA2_SUCCESS)
        return 1;
    if (velo2_connect(&messages, &con, velo2_get_nodeid(&messages), velo2_get_vpid(&messages)) !=
            VELO2_RET_SUCCESS ||
        velo2_send(&con, "message", 8, 1, 0) != VELO2_RET_SUCCESS ||
        velo2_recv(&messages, text, sizeof text, nullptr, nullptr, nullptr, 0) !=
            VELO2_RET_SUCCESS ||
        std::strcmp(text, "message") != 0)
        return 2;
    RMA2_Notification *notification;
    if (rma2_register(port, memory, sizeof memory, &region) != RMA2_SUCCESS ||
        rma2_connect(port, rma2_get_nodeid(port), rma2_get_vpid(port),
                     RMA2_CONN_DEFAULT | RMA2_CONN_IRQ, &handle) != RMA2_SUCCESS ||
        rma2_post_immediate_put(port, handle, 1, 'x', region->nla,
                                RMA2_REQUESTER_NOTIFICATION | RMA2_COMPLETER_NOTIFICATION,
                                RMA2_CMD_DEFAULT) != RMA2_SUCCESS ||
        rma2_noti_get_block(port, &notification) != RMA2_SUCCESS ||
        rma2_noti_free(port, notification) != RMA2_SUCCESS ||
        rma2_unregister(port, region) != RMA2_SUCCESS)
        return 3;
    return rma2_close(port) == RMA2_SUCCESS && velo2_close(&messages) == VELO2_RET_SUCCESS ? 0 : 4;
}
