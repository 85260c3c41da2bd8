// SPDX-License-Identifier: Apache-2.0
//
// Carries out a thread's call when its time has come. All arguments are numbers that a process
// gave: each is checked before it is used.

#pragma once

#include <cstdint>
#include <functional>

#include "boards/boards.h"
#include "driver.h"
#include "hardware.h"
#include "inbox.h"
#include "thread.h"

namespace sim
{

class Calls
{
  public:
    // `ended`: as Driver's; the waiter is a thread's ticket.
    Calls(Hardware &hardware, Boards &boards, Inboxes &inboxes,
          std::function<bool(uint64_t ticket, uint64_t time_ps)> ended);

    // Carry out a thread's call and put the results into it. Returns enum sim_status.
    // The thread may be kReading afterwards, with a ticket: then the answer is yet to come.
    int32_t carry_out(Thread &thread, uint64_t time_ps);

    // Have ports been opened since the hardware last got the time for that? take_urgent_ports()
    // asks about those that may be sent to at once, take_opened_ports() about any. The caller gives
    // the hardware the time now.
    bool take_urgent_ports() { return take_ports(urgent_ports_); }
    bool take_opened_ports() { return take_ports(opened_ports_); }

    // The pages that a thread has withdrawn may be used again.
    void forget_pages(Thread &thread);
    // The process that has a context open; 0: none.
    int owner(unsigned node, unsigned context) const { return driver_.owner(node, context); }
    // The node has read a register for the driver.
    void take_answer(unsigned node, const RegisterAnswer &answer)
    {
        driver_.take_answer(node, answer);
    }
    // A process has ended. True: it had contexts open.
    bool bury(int pid)
    {
        boards_.bury(pid);
        return driver_.bury(pid);
    }

  private:
    Hardware &hardware_;
    Boards &boards_;
    Inboxes &inboxes_;
    Driver driver_;
    uint64_t tickets_ = 0;
    bool opened_ports_ = false, urgent_ports_ = false;

    bool take_ports(bool &ports);
    void suspend(Thread &thread);
    static void go_on(Thread &thread);
    int32_t open_port(Thread &thread);
    int32_t store(Thread &thread, uint64_t time_ps);
    int32_t write_register(const Thread &thread, uint64_t time_ps);
    int32_t begin_read(Thread &thread, uint64_t time_ps, uint64_t node, uint64_t offset);
    int32_t poll(Thread &thread, uint64_t time_ps);
    int32_t open_queue(Thread &thread, uint64_t time_ps);
    int32_t withdraw_memory(Thread &thread);
    int32_t open_board(Thread &thread);
    int32_t access_slot(Thread &thread, uint64_t time_ps);
};

} // namespace sim
