// SPDX-License-Identifier: Apache-2.0
//
// velo-sim: a simulated cluster, and a command that runs on it. See README.md.

#include <chrono>
#include <cinttypes>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>

#include <unistd.h>

#include "area.h"
#include "capture.h"
#include "card/cards.h"
#include "fast/hardware.h"
#include "fast/scope.h"
#include "figures.h"
#include "options.h"
#include "process.h"
#include "processor.h"
#include "record.h"
#include "rtl/cluster.h"
#include "schedule.h"

namespace
{

using RealClock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Of a job that cannot go on: as timeout has it. 3 is a damaged payload's (tools/velo/errors.py).
constexpr int kExitJobError = 124, kExitRefused = 1;
constexpr auto kGrace = 2s;              // from passing a signal on to SIGKILL
constexpr uint64_t kNodeBytes = 2 << 20; // of a model and its cables, at most

volatile std::sig_atomic_t signal_got = 0, child_changed = 0;

void on_signal(int number)
{
    if (number == SIGCHLD)
        child_changed = 1;
    else
        signal_got = number;
}

// Without SA_RESTART: a signal ends a wait.
void catch_signals()
{
    struct sigaction action = {};
    action.sa_handler = on_signal;
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
        sigaction(number, &action, nullptr);
}

void check_memory(unsigned nodes)
{
    std::ifstream file("/proc/meminfo");
    std::string name;
    uint64_t kib = 0, available_kib = UINT64_MAX;
    for (std::string unit; file >> name >> kib && std::getline(file, unit);)
        if (name == "MemAvailable:")
            available_kib = kib;
    uint64_t needed_kib = nodes * kNodeBytes >> 10;
    if (needed_kib > available_kib)
        throw std::runtime_error("a cluster of " + std::to_string(nodes) + " nodes needs " +
                                 std::to_string(needed_kib >> 10) + " MiB of memory, " +
                                 std::to_string(available_kib >> 10) + " MiB are available");
}

class Simulator
{
  public:
    explicit Simulator(const sim::Options &options)
        : options_(options), topology_(sim::read_topology(options.topology_file)),
          cluster_options_(options.cluster), progress_(options.progress)
    {
        nodes_ = static_cast<unsigned>(topology_.nodes.size());
        check_memory(nodes_);
        choose_shown(cluster_options_.shown);
    }

    int run()
    {
        sim::Area area(options_.area_file, {nodes_, options_.boards, options_.threads_max},
                       options_.cluster.host);
        std::unique_ptr<sim::Hardware> hardware = make_hardware(area.memory());
        hardware->boot();
        std::unique_ptr<sim::Recorder> recorder = record(*hardware);
        std::unique_ptr<sim::Capture> capture = begin_capture(*hardware);
        sim::Processor processor(options_.pin);
        sim::Boards boards(options_.boards, area.board_memory());
        sim::card::Cards cards(options_.cards, *hardware, cards_, options_.cluster.split_one_in,
                               options_.cluster.seed);
        sim::Schedule schedule(*hardware, boards, area, processor, cards);
        setenv("VELO_SIM", area.path().c_str(), 1);
        report_options(area);
        begin_ = RealClock::now();
        boot_node_cycles_ = hardware->node_cycles();
        boot_evaluated_ = hardware->evaluated_node_cycles();
        if (signal_got)
            return 128 + signal_got;
        int exit_code = options_.command.empty()
                            ? serve_cards(cards)
                            : serve_job(schedule, *hardware, cards, area, processor);
        progress_.end();
        if (recorder)
            recorder->finish(schedule.totals().now_ps);
        if (capture) {
            capture->finish();
            std::fprintf(stderr, "velo-sim: %s has %" PRIu64 " frames\n",
                         options_.capture_file.c_str(), capture->frames());
        }
        sim::Figures figures = measure(*hardware, schedule);
        sim::print_summary(figures);
        figures.cards = cards.totals();
        if (cards.any())
            sim::print_cards(figures.cards);
        if (figures.totals.calls == 0 && !options_.command.empty())
            std::fprintf(stderr,
                         "velo-sim: nobody used the cluster: all that the command did was in "
                         "real time\n");
        if (!options_.wave.file.empty())
            std::fprintf(stderr, "velo-sim: %s shows %" PRIu64 " cycles%s\n",
                         options_.wave.file.c_str(), rtl_->shown(),
                         rtl_->shown() ? "" : ": nothing ran in that time");
        if (figures.totals.lost_accesses)
            std::fprintf(stderr,
                         "velo-sim: %" PRIu64 " accesses of nodes to memory that is not there\n",
                         figures.totals.lost_accesses);
        figures.causes = area.causes();
        sim::print_end(options_, figures);
        if (!options_.result_file.empty())
            sim::write_result(options_, figures, exit_code);
        return exit_code;
    }

  private:
    const sim::Options &options_;
    sim::Topology topology_;
    unsigned nodes_ = 0;
    sim::ClusterOptions cluster_options_;
    sim::Progress progress_;
    RealClock::time_point begin_;
    uint64_t boot_node_cycles_ = 0, boot_evaluated_ = 0;
    // Of the RTL model.
    std::map<unsigned, sim::card::Function *> cards_;
    sim::Cluster *rtl_ = nullptr;

    std::unique_ptr<sim::Hardware> make_hardware(uint8_t *memory)
    {
        if (options_.model == "fast") {
            refuse_if_lacking();
            return std::make_unique<sim::FastHardware>(cluster_options_, topology_, memory);
        }
        auto cluster = std::make_unique<sim::Cluster>(cluster_options_, topology_, memory);
        show(*cluster);
        cards_ = cluster->cards();
        rtl_ = cluster.get();
        return cluster;
    }

