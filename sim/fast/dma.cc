// SPDX-License-Identifier: Apache-2.0
#include "dma.h"

#include <algorithm>
#include <utility>

#include "rma_cycles.h"

namespace sim
{

namespace
{

constexpr unsigned kBeatBytes = 4;

uint64_t beats_of(size_t bytes) { return (bytes + kBeatBytes - 1) / kBeatBytes; }

} // namespace

void Dma::write(Writer writer, uint64_t cycle, uint64_t addr, Bytes bytes, Begun begun)
{
    offered_[writer] = {addr, std::move(bytes), std::move(begun)};
    if (turn_planned_)
        return;
    if (turn_free_ <= cycle) {
        take_turn(cycle);
    } else {
        turn_planned_ = true;
        timer_.at(turn_free_, [this](uint64_t now) {
            turn_planned_ = false;
            take_turn(now);
        });
    }
}

// A write that finds the host port in use goes on as far as the buffers before it hold its beats.
void Dma::take_turn(uint64_t cycle)
{
    std::optional<Write> next;
    while (!next) {
        next = std::exchange(offered_[turn_], std::nullopt);
        turn_ = (turn_ + 1) % kWriters;
    }
    Write write = std::move(*next);
    uint64_t beats = beats_of(write.bytes.size());
    uint64_t first = cycle + rma::kTurn, last = first + beats - 1;
    uint64_t left = std::max(first + rma::kBeatToHost, port_free_) + beats - 1;
    last = std::max(last, left - std::min<uint64_t>(left, rma::kWriteBuffer));
    port_free_ = left + 1;
    turn_free_ = last + 1;
    gone_.push_back({last, left});
    timer_.at(left, [this, addr = write.addr, bytes = std::move(write.bytes)](uint64_t now) {
        host_.write(now, addr, bytes.data(), bytes.size());
    });
    if (std::any_of(offered_.begin(), offered_.end(),
                    [](const auto &one) { return one.has_value(); })) {
        turn_planned_ = true;
        timer_.at(turn_free_, [this](uint64_t now) {
            turn_planned_ = false;
            take_turn(now);
        });
    }
    write.begun(first, last);
}

uint64_t Dma::pass_message(uint64_t first, unsigned beats)
{
    port_free_ = std::max(first, port_free_) + beats;
    return port_free_ - 1;
}

uint64_t Dma::left_cycle(uint64_t cycle)
{
    while (!gone_.empty() && gone_.front().taken < cycle) {
        left_ = gone_.front().left + 1;
        gone_.pop_front();
    }
    return left_;
}

// ----- reads

void Dma::read(uint64_t cycle, uint64_t addr, unsigned count, Read done)
{
    uint64_t asked = std::max(cycle, read_free_) + rma::kAskToHost;
    read_free_ = asked - rma::kAskToHost + rma::kReadTurn;
    host_.asked(addr);
    timer_.at(asked + dma_cycles_, [=, this, done = std::move(done)](uint64_t now) {
        look(now, asked, addr, count, done);
    });
}

// The node's read sees all that the node wrote before it asked.
void Dma::look(uint64_t cycle, uint64_t asked, uint64_t addr, unsigned count, const Read &done)
{
    host_.publish_before(asked);
    Bytes bytes(count);
    if (!host_.read(addr, bytes.data(), count))
        bytes.clear();
    uint64_t first = std::max(cycle + dma_cycles_, answer_free_);
    answer_free_ = first + std::max<uint64_t>(1, beats_of(bytes.size()));
    timer_.at(first + rma::kHostToUnit, [done, bytes = std::move(bytes)](uint64_t now) mutable {
        done(now, std::move(bytes));
    });
}

} // namespace sim
