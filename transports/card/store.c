/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines towards the node, and those that the node has put into the context's ring.
 */
#include <string.h>

#include "../../lib/base/order.h"
#include "card.h"

/* A look takes in so many lines: whoever looks also has things to send. */
#define LINES_PER_LOOK 256u

bool store_line(const struct endpoint *endpoint, uint16_t to, enum wire_kind kind,
                uint64_t line[WIRE_LINE_WORDS], uint32_t words)
{
    uint32_t len_bytes = (words - 1) * 8;
    line[0] = velo_header_pack(0, (uint8_t)kind, (uint16_t)len_bytes, 0, 0);
    line[0] = recombine_checked(line, words);
    uint64_t target = velo_address_pack(0, (uint8_t)(words - 1), (uint8_t)wire_context(to),
                                        (uint8_t)wire_node(to));
    host_io->work(HOST_COPY);
    return host_io->store(&endpoint->context, VELO_UNIT_VELO, target, line, words);
}

/* ---- taking ---------------------------------------------------------------------------------- */

void store_give_back(const struct endpoint *endpoint, uint64_t read_pointers, uint64_t head,
                     uint64_t *head_told, uint32_t slots)
{
    if (head - *head_told < slots / PARTS)
        return;
    *head_told = head;
    host_io->register_write(&endpoint->context, read_pointers, head & UINT16_MAX);
}

/* A part of a line that the host split. False: the line is not whole, or is none. */
static bool take_part(struct endpoint *endpoint, const uint64_t *slot, uint64_t *line)
{
    uint64_t dropped = endpoint->split.dropped;
    enum recombine_result result = recombine_take(&endpoint->split, slot, line);
    for (; dropped < endpoint->split.dropped; dropped++)
        endpoint_refuse(&endpoint->base);
    if (result == RECOMBINE_REFUSED)
        endpoint_refuse(&endpoint->base);
    return result == RECOMBINE_WHOLE;
}

bool store_take(struct endpoint *endpoint,
                void (*take)(struct endpoint *endpoint, const uint64_t *line))
{
    const struct host_context *context = &endpoint->context;
    uint32_t taken = 0;
    for (; taken < LINES_PER_LOOK; taken++) {
        const uint64_t *slot =
            context->ring + endpoint->head % context->ring_slots * WIRE_LINE_WORDS;
        uint64_t line[WIRE_LINE_WORDS];
        line[0] = order_read_header(slot);
        if (!velo_header_valid(line[0]) ||
            velo_header_seq(line[0]) != (endpoint->head & UINT16_MAX))
            break;
        memcpy(line + 1, slot + 1, sizeof line - sizeof line[0]);
        endpoint->head++;
        endpoint->context.ring_head = endpoint->head;
        host_io->work(HOST_COPY);
        bool is_part =
            velo_header_len(line[0]) > VELO_INLINE_BYTES || velo_header_reserved(line[0]) != 0;
        if (!is_part || take_part(endpoint, line, line))
            take(endpoint, line);
        store_give_back(endpoint, HOST_REG_READ_POINTERS, endpoint->head, &endpoint->head_told,
                        context->ring_slots);
    }
    if (taken)
        host_io->found();
    return taken > 0;
}
