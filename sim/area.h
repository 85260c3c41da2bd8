// SPDX-License-Identifier: Apache-2.0
//
// The file that processes map (spec/sim_channel.h): made whole before it has its name, removed at
// the end; and the two futexes in it.

#pragma once

#include <cstdint>
#include <string>

#include "../spec/sim_channel.h"
#include "host_model.h"

namespace sim
{

class Area
{
  public:
    // Throws std::runtime_error, with the figure, if there is no room for it, or if another
    // simulator has a file of that name.
    Area(const std::string &path, unsigned nodes, unsigned boards, const HostModel &host);
    ~Area();
    Area(const Area &) = delete;
    Area &operator=(const Area &) = delete;

    const std::string &path() const { return path_; }
    sim_channel &channel(unsigned number) { return channels_[number]; }
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
    void fill(unsigned nodes, unsigned boards, const HostModel &host);
};

// What a cluster of that many nodes and boards needs in the file.
uint64_t area_bytes(unsigned nodes, unsigned boards);

} // namespace sim
