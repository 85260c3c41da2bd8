/* SPDX-License-Identifier: Apache-2.0 */
#include "stranger.h"

#include <stdlib.h>
#include <string.h>

#include "../../lib/base/order.h"
#include "../../transports/nic/host_io.h"
#include "../../transports/nic/recombine.h"

#define GENERATION 77
#define PORT_GENERATION 9
#define WINDOW 64

struct stranger {
    struct host_context context;
    uint64_t head;
};

static int fail(int status, const char *format, ...)
{
    (void)format;
    return status;
}

struct stranger *stranger_open(uint32_t node, velo_id_t id)
{
    struct stranger *s = calloc(1, sizeof *s);
    CHECK(s);
    host_fail = fail;
    CHECK_OK(host_io->context_open(node, id, false, &s->context));
    return s;
}

void stranger_close(struct stranger *s)
{
    host_io->context_close(&s->context);
    free(s);
}

void stranger_mistake(struct stranger *s, uint32_t node) { s->context.node = node; }

uint16_t stranger_address(const struct stranger *s)
{
    return wire_address(s->context.node, s->context.number);
}

uint32_t stranger_ring_slots(const struct stranger *s) { return s->context.ring_slots; }

void port_place(struct velo_port *port, uint16_t *address, uint16_t *generation)
{
    struct {
        uint32_t magic;
        uint16_t address, generation;
    } name;
    size_t len_bytes = sizeof name;
    CHECK_OK(velo_port_name(port, &name, &len_bytes));
    CHECK_EQ(len_bytes, sizeof name);
    *address = name.address;
    *generation = name.generation;
}

void stranger_send(const struct stranger *s, uint16_t to, unsigned tag, uint64_t *line,
                   uint32_t words)
{
    line[0] = velo_header_pack(0, (uint8_t)tag, (uint16_t)((words - 1) * 8), 0, 0);
    line[0] = recombine_checked(line, words);
    uint64_t target = velo_address_pack(0, (uint8_t)(words - 1), (uint8_t)wire_context(to),
                                        (uint8_t)wire_node(to));
    while (!host_io->store(&s->context, VELO_UNIT_VELO, target, line, words))
        host_io->poll();
}

/* One look: has a line come that is no ACK? */
static bool take_once(struct stranger *s, struct velo_port *port, uint64_t line[WIRE_LINE_WORDS])
{
    struct velo_msg msg;
    const uint64_t *slot = s->context.ring + s->head % s->context.ring_slots * WIRE_LINE_WORDS;
    uint64_t header = order_read_header(slot);
    if (!velo_header_valid(header) || velo_header_seq(header) != (s->head & UINT16_MAX)) {
        (void)velo_try_peek(port, &msg);
        return false;
    }
    memcpy(line, slot, WIRE_LINE_WORDS * sizeof *line);
    s->head++;
    return velo_header_tag(header) != WIRE_ACK;
}

bool stranger_take(struct stranger *s, struct velo_port *port, uint64_t line[WIRE_LINE_WORDS])
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    while (!take_once(s, port, line))
        if (test_now_ns() > end_ns)
            return false;
    return true;
}

bool stranger_takes_nothing(struct stranger *s, struct velo_port *port)
{
    uint64_t line[WIRE_LINE_WORDS];
    for (int polls = 0; polls < 100; polls++)
        if (take_once(s, port, line))
            return false;
    return true;
}

void stranger_drain(struct stranger *s, struct velo_port *port)
{
    while (!stranger_takes_nothing(s, port))
        ;
}

void stranger_hello(const struct stranger *s, struct velo_port *to, uint16_t to_generation,
                    velo_id_t from, uint16_t call)
{
    uint16_t address, generation;
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    port_place(to, &address, &generation);
    for (const char *c = test_domain(); *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001B3);
    uint64_t line[WIRE_LINE_WORDS] = {0,
                                      wire_word(to_generation, GENERATION, 0, WIRE_VERSION),
                                      VELO_SPEC_HASH,
                                      from | (uint64_t)velo_port_id(to) << 32,
                                      hash,
                                      PORT_GENERATION | wire_word(0, 0, WINDOW, call)};
    stranger_send(s, address, WIRE_HELLO, line, 6);
}

void stranger_say(const struct stranger *s, struct velo_port *to, enum wire_kind kind,
                  uint16_t sequence, const uint64_t *words, uint32_t len_words)
{
    uint16_t address, generation;
    uint64_t line[WIRE_LINE_WORDS];
    port_place(to, &address, &generation);
    line[1] = wire_word(generation, GENERATION, sequence, 0);
    if (len_words)
        memcpy(line + 2, words, len_words * sizeof *words);
    stranger_send(s, address, kind, line, 2 + len_words);
}
