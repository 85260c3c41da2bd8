// SPDX-License-Identifier: Apache-2.0
//
// The cables of a cluster and the routes of packets, see tools/velo/cluster/routing.py.

#pragma once

#include <string>
#include <vector>

namespace sim
{

constexpr unsigned kLinksMax = 6;
constexpr unsigned kNodesMax = 4096; // see names.h
constexpr unsigned kHopNone = 14;    // in a switch's table: there is no way

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

// Throws std::runtime_error, with the line, if the file makes no sense.
Topology read_topology(const std::string &path);

} // namespace sim
