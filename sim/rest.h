// SPDX-License-Identifier: Apache-2.0
//
// When a node need not be evaluated: it rests.
//
// A node without work is not still. Its links send idle words that tell of one virtual channel
// after the other, so it goes through the same few states again and again. It rests from the cycle
// on in which this is proven:
//
//  1. In the last kPeriod cycles its host side did nothing: no access, no answer, no DMA.
//  2. All of its state - every register, memory and intermediate value of the Verilated model - is
//     byte for byte what it was kPeriod cycles ago.
//
// What a model does next depends on its state and its inputs and on nothing else. So if in each
// cycle from now on the cables bring the word that they brought kPeriod cycles earlier and the host
// goes on doing nothing, it sends what it sent kPeriod cycles earlier, and is in the state it was
// in then, for as long as one likes. That needs no knowledge of the RTL: a timer that runs, a
// watchdog, a credit on its way, a link that has yet to come up, each is a difference in state, and
// then there is no rest. While a node rests its recorded words are sent; the first word that
// differs from the record, or an access of the host, wakes it: the model, which still has the state
// of the period's beginning, is evaluated with the recorded words up to the place in the period
// where it is, and goes on.
//
// If all nodes rest, and have for so long that every cable is filled with words that were sent from
// rest, then all words repeat for as long as no access comes and no bit falls over, and the cycles
// up to then can be left out in one step: it only moves the place in the period.

#pragma once

#include <cstdint>
#include <vector>

#include "model.h"

namespace sim
{

class Rest
{
  public:
    // A link's idle words tell of six virtual channels in turn and are listened to every second
    // time: measured, state is the same again after 12 cycles, and after no less. A wrong figure
    // here costs speed, nothing else.
    static constexpr unsigned kPeriod = 12;

    bool resting() const { return resting_; }
    uint64_t since_cycle() const { return since_cycle_; }
    unsigned place() const { return place_; }

    // After a cycle that was evaluated: what came, what leaves next, and whether the host side did
    // nothing. Looks at the state now and then.
    void watch(uint64_t cycle, const PhyWords &in, const PhyWords &out, bool idle,
               const Model &model);
    // Does this cycle's input fit the record?
    bool fits(const PhyWords &in) const;
    // This cycle passes in rest: what leaves in the next one.
    void pass(PhyWords &out);
    // What leaves in the next cycle after passing `cycles` cycles more.
    void pass_many(uint64_t cycles) { place_ = static_cast<unsigned>((place_ + cycles) % kPeriod); }
    // What a link sends in the cycle that is `back` cycles before the next one.
    PhyWord sent(unsigned link, uint64_t back) const;
    // Rest is over: the words that the model still has to be evaluated with, in order.
    std::vector<const PhyWords *> wake();

  private:
    struct Words {
        PhyWords at{};
    };

    // When to look is a matter of speed alone: a while after work, then period by period, and after
    // so many looks in vain less often.
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

    void look(uint64_t cycle, const Model &model);
    void begin(uint64_t cycle);
};

} // namespace sim
