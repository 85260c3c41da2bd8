// SPDX-License-Identifier: Apache-2.0
//
// Congestion management, rtl/congestion and rtl/switch: outputs under pressure mark packets,
// destinations tell the senders of marked packets, sources keep gaps by destination. All of it is
// computed from the cycles of events; nothing happens in between.

#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "params.h"

namespace tlm
{

// Registers of the node.
struct CongestionParams {
    bool enable = false;
    bool mark_links = false;     // not only the nodes' own ports
    unsigned mark_cycles = 256;  // of pressure until an output marks
    unsigned notice_cycles = 8;  // at least, between two notices of a destination; 8 bits
    unsigned increase = 2;       // of a level, for each notice; 4 bits
    unsigned raise_units = 32;   // sent between two raises of a level; RaiseUnits
    unsigned recover_cycles = 3; // and one more, times 256: between walks that lower levels; 8 bits
};

class Congestion
{
  public:
    Congestion(const CongestionParams &params, unsigned nodes, size_t outputs);

    // --- switch ---
    bool marks_links() const { return params_.mark_links; }
    // From this cycle on the output is under pressure, or not.
    void press(uint32_t out, bool pressed, Cycle now);
    // Do packets that leave by the output now get a mark?
    bool marks(uint32_t out, Cycle now);

    // --- destination (velo_congestion_notice.sv) ---
    // A marked packet comes: does its sender get a notice?
    bool gives_notice(unsigned node, Cycle now);

    // --- source (velo_congestion_throttle.sv) ---
    struct Pass {
        Cycle when;     // the packet may go, at the earliest
        unsigned level; // of its destination
    };
    Pass pass(unsigned node, uint32_t to, Cycle now);
    // A packet of so many units went, when its destination had that level.
    void passed(unsigned node, uint32_t to, unsigned level, unsigned units, Cycle end);
    void take_notice(unsigned node, uint32_t to, Cycle now);

  private:
    struct Pressure {
        Cycle since = 0;
        uint32_t count = 0;
        bool pressed = false;
    };
    struct Level {
        Cycle gap_end = 0;
        uint64_t walks = 0; // of the walk over all levels, until the level was last put right
        unsigned level = 0;
        unsigned units = 0; // sent since it was raised
    };

    CongestionParams params_;
    std::vector<Pressure> pressures_;
    std::vector<Cycle> next_notice_;                          // by node
    std::vector<std::unordered_map<uint32_t, Level>> levels_; // above zero; by node, destination

    void settle(Pressure &pressure, Cycle now) const;
    uint64_t walks(uint32_t to, Cycle now) const;
    // The destination's level now; nullptr: zero.
    Level *find(unsigned node, uint32_t to, Cycle now);
};

} // namespace tlm
