// SPDX-License-Identifier: Apache-2.0
//
// A node's registered pages: the driver's part of its table, and the memory behind them, which is
// that of processes.
//
// A page names an address of a process, not the memory behind it: if the process maps other memory
// there, the node reaches that. An IOMMU that walks the process's page tables does the same.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "../spec/sim_channel.h"

namespace sim
{

class Pages
{
  public:
    // `table`: SIM_PAGES words, all zero, which the node reads.
    explicit Pages(uint64_t *table) : table_(table), known_(SIM_PAGES) {}

    // Enters `pages` pages; `word` says what is permitted (layout registered_page, without a
    // frame). Returns the first one, or SIM_PAGES if there is no room.
    uint32_t enter(int pid, uint64_t address, uint64_t pages, uint64_t word);
    bool is_entered_by(int pid, uint32_t first) const;
    // The first pages of all that a process has entered.
    std::vector<uint32_t> entered_by(int pid) const;
    // The node is granted these pages no more. Returns those that it has looked up and may still
    // use until they are invalidated; then call forget().
    std::vector<uint32_t> withdraw(uint32_t first);
    void forget(uint32_t first) { entered_.erase(first); }

    // The node reads the entry at this offset of its table.
    void look_up(uint64_t offset_bytes);
    // For addresses from SIM_FRAMES_AT on. False: there is no memory.
    bool read(uint64_t address, void *to, size_t bytes) const;
    bool write(uint64_t address, const void *from, size_t bytes) const;

  private:
    struct Entered {
        int pid;
        uint64_t address, pages;
        bool withdrawn;
    };

    uint64_t *table_;
    std::vector<bool> known_;             // by page: the node has looked it up since it was entered
    std::map<uint32_t, Entered> entered_; // by first page
    // The search for free pages begins here. It goes round, so that a page is not used again soon.
    uint32_t next_ = 0;

    uint32_t find_room(uint64_t pages) const;
    const Entered *find(uint64_t address, size_t bytes, uint64_t &in_process) const;
};

} // namespace sim
