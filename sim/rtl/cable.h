// SPDX-License-Identifier: Apache-2.0
//
// One direction of a cable. Each word comes out after the delay of the cable; some words come out
// with wrong bits.
//
// Words under way are kept by cycle, not in a queue, so that a stretch of cycles can be left out.
// The number of the next wrong bit is drawn ahead, one bit in 1 / error rate on average; a cycle
// without a wrong bit needs no random number.

#pragma once

#include <cstdint>
#include <vector>

#include "../random.h"

namespace sim
{

// As wide as the widest path.
__extension__ using PathWord = unsigned __int128;

// A word of a PHY: data as wide as the node's path, and two bits that give its kind.
struct PhyWord {
    PathWord data = 0;
    uint64_t kind = 0; // 0: of a packet

    bool operator==(const PhyWord &) const = default;
};
constexpr unsigned kPhyKindBits = 2;
constexpr PhyWord kPhySilence = {0, 1}; // a control word that means nothing

class Cable
{
  public:
    Cable(unsigned delay_cycles, unsigned width_bits, double error_rate, Random random);

    unsigned delay_cycles() const { return delay_cycles_; }
    uint64_t bad_words() const { return bad_words_; }
    // The next cycle in which a word comes out wrong.
    uint64_t next_error_cycle() const { return next_error_bit_ / word_bits_; }

    void put(uint64_t cycle, const PhyWord &word) { words_[cycle & mask_] = word; }
    // To be called once in each cycle: a wrong bit disturbs one word.
    PhyWord get(uint64_t cycle)
    {
        if (cycle < delay_cycles_)
            return kPhySilence;
        PhyWord word = words_[(cycle - delay_cycles_) & mask_];
        return cycle < next_error_cycle() ? word : disturb(cycle, word);
    }

  private:
    PhyWord disturb(uint64_t cycle, PhyWord word);
    void draw_error();

    unsigned delay_cycles_, word_bits_;
    double error_rate_;
    Random random_;
    std::vector<PhyWord> words_; // by cycle; a power of two of them
    uint64_t mask_, next_error_bit_ = 0, bad_words_ = 0;
};

} // namespace sim
