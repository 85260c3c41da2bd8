/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context of the node that no port has: it sends what it likes.
 */
#ifndef VELO_TEST_STRANGER_H
#define VELO_TEST_STRANGER_H

#include "../../transports/card/wire.h"
#include "test.h"

struct stranger;

/* In a context of the node that the map counts `id` as on, with its vpid if that is free. */
struct stranger *stranger_open(uint32_t node, velo_id_t id);
void stranger_close(struct stranger *s);
/* From now on its stores name another node. */
void stranger_mistake(struct stranger *s, uint32_t node);
uint16_t stranger_address(const struct stranger *s);
uint32_t stranger_ring_slots(const struct stranger *s);

/* Where a port of this process is, and the generation of its context. */
void port_place(struct velo_port *port, uint16_t *address, uint16_t *generation);

/* Send a line to a context: words 1 and on of `line`; the header word follows. */
void stranger_send(const struct stranger *s, uint16_t to, unsigned tag, uint64_t *line,
                   uint32_t words);
/* The next line that comes, other than ACK, while `port` is polled; false: none does. */
bool stranger_take(struct stranger *s, struct velo_port *port, uint64_t line[WIRE_LINE_WORDS]);
/* None comes in 100 polls. */
bool stranger_takes_nothing(struct stranger *s, struct velo_port *port);
/* Take all that comes, until that is so. */
void stranger_drain(struct stranger *s, struct velo_port *port);

/* HELLO of `from` to a port; the generation of its context that is meant. `call` is new each time.
 */
void stranger_hello(const struct stranger *s, struct velo_port *to, uint16_t to_generation,
                    velo_id_t from, uint16_t call);
/* A line with a place in the sequence, with `len_words` words behind the first. */
void stranger_say(const struct stranger *s, struct velo_port *to, enum wire_kind kind,
                  uint16_t sequence, const uint64_t *words, uint32_t len_words);

#endif
