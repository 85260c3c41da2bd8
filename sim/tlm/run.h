// SPDX-License-Identifier: Apache-2.0
//
// One run of the model, and its results.

#pragma once

#include <string>
#include <vector>

#include "network.h"

namespace tlm
{

struct RunOptions {
    PatternOptions pattern;
    CongestionParams congestion;
    unsigned victims = 0, senders = 0;         // see VictimOptions
    unsigned from = kNoTarget, to = kNoTarget; // of the only victim
    unsigned pace = 1; // the hot node's host takes a word in every so many cycles
    Cycle stop = 0;    // in the middle of the warm-up it takes nothing for so many cycles
    Cycle warm_up = 5000;
    Cycle cycles = 20000; // measured, after the warm-up
};

struct Result {
    double offered = 0;  // words a host port and cycle; 0 for a trace
    double accepted = 0; // words of packets that arrived, a node and cycle
    uint64_t messages = 0, bytes = 0, hops = 0;
    Cycle cycles = 0;
    double mean = 0;
    Cycle median = 0, p99 = 0, max = 0;
    double mean_link = 0, max_link = 0; // share of cycles with a word on the wire
    std::vector<double> links;          // by node and link
    uint64_t all_hops = 0;              // of the whole run
    // Congestion management: packets that came marked, notices, cycles that throttles held packets.
    uint64_t marked = 0, notices = 0, held = 0;
    double seconds = 0; // of a processor
};

Result run_pattern(const Params &params, const Topology &topology, const RunOptions &options);
// Runs until everything has arrived. Throws std::logic_error if something does not arrive.
Result run_trace(const Params &params, const Topology &topology, Traffic &trace,
                 const CongestionParams &congestion);

// Victims of a hot node: one of the four runs with and without it, managed and not.
struct VictimResult {
    bool is_managed = false, is_hot = false;
    unsigned flows = 0;
    double victims = 0; // words of packets that arrived, a victim and cycle
    double hot = 0;     // words that the hot node got, a cycle
    // With the hot spot: the share of their rate without it that the victims have kept, all
    // together and the one that has kept least.
    double share = 1, least_share = 1;
    uint64_t marked = 0, notices = 0;
    uint64_t messages = 0; // of the whole run; all arrived
};
// Throws std::logic_error if something does not arrive.
std::vector<VictimResult> run_victims(const Params &params, const Topology &topology,
                                      const RunOptions &options);

struct Unloaded {
    unsigned hops, bytes;
    Cycle cycles;
};
// Measures messages that are alone in the network: of 0 bytes to a line, from node 0 to the first
// node at each of the distances 1 to 3 that there are.
std::vector<Unloaded> run_unloaded(const Params &params, const Topology &topology);

} // namespace tlm
