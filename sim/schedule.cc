// SPDX-License-Identifier: Apache-2.0
#include "schedule.h"

#include <algorithm>
#include <utility>

#include "process.h"

namespace sim
{

namespace
{

using namespace std::chrono_literals;

// From the control port on, a write to a ring's register reaches the completer within these cycles.
constexpr uint64_t kSettleCycles = 16;

constexpr auto kIdleUntilError = 10s;
constexpr auto kOutsideUntilRelease = 100ms;
// Each takes as long as the machine needs to let the thread run: a busy one gets more time.
constexpr unsigned kReleasesUntilError = 100;
constexpr unsigned kStepsAtATime = 20000;
constexpr unsigned kWaitsUntilCheck = 4096, kTriesUntilCheck = 65536;
constexpr uint64_t kWaitRunningUs = 1000, kWaitUs = 10000;

// The time of the first poll that is not before `seen_ps`.
uint64_t poll_slot_ps(uint64_t first_ps, uint64_t period_ps, uint64_t seen_ps)
{
    if (seen_ps <= first_ps)
        return first_ps;
    if (period_ps == 0)
        return seen_ps;
    return first_ps + (seen_ps - first_ps + period_ps - 1) / period_ps * period_ps;
}

} // namespace

Schedule::Schedule(Hardware &hardware, Boards &boards, Area &area, const Processor &processor,
                   card::Cards &cards)
    : hardware_(hardware), boards_(boards), area_(area), processor_(processor), cards_(cards),
      calls_(hardware, boards, inboxes_,
             [this](uint64_t ticket, uint64_t time_ps) {
                 return resume(ticket, std::max(now_ps_, time_ps), 0);
             }),
      liveness_(
          threads_, area, inboxes_,
          {[this](unsigned channel) { free_channel(channel); }, [this](int pid) { bury(pid); }}),
      now_ps_(hardware.clock().start_ps(hardware.cycle())), last_progress_(RealClock::now()),
      boot_ps_(now_ps_)
{
    take_arrivals();
}

Totals Schedule::totals() const
{
    Totals totals = {now_ps_,          calls_taken_,       0, computed_ps_, inboxes_.totals(),
                     boards_.totals(), boards_.evaluated()};
    for (unsigned n = 0; n < hardware_.size(); n++)
        if (hardware_.hosts(n))
            totals.lost_accesses += hardware_.host(n).lost_accesses();
    return totals;
}

// While a thread runs, or may be about to, no other one is answered.
bool Schedule::somebody_runs() const
{
    return !area_.all_begun() || anyone(threads_, State::kRunning) ||
           anyone(threads_, State::kStarting);
}

bool Schedule::serve()
{
    calls_seen_ = area_.calls();
    // A rank that begins during the look at the channels may not be seen by it.
    bool had_begun = area_.all_begun();
    take_calls();
    bool ran = cards_.any() && run_cards();
    if (!had_begun || somebody_runs())
        return ran;
    return_from_outside();
    if (!anyone(threads_, State::kCalling) && !anyone(threads_, State::kReading))
        return ran;
    switch (advance()) {
    case Reached::kEvent:
        answer(static_cast<unsigned>(first_caller(threads_, &Thread::event_ps)));
        return true;
    case Reached::kNothing:
        return release_idle() || ran;
    default:
        return true;
    }
}

// ----- taking calls

void Schedule::take_calls()
{
    // In this order: whoever calls has claimed channels for those that it started before.
    bool has_called = area_.turn(running_) == SIM_TURN_CALL;
    if (is_running_alone()) {
        if (has_called)
            take_call(running_);
        return;
    }
    do
        look_at_all();
    while (area_.claims() != claims_seen_);
}

void Schedule::look_at_all()
{
    claims_seen_ = area_.claims();
    threads_.grow(area_.claimed_end());
    anyone_late_ = false;
    for (unsigned c = 0; c < threads_.size(); c++) {
        uint32_t turn = area_.turn(c);
        Thread &thread = threads_[c];
        if (!thread.attached && turn != SIM_TURN_CALL) {
            see_start(c, turn);
            anyone_late_ = anyone_late_ || turn != SIM_TURN_FREE;
            continue;
        }
        State state = thread.state;
        if (turn == SIM_TURN_CALL && state != State::kCalling && state != State::kReading &&
            state != State::kCameBack)
            take_call(c);
    }
}

// Then a call can come from nobody else. A thread that is not waited for was seen at a look at all:
// who decides that has all looked at again.
bool Schedule::is_running_alone() const
{
    return threads_.count(State::kRunning) == 1 && threads_[running_].state == State::kRunning &&
           !anyone(threads_, State::kStarting) && !anyone(threads_, State::kOutside) &&
           !anyone(threads_, State::kAside) && !anyone_late_ && area_.claims() == claims_seen_;
}

// This channel may have been claimed; no call has come from it yet.
void Schedule::see_start(unsigned channel, uint32_t turn)
{
    Thread &thread = threads_[channel];
    if (turn == SIM_TURN_FREE) {
        thread = Thread();
    } else if (thread.state == State::kFree && !thread.late) {
        thread.state = State::kStarting;
        thread.since = thread.started = RealClock::now();
    }
}

void Schedule::take_call(unsigned channel)
{
    Thread &thread = threads_[channel];
    calls_taken_++;
    const sim_call call = area_.channel(channel).call;
    computed_ps_ += call.computed_ps;
    if (!thread.attached) {
        attach(channel, call);
        return;
    }
    *thread.call = call;
    thread.time_ps = std::max(thread.time_ps, call.time_ps);
    if (cards_.any())
        thread.time_ps = std::max(thread.time_ps, hardware_.clock().start_ps(hardware_.cycle()));
    if (thread.state == State::kAside && thread.time_ps < now_ps_)
        area_.report(thread.late ? SIM_CAUSE_LATE : SIM_CAUSE_ASIDE, thread.rank,
                     thread.late ? "slept" : thread.slept_in);
    thread.begun = thread.late = thread.tries_again = false;
    wake_sleepers(thread.pid);
    if (call.op == SIM_DETACH) {
        free_channel(channel);
        return;
    }
    if (thread.state == State::kAside)
        thread.time_ps = std::max(thread.time_ps, now_ps_);
    bool again = thread.state == State::kOutside;
    if (call.op == SIM_OUTSIDE && !(again && call.outside.number != thread.outside)) {
        thread.outside = call.outside.number;
        reply(channel, SIM_OK);
        thread.state = State::kOutside;
        return;
    }
    if (again) {
        thread.state = State::kCameBack;
        return;
    }
    plan(channel);
}

void Schedule::attach(unsigned channel, const sim_call &call)
{
    Thread &thread = threads_[channel];
    const sim_channel &from = area_.channel(channel);
    bool was_late = thread.late;
    thread = Thread();
    *thread.call = call;
    thread.pid = from.pid;
    thread.tid = from.tid;
    if (call.op != SIM_ATTACH || thread.pid <= 0 || thread.tid <= 0) {
        thread.time_ps = call.time_ps;
        reply(channel, SIM_ERR_CALL);
        thread = Thread();
        return;
    }
    thread.attached = true;
    thread.rank = call.attach.rank;
    thread.repeatable = call.attach.is_repeatable != 0;
    thread.number = from.number;
    thread.begun = thread.number != 0;
    thread.order = orders_++;
    thread.time_ps = std::max(call.time_ps, now_ps_);
    report_start(thread, was_late, call.time_ps);
    processor_.bring(thread.tid);
    inboxes_.add_process(thread.pid);
    plan(channel);
}

// Did real time decide when this thread, which attaches, belongs to the cluster? Virtual time waits
// for the first thread of each rank, and for those that another thread has told of, which have
// numbers. Their clocks show the time of that.
void Schedule::report_start(const Thread &thread, bool was_late, uint64_t call_ps)
{
    bool has_gone_on = now_ps_ > std::max(call_ps, boot_ps_);
    bool is_known = thread.number != 0 ||
                    (thread.rank == SIM_NEVER ? !any_attached_ : ranks_.insert(thread.rank).second);
    any_attached_ = true;
    if (!is_known)
        area_.report(SIM_CAUSE_STRANGER, thread.rank, "");
    else if (was_late && has_gone_on)
        area_.report(SIM_CAUSE_LATE, thread.rank, "did not call at first");
}

// Where buffers are in their pages decides how long the node takes.
void Schedule::report_addresses(const Thread &thread)
{
    if (registered_.insert(thread.pid).second && process_has_random_addresses(thread.pid))
        area_.report(SIM_CAUSE_ADDRESSES, thread.rank, "");
}

// A thread of this process has had the turn, and may have woken others.
void Schedule::wake_sleepers(int pid)
{
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].state == State::kCalling && threads_[c].pid == pid &&
            threads_[c].call->op == SIM_SLEEP && area_.channel(c).woken_ps != 0)
            plan(c);
}

