// SPDX-License-Identifier: Apache-2.0
//
// SplitMix64: small, and the same everywhere. Each user has a stream of its own, made of the run's
// seed and its own number, so that nobody's numbers depend on how often others ask.

#pragma once

#include <cstdint>

namespace sim
{

class Random
{
  public:
    explicit Random(uint64_t seed = 0, uint64_t stream = 0) : state_(seed)
    {
        state_ = next() ^ (stream * 0xD1342543DE82EF95ULL);
    }
    uint64_t next()
    {
        uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  private:
    uint64_t state_;
};

} // namespace sim
