// SPDX-License-Identifier: Apache-2.0
//
// Computes cables and routes: the topologies and rules of tools/velo/cluster/routing.py for up to
// 4,096 nodes. A test compares the two.

#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace tlm
{

constexpr unsigned kNodesMax = 4096;
constexpr unsigned kLinksMax = 63;     // ports are bits of a word; the 64th is the node's own
constexpr unsigned kHardwareLinks = 6; // more is a network that this hardware cannot form
constexpr unsigned kLocal = UINT32_MAX;
constexpr unsigned kNoNode = UINT32_MAX;

struct Hop {
    unsigned link = kLocal;
    unsigned dateline = 0; // the second channel
};

class Topology
{
  public:
    // "torus:4x4x4", "mesh:8x8", "ring:16", "hypercube:10" (dimensions), "full:7". Throws
    // std::invalid_argument, with the reason.
    explicit Topology(const std::string &text);

    // Of any cables and routes. By node and link: the other end's node, kNoNode where there is no
    // cable, and link; by node and destination: the hop.
    struct Tables {
        unsigned nodes, links;
        std::vector<uint32_t> neighbours;
        std::vector<uint8_t> far_links;
        std::vector<Hop> hops;
    };
    explicit Topology(Tables tables);

    const std::string &name() const { return name_; }
    unsigned nodes() const { return nodes_; }
    unsigned links() const { return links_; }
    // Of each dimension; one number for hypercube and full.
    const std::vector<unsigned> &sizes() const { return sizes_; }
    unsigned place(unsigned node, unsigned dim) const
    {
        return places_[node * sizes_.size() + dim];
    }
    // The node at the other end of a link, or kNoNode; and the link's number there.
    unsigned neighbour(unsigned node, unsigned link) const;
    unsigned far_link(unsigned node, unsigned link) const;
    Hop hop(unsigned node, unsigned destination) const;
    unsigned distance(unsigned from, unsigned to) const;
    // As tools/velo/cluster/routing.py prints it.
    void print(std::ostream &out) const;

  private:
    enum class Kind { Grid, Hypercube, Full, Tables };

    std::string name_;
    Kind kind_ = Kind::Grid;
    bool wrap_ = false;
    unsigned nodes_ = 1, links_ = 0;
    std::vector<unsigned> sizes_, strides_;
    std::vector<uint16_t> places_;
    Tables tables_;

    void set_grid();
    Hop grid_hop(unsigned node, unsigned destination) const;
};

} // namespace tlm