    // What of the command line lets the run depend on real time.
    void report_options(sim::Area &area) const
    {
        if (options_.cluster.host.compute_permille)
            area.report(SIM_CAUSE_COMPUTING, SIM_NEVER, "measured");
        if (!options_.cards.empty())
            area.report(SIM_CAUSE_CARDS, SIM_NEVER, "");
    }

    // What the fast model lacks beside the hardware itself.
    void refuse_if_lacking() const
    {
        if (!options_.wave.file.empty())
            throw std::runtime_error(sim::why_refused(sim::Part::kWaveforms));
        if (!options_.record_file.empty())
            throw std::runtime_error(sim::why_refused(sim::Part::kRecordings));
        if (!options_.capture_file.empty())
            throw std::runtime_error(sim::why_refused(sim::Part::kCaptures));
        if (options_.boards != 0)
            throw std::runtime_error(sim::why_refused(sim::Part::kBoards));
    }

    void choose_shown(std::set<unsigned> &shown) const
    {
        if (shown.empty())
            for (unsigned n = 0; n < nodes_; n++)
                shown.insert(n);
        if (*shown.rbegin() >= nodes_)
            throw std::runtime_error("--wave-nodes: nodes end at " + std::to_string(nodes_ - 1));
    }

    // Begins a waveform, if one is wanted.
    void show(sim::Cluster &cluster) const
    {
        if (options_.wave.file.empty())
            return;
        std::unique_ptr<sim::Wave> wave = sim::make_wave();
        wave->open(options_.wave.file, cluster.model(*cluster_options_.shown.begin()));
        cluster.show(std::move(wave),
                     static_cast<uint64_t>(std::llround(options_.wave.from_us * sim::kPsPerUs)),
                     static_cast<uint64_t>(std::llround(options_.wave.end_us * sim::kPsPerUs)));
    }

    // Begins to capture frames, if that is wanted.
    std::unique_ptr<sim::Capture> begin_capture(const sim::Hardware &hardware) const
    {
        if (options_.capture_file.empty())
            return nullptr;
        std::string command;
        for (const std::string &word : options_.command)
            command += (command.empty() ? "" : " ") + word;
        auto capture =
            std::make_unique<sim::Capture>(options_.capture_file, topology_, command,
                                           hardware.clock(), options_.cluster.shape.width_bits);
        rtl_->set_capture(capture.get());
        return capture;
    }

    // Begins a recording, if one is wanted.
    std::unique_ptr<sim::Recorder> record(sim::Hardware &hardware) const
    {
        if (options_.record_file.empty())
            return nullptr;
        auto recorder = std::make_unique<sim::Recorder>(
            options_.record_file, topology_,
            std::filesystem::path(options_.topology_file).filename().string(), options_.command,
            hardware.clock(), options_.cluster.host, options_.cluster.cable_cycles,
            options_.cluster.shape.width_bits);
        hardware.set_recorder(recorder.get());
        return recorder;
    }

    // Until a signal comes, which is the way to end it.
    static int serve_cards(sim::card::Cards &cards)
    {
        cards.run([] { return signal_got != 0; });
        return 0;
    }

    int serve_job(sim::Schedule &schedule, const sim::Hardware &hardware, sim::card::Cards &cards,
                  sim::Area &area, const sim::Processor &processor)
    {
        sim::Job job(options_.command);
        processor.bring(0);
        if (cards.any())
            cards.watch([&area] { area.ring(); });
        int exit_code = serve(schedule, job, hardware, area);
        area.end();
        job.finish();
        return exit_code;
    }

    int serve(sim::Schedule &schedule, sim::Job &job, const sim::Hardware &hardware,
              sim::Area &area)
    {
        RealClock::time_point kill_at{};
        int passed = 0;
        try {
            for (;;) {
                if (child_changed) {
                    child_changed = 0;
                    if (job.ended())
                        return job.exit_code();
                }
                if (signal_got && !passed) {
                    passed = signal_got;
                    area.report(SIM_CAUSE_CUT, SIM_NEVER, "a signal");
                    job.signal(passed);
                    kill_at = RealClock::now() + kGrace;
                }
                if (passed && RealClock::now() > kill_at) {
                    job.signal(SIGKILL);
                    return 128 + passed;
                }
                if (progress_.due())
                    progress_.show(measure(hardware, schedule));
                if (!schedule.serve()) {
                    schedule.wait();
                    tell(schedule.take_note());
                }
            }
        } catch (const sim::JobError &error) {
            progress_.end();
            area.report(SIM_CAUSE_CUT, SIM_NEVER, "an error");
            std::fprintf(stderr, "velo-sim: %s\n", error.what());
            return kExitJobError;
        }
    }

    void tell(const std::string &note) const
    {
        if (note.empty())
            return;
        progress_.end();
        std::fprintf(stderr, "velo-sim: %s", note.c_str());
    }

    sim::Figures measure(const sim::Hardware &hardware, const sim::Schedule &schedule) const
    {
        sim::Figures figures;
        figures.seconds = std::chrono::duration<double>(RealClock::now() - begin_).count();
        figures.node_cycles = hardware.node_cycles() - boot_node_cycles_;
        figures.evaluated = hardware.evaluated_node_cycles() - boot_evaluated_;
        figures.bad_words = hardware.bad_words();
        figures.cycles = hardware.cycle();
        figures.totals = schedule.totals();
        figures.nodes = nodes_;
        figures.boards = options_.boards;
        return figures;
    }
};

} // namespace

int main(int argc, char **argv)
{
    sim::Options options = sim::parse_options(argc, argv);
    catch_signals();
    try {
        return Simulator(options).run();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "velo-sim: %s\n", error.what());
        return kExitRefused;
    }
}
