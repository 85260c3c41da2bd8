// SPDX-License-Identifier: Apache-2.0
#include "host_side.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "room.h"
#include "velo/spec.h"

namespace sim
{

namespace
{

constexpr size_t kWordBytes = 8, kEntryBytes = 16;

} // namespace

HostSide::HostSide(unsigned node, uint8_t *memory)
    : node_(node), memory_(memory), pages_(reinterpret_cast<uint64_t *>(memory + SIM_TABLE_AT))
{
}

uint64_t HostSide::next_access_cycle() const
{
    uint64_t next = UINT64_MAX;
    if (!stores.empty())
        next = stores.front().from_cycle;
    if (!controls.empty())
        next = std::min(next, controls.front().from_cycle);
    return next;
}

void HostSide::write(uint64_t cycle, uint64_t addr, const uint8_t *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t part = std::min(count - done, kWordBytes - (addr + done) % kWordBytes);
        Write write = {cycle, addr + done, static_cast<unsigned>(part), 0};
        std::memcpy(&write.data, bytes + done, part);
        writes_.push_back(write);
        if (part == kWordBytes)
            note_arrival(cycle, write.addr, write.data);
        done += part;
    }
}

bool HostSide::read(uint64_t addr, uint8_t *bytes, size_t count)
{
    bool there = true;
    if (addr < SIM_MEMORY_BYTES && addr + count <= SIM_MEMORY_BYTES)
        std::memcpy(bytes, memory_ + addr, count);
    else
        there = pages_.read(addr, bytes, count);
    lost_ += !there;
    return there;
}

void HostSide::asked(uint64_t addr)
{
    if (addr >= SIM_TABLE_AT && addr < SIM_MEMORY_BYTES)
        pages_.look_up(addr - SIM_TABLE_AT);
}

void HostSide::note_arrival(uint64_t cycle, uint64_t addr, uint64_t word)
{
    if (addr < SIM_QUEUES_AT) {
        if (addr % VELO_LINE_BYTES == 0 && velo_header_valid(word))
            arrivals.push_back({node_, static_cast<unsigned>(addr / SIM_RING_BYTES), cycle, word,
                                written_word(addr + kWordBytes), false});
    } else if (addr < SIM_TABLE_AT && addr % kEntryBytes == 0 &&
               velo_rma_notification_valid(word)) {
        auto context = static_cast<unsigned>((addr - SIM_QUEUES_AT) / SIM_QUEUE_BYTES);
        arrivals.push_back({node_, context, cycle, word, 0, true});
    }
}

// The last word that the node has written there, be it in memory or on its way.
uint64_t HostSide::written_word(uint64_t addr) const
{
    auto write = std::find_if(writes_.rbegin(), writes_.rend(),
                              [&](const Write &one) { return one.addr == addr; });
    if (write != writes_.rend())
        return write->data;
    uint64_t word = 0;
    if (addr + sizeof word <= SIM_MEMORY_BYTES)
        std::memcpy(&word, memory_ + addr, sizeof word);
    return word;
}

void HostSide::publish_before(uint64_t cycle)
{
    while (!writes_.empty() && writes_.front().cycle < cycle) {
        if (writes_.front().addr >= SIM_FRAMES_AT) {
            put_run(cycle);
        } else {
            put_word(writes_.front());
            writes_.pop_front();
        }
    }
}

// Writes that follow each other in one page need one system call.
void HostSide::put_run(uint64_t cycle)
{
    uint64_t addr = writes_.front().addr;
    std::vector<uint8_t> bytes;
    while (!writes_.empty() && writes_.front().cycle < cycle &&
           writes_.front().addr == addr + bytes.size() &&
           writes_.front().addr / SIM_PAGE_BYTES == addr / SIM_PAGE_BYTES) {
        const Write &write = writes_.front();
        const auto *data = reinterpret_cast<const uint8_t *>(&write.data);
        bytes.insert(bytes.end(), data, data + write.bytes);
        writes_.pop_front();
    }
    lost_ += !pages_.write(addr, bytes.data(), bytes.size());
}

void HostSide::put_word(const Write &write)
{
    if (write.addr + write.bytes > SIM_MEMORY_BYTES) {
        lost_++; // a ring or page that nobody here has set up
        return;
    }
    if (write.bytes != sizeof(uint64_t)) {
        std::memcpy(memory_ + write.addr, &write.data, write.bytes);
        return;
    }
    auto *word = reinterpret_cast<uint64_t *>(memory_ + write.addr);
    std::atomic_ref(*word).store(write.data, std::memory_order_release);
}

void HostSide::empty_ring(unsigned context)
{
    empty(uint64_t{context} * SIM_RING_BYTES, SIM_RING_BYTES);
}

void HostSide::empty_queue(unsigned context)
{
    empty(SIM_QUEUES_AT + uint64_t{context} * SIM_QUEUE_BYTES, SIM_QUEUE_BYTES);
}

void HostSide::empty(uint64_t addr, size_t bytes)
{
    take_room(memory_ + addr, bytes, "a context of node " + std::to_string(node_));
    std::memset(memory_ + addr, 0, bytes);
}

} // namespace sim
