// SPDX-License-Identifier: Apache-2.0
#include "rings.h"

namespace sim
{

void FastRings::set(unsigned context, uint64_t value)
{
    constexpr unsigned kAddressBits = 48, kSizeMask = 15;
    unsigned slots_log2 = (value >> kAddressBits) & kSizeMask;
    Ring &ring = rings_[context];
    ring = Ring();
    ring.is_open = (value & 1) != 0;
    ring.base = value & ((uint64_t{1} << kAddressBits) - slot_bytes_);
    ring.last_slot = static_cast<uint16_t>((1U << slots_log2) - 1);
}

bool FastRings::is_full(unsigned context) const
{
    const Ring &ring = rings_[context];
    return static_cast<uint16_t>(ring.write - ring.read) > ring.last_slot;
}

FastRings::Slot FastRings::take(unsigned context)
{
    Ring &ring = rings_[context];
    Slot slot = {ring.base + uint64_t{slot_bytes_} * (ring.write & ring.last_slot), ring.write};
    ring.write++;
    return slot;
}

} // namespace sim
