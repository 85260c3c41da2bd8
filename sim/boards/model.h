// SPDX-License-Identifier: Apache-2.0
//
// A Verilated board with its SO-DIMMs (velo_board.sv), in terms of C++.

#pragma once

#include <cstdint>
#include <memory>

namespace sim
{

// Words on the memory bus: what the registers of the slot's pads hold in a clock
// (dimmnet_ddr_host).
struct Pins {
    bool selected = false;
    uint8_t command = 0, bank = 0;
    uint16_t address = 0;
    uint64_t rise = 0, fall = 0;
    uint8_t rise_mask = 0xFF, fall_mask = 0xFF; // bytes that are not written
};

// A word of the network.
struct NetWord {
    bool valid = false, first = false, last = false;
    uint8_t bytes = 0;
    uint64_t word = 0;
};

struct BoardOutputs {
    bool driven = false; // the board drives the bus
    uint64_t rise = 0, fall = 0;
    NetWord net;
    // Two words of LLCM that are written at the end of the cycle: their number, and bytes.
    bool llcm = false;
    unsigned llcm_row = 0, llcm_bytes = 0;
    uint64_t llcm_words[2] = {};
    bool ring_is_full = false;
};

class BoardModel
{
  public:
    virtual ~BoardModel() = default;
    BoardModel() = default;
    BoardModel(const BoardModel &) = delete;
    BoardModel &operator=(const BoardModel &) = delete;

    virtual void set_reset(bool reset) = 0;
    // One cycle.
    virtual void step(const Pins &pins, const NetWord &in, BoardOutputs &outputs) = 0;
};

std::unique_ptr<BoardModel> make_board_model();

} // namespace sim
