// SPDX-License-Identifier: Apache-2.0
//
// Results as a table, as JSON, as a heat map of the links.

#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "run.h"

namespace tlm
{

struct Setting {
    std::string workload; // or the trace's name
    unsigned bytes = 0;   // 0 for a trace
    uint64_t seed = 0;
    double clock_mhz = 0;
};

void print_table(std::ostream &out, const Topology &topology, const Setting &setting,
                 const std::vector<Result> &results);
void print_json(std::ostream &out, const Topology &topology, const Setting &setting,
                const Params &params, const CongestionParams &congestion,
                const std::vector<Result> &results);
void print_victims(std::ostream &out, const Topology &topology, const Setting &setting, double load,
                   const std::vector<VictimResult> &results);
void print_victims_json(std::ostream &out, const Topology &topology, const Setting &setting,
                        double load, const Params &params, const CongestionParams &congestion,
                        const std::vector<VictimResult> &results);
void print_heat_map(std::ostream &out, const Topology &topology, const Setting &setting,
                    const Result &result);
void print_unloaded(std::ostream &out, const std::vector<Unloaded> &results, double clock_mhz);
void print_unloaded_json(std::ostream &out, const std::vector<Unloaded> &results);

} // namespace tlm
