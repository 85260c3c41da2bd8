// SPDX-License-Identifier: Apache-2.0
//
// The rule of virtual time: it decides which thread goes on, and when.
//
// At most one thread runs at any moment, and it runs in no virtual time. When all threads wait, the
// call with the earliest time is answered. The hardware is stepped to that time, never further, so
// no answer comes from a state that an earlier store of another thread would have changed. Between
// calls for the same time the rank decides, then the order in which its threads were started, then
// that of attaching.
//
// Real time decides nothing, with four exceptions for threads that do not call (liveness.h):
//  * A process that died gives its channels back.
//  * A thread that sleeps in the kernel is set aside. If the run must be repeatable, it ends the
//  job.
//  * A thread that was started and sleeps, or does not call for some seconds, is not waited for
//    until it calls.
//  * While threads are outside of the cluster, a thread that polls in vain goes on only after a
//    while.
//
// Guests with cards are outside of virtual time. Where there are some, the hardware goes on while
// anything is under way, whatever threads do, and a call is not earlier than the hardware.

#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "area.h"
#include "calls.h"
#include "card/cards.h"
#include "hardware.h"
#include "inbox.h"
#include "liveness.h"
#include "processor.h"
#include "thread.h"

namespace sim
{

struct Totals {
    uint64_t now_ps = 0, calls = 0, lost_accesses = 0;
    uint64_t computed_ps = 0; // of all threads together
    ArrivalTotals arrivals;
    NetTotals net;             // of boards
    uint64_t board_cycles = 0; // evaluated, of all boards together
};

class Schedule
{
  public:
    // Threads that attach are brought to the processor.
    Schedule(Hardware &hardware, Boards &boards, Area &area, const Processor &processor,
             card::Cards &cards);

    // Take the calls of threads; answer one of them if no thread runs. False: there was nothing to
    // do, so wait().
    bool serve();
    // Returns when a thread calls or it is time for another look. Throws JobError.
    void wait();
    // What the user should know, as lines; empty: nothing new.
    std::string take_note() { return liveness_.take_note(); }
    Totals totals() const;

  private:
    Hardware &hardware_;
    Boards &boards_;
    Area &area_;
    const Processor &processor_;
    card::Cards &cards_;
    Threads threads_;
    Inboxes inboxes_;
    Calls calls_;
    Liveness liveness_;
    uint64_t now_ps_ = 0, calls_taken_ = 0, computed_ps_ = 0;
    uint64_t orders_ = 0;
    uint32_t calls_seen_ = 0;
    RealTime last_progress_, idle_since_;
    bool idle_ = false;
    unsigned releases_ = 0; // while it was idle
    // Since this cycle no thread waits for a time, and nothing has come; UINT64_MAX: a thread does.
    uint64_t barren_from_ = UINT64_MAX;
    unsigned waits_ = 0, tries_ = 0;
    unsigned running_ = 0;     // the channel that was answered last
    uint32_t claims_seen_ = 0; // of channels, when all were last looked at
    bool anyone_late_ = false; // a thread has a channel and has not called yet
    uint64_t boot_ps_;         // when virtual time began
    std::set<uint64_t> ranks_; // that have attached
    bool any_attached_ = false;
    std::set<int> registered_; // processes that have registered memory

    // --- taking calls ---
    void take_calls();
    void look_at_all();
    bool is_running_alone() const;
    void take_call(unsigned channel);
    void see_start(unsigned channel, uint32_t turn);
    void attach(unsigned channel, const sim_call &call);
    void report_start(const Thread &thread, bool was_late, uint64_t call_ps);
    void report_addresses(const Thread &thread);
    void wake_sleepers(int pid);
    void plan(unsigned channel);
    void plan_poll(Thread &thread);
    void return_from_outside();
    void settle_ports();
    bool somebody_runs() const;

    // --- stepping the hardware ---
    enum class Reached { kEvent, kNothing, kNotYet };
    Reached advance();
    bool nothing_comes() const;
    bool run_cards();
    void step(uint64_t end_cycle);
    bool take_accesses();
    bool take_arrivals();
    void take_arrival(const Arrival &arrival);
    void take_answer(unsigned node, const RegisterAnswer &answer);
    bool resume(uint64_t ticket, uint64_t event_ps, uint64_t value);

    // --- answers ---
    void answer(unsigned channel);
    void reply(unsigned channel, int32_t status);
    uint64_t blind_ps(int pid);
    bool release_idle();

    // --- threads that ended ---
    void free_channel(unsigned channel);
    void bury(int pid);
};

} // namespace sim
