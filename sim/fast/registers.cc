// SPDX-License-Identifier: Apache-2.0
#include "registers.h"

#include <algorithm>
#include <cstdio>

#include "../process.h"
#include "scope.h"
#include "velo/spec.h"

namespace sim
{

namespace
{

// spec/velo_regs.rdl
constexpr uint64_t kRegPages = 0x88, kRegInvalidate = 0x90, kRegCongestion = 0x1B8;
constexpr uint64_t kRegRings = 0x8000000, kRegReadPointers = 0x8100000, kRegQueues = 0x8300000,
                   kRegQueueReadPointers = 0x8400000, kRegBarrierArrivals = 0x8500000,
                   kRegBarriers = 0x8600000;
constexpr uint64_t kContextStride = 0x1000, kContextsBytes = SIM_CONTEXTS * kContextStride;

constexpr uint64_t kPageMask = (1 << 24) - 1; // of `invalidate`
constexpr unsigned kBusyBit = 63;

constexpr unsigned kPulse = 1; // velo_regfile.sv, `invalidate_q`
constexpr unsigned kBeats = 2; // of a register, on a path of 32 bits
constexpr unsigned kWrite = 3, kAnswer = 5, kAnswerAfterWrite = 4; // cycles

bool is_context_of(uint64_t offset, uint64_t base, unsigned &context)
{
    if (offset < base || offset >= base + kContextsBytes || (offset - base) % kContextStride != 0)
        return false;
    context = static_cast<unsigned>((offset - base) / kContextStride);
    return true;
}

[[noreturn]] void refuse(uint64_t offset)
{
    if (offset == kRegCongestion)
        throw JobError(why_refused(Part::kCongestion));
    if (offset >= kRegBarrierArrivals && offset < kRegBarriers + kContextsBytes)
        throw JobError(why_refused(Part::kGroups));
    char text[96];
    std::snprintf(text, sizeof text,
                  "the fast model does not have the register at 0x%llx; use --model rtl",
                  static_cast<unsigned long long>(offset));
    throw JobError(text);
}

} // namespace

uint64_t FastRegisters::done_cycle(const HostAccess &next) const
{
    uint64_t begin = std::max(next.from_cycle, free_cycle_);
    if (next.read)
        return std::max(begin + kAnswer, written_cycle_ + kAnswerAfterWrite);
    return std::max(begin, before_cycle_ + 1) + kBeats - 1;
}

uint64_t FastRegisters::carry_out(const HostAccess &access, uint64_t cycle, bool &has_room)
{
    uint64_t offset = velo_window_target(access.addr);
    free_cycle_ = cycle + 1;
    if (access.read)
        return read(offset);
    before_cycle_ = written_cycle_;
    written_cycle_ = std::max(written_cycle_, cycle) + kWrite;
    has_room = write(offset, access.line[0], written_cycle_);
    return 0;
}

bool FastRegisters::write(uint64_t offset, uint64_t value, uint64_t cycle)
{
    unsigned context = 0;
    if (is_context_of(offset, kRegRings, context)) {
        rings_.set(context, value);
        return true;
    }
    if (is_context_of(offset, kRegReadPointers, context)) {
        rings_.set_read_pointer(context, static_cast<uint16_t>(value));
        return true;
    }
    if (is_context_of(offset, kRegQueues, context)) {
        rma_.queues().set(context, value);
        rma_.queue_changed(cycle);
    } else if (is_context_of(offset, kRegQueueReadPointers, context)) {
        rma_.queues().set_read_pointer(context, static_cast<uint16_t>(value));
        rma_.queue_changed(cycle);
    } else if (offset == kRegPages) {
        pages_ = value;
        rma_.translation().set_table(value);
    } else if (offset == kRegInvalidate) {
        invalidated_ = value & kPageMask;
        rma_.translation().invalidate(cycle + kPulse, static_cast<uint32_t>(invalidated_));
    } else {
        refuse(offset);
    }
    return false;
}

uint64_t FastRegisters::read(uint64_t offset) const
{
    if (offset == kRegPages)
        return pages_;
    if (offset == kRegInvalidate)
        return invalidated_ | uint64_t{rma_.translation().is_invalidating()} << kBusyBit;
    refuse(offset);
}

} // namespace sim
