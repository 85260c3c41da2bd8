// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <cstdarg>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace tlm
{

namespace
{

using Json = nlohmann::ordered_json;

[[gnu::format(printf, 1, 2)]] std::string text(const char *format, ...)
{
    char line[256];
    va_list values;
    va_start(values, format);
    std::vsnprintf(line, sizeof line, format, values);
    va_end(values);
    return line;
}

double nanoseconds(double cycles, double clock_mhz) { return cycles * 1e3 / clock_mhz; }

double megabytes_a_second(const Result &result, double clock_mhz)
{
    return static_cast<double>(result.bytes) / static_cast<double>(result.cycles) * clock_mhz;
}

double messages_a_second(const Result &result, double clock_mhz)
{
    return static_cast<double>(result.messages) / static_cast<double>(result.cycles) * clock_mhz *
           1e6;
}

double hops_a_second(const Result &result)
{
    return result.seconds > 0 ? static_cast<double>(result.all_hops) / result.seconds : 0;
}

Json latency_of(const Result &result, double clock_mhz)
{
    auto both = [&](double cycles) {
        return Json{{"cycles", cycles}, {"ns", nanoseconds(cycles, clock_mhz)}};
    };
    return {{"mean", both(result.mean)},
            {"median", both(static_cast<double>(result.median))},
            {"p99", both(static_cast<double>(result.p99))},
            {"max", both(static_cast<double>(result.max))}};
}

Json params_of(const Params &params)
{
    return {{"word_bytes", params.word_bytes},
            {"mtu_bytes", params.mtu_bytes},
            {"unit_words", params.unit_words},
            {"buffer_units", params.buffer_units},
            {"need_units", params.need_units(params.sizes - 1)},
            {"status_words", params.status_words},
            {"frame_extra", params.frame_extra},
            {"inject", params.inject},
            {"to_request", params.to_request},
            {"to_output", params.to_output},
            {"frame_through", params.frame_through},
            {"cable", params.cable},
            {"complete", params.complete}};
}

Json congestion_of(const CongestionParams &params)
{
    return {{"mark_links", params.mark_links},       {"mark_cycles", params.mark_cycles},
            {"notice_cycles", params.notice_cycles}, {"raise_units", params.raise_units},
            {"increase", params.increase},           {"recover_cycles", params.recover_cycles}};
}

Json head_of(const Topology &topology, const Setting &setting)
{
    Json json{{"topology", topology.name()},
              {"nodes", topology.nodes()},
              {"links_a_node", topology.links()},
              {"workload", setting.workload}};
    if (setting.bytes || setting.seed) {
        json["bytes"] = setting.bytes;
        json["seed"] = setting.seed;
    }
    json["clock_mhz"] = setting.clock_mhz;
    return json;
}

} // namespace

void print_table(std::ostream &out, const Topology &topology, const Setting &setting,
                 const std::vector<Result> &results)
{
    out << text("%s, %u nodes, %s", topology.name().c_str(), topology.nodes(),
                setting.workload.c_str());
    if (setting.seed)
        out << text(", %u bytes, seed %llu", setting.bytes,
                    static_cast<unsigned long long>(setting.seed));
    out << text(", %g MHz\n", setting.clock_mhz);
    if (topology.links() > kHardwareLinks)
        out << text("A node has %u links here; the hardware has %u.\n", topology.links(),
                    kHardwareLinks);
    out << "               latency, cycles                    ns       link use       payload\n"
           "offered accepted     mean  median     p99     max      mean   mean   max     "
           "MB/s a node      hops/s\n";
    for (const Result &r : results) {
        out << (r.offered > 0 ? text("%7.3f", r.offered) : "  trace");
        out << text(" %8.4f %8.1f %7llu %7llu %7llu %9.1f %6.3f %5.3f %15.2f %11.0f\n", r.accepted,
                    r.mean, static_cast<unsigned long long>(r.median),
                    static_cast<unsigned long long>(r.p99), static_cast<unsigned long long>(r.max),
                    nanoseconds(r.mean, setting.clock_mhz), r.mean_link, r.max_link,
                    megabytes_a_second(r, setting.clock_mhz) / topology.nodes(), hops_a_second(r));
    }
}

void print_json(std::ostream &out, const Topology &topology, const Setting &setting,
                const Params &params, const CongestionParams &congestion,
                const std::vector<Result> &results)
{
    Json json = head_of(topology, setting);
    json["params"] = params_of(params);
    if (congestion.enable)
        json["congestion"] = congestion_of(congestion);
    json["results"] = Json::array();
    for (const Result &r : results) {
        Json one;
        if (r.offered > 0)
            one["offered"] = r.offered;
        one["accepted"] = r.accepted;
        one["cycles"] = r.cycles;
        one["messages"] = r.messages;
        one["hops"] = r.hops;
        one["latency"] = latency_of(r, setting.clock_mhz);
        one["messages_per_second"] = messages_a_second(r, setting.clock_mhz);
        one["payload_bytes_per_second"] = megabytes_a_second(r, setting.clock_mhz) * 1e6;
        one["link_use"] = {{"mean", r.mean_link}, {"max", r.max_link}};
        if (congestion.enable)
            one["congestion"] = {
                {"marked", r.marked}, {"notices", r.notices}, {"held_cycles", r.held}};
        one["simulation"] = {{"seconds", r.seconds}, {"hops_per_second", hops_a_second(r)}};
        json["results"].push_back(one);
    }
    out << json.dump(2) << '\n';
}

// A share is of the rate without the hot spot; the least is that of one flow.
void print_victims(std::ostream &out, const Topology &topology, const Setting &setting, double load,
                   const std::vector<VictimResult> &results)
{
    out << text("%s, %u nodes, %s, %u bytes, seed %llu: %u flows at load %g\n",
                topology.name().c_str(), topology.nodes(), setting.workload.c_str(), setting.bytes,
                static_cast<unsigned long long>(setting.seed), results[0].flows, load);
    out << "                       words a victim and cycle     share     least    hot node's "
           "words    "
           "marked   notices\n";
    for (const VictimResult &r : results) {
        out << text("%-9s %-12s %24.4f ", r.is_managed ? "managed" : "unmanaged",
                    r.is_hot ? "hot spot" : "no hot spot", r.victims);
        out << (r.is_hot ? text("%7.1f %% %7.1f %%", 100 * r.share, 100 * r.least_share)
                         : std::string(19, ' '));
        out << text(" %19.4f %9llu %9llu\n", r.hot, static_cast<unsigned long long>(r.marked),
                    static_cast<unsigned long long>(r.notices));
    }
}

void print_victims_json(std::ostream &out, const Topology &topology, const Setting &setting,
                        double load, const Params &params, const CongestionParams &congestion,
                        const std::vector<VictimResult> &results)
{
    Json json = head_of(topology, setting);
    json["params"] = params_of(params);
    json["congestion"] = congestion_of(congestion);
    json["flows"] = results[0].flows;
    json["load"] = load;
    json["results"] = Json::array();
    for (const VictimResult &r : results) {
        Json one{{"managed", r.is_managed}, {"hot_spot", r.is_hot}, {"victims", r.victims}};
        if (r.is_hot) {
            one["share"] = r.share;
            one["least_share"] = r.least_share;
        }
        one["hot"] = r.hot;
        one["marked"] = r.marked;
        one["notices"] = r.notices;
        one["messages"] = r.messages;
        json["results"].push_back(one);
    }
    out << json.dump(2) << '\n';
}

void print_heat_map(std::ostream &out, const Topology &topology, const Setting &setting,
                    const Result &result)
{
    Json json = head_of(topology, setting);
    json["sizes"] = topology.sizes();
    json["offered"] = result.offered;
    json["links"] = Json::array();
    for (unsigned n = 0; n < topology.nodes(); n++)
        for (unsigned l = 0; l < topology.links(); l++)
            if (topology.neighbour(n, l) != kNoNode)
                json["links"].push_back({{"node", n},
                                         {"link", l},
                                         {"to", topology.neighbour(n, l)},
                                         {"use", result.links[n * topology.links() + l]}});
    out << json.dump(1) << '\n';
}

void print_unloaded(std::ostream &out, const std::vector<Unloaded> &results, double clock_mhz)
{
    out << "hops bytes  cycles        ns\n";
    for (const Unloaded &r : results)
        out << text("%4u %5u %7llu %9.1f\n", r.hops, r.bytes,
                    static_cast<unsigned long long>(r.cycles),
                    nanoseconds(static_cast<double>(r.cycles), clock_mhz));
}

void print_unloaded_json(std::ostream &out, const std::vector<Unloaded> &results)
{
    Json json = Json::array();
    for (const Unloaded &r : results)
        json.push_back({{"hops", r.hops}, {"bytes", r.bytes}, {"cycles", r.cycles}});
    out << json.dump() << '\n';
}

} // namespace tlm
