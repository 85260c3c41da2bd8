// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <algorithm>
#include <utility>

namespace sim
{

namespace
{

// Of a packet's first word; its first byte is the lowest (dimmnet_swif_pkg, lrh_t).
unsigned dlid_of(uint64_t word)
{
    return static_cast<unsigned>((word >> 16 & 0xFF) << 8 | (word >> 24 & 0xFF));
}

} // namespace

Network::Network(unsigned boards, uint64_t cycles, std::function<unsigned(unsigned)> find)
    : cycles_(cycles), find_(std::move(find)), to_(boards), target_(boards, boards)
{
}

void Network::hash(uint64_t value)
{
    constexpr uint64_t kPrime = 0x100000001B3ULL;
    for (unsigned byte = 0; byte < 8; byte++)
        totals_.hash = (totals_.hash ^ (value >> 8 * byte & 0xFF)) * kPrime;
}

NetWord Network::take(unsigned board, uint64_t cycle)
{
    if (to_[board].empty())
        return {};
    Packet &packet = to_[board].front();
    if (packet.words.empty() || packet.words.front().first > cycle)
        return {};
    NetWord word = packet.words.front().second;
    packet.words.pop_front();
    hash(cycle);
    hash(board);
    hash(word.word);
    if (word.last) {
        totals_.packets++;
        to_[board].pop_front();
    }
    return word;
}

void Network::give(unsigned board, uint64_t cycle, const NetWord &word)
{
    if (!word.valid)
        return;
    if (word.first) {
        target_[board] = find_(dlid_of(word.word));
        if (target_[board] == to_.size())
            totals_.lost++;
        else
            to_[target_[board]].push_back({board, {}});
    }
    if (target_[board] == to_.size())
        return;
    auto &packets = to_[target_[board]];
    auto packet = std::find_if(packets.rbegin(), packets.rend(),
                               [&](const Packet &one) { return one.from == board; });
    packet->words.emplace_back(cycle + cycles_, word);
    if (word.last)
        target_[board] = static_cast<unsigned>(to_.size());
}

void Network::forget(unsigned board)
{
    to_[board].clear();
    for (unsigned from = 0; from < target_.size(); from++)
        if (target_[from] == board)
            target_[from] = static_cast<unsigned>(to_.size());
    if (unsigned target = target_[board]; target != to_.size()) {
        std::erase_if(to_[target], [&](const Packet &packet) {
            return packet.from == board &&
                   (packet.words.empty() || !packet.words.back().second.last);
        });
        target_[board] = static_cast<unsigned>(to_.size());
    }
}

} // namespace sim
