// SPDX-License-Identifier: Apache-2.0
//
// A node as the cluster sees it: what is at its cables, in each cycle. Behind it is a host of this
// simulator's (node.h), or a guest with a card (../card/function.h).

#pragma once

#include <cstdint>

#include "model.h"

namespace sim
{

class AnyNode
{
  public:
    explicit AnyNode(unsigned number) : number_(number) {}
    virtual ~AnyNode() = default;

    unsigned number() const { return number_; }
    virtual AnyModel &model() = 0;

    // The first cycle that may have an access of the host to deal with; UINT64_MAX: none is open.
    virtual uint64_t next_access_cycle() const = 0;
    // Nothing happened at its host side in the last cycle, and nothing is half done.
    virtual bool host_side_is_idle() const = 0;
    // The last cycle in which the node asked for memory or wrote some; 0: none.
    virtual uint64_t last_dma_cycle() const = 0;

    virtual void set_reset(bool reset) = 0;
    virtual void set_phy_up(uint8_t links) = 0;
    // One cycle: settle() takes the words that cables bring, edge() gives those that leave next.
    virtual void settle(uint64_t cycle, const PhyWords &in) = 0;
    virtual void edge(uint64_t cycle, PhyWords &out) = 0;

  private:
    unsigned number_;
};

} // namespace sim
