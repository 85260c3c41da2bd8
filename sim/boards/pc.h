// SPDX-License-Identifier: Apache-2.0
//
// The PC before a board: processors that store, load and flush, and a chipset that does their
// transactions on the memory bus in their order. rtl/dimmnet_board/host/pentium4.py in C++, with
// its times.
//
// Each thread has a processor of its own, whose write buffers are empty between two accesses since
// each ends with a fence. All of a board share front side bus and chipset.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "../../spec/sim_channel.h"
#include "bus.h"

namespace sim
{

// What a thread does, and what came of it.
struct Access {
    enum class Kind {
        kStore, // store words, and fence
        kLoad,  // load a word that is not cached
        kLines, // flush the lines of some words, and load the words
        kAwait, // load a word that is not cached until it is another one
    };
    Kind kind = Kind::kStore;
    uint64_t ticket = 0;
    uint64_t time_ps = 0;     // the processor's
    uint64_t word = 0;        // first word in the slot
    unsigned len_words = 0;   // 1 to SIM_SLOT_WORDS
    uint64_t deadline_ps = 0; // kAwait
    int32_t status = SIM_OK;
    std::array<uint64_t, SIM_SLOT_WORDS> words{};
};

class Pc
{
  public:
    // Set up the DIMM: from this clock on.
    void set_up(uint64_t clock) { free_clock_ = bus_.set_up(clock); }
    // Begin an access; done() has it when it has ended.
    void begin(const Access &access);
    // A write of whoever looks after the board: it takes no processor's time.
    void write(uint64_t time_ps, uint64_t word, uint64_t value);
    // What the chipset does in a clock, and what the board has then on the bus.
    Pins drive(uint64_t clock);
    void hear(uint64_t clock, const BoardOutputs &outputs) { bus_.hear(clock, outputs); }
    // Nothing is under way.
    bool is_idle() const { return under_way_.empty() && waiting_.empty(); }
    std::vector<Access> take_done() { return std::exchange(done_, {}); }

  private:
    struct Burst {
        uint64_t spent_ps = 0; // by the processor, since the burst before
        uint64_t word = 0;
        Line line{};
        uint64_t data_ps = 0; // on the front side bus
    };
    // An access that has not ended.
    struct Work {
        Access access;
        std::deque<Burst> bursts;     // to be written
        uint64_t spent_ps = 0;        // behind them
        std::vector<uint64_t> lines;  // to be loaded: the word that is asked for first
        unsigned asked = 0, come = 0; // of these
        uint64_t next_word = 0;       // to be loaded
    };
    struct Transaction {
        uint64_t time_ps = 0, word = 0;
        bool is_read = false;
        uint64_t reader = 0; // ticket
        Line line{};
    };

    Bus bus_;
    uint64_t free_clock_ = 0;
    bool is_busy_ = false; // with the first that waits, until free_clock_
    uint64_t bus_free_ps_ = 0, lines_free_ps_ = 0;
    std::deque<Transaction> waiting_; // for the chipset; the first may be on the bus
    std::vector<Work> under_way_;
    std::vector<Access> done_;

    uint64_t transfer(uint64_t time_ps, uint64_t data_ps);
    static void store(Work &work);
    void ask(Work &work);
    bool go_on(Work &work, uint64_t clock);
    void take_line(Work &work, uint64_t seen_ps, const std::array<uint64_t, kLineWords> &line);
    void take_word(Work &work, uint64_t value);
    void end_transaction(uint64_t clock);
};

} // namespace sim