// Sets the time at which a call that was taken is answered.
void Schedule::plan(unsigned channel)
{
    Thread &thread = threads_[channel];
    thread.state = State::kCalling;
    thread.event_ps = thread.time_ps;
    if (thread.call->op == SIM_SLEEP) {
        uint64_t end_ps = thread.call->sleep.end_ps, woken_ps = area_.channel(channel).woken_ps;
        thread.event_ps =
            std::max(thread.time_ps, woken_ps != 0 ? std::min(end_ps, woken_ps) : end_ps);
    } else if (thread.call->op == SIM_POLL) {
        plan_poll(thread);
    }
}

void Schedule::plan_poll(Thread &thread)
{
    const auto &poll = thread.call->poll;
    thread.event_ps = thread.time_ps;
    if (poll.until_new == 0 || inboxes_.seen(thread.pid) != poll.arrivals)
        return;
    thread.event_ps = std::max(poll.deadline_ps, thread.time_ps);
    uint64_t seen_ps = inboxes_.next_ps(thread.pid);
    if (seen_ps != SIM_NEVER)
        thread.event_ps =
            std::min(thread.event_ps, poll_slot_ps(thread.time_ps, poll.period_ps, seen_ps));
}

// All threads that are outside come back together, at the time of the latest one.
void Schedule::return_from_outside()
{
    if (!anyone(threads_, State::kCameBack) || anyone(threads_, State::kOutside))
        return;
    if (calls_.take_opened_ports())
        settle_ports();
    uint64_t latest_ps = now_ps_;
    for (const Thread &thread : threads_)
        if (thread.state == State::kCameBack)
            latest_ps = std::max(latest_ps, thread.time_ps);
    for (unsigned c = 0; c < threads_.size(); c++) {
        Thread &thread = threads_[c];
        if (thread.state != State::kCameBack)
            continue;
        thread.time_ps = latest_ps;
        plan(c);
    }
}

