// SPDX-License-Identifier: Apache-2.0
//
// velo-tlm: latency and throughput of networks of up to 4,096 nodes. See README.md.

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include <CLI/CLI.hpp>

#include "report.h"

namespace
{

constexpr double kOverload = 2.0; // words a cycle that no host port takes

struct Options {
    std::string topology, workload = "uniform", trace, sweep, heat_map;
    tlm::RunOptions run;
    tlm::Params params;
    double clock_mhz = 125;
    bool json = false, routes = false, unloaded = false, saturation = false;
};

void declare_congestion(CLI::App &app, tlm::CongestionParams &congestion)
{
    app.add_flag("--congestion", congestion.enable, "manage congestion");
    app.add_flag("--mark-links", congestion.mark_links,
                 "links under pressure mark packets, too, not only nodes' own ports");
    app.add_option("--mark-cycles", congestion.mark_cycles,
                   "cycles of pressure until an output marks packets")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    app.add_option("--notice-cycles", congestion.notice_cycles,
                   "least cycles between a node's notices to the senders of marked packets")
        ->check(CLI::Range(0, 255))
        ->capture_default_str();
    app.add_option("--increase", congestion.increase, "of a sender's level, for each notice")
        ->check(CLI::Range(1, 15))
        ->capture_default_str();
    app.add_option("--raise-units", congestion.raise_units,
                   "sent to a node, at least, between two raises of its level")
        ->capture_default_str();
    app.add_option(
           "--recover-cycles", congestion.recover_cycles,
           "a level falls by one in 256 times as many cycles and one more, a high one more slowly")
        ->check(CLI::Range(0, 255))
        ->capture_default_str();
}

void declare(CLI::App &app, Options &options)
{
    app.add_option("topology", options.topology,
                   "torus:8x8x16, mesh:8x8, ring:64, hypercube:DIMENSIONS or full:7")
        ->required();
    app.add_option("--workload", options.workload,
                   "uniform, neighbour, transpose, complement, hotspot, alltoall or victim: a few "
                   "flows at --load, alone and while all other nodes send to the hot node, each "
                   "without and with congestion management")
        ->capture_default_str();
    tlm::PatternOptions &pattern = options.run.pattern;
    app.add_option("--load", pattern.load, "words offered to a host port in a cycle")
        ->capture_default_str();
    app.add_option("--bytes", pattern.bytes, "payload of a message")->capture_default_str();
    app.add_option("--hot-node", pattern.hot_node, "hotspot, victim: which node")
        ->capture_default_str();
    app.add_option("--hot-share", pattern.hot_share, "hotspot: share of the messages that go there")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    app.add_option("--victims", options.run.victims, "victim: how many flows; 0: one for 16 nodes")
        ->capture_default_str();
    app.add_option("--from", options.run.from, "victim: source of the only flow; needs --to");
    app.add_option("--to", options.run.to, "victim: target of the only flow; needs --from");
    app.add_option("--senders", options.run.senders,
                   "victim: so many nodes send to the hot node, from --from on; 0: all");
    app.add_option("--pace", options.run.pace,
                   "victim: the hot node's host takes a word in every so many cycles")
        ->check(CLI::Range(1, 255))
        ->capture_default_str();
    app.add_option("--stop", options.run.stop,
                   "victim: in the middle of the warm-up it takes nothing for so many cycles")
        ->capture_default_str();
    app.add_option("--seed", pattern.seed, "of random numbers")->capture_default_str();
    app.add_option("--warm-up", options.run.warm_up, "cycles before the measurement")
        ->capture_default_str();
    app.add_option("--cycles", options.run.cycles, "cycles measured")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--clock-mhz", options.clock_mhz, "clock of the nodes")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--cable-cycles", options.params.cable, "delay of a cable, PHYs included")
        ->check(CLI::Range(0, 10000))
        ->capture_default_str();
    app.add_option("--sweep", options.sweep, "FROM:TO:STEP, loads; ends with saturation");
    app.add_option("--trace", options.trace, "file of lines: time_ps source target bytes");
    app.add_option("--heatmap", options.heat_map, "write the use of every link to this file, JSON");
    app.add_flag("--saturation", options.saturation, "offer more than host ports take");
    app.add_flag("--unloaded", options.unloaded, "latency of messages that are alone");
    app.add_flag("--routes", options.routes, "print cables and routes as cluster/routing.py");
    declare_congestion(app, options.run.congestion);
    app.add_flag("--json", options.json, "print JSON");
}

