// SPDX-License-Identifier: Apache-2.0
//
// A thread of the cluster, as the simulator knows it, and which of two threads goes first.

#pragma once

#include <array>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../spec/sim_channel.h"

namespace sim
{

using RealClock = std::chrono::steady_clock;
using RealTime = RealClock::time_point;

enum class State : uint8_t {
    kFree,
    kStarting, // is being started, and has not called yet
    kRunning,  // has the turn
    kCalling,  // is answered at event_ps
    kReading,  // waits for its ticket: a register's value, a slot's, or the end of a withdrawal
    kOutside,  // has the turn, but nobody waits for it
    kCameBack, // has called, and others are still outside
    kAside,    // has the turn, but sleeps
};
constexpr size_t kStates = 8;

// A thread's state. Counts how many threads are in each: where there are a thousand, the question
// whether anyone is in a state comes up several times in each call.
class CountedState
{
  public:
    using Counts = std::array<unsigned, kStates>;

    CountedState() = default;
    explicit CountedState(Counts &counts) : counts_(&counts) { add(1); }
    CountedState(CountedState &&other) noexcept
        : counts_(std::exchange(other.counts_, nullptr)), state_(other.state_)
    {
    }
    ~CountedState() { add(UINT_MAX); }
    CountedState &operator=(State state)
    {
        add(UINT_MAX);
        state_ = state;
        add(1);
        return *this;
    }
    // Of a thread that begins anew: it is counted where it was.
    CountedState &operator=(const CountedState &other)
    {
        if (this != &other)
            *this = other.state_;
        return *this;
    }
    operator State() const { return state_; }

  private:
    Counts *counts_ = nullptr; // nullptr: it is not counted
    State state_ = State::kFree;

    void add(unsigned change)
    {
        if (counts_)
            (*counts_)[static_cast<size_t>(state_)] += change;
    }
};

struct Thread {
    Thread() = default;
    explicit Thread(CountedState::Counts &counts) : state(counts) {}

    CountedState state;
    bool attached = false, repeatable = false;
    int pid = 0, tid = 0;
    uint64_t rank = SIM_NEVER, number = 0, order = 0;
    uint64_t time_ps = 0;  // its clock
    uint64_t event_ps = 0; // when its call is answered, as far as is known; SIM_NEVER
    uint64_t outside = 0;  // number of SIM_OUTSIDE
    uint64_t ticket = 0, value = 0;
    int32_t result = SIM_OK; // of what it waits for
    // Its call, and then the answer. A copy: the process may change its channel at any time, even
    // without the turn. Apart: who looks for a thread among many looks at less memory.
    std::unique_ptr<sim_call> call = std::make_unique<sim_call>();
    // The pages that it withdraws. They are free again when the thread is told that the node does
    // not use them any more.
    unsigned pages_node = 0;
    uint32_t pages_first = SIM_PAGES;
    RealTime since{}; // when it got the turn, or was seen to run
    RealTime started{};
    uint64_t slept_from_ns = 0; // its processor time at `since`, in a run that is not repeatable
    uint64_t runs = 0;
    uint64_t computed_ns = 0; // of its process, when others were last seen to compute for it
    uint64_t ran_ns = 0;      // its processor time at the first look since its call; 0: no look yet
    bool tries_again = false; // its store, in each period of the call
    bool noted = false;       // it has computed for long, and the user was told
    bool slept = false;
    bool begun = false;   // was started, and has done nothing but attach
    bool late = false;    // was started, and is not waited for
    std::string slept_in; // the system call, of one that was set aside
};

// By channel; as many as were ever claimed.
class Threads : public std::vector<Thread>
{
  public:
    Threads() = default;
    Threads(const Threads &) = delete;
    Threads &operator=(const Threads &) = delete;
    ~Threads() { clear(); } // While there are counts.

    // There are so many channels now; never fewer than before.
    void grow(size_t channels)
    {
        while (size() < channels)
            emplace_back(counts_);
    }
    unsigned count(State state) const { return counts_[static_cast<size_t>(state)]; }

  private:
    // At a place of its own: threads that are counted point to it.
    std::unique_ptr<CountedState::Counts> owned_ = std::make_unique<CountedState::Counts>();
    CountedState::Counts &counts_ = *owned_;
};

inline bool anyone(const Threads &threads, State state) { return threads.count(state) != 0; }

// The channel of the thread that calls and has the earliest time of this kind; -1: nobody calls.
int first_caller(const Threads &threads, uint64_t Thread::*time_ps);

} // namespace sim
