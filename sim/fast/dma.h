// SPDX-License-Identifier: Apache-2.0
//
// The RMA unit's way to the memory of its host: reads and writes, each of which takes its turn, and
// the host port, which writes share with messages.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "../host_side.h"
#include "timer.h"

namespace sim
{

class Dma
{
  public:
    using Bytes = std::vector<uint8_t>;

    // `dma_cycles`: from the node to memory.
    Dma(HostSide &host, uint64_t dma_cycles, Timer &timer)
        : host_(host), dma_cycles_(dma_cycles), timer_(timer)
    {
    }

    enum Writer : unsigned { kServe, kAccept, kFinish, kNotifier, kWriters };
    // The writer, which has no other write under way, offers one in this cycle. `begun` hears, when
    // its turn has come, in which cycles its first and its last beat are taken.
    using Begun = std::function<void(uint64_t first, uint64_t last)>;
    void write(Writer writer, uint64_t cycle, uint64_t addr, Bytes bytes, Begun begun);
    // A read is offered in this cycle. `done` is told in the cycle in which the first beat is at
    // the unit; nothing is there: no bytes.
    using Read = std::function<void(uint64_t cycle, Bytes bytes)>;
    void read(uint64_t cycle, uint64_t addr, unsigned count, Read done);
    // A message takes the host port for so many beats, from `first` on or later. Returns the cycle
    // of the last one.
    uint64_t pass_message(uint64_t first, unsigned beats);

    // From this cycle on it is known that the writes have left of which the last beat was taken
    // before `cycle`.
    uint64_t left_cycle(uint64_t cycle);

  private:
    struct Write {
        uint64_t addr;
        Bytes bytes;
        Begun begun;
    };
    struct Gone {
        uint64_t taken, left; // last beat: by the turn, by the host
    };

    HostSide &host_;
    uint64_t dma_cycles_;
    Timer &timer_;
    std::array<std::optional<Write>, kWriters> offered_;
    unsigned turn_ = 0;
    bool turn_planned_ = false;
    uint64_t turn_free_ = 0, port_free_ = 0, read_free_ = 0, answer_free_ = 0;
    std::deque<Gone> gone_;
    uint64_t left_ = 0; // of those that were forgotten

    void take_turn(uint64_t cycle);
    void look(uint64_t cycle, uint64_t asked, uint64_t addr, unsigned count, const Read &done);
};

} // namespace sim
