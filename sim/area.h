// SPDX-License-Identifier: Apache-2.0
//
// The file that processes map (spec/sim_channel.h): made whole before it has its name, removed at
// the end; and the two futexes in it.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../spec/sim_channel.h"
#include "host_model.h"

namespace sim
{

// How much there is of what the file holds.
struct AreaSize {
    unsigned nodes = 0, boards = 0, channels = SIM_CHANNELS_DEFAULT;
};

class Area
{
  public:
    // Throws std::runtime_error, with the figure, if there is no room for it, or if another
    // simulator has a file of that name.
    Area(const std::string &path, const AreaSize &size, const HostModel &host);
    ~Area();
    Area(const Area &) = delete;
    Area &operator=(const Area &) = delete;

    const std::string &path() const { return path_; }
    sim_channel &channel(unsigned number) { return channels_[number]; }
    // Channels that were ever claimed are before it.
    unsigned claimed_end() const;
    // How often a channel was claimed.
    uint32_t claims() const;
    uint8_t *memory() { return base_ + head_->memory_at; }
    uint8_t *board_memory() { return base_ + head_->boards_at; }

    uint32_t turn(unsigned channel) const;
    // Give the turn away and wake the thread that waits for it.
    void give_turn(unsigned channel, sim_turn turn);
    uint32_t calls() const;
    // Wait until `calls` is no longer `seen`, a signal comes or the time is over.
    void wait_for_call(uint32_t seen, uint64_t timeout_us) const;
    // End that wait, as a call does.
    void ring() const;
    void show_now(uint64_t now_ps);
    // Has every rank of the job begun, or has it no ranks?
    bool all_begun() const;
    // Something makes the run depend on real time, see enum sim_cause. `rank`: SIM_NEVER: of none.
    void report(sim_cause cause, uint64_t rank, const std::string &what);
    // The causes that simulator and ranks have reported, as sentences; without any the run
    // repeats itself.
    std::vector<std::string> causes() const;
    // The simulator will not answer any more: wake all threads that wait. The file has no name from
    // now on.
    void end();

  private:
    std::string path_;
    int file_ = -1;
    uint64_t bytes_ = 0;
    uint8_t *base_ = nullptr;
    sim_area *head_ = nullptr;
    sim_channel *channels_ = nullptr;

    void claim_name(const std::string &temporary);
    void fill(const AreaSize &size, const HostModel &host);
};

// The length of the file. Memory is taken as it is used.
uint64_t area_bytes(const AreaSize &size);

} // namespace sim
