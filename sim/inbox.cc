// SPDX-License-Identifier: Apache-2.0
#include "inbox.h"

#include "process.h"
#include "velo/spec.h"

namespace sim
{

namespace
{

void mix(uint64_t &hash, uint64_t value) // FNV-1a
{
    for (unsigned i = 0; i < sizeof value; i++) {
        hash ^= (value >> (8 * i)) & 0xFF;
        hash *= 0x100000001B3ULL;
    }
}

} // namespace

std::vector<int> Inboxes::dead() const
{
    std::vector<int> dead;
    for (const auto &[pid, process] : processes_)
        if (!process_is_alive(pid))
            dead.push_back(pid);
    return dead;
}

void Inboxes::count(const Arrival &arrival)
{
    mix(totals_.hash, arrival.cycle);
    if (arrival.is_notification) {
        totals_.notifications++;
        mix(totals_.hash, arrival.header);
    } else {
        totals_.messages++;
        mix(totals_.hash, velo_header_len(arrival.header));
        mix(totals_.hash, velo_header_source(arrival.header));
    }
    mix(totals_.hash, arrival.node << 8 | arrival.context);
}

uint64_t Inboxes::look(int pid, uint64_t time_ps)
{
    Process &process = processes_[pid];
    while (!process.coming_ps.empty() && process.coming_ps.front() <= time_ps) {
        process.seen++;
        process.coming_ps.pop_front();
    }
    return process.seen;
}

uint64_t Inboxes::next_ps(int pid)
{
    const Process &process = processes_[pid];
    return process.coming_ps.empty() ? SIM_NEVER : process.coming_ps.front();
}

} // namespace sim
