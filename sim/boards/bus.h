// SPDX-License-Identifier: Apache-2.0
//
// The memory bus of a PC as a DIMM sees it: rtl/dimmnet_board/host/dimm_bus.py in C++. One burst at
// a time, each command as early as the rules allow; rows stay open. When a burst begins, all its
// clocks are known.

#pragma once

#include <array>
#include <cstdint>

#include "board_times.h"
#include "model.h"

namespace sim
{

constexpr unsigned kLineWords = kLineBytes / 8;

// A word to be written, and which of its bytes.
struct Lane {
    uint64_t word = 0;
    bool written = false;
};
using Line = std::array<Lane, kLineWords>;

class Bus
{
  public:
    // Write the mode register. Each returns the clock from which on the bus is free.
    uint64_t set_up(uint64_t clock);
    // A burst of a line, from a word of the DIMM on. Its words come by hear().
    uint64_t read(uint64_t clock, uint64_t word);
    // A burst of the line in which the word is, from the line's first word on.
    uint64_t write(uint64_t clock, uint64_t word, const Line &line);

    // The pins of a clock; each is asked for once, in order.
    Pins take(uint64_t clock);
    // What the board had on the bus in that clock.
    void hear(uint64_t clock, const BoardOutputs &outputs);
    // The words of the last burst read, in their order in memory. False: the board drove nothing.
    bool words(std::array<uint64_t, kLineWords> &words) const;

  private:
    static constexpr unsigned kAhead = 256; // clocks; no burst takes longer with all that is before
    struct Slot {
        Pins pins;
        bool is_read = false;
    };
    std::array<Slot, kAhead> slots_{};
    std::array<bool, kBusBanks> open_{};
    std::array<uint64_t, kBusBanks> rows_{}, next_activate_{}, next_precharge_{};
    uint64_t next_read_ = 0, next_write_ = 0, next_any_activate_ = 0, refresh_due_ = kBusRefresh;
    unsigned read_first_ = 0, heard_ = 0; // column in its line, words heard
    bool driven_ = true;
    std::array<uint64_t, kLineWords> heard_words_{};

    Slot &slot(uint64_t clock) { return slots_[clock % kAhead]; }
    void command(uint64_t clock, uint8_t command, uint64_t bank, uint64_t address);
    uint64_t refresh(uint64_t clock);
    uint64_t open(uint64_t clock, uint64_t bank, uint64_t row);
};

} // namespace sim
