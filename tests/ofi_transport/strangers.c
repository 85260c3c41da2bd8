/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that no correct peer sends: none gets an answer, or touches what others have. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "stranger.h"

#define SELF VELO_ID(0, 0)
#define PEER VELO_ID(0, 1)
#define OTHER VELO_ID(0, 9)

/* A port with a connection that has to go on working. */
struct scene {
    struct velo_port *port, *peer;
    struct velo_conn *conn;
    struct stranger *stranger;
};

static void scene_open(struct scene *scene)
{
    scene->port = port_open(0);
    scene->peer = port_open(1);
    scene->conn = port_connect(scene->peer, SELF);
    scene->stranger = stranger_open(scene->port);
    message_send(scene->conn, 8, 1);
    message_expect(scene->port, 8, 1, PEER);
}

static void expect_no_answer(struct scene *scene)
{
    char answer[WIRE_PACKET_BYTES];
    CHECK_EQ(stranger_receive(scene->stranger, answer, sizeof answer, 20 * TEST_MS), 0);
}

static void scene_close(struct scene *scene, uint64_t refused)
{
    CHECK_EQ(refused_of(scene->port, refused), refused);
    for (uint64_t i = 0; i < 100; i++) {
        message_send(scene->conn, 8, i);
        message_expect(scene->port, 8, i, PEER);
    }
    stranger_close(scene->stranger);
    CHECK_OK(velo_port_close(scene->peer));
    CHECK_OK(velo_port_close(scene->port));
}

TEST(garbage_is_refused_and_counted)
{
    struct scene scene;
    struct rng rng = {.state = test_seed()};
    char packet[WIRE_PACKET_BYTES];
    scene_open(&scene);
    for (int i = 0; i < 200; i++) {
        size_t len_bytes = 1 + rng_below(&rng, i % 2 ? 64 : sizeof packet);
        for (size_t at = 0; at < len_bytes; at++)
            packet[at] = (char)rng_next(&rng);
        if (i % 3 == 0 && len_bytes >= 4) { /* It looks like one of ours. */
            struct wire_header header = {.magic = WIRE_MAGIC,
                                         .kind = (uint16_t)(rng_below(&rng, WIRE_ACK + 2)),
                                         .index = rng_below(&rng, 4)};
            memcpy(packet, &header, len_bytes < 8 ? len_bytes : 8);
        }
        stranger_send(scene.stranger, packet, len_bytes);
    }
    CHECK_EQ(refused_of(scene.port, 200), 200);
    expect_no_answer(&scene);
    scene_close(&scene, 200);
}

TEST(greetings_without_the_secret_are_refused)
{
    struct scene scene;
    struct wire_greeting greeting;
    scene_open(&scene);
    for (uint32_t kind = WIRE_HELLO; kind <= WIRE_REJECT; kind++) {
        greeting_fill(&greeting, scene.stranger, kind, OTHER, SELF);
        greeting_sign(&greeting, "not the secret of that");
        stranger_send(scene.stranger, &greeting, sizeof greeting);
        /* With a right MAC of something else. */
        greeting_sign(&greeting, getenv("VELO_OFI_SECRET"));
        greeting.from = PEER;
        stranger_send(scene.stranger, &greeting, sizeof greeting);
        /* And cut. */
        greeting.from = OTHER;
        stranger_send(scene.stranger, &greeting, sizeof greeting - 1);
    }
    CHECK_EQ(refused_of(scene.port, 18), 18);
    expect_no_answer(&scene);
    scene_close(&scene, 18);
}

/* A port that calls somebody, in a thread of its own. */
struct call {
    struct velo_port *port;
    pthread_t thread;
    atomic_int status; /* VELO_OK: it is under way. */
};

static void *call_other(void *arg)
{
    struct call *call = arg;
    struct velo_conn *conn;
    int status = velo_connect(call->port, OTHER, &conn, TEST_PATIENCE_NS);
    atomic_store(&call->status, status ? status : VELO_AGAIN);
    return NULL;
}

