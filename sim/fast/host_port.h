// SPDX-License-Identifier: Apache-2.0
//
// The FIFO of a node's network port, from its units to the switch
// (rtl/netport/rtl/velo_netport_tx.sv). A packet begins only if there is room for the longest
// message.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace sim
{

class HostPort
{
  public:
    // A packet of so many words comes in.
    void begin(unsigned words);
    // The earliest packet whose end was not known leaves, a word a cycle, its last word in that
    // cycle.
    void launched(uint64_t last_cycle);
    // From which cycle on may a packet begin, not before that one? Cycles ascend. UINT64_MAX:
    // another packet has to be launched first.
    uint64_t room_cycle(uint64_t cycle);

  private:
    struct Packet {
        unsigned words;
        uint64_t last_cycle;
    };

    std::deque<Packet> packets_;
    size_t launched_ = 0; // of packets_, the first ones
    unsigned words_ = 0;
};

} // namespace sim
