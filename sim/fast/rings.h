// SPDX-License-Identifier: Apache-2.0
//
// The receive rings of a node's contexts, or their notification queues, as
// rtl/velo/rtl/velo_contexts.sv keeps them: pointers of 16 bits that count slots.

#pragma once

#include <array>
#include <cstdint>

#include "../../spec/sim_channel.h"

namespace sim
{

class FastRings
{
  public:
    struct Slot {
        uint64_t addr;
        uint16_t seq;
    };

    // `slot_bytes`: a power of two.
    explicit FastRings(unsigned slot_bytes) : slot_bytes_(slot_bytes) {}

    // A write to the context's register (spec/velo_regs.rdl, `rings` and `queues`): an empty ring,
    // or none.
    void set(unsigned context, uint64_t value);
    void set_read_pointer(unsigned context, uint16_t slots) { rings_[context].read = slots; }
    bool is_open(unsigned context) const { return rings_[context].is_open; }
    // Of an open one.
    bool is_full(unsigned context) const;
    Slot take(unsigned context);

  private:
    struct Ring {
        bool is_open = false;
        uint64_t base = 0;
        uint16_t last_slot = 0, write = 0, read = 0;
    };

    unsigned slot_bytes_;
    std::array<Ring, SIM_CONTEXTS> rings_;
};

} // namespace sim
