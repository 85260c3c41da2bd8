// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include "card/model.h"
#include "causes.h"
#include "fast/scope.h"

namespace sim
{

namespace
{

constexpr double kKhzPerMhz = 1000;
constexpr unsigned kBoardsMax = 16; // as many peers as a board knows
constexpr double kMhzOfBoards = 100;
constexpr const char *kBoardHost = "pc2003"; // rtl/dimmnet_board/host
constexpr double kComputeMax = 1e6;          // a factor, or nanoseconds

// The constants, by their names.
using HostOptions = std::vector<std::pair<std::string, const CLI::Option *>>;

HostOptions add_host_model(CLI::App &app, HostModel &host)
{
    const std::string group = "Host model [ns]";
    HostOptions options;
    auto add = [&](const std::string &name, uint64_t &value, const char *what) {
        auto *option = app.add_option("--" + name + "-ns", value, what);
        options.emplace_back(name, option->capture_default_str()->group(group));
    };
    add("store", host.store_ns, "a posted write, from processor to node");
    add("dma", host.dma_ns, "a word that the node writes, until it is seen in memory");
    add("poll", host.poll_ns, "one look at a ring");
    add("read", host.read_ns, "a register read, there and back");
    add("clock", host.clock_ns, "one reading of a clock");
    add("copy", host.copy_ns, "copying one line");
    add("call", host.call_ns, "a call of the library");
    add("gap", host.gap_ns, "a pause after each line that is sent, for velo predict");
    return options;
}

// What the times are called if nobody says it: the default's name, and what was changed.
std::string host_text(const HostOptions &options)
{
    std::string text = kHostName;
    const char *before = " with ";
    for (const auto &[name, option] : options) {
        if (option->count() == 0)
            continue;
        text += before + name + "=" + option->as<std::string>();
        before = ",";
    }
    return text;
}

// `free`, `call:NS`, `measured` or `measured:FACTOR`.
void take_compute(const std::string &text, HostModel &host)
{
    auto colon = text.find(':');
    std::string kind = text.substr(0, colon);
    double value = 1;
    if (colon != std::string::npos && !CLI::detail::lexical_cast(text.substr(colon + 1), value))
        value = -1;
    bool is_known = text == "free" || kind == "measured" || (kind == "call" && kind != text);
    if (!is_known || !(value >= 0 && value <= kComputeMax))
        throw CLI::ValidationError("--compute",
                                   text + " is not free, call:NS or measured[:FACTOR]");
    if (kind == "call")
        host.compute_ns = static_cast<uint64_t>(std::llround(value));
    else if (kind == "measured")
        host.compute_permille = static_cast<uint64_t>(std::llround(value * 1000));
}

// `NODE=SOCKET`.
void take_cards(const std::vector<std::string> &texts, Options &options)
{
    for (const std::string &text : texts) {
        auto sign = text.find('=');
        unsigned node = 0;
        if (sign == std::string::npos || sign + 1 == text.size() ||
            !CLI::detail::lexical_cast(text.substr(0, sign), node))
            throw CLI::ValidationError("--card", text + " is not NODE=SOCKET");
        if (!options.cards.emplace(node, text.substr(sign + 1)).second)
            throw CLI::ValidationError("--card", "node " + text.substr(0, sign) + " has two");
        options.cluster.cards.insert(node);
    }
}

void add_wave(CLI::App &app, WaveOptions &wave, std::set<unsigned> &nodes)
{
    const std::string group = "Waveform (velo-sim-wave only)";
    auto *file = app.add_option("--wave", wave.file, "write signals into this file, as VCD")
                     ->check([](const std::string &name) {
                         return name.ends_with(".vcd") ? "" : name + ": it is written as a .vcd";
                     })
                     ->group(group);
    auto *from = app.add_option("--wave-from-us", wave.from_us, "from this virtual time on [us]")
                     ->check(CLI::Range(0.0, 1e9))
                     ->needs(file)
                     ->group(group);
    auto *end = app.add_option("--wave-to-us", wave.end_us, "to this virtual time [us]")
                    ->check(CLI::Range(0.0, 1e9))
                    ->needs(from)
                    ->group(group);
    app.add_option("--wave-nodes", nodes, "of these nodes only: 0,1")
        ->delimiter(',')
        ->allow_extra_args(false) // The command may come next.
        ->needs(file)
        ->group(group);
    file->needs(end);
}

void add_tables(CLI::App &app)
{
    app.add_flag_callback(
        "--models",
        [] {
            std::cout << scope_table();
            throw CLI::Success();
        },
        "print what the fast model has and lacks, and end");
    app.add_flag_callback(
        "--causes",
        [] {
            std::cout << cause_table();
            throw CLI::Success();
        },
        "print why a run may not repeat itself, and end");
}

void add_cluster(CLI::App &app, Options &options)
{
    app.add_option("--topology-file", options.topology_file,
                   "cables and routes, as cluster/routing.py prints them")
        ->required();
    app.add_option("--area", options.area_file,
                   "the shared file; it is there while the command runs")
        ->capture_default_str();
    app.add_option("--model", options.model,
                   "of the hardware: rtl evaluates it to the cycle, fast follows transactions and "
                   "refuses what it lacks (--models)")
        ->capture_default_str()
        ->check(CLI::IsMember({"rtl", "fast"}));
}

void add_cables(CLI::App &app, ClusterOptions &cluster)
{
    app.add_option("--seed", cluster.seed, "of all random numbers")->capture_default_str();
    app.add_option("--error-rate", cluster.error_rate, "of each bit on a cable")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 0.1));
    app.add_option("--cable-cycles", cluster.cable_cycles, "delay of each cable, PHYs included")
        ->capture_default_str()
        ->check(CLI::Range(0U, 100000U));
}

