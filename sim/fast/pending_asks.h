// SPDX-License-Identifier: Apache-2.0
//
// The gets and updates of a node that are not over, velo_rma_pending.sv: which may be sent.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "rma_cycles.h"

namespace sim
{

class PendingAsks
{
  public:
    // The entries are given in turn: one that is still open stops its node, whatever others are
    // free.
    bool has_place(unsigned node) const
    {
        auto unanswered = std::count_if(entries_.begin(), entries_.end(), [node](const Entry &one) {
            return one.is_unanswered && one.node == node;
        });
        return !entries_[next_].is_open && unanswered < rma::kAsksPerNode;
    }

    // There was a place. Returns the operation's number.
    uint8_t open(unsigned node)
    {
        uint8_t number = next_;
        entries_[number] = {true, true, node};
        next_ = static_cast<uint8_t>((next_ + 1) % rma::kPendingAsks);
        return number;
    }

    void begin(uint8_t number) { entries_[number].is_unanswered = false; }
    void end(uint8_t number) { entries_[number] = {}; }

  private:
    struct Entry {
        bool is_open = false, is_unanswered = false; // no packet of an answer has come
        unsigned node = 0;
    };
    std::array<Entry, rma::kPendingAsks> entries_;
    uint8_t next_ = 0;
};

} // namespace sim
