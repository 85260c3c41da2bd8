// SPDX-License-Identifier: Apache-2.0
//
// Who goes on, and when: the rule of virtual time.
//
// At most one thread runs at any moment, and it runs in no virtual time. When all others wait, the
// call with the earliest time is answered: the hardware is stepped to that time, never further, so
// nobody can be answered from a state that another one's earlier store would have changed. Between
// calls for the same time the rank decides, then the order in which its threads were started, then
// that of attaching, then the channel.
//
// Real time decides nothing, with four exceptions that are all about threads that do not call: a
// process that died gives its channels back; a thread that sleeps in the kernel is set aside, or,
// if the run must be repeatable, ends the job; one that was started and sleeps, or does not call
// for some seconds, is not waited for until it does; and with threads outside of the cluster, who
// polls in vain is let go on only after a while.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "../spec/sim_channel.h"
#include "area.h"
#include "cluster.h"
#include "driver.h"
#include "process.h"
#include "processor.h"

namespace sim
{

struct Totals {
    uint64_t now_ps = 0, messages = 0, notifications = 0, calls = 0, lost_accesses = 0;
    uint64_t computed_ps = 0; // of all threads together
    uint64_t hash = 0xCBF29CE484222325ULL;
};

class Schedule
{
  public:
    // Threads that attach are brought to the processor.
    Schedule(Cluster &cluster, Area &area, const Processor &processor);

    // Take what threads call for, answer one of them if nobody runs. Returns whether there was
    // anything to do; if not, wait().
    bool serve();
    // Until somebody calls or something has to be looked at. Throws JobError.
    void wait();
    Totals totals() const;
    std::string describe_waiting() const;

  private:
    using RealTime = std::chrono::steady_clock::time_point;

    enum class State {
        kFree,
        kStarting, // is being started, and has not called yet
        kRunning,  // has the turn
        kCalling,  // is answered at event_ps
        kReading,  // a register, the answer is to come
        kOutside,  // has the turn, but nobody waits for it
        kCameBack, // has called, and others are still outside
        kAside,    // has the turn, but sleeps
    };

    struct Thread {
        State state = State::kFree;
        bool attached = false, repeatable = false;
        int pid = 0, tid = 0;
        uint64_t rank = SIM_NEVER, number = 0, order = 0;
        uint64_t time_ps = 0;  // its clock
        uint64_t event_ps = 0; // when its call is answered, as far as is known; SIM_NEVER
        uint64_t outside = 0;  // number of SIM_OUTSIDE
        uint64_t ticket = 0, value = 0;
        // What it has called for, and the answer. A copy: the process may change its channel at any
        // time, whether it has the turn or not.
        sim_call call{};
        // What it withdraws: forgotten when it is told.
        unsigned pages_node = 0;
        uint32_t pages_first = SIM_PAGES;
        RealTime since{}; // when it got the turn, or was seen to run
        RealTime started{};
        uint64_t runs = 0;
        uint64_t computed_ns = 0; // of its process, when others were last seen to compute for it
        bool slept = false;
        bool begun = false; // was started, and has done nothing but attach
        bool late = false;  // was started, and is not waited for
    };

    struct Process {
        uint64_t arrived = 0;
        std::deque<uint64_t> coming_ps; // what will have arrived
    };

    Cluster &cluster_;
    Area &area_;
    const Processor &processor_;
    Driver driver_;
    std::vector<Thread> threads_; // by channel; as many as were ever claimed
    std::map<int, Process> processes_;
    Totals totals_;
    uint64_t orders_ = 0, tickets_ = 0;
    uint32_t calls_seen_ = 0;
    bool ports_opened_ = false; // and the hardware has not been given time for it
    RealTime last_progress_, last_check_, idle_since_;
    bool idle_ = false;
    // Cycle since which nobody waits for a time, and nothing has come; UINT64_MAX: somebody does.
    uint64_t barren_from_ = UINT64_MAX;
    unsigned waits_ = 0;

    // --- calls ---
    void take_calls();
    void take_call(unsigned channel);
    void see_start(unsigned channel, uint32_t turn);
    void attach(unsigned channel, const sim_call &call);
    void wake_sleepers(int pid);
    void plan(unsigned channel);
    void plan_poll(unsigned channel);
    void return_from_outside();
    void settle_ports();
    bool anyone(State state) const;
    bool somebody_runs() const;

    // --- answers ---
    int next() const;
    bool goes_before(unsigned a, uint64_t a_ps, unsigned b, uint64_t b_ps) const;
    enum class Reached { kEvent, kNothing, kNotYet };
    Reached advance();
    bool is_barren() const;
    bool take_arrivals();
    void take_arrival(const Arrival &arrival);
    void take_answer(unsigned node, const RegisterAnswer &answer);
    void suspend(Thread &thread);
    bool resume(uint64_t ticket, uint64_t event_ps, uint64_t value);
    void answer(unsigned channel);
    int32_t act(unsigned channel, uint64_t time_ps);
    void reply(unsigned channel, int32_t status);
    bool release_idle();

    int32_t open_port(unsigned channel);
    int32_t store(unsigned channel, uint64_t time_ps);
    int32_t write_register(unsigned channel, uint64_t time_ps);
    int32_t begin_read(unsigned channel, uint64_t time_ps, uint64_t node, uint64_t offset);
    int32_t poll(unsigned channel, uint64_t time_ps);
    uint64_t arrived(int pid, uint64_t time_ps);

    // --- registered pages ---
    int32_t open_queue(unsigned channel, uint64_t time_ps);
    int32_t withdraw_pages(unsigned channel);
    void forget_pages(Thread &thread);

    // --- threads that do not call ---
    void check_threads();
    void check_starter(unsigned channel);
    void check_runner(unsigned channel);
    bool sleeps(Thread &thread);
    bool others_compute(Thread &thread);
    bool is_late(Thread &thread);
    bool has_ended(unsigned channel);
    void free_channel(unsigned channel);
    void bury(int pid);
    std::string describe(unsigned channel) const;
};

} // namespace sim
