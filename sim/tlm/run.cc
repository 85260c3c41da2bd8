// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <ctime>
#include <stdexcept>

namespace tlm
{

namespace
{

// Measures the time of this process's work, not of other work of the computer.
class Stopwatch
{
  public:
    double seconds() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

  private:
    std::clock_t start_ = std::clock();
};

void add_links(Result &result, const Topology &topology, const Counters &counters)
{
    double sum = 0;
    unsigned count = 0;
    for (unsigned n = 0; n < topology.nodes(); n++)
        for (unsigned l = 0; l < topology.links(); l++) {
            uint64_t words = counters.link_words[n * (topology.links() + 1) + l];
            double share = static_cast<double>(words) / static_cast<double>(result.cycles);
            result.links.push_back(share);
            if (topology.neighbour(n, l) == kNoNode)
                continue;
            sum += share;
            count++;
            result.max_link = std::max(result.max_link, share);
        }
    result.mean_link = sum / count;
}

Result read_result(const Network<1> &network, const Topology &topology, Cycle cycles)
{
    const Counters &counters = network.counters();
    Result result;
    result.cycles = std::max<Cycle>(cycles, 1);
    result.accepted = static_cast<double>(counters.words) /
                      (static_cast<double>(result.cycles) * topology.nodes());
    result.messages = counters.latency.count();
    result.bytes = counters.bytes;
    result.hops = counters.hops;
    result.mean = counters.latency.mean();
    result.median = counters.latency.quantile(0.5);
    result.p99 = counters.latency.quantile(0.99);
    result.max = counters.latency.max();
    result.all_hops = network.all_hops();
    result.marked = counters.marked;
    result.notices = counters.notices;
    result.held = counters.held;
    add_links(result, topology, counters);
    return result;
}

} // namespace

Result run_pattern(const Params &params, const Topology &topology, const RunOptions &options)
{
    auto traffic = make_pattern(options.pattern, topology, params);
    Stopwatch watch;
    Network<1> network(params, topology, *traffic, options.congestion);
    network.measure(options.warm_up, options.warm_up + options.cycles);
    network.run(options.warm_up + options.cycles);
    Result result = read_result(network, topology, options.cycles);
    result.offered = options.pattern.load;
    result.seconds = watch.seconds();
    return result;
}

Result run_trace(const Params &params, const Topology &topology, Traffic &trace,
                 const CongestionParams &congestion)
{
    constexpr Cycle kStretch = 1000000;
    Stopwatch watch;
    Network<1> network(params, topology, trace, congestion);
    while (!network.is_finished())
        network.run(network.now() + kStretch);
    if (network.received() != network.sent())
        throw std::logic_error("messages of the trace did not arrive");
    Result result = read_result(network, topology, network.counters().last_done);
    result.seconds = watch.seconds();
    return result;
}

namespace
{

VictimResult run_victims_once(const Params &params, const Topology &topology,
                              const RunOptions &options, bool is_managed, bool is_hot,
                              std::vector<uint64_t> &words)
{
    constexpr Cycle kStretch = 100000, kDrainMax = 100 * kStretch;
    VictimResult result{.is_managed = is_managed, .is_hot = is_hot};
    const PatternOptions &pattern = options.pattern;
    VictimOptions victims{.hot_node = pattern.hot_node,
                          .victims = options.victims,
                          .senders = options.senders,
                          .from = options.from,
                          .to = options.to,
                          .is_hot = is_hot,
                          .load = pattern.load,
                          .bytes = pattern.bytes,
                          .seed = pattern.seed};
    auto traffic = make_victims(victims, topology, params, result.flows);
    CongestionParams congestion = options.congestion;
    congestion.enable = is_managed;
    Network<1> network(params, topology, *traffic, congestion);
    if (options.pace > 1 || options.stop)
        network.slow_down({.node = pattern.hot_node,
                           .pace = options.pace,
                           .stop = options.warm_up / 2,
                           .go = options.warm_up / 2 + options.stop});
    network.measure(options.warm_up, options.warm_up + options.cycles);
    network.run(options.warm_up + options.cycles);
    auto cycles = static_cast<double>(options.cycles);
    const Counters &counters = network.counters();
    words = counters.node_words;
    uint64_t hot = words[pattern.hot_node];
    result.victims = static_cast<double>(counters.words - hot) / cycles / result.flows;
    result.hot = static_cast<double>(hot) / cycles;
    result.marked = counters.marked;
    result.notices = counters.notices;

    traffic->stop();
    Cycle limit = network.now() + kDrainMax;
    while (!network.is_finished() && network.now() < limit)
        network.run(network.now() + kStretch);
    if (network.received() != network.sent())
        throw std::logic_error("messages did not arrive");
    result.messages = network.received();
    return result;
}

} // namespace

std::vector<VictimResult> run_victims(const Params &params, const Topology &topology,
                                      const RunOptions &options)
{
    std::vector<VictimResult> results;
    std::vector<uint64_t> alone, beside; // by node: each is the target of one flow at most
    for (bool is_managed : {false, true}) {
        results.push_back(run_victims_once(params, topology, options, is_managed, false, alone));
        double before = results.back().victims;
        results.push_back(run_victims_once(params, topology, options, is_managed, true, beside));
        VictimResult &hot = results.back();
        hot.share = before > 0 ? hot.victims / before : 0;
        for (unsigned n = 0; n < topology.nodes(); n++)
            if (alone[n])
                hot.least_share = std::min(hot.least_share, static_cast<double>(beside[n]) /
                                                                static_cast<double>(alone[n]));
    }
    return results;
}

std::vector<Unloaded> run_unloaded(const Params &params, const Topology &topology)
{
    constexpr Cycle kLong = 100000;
    std::vector<Unloaded> results;
    for (unsigned hops = 1; hops <= 3; hops++) {
        unsigned to = 0;
        while (to < topology.nodes() && topology.distance(0, to) != hops)
            to++;
        if (to == topology.nodes())
            continue;
        for (unsigned bytes = 0; bytes <= params.line_bytes; bytes++) {
            auto message = make_single(0, to, bytes);
            Network<1> network(params, topology, *message);
            network.run(kLong);
            results.push_back({hops, bytes, network.counters().latency.max()});
        }
    }
    return results;
}

} // namespace tlm
