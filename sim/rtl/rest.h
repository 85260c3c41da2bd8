// SPDX-License-Identifier: Apache-2.0
//
// When a node need not be evaluated: it rests.
//
// A node without work still changes. Its links send idle words that report one virtual channel
// after the other, so it goes through the same few states again and again. It rests from the cycle
// on in which this is proven:
//
//  1. In the last kPeriod cycles its host side did nothing: no access, no answer, no DMA.
//  2. All of its state - every register, memory and intermediate value of the Verilated model - is
//     byte for byte what it was kPeriod cycles ago.
//
// The model's next state depends on its state and its inputs and on nothing else. Suppose that from
// now on the cables bring in each cycle the word that they brought kPeriod cycles earlier, and the
// host does nothing. Then the model sends what it sent kPeriod cycles earlier, and has the state
// that it had then, again and again. That needs no knowledge of the RTL: a timer that runs, a
// watchdog, a credit on its way, a link that is not up yet, each is a difference in state, and then
// there is no rest.
//
// While a node rests, its recorded words are sent. The first word that differs from the record, or
// an access of the host, wakes the node. The model still has the state of the period's beginning.
// It is evaluated with the recorded words up to its place in the period, and goes on.
//
// Suppose that all nodes rest, and have rested for so long that every cable holds only words that
// were sent from rest. Then all words repeat until an access comes or a bit goes wrong. The cycles
// up to then can be left out in one step, which only moves the place in the period.

#pragma once

#include <cstdint>
#include <vector>

#include "model.h"

namespace sim
{

class Rest
{
  public:
    // A link's idle words report six virtual channels in turn, and the other side uses every second
    // word. As measured, the state is the same again after 12 cycles, and not earlier. A wrong
    // figure here costs speed, nothing else.
    static constexpr unsigned kPeriod = 12;

    bool resting() const { return resting_; }
    uint64_t since_cycle() const { return since_cycle_; }
    unsigned place() const { return place_; }

    // To be called after each cycle that was evaluated. `in`: the words that came. `out`: those
    // that leave next. `idle`: the host side did nothing. Looks at the state now and then.
    void watch(uint64_t cycle, const PhyWords &in, const PhyWords &out, bool idle,
               const AnyModel &model);
    // Does this cycle's input fit the record?
    bool fits(const PhyWords &in) const;
    // This cycle passes in rest. `out`: the words that leave in the next one.
    void pass(PhyWords &out);
    // That many cycles pass in rest.
    void pass_many(uint64_t cycles) { place_ = static_cast<unsigned>((place_ + cycles) % kPeriod); }
    // The word that a link sends in the cycle that is `back` cycles before the next one.
    PhyWord sent(unsigned link, uint64_t back) const;
    // Rest is over: the words that the model still has to be evaluated with, in order.
    std::vector<const PhyWords *> wake();

  private:
    struct Words {
        PhyWords at{};
    };

    // The times of looks change only the speed: the first look comes some cycles after work, the
    // next ones a period apart. After many looks in vain they become rarer.
    static constexpr uint64_t kSettleCycles = 4, kPatienceCycles = 96;
    static constexpr unsigned kFailures = 6;

    Words in_[kPeriod], out_[kPeriod]; // by cycle modulo kPeriod; at rest, by place
    unsigned failures_ = 0;            // looks in vain since there was work
    uint64_t look_cycle_ = 0;
    std::vector<uint8_t> snapshot_;
    bool has_snapshot_ = false;
    uint64_t since_cycle_ = 0;
    bool resting_ = false;
    unsigned place_ = 0;

    void look(uint64_t cycle, const AnyModel &model);
    void begin(uint64_t cycle);
};

} // namespace sim
