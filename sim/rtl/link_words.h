// SPDX-License-Identifier: Apache-2.0
//
// What the words of a link are, for those who look at them: rtl/link/rtl/velo_link_pkg.sv, and the
// section "link" of spec/velo.toml.

#pragma once

#include <cstdint>

#include "cable.h"
#include "velo/spec.h"

namespace sim
{

constexpr unsigned kKindData = 0, kKindControl = 1, kKindEnd = 2, kKindStart = 3;
constexpr unsigned kStartSeqLsb = 3, kStartSeqs = 64;

// Is a packet's first word a route, with its header behind it?
constexpr bool is_route(uint64_t word) { return (word & VELO_ROUTE_ROUTED_MASK) != 0; }

// Tells frames that a link repeats from new ones.
class FrameOrder
{
  public:
    // Is the frame that begins with this start word an old one? New ones are numbered in order.
    bool is_repeated(const PhyWord &start)
    {
        unsigned seq = static_cast<unsigned>(start.data >> kStartSeqLsb) % kStartSeqs;
        if (seq != next_)
            return true;
        next_ = (next_ + 1) % kStartSeqs;
        return false;
    }

  private:
    unsigned next_ = 0;
};

} // namespace sim
