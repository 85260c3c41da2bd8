/* SPDX-License-Identifier: Apache-2.0 */
/* When a packet leaves. The fabric and the clock are this file's: packets are counted, and time
 * goes by when a test says so. */
#include <string.h>

#include "../../transports/ofi/ofi.h"
#include "test.h"

#define PEER VELO_ID(0, 1)
#define US 1000
/* Longer than anything is held back. */
#define LONG_NS (1000 * US)

/* ---- in the place of the other files --------------------------------------------------------- */

static int64_t now_ns = 1000 * LONG_NS;
static uint32_t packets; /* That have left. */

int64_t timer_now_ns(void) { return now_ns; }

enum fabric_sent offer_packet(struct conn *conn, struct packet *packet)
{
    (void)conn;
    (void)packet;
    packets++;
    return FABRIC_DONE;
}

void endpoint_refuse(const struct endpoint_base *base)
{
    (void)base;
    CHECK(!"refused");
}

void conn_end(struct conn *conn, int status)
{
    (void)conn;
    CHECK_EQ(status, VELO_OK);
}

void greeting_take(struct endpoint *endpoint, const void *data, size_t len_bytes, fi_addr_t from)
{
    (void)endpoint;
    (void)data;
    (void)len_bytes;
    (void)from;
    CHECK(!"greeted");
}

/* ---- a connection ---------------------------------------------------------------------------- */

static struct velo_transport_calls calls;
static char memory[TX_PACKETS][WIRE_PACKET_BYTES];

struct scene {
    struct endpoint endpoint;
    struct conn conn, *conns[1];
    struct packet packets[TX_PACKETS];
    struct circuit *circuit;
};

static void scene_open(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    scene->conns[0] = &scene->conn;
    scene->endpoint = (struct endpoint){.base = {.calls = &calls, .circuit_use = &packet_circuits},
                                        .conns = scene->conns,
                                        .conns_len = 1};
    scene->conn = (struct conn){.endpoint = &scene->endpoint, .state = CONN_OPEN, .address = 7};
    circuits_init(&scene->conn.circuits, &scene->endpoint.base, PEER);
    for (uint32_t i = 0; i < TX_PACKETS; i++) {
        scene->packets[i] = (struct packet){
            .use = PACKET_TX, .conn = &scene->conn, .next = scene->conn.free, .data = memory[i]};
        scene->conn.free = &scene->packets[i];
    }
    void *circuit;
    CHECK_OK(circuit_dial(&scene->conn.circuits, NULL, &circuit));
    scene->circuit = circuit;
    packets = 0;
}

static void scene_close(struct scene *scene) { circuits_free(&scene->conn.circuits); }

/* The program sends; as the library does it. True: it is held back. */
static bool send_message(struct scene *scene)
{
    const uint64_t word = 1;
    const struct velo_frame slot = {
        .kind = VELO_FRAME_SLOT, .payload_bytes = sizeof word, .payload = &word};
    CHECK_OK(packet_add(scene->circuit, &slot));
    return packets_hold(&scene->endpoint);
}

static void take_message(struct scene *scene)
{
    struct {
        struct wire_header header;
        struct wire_envelope envelope;
        uint64_t word;
    } packet = {.header = {.magic = WIRE_MAGIC,
                           .kind = WIRE_FRAMES,
                           .sequence = scene->conn.taken,
                           .taken = scene->conn.sent},
                .envelope = {.kind = VELO_FRAME_SLOT, .from_dialer = 1}};
    packet_take(&scene->endpoint, (const char *)&packet, sizeof packet, scene->conn.address);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(an_answer_leaves_at_once_and_takes_along_what_was_held)
{
    struct scene scene;
    scene_open(&scene);
    CHECK(!send_message(&scene)); /* The first after a while. */
    CHECK_EQ(packets, 1);
    now_ns += US;
    CHECK(send_message(&scene));
    CHECK_EQ(packets, 1);
    take_message(&scene);
    CHECK(!send_message(&scene));
    CHECK_EQ(packets, 2);
    CHECK(send_message(&scene)); /* Behind the answer nobody waits for anything. */
    CHECK_EQ(packets, 2);
    scene_close(&scene);
}

/* Credits for so many slots of a ring of 256. */
static void give_credit(struct scene *scene, uint64_t slots)
{
    const struct velo_frame credit = {.kind = VELO_FRAME_CREDIT, .word = {slots, 0}};
    CHECK_OK(packet_add(scene->circuit, &credit));
}

static void accept_line(struct scene *scene)
{
    const struct velo_frame_accept accept = {.depth_slots = 256, .data_bytes = 65536};
    const struct velo_frame frame = {
        .kind = VELO_FRAME_ACCEPT, .payload_bytes = sizeof accept, .payload = &accept};
    CHECK_OK(packet_add(scene->circuit, &frame));
    packets_flush(&scene->endpoint, false);
    packets = 0;
}

TEST(credits_travel_with_an_answer)
{
    struct scene scene;
    scene_open(&scene);
    accept_line(&scene);
    take_message(&scene);
    give_credit(&scene, 127);
    CHECK_EQ(packets, 0);
    CHECK(!send_message(&scene));
    CHECK_EQ(packets, 1);
    CHECK(!scene.conn.credits);
    scene_close(&scene);
}

TEST(credits_for_half_a_ring_leave_at_once_and_are_no_answer)
{
    struct scene scene;
    scene_open(&scene);
    accept_line(&scene);
    take_message(&scene);
    give_credit(&scene, 128);
    CHECK_EQ(packets, 1);
    CHECK(!send_message(&scene)); /* The answer. */
    CHECK_EQ(packets, 2);
    CHECK(send_message(&scene));
    scene_close(&scene);
}

TEST(messages_in_a_row_travel_together)
{
    struct scene scene;
    scene_open(&scene);
    now_ns += LONG_NS;
    for (int i = 0; i < 100; i++) {
        (void)send_message(&scene);
        now_ns += US / 2;
    }
    CHECK_EQ(packets, 5); /* One at once, and one each time that more than 10 us have gone by. */
    packets_flush(&scene.endpoint, false);
    CHECK_EQ(packets, 6);
    packets_flush(&scene.endpoint, false);
    CHECK_EQ(packets, 6);
    scene_close(&scene);
}

TEST(a_packet_that_is_full_waits_for_nothing)
{
    struct scene scene;
    scene_open(&scene);
    now_ns += LONG_NS;
    (void)send_message(&scene);
    uint32_t most = WIRE_PACKET_BYTES / wire_frame_bytes(VELO_FRAME_SLOT, sizeof(uint64_t)) + 1;
    for (uint32_t i = 0; i < most; i++)
        (void)send_message(&scene);
    CHECK_EQ(packets, 2);
    scene_close(&scene);
}
