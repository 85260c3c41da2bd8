// SPDX-License-Identifier: Apache-2.0
#include "liveness.h"

#include <iterator>
#include <utility>

#include "host_model.h"
#include "process.h"

namespace sim
{

namespace
{

using namespace std::chrono_literals;

constexpr auto kSleepUntilAside = 1ms;
// A thread that waits may wake now and then, for less than this part of the time.
constexpr int kAwakeOneIn = 4;
constexpr auto kSleepUntilError = 10s;
// If a process uses this much processor time while one of its threads sleeps, its other threads are
// busy.
constexpr uint64_t kComputesFromNs = 100000000;
constexpr auto kStartingUntilLate = 5s;
// A rank may wait for a disk before its first call. If it waits for other ranks instead, all stand
// still for this long.
constexpr auto kRankSleepsUntilLate = 500ms;
// A thread that has the turn for so much processor time may poll memory.
constexpr uint64_t kComputesUntilNoteNs = 3000000000;
constexpr auto kCheckEvery = 50ms;

// Is the thread asleep, as at the last look, and has it not run in between?
bool sleeps(Thread &thread)
{
    char state = thread_state(thread.pid, thread.tid);
    uint64_t runs = thread_runs(thread.pid, thread.tid).times;
    bool asleep = state == 'S' || state == 'D';
    bool slept = asleep && thread.slept && thread.runs == runs;
    if (thread.runs != runs || !asleep)
        thread.since = RealClock::now();
    thread.slept = asleep;
    thread.runs = runs;
    return slept;
}

// Has it slept for some time, awake for moments only? A thread that looks at something once in a
// millisecond is never found in one sleep at two looks.
bool naps(Thread &thread)
{
    char state = thread_state(thread.pid, thread.tid);
    uint64_t ran_ns = thread_runs(thread.pid, thread.tid).ran_ns;
    auto now = RealClock::now();
    bool asleep = state == 'S' || state == 'D';
    auto awake = std::chrono::nanoseconds(ran_ns - thread.slept_from_ns);
    if (!asleep || !thread.slept || awake * kAwakeOneIn > now - thread.since) {
        thread.since = now;
        thread.slept_from_ns = ran_ns;
    }
    thread.slept = asleep;
    return asleep && now - thread.since >= kSleepUntilAside;
}

// A thread that was started may have something else to do than to call. But it may also wait for
// memory, or for a lock that another thread of its process holds: that one goes on as soon as the
// machine lets it, however long this takes on a busy one, and so does this one.
bool is_late(Thread &thread)
{
    auto now = RealClock::now();
    bool sleeps_long = thread.tid && sleeps(thread) && now - thread.since >= kSleepUntilAside &&
                       thread_state(thread.pid, thread.tid) == 'S' && !process_goes_on(thread.pid);
    return sleeps_long || now - thread.started >= kStartingUntilLate;
}

// A thread sleeps: do others of its process compute for it, as OpenMP's do? A thread that only
// waits wakes now and then, which takes little processor time, however busy the machine is.
bool others_compute(Thread &thread)
{
    uint64_t computed_ns = process_computed_ns(thread.pid);
    if (computed_ns < thread.computed_ns + kComputesFromNs)
        return false;
    thread.computed_ns = computed_ns;
    return true;
}

// A rank's main thread may compute as long as it likes before its first call.
bool rank_is_late(Thread &thread)
{
    return thread.tid && sleeps(thread) && RealClock::now() - thread.since >= kRankSleepsUntilLate;
}

const char *op_name(uint32_t op)
{
    static const char *const names[] = {"?",
                                        "attach",
                                        "port open",
                                        "port close",
                                        "store",
                                        "register write",
                                        "register read",
                                        "poll",
                                        "sleep",
                                        "outside",
                                        "detach",
                                        "queue open",
                                        "memory enter",
                                        "memory withdraw",
                                        "board open",
                                        "board close",
                                        "slot store",
                                        "slot load",
                                        "slot lines",
                                        "slot await"};
    return op < std::size(names) ? names[op] : names[0];
}

std::string in_ns(uint64_t time_ps)
{
    return time_ps == SIM_NEVER ? "never" : std::to_string(time_ps / kPsPerNs) + " ns";
}

std::string name(const Thread &thread)
{
    return "process " + std::to_string(thread.pid) + " thread " + std::to_string(thread.tid) +
           (thread.rank == SIM_NEVER ? "" : " rank " + std::to_string(thread.rank)) + " at " +
           in_ns(thread.time_ps);
}

std::string describe(const Thread &thread)
{
    std::string text = name(thread) + ": ";
    switch (thread.state) {
    case State::kStarting:
        return text + "is being started";
    case State::kRunning:
    case State::kAside:
        return text + "has the turn and sleeps in " + thread_sleeps_in(thread.pid, thread.tid);
    case State::kOutside:
        return text + "waits in a fence of the launcher (MPI_Finalize, MPI_Init, …), in " +
               thread_sleeps_in(thread.pid, thread.tid);
    case State::kCameBack:
        return text + "has left a fence of the launcher and waits for those who are in it";
    default:
        text += op_name(thread.call->op);
        if (thread.call->op == SIM_POLL)
            text += ", " + std::to_string(thread.call->poll.arrivals) +
                    " arrivals seen, deadline " + in_ns(thread.call->poll.deadline_ps);
        return text;
    }
}

} // namespace

Liveness::Liveness(Threads &threads, Area &area, const Inboxes &inboxes, Ended ended)
    : threads_(threads), area_(area), inboxes_(inboxes), ended_(std::move(ended))
{
}

void Liveness::check()
{
    auto now = RealClock::now();
    bool all = now - last_check_ >= kCheckEvery;
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].state == State::kRunning)
            check_runner(c);
        else if (threads_[c].state == State::kStarting && (all || area_.channel(c).number != 0))
            check_starter(c); // Ranks may be many, and take long: who looks often holds them up.
    if (!all)
        return;
    last_check_ = now;
    for (int pid : inboxes_.dead())
        ended_.process(pid);
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].late && has_ended(c))
            ended_.thread(c);
}

