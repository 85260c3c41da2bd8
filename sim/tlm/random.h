// SPDX-License-Identifier: Apache-2.0
//
// SplitMix64: small, and the same everywhere.

#pragma once

#include <cmath>
#include <cstdint>

namespace tlm
{

class Random
{
  public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t next()
    {
        uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    uint32_t below(uint32_t limit)
    {
        return static_cast<uint32_t>((next() >> 32) * uint64_t{limit} >> 32);
    }
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    // Of a Poisson process: the time to the next event.
    double gap(double mean) { return -std::log1p(-unit()) * mean; }

  private:
    uint64_t state_;
};

} // namespace tlm
