// SPDX-License-Identifier: Apache-2.0
//
// The figures of a run: shown while it goes on, printed at its end, written into a file.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "options.h"
#include "schedule.h"

namespace sim
{

constexpr double kPsPerUs = 1e6;

struct Figures {
    double seconds = 0;
    uint64_t node_cycles = 0, evaluated = 0, bad_words = 0, cycles = 0;
    Totals totals;
    unsigned nodes = 0, boards = 0;
    card::CardTotals cards;
    std::vector<std::string> causes; // why the run need not repeat itself

    double now_us() const { return static_cast<double>(totals.now_ps) / kPsPerUs; }
    double speed() const { return seconds > 0 ? static_cast<double>(node_cycles) / seconds : 0; }
    double skipped_percent() const
    {
        auto all = static_cast<double>(node_cycles), done = static_cast<double>(evaluated);
        return all > 0 ? 100 * (all - done) / all : 0;
    }
    // The difference to an earlier look.
    Figures since(const Figures &then) const
    {
        Figures last = *this;
        last.seconds -= then.seconds;
        last.node_cycles -= then.node_cycles;
        last.evaluated -= then.evaluated;
        return last;
    }
};

void print_summary(const Figures &figures);
void print_cards(const card::CardTotals &totals);
// The last line of a run: on which hosts, and does it repeat itself?
void print_end(const Options &options, const Figures &figures);
// Writes JSON into options.result_file. Throws std::runtime_error if it cannot be written.
void write_result(const Options &options, const Figures &figures, int exit_code);

// Prints now and then how far a run is. Speed and share of skipped cycles are those since the last
// time.
class Progress
{
  public:
    explicit Progress(bool wanted);

    bool due() const;
    void show(const Figures &figures);
    // Removes the line from a terminal.
    void end() const;

  private:
    bool wanted_, terminal_, any_ = false;
    RealClock::duration every_;
    RealTime shown_ = RealClock::now();
    Figures figures_;

    const char *clear() const { return terminal_ ? "\r\033[K" : ""; }
};

} // namespace sim
