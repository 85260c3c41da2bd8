// SPDX-License-Identifier: Apache-2.0
//
// The part of a kernel's driver: it keeps which process has which context and which pages, and
// writes that into the node's registers and tables.
//
// A node may still know pages that are withdrawn. It is told to forget them one after the other.
// The withdrawal is over when the node knows none of them any more.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "../spec/sim_channel.h"
#include "hardware.h"

namespace sim
{

class Driver
{
  public:
    // The waiter of a withdrawal whose end no thread waits for.
    static constexpr uint64_t kNobody = 0;
    // A register that the driver writes (spec/velo_regs.rdl).
    static constexpr uint64_t kRegPages = 0x88;
    // The reader of registers that stands for the driver itself.
    static constexpr uint64_t kReader = UINT64_MAX - 1;

    // `ended`: called when a withdrawal is over, with the waiter and the time at which the waiter
    // sees it. Returns false if the waiter has ended.
    Driver(Hardware &hardware, std::function<bool(uint64_t waiter, uint64_t time_ps)> ended);

    // All of these take numbers that a process gave, and return an enum sim_status.

    // `number`: the context that is wanted, then the one that was given: any free one if the wanted
    // one is taken. `opened`: how often that context has been opened, this time included.
    int32_t open_context(int pid, uint64_t node, uint64_t &number, uint64_t &opened);
    int32_t close_context(int pid, uint64_t node, uint64_t number);
    // A context's notification queue. The node has it once it has taken these writes.
    int32_t open_queue(int pid, uint64_t node, uint64_t number, uint64_t time_ps);
    // The memory begins at `address`. `rights`: layout registered_page. `first`: the first page.
    int32_t enter_pages(int pid, uint64_t node, uint64_t number, uint64_t address, uint64_t bytes,
                        uint64_t rights, uint64_t &first);
    // The withdrawal is over when `ended` is called, which may be before this returns.
    int32_t withdraw_pages(int pid, uint64_t node, uint64_t first, uint64_t waiter);
    // Pages that were withdrawn may be used again.
    void forget_pages(unsigned node, uint32_t first);

    // The process that has a context open; 0: none.
    int owner(unsigned node, unsigned number) const;
    // The node has read a register for the driver.
    void take_answer(unsigned node, const RegisterAnswer &answer);
    // A process has ended: its contexts close, and its pages are withdrawn. False: it had no
    // context open.
    bool bury(int pid);

  private:
    struct Context {
        int pid = 0; // 0: closed
        bool queue = false;
        uint64_t opened = 0; // times
    };

    struct Withdrawal {
        uint32_t first;              // page of the entered memory
        std::vector<uint32_t> pages; // to be forgotten by the node, the next one last
        uint64_t waiter;
    };

    Hardware &hardware_;
    unsigned contexts_a_node_;
    std::function<bool(uint64_t waiter, uint64_t time_ps)> ended_;
    std::vector<std::vector<Context>> contexts_;      // by node
    std::vector<std::deque<Withdrawal>> withdrawals_; // by node; the first one is under way

    bool owns(int pid, uint64_t node, uint64_t number) const;
    void set_ring(unsigned node, unsigned number, bool enabled);
    void set_queue(unsigned node, unsigned number, bool enabled);
    void close(unsigned node, unsigned number);
    void withdraw(unsigned node, uint32_t first, uint64_t waiter);
    void withdraw_all(unsigned node, int pid);
    void invalidate_next(unsigned node);
};

} // namespace sim
