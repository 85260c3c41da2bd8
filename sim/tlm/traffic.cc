// SPDX-License-Identifier: Apache-2.0
#include "traffic.h"

#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

namespace tlm
{

namespace
{

constexpr std::array<std::pair<const char *, Pattern>, 6> kPatterns = {{
    {"uniform", Pattern::Uniform},
    {"neighbour", Pattern::Neighbour},
    {"transpose", Pattern::Transpose},
    {"complement", Pattern::Complement},
    {"hotspot", Pattern::HotSpot},
    {"alltoall", Pattern::AllToAll},
}};

// The transposed matrix. If all dimensions of a torus or mesh have one size, its coordinates move
// by one place; else the upper and lower half of the number's bits change places.
unsigned transpose(unsigned node, const Topology &topology)
{
    const auto &sizes = topology.sizes();
    bool even = sizes.size() > 1;
    for (unsigned size : sizes)
        even = even && size == sizes[0];
    if (even) {
        unsigned to = 0;
        for (size_t d = sizes.size(); d-- > 0;)
            to =
                to * sizes[0] + topology.place(node, static_cast<unsigned>((d + 1) % sizes.size()));
        return to;
    }
    if (!std::has_single_bit(topology.nodes()))
        throw std::invalid_argument("transpose needs equal dimensions or a power of two of nodes");
    unsigned bits = static_cast<unsigned>(std::countr_zero(topology.nodes())), half = bits / 2;
    return node >> half | (node & ((1U << half) - 1)) << (bits - half);
}

class Synthetic final : public Traffic
{
  public:
    Synthetic(const PatternOptions &options, const Topology &topology, const Params &params)
        : options_(options), nodes_(topology.nodes()),
          mean_gap_(static_cast<double>(params.message_words(options.bytes)) / options.load)
    {
        if (options.load <= 0)
            throw std::invalid_argument("the load has to be more than 0");
        for (unsigned n = 0; n < nodes_; n++) {
            sources_.push_back({Random(options.seed * 1000003 + n), 0, n});
            sources_[n].born = sources_[n].random.gap(mean_gap_);
        }
        set_partners(topology);
    }

    Cycle next_born(unsigned node) const override
    {
        return is_silent(node) ? kNever : static_cast<Cycle>(sources_[node].born);
    }

    Message take(unsigned node, Cycle /*now*/) override
    {
        Source &source = sources_[node];
        Message message{static_cast<Cycle>(source.born), target(node), options_.bytes};
        source.born += source.random.gap(mean_gap_);
        return message;
    }

  private:
    struct Source {
        Random random;
        double born; // of the next message
        uint32_t last;
    };

    PatternOptions options_;
    unsigned nodes_;
    double mean_gap_;
    std::vector<Source> sources_;
    // In patterns with fixed partners, by node: its partners, each with equal chance.
    std::vector<uint32_t> first_partner_, partners_;

    void set_partners(const Topology &topology)
    {
        for (unsigned n = 0; n < nodes_; n++) {
            first_partner_.push_back(static_cast<uint32_t>(partners_.size()));
            if (options_.pattern == Pattern::Neighbour) {
                for (unsigned l = 0; l < topology.links(); l++)
                    if (topology.neighbour(n, l) != kNoNode)
                        partners_.push_back(topology.neighbour(n, l));
            } else if (options_.pattern == Pattern::Transpose) {
                partners_.push_back(transpose(n, topology));
            } else if (options_.pattern == Pattern::Complement) {
                partners_.push_back(nodes_ - 1 - n);
            }
        }
        first_partner_.push_back(static_cast<uint32_t>(partners_.size()));
    }

    bool is_silent(unsigned node) const
    {
        return first_partner_[node + 1] == first_partner_[node] + 1 &&
               partners_[first_partner_[node]] == node;
    }

    uint32_t other(unsigned node, Random &random) const
    {
        uint32_t to = random.below(nodes_ - 1);
        return to + (to >= node);
    }

    uint32_t target(unsigned node)
    {
        Source &source = sources_[node];
        switch (options_.pattern) {
        case Pattern::Uniform:
            return other(node, source.random);
        case Pattern::HotSpot:
            if (node != options_.hot_node && source.random.unit() < options_.hot_share)
                return options_.hot_node;
            return other(node, source.random);
        case Pattern::AllToAll: // in turn, beginning behind oneself
            source.last = (source.last + 1) % nodes_;
            if (source.last == node)
                source.last = (source.last + 1) % nodes_;
            return source.last;
        default:
            break;
        }
        uint32_t first = first_partner_[node], count = first_partner_[node + 1] - first;
        return partners_[count == 1 ? first : first + source.random.below(count)];
    }
};

class Victims final : public Traffic
{
  public:
    Victims(const VictimOptions &options, const Topology &topology, const Params &params)
        : options_(options), words_(static_cast<double>(params.message_words(options.bytes)))
    {
        unsigned nodes = topology.nodes();
        if (options.hot_node >= nodes)
            throw std::invalid_argument("there is no such hot node");
        if (options.load <= 0)
            throw std::invalid_argument("the load has to be more than 0");
        Random random(options.seed * 1000003);
        for (unsigned n = 0; n < nodes; n++) {
            sources_.push_back({Random(options.seed * 1000003 + n + 1), kNoTarget, 0});
        }
        if (options.is_hot)
            choose_senders(nodes);
        if (options.from == kNoTarget && options.to == kNoTarget) {
            choose(topology, random);
            return;
        }
        if (options.from >= nodes || options.to >= nodes || options.from == options.to ||
            options.from == options.hot_node || options.to == options.hot_node)
            throw std::invalid_argument("victim and hot node have to be three nodes");
        add_victim(options.from, options.to);
    }

