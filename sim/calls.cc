// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sim
{

Calls::Calls(Hardware &hardware, Boards &boards, Inboxes &inboxes,
             std::function<bool(uint64_t, uint64_t)> ended)
    : hardware_(hardware), boards_(boards), inboxes_(inboxes), driver_(hardware, std::move(ended))
{
}

int32_t Calls::carry_out(Thread &thread, uint64_t time_ps)
{
    sim_call &call = *thread.call;
    switch (call.op) {
    case SIM_ATTACH:
    case SIM_SLEEP:
        return SIM_OK;
    case SIM_OUTSIDE:
        thread.outside = call.outside.number;
        return SIM_OK;
    case SIM_PORT_OPEN:
        return open_port(thread);
    case SIM_PORT_CLOSE:
        return driver_.close_context(thread.pid, call.port_close.node, call.port_close.context);
    case SIM_STORE:
        return store(thread, time_ps);
    case SIM_REGISTER_WRITE:
        return write_register(thread, time_ps);
    case SIM_REGISTER_READ:
        return begin_read(thread, time_ps, call.register_read.node, call.register_read.offset);
    case SIM_POLL:
        return poll(thread, time_ps);
    case SIM_QUEUE_OPEN:
        return open_queue(thread, time_ps);
    case SIM_MEMORY_ENTER:
        return driver_.enter_pages(thread.pid, call.memory_enter.node, call.memory_enter.context,
                                   call.memory_enter.address, call.memory_enter.len_bytes,
                                   call.memory_enter.rights, call.memory_enter.first_page);
    case SIM_MEMORY_WITHDRAW:
        return withdraw_memory(thread);
    case SIM_BOARD_OPEN:
        return open_board(thread);
    case SIM_BOARD_CLOSE:
        return boards_.close(thread.pid, call.board_close.board);
    case SIM_SLOT_STORE:
    case SIM_SLOT_LOAD:
    case SIM_SLOT_LINES:
    case SIM_SLOT_AWAIT:
        return access_slot(thread, time_ps);
    default:
        return SIM_ERR_CALL;
    }
}

bool Calls::take_ports(bool &ports)
{
    bool any = ports;
    if (any)
        opened_ports_ = urgent_ports_ = false;
    return any;
}

// The thread waits until it is resumed by its ticket.
void Calls::suspend(Thread &thread)
{
    thread.ticket = ++tickets_;
    thread.state = State::kReading;
    thread.event_ps = SIM_NEVER;
}

// There is nothing to wait for.
void Calls::go_on(Thread &thread)
{
    thread.ticket = 0;
    thread.state = State::kCalling;
}

int32_t Calls::open_port(Thread &thread)
{
    auto &open = thread.call->port_open;
    int32_t status = driver_.open_context(thread.pid, open.node, open.context, open.opened);
    if (status != SIM_OK)
        return status;
    opened_ports_ = true;
    // A message that is sent at once would come before the ring is set up. In a repeatable run the
    // others send only after a fence that all share. But a ring that was closed before waits in
    // the hardware until nothing more comes for it.
    if (open.opened > 1 || !thread.repeatable)
        urgent_ports_ = true;
    return SIM_OK;
}

int32_t Calls::store(Thread &thread, uint64_t time_ps)
{
    auto &store = thread.call->store;
    if (!hardware_.hosts(store.node))
        return SIM_ERR_NODE;
    if (store.len_words < 1 || store.len_words > std::size(store.line))
        return SIM_ERR_CALL;
    if (std::exchange(thread.tries_again, false)) {
        uint64_t before = std::exchange(store.arrivals, inboxes_.look(thread.pid, time_ps));
        if (store.arrivals != before)
            return SIM_AGAIN;
    }
    unsigned node = static_cast<unsigned>(store.node);
    if (!hardware_.host(node).store_fits()) {
        thread.tries_again = store.period_ps != 0;
        return SIM_AGAIN;
    }
    HostAccess access;
    access.addr = store.address;
    access.words = static_cast<uint8_t>(store.len_words);
    std::copy_n(store.line, store.len_words, access.line);
    hardware_.store(node, time_ps, access);
    return SIM_OK;
}

int32_t Calls::write_register(const Thread &thread, uint64_t time_ps)
{
    const auto &write = thread.call->register_write;
    if (!hardware_.hosts(write.node))
        return SIM_ERR_NODE;
    hardware_.write_register(static_cast<unsigned>(write.node), time_ps, write.offset, write.value);
    return SIM_OK;
}

int32_t Calls::begin_read(Thread &thread, uint64_t time_ps, uint64_t node, uint64_t offset)
{
    if (!hardware_.hosts(node))
        return SIM_ERR_NODE;
    suspend(thread);
    hardware_.read_register(static_cast<unsigned>(node), time_ps, offset, thread.ticket);
    return SIM_OK;
}

int32_t Calls::poll(Thread &thread, uint64_t time_ps)
{
    auto &poll = thread.call->poll;
    uint64_t before = std::exchange(poll.arrivals, inboxes_.look(thread.pid, time_ps));
    if (poll.arrivals != before)
        return SIM_OK;
    bool has_deadline = poll.until_new != 0 && poll.deadline_ps != SIM_NEVER;
    return has_deadline && poll.deadline_ps <= time_ps ? SIM_TIMEOUT : SIM_AGAIN;
}

// ----- remote memory

int32_t Calls::open_queue(Thread &thread, uint64_t time_ps)
{
    const auto &open = thread.call->queue_open;
    int32_t status = driver_.open_queue(thread.pid, open.node, open.context, time_ps);
    // The answer to a read comes after the writes before it have been done.
    return status == SIM_OK ? begin_read(thread, time_ps, open.node, Driver::kRegPages) : status;
}

int32_t Calls::withdraw_memory(Thread &thread)
{
    const auto &withdraw = thread.call->memory_withdraw;
    suspend(thread);
    int32_t status =
        driver_.withdraw_pages(thread.pid, withdraw.node, withdraw.first_page, thread.ticket);
    if (status == SIM_OK) {
        thread.pages_node = static_cast<unsigned>(withdraw.node);
        thread.pages_first = static_cast<uint32_t>(withdraw.first_page);
    } else {
        go_on(thread);
    }
    return status;
}

// ----- boards

int32_t Calls::open_board(Thread &thread)
{
    auto &open = thread.call->board_open;
    suspend(thread);
    int32_t status =
        boards_.open(thread.pid, open.lid, thread.ticket, hardware_.cycle(), open.board);
    if (status != SIM_OK)
        go_on(thread);
    return status;
}

int32_t Calls::access_slot(Thread &thread, uint64_t time_ps)
{
    const auto &slot = thread.call->slot;
    bool is_word = thread.call->op == SIM_SLOT_LOAD || thread.call->op == SIM_SLOT_AWAIT;
    if (slot.len_words < 1 || slot.len_words > (is_word ? 1 : SIM_SLOT_WORDS) ||
        slot.address % 8 != 0 || slot.address > SIM_SLOT_BYTES - 8 * slot.len_words)
        return SIM_ERR_CALL;
    Access access;
    access.kind = thread.call->op == SIM_SLOT_STORE   ? Access::Kind::kStore
                  : thread.call->op == SIM_SLOT_LOAD  ? Access::Kind::kLoad
                  : thread.call->op == SIM_SLOT_LINES ? Access::Kind::kLines
                                                      : Access::Kind::kAwait;
    access.time_ps = time_ps;
    access.word = slot.address / 8;
    access.len_words = static_cast<unsigned>(slot.len_words);
    access.deadline_ps = slot.deadline_ps;
    std::copy_n(slot.words, std::size(slot.words), access.words.begin());
    suspend(thread);
    access.ticket = thread.ticket;
    int32_t status = boards_.begin(slot.board, access);
    if (status != SIM_OK)
        go_on(thread);
    return status;
}

void Calls::forget_pages(Thread &thread)
{
    if (thread.pages_first != SIM_PAGES)
        driver_.forget_pages(thread.pages_node, thread.pages_first);
    thread.pages_first = SIM_PAGES;
}

} // namespace sim
