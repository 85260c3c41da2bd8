// SPDX-License-Identifier: Apache-2.0
#include "figures.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include <unistd.h>

namespace sim
{

namespace
{

using namespace std::chrono_literals;

// On a terminal one line is written over again and again. In a file each line stays, so lines are
// rarer there.
constexpr auto kProgressEvery = 1s, kProgressLineEvery = 30s;

} // namespace

void print_summary(const Figures &figures)
{
    std::fprintf(stderr,
                 "velo-sim: virtual time %.3f us, %" PRIu64 " messages, %" PRIu64
                 " calls, %.3g node-cycles (%.1f %% skipped) in %.1f s, %.4g/s, hash %016" PRIx64
                 "\n",
                 figures.now_us(), figures.totals.arrivals.messages, figures.totals.calls,
                 static_cast<double>(figures.node_cycles), figures.skipped_percent(),
                 figures.seconds, figures.speed(), figures.totals.arrivals.hash);
    const NetTotals &net = figures.totals.net;
    if (figures.boards)
        std::fprintf(stderr,
                     "velo-sim: boards: %" PRIu64 " packets, %" PRIu64 " to nowhere, %.3g cycles, "
                     "%.4g/s, hash %016" PRIx64 "\n",
                     net.packets, net.lost, static_cast<double>(figures.totals.board_cycles),
                     figures.seconds > 0
                         ? static_cast<double>(figures.totals.board_cycles) / figures.seconds
                         : 0,
                     net.hash);
}

void print_cards(const card::CardTotals &totals)
{
    std::fprintf(stderr,
                 "velo-sim: cards: %" PRIu64 " stores to windows in %" PRIu64 " packets, %" PRIu64
                 " loads, %" PRIu64 " interrupts, %" PRIu64 " resets, %" PRIu64
                 " accesses to memory that is not there\n",
                 totals.stores, totals.packets, totals.loads, totals.interrupts, totals.resets,
                 totals.lost);
}

void print_end(const Options &options, const Figures &figures)
{
    std::string why;
    for (const std::string &cause : figures.causes)
        why += (why.empty() ? ", because " : "; ") + cause;
    std::fprintf(stderr, "velo-sim: host %s; repeatable: %s%s\n", options.host.c_str(),
                 why.empty() ? "yes" : "no", why.c_str());
}

void write_result(const Options &options, const Figures &figures, int exit_code)
{
    char hash[17], board_hash[17];
    std::snprintf(hash, sizeof hash, "%016" PRIx64, figures.totals.arrivals.hash);
    std::snprintf(board_hash, sizeof board_hash, "%016" PRIx64, figures.totals.net.hash);
    const HostModel &host = options.cluster.host;
    nlohmann::ordered_json result = {
        {"command", options.command},
        {"exit_code", exit_code},
        {"model", options.model},
        {"nodes", figures.nodes},
        {"virtual_time_ps", figures.totals.now_ps},
        {"messages", figures.totals.arrivals.messages},
        {"notifications", figures.totals.arrivals.notifications},
        {"lost_accesses", figures.totals.lost_accesses},
        {"computed_ps", figures.totals.computed_ps},
        {"calls", figures.totals.calls},
        {"hash", hash},
        {"repeatable", figures.causes.empty()},
        {"because", figures.causes},
        {"boards", figures.boards},
        {"board_packets", figures.totals.net.packets},
        {"board_packets_lost", figures.totals.net.lost},
        {"board_cycles", figures.totals.board_cycles},
        {"board_hash", board_hash},
        {"cycles", figures.cycles},
        {"node_cycles", figures.node_cycles},
        {"evaluated_node_cycles", figures.evaluated},
        {"bad_words", figures.bad_words},
        {"seconds", figures.seconds},
        {"node_cycles_per_second", figures.speed()},
        {"clock_khz", options.cluster.clock_khz},
        {"cable_cycles", options.cluster.cable_cycles},
        {"error_rate", options.cluster.error_rate},
        {"seed", options.cluster.seed},
        {"host", options.host},
        {"host_ns",
         {{"store", host.store_ns},
          {"dma", host.dma_ns},
          {"read", host.read_ns},
          {"poll", host.poll_ns},
          {"clock", host.clock_ns},
          {"copy", host.copy_ns},
          {"call", host.call_ns},
          {"gap", host.gap_ns},
          {"compute", host.compute_ns}}},
        {"compute_permille", host.compute_permille},
    };
    const card::CardTotals &cards = figures.cards;
    if (!options.cards.empty())
        result["cards"] = {{"stores", cards.stores}, {"packets", cards.packets},
                           {"loads", cards.loads},   {"interrupts", cards.interrupts},
                           {"resets", cards.resets}, {"lost", cards.lost}};
    std::ofstream file(options.result_file);
    file << result.dump(2) << "\n";
    if (!file)
        throw std::runtime_error(options.result_file + ": cannot be written");
}

// ----- progress

Progress::Progress(bool wanted)
    : wanted_(wanted), terminal_(isatty(STDERR_FILENO) != 0),
      every_(terminal_ ? kProgressEvery : kProgressLineEvery)
{
}

bool Progress::due() const { return wanted_ && RealClock::now() - shown_ > every_; }

void Progress::show(const Figures &figures)
{
    Figures last = figures.since(figures_);
    std::fprintf(stderr,
                 "%svelo-sim: at %.3f us, %" PRIu64
                 " messages, %.4g node-cycles/s, %.1f %% skipped%s",
                 clear(), figures.now_us(), figures.totals.arrivals.messages, last.speed(),
                 last.skipped_percent(), terminal_ ? "" : "\n");
    figures_ = figures;
    shown_ = RealClock::now();
    any_ = true;
}

void Progress::end() const
{
    if (any_)
        std::fputs(clear(), stderr);
}

} // namespace sim