std::vector<double> loads(const Options &options)
{
    if (options.saturation)
        return {kOverload};
    if (options.sweep.empty())
        return {options.run.pattern.load};
    double from = 0, to = 0, step = 0;
    char colon = 0, other = 0, rest = 0;
    std::istringstream text(options.sweep);
    if (!(text >> from >> colon >> to >> other >> step) || colon != ':' || other != ':' ||
        text >> rest || from <= 0 || step <= 0 || to < from || (to - from) / step > 1000)
        throw std::invalid_argument("--sweep is FROM:TO:STEP, such as 0.1:0.9:0.1");
    std::vector<double> all;
    for (int i = 0; from + i * step <= to + step / 1000; i++)
        all.push_back(from + i * step);
    all.push_back(kOverload);
    return all;
}

std::vector<tlm::Result> simulate(const Options &options, const tlm::Topology &topology)
{
    std::vector<tlm::Result> results;
    if (!options.trace.empty()) {
        std::ifstream file(options.trace);
        if (!file)
            throw std::runtime_error("cannot read " + options.trace);
        auto trace = tlm::read_trace(file, topology.nodes(), options.clock_mhz);
        results.push_back(tlm::run_trace(options.params, topology, *trace, options.run.congestion));
        return results;
    }
    tlm::RunOptions run = options.run;
    run.pattern.pattern = tlm::read_pattern(options.workload);
    for (double load : loads(options)) {
        run.pattern.load = load;
        results.push_back(tlm::run_pattern(options.params, topology, run));
    }
    return results;
}

void work_victims(const Options &options, const tlm::Topology &topology,
                  const tlm::Setting &setting)
{
    if (options.saturation || !options.sweep.empty() || !options.heat_map.empty())
        throw std::invalid_argument("the workload victim has one --load, and no --heatmap");
    auto results = tlm::run_victims(options.params, topology, options.run);
    double load = options.run.pattern.load;
    if (options.json)
        tlm::print_victims_json(std::cout, topology, setting, load, options.params,
                                options.run.congestion, results);
    else
        tlm::print_victims(std::cout, topology, setting, load, results);
}

void work(const Options &options)
{
    tlm::Topology topology(options.topology);
    if (options.routes)
        return topology.print(std::cout);
    if (options.unloaded) {
        auto results = tlm::run_unloaded(options.params, topology);
        return options.json ? tlm::print_unloaded_json(std::cout, results)
                            : tlm::print_unloaded(std::cout, results, options.clock_mhz);
    }
    tlm::Setting setting{options.workload, options.run.pattern.bytes, options.run.pattern.seed,
                         options.clock_mhz};
    if (!options.trace.empty())
        setting = {options.trace, 0, 0, options.clock_mhz};
    if (options.trace.empty() && options.workload == "victim")
        return work_victims(options, topology, setting);
    auto results = simulate(options, topology);
    if (options.json)
        tlm::print_json(std::cout, topology, setting, options.params, options.run.congestion,
                        results);
    else
        tlm::print_table(std::cout, topology, setting, results);
    if (!options.heat_map.empty()) {
        std::ofstream file(options.heat_map);
        tlm::print_heat_map(file, topology, setting, results.back());
        if (!file.flush())
            throw std::runtime_error("cannot write " + options.heat_map);
    }
}

} // namespace

int main(int argc, char **argv)
try {
    CLI::App app("Latency and throughput of VELO networks of up to 4,096 nodes, as transactions.");
    Options options;
    declare(app, options);
    CLI11_PARSE(app, argc, argv);
    work(options);
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "velo-tlm: %s\n", error.what());
    return 1;
}