void add_sizes(CLI::App &app, Options &options)
{
    app.add_option("--boards", options.boards,
                   "boards of DIMMnet-2, each in a PC: two on a cable, more at a switch")
        ->capture_default_str()
        ->check(CLI::Range(0U, kBoardsMax));
    app.add_option("--threads-max", options.threads_max,
                   "threads and processes of all ranks together, at most")
        ->capture_default_str()
        ->check(CLI::Range(SIM_CHANNELS_MIN, SIM_CHANNELS_MAX));
}

void add_files(CLI::App &app, Options &options)
{
    app.add_option("--result", options.result_file, "write the figures into this file, as JSON");
    app.add_option("--record", options.record_file,
                   "record messages and what links carry in this file; `velo trace` reads it");
    app.add_option("--capture", options.capture_file,
                   "write all frames of all cables into this file, for Wireshark");
}

// Throws CLI::ParseError if options contradict each other.
void check_together(const Options &options, double clock_mhz, bool is_width_given)
{
    if (options.command.empty() && options.cards.empty())
        throw CLI::RequiredError("command");
    if (!options.cards.empty() && is_width_given &&
        options.cluster.shape.width_bits != card::kCardWidthBits)
        throw CLI::ValidationError("--width", "a cluster with cards has 64 bits");
    if (!options.wave.file.empty() && options.wave.end_us <= options.wave.from_us)
        throw CLI::ValidationError("--wave-to-us", "has to be after --wave-from-us");
    if (options.boards != 0 && clock_mhz != kMhzOfBoards)
        throw CLI::ValidationError("--clock-mhz", "boards have 100 MHz");
}

} // namespace

Options parse_options(int argc, char **argv)
{
    Options options;
    options.area_file = "/dev/shm/velo-sim." + std::to_string(getpid());
    double clock_mhz = 100;
    std::string links = "auto", compute = "free";
    std::vector<std::string> cards;
    bool no_skip = false, no_pin = false;
    ClusterOptions &cluster = options.cluster;

    CLI::App app("Run a command on a simulated cluster of velo nodes, in virtual time.",
                 "velo-sim");
    app.footer("What the command and the library say to each other: spec/sim_channel.h.");
    add_cluster(app, options);
    add_tables(app);
    app.add_option("--clock-mhz", clock_mhz, "clock of all nodes")
        ->capture_default_str()
        ->check(CLI::Range(0.001, 100000.0));
    app.add_option("--links", links, "links of each node: 1, 3, 6 or auto")
        ->capture_default_str()
        ->check(CLI::IsMember({"auto", "1", "3", "6"}));
    auto *width = app.add_option("--width", cluster.shape.width_bits,
                                 "bits of each node's data path: 32, 64 or 128; with cards 64")
                      ->capture_default_str()
                      ->check(CLI::IsMember({32, 64, 128}));
    add_cables(app, cluster);
    add_sizes(app, options);
    app.add_option("--card", cards,
                   "NODE=SOCKET: the node is a card for a guest, at a socket of vfio-user; may be "
                   "repeated")
        ->allow_extra_args(false); // The command may come next.
    app.add_option("--split-one-in", cluster.split_one_in,
                   "one in so many stores to VELO comes to its node in parts; 0: none")
        ->capture_default_str();
    add_files(app, options);
    app.add_flag(
        "--progress", options.progress,
        "show how far it is, on standard error: every second on a terminal, else every 30");
    app.add_flag("--no-pin", no_pin, "let the kernel choose the processor");
    app.add_flag("--no-skip", no_skip,
                 "evaluate nodes also while they rest, and check that they do (slow)");
    HostOptions host = add_host_model(app, cluster.host);
    app.add_option("--host", options.host,
                   "what these times are called in the result: `velo sim --host` sets both");
    app.add_option("--compute", compute,
                   "what computing between two calls costs: nothing (free), a constant (call:NS), "
                   "or its processor time (measured:FACTOR; such runs do not repeat themselves)")
        ->capture_default_str();
    add_wave(app, options.wave, cluster.shown);
    app.add_option("command", options.command,
                   "after --: what to run; with cards there may be none, and a signal ends it");
    try {
        app.parse(argc, argv);
        take_compute(compute, cluster.host);
        take_cards(cards, options);
        check_together(options, clock_mhz, width->count() != 0);
    } catch (const CLI::ParseError &error) {
        std::exit(app.exit(error));
    }
    if (options.boards != 0)
        options.host = kBoardHost;
    else if (options.host.empty())
        options.host = host_text(host);
    cluster.clock_khz = static_cast<uint64_t>(std::llround(clock_mhz * kKhzPerMhz));
    cluster.shape.links = links == "auto" ? 0 : static_cast<unsigned>(std::stoul(links));
    if (!cards.empty())
        cluster.shape.width_bits = card::kCardWidthBits;
    cluster.skip = !no_skip;
    options.pin = !no_pin;
    return options;
}

} // namespace sim
