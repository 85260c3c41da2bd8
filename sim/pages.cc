// SPDX-License-Identifier: Apache-2.0
#include "pages.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "process.h"
#include "room.h"
#include "velo/spec.h"

namespace sim
{

// Looks for a gap from next_ on, then from the beginning.
uint32_t Pages::find_room(uint64_t pages) const
{
    for (uint64_t at : {uint64_t{next_}, uint64_t{0}}) {
        auto after = entered_.lower_bound(static_cast<uint32_t>(at));
        if (after != entered_.begin()) {
            auto before = std::prev(after);
            at = std::max(at, before->first + before->second.pages);
        }
        for (; after != entered_.end() && after->first - at < pages; ++after)
            at = after->first + after->second.pages;
        if (at + pages <= SIM_PAGES)
            return static_cast<uint32_t>(at);
    }
    return SIM_PAGES;
}

uint32_t Pages::enter(int pid, uint64_t address, uint64_t pages, uint64_t word)
{
    uint32_t first = pages > 0 && pages <= SIM_PAGES ? find_room(pages) : SIM_PAGES;
    if (first == SIM_PAGES)
        return first;
    take_room(table_ + first, pages * sizeof *table_, "a table of registered pages");
    entered_[first] = {pid, address, pages, false};
    next_ = static_cast<uint32_t>((first + pages) % SIM_PAGES);
    for (uint32_t page = first; page < first + pages; page++) {
        uint64_t frame = SIM_FRAMES_AT / SIM_PAGE_BYTES + page;
        std::atomic_ref(table_[page]).store(word | frame << VELO_REGISTERED_PAGE_FRAME_LSB);
        known_[page] = false;
    }
    return first;
}

bool Pages::is_entered_by(int pid, uint32_t first) const
{
    auto found = entered_.find(first);
    return found != entered_.end() && found->second.pid == pid && !found->second.withdrawn;
}

std::vector<uint32_t> Pages::entered_by(int pid) const
{
    std::vector<uint32_t> all;
    for (const auto &[first, entered] : entered_)
        if (entered.pid == pid && !entered.withdrawn)
            all.push_back(first);
    return all;
}

std::vector<uint32_t> Pages::withdraw(uint32_t first)
{
    Entered &entered = entered_.at(first);
    entered.withdrawn = true;
    std::vector<uint32_t> looked_up;
    for (uint32_t page = first; page < first + entered.pages; page++) {
        std::atomic_ref(table_[page]).store(0);
        if (known_[page])
            looked_up.push_back(page);
    }
    return looked_up;
}

void Pages::look_up(uint64_t offset_bytes)
{
    uint64_t page = offset_bytes / sizeof *table_;
    if (page < SIM_PAGES)
        known_[page] = true;
}

const Pages::Entered *Pages::find(uint64_t address, size_t bytes, uint64_t &in_process) const
{
    uint64_t at = address - SIM_FRAMES_AT, page = at / SIM_PAGE_BYTES;
    if (address < SIM_FRAMES_AT || page >= SIM_PAGES)
        return nullptr;
    auto after = entered_.upper_bound(static_cast<uint32_t>(page));
    if (after == entered_.begin())
        return nullptr;
    const auto &[first, entered] = *std::prev(after);
    uint64_t offset = at - uint64_t{first} * SIM_PAGE_BYTES;
    if (offset + bytes > entered.pages * SIM_PAGE_BYTES)
        return nullptr;
    in_process = entered.address + offset;
    return &entered;
}

bool Pages::read(uint64_t address, void *to, size_t bytes) const
{
    uint64_t in_process = 0;
    const Entered *entered = find(address, bytes, in_process);
    return entered && read_process(entered->pid, in_process, to, bytes);
}

bool Pages::write(uint64_t address, const void *from, size_t bytes) const
{
    uint64_t in_process = 0;
    const Entered *entered = find(address, bytes, in_process);
    return entered && write_process(entered->pid, in_process, from, bytes);
}

} // namespace sim
