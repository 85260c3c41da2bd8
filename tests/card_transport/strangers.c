/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts that send what no port sends: whom the transport lets in, and what becomes of the rest.
 * Of two nodes the map counts odd vpids as on the second.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stranger.h"

/* Of a process that cannot go on: sim/client/channel.h. */
#define SIM_EXIT 70

#define PEER VELO_ID(0, 7)
#define PEER_NODE 1
/* What a peer needs at most beside its window: card.h. */
#define SPARE_SLOTS 8

static uint64_t refused(struct velo_port *port)
{
    struct velo_port_counters counters;
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    return counters.rx_errors;
}

static uint64_t connected(struct velo_port *port)
{
    struct velo_port_counters counters;
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    return counters.rx_conns;
}

static uint16_t generation_of(struct velo_port *port)
{
    uint16_t address, generation;
    port_place(port, &address, &generation);
    return generation;
}

static unsigned kind_of(const uint64_t *line) { return velo_header_tag(line[0]); }

/* The peer's OPEN as a frame of two lines. */
static uint16_t say_open(const struct stranger *s, struct velo_port *port, uint16_t sequence,
                         uint32_t source, uint32_t generation)
{
    const struct velo_frame_open open = {
        .spec_hash = VELO_SPEC_HASH, .source = source, .generation = generation};
    const struct wire_envelope envelope = {.circuit = 0,
                                           .use = 1,
                                           .payload_bytes = sizeof open,
                                           .kind = VELO_FRAME_OPEN,
                                           .from_dialer = 1};
    uint64_t words[1 + sizeof open / 8];
    memcpy(words, &envelope, sizeof envelope);
    memcpy(words + 1, &open, sizeof open);
    stranger_say(s, port, WIRE_FRAME, sequence++, words, 2);
    stranger_say(s, port, WIRE_MORE, sequence++, words + 2, sizeof words / 8 - 2);
    return sequence;
}

TEST(a_port_is_who_its_context_is)
{
    struct velo_port *port = port_open(0), *other = port_open(1);
    struct stranger *s = stranger_open(PEER_NODE, PEER);
    uint64_t line[WIRE_LINE_WORDS];
    CHECK_EQ(stranger_address(s), wire_address(PEER_NODE, VELO_ID_VPID(PEER)));
    /* A port of this machine is where its segment says. */
    stranger_hello(s, port, 0, velo_port_id(other), 1);
    CHECK(stranger_take(s, port, line));
    CHECK_EQ(kind_of(line), WIRE_REFUSE);
    CHECK_EQ((int32_t)line[2], VELO_ERR_ACCESS);
    CHECK_EQ(refused(port), 1);
    /* Another vpid, and another node than the hardware's, which nobody has vouched for. */
    stranger_hello(s, port, 0, VELO_ID(0, 9), 2);
    stranger_hello(s, port, 0, VELO_ID(0, 8), 3);
    stranger_hello(s, port, 0, VELO_ID(5, 7), 4);
    CHECK(stranger_takes_nothing(s, port));
    /* Its own. */
    stranger_hello(s, port, 0, PEER, 5);
    CHECK(stranger_take(s, port, line));
    CHECK_EQ(kind_of(line), WIRE_REPLY);
    CHECK_EQ(wire_part(line[2], 3), 5);
    CHECK_EQ((uint32_t)line[2], velo_port_generation(port));
    /* In another's name on an open connection. */
    (void)say_open(s, port, 0, velo_port_id(other), 9);
    CHECK(stranger_takes_nothing(s, port));
    CHECK_EQ(connected(port), 0);
    CHECK_EQ(refused(port), 2);
    stranger_close(s);
    CHECK_OK(velo_port_close(other));
    CHECK_OK(velo_port_close(port));
}

TEST(a_line_for_an_earlier_owner_of_a_context_reaches_nobody)
{
    struct velo_port *port = port_open(0);
    uint16_t old = generation_of(port);
    uint64_t line[WIRE_LINE_WORDS];
    CHECK_OK(velo_port_close(port));
    port = port_open(0);
    CHECK(generation_of(port) != old);
    struct stranger *s = stranger_open(PEER_NODE, PEER);
    stranger_hello(s, port, old, PEER, 1);
    CHECK(stranger_takes_nothing(s, port));
    stranger_hello(s, port, generation_of(port), PEER, 2);
    CHECK(stranger_take(s, port, line));
    CHECK_EQ(kind_of(line), WIRE_REPLY);
    CHECK_EQ(wire_part(line[2], 3), 2);
    CHECK_EQ(refused(port), 0);
    stranger_close(s);
    CHECK_OK(velo_port_close(port));
}

TEST(a_line_that_is_missing_loses_the_connection)
{
    struct velo_port *port = port_open(0);
    struct stranger *s = stranger_open(PEER_NODE, PEER);
    uint64_t line[WIRE_LINE_WORDS];
    for (uint16_t round = 0; round < 2; round++) {
        stranger_hello(s, port, 0, PEER, 1 + round);
        CHECK(stranger_take(s, port, line));
        CHECK_EQ(kind_of(line), WIRE_REPLY);
        uint16_t sequence = say_open(s, port, 0, PEER, 9);
        CHECK(stranger_take(s, port, line)); /* ACCEPT. */
        CHECK_EQ(kind_of(line), WIRE_FRAME);
        CHECK_EQ(connected(port), 1);
        stranger_say(s, port, WIRE_ALIVE, sequence++, NULL, 0);
        stranger_drain(s, port);
        CHECK_EQ(connected(port), 1);
        stranger_say(s, port, WIRE_ALIVE, ++sequence, NULL, 0);
        stranger_drain(s, port);
        CHECK_EQ(connected(port), 0);
    }
    stranger_close(s);
    CHECK_OK(velo_port_close(port));
}

