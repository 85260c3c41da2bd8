// SPDX-License-Identifier: Apache-2.0
#include "host_port.h"

namespace sim
{

namespace
{

// velo_netport_tx.sv: FifoWords, RoomWords, MostPackets, on a path of 32 bits.
constexpr unsigned kFifoWords = 256, kRoomWords = 19, kPacketsMax = 16, kPacketsRoom = 2;

} // namespace

void HostPort::begin(unsigned words)
{
    packets_.push_back({words, UINT64_MAX});
    words_ += words;
}

void HostPort::launched(uint64_t last_cycle) { packets_[launched_++].last_cycle = last_cycle; }

// The port says what room there was in the cycle before.
bool HostPort::has_room(uint64_t cycle)
{
    while (launched_ > 0 && packets_.front().last_cycle + 1 < cycle) {
        words_ -= packets_.front().words;
        packets_.pop_front();
        launched_--;
    }
    return words_ <= kFifoWords - kRoomWords && packets_.size() <= kPacketsMax - kPacketsRoom;
}

} // namespace sim
