// SPDX-License-Identifier: Apache-2.0
#include "hardware.h"

#include <algorithm>

#include "velo/spec.h"

namespace sim
{

Hardware::Hardware(const ClusterOptions &options, unsigned nodes, uint8_t *memory)
    : clock_(options.clock_khz), host_model_(options.host), split_one_in_(options.split_one_in)
{
    for (unsigned n = 0; n < nodes; n++) {
        hosts_.push_back(
            options.cards.contains(n)
                ? nullptr
                : std::make_unique<HostSide>(n, memory + n * uint64_t{SIM_MEMORY_BYTES}));
        splits_.emplace_back(options.seed, UINT64_C(0x5B117) + n);
    }
}

void Hardware::publish_until(uint64_t time_ps)
{
    // Mostly nothing is due: the comparison of cycles is cheap, that of times is not.
    for (auto &host : hosts_)
        while (host && host->next_publish_cycle() < cycle_ &&
               visible_ps(host->next_publish_cycle()) <= time_ps)
            host->publish_before(host->next_publish_cycle() + 1);
}

uint64_t Hardware::next_visible_ps() const
{
    uint64_t cycle = cycle_;
    for (const auto &host : hosts_)
        if (host)
            cycle = std::min(cycle, host->next_publish_cycle());
    return visible_ps(cycle);
}

uint64_t Hardware::visible_ps(uint64_t cycle) const
{
    return clock_.start_ps(cycle + 1) + host_model_.dma_ns * kPsPerNs;
}

uint64_t Hardware::answered_ps(uint64_t cycle) const
{
    return clock_.start_ps(cycle + 1) + host_model_.read_ns * kPsPerNs / 2;
}

// From this cycle on, a look at memory sees all that has left the nodes.
uint64_t Hardware::seen_cycle() const
{
    uint64_t last = 0;
    for (const auto &host : hosts_)
        if (host && host->next_publish_cycle() != UINT64_MAX)
            last = std::max(last, clock_.cycle_from(visible_ps(host->last_publish_cycle())));
    return last;
}

// A port takes an access at the next clock edge, which ends the cycle in which the access came.
uint64_t Hardware::taken_cycle(uint64_t time_ps) const
{
    uint64_t cycle = clock_.cycle_from(time_ps);
    return std::max(cycle_, cycle > 0 ? cycle - 1 : 0);
}

uint64_t Hardware::write_cycle(uint64_t time_ps) const
{
    return taken_cycle(time_ps + host_model_.store_ns * kPsPerNs);
}

uint64_t Hardware::read_cycle(uint64_t time_ps) const
{
    return taken_cycle(time_ps + host_model_.read_ns * kPsPerNs / 2);
}

void Hardware::store(unsigned node, uint64_t time_ps, HostAccess access)
{
    access.from_cycle = write_cycle(time_ps);
    bool is_line = velo_window_unit(access.addr) == VELO_UNIT_VELO && access.words > 1;
    if (split_one_in_ == 0 || !is_line || splits_[node].next() % split_one_in_ != 0) {
        pass(node, time_ps, access);
        return;
    }
    // The parts follow each other; each says by its address where it belongs.
    for (unsigned begin = 0; begin < access.words;) {
        unsigned left = access.words - begin, most = begin == 0 ? left - 1 : left;
        unsigned words = 1 + static_cast<unsigned>(splits_[node].next() % most);
        HostAccess part = access;
        part.addr += begin * sizeof access.line[0];
        part.words = static_cast<uint8_t>(words);
        std::copy_n(access.line + begin, words, part.line);
        pass(node, time_ps, part);
        begin += words;
    }
}

void Hardware::pass(unsigned node, uint64_t time_ps, const HostAccess &access)
{
    hosts_[node]->stores.push_back(access);
    accessed(node);
    if (recorder_)
        recorder_->stored(node, time_ps, access);
}

void Hardware::write_register(unsigned node, uint64_t time_ps, uint64_t offset, uint64_t value)
{
    HostAccess access;
    access.from_cycle = write_cycle(time_ps);
    access.addr = velo_window_pack(static_cast<uint32_t>(offset), 0, VELO_UNIT_REGISTERS);
    access.words = 1;
    access.line[0] = value;
    hosts_[node]->controls.push_back(access);
    accessed(node);
}

void Hardware::read_register(unsigned node, uint64_t time_ps, uint64_t offset, uint64_t reader)
{
    HostAccess access;
    access.from_cycle = read_cycle(time_ps);
    access.addr = velo_window_pack(static_cast<uint32_t>(offset), 0, VELO_UNIT_REGISTERS);
    access.read = true;
    access.reader = reader;
    hosts_[node]->controls.push_back(access);
    accessed(node);
}

} // namespace sim
