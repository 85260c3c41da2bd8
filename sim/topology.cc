// SPDX-License-Identifier: Apache-2.0
#include "topology.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sim
{

namespace
{

[[noreturn]] void refuse(const std::string &path, unsigned line, const std::string &why)
{
    throw std::runtime_error(path + ":" + std::to_string(line) + ": " + why);
}

void take_cable(Topology &topology, unsigned node, unsigned link, unsigned to_node,
                unsigned to_link)
{
    topology.nodes[node].links[link] = {true, to_node, to_link};
}

void take_route(Topology &topology, unsigned node, unsigned destination, unsigned hop)
{
    auto &hops = topology.nodes[node].hops;
    if (hops.size() <= destination)
        hops.resize(destination + 1, kHopNone);
    hops[destination] = hop;
}

void check_cables(const Topology &topology, const std::string &path)
{
    for (unsigned n = 0; n < topology.nodes.size(); n++)
        for (unsigned l = 0; l < kLinksMax; l++) {
            const Plug &plug = topology.nodes[n].links[l];
            if (!plug.plugged)
                continue;
            const Plug &back = topology.nodes[plug.to_node].links[plug.to_link];
            if (!back.plugged || back.to_node != n || back.to_link != l)
                throw std::runtime_error(path + ": the cable from node " + std::to_string(n) +
                                         " link " + std::to_string(l) + " has no way back");
        }
}

} // namespace

unsigned Topology::links_used() const
{
    unsigned used = 0;
    for (const auto &node : nodes)
        for (unsigned l = 0; l < kLinksMax; l++)
            if (node.links[l].plugged)
                used = std::max(used, l + 1);
    return used;
}

Topology read_topology(const std::string &path)
{
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error(path + ": cannot be read");
    Topology topology;
    std::string text;
    for (unsigned line = 1; std::getline(file, text); line++) {
        std::istringstream words(text);
        std::string kind;
        if (!(words >> kind) || kind[0] == '#')
            continue;
        unsigned a = 0, b = 0, c = 0, d = 0;
        bool cable = kind == "cable";
        if ((!cable && kind != "route") || !(words >> a >> b >> c) || (cable && !(words >> d)))
            refuse(path, line, "neither a cable nor a route");
        unsigned other = cable ? c : b;
        if (a >= kNodesMax || other >= kNodesMax)
            refuse(path, line, "nodes end at " + std::to_string(kNodesMax - 1));
        if (cable && (b >= kLinksMax || d >= kLinksMax))
            refuse(path, line, "links end at " + std::to_string(kLinksMax - 1));
        if (!cable && c > 15)
            refuse(path, line, "no such hop");
        topology.nodes.resize(std::max<size_t>(topology.nodes.size(), std::max(a, other) + 1));
        if (cable)
            take_cable(topology, a, b, c, d);
        else
            take_route(topology, a, b, c);
    }
    if (topology.nodes.empty())
        throw std::runtime_error(path + ": no topology in it");
    for (auto &node : topology.nodes)
        node.hops.resize(topology.nodes.size(), kHopNone);
    check_cables(topology, path);
    return topology;
}

} // namespace sim
