// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <utility>

#include "names.h"
#include "process.h"
#include "velo/spec.h"

namespace sim
{

namespace
{

// spec/velo_regs.rdl
constexpr uint64_t kRegInvalidate = 0x90, kRegRings = 0x8000000, kRegQueues = 0x8300000;
constexpr uint64_t kPagesEnable = 1 << 8, kInvalidateBusy = uint64_t{1} << 63;
constexpr unsigned kContextStride = 12;

} // namespace

Driver::Driver(Hardware &hardware, std::function<bool(uint64_t, uint64_t)> ended)
    : hardware_(hardware), contexts_a_node_(Names(hardware.size()).contexts()),
      ended_(std::move(ended)), contexts_(hardware.size(), std::vector<Context>(contexts_a_node_)),
      withdrawals_(hardware.size())
{
}

int Driver::owner(unsigned node, unsigned number) const { return contexts_[node][number].pid; }

bool Driver::owns(int pid, uint64_t node, uint64_t number) const
{
    return node < contexts_.size() && number < contexts_a_node_ &&
           contexts_[node][number].pid == pid;
}

// ----- contexts
// -----------------------------------------------------------------------------------

void Driver::set_ring(unsigned node, unsigned number, bool enabled)
{
    uint64_t ring = uint64_t{number} * SIM_RING_BYTES | uint64_t{SIM_RING_SLOTS_LOG2} << 48;
    hardware_.write_register(node, hardware_.clock().start_ps(hardware_.cycle()),
                             kRegRings + (uint64_t{number} << kContextStride),
                             enabled ? ring | 1 : 0);
}

void Driver::set_queue(unsigned node, unsigned number, bool enabled)
{
    uint64_t queue = (SIM_QUEUES_AT + uint64_t{number} * SIM_QUEUE_BYTES) |
                     uint64_t{SIM_QUEUE_ENTRIES_LOG2} << 48;
    contexts_[node][number].queue = enabled;
    hardware_.write_register(node, hardware_.clock().start_ps(hardware_.cycle()),
                             kRegQueues + (uint64_t{number} << kContextStride),
                             enabled ? queue | 1 : 0);
}

int32_t Driver::open_context(int pid, uint64_t node, uint64_t &number, uint64_t &opened)
{
    if (!hardware_.hosts(node))
        return SIM_ERR_NODE;
    auto &contexts = contexts_[node];
    unsigned given = contexts_a_node_;
    if (number < contexts_a_node_ && contexts[number].pid == 0)
        given = static_cast<unsigned>(number);
    for (unsigned c = 0; c < contexts_a_node_ && given == contexts_a_node_; c++)
        if (contexts[c].pid == 0)
            given = c;
    if (given == contexts_a_node_)
        return SIM_ERR_FULL;
    contexts[given].pid = pid;
    hardware_.host(static_cast<unsigned>(node)).empty_ring(given);
    set_ring(static_cast<unsigned>(node), given, true);
    number = given;
    opened = ++contexts[given].opened;
    return SIM_OK;
}

int32_t Driver::close_context(int pid, uint64_t node, uint64_t number)
{
    if (!hardware_.hosts(node))
        return SIM_ERR_NODE;
    if (!owns(pid, node, number))
        return SIM_ERR_CALL;
    close(static_cast<unsigned>(node), static_cast<unsigned>(number));
    return SIM_OK;
}

void Driver::close(unsigned node, unsigned number)
{
    contexts_[node][number].pid = 0;
    set_ring(node, number, false);
    if (contexts_[node][number].queue)
        set_queue(node, number, false);
}

int32_t Driver::open_queue(int pid, uint64_t node, uint64_t number, uint64_t time_ps)
{
    if (!owns(pid, node, number))
        return SIM_ERR_CALL;
    unsigned n = static_cast<unsigned>(node), context = static_cast<unsigned>(number);
    hardware_.write_register(n, time_ps, kRegPages, SIM_TABLE_AT | kPagesEnable | SIM_PAGES_LOG2);
    hardware_.host(n).empty_queue(context);
    set_queue(n, context, true);
    return SIM_OK;
}

// ----- registered pages
// -----------------------------------------------------------------------------

int32_t Driver::enter_pages(int pid, uint64_t node, uint64_t number, uint64_t address,
                            uint64_t bytes, uint64_t rights, uint64_t &first)
{
    if (!owns(pid, node, number) || bytes == 0 || address % SIM_PAGE_BYTES != 0 ||
        bytes % SIM_PAGE_BYTES != 0 || address + bytes < address)
        return SIM_ERR_CALL;
    uint64_t word = velo_registered_page_pack(
        velo_registered_page_one_peer(rights), velo_registered_page_rights(rights),
        static_cast<uint8_t>(number), 0, velo_registered_page_peer(rights));
    uint8_t byte = 0;
    // If the kernel does not let us reach the process, the job had better end now than later.
    (void)read_process(pid, address, &byte, sizeof byte);
    uint32_t entered = hardware_.host(static_cast<unsigned>(node))
                           .pages()
                           .enter(pid, address, bytes / SIM_PAGE_BYTES, word);
    if (entered == SIM_PAGES)
        return SIM_ERR_FULL;
    first = entered;
    return SIM_OK;
}

int32_t Driver::withdraw_pages(int pid, uint64_t node, uint64_t first, uint64_t waiter)
{
    if (!hardware_.hosts(node))
        return SIM_ERR_NODE;
    unsigned n = static_cast<unsigned>(node);
    if (first >= SIM_PAGES ||
        !hardware_.host(n).pages().is_entered_by(pid, static_cast<uint32_t>(first)))
        return SIM_ERR_CALL;
    withdraw(n, static_cast<uint32_t>(first), waiter);
    return SIM_OK;
}

void Driver::withdraw(unsigned node, uint32_t first, uint64_t waiter)
{
    auto &withdrawals = withdrawals_[node];
    withdrawals.push_back({first, hardware_.host(node).pages().withdraw(first), waiter});
    if (withdrawals.size() == 1)
        invalidate_next(node);
}

void Driver::forget_pages(unsigned node, uint32_t first)
{
    hardware_.host(node).pages().forget(first);
}

// Go on with the first withdrawal. Withdrawals that have nothing left to invalidate end.
void Driver::invalidate_next(unsigned node)
{
    auto &withdrawals = withdrawals_[node];
    while (!withdrawals.empty() && withdrawals.front().pages.empty()) {
        Withdrawal done = std::move(withdrawals.front());
        withdrawals.pop_front();
        // The last write that was still granted left the node in the last cycle at the latest.
        uint64_t seen_ps = hardware_.visible_ps(hardware_.cycle() - 1);
        if (done.waiter == kNobody || !ended_(done.waiter, seen_ps))
            forget_pages(node, done.first);
    }
    if (withdrawals.empty())
        return;
    uint64_t now_ps = hardware_.clock().start_ps(hardware_.cycle());
    hardware_.write_register(node, now_ps, kRegInvalidate, withdrawals.front().pages.back());
    hardware_.read_register(node, now_ps, kRegInvalidate, kReader);
}

void Driver::take_answer(unsigned node, const RegisterAnswer &answer)
{
    if (answer.value & kInvalidateBusy) {
        hardware_.read_register(node, hardware_.answered_ps(answer.cycle), kRegInvalidate, kReader);
        return;
    }
    withdrawals_[node].front().pages.pop_back();
    invalidate_next(node);
}

bool Driver::bury(int pid)
{
    bool any = false;
    for (unsigned n = 0; n < contexts_.size(); n++)
        for (unsigned c = 0; c < contexts_a_node_; c++)
            if (contexts_[n][c].pid == pid) {
                close(n, c);
                any = true;
            }
    for (unsigned n = 0; n < contexts_.size(); n++)
        if (hardware_.hosts(n))
            withdraw_all(n, pid);
    return any;
}

void Driver::withdraw_all(unsigned node, int pid)
{
    for (uint32_t first : hardware_.host(node).pages().entered_by(pid))
        withdraw(node, first, kNobody);
}

} // namespace sim
