// SPDX-License-Identifier: Apache-2.0
#include "host_port.h"

#include <algorithm>

namespace sim
{

namespace
{

// velo_netport_tx.sv: FifoWords, RoomWords, MostPackets, on a path of 32 bits.
constexpr unsigned kFifoWords = 256, kRoomWords = 19, kPacketsMax = 16, kPacketsRoom = 2;
// The port says what room there was in the cycle before, and a word has left in the cycle behind
// its own.
constexpr unsigned kLate = 2;

} // namespace

void HostPort::begin(unsigned words)
{
    packets_.push_back({words, UINT64_MAX});
    words_ += words;
}

void HostPort::launched(uint64_t last_cycle) { packets_[launched_++].last_cycle = last_cycle; }

uint64_t HostPort::room_cycle(uint64_t cycle)
{
    while (launched_ > 0 && packets_.front().last_cycle + kLate <= cycle) {
        words_ -= packets_.front().words;
        packets_.pop_front();
        launched_--;
    }
    // So much has to leave.
    unsigned words = words_ - std::min(words_, kFifoWords - kRoomWords);
    size_t packets =
        packets_.size() - std::min<size_t>(packets_.size(), kPacketsMax - kPacketsRoom);
    uint64_t room = cycle;
    if (packets > launched_)
        return UINT64_MAX;
    if (packets > 0)
        room = packets_[packets - 1].last_cycle + kLate;
    for (size_t p = 0; words > 0; p++) {
        if (p == launched_)
            return UINT64_MAX;
        const Packet &packet = packets_[p];
        unsigned part = std::min(words, packet.words);
        room = std::max(room, packet.last_cycle - (packet.words - part) + kLate);
        words -= part;
    }
    return room;
}

} // namespace sim
