// SPDX-License-Identifier: Apache-2.0
#include "topology.h"

#include <bit>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace tlm
{

namespace
{

std::vector<unsigned> read_sizes(const std::string &text)
{
    std::vector<unsigned> sizes;
    const char *at = text.data(), *end = at + text.size();
    while (true) {
        unsigned size = 0;
        auto [rest, error] = std::from_chars(at, end, size);
        if (error != std::errc() || (rest != end && *rest != 'x'))
            throw std::invalid_argument("size '" + text + "' is not of the form 4 or 2x2x2");
        sizes.push_back(size);
        if (rest == end)
            return sizes;
        at = rest + 1;
    }
}

} // namespace

Topology::Topology(const std::string &text) : name_(text)
{
    size_t colon = text.find(':');
    std::string kind = text.substr(0, colon);
    sizes_ = read_sizes(colon == std::string::npos ? "" : text.substr(colon + 1));
    if (kind != "torus" && kind != "mesh" && sizes_.size() != 1)
        throw std::invalid_argument("the size of a " + kind + " is one number");
    if (kind == "torus" || kind == "mesh" || kind == "ring") {
        wrap_ = kind != "mesh";
        set_grid();
    } else if (kind == "hypercube") {
        kind_ = Kind::Hypercube;
        if (sizes_[0] < 1 || sizes_[0] > 12)
            throw std::invalid_argument("a hypercube has 1 to 12 dimensions");
        links_ = sizes_[0];
        nodes_ = 1U << links_;
    } else if (kind == "full") {
        kind_ = Kind::Full;
        nodes_ = sizes_[0];
        if (nodes_ < 2 || nodes_ > kLinksMax + 1)
            throw std::invalid_argument("fully connected networks have 2 to 64 nodes here");
        links_ = nodes_ - 1;
    } else {
        throw std::invalid_argument("unknown topology '" + kind +
                                    "': torus, mesh, ring, hypercube or full");
    }
}

Topology::Topology(Tables tables)
    : kind_(Kind::Tables), nodes_(tables.nodes), links_(tables.links), tables_(std::move(tables))
{
}

void Topology::set_grid()
{
    for (unsigned size : sizes_) {
        if (size < 2)
            throw std::invalid_argument("each dimension needs at least 2 nodes");
        if (size > kNodesMax || nodes_ * size > kNodesMax)
            throw std::invalid_argument("more than 4096 nodes");
        strides_.push_back(nodes_);
        nodes_ *= size;
    }
    links_ = static_cast<unsigned>(2 * sizes_.size());
    for (unsigned n = 0; n < nodes_; n++)
        for (size_t d = 0; d < sizes_.size(); d++)
            places_.push_back(static_cast<uint16_t>(n / strides_[d] % sizes_[d]));
}

unsigned Topology::neighbour(unsigned node, unsigned link) const
{
    if (kind_ == Kind::Tables)
        return tables_.neighbours[size_t{node} * links_ + link];
    if (kind_ == Kind::Hypercube)
        return node ^ (1U << link);
    if (kind_ == Kind::Full)
        return link + (link >= node);
    unsigned dim = link / 2, here = place(node, dim), size = sizes_[dim];
    bool up = link % 2 == 0;
    if (!wrap_ && here == (up ? size - 1 : 0))
        return kNoNode;
    unsigned there = (here + (up ? 1 : size - 1)) % size;
    return node + there * strides_[dim] - here * strides_[dim];
}

unsigned Topology::far_link(unsigned node, unsigned link) const
{
    if (kind_ == Kind::Tables)
        return tables_.far_links[size_t{node} * links_ + link];
    if (kind_ == Kind::Hypercube)
        return link;
    if (kind_ == Kind::Full)
        return node - (node > neighbour(node, link));
    return link ^ 1;
}

Hop Topology::hop(unsigned node, unsigned destination) const
{
    if (node == destination)
        return {};
    if (kind_ == Kind::Tables)
        return tables_.hops[size_t{node} * nodes_ + destination];
    if (kind_ == Kind::Hypercube)
        return {static_cast<unsigned>(std::countr_zero(node ^ destination)), 0};
    if (kind_ == Kind::Full)
        return {destination - (destination > node), 0};
    return grid_hop(node, destination);
}

Hop Topology::grid_hop(unsigned node, unsigned destination) const
{
    for (unsigned dim = 0; dim < sizes_.size(); dim++) {
        unsigned here = place(node, dim), there = place(destination, dim), size = sizes_[dim];
        if (here == there)
            continue;
        if (!wrap_)
            return {2 * dim + (here > there), 0};
        unsigned upwards = there > here ? there - here : there + size - here;
        // The shorter way; between two equal ones, even nodes go up: both ways carry the same.
        bool up = upwards * 2 < size || (upwards * 2 == size && here % 2 == 0);
        // A packet uses the first channel until it has passed the dateline, between the last node
        // and the first.
        bool crossed = up ? there > here : there < here;
        return {2 * dim + !up, crossed};
    }
    return {};
}

unsigned Topology::distance(unsigned from, unsigned to) const
{
    unsigned hops = 0;
    for (; from != to; hops++)
        from = neighbour(from, hop(from, to).link);
    return hops;
}

void Topology::print(std::ostream &out) const
{
    constexpr unsigned kHopLocal = 15, kHopDateline = 8; // rtl/switch/rtl/velo_switch_pkg.sv
    for (unsigned n = 0; n < nodes_; n++)
        for (unsigned l = 0; l < links_; l++)
            if (neighbour(n, l) != kNoNode)
                out << "cable " << n << ' ' << l << ' ' << neighbour(n, l) << ' ' << far_link(n, l)
                    << '\n';
    for (unsigned n = 0; n < nodes_; n++)
        for (unsigned d = 0; d < nodes_; d++) {
            Hop h = hop(n, d);
            unsigned code = h.link == kLocal ? kHopLocal : h.link + kHopDateline * h.dateline;
            out << "route " << n << ' ' << d << ' ' << code << '\n';
        }
}

} // namespace tlm
