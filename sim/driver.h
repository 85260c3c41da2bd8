// SPDX-License-Identifier: Apache-2.0
//
// What a kernel's driver does for its node: which context and which pages are whose, and what the
// node's registers and tables say of it.
//
// Pages that are withdrawn may still be known to the node. It is told to forget them one after the
// other, and only when it knows none of them any more is the withdrawal over.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "../spec/sim_channel.h"
#include "cluster.h"

namespace sim
{

class Driver
{
  public:
    // Nobody waits for the end of a withdrawal.
    static constexpr uint64_t kNobody = 0;
    // A register that the driver writes (spec/velo_regs.rdl).
    static constexpr uint64_t kRegPages = 0x88;
    // Whose readings of registers are the driver's own.
    static constexpr uint64_t kReader = UINT64_MAX - 1;

    // `ended`: called when a withdrawal is over, with who waits for it and the time that he sees
    // it. False if he is no more.
    Driver(Cluster &cluster, std::function<bool(uint64_t waiter, uint64_t time_ps)> ended);

    // All of these take numbers that a process gave, and return an enum sim_status.

    // `number`: the context that is wanted, and then the one that was given; any free one if it is
    // taken. `opened`: how often it has been, this time included.
    int32_t open_context(int pid, uint64_t node, uint64_t &number, uint64_t &opened);
    int32_t close_context(int pid, uint64_t node, uint64_t number);
    // A context's queue of notifications. The node has it when it has taken these writes.
    int32_t open_queue(int pid, uint64_t node, uint64_t number, uint64_t time_ps);
    // Memory from an address on; `rights`: layout registered_page. `first`: its first page.
    int32_t enter_pages(int pid, uint64_t node, uint64_t number, uint64_t address, uint64_t bytes,
                        uint64_t rights, uint64_t &first);
    // Over when `ended` says so, at once even.
    int32_t withdraw_pages(int pid, uint64_t node, uint64_t first, uint64_t waiter);
    // Pages that were withdrawn may be used again.
    void forget_pages(unsigned node, uint32_t first);

    // The process that has a context open; 0: none.
    int owner(unsigned node, unsigned number) const;
    // The node has read a register for the driver.
    void take_answer(unsigned node, const RegisterAnswer &answer);
    // A process has ended: its contexts close, and its pages are withdrawn.
    void bury(int pid);

  private:
    struct Context {
        int pid = 0; // 0: closed
        bool queue = false;
        uint64_t opened = 0; // times
    };

    struct Withdrawal {
        uint32_t first;              // of what was entered
        std::vector<uint32_t> pages; // to be forgotten by the node, the next one last
        uint64_t waiter;
    };

    Cluster &cluster_;
    std::function<bool(uint64_t waiter, uint64_t time_ps)> ended_;
    std::vector<std::vector<Context>> contexts_;      // by node
    std::vector<std::deque<Withdrawal>> withdrawals_; // by node; the first one is under way

    bool owns(int pid, uint64_t node, uint64_t number) const;
    void set_ring(unsigned node, unsigned number, bool enabled);
    void set_queue(unsigned node, unsigned number, bool enabled);
    void close(unsigned node, unsigned number);
    void withdraw(unsigned node, uint32_t first, uint64_t waiter);
    void invalidate_next(unsigned node);
};

} // namespace sim