/* The port that it calls is a stranger. */
static void call_begin(struct call *call, struct stranger *stranger)
{
    char name[VELO_PORT_NAME_BYTES_MAX], address[WIRE_NAME_BYTES];
    size_t name_bytes = sizeof name;
    uint32_t address_bytes = stranger_name(stranger, address);
    CHECK_OK(velo_port_name(call->port, name, &name_bytes));
    CHECK(address_bytes < name_bytes);
    memcpy(name + name_bytes - address_bytes, address, address_bytes);
    CHECK_OK(velo_peer_name(call->port, OTHER, name, name_bytes));
    CHECK_EQ(pthread_create(&call->thread, NULL, call_other, call), 0);
}

/* The last HELLO that has come: the port says it again and again. */
static void hear_hello(struct stranger *stranger, struct wire_greeting *hello)
{
    CHECK_EQ(stranger_receive(stranger, hello, sizeof *hello, TEST_PATIENCE_NS), sizeof *hello);
    while (stranger_receive(stranger, hello, sizeof *hello, 20 * TEST_MS) > 0)
        ;
    CHECK_EQ(hello->header.kind, WIRE_HELLO);
}

static void send_reject(struct stranger *stranger, const struct wire_greeting *hello,
                        uint8_t first_of_nonce)
{
    struct wire_greeting reject;
    greeting_fill(&reject, stranger, WIRE_REJECT, OTHER, SELF);
    reject.header.index = hello->index;
    memcpy(reject.nonce_hello, hello->nonce_hello, sizeof reject.nonce_hello);
    reject.nonce_hello[0] = first_of_nonce;
    stranger_send(stranger, &reject, sizeof reject);
}

TEST(only_the_port_that_is_called_can_say_that_it_has_another_secret)
{
    CHECK_EQ(setenv("VELO_OFI_TIMEOUT_MS", "60000", 1), 0);
    struct call call = {.port = port_open(0)};
    struct stranger *other = stranger_open(call.port), *thief = stranger_open(call.port);
    struct wire_greeting hello;
    struct velo_port_counters counters;
    call_begin(&call, other);
    hear_hello(other, &hello);
    send_reject(thief, &hello, hello.nonce_hello[0]);
    send_reject(other, &hello, (uint8_t)~hello.nonce_hello[0]);
    do
        CHECK_OK(velo_port_counters(call.port, &counters, sizeof counters));
    while (counters.rx_errors < 2);
    CHECK_EQ(atomic_load(&call.status), VELO_OK);
    send_reject(other, &hello, hello.nonce_hello[0]);
    while (atomic_load(&call.status) == VELO_OK) { /* It has begun anew meanwhile. */
        if (stranger_receive(other, &hello, sizeof hello, 20 * TEST_MS) > 0)
            send_reject(other, &hello, hello.nonce_hello[0]);
    }
    CHECK_EQ(pthread_join(call.thread, NULL), 0);
    CHECK_EQ(call.status, VELO_ERR_ACCESS);
    stranger_close(other);
    stranger_close(thief);
    CHECK_OK(velo_port_close(call.port));
}

/* A stranger that has heard a HELLO can say it again. The answer goes to the port that said it
 * first: here the address under the MAC is that of the peer, and it did not call. */
TEST(a_hello_said_again_changes_nothing)
{
    struct scene scene;
    struct wire_greeting greeting;
    char name[VELO_PORT_NAME_BYTES_MAX];
    size_t name_bytes = sizeof name;
    scene_open(&scene);
    CHECK_OK(velo_port_name(scene.peer, name, &name_bytes));
    greeting_fill(&greeting, scene.stranger, WIRE_HELLO, PEER, SELF);
    memset(greeting.name, 0, sizeof greeting.name);
    memcpy(greeting.name, name + 8, name_bytes - 8);
    greeting_sign(&greeting, getenv("VELO_OFI_SECRET"));
    for (int i = 0; i < 5; i++)
        stranger_send(scene.stranger, &greeting, sizeof greeting);
    /* It cannot prove that it lives. */
    greeting.header.kind = WIRE_CONFIRM;
    for (uint32_t index = 0; index < 8; index++) {
        greeting.header.index = index;
        greeting_sign(&greeting, getenv("VELO_OFI_SECRET"));
        stranger_send(scene.stranger, &greeting, sizeof greeting);
    }
    CHECK_EQ(refused_of(scene.port, 0), 0);
    expect_no_answer(&scene);
    scene_close(&scene, 0);
}

