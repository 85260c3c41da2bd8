// SPDX-License-Identifier: Apache-2.0
//
// Converts between cycles of the nodes' common clock and virtual time [ps]. Exact for any clock in
// kHz.

#pragma once

#include <cstdint>

namespace sim
{

class Clock
{
  public:
    explicit Clock(uint64_t khz) : khz_(khz) {}

    // When a cycle begins; the one before it ends then.
    uint64_t start_ps(uint64_t cycle) const
    {
        return static_cast<uint64_t>(static_cast<Wide>(cycle) * kPsTimesKhz / khz_);
    }
    // The first cycle that begins at a time or after it.
    uint64_t cycle_from(uint64_t time_ps) const
    {
        return static_cast<uint64_t>((static_cast<Wide>(time_ps) * khz_ + kPsTimesKhz - 1) /
                                     kPsTimesKhz);
    }
    // How many cycles have ended at a time.
    uint64_t cycles_until(uint64_t time_ps) const
    {
        uint64_t cycle = cycle_from(time_ps);
        return start_ps(cycle) > time_ps ? cycle - 1 : cycle;
    }
    uint64_t khz() const { return khz_; }

  private:
    __extension__ using Wide = unsigned __int128;
    static constexpr uint64_t kPsTimesKhz = 1000000000; // a cycle of 1 kHz [ps]
    uint64_t khz_;
};

} // namespace sim
