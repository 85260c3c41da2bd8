// SPDX-License-Identifier: Apache-2.0
//
// What lies between boards: each InfiniBand packet goes to the board of its DLID, some cycles
// later, and packets for one board go there one after the other. Two boards are joined by a cable,
// more by a switch; a board's packet to itself takes as long as one to another board.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "model.h"

namespace sim
{

struct NetTotals {
    uint64_t packets = 0, lost = 0;        // lost: for a board that is not there
    uint64_t hash = 0xCBF29CE484222325ULL; // FNV-1a of words that came, with board and cycle
};

class Network
{
  public:
    // `find`: the board of a LID, or `boards` if there is none.
    Network(unsigned boards, uint64_t cycles, std::function<unsigned(unsigned lid)> find);

    // What comes in at a board in this cycle.
    NetWord take(unsigned board, uint64_t cycle);
    // What goes out of a board in this cycle.
    void give(unsigned board, uint64_t cycle, const NetWord &word);
    // A board is switched off: the rest of what it was sending does not come.
    void forget(unsigned board);
    bool is_empty(unsigned board) const { return to_[board].empty(); }
    const NetTotals &totals() const { return totals_; }

  private:
    struct Packet {
        unsigned from = 0;
        std::deque<std::pair<uint64_t, NetWord>> words; // and the cycle in which they come
    };
    uint64_t cycles_;
    std::function<unsigned(unsigned)> find_;
    std::vector<std::deque<Packet>> to_; // by the board
    std::vector<unsigned> target_;       // of the packet that a board sends
    NetTotals totals_;

    void hash(uint64_t value);
};

} // namespace sim