// Has a thread ended that was started and has not called?
bool Liveness::has_ended(unsigned channel) const
{
    int pid = area_.channel(channel).pid, tid = area_.channel(channel).tid;
    return pid && (!process_is_alive(pid) || (tid && !thread_is_alive(pid, tid)));
}

void Liveness::check_starter(unsigned channel)
{
    Thread &thread = threads_[channel];
    thread.pid = area_.channel(channel).pid;
    thread.tid = area_.channel(channel).tid;
    if (has_ended(channel)) {
        ended_.thread(channel);
    } else if (area_.channel(channel).number == 0 ? rank_is_late(thread) : is_late(thread)) {
        thread.state = State::kFree;
        thread.late = true;
    }
}

// It has the turn. Does it still run?
void Liveness::check_runner(unsigned channel)
{
    Thread &thread = threads_[channel];
    bool thread_lives = thread_is_alive(thread.pid, thread.tid);
    if (!process_is_alive(thread.pid)) {
        ended_.process(thread.pid);
        return;
    }
    if (!thread_lives) {
        ended_.thread(channel);
        return;
    }
    if (area_.turn(channel) != SIM_TURN_PROCESS)
        return;
    if (thread.begun) {
        thread.late = is_late(thread);
        if (thread.late)
            thread.state = State::kAside;
        return;
    }
    bool rests = thread.repeatable ? sleeps(thread) : naps(thread);
    if (!rests) {
        check_computing(thread);
        return;
    }
    if (!thread.repeatable) {
        thread.state = State::kAside;
        thread.slept_in = thread_sleeps_in(thread.pid, thread.tid);
        return;
    }
    if (others_compute(thread))
        thread.since = RealClock::now();
    if (RealClock::now() - thread.since >= kSleepUntilError)
        throw JobError("a repeatable run cannot go on: " + describe(thread) +
                       "; if it waits for a process that it has started, which naps or reads a "
                       "clock: virtual time passes while the one waits for the other by read(), "
                       "write(), poll() or waitpid()");
}

// It runs, in no virtual time. What it does cannot be seen from here: it computes, or it polls
// memory and will find what it found before.
void Liveness::check_computing(Thread &thread)
{
    uint64_t ran_ns = thread_runs(thread.pid, thread.tid).ran_ns;
    if (thread.ran_ns == 0)
        thread.ran_ns = ran_ns;
    if (thread.noted || ran_ns - thread.ran_ns < kComputesUntilNoteNs)
        return;
    thread.noted = true;
    note_ += name(thread) + " has computed for " +
             std::to_string((ran_ns - thread.ran_ns) / 1000000000) +
             " s without a call. If it polls memory until a peer has written there, it goes on for "
             "ever: virtual time passes in calls only. Put one into that loop: sched_yield(), "
             "velo_rma_progress(), rma2_noti_probe()\n";
}

std::string Liveness::take_note() { return std::exchange(note_, {}); }

std::string describe(const Threads &threads)
{
    std::string text;
    for (const Thread &thread : threads)
        if (thread.attached || thread.state == State::kStarting)
            text += "  " + describe(thread) + "\n";
    return text;
}

} // namespace sim
