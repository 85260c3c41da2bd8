// SPDX-License-Identifier: Apache-2.0
//
// Which thread goes on, and when: the rule of virtual time.
//
// At most one thread runs at any moment, and it runs in no virtual time. When all others wait, the
// call with the earliest time is answered: the hardware is stepped to that time, never further, so
// nobody can be answered from a state that another one's earlier store would have changed. Between
// calls for the same time the rank decides, then the order in which its threads were started, then
// that of attaching.
//
// Real time decides nothing, with four exceptions that are all about threads that do not call
// (liveness.h): a process that died gives its channels back; a thread that sleeps in the kernel is
// set aside, or, if the run must be repeatable, ends the job; one that was started and sleeps, or
// does not call for some seconds, is not waited for until it does; and while threads are outside of
// the cluster, a thread that polls in vain is let go on only after a while.

#pragma once

#include <cstdint>

#include "area.h"
#include "calls.h"
#include "cluster.h"
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

  private:
    Cluster &cluster_;
    Area &area_;
    const Processor &processor_;
    Threads threads_;
    Inboxes inboxes_;
    Calls calls_;
    Liveness liveness_;
    uint64_t now_ps_ = 0, calls_taken_ = 0, computed_ps_ = 0;
    uint64_t orders_ = 0;
    uint32_t calls_seen_ = 0;
    RealTime last_progress_, idle_since_;
    bool idle_ = false;
    // Cycle since which nobody waits for a time, and nothing has come; UINT64_MAX: somebody does.
    uint64_t barren_from_ = UINT64_MAX;
    unsigned waits_ = 0;

    // --- taking calls ---
    void take_calls();
    void take_call(unsigned channel);
    void see_start(unsigned channel, uint32_t turn);
    void attach(unsigned channel, const sim_call &call);
    void wake_sleepers(int pid);
    void plan(unsigned channel);
    void plan_poll(Thread &thread);
    void return_from_outside();
    void settle_ports();
    bool somebody_runs() const;

    // --- stepping the hardware ---
    enum class Reached { kEvent, kNothing, kNotYet };
    Reached advance();
    bool is_barren() const;
    bool take_arrivals();
    void take_arrival(const Arrival &arrival);
    void take_answer(unsigned node, const RegisterAnswer &answer);
    bool resume(uint64_t ticket, uint64_t event_ps, uint64_t value);

    // --- answers ---
    void answer(unsigned channel);
    void reply(unsigned channel, int32_t status);
    bool release_idle();

    // --- threads that ended ---
    void free_channel(unsigned channel);
    void bury(int pid);
};

} // namespace sim