// Opening a port takes no time of its thread, but the hardware needs time for it. The hardware gets
// the time here, for all ports at once: so the order in which processes open them does not matter.
void Schedule::settle_ports()
{
    for (unsigned n = 0; n < hardware_.size(); n++)
        while (hardware_.hosts(n) && !hardware_.host(n).control_is_empty())
            step(hardware_.cycle() + 1);
    for (uint64_t end = hardware_.cycle() + kSettleCycles; hardware_.cycle() < end;)
        step(end);
    take_arrivals();
    now_ps_ = std::max(now_ps_, hardware_.clock().start_ps(hardware_.cycle()));
}

// ----- stepping the hardware

// Step the hardware to the next event; an arrival meanwhile may bring an earlier one. Returns after
// some cycles in any case, so that signals are heeded.
Schedule::Reached Schedule::advance()
{
    const unsigned most = cards_.any() ? card::Cards::kStepsAtATime : kStepsAtATime;
    for (unsigned steps = 0; steps < most;) {
        int channel = first_caller(threads_, &Thread::event_ps);
        uint64_t event_ps =
            channel < 0 ? SIM_NEVER : threads_[static_cast<unsigned>(channel)].event_ps;
        bool barren = event_ps == SIM_NEVER;
        uint64_t end_cycle = barren ? UINT64_MAX : hardware_.clock().cycles_until(event_ps);
        if (!barren)
            barren_from_ = UINT64_MAX;
        else if (barren_from_ == UINT64_MAX)
            barren_from_ = hardware_.cycle();
        bool arrived = false;
        for (; !arrived && hardware_.cycle() < end_cycle && steps < most; steps++) {
            if (barren && nothing_comes())
                return Reached::kNothing;
            step(end_cycle);
            arrived = take_arrivals();
        }
        if (!arrived && hardware_.cycle() >= end_cycle)
            return Reached::kEvent;
    }
    return Reached::kNotYet;
}

