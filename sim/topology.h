// SPDX-License-Identifier: Apache-2.0
//
// Which cable is plugged where, and which way packets go, see tools/velo/cluster/routing.py.

#pragma once

#include <string>
#include <vector>

namespace sim
{

constexpr unsigned kLinksMax = 6;
constexpr unsigned kNodesMax = 256;
constexpr unsigned kHopNone = 14; // what a switch's table holds for nowhere

struct Plug {
    bool plugged = false;
    unsigned to_node = 0, to_link = 0;
};

struct TopologyNode {
    Plug links[kLinksMax];
    std::vector<unsigned> hops; // by destination
};

struct Topology {
    std::vector<TopologyNode> nodes;

    unsigned links_used() const;
};

// Throws std::runtime_error, with the line, if the file is not what it should be.
Topology read_topology(const std::string &path);

} // namespace sim
