// SPDX-License-Identifier: Apache-2.0
#include "cluster.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sim
{

namespace
{

// Registers, spec/velo_regs.rdl.
constexpr uint64_t kRegSetup = 0x08, kRegLinks = 0x80, kRegLink = 0x100, kRegRoutes = 0x8200000;

constexpr unsigned kNodesOfRtl = 256; // spec/velo.toml, layout `address`
constexpr unsigned kResetCycles = 4;
constexpr unsigned kClearCycles = 300; // the context tables clear themselves
constexpr uint64_t kBringUpCyclesMax = 200000;
constexpr uint64_t kBootReader = UINT64_MAX;
// Nodes may not come to rest, for example because a cable has errors. If for this long no
// register's value comes and no memory is read or written, then nothing is under way. (An operation
// on remote memory writes some when it ends.)
constexpr uint64_t kBarrenCycles = 20000;

} // namespace

Cluster::Cluster(const ClusterOptions &options, const Topology &topology, uint8_t *memory)
    : Hardware(options, static_cast<unsigned>(topology.nodes.size()), memory), options_(options),
      topology_(topology)
{
    if (topology.nodes.size() > kNodesOfRtl)
        throw std::runtime_error("the topology has " + std::to_string(topology.nodes.size()) +
                                 " nodes, and the RTL has ids for " + std::to_string(kNodesOfRtl) +
                                 "; use --model fast, which has them for " +
                                 std::to_string(kNodesMax));
    unsigned links = topology.links_used();
    Shape shape = options.shape;
    if (shape.links != 0 && shape.links < links)
        throw std::runtime_error("the topology needs " + std::to_string(links) + " links a node");
    shape.links = std::max(links, shape.links);
    if (!options.cards.empty() && links > card::kCardLinks)
        throw std::runtime_error("a card has " + std::to_string(card::kCardLinks) +
                                 " links, the topology needs " + std::to_string(links));
    if (!options.cards.empty() && *options.cards.rbegin() >= topology.nodes.size())
        throw std::runtime_error("--card: nodes end at " +
                                 std::to_string(topology.nodes.size() - 1));
    for (unsigned n = 0; n < topology.nodes.size(); n++)
        add_node(n, shape);
    rests_.resize(nodes_.size());
    out_.resize(nodes_.size());
    for (Words &words : out_)
        std::fill(std::begin(words.at), std::end(words.at), kPhySilence);
}

void Cluster::add_node(unsigned number, const Shape &shape)
{
    bool is_shown = options_.shown.contains(number);
    if (options_.cards.contains(number)) {
        auto card = std::make_unique<card::Function>(number, is_shown);
        cards_[number] = card.get();
        nodes_.push_back(std::move(card));
    } else {
        uint64_t dma_cycles = clock().cycle_from(options_.host.dma_ns * kPsPerNs);
        nodes_.push_back(std::make_unique<Node>(number, shape, host(number), dma_cycles, is_shown));
    }
    cables_.emplace_back();
    for (unsigned l = 0; l < kLinksMax; l++)
        cables_.back().emplace_back(options_.cable_cycles, shape.width_bits, options_.error_rate,
                                    Random(options_.seed, number * kLinksMax + l));
}

unsigned Cluster::links_of(unsigned node) const
{
    unsigned mask = 0;
    for (unsigned l = 0; l < kLinksMax; l++)
        mask |= static_cast<unsigned>(topology_.nodes[node].links[l].plugged) << l;
    return mask;
}

void Cluster::boot()
{
    for (auto &node : nodes_) {
        node->set_reset(true);
        node->set_phy_up(static_cast<uint8_t>(links_of(node->number())));
    }
    while (cycle_ < kResetCycles)
        step_one();
    for (auto &node : nodes_)
        node->set_reset(false);
    while (cycle_ < kResetCycles + kClearCycles)
        step_one();
    for (unsigned n = 0; n < nodes_.size(); n++)
        if (hosts(n))
            set_up(n);
    while (!is_quiet() && cycle_ < kBringUpCyclesMax)
        step_one();
    check_links();
}

void Cluster::set_up(unsigned node)
{
    uint64_t now_ps = clock().start_ps(cycle_);
    write_register(node, now_ps, kRegSetup, node);
    const auto &hops = topology_.nodes[node].hops;
    for (unsigned d = 0; d < hops.size(); d++)
        write_register(node, now_ps, kRegRoutes + 8 * d, hops[d]);
    write_register(node, now_ps, kRegLinks, links_of(node));
}

void Cluster::check_links()
{
    for (unsigned n = 0; n < nodes_.size(); n++)
        for (unsigned l = 0; l < kLinksMax; l++) {
            const Plug &plug = topology_.nodes[n].links[l];
            if (!plug.plugged || !hosts(n) || !hosts(plug.to_node))
                continue;
            read_register(n, clock().start_ps(cycle_), kRegLink + 8 * l, kBootReader);
            while (host(n).register_answers.empty() && cycle_ < 2 * kBringUpCyclesMax)
                step_one();
            bool up = !host(n).register_answers.empty() &&
                      (host(n).register_answers.front().value & 1) != 0;
            host(n).register_answers.clear();
            if (!up)
                throw std::runtime_error("link " + std::to_string(l) + " of node " +
                                         std::to_string(n) + " does not come up");
        }
}

// ----- cycles
// -------------------------------------------------------------------------------------

void Cluster::step(uint64_t end_cycle)
{
    if (wave_ && cycle_ >= wave_from_ && cycle_ < wave_end_) {
        step_shown();
        return;
    }
    if (options_.skip && cycle_ + 1 < end_cycle) {
        uint64_t cycles = cycles_to_skip(end_cycle);
        if (cycles > 0) {
            skip(cycles);
            return;
        }
    }
    step_one();
}

void Cluster::step_one()
{
    send();
    for (unsigned n = 0; n < nodes_.size(); n++)
        step_node(n);
    cycle_++;
}

// The cables take the words that output registers hold in this cycle, and bring them to the other
// side.
void Cluster::send()
{
    for (unsigned n = 0; n < nodes_.size(); n++)
        for (unsigned l = 0; l < kLinksMax; l++) {
            const Plug &plug = topology_.nodes[n].links[l];
            if (!plug.plugged)
                continue;
            cables_[plug.to_node][plug.to_link].put(cycle_, out_[n].at[l]);
            if (recorder_)
                recorder_->sent(n, l, cycle_, out_[n].at[l]);
            if (capture_)
                capture_->sent(n, l, cycle_, out_[n].at[l]);
        }
}

void Cluster::hear(unsigned number, PhyWords &in)
{
    for (unsigned l = 0; l < kLinksMax; l++)
        in[l] =
            topology_.nodes[number].links[l].plugged ? cables_[number][l].get(cycle_) : kPhySilence;
}

void Cluster::step_node(unsigned number)
{
    AnyNode &node = *nodes_[number];
    Rest &rest = rests_[number];
    PhyWords in;
    hear(number, in);
    bool rests = rest.resting() && rest.fits(in) && node.next_access_cycle() > cycle_;
    if (rests && options_.skip) {
        rest.pass(out_[number].at);
        return;
    }
    if (rest.resting() && !rests)
        wake(number);
    node.settle(cycle_, in);
    edge(number);
    if (rests)
        check_rest(number);
    else
        watch(number, in);
}

void Cluster::edge(unsigned number)
{
    evaluated_++;
    if (!hosts(number)) {
        nodes_[number]->edge(cycle_, out_[number].at);
        return;
    }
    const HostSide &side = host(number);
    size_t stores = side.stores.size(), arrivals = side.arrivals.size();
    nodes_[number]->edge(cycle_, out_[number].at);
    if (!recorder_)
        return;
    if (side.stores.size() < stores)
        recorder_->taken(number, cycle_);
    for (; arrivals < side.arrivals.size(); arrivals++) {
        const Arrival &arrival = side.arrivals[arrivals];
        if (arrival.is_notification)
            recorder_->notified(arrival, visible_ps(cycle_));
        else
            recorder_->arrived(arrival, visible_ps(cycle_));
    }
}

void Cluster::watch(unsigned number, const PhyWords &in)
{
    AnyNode &node = *nodes_[number];
    rests_[number].watch(cycle_, in, out_[number].at, node.host_side_is_idle(), node.model());
}

// In a cycle that is shown no node rests, and all nodes go through it side by side.
void Cluster::step_shown()
{
    send();
    std::vector<Words> in(nodes_.size());
    for (unsigned n = 0; n < nodes_.size(); n++) {
        hear(n, in[n].at);
        if (rests_[n].resting())
            wake(n);
        nodes_[n]->settle(cycle_, in[n].at);
    }
    uint64_t begin_ps = clock().start_ps(cycle_), end_ps = clock().start_ps(cycle_ + 1);
    wave_->dump((begin_ps + end_ps) / 2);
    for (unsigned n = 0; n < nodes_.size(); n++) {
        edge(n);
        watch(n, in[n].at);
    }
    wave_->dump(end_ps);
    shown_++;
    if (++cycle_ >= wave_end_)
        wave_.reset();
}

// The model is in the state of the period's beginning, or where it should be if nothing is skipped.
void Cluster::wake(unsigned number)
{
    uint64_t then = cycle_ - rests_[number].place();
    for (const PhyWords *words : rests_[number].wake()) {
        if (!options_.skip)
            continue;
        PhyWords unused;
        nodes_[number]->settle(then, *words);
        nodes_[number]->edge(then++, unused);
        evaluated_++;
    }
}

// Without skipping, a resting node is evaluated, and its outputs are compared with the expected
// ones.
void Cluster::check_rest(unsigned number)
{
    PhyWords expected;
    rests_[number].pass(expected);
    if (!std::equal(std::begin(expected), std::end(expected), std::begin(out_[number].at)) ||
        !nodes_[number]->host_side_is_idle())
        throw std::logic_error("node " + std::to_string(number) + " did not rest, cycle " +
                               std::to_string(cycle_));
}

bool Cluster::is_barren(uint64_t since_cycle) const
{
    uint64_t last = since_cycle;
    for (const auto &node : nodes_)
        last = std::max(last, node->last_dma_cycle());
    return cycle_ > last + kBarrenCycles;
}

bool Cluster::is_quiet() const
{
    return std::all_of(rests_.begin(), rests_.end(),
                       [&](const Rest &rest) {
                           return rest.resting() && cycle_ >= rest.since_cycle() + Rest::kPeriod +
                                                                  options_.cable_cycles;
                       }) &&
           cycle_ >= seen_cycle() &&
           std::all_of(nodes_.begin(), nodes_.end(),
                       [](const auto &node) { return node->next_access_cycle() == UINT64_MAX; });
}

uint64_t Cluster::cycles_to_skip(uint64_t end_cycle) const
{
    if (wave_ && cycle_ < wave_from_)
        end_cycle = std::min(end_cycle, wave_from_);
    for (const Rest &rest : rests_)
        if (!rest.resting() || cycle_ < rest.since_cycle() + Rest::kPeriod + options_.cable_cycles)
            return 0;
    // A rank that waits only for this goes on then.
    if (uint64_t seen = seen_cycle(); seen > cycle_)
        end_cycle = std::min(end_cycle, seen);
    for (const auto &node : nodes_)
        end_cycle = std::min(end_cycle, node->next_access_cycle());
    for (const auto &cables : cables_)
        for (const Cable &cable : cables)
            end_cycle = std::min(end_cycle, cable.next_error_cycle());
    return end_cycle > cycle_ ? end_cycle - cycle_ : 0;
}

void Cluster::skip(uint64_t cycles)
{
    cycle_ += cycles;
    for (unsigned n = 0; n < nodes_.size(); n++) {
        Rest &rest = rests_[n];
        rest.pass_many(cycles);
        for (unsigned l = 0; l < kLinksMax; l++) {
            const Plug &plug = topology_.nodes[n].links[l];
            if (!plug.plugged)
                continue;
            out_[n].at[l] = rest.sent(l, 0);
            // The cable now holds the words of the last cycles that were left out.
            Cable &cable = cables_[plug.to_node][plug.to_link];
            for (uint64_t back = 1; back <= options_.cable_cycles; back++)
                cable.put(cycle_ - back, rest.sent(l, back));
        }
    }
}

void Cluster::show(std::unique_ptr<Wave> wave, uint64_t from_ps, uint64_t end_ps)
{
    wave_ = std::move(wave);
    wave_from_ = clock().cycle_from(from_ps);
    wave_end_ = std::max(clock().cycle_from(end_ps), wave_from_ + 1);
}

uint64_t Cluster::bad_words() const
{
    uint64_t sum = 0;
    for (const auto &cables : cables_)
        for (const Cable &cable : cables)
            sum += cable.bad_words();
    return sum;
}

} // namespace sim
