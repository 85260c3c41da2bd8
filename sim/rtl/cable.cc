// SPDX-License-Identifier: Apache-2.0
#include "cable.h"

#include <bit>
#include <cmath>

namespace sim
{

namespace
{

constexpr uint64_t kNeverBit = UINT64_MAX;

} // namespace

Cable::Cable(unsigned delay_cycles, unsigned width_bits, double error_rate, Random random)
    : delay_cycles_(delay_cycles), word_bits_(width_bits + kPhyKindBits), error_rate_(error_rate),
      random_(random), words_(std::bit_ceil(uint64_t{delay_cycles} + 1), kPhySilence),
      mask_(words_.size() - 1)
{
    draw_error();
}

PhyWord Cable::disturb(uint64_t cycle, PhyWord word)
{
    bad_words_++;
    while (next_error_cycle() == cycle) {
        uint64_t bit = next_error_bit_ % word_bits_, width_bits = word_bits_ - kPhyKindBits;
        if (bit < width_bits)
            word.data ^= PathWord{1} << bit;
        else
            word.kind ^= uint64_t{1} << (bit - width_bits);
        next_error_bit_++;
        draw_error();
    }
    return word;
}

// The number of good bits before the next bad one is geometrically distributed.
void Cable::draw_error()
{
    if (error_rate_ <= 0) {
        next_error_bit_ = kNeverBit;
        return;
    }
    double good = std::floor(std::log1p(-random_.unit()) / std::log1p(-error_rate_));
    next_error_bit_ = good < 1e18 ? next_error_bit_ + static_cast<uint64_t>(good) : kNeverBit;
}

} // namespace sim