// What guests have under way goes on, even while a thread runs. False: there is nothing.
bool Schedule::run_cards()
{
    cards_.serve();
    if (hardware_.is_quiet())
        return false;
    // What waits may wait for a cycle: there is one in any case.
    unsigned steps = 0;
    do
        step(hardware_.cycle() + 1);
    while (++steps < card::Cards::kStepsAtATime && !cards_.has_work());
    take_arrivals();
    hardware_.publish_until(hardware_.clock().start_ps(hardware_.cycle()));
    return true;
}

bool Schedule::nothing_comes() const
{
    return boards_.is_idle() && (hardware_.is_quiet() || hardware_.is_barren(barren_from_));
}

// Boards that are awake see each cycle.
void Schedule::step(uint64_t end_cycle)
{
    uint64_t cycle = hardware_.cycle();
    if (boards_.rest(cycle)) {
        hardware_.step(end_cycle);
        return;
    }
    boards_.step(cycle);
    hardware_.step(cycle + 1);
}

// Threads whose accesses to boards have ended go on.
bool Schedule::take_accesses()
{
    bool any = false;
    for (const Access &access : boards_.take_done())
        for (Thread &thread : threads_) {
            if (thread.state != State::kReading || thread.ticket != access.ticket)
                continue;
            thread.state = State::kCalling;
            thread.event_ps = std::max(now_ps_, access.time_ps);
            thread.result = access.status;
            if (thread.call->op != SIM_BOARD_OPEN)
                std::copy(access.words.begin(), access.words.end(), thread.call->slot.words);
            any = true;
        }
    return any;
}

bool Schedule::take_arrivals()
{
    bool any = take_accesses();
    for (unsigned n = 0; n < hardware_.size(); n++) {
        if (!hardware_.hosts(n))
            continue;
        HostSide &host = hardware_.host(n);
        if (host.arrivals.empty() && host.register_answers.empty())
            continue;
        any = true;
        for (const Arrival &arrival : host.arrivals)
            take_arrival(arrival);
        host.arrivals.clear();
        // An answer may lead to the next question.
        for (const RegisterAnswer &answer : std::exchange(host.register_answers, {}))
            take_answer(n, answer);
    }
    // To withdraw many pages takes many accesses to registers, one after the other.
    if (any && barren_from_ != UINT64_MAX)
        barren_from_ = hardware_.cycle();
    return any;
}

void Schedule::take_answer(unsigned node, const RegisterAnswer &answer)
{
    if (answer.reader == Driver::kReader)
        calls_.take_answer(node, answer);
    else
        resume(answer.reader, hardware_.answered_ps(answer.cycle), answer.value);
}

// The thread that waits with this ticket goes on at `event_ps`. False: it has ended.
bool Schedule::resume(uint64_t ticket, uint64_t event_ps, uint64_t value)
{
    for (Thread &thread : threads_)
        if (thread.state == State::kReading && thread.ticket == ticket) {
            thread.state = State::kCalling;
            thread.value = value;
            thread.event_ps = event_ps;
            return true;
        }
    return false;
}

void Schedule::take_arrival(const Arrival &arrival)
{
    inboxes_.count(arrival);
    int pid = calls_.owner(arrival.node, arrival.context);
    if (pid == 0)
        return;
    inboxes_.expect(pid, hardware_.visible_ps(arrival.cycle));
    for (Thread &thread : threads_)
        if (thread.state == State::kCalling && thread.pid == pid && thread.call->op == SIM_POLL)
            plan_poll(thread);
}

// ----- answers

void Schedule::answer(unsigned channel)
{
    Thread &thread = threads_[channel];
    uint64_t time_ps = thread.event_ps;
    now_ps_ = std::max(now_ps_, time_ps);
    hardware_.publish_until(time_ps);
    if (thread.ticket) { // what it waited for is there
        thread.ticket = 0;
        idle_ = false;
        if (thread.call->op == SIM_REGISTER_READ)
            thread.call->register_read.value = thread.value;
        thread.time_ps = time_ps;
        calls_.forget_pages(thread);
        reply(channel, std::exchange(thread.result, SIM_OK));
        return;
    }
    int32_t status = calls_.carry_out(thread, time_ps);
    if (thread.call->op == SIM_MEMORY_ENTER && status == SIM_OK)
        report_addresses(thread);
    if (calls_.take_urgent_ports())
        settle_ports();
    if (thread.tries_again) {
        thread.event_ps = time_ps + thread.call->store.period_ps;
        // The one that would make room may have died.
        if (++tries_ % kTriesUntilCheck == 0)
            liveness_.check();
        return;
    }
    if (thread.call->op != SIM_POLL || status != SIM_AGAIN)
        idle_ = false;
    if (thread.state != State::kCalling || thread.ticket)
        return;
    thread.time_ps = time_ps;
    reply(channel, status);
    if (thread.call->op == SIM_OUTSIDE)
        thread.state = State::kOutside;
}

