// SPDX-License-Identifier: Apache-2.0
//
// The memory bus before a board's slot: lines of 128 bits, written and read in order, each a burst
// of two words, as early as JEDEC's times and the bus allow. host/dimm_bus.py is the same for
// Python, with bursts of all lengths.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>

#include "Vdimmnet_board_pair.h"
#include "harness.h"

namespace bench
{

class SlotBus
{
  public:
    using Answer = std::function<void(uint64_t low, uint64_t high)>;

    SlotBus(Vdimmnet_board_pair &top, unsigned board) : top_(top), board_(board)
    {
        rows_.fill(-1);
        // CAS latency 2, interleaved, bursts of two.
        todo_.push_back({kMode, 2 << 4 | 1 << 3 | 1, 0, 0, 0, {}});
    }

    void write(uint32_t address, uint64_t low, uint64_t high, unsigned enables = 0xFFFF)
    {
        todo_.push_back({kWrite, address, low, high, enables, {}});
    }
    void write_word(uint32_t address, uint64_t word)
    {
        write(address & ~15U, word, word, address & 8 ? 0xFF00 : 0x00FF);
    }
    void read(uint32_t address, Answer answer)
    {
        todo_.push_back({kRead, address & ~15U, 0, 0, 0, std::move(answer)});
    }
    size_t waiting() const { return todo_.size(); }

    // Sets the pads' registers of this clock.
    void drive()
    {
        top_.cs_n_i[board_] = 1;
        const Beat &beat = beats_[clock_ % beats_.size()];
        top_.dm_rise_i[board_] = beat.valid ? ~beat.enables & 0xFF : 0xFF;
        top_.dm_fall_i[board_] = beat.valid ? ~(beat.enables >> 8) & 0xFF : 0xFF;
        top_.dq_rise_i[board_] = beat.low;
        top_.dq_fall_i[board_] = beat.high;
        beats_[clock_ % beats_.size()].valid = false;
        if (!todo_.empty() && clock_ >= next_)
            step();
    }

    // Takes what the board drives in this clock.
    void sample()
    {
        if (!coming_.empty() && coming_.front().clock == clock_) {
            if (!top_.dq_oe_o[board_])
                fail("nobody drives the memory bus");
            Answer answer = std::move(coming_.front().answer);
            coming_.pop_front();
            answer(top_.dq_rise_o[board_], top_.dq_fall_o[board_]);
        }
        clock_++;
    }

  private:
    enum Command : unsigned { kMode = 0, kPrecharge = 2, kActivate = 3, kWrite = 4, kRead = 5 };
    // Clocks of DDR-200 (dram/ddr200.py).
    static constexpr uint64_t kRcd = 2, kRp = 2, kRas = 5, kRc = 7, kRrd = 2, kWr = 2, kCl = 2,
                              kWl = 1, kMrd = 2;
    // From a write to a read: a read does not wait for writes that CoreLogic has not taken.
    static constexpr uint64_t kSettle = 12;
    static constexpr unsigned kColumns = 1024, kBanks = 4;

    struct Todo {
        Command command;
        uint32_t address;
        uint64_t low, high;
        unsigned enables;
        Answer answer;
    };
    struct Beat {
        bool valid = false;
        uint64_t low = 0, high = 0;
        unsigned enables = 0;
    };
    struct Coming {
        uint64_t clock;
        Answer answer;
    };

    void give(unsigned command, unsigned bank, unsigned address)
    {
        top_.cs_n_i[board_] = 0;
        top_.command_i[board_] = command;
        top_.bank_i[board_] = bank;
        top_.address_i[board_] = address;
    }

    void step()
    {
        Todo &todo = todo_.front();
        if (todo.command == kMode) {
            give(kMode, 0, todo.address);
            next_ = clock_ + kMrd;
            todo_.pop_front();
            return;
        }
        const unsigned word = todo.address / 8;
        const unsigned column = word % kColumns, bank = word / kColumns % kBanks;
        const int row = static_cast<int>(word / kColumns / kBanks);
        if (rows_[bank] != row) {
            open(bank, row);
            return;
        }
        if (todo.command == kWrite) {
            if (clock_ < next_column_[bank] || clock_ < next_write_)
                return;
            give(kWrite, bank, column);
            beats_[(clock_ + kWl + 1) % beats_.size()] = {true, todo.low, todo.high, todo.enables};
            next_read_ = clock_ + kSettle;
            next_precharge_[bank] = std::max(next_precharge_[bank], clock_ + kWl + 1 + kWr);
        } else {
            if (clock_ < next_column_[bank] || clock_ < next_read_)
                return;
            give(kRead, bank, column);
            coming_.push_back({clock_ + kCl, std::move(todo.answer)});
            next_write_ = clock_ + kCl + 1;
            next_precharge_[bank] = std::max(next_precharge_[bank], clock_ + 1);
        }
        todo_.pop_front();
    }

    void open(unsigned bank, int row)
    {
        if (rows_[bank] >= 0) {
            if (clock_ < next_precharge_[bank])
                return;
            give(kPrecharge, bank, 0);
            rows_[bank] = -1;
            next_activate_[bank] = std::max(next_activate_[bank], clock_ + kRp);
        } else if (clock_ >= next_activate_[bank] && clock_ >= next_any_activate_) {
            give(kActivate, bank, row);
            rows_[bank] = row;
            next_activate_[bank] = clock_ + kRc;
            next_any_activate_ = clock_ + kRrd;
            next_precharge_[bank] = clock_ + kRas;
            next_column_[bank] = clock_ + kRcd;
        }
    }

    Vdimmnet_board_pair &top_;
    unsigned board_;
    // The first command is after the reset.
    uint64_t clock_ = 0, next_ = 16, next_read_ = 0, next_write_ = 0, next_any_activate_ = 0;
    std::array<int, kBanks> rows_{};
    std::array<uint64_t, kBanks> next_activate_{}, next_precharge_{}, next_column_{};
    std::array<Beat, 4> beats_{};
    std::deque<Todo> todo_;
    std::deque<Coming> coming_;
};

} // namespace bench
