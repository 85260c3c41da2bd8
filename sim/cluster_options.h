// SPDX-License-Identifier: Apache-2.0
//
// What a cluster is made of, whichever model of the hardware it has.

#pragma once

#include <cstdint>
#include <set>

#include "host_model.h"

namespace sim
{

// Of a node.
struct Shape {
    unsigned links = 0, width_bits = 32;

    unsigned beat_bytes() const { return width_bits / 8; }
};

struct ClusterOptions {
    uint64_t clock_khz = 100000;
    // The shape of each node. No links: each has as many as the topology needs.
    Shape shape;
    unsigned cable_cycles = 0;
    double error_rate = 0;
    uint64_t seed = 1;
    // One in so many lines comes to its node in parts, as a host's write buffers may send it; 0:
    // none.
    unsigned split_one_in = 0;
    bool skip = true;
    std::set<unsigned> shown; // nodes that a waveform may show
    std::set<unsigned> cards; // nodes that are cards of guests
    HostModel host;
};

} // namespace sim
