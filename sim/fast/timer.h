// SPDX-License-Identifier: Apache-2.0
//
// Actions of a model in cycles to come. Those of one cycle come in the order in which they were put
// in.

#pragma once

#include <cstdint>
#include <functional>

namespace sim
{

class Timer
{
  public:
    using Action = std::function<void(uint64_t cycle)>;

    // Not before the cycle of the action that is being carried out.
    virtual void at(uint64_t cycle, Action action) = 0;

  protected:
    ~Timer() = default;
};

} // namespace sim
