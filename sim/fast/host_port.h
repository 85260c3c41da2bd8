// SPDX-License-Identifier: Apache-2.0
//
// The way of lines from a node's host port to its switch: the FIFO of the network port
// (rtl/netport/rtl/velo_netport_tx.sv). A line begins only if there is room for the longest.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace sim
{

class HostPort
{
  public:
    // A line comes in, as a packet of so many words.
    void begin(unsigned words);
    // The earliest packet whose end was not known leaves, its last word in that cycle.
    void launched(uint64_t last_cycle);
    // May a line begin in that cycle? Cycles ascend.
    bool has_room(uint64_t cycle);

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
