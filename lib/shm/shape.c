/* SPDX-License-Identifier: Apache-2.0 */
#include "shape.h"

#include "../base/error.h"

static bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

static size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

int seg_shape_init(struct seg_shape *shape, uint32_t depth_slots, size_t data_bytes,
                   uint32_t conns_max)
{
    if (!is_power_of_two(depth_slots) || depth_slots < 8 || depth_slots > 16384)
        return velo_fail(VELO_ERR_ARG, "depth_slots is %u; give a power of two from 8 to 16384",
                         depth_slots);
    if (!is_power_of_two(data_bytes) || data_bytes < 16384 || data_bytes > (16u << 20))
        return velo_fail(VELO_ERR_ARG,
                         "data_bytes is %zu; give a power of two from 16 KiB to 16 MiB",
                         data_bytes);
    if (conns_max < 1 || conns_max > VELO_CONNS_MAX)
        return velo_fail(VELO_ERR_ARG, "conns_max is %u; give 1 to %u", conns_max, VELO_CONNS_MAX);
    shape->depth_slots = depth_slots;
    shape->data_bytes = (uint32_t)data_bytes;
    shape->conns_max = conns_max;
    shape->table_bytes = round_up((size_t)conns_max * sizeof(uint64_t), SEG_HEADER_BYTES);
    shape->ring_bytes =
        sizeof(struct seg_ring) + (size_t)depth_slots * VELO_LINE_BYTES + data_bytes + SEG_ALIGN;
    shape->total_bytes =
        round_up(SEG_HEADER_BYTES + shape->table_bytes + conns_max * shape->ring_bytes,
                 SEG_HEADER_BYTES) +
        SEG_OUTGOING_BYTES;
    return VELO_OK;
}

int seg_header_check(const struct seg_header *header, size_t file_bytes, const char *path,
                     struct seg_shape *shape)
{
    if (header->magic != SEG_MAGIC)
        return velo_fail(VELO_ERR_CORRUPT, "%s is not a velo segment; remove it", path);
    if (header->abi != SEG_ABI || header->spec_hash != VELO_SPEC_HASH)
        return velo_fail(VELO_ERR_VERSION,
                         "%s has layout abi %u hash %016llx, this library has abi %u hash %016llx; "
                         "build both sides from the same release",
                         path, header->abi, (unsigned long long)header->spec_hash, SEG_ABI,
                         (unsigned long long)VELO_SPEC_HASH);
    if (seg_shape_init(shape, header->depth_slots, header->data_bytes, header->conns_max) ||
        shape->ring_bytes != header->ring_bytes || shape->total_bytes > file_bytes ||
        (shape->total_bytes < file_bytes && !(header->flags & SEG_HAS_TAIL)))
        return velo_fail(VELO_ERR_CORRUPT, "%s has sizes that do not fit together; remove it",
                         path);
    return VELO_OK;
}