/* A peer with the secret, but the source of its packets is not the address that it named. */
TEST(a_token_is_worth_nothing_at_another_address)
{
    struct scene scene;
    struct wire_header header;
    scene_open(&scene);
    struct stranger *thief = stranger_open(scene.port);
    stranger_greet(scene.stranger, OTHER, SELF, &header);
    stranger_send(thief, &header, sizeof header);
    CHECK_EQ(refused_of(scene.port, 1), 1);
    stranger_close(thief);
    header.token++;
    stranger_send(scene.stranger, &header, sizeof header);
    CHECK_EQ(refused_of(scene.port, 2), 2);
    header.token--;
    header.kind = WIRE_BYE;
    stranger_send(scene.stranger, &header, sizeof header);
    scene_close(&scene, 2);
}

/* Packets of a connection that is over, after its peer has begun anew. */
TEST(packets_of_an_old_connection_are_refused)
{
    struct scene scene;
    struct wire_header first, second;
    scene_open(&scene);
    stranger_greet(scene.stranger, OTHER, SELF, &first);
    stranger_greet(scene.stranger, OTHER, SELF, &second);
    CHECK(first.token != second.token);
    first.index = second.index; /* Where it would do harm. */
    stranger_send(scene.stranger, &first, sizeof first);
    CHECK_EQ(refused_of(scene.port, 1), 1);
    second.kind = WIRE_BYE;
    stranger_send(scene.stranger, &second, sizeof second);
    scene_close(&scene, 1);
}

struct frame {
    struct wire_header header;
    struct wire_envelope envelope;
    uint64_t words[8];
};

/* Frames of one who has the secret, and breaks the rules: its own connection ends, no other. */
TEST(frames_that_are_none_end_their_connection)
{
    static const struct wire_envelope bad[] = {
        {.kind = 0},
        {.kind = VELO_FRAME_CLOSE + 1},
        {.kind = VELO_FRAME_DATA, .payload_bytes = 65535, .from_dialer = 1},
        {.kind = VELO_FRAME_DATA, .payload_bytes = 64, .from_dialer = 1},
        {.kind = VELO_FRAME_SLOT, .from_dialer = 2},
    };
    struct scene scene;
    scene_open(&scene);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct frame frame = {.envelope = bad[i]};
        stranger_greet(scene.stranger, OTHER, SELF, &frame.header);
        stranger_send(scene.stranger, &frame, sizeof frame);
        CHECK_EQ(refused_of(scene.port, i + 1), i + 1);
    }
    scene_close(&scene, ARRAY_LEN(bad));
}

/* It may not say that it is another port than it has proved to be. */
TEST(a_line_opened_for_another_port_is_refused)
{
    struct scene scene;
    struct frame frame = {.envelope = {.kind = VELO_FRAME_OPEN,
                                       .use = 1,
                                       .from_dialer = 1,
                                       .payload_bytes = sizeof(struct velo_frame_open)}};
    struct velo_frame_open open = {.spec_hash = VELO_SPEC_HASH, .source = PEER, .generation = 77};
    struct velo_port_counters counters;
    scene_open(&scene);
    stranger_greet(scene.stranger, OTHER, SELF, &frame.header);
    memcpy(frame.words, &open, sizeof open);
    stranger_send(scene.stranger, &frame,
                  offsetof(struct frame, words) + (sizeof open + 7) / 8 * 8);
    CHECK_EQ(refused_of(scene.port, 1), 1);
    CHECK_OK(velo_port_counters(scene.port, &counters, sizeof counters));
    CHECK_EQ(counters.rx_conns, 1);
    scene_close(&scene, 1);
}