    unsigned flows() const { return flows_; }

    Cycle next_born(unsigned node) const override
    {
        const Source &source = sources_[node];
        return source.to == kNoTarget || stopped_ ? kNever : static_cast<Cycle>(source.born);
    }
    Message take(unsigned node, Cycle now) override
    {
        // A source that was held for long does not make up for it.
        constexpr double kBehindMax = 1000; // cycles
        Source &source = sources_[node];
        source.born = std::max(source.born, static_cast<double>(now) - kBehindMax);
        Message message{static_cast<Cycle>(source.born), source.to, options_.bytes};
        source.born +=
            source.to == options_.hot_node ? words_ : source.random.gap(words_ / options_.load);
        return message;
    }
    void stop() override { stopped_ = true; }

  private:
    struct Source {
        Random random;
        uint32_t to;
        double born; // of the next message
    };

    VictimOptions options_;
    double words_;
    std::vector<Source> sources_;
    unsigned flows_ = 0;
    bool stopped_ = false;

    // Upwards from the victim's source, if it is given: what is sent from there on shares its way.
    void choose_senders(unsigned nodes)
    {
        unsigned first = options_.from < nodes ? options_.from : 0, count = 0;
        for (unsigned i = 0; i < nodes; i++) {
            unsigned n = (first + i) % nodes;
            if (n == options_.hot_node || n == options_.from ||
                (options_.senders && count == options_.senders))
                continue;
            sources_[n].to = options_.hot_node;
            count++;
        }
    }

    void add_victim(unsigned from, unsigned to)
    {
        sources_[from].to = to;
        sources_[from].born = sources_[from].random.gap(words_ / options_.load);
        flows_++;
    }

    // Calls `use` with node and link of each hop.
    template <typename Use>
    static void follow(const Topology &topology, unsigned from, unsigned to, Use use)
    {
        while (from != to) {
            unsigned link = topology.hop(from, to).link;
            use(from * topology.links() + link);
            from = topology.neighbour(from, link);
        }
    }

    // Pairs of nodes that share a link with the traffic of many to the hot node, and none with each
    // other; no node is in two of them.
    void choose(const Topology &topology, Random &random)
    {
        constexpr unsigned kTries = 10000; // for each flow
        constexpr unsigned kMany = 64;     // of so many nodes, one
        unsigned nodes = topology.nodes(), hot = options_.hot_node;
        std::vector<unsigned> hot_ways(size_t{nodes} * topology.links());
        std::vector<bool> used(hot_ways.size()), taken(nodes);
        for (unsigned n = 0; n < nodes; n++)
            follow(topology, n, hot, [&](unsigned link) { hot_ways[link]++; });
        taken[hot] = true;
        unsigned wanted = options_.victims ? options_.victims : std::max(1U, nodes / 32);
        for (unsigned tries = wanted * kTries; tries && flows_ < wanted; tries--) {
            unsigned from = random.below(nodes), to = random.below(nodes);
            bool is_shared = false, is_used = taken[from] || taken[to];
            follow(topology, from, to, [&](unsigned link) {
                is_shared = is_shared || hot_ways[link] >= std::max(1U, nodes / kMany);
                is_used = is_used || used[link];
            });
            if (!is_shared || is_used)
                continue;
            taken[from] = taken[to] = true;
            follow(topology, from, to, [&](unsigned link) { used[link] = true; });
            add_victim(from, to);
        }
        if (flows_ < wanted)
            throw std::invalid_argument("there are not that many victims");
    }
};

class Single final : public Traffic
{
  public:
    Single(unsigned from, unsigned to, unsigned bytes) : from_(from), message_{0, to, bytes} {}
    Cycle next_born(unsigned node) const override { return node == from_ && !taken_ ? 0 : kNever; }
    Message take(unsigned /*node*/, Cycle /*now*/) override
    {
        taken_ = true;
        return message_;
    }

  private:
    unsigned from_;
    Message message_;
    bool taken_ = false;
};

} // namespace

Pattern read_pattern(const std::string &name)
{
    for (const auto &[known, pattern] : kPatterns)
        if (name == known)
            return pattern;
    throw std::invalid_argument("unknown workload '" + name + "'");
}

std::unique_ptr<Traffic> make_pattern(const PatternOptions &options, const Topology &topology,
                                      const Params &params)
{
    if (options.hot_node >= topology.nodes())
        throw std::invalid_argument("there is no such hot node");
    return std::make_unique<Synthetic>(options, topology, params);
}

std::unique_ptr<Traffic> make_victims(const VictimOptions &options, const Topology &topology,
                                      const Params &params, unsigned &flows)
{
    auto victims = std::make_unique<Victims>(options, topology, params);
    flows = victims->flows();
    return victims;
}

std::unique_ptr<Traffic> make_single(unsigned from, unsigned to, unsigned bytes)
{
    return std::make_unique<Single>(from, to, bytes);
}

} // namespace tlm