// Gives the turn back to the thread.
void Schedule::reply(unsigned channel, int32_t status)
{
    Thread &thread = threads_[channel];
    thread.call->status = status;
    thread.call->time_ps = thread.time_ps;
    thread.call->computed_ps = 0;
    area_.channel(channel).call = *thread.call;
    area_.channel(channel).seen = thread.attached ? inboxes_.seen(thread.pid) : 0;
    area_.channel(channel).blind_ps = thread.attached ? blind_ps(thread.pid) : 0;
    thread.state = State::kRunning;
    thread.since = thread.started = last_progress_ = RealClock::now();
    thread.slept = false;
    thread.ran_ns = 0;
    running_ = channel;
    area_.show_now(now_ps_);
    area_.give_turn(channel, SIM_TURN_PROCESS);
}

// No process sees anything new before this time.
uint64_t Schedule::blind_ps(int pid)
{
    if (cards_.any())
        return 0;
    return std::min(inboxes_.next_ps(pid), hardware_.next_visible_ps());
}

// All threads wait for a message and none can come: let one go on, which may look at something
// else.
bool Schedule::release_idle()
{
    int lowest = first_caller(threads_, &Thread::time_ps);
    if (lowest < 0)
        throw JobError("everybody waits for a register's value and none is under way:\n" +
                       describe(threads_));
    auto now = RealClock::now();
    bool outside = anyone(threads_, State::kOutside);
    bool unseen =
        cards_.any() || std::any_of(threads_.begin(), threads_.end(), [](const Thread &thread) {
            return thread.state == State::kAside && !thread.late;
        });
    if ((outside || unseen) && now - last_progress_ < kOutsideUntilRelease)
        return false;
    if (!idle_) {
        idle_ = true;
        idle_since_ = now;
        releases_ = 0;
    } else if (!outside && !unseen && now - idle_since_ > kIdleUntilError) {
        throw JobError("everybody waits for messages and none is under way:\n" +
                       describe(threads_));
    } else if (outside && !unseen && ++releases_ > kReleasesUntilError) {
        // A fence ends when all ranks have come to it, and those in the cluster do not.
        throw JobError("ranks wait for messages and none is under way, others have come to "
                       "MPI_Finalize or another fence:\n" +
                       describe(threads_));
    }
    Thread &thread = threads_[static_cast<unsigned>(lowest)];
    if (outside)
        area_.report(SIM_CAUSE_FENCE, thread.rank, "");
    uint64_t period_ps =
        thread.call->op == SIM_POLL ? std::max<uint64_t>(thread.call->poll.period_ps, 1) : 1;
    uint64_t hardware_ps = hardware_.clock().start_ps(hardware_.cycle());
    thread.event_ps = poll_slot_ps(thread.time_ps, period_ps,
                                   std::max({hardware_ps, now_ps_, thread.time_ps + 1}));
    return true;
}

// ----- waiting and ends

void Schedule::wait()
{
    area_.wait_for_call(calls_seen_,
                        somebody_runs() || cards_.holds_line() ? kWaitRunningUs : kWaitUs);
    if (area_.calls() == calls_seen_ || ++waits_ % kWaitsUntilCheck == 0)
        liveness_.check();
}

void Schedule::free_channel(unsigned channel)
{
    calls_.forget_pages(threads_[channel]);
    threads_[channel] = Thread();
    area_.channel(channel).pid = 0;
    area_.give_turn(channel, SIM_TURN_FREE);
}

void Schedule::bury(int pid)
{
    uint64_t rank = SIM_NEVER;
    bool others = false;
    for (unsigned c = 0; c < threads_.size(); c++) {
        if (!threads_[c].attached)
            continue;
        others = others || threads_[c].pid != pid;
        if (threads_[c].pid != pid)
            continue;
        rank = threads_[c].rank;
        free_channel(c);
    }
    if (calls_.bury(pid) && others)
        area_.report(SIM_CAUSE_DEATH, rank, "");
    inboxes_.remove_process(pid);
    registered_.erase(pid);
}

} // namespace sim
