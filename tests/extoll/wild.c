/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program in the style of those that were written for EXTOLL: one process on each of two nodes,
 * addresses sent by velo2, data by rma2, and each waits in the way that suits it. One posts all
 * that it has and then waits for a message; the other looks for notifications, takes locks, and
 * answers. Then they change sides.
 *
 * wild bare: they wait by nothing but loads of what the other one puts.
 * wild probe: these loops also look for notifications, as loops must where time is virtual.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rma2.h>
#include <velo2.h>

#define PUTS 500
#define PUT_BYTES 64
#define LOCKS 40
#define POLL_ROUNDS 20
#define CLASS_DONE 7
#define TAG_ADDRESS 1
#define TAG_ALL_THERE 2

#define RMA2(call)                                                                                 \
    do {                                                                                           \
        RMA2_ERROR error_ = (call);                                                                \
        if (error_ != RMA2_SUCCESS) {                                                              \
            rma2_perror(error_, #call);                                                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define VELO2(call)                                                                                \
    do {                                                                                           \
        velo2_ret_t ret_ = (call);                                                                 \
        if (ret_ != VELO2_RET_SUCCESS) {                                                           \
            fprintf(stderr, #call ": %d\n", ret_);                                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: not so: " #condition "\n", __LINE__);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct address {
    RMA2_NLA nla;
    RMA2_VPID vpid;
};

static velo2_port_t mailbox;
static velo2_connection_t to_other;
static RMA2_Port port;
static RMA2_Handle other;
static RMA2_Region *region;
static RMA2_NLA others;
static unsigned char *memory;

static unsigned char *sent_from(void) { return memory; }
static unsigned char *put_to(void) { return memory + PUTS * PUT_BYTES; }

static void tell(uint8_t tag, const void *text, unsigned len)
{
    VELO2(velo2_send(&to_other, text, len, tag, 0));
}

static void wait_for(uint8_t tag, void *text, unsigned max)
{
    uint32_t len, source;
    uint8_t tag_came;
    VELO2(velo2_recv(&mailbox, text, max, &len, &source, &tag_came, 0));
    EXPECT(tag_came == tag && len == max);
}

static void connect_all(void)
{
    const size_t size = 2 * PUTS * PUT_BYTES;
    struct address mine, theirs;
    VELO2(velo2_open(&mailbox));
    RMA2(rma2_open(&port));
    memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    EXPECT(memory);
    memset(memory, 0, size);
    RMA2(rma2_register(port, memory, size, &region));
    RMA2(rma2_get_nla(region, PUTS * PUT_BYTES, &mine.nla));
    mine.vpid = rma2_get_vpid(port);
    VELO2(velo2_connect(&mailbox, &to_other, 1 - velo2_get_nodeid(&mailbox), 0));
    tell(TAG_ADDRESS, &mine, sizeof mine);
    wait_for(TAG_ADDRESS, &theirs, sizeof theirs);
    others = theirs.nla;
    RMA2(rma2_connect(port, (RMA2_Nodeid)(1 - rma2_get_nodeid(port)), theirs.vpid,
                      RMA2_CONN_DEFAULT, &other));
}

static RMA2_Notification next_notification(void)
{
    RMA2_Notification *at, copy;
    RMA2_ERROR error;
    while ((error = rma2_noti_probe(port, &at)) == RMA2_NO_NOTI)
        ;
    RMA2(error);
    copy = *at;
    RMA2(rma2_noti_free(port, at));
    EXPECT(rma2_noti_get_error(&copy) == 0);
    return copy;
}

/* Post everything, then leave it to the hardware. */
static void give(unsigned char round)
{
    char text[4];
    RMA2_Notification done;
    for (unsigned i = 0; i < PUTS; i++) {
        memset(sent_from() + i * PUT_BYTES, (unsigned char)(round + i), PUT_BYTES);
        RMA2(rma2_post_put_bt(port, other, region, i * PUT_BYTES, PUT_BYTES, others + i * PUT_BYTES,
                              RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT));
    }
    wait_for(TAG_ALL_THERE, text, sizeof text);
    done = next_notification();
    EXPECT(rma2_noti_get_cmd(&done) == RMA2_NOTIFICATION_PUT);
    EXPECT(rma2_noti_get_notiput_class(&done) == CLASS_DONE);
    EXPECT(rma2_noti_get_notiput_payload(&done) == round);
}

/* Take it all, then ask for locks of the other one, which only waits for a message. */
static void take(unsigned char round)
{
    for (unsigned i = 0; i < PUTS; i++) {
        RMA2_Notification came = next_notification();
        EXPECT(rma2_noti_get_size(&came) == PUT_BYTES);
        EXPECT(rma2_noti_get_local_address(&came) ==
               region->nla + PUTS * PUT_BYTES + (RMA2_NLA)i * PUT_BYTES);
        for (unsigned b = 0; b < PUT_BYTES; b++)
            EXPECT(put_to()[i * PUT_BYTES + b] == (unsigned char)(round + i));
    }
    for (int i = 0; i < LOCKS; i++) {
        RMA2(rma2_post_lock(port, other, RMA2_LOCK_RESPONDER, 5, LOCKS, 1,
                            RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT));
        RMA2_Notification *outcome;
        RMA2(rma2_noti_get_block(port, &outcome));
        EXPECT(rma2_noti_get_lock_value(outcome) == i + 1 && rma2_noti_get_lock_result(outcome));
        RMA2(rma2_noti_free(port, outcome));
    }
    RMA2(rma2_post_notification(port, other, CLASS_DONE, round, RMA2_COMPLETER_NOTIFICATION,
                                RMA2_CMD_DEFAULT));
    tell(TAG_ALL_THERE, "all", 4);
}

static void wait_for_word(const volatile uint32_t *word, uint32_t value, int does_probe)
{
    RMA2_Notification *none;
    while (*word != value)
        if (does_probe)
            EXPECT(rma2_noti_probe(port, &none) == RMA2_NO_NOTI);
}

/* The last bytes of a put are written last, so they say that it is there. It is looked at before
 * the answer goes out, since the next one may be here before the answer's call returns. */
static void wait_for_put(uint32_t round, int does_probe)
{
    wait_for_word((volatile uint32_t *)(void *)(put_to() + PUT_BYTES - 4), round, does_probe);
    EXPECT(put_to()[0] == round && put_to()[PUT_BYTES - 5] == round);
}

static void poll_memory(int is_first, int does_probe)
{
    for (uint32_t round = 1; round <= POLL_ROUNDS; round++) {
        if (!is_first)
            wait_for_put(round, does_probe);
        memset(sent_from(), (int)round, PUT_BYTES - 4);
        memcpy(sent_from() + PUT_BYTES - 4, &round, 4);
        RMA2(rma2_post_put_bt(port, other, region, 0, PUT_BYTES, others, RMA2_NO_NOTIFICATION,
                              RMA2_CMD_DEFAULT));
        if (is_first)
            wait_for_put(round, does_probe);
    }
}

int main(int argc, char **argv)
{
    char text[4];
    connect_all();
    const int node = (int)velo2_get_nodeid(&mailbox);
    if (argc > 1) {
        poll_memory(node == 0, strcmp(argv[1], "probe") == 0);
    } else {
        node == 0 ? give(10) : take(10);
        node == 0 ? take(20) : give(20);
    }
    tell(TAG_ALL_THERE, "end", 4);
    wait_for(TAG_ALL_THERE, text, sizeof text);
    printf("node %d: all is well\n", node);
    RMA2(rma2_disconnect(port, other));
    RMA2(rma2_unregister(port, region));
    RMA2(rma2_close(port));
    VELO2(velo2_disconnect(&mailbox, &to_other));
    VELO2(velo2_close(&mailbox));
    free(memory);
    return 0;
}
