// SPDX-License-Identifier: Apache-2.0
//
// Counts how often each latency came: exact below 65,536 cycles, in steps of a thousandth above.

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace tlm
{

class Histogram
{
  public:
    Histogram() : counts_(kExact + (64 - kExactBits) * kSteps) {}

    void add(uint64_t value)
    {
        counts_[place(value)]++;
        count_++;
        sum_ += static_cast<double>(value);
        max_ = std::max(max_, value);
    }
    uint64_t count() const { return count_; }
    uint64_t max() const { return max_; }
    double mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
    // The least value that this share of all latencies does not exceed.
    uint64_t quantile(double share) const
    {
        auto wanted = static_cast<uint64_t>(share * static_cast<double>(count_));
        uint64_t seen = 0;
        for (size_t i = 0; i < counts_.size(); i++) {
            seen += counts_[i];
            if (seen > wanted || (seen == count_ && count_))
                return std::min(value_of(i), max_);
        }
        return max_;
    }

  private:
    static constexpr unsigned kExactBits = 16, kStepBits = 10;
    static constexpr uint64_t kExact = uint64_t{1} << kExactBits, kSteps = uint64_t{1} << kStepBits;

    std::vector<uint64_t> counts_;
    uint64_t count_ = 0, max_ = 0;
    double sum_ = 0;

    static size_t place(uint64_t value)
    {
        if (value < kExact)
            return value;
        unsigned bits = static_cast<unsigned>(std::bit_width(value)) - 1;
        return kExact + (bits - kExactBits) * kSteps +
               ((value >> (bits - kStepBits)) & (kSteps - 1));
    }
    static uint64_t value_of(size_t place)
    {
        if (place < kExact)
            return place;
        uint64_t octave = (place - kExact) / kSteps, step = (place - kExact) % kSteps;
        return (kSteps + step) << (octave + kExactBits - kStepBits);
    }
};

} // namespace tlm
