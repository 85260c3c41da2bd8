// SPDX-License-Identifier: Apache-2.0
//
// Counts what has come for each process, and what the process will see soon; and hashes all that
// came.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "host_side.h"

namespace sim
{

struct ArrivalTotals {
    uint64_t messages = 0, notifications = 0;
    uint64_t hash = 0xCBF29CE484222325ULL; // FNV-1a
};

class Inboxes
{
  public:
    void add_process(int pid) { processes_[pid]; }
    void remove_process(int pid) { processes_.erase(pid); }
    // The processes that are dead.
    std::vector<int> dead() const;

    // Count an arrival at a node, of any process or none.
    void count(const Arrival &arrival);
    // A process will see something at that time. Times come in ascending order.
    void expect(int pid, uint64_t time_ps) { processes_[pid].coming_ps.push_back(time_ps); }
    // How much a process had seen at its last look.
    uint64_t seen(int pid) { return processes_[pid].seen; }
    // The process looks at that time. Returns how much it sees.
    uint64_t look(int pid, uint64_t time_ps);
    // The time when it will see more; SIM_NEVER: nothing is known to come.
    uint64_t next_ps(int pid);

    const ArrivalTotals &totals() const { return totals_; }

  private:
    struct Process {
        uint64_t seen = 0;
        std::deque<uint64_t> coming_ps; // the times of what is still to come
    };

    std::map<int, Process> processes_;
    ArrivalTotals totals_;
};

} // namespace sim