TEST(a_frame_that_is_longer_than_it_says_loses_the_connection)
{
    struct velo_port *port = port_open(0);
    struct stranger *s = stranger_open(PEER_NODE, PEER);
    const struct wire_envelope envelope = {.use = 1, .kind = VELO_FRAME_SLOT, .from_dialer = 1};
    uint64_t line[WIRE_LINE_WORDS], words[5] = {0};
    memcpy(words, &envelope, sizeof envelope);
    for (uint16_t round = 0; round < 2; round++) {
        stranger_hello(s, port, 0, PEER, 1 + round);
        CHECK(stranger_take(s, port, line));
        uint16_t sequence = say_open(s, port, 0, PEER, 9);
        CHECK(stranger_take(s, port, line)); /* ACCEPT. */
        CHECK_EQ(connected(port), 1);
        /* In its first line, and in one that follows a whole frame. */
        stranger_say(s, port, round ? WIRE_MORE : WIRE_FRAME, sequence, words, 5);
        stranger_drain(s, port);
        CHECK_EQ(connected(port), 0);
        CHECK_EQ(refused(port), 1 + round);
    }
    stranger_close(s);
    CHECK_OK(velo_port_close(port));
}

/* All that peers may send before the port looks has room in its ring, however many they are. */
TEST(windows_of_all_peers_fit_into_the_ring)
{
    struct velo_port *port = port_open(0);
    struct stranger *all[VELO_VPIDS];
    uint64_t line[WIRE_LINE_WORDS];
    uint32_t slots = 0, peers = 0;
    for (unsigned kind = WIRE_REPLY; kind == WIRE_REPLY; peers++) {
        velo_id_t id = VELO_ID(0, peers + 1);
        CHECK(peers + 1 < VELO_VPIDS);
        all[peers] = stranger_open((peers + 1) % 2, id);
        stranger_hello(all[peers], port, 0, id, 1);
        CHECK(stranger_take(all[peers], port, line));
        kind = kind_of(line);
        if (kind == WIRE_REPLY)
            slots += wire_part(line[2], 2);
    }
    CHECK_EQ(kind_of(line), WIRE_REFUSE);
    CHECK_EQ((int32_t)line[2], VELO_ERR_FULL);
    CHECK(peers > 64);
    CHECK(slots + SPARE_SLOTS * (peers - 1) <= stranger_ring_slots(all[0]) / 4 * 3);
    while (peers > 0)
        stranger_close(all[--peers]);
    CHECK_OK(velo_port_close(port));
}

/* A line that makes as much trouble as it can: kinds, generations, places and lengths that are
 * right now and then. */
static void send_garbage(struct rng *rng, const struct stranger *s, uint16_t to,
                         uint16_t generation)
{
    uint64_t line[WIRE_LINE_WORDS];
    uint32_t words = 1 + rng_below(rng, WIRE_LINE_WORDS);
    unsigned tag = rng_below(rng, 4) == 0
                       ? rng_below(rng, 256)
                       : WIRE_FRAME + rng_below(rng, WIRE_REDIRECT - WIRE_FRAME + 2);
    for (uint32_t i = 1; i < WIRE_LINE_WORDS; i++)
        line[i] = rng_below(rng, 2) ? rng_next(rng) : rng_below(rng, 16);
    line[1] =
        wire_word(rng_below(rng, 8) ? generation : rng_next(rng),
                  rng_below(rng, 8) ? 77 : rng_next(rng), rng_below(rng, 4), rng_below(rng, 4));
    stranger_send(s, to, tag, line, words);
}

TEST(garbage_of_a_hostile_context_harms_nobody_else)
{
    struct velo_port *port = port_open(0), *other = port_open(1);
    struct velo_conn *conn = port_connect(other, velo_port_id(port));
    struct stranger *s = stranger_open(PEER_NODE, PEER);
    struct rng rng = {test_seed()};
    uint16_t address, generation, call = 0;
    port_place(port, &address, &generation);
    for (uint64_t round = 0; round < 40; round++) {
        if (round % 4 == 0) /* Some of it on a connection that is open. */
            stranger_hello(s, port, 0, PEER, ++call);
        for (int i = 0; i < 8; i++)
            send_garbage(&rng, s, address, generation);
        message_send(conn, round * 7, round);
        message_expect(port, round * 7, round, velo_port_id(other));
        stranger_drain(s, port);
    }
    CHECK(refused(port) > 100);
    stranger_close(s);
    CHECK_OK(velo_port_close(other));
    CHECK_OK(velo_port_close(port));
}

/* ---- what the simulator refuses -------------------------------------------------------------- */

static void store_to_no_node(void *arg)
{
    struct stranger *s = stranger_open(PEER_NODE, PEER);
    uint64_t line[WIRE_LINE_WORDS] = {0};
    (void)arg;
    stranger_send(s, stranger_address(s), 0, line, 2);
    stranger_mistake(s, VELO_NODES - 1);
    stranger_send(s, stranger_address(s), 0, line, 2);
    _exit(0); /* It has taken the line for sent. */
}

TEST(a_store_that_the_simulator_refuses_does_not_count_as_sent)
{
    int status = child_wait(child_start(store_to_no_node, NULL));
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), SIM_EXIT);
}
