// SPDX-License-Identifier: Apache-2.0
//
// Names of contexts in a cluster. A name has 16 bits. Messages, descriptors and notifications carry
// it as eight bits for the node and eight for the context, as layout `address` has them for 256
// nodes of 256 contexts. The VELO paper lets the widths be chosen (section 3: n, t): a cluster of
// more nodes has fewer contexts a node, and the same 16 bits are parted elsewhere.

#pragma once

#include <algorithm>
#include <cstdint>

#include "../spec/sim_channel.h"

namespace sim
{

class Names
{
  public:
    explicit Names(unsigned nodes)
    {
        while (nodes > 1U << (SIM_NAME_BITS - context_bits_))
            context_bits_--;
    }

    unsigned context_bits() const { return context_bits_; }
    // Of each node.
    unsigned contexts() const { return 1U << context_bits_; }
    uint16_t name(unsigned node, unsigned context) const
    {
        return static_cast<uint16_t>(node << context_bits_ | context);
    }
    // As a layout's two fields have it.
    static uint16_t of_fields(unsigned upper, unsigned lower)
    {
        return static_cast<uint16_t>(upper << SIM_CONTEXTS_LOG2 | lower);
    }
    unsigned node(uint16_t name) const { return name >> context_bits_; }
    uint8_t context(uint16_t name) const { return static_cast<uint8_t>(name & (contexts() - 1)); }

  private:
    unsigned context_bits_ = SIM_CONTEXTS_LOG2;
};

} // namespace sim
