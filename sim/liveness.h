// SPDX-License-Identifier: Apache-2.0
//
// Threads that do not call: which of them still run, sleep in the kernel, are being started or have
// ended. Real time decides here and nowhere else.

#pragma once

#include <functional>
#include <string>

#include "area.h"
#include "inbox.h"
#include "thread.h"

namespace sim
{

class Liveness
{
  public:
    // Called when a thread, named by its channel, or a whole process has ended.
    struct Ended {
        std::function<void(unsigned channel)> thread;
        std::function<void(int pid)> process;
    };

    Liveness(Threads &threads, Area &area, const Inboxes &inboxes, Ended ended);

    // Look at all threads that have the turn or are being started; now and then at all processes.
    // Throws JobError if a repeatable run cannot go on.
    void check();
    // What the user should know, as lines; empty: nothing new.
    std::string take_note();

  private:
    Threads &threads_;
    Area &area_;
    const Inboxes &inboxes_;
    Ended ended_;
    RealTime last_check_ = RealClock::now();
    std::string note_;

    void check_starter(unsigned channel);
    void check_runner(unsigned channel);
    void check_computing(Thread &thread);
    bool has_ended(unsigned channel) const;
};

// A line for each thread, which says what it does, for a message.
std::string describe(const Threads &threads);

} // namespace sim
