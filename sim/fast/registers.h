// SPDX-License-Identifier: Apache-2.0
//
// A node's registers as far as the driver and the library use them, and its control port in time.
//
// The port takes the first beat of a write when it has the one before, and the register file the
// one before that. A register is written three cycles after its write's last beat, or after the
// register before it. A read is answered five cycles after it comes, and four after the writes
// before it.

#pragma once

#include <cstdint>

#include "../host_side.h"
#include "rings.h"
#include "rma.h"

namespace sim
{

class FastRegisters
{
  public:
    FastRegisters(FastRings &rings, FastRma &rma) : rings_(rings), rma_(rma) {}

    // The cycle in which the port is done with the access that is next: a write's last beat, or a
    // read's answer.
    uint64_t done_cycle(const HostAccess &next) const;
    // That cycle has come. Returns the value of a read. `has_room`: rings may have more room.
    // Throws JobError if there is no such register in this model.
    uint64_t carry_out(const HostAccess &access, uint64_t cycle, bool &has_room);

  private:
    FastRings &rings_;
    FastRma &rma_;
    uint64_t free_cycle_ = 0;                       // the port takes a beat from this cycle on
    uint64_t written_cycle_ = 0, before_cycle_ = 0; // the last register is; the one before it
    uint64_t pages_ = 0, invalidated_ = 0;

    bool write(uint64_t offset, uint64_t value, uint64_t cycle);
    uint64_t read(uint64_t offset) const;
};

} // namespace sim
