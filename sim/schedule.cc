// SPDX-License-Identifier: Apache-2.0
#include "schedule.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "velo/spec.h"

namespace sim
{

namespace
{

using namespace std::chrono_literals;
using RealClock = std::chrono::steady_clock;

// What a ring's register takes from the control port on until the completer goes by it.
constexpr uint64_t kSettleCycles = 16;

constexpr auto kSleepUntilAside = 1ms;
constexpr auto kSleepUntilError = 10s;
// Processor time of a process meanwhile, from which on its other threads are busy.
constexpr uint64_t kComputesFromNs = 100000000;
constexpr auto kStartingUntilLate = 5s;
constexpr auto kIdleUntilError = 10s;
constexpr auto kOutsideUntilRelease = 100ms;
constexpr auto kCheckEvery = 50ms;
constexpr unsigned kStepsAtATime = 20000;
// If nodes do not come to rest, for errors on a cable say: where nothing arrives, no register's
// value comes and no memory is read or written so long, nothing is under way. (An operation on
// remote memory arrives at its end.)
constexpr uint64_t kBarrenCycles = 20000;
constexpr unsigned kWaitsUntilCheck = 4096;
constexpr uint64_t kWaitRunningUs = 1000, kWaitUs = 10000;

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
                                        "memory withdraw"};
    return op < std::size(names) ? names[op] : names[0];
}

std::string in_ns(uint64_t time_ps)
{
    return time_ps == SIM_NEVER ? "never" : std::to_string(time_ps / kPsPerNs) + " ns";
}

// The first poll that sees what is there from `seen_ps` on.
uint64_t poll_slot_ps(uint64_t first_ps, uint64_t period_ps, uint64_t seen_ps)
{
    if (seen_ps <= first_ps)
        return first_ps;
    if (period_ps == 0)
        return seen_ps;
    return first_ps + (seen_ps - first_ps + period_ps - 1) / period_ps * period_ps;
}

void mix(uint64_t &hash, uint64_t value) // FNV-1a
{
    for (unsigned i = 0; i < sizeof value; i++) {
        hash ^= (value >> (8 * i)) & 0xFF;
        hash *= 0x100000001B3ULL;
    }
}

} // namespace

Schedule::Schedule(Cluster &cluster, Area &area, const Processor &processor)
    : cluster_(cluster), area_(area), processor_(processor),
      driver_(cluster,
              [this](uint64_t ticket, uint64_t time_ps) {
                  return resume(ticket, std::max(totals_.now_ps, time_ps), 0);
              }),
      last_progress_(RealClock::now()), last_check_(last_progress_)
{
    totals_.now_ps = cluster.clock().start_ps(cluster.cycle());
    take_arrivals();
}

Totals Schedule::totals() const
{
    Totals totals = totals_;
    for (unsigned n = 0; n < cluster_.size(); n++)
        totals.lost_accesses += cluster_.node(n).lost_accesses();
    return totals;
}

bool Schedule::anyone(State state) const
{
    return std::any_of(threads_.begin(), threads_.end(),
                       [&](const Thread &thread) { return thread.state == state; });
}

// Nobody else is answered meanwhile.
bool Schedule::somebody_runs() const { return anyone(State::kRunning) || anyone(State::kStarting); }

bool Schedule::serve()
{
    calls_seen_ = area_.calls();
    take_calls();
    if (somebody_runs())
        return false;
    return_from_outside();
    if (!anyone(State::kCalling) && !anyone(State::kReading))
        return false;
    switch (advance()) {
    case Reached::kEvent:
        answer(static_cast<unsigned>(next()));
        return true;
    case Reached::kNothing:
        return release_idle();
    default:
        return true;
    }
}

// ----- calls
// --------------------------------------------------------------------------------------

void Schedule::take_calls()
{
    for (unsigned c = 0; c < SIM_CHANNELS_MAX; c++) {
        uint32_t turn = area_.turn(c);
        if (c >= threads_.size()) {
            // Channels are claimed from the lowest on.
            if (turn == SIM_TURN_FREE)
                return;
            threads_.resize(c + 1);
        }
        Thread &thread = threads_[c];
        if (!thread.attached && turn != SIM_TURN_CALL) {
            see_start(c, turn);
            continue;
        }
        State state = thread.state;
        if (turn == SIM_TURN_CALL && state != State::kCalling && state != State::kReading &&
            state != State::kCameBack)
            take_call(c);
    }
}

// A channel that somebody has claimed, and nobody has called from yet.
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
    totals_.calls++;
    const sim_call call = area_.channel(channel).call;
    totals_.computed_ps += call.computed_ps;
    if (!thread.attached) {
        attach(channel, call);
        return;
    }
    thread.call = call;
    thread.time_ps = std::max(thread.time_ps, call.time_ps);
    thread.begun = thread.late = false;
    wake_sleepers(thread.pid);
    if (call.op == SIM_DETACH) {
        free_channel(channel);
        return;
    }
    if (thread.state == State::kAside)
        thread.time_ps = std::max(thread.time_ps, totals_.now_ps);
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
    thread = Thread();
    thread.call = call;
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
    thread.time_ps = std::max(call.time_ps, totals_.now_ps);
    processor_.bring(thread.tid);
    processes_[thread.pid];
    plan(channel);
}

// A thread of this process has had the turn, and perhaps told others that they go on.
void Schedule::wake_sleepers(int pid)
{
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].state == State::kCalling && threads_[c].pid == pid &&
            threads_[c].call.op == SIM_SLEEP && area_.channel(c).woken_ps != 0)
            plan(c);
}

// When a call that was taken is to be answered.
void Schedule::plan(unsigned channel)
{
    Thread &thread = threads_[channel];
    thread.state = State::kCalling;
    thread.event_ps = thread.time_ps;
    if (thread.call.op == SIM_SLEEP) {
        uint64_t end_ps = thread.call.sleep.end_ps, woken_ps = area_.channel(channel).woken_ps;
        thread.event_ps =
            std::max(thread.time_ps, woken_ps != 0 ? std::min(end_ps, woken_ps) : end_ps);
    } else if (thread.call.op == SIM_POLL) {
        plan_poll(channel);
    }
}

void Schedule::plan_poll(unsigned channel)
{
    Thread &thread = threads_[channel];
    const auto &poll = thread.call.poll;
    const Process &process = processes_[thread.pid];
    if (poll.until_new == 0 || process.arrived != poll.arrivals) {
        thread.event_ps = thread.time_ps;
        return;
    }
    uint64_t deadline_ps = std::max(poll.deadline_ps, thread.time_ps);
    thread.event_ps = deadline_ps;
    if (!process.coming_ps.empty())
        thread.event_ps = std::min(
            deadline_ps, poll_slot_ps(thread.time_ps, poll.period_ps, process.coming_ps.front()));
}

// All who are outside come back together, at the time of the last one.
void Schedule::return_from_outside()
{
    if (!anyone(State::kCameBack) || anyone(State::kOutside))
        return;
    settle_ports();
    uint64_t latest_ps = totals_.now_ps;
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

// Opening ports takes nobody's time, but the hardware's. It gets it here, at once for all: then it
// does not matter in which order processes came to open theirs.
void Schedule::settle_ports()
{
    if (!ports_opened_)
        return;
    ports_opened_ = false;
    for (unsigned n = 0; n < cluster_.size(); n++)
        while (!cluster_.node(n).control_is_empty())
            cluster_.step(cluster_.cycle() + 1);
    for (uint64_t end = cluster_.cycle() + kSettleCycles; cluster_.cycle() < end;)
        cluster_.step(end);
    take_arrivals();
    totals_.now_ps = std::max(totals_.now_ps, cluster_.clock().start_ps(cluster_.cycle()));
}

// ----- what comes next
// ----------------------------------------------------------------------------

// Of two channels at their times.
bool Schedule::goes_before(unsigned a, uint64_t a_ps, unsigned b, uint64_t b_ps) const
{
    const Thread &x = threads_[a], &y = threads_[b];
    return std::tie(a_ps, x.rank, x.number, x.order, a) <
           std::tie(b_ps, y.rank, y.number, y.order, b);
}

// The channel that is answered next; -1: none.
int Schedule::next() const
{
    int first = -1;
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].state == State::kCalling &&
            (first < 0 || goes_before(c, threads_[c].event_ps, static_cast<unsigned>(first),
                                      threads_[static_cast<unsigned>(first)].event_ps)))
            first = static_cast<int>(c);
    return first;
}

// Step the hardware to the next event; what arrives meanwhile may bring an earlier one. After some
// cycles it comes back in any case, so that signals are heeded.
Schedule::Reached Schedule::advance()
{
    for (unsigned steps = 0; steps < kStepsAtATime;) {
        int channel = next();
        uint64_t event_ps =
            channel < 0 ? SIM_NEVER : threads_[static_cast<unsigned>(channel)].event_ps;
        bool barren = event_ps == SIM_NEVER;
        uint64_t end_cycle = barren ? UINT64_MAX : cluster_.clock().cycles_until(event_ps);
        if (!barren)
            barren_from_ = UINT64_MAX;
        else if (barren_from_ == UINT64_MAX)
            barren_from_ = cluster_.cycle();
        bool arrived = false;
        for (; !arrived && cluster_.cycle() < end_cycle && steps < kStepsAtATime; steps++) {
            if (barren && (cluster_.is_quiet() || is_barren()))
                return Reached::kNothing;
            cluster_.step(end_cycle);
            arrived = take_arrivals();
        }
        if (!arrived && cluster_.cycle() >= end_cycle)
            return Reached::kEvent;
    }
    return Reached::kNotYet;
}

bool Schedule::is_barren() const
{
    return cluster_.cycle() > std::max(barren_from_, cluster_.last_dma_cycle()) + kBarrenCycles;
}

bool Schedule::take_arrivals()
{
    bool any = false;
    for (unsigned n = 0; n < cluster_.size(); n++) {
        Node &node = cluster_.node(n);
        if (node.arrivals.empty() && node.register_answers.empty())
            continue;
        any = true;
        for (const Arrival &arrival : node.arrivals)
            take_arrival(arrival);
        node.arrivals.clear();
        // An answer may lead to the next question.
        for (const RegisterAnswer &answer : std::exchange(node.register_answers, {}))
            take_answer(n, answer);
    }
    // Many pages are withdrawn by many registers, one after the other.
    if (any && barren_from_ != UINT64_MAX)
        barren_from_ = cluster_.cycle();
    return any;
}

void Schedule::take_answer(unsigned node, const RegisterAnswer &answer)
{
    if (answer.reader == Driver::kReader)
        driver_.take_answer(node, answer);
    else
        resume(answer.reader, cluster_.answered_ps(answer.cycle), answer.value);
}

// Until resume() with its ticket.
void Schedule::suspend(Thread &thread)
{
    thread.ticket = ++tickets_;
    thread.state = State::kReading;
    thread.event_ps = SIM_NEVER;
}

// Somebody waits with this ticket, and now knows until when. False: nobody, it has ended.
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
    mix(totals_.hash, arrival.cycle);
    if (arrival.is_notification) {
        totals_.notifications++;
        mix(totals_.hash, arrival.header);
    } else {
        totals_.messages++;
        mix(totals_.hash, velo_header_len(arrival.header));
        mix(totals_.hash, velo_header_source(arrival.header));
    }
    mix(totals_.hash, arrival.node << 8 | arrival.context);
    int pid = driver_.owner(arrival.node, arrival.context);
    if (pid == 0)
        return;
    processes_[pid].coming_ps.push_back(cluster_.visible_ps(arrival.cycle));
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].state == State::kCalling && threads_[c].pid == pid &&
            threads_[c].call.op == SIM_POLL)
            plan_poll(c);
}

// ----- answers
// ------------------------------------------------------------------------------------

void Schedule::answer(unsigned channel)
{
    Thread &thread = threads_[channel];
    uint64_t time_ps = thread.event_ps;
    totals_.now_ps = std::max(totals_.now_ps, time_ps);
    cluster_.publish_until(time_ps);
    if (thread.ticket) { // a register's value, or the end of a withdrawal
        thread.ticket = 0;
        if (thread.call.op == SIM_REGISTER_READ)
            thread.call.register_read.value = thread.value;
        thread.time_ps = time_ps;
        forget_pages(thread);
        reply(channel, SIM_OK);
        return;
    }
    int32_t status = act(channel, time_ps);
    if (thread.call.op != SIM_POLL || status != SIM_AGAIN)
        idle_ = false;
    if (thread.state != State::kCalling || thread.ticket)
        return;
    thread.time_ps = time_ps;
    reply(channel, status);
    if (thread.call.op == SIM_OUTSIDE)
        thread.state = State::kOutside;
}

// Gives the turn back. What the thread does from here on is its own.
void Schedule::reply(unsigned channel, int32_t status)
{
    Thread &thread = threads_[channel];
    thread.call.status = status;
    thread.call.time_ps = thread.time_ps;
    thread.call.computed_ps = 0;
    area_.channel(channel).call = thread.call;
    thread.state = State::kRunning;
    thread.since = thread.started = last_progress_ = RealClock::now();
    thread.slept = false;
    area_.show_now(totals_.now_ps);
    area_.give_turn(channel, SIM_TURN_PROCESS);
}

int32_t Schedule::act(unsigned channel, uint64_t time_ps)
{
    int pid = threads_[channel].pid;
    sim_call &call = threads_[channel].call;
    switch (call.op) {
    case SIM_ATTACH:
    case SIM_SLEEP:
        return SIM_OK;
    case SIM_OUTSIDE:
        threads_[channel].outside = call.outside.number;
        return SIM_OK;
    case SIM_PORT_OPEN:
        return open_port(channel);
    case SIM_PORT_CLOSE:
        return driver_.close_context(pid, call.port_close.node, call.port_close.context);
    case SIM_STORE:
        return store(channel, time_ps);
    case SIM_REGISTER_WRITE:
        return write_register(channel, time_ps);
    case SIM_REGISTER_READ:
        return begin_read(channel, time_ps, call.register_read.node, call.register_read.offset);
    case SIM_POLL:
        return poll(channel, time_ps);
    case SIM_QUEUE_OPEN:
        return open_queue(channel, time_ps);
    case SIM_MEMORY_ENTER:
        return driver_.enter_pages(pid, call.memory_enter.node, call.memory_enter.context,
                                   call.memory_enter.address, call.memory_enter.len_bytes,
                                   call.memory_enter.rights, call.memory_enter.first_page);
    case SIM_MEMORY_WITHDRAW:
        return withdraw_pages(channel);
    default:
        return SIM_ERR_CALL;
    }
}

int32_t Schedule::open_port(unsigned channel)
{
    Thread &thread = threads_[channel];
    auto &open = thread.call.port_open;
    int32_t status = driver_.open_context(thread.pid, open.node, open.context, open.opened);
    if (status != SIM_OK)
        return status;
    ports_opened_ = true;
    // Messages that are sent at once would come before the ring. Who shares a fence with all others
    // sends behind it; but a ring that was closed before waits there until no more comes.
    if (open.opened > 1 || !thread.repeatable)
        settle_ports();
    return SIM_OK;
}

int32_t Schedule::store(unsigned channel, uint64_t time_ps)
{
    const auto &store = threads_[channel].call.store;
    if (store.node >= cluster_.size())
        return SIM_ERR_NODE;
    if (store.len_words < 1 || store.len_words > std::size(store.line))
        return SIM_ERR_CALL;
    unsigned node = static_cast<unsigned>(store.node);
    if (!cluster_.node(node).store_fits())
        return SIM_AGAIN;
    HostAccess access;
    access.addr = store.address;
    access.words = static_cast<uint8_t>(store.len_words);
    std::copy_n(store.line, store.len_words, access.line);
    cluster_.store(node, time_ps, access);
    return SIM_OK;
}

int32_t Schedule::write_register(unsigned channel, uint64_t time_ps)
{
    const auto &write = threads_[channel].call.register_write;
    if (write.node >= cluster_.size())
        return SIM_ERR_NODE;
    cluster_.write_register(static_cast<unsigned>(write.node), time_ps, write.offset, write.value);
    return SIM_OK;
}

int32_t Schedule::begin_read(unsigned channel, uint64_t time_ps, uint64_t node, uint64_t offset)
{
    Thread &thread = threads_[channel];
    if (node >= cluster_.size())
        return SIM_ERR_NODE;
    suspend(thread);
    cluster_.read_register(static_cast<unsigned>(node), time_ps, offset, thread.ticket);
    return SIM_OK;
}

// ----- registered pages
// -----------------------------------------------------------------------------

int32_t Schedule::open_queue(unsigned channel, uint64_t time_ps)
{
    const auto &open = threads_[channel].call.queue_open;
    int32_t status = driver_.open_queue(threads_[channel].pid, open.node, open.context, time_ps);
    // To be read behind what was written.
    return status == SIM_OK ? begin_read(channel, time_ps, open.node, Driver::kRegPages) : status;
}

int32_t Schedule::withdraw_pages(unsigned channel)
{
    Thread &thread = threads_[channel];
    const auto &withdraw = thread.call.memory_withdraw;
    suspend(thread);
    int32_t status =
        driver_.withdraw_pages(thread.pid, withdraw.node, withdraw.first_page, thread.ticket);
    if (status == SIM_OK) {
        thread.pages_node = static_cast<unsigned>(withdraw.node);
        thread.pages_first = static_cast<uint32_t>(withdraw.first_page);
    } else {
        thread.ticket = 0;
        thread.state = State::kCalling;
    }
    return status;
}

void Schedule::forget_pages(Thread &thread)
{
    if (thread.pages_first != SIM_PAGES)
        driver_.forget_pages(thread.pages_node, thread.pages_first);
    thread.pages_first = SIM_PAGES;
}

// ----- polls
// ----------------------------------------------------------------------------------------

uint64_t Schedule::arrived(int pid, uint64_t time_ps)
{
    Process &process = processes_[pid];
    while (!process.coming_ps.empty() && process.coming_ps.front() <= time_ps) {
        process.arrived++;
        process.coming_ps.pop_front();
    }
    return process.arrived;
}

int32_t Schedule::poll(unsigned channel, uint64_t time_ps)
{
    auto &poll = threads_[channel].call.poll;
    uint64_t before = std::exchange(poll.arrivals, arrived(threads_[channel].pid, time_ps));
    if (poll.arrivals != before)
        return SIM_OK;
    bool is_over = poll.until_new != 0 && poll.deadline_ps != SIM_NEVER;
    return is_over && poll.deadline_ps <= time_ps ? SIM_TIMEOUT : SIM_AGAIN;
}

// Everybody waits for a message and none can come: somebody has to look at something else.
bool Schedule::release_idle()
{
    int lowest = -1;
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].state == State::kCalling &&
            (lowest < 0 || goes_before(c, threads_[c].time_ps, static_cast<unsigned>(lowest),
                                       threads_[static_cast<unsigned>(lowest)].time_ps)))
            lowest = static_cast<int>(c);
    if (lowest < 0)
        throw JobError("everybody waits for a register's value and none is under way:\n" +
                       describe_waiting());
    auto now = RealClock::now();
    bool others = std::any_of(threads_.begin(), threads_.end(), [](const Thread &thread) {
        return thread.state == State::kOutside || (thread.state == State::kAside && !thread.late);
    });
    if (others && now - last_progress_ < kOutsideUntilRelease)
        return false;
    if (!idle_) {
        idle_ = true;
        idle_since_ = now;
    } else if (!others && now - idle_since_ > kIdleUntilError) {
        throw JobError("everybody waits for messages and none is under way:\n" +
                       describe_waiting());
    }
    Thread &thread = threads_[static_cast<unsigned>(lowest)];
    uint64_t period_ps =
        thread.call.op == SIM_POLL ? std::max<uint64_t>(thread.call.poll.period_ps, 1) : 1;
    uint64_t hardware_ps = cluster_.clock().start_ps(cluster_.cycle());
    thread.event_ps = poll_slot_ps(thread.time_ps, period_ps,
                                   std::max({hardware_ps, totals_.now_ps, thread.time_ps + 1}));
    return true;
}

// ----- threads that do not call
// -------------------------------------------------------------------

void Schedule::wait()
{
    area_.wait_for_call(calls_seen_, somebody_runs() ? kWaitRunningUs : kWaitUs);
    if (area_.calls() == calls_seen_ || ++waits_ % kWaitsUntilCheck == 0)
        check_threads();
}

void Schedule::check_threads()
{
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].state == State::kRunning)
            check_runner(c);
        else if (threads_[c].state == State::kStarting)
            check_starter(c);
    auto now = RealClock::now();
    if (now - last_check_ < kCheckEvery)
        return;
    last_check_ = now;
    std::vector<int> dead;
    for (const auto &[pid, process] : processes_)
        if (!process_is_alive(pid))
            dead.push_back(pid);
    for (int pid : dead)
        bury(pid);
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].late && has_ended(c))
            free_channel(c);
}

// Asleep, and it was at the last look, and has not run in between.
bool Schedule::sleeps(Thread &thread)
{
    char state = thread_state(thread.pid, thread.tid);
    uint64_t runs = thread_runs(thread.pid, thread.tid);
    bool asleep = state == 'S' || state == 'D';
    bool slept = asleep && thread.slept && thread.runs == runs;
    auto now = RealClock::now();
    if (thread.runs != runs || !asleep)
        thread.since = now;
    thread.slept = asleep;
    thread.runs = runs;
    return slept;
}

// Of who was started and has not called.
bool Schedule::has_ended(unsigned channel)
{
    int pid = area_.channel(channel).pid, tid = area_.channel(channel).tid;
    return pid && (!process_is_alive(pid) || (tid && thread_state(pid, tid) == 0));
}

// Whoever was started may have something else to do than to call.
bool Schedule::is_late(Thread &thread)
{
    auto now = RealClock::now();
    bool sleeps_long = thread.tid && sleeps(thread) && now - thread.since >= kSleepUntilAside;
    return sleeps_long || now - thread.started >= kStartingUntilLate;
}

void Schedule::check_starter(unsigned channel)
{
    Thread &thread = threads_[channel];
    thread.pid = area_.channel(channel).pid;
    thread.tid = area_.channel(channel).tid;
    if (has_ended(channel)) {
        free_channel(channel);
    } else if (is_late(thread)) {
        thread.state = State::kFree;
        thread.late = true;
    }
}

// For a thread that sleeps, as OpenMP's do. Those that are waited for wake now and then, however
// long it takes them on a busy machine: that is no computing.
bool Schedule::others_compute(Thread &thread)
{
    uint64_t computed_ns = process_computed_ns(thread.pid);
    if (computed_ns < thread.computed_ns + kComputesFromNs)
        return false;
    thread.computed_ns = computed_ns;
    return true;
}

// It has the turn. Does it still run?
void Schedule::check_runner(unsigned channel)
{
    Thread &thread = threads_[channel];
    char state = thread_state(thread.pid, thread.tid);
    if (!process_is_alive(thread.pid)) {
        bury(thread.pid);
        return;
    }
    if (state == 0 || state == 'Z' || state == 'X') {
        free_channel(channel);
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
    if (!sleeps(thread))
        return;
    if (thread.repeatable && others_compute(thread))
        thread.since = RealClock::now();
    auto asleep = RealClock::now() - thread.since;
    if (!thread.repeatable && asleep >= kSleepUntilAside)
        thread.state = State::kAside;
    else if (thread.repeatable && asleep >= kSleepUntilError)
        throw JobError("a repeatable run cannot go on: " + describe(channel));
}

void Schedule::free_channel(unsigned channel)
{
    forget_pages(threads_[channel]);
    threads_[channel] = Thread();
    area_.channel(channel).pid = 0;
    area_.give_turn(channel, SIM_TURN_FREE);
}

void Schedule::bury(int pid)
{
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].attached && threads_[c].pid == pid)
            free_channel(c);
    driver_.bury(pid);
    processes_.erase(pid);
}

std::string Schedule::describe(unsigned channel) const
{
    const Thread &thread = threads_[channel];
    const sim_call &call = thread.call;
    std::string text = "process " + std::to_string(thread.pid) + " thread " +
                       std::to_string(thread.tid) +
                       (thread.rank == SIM_NEVER ? "" : " rank " + std::to_string(thread.rank)) +
                       " at " + in_ns(thread.time_ps) + ": ";
    switch (thread.state) {
    case State::kStarting:
        return text + "is being started";
    case State::kRunning:
    case State::kAside:
        return text + "has the turn and sleeps in " + thread_sleeps_in(thread.pid, thread.tid);
    case State::kOutside:
        return text + "is outside of the cluster, in " + thread_sleeps_in(thread.pid, thread.tid);
    case State::kCameBack:
        return text + "is back and waits for others who are outside";
    default:
        text += op_name(call.op);
        if (call.op == SIM_POLL)
            text += ", " + std::to_string(call.poll.arrivals) + " arrivals seen, deadline " +
                    in_ns(call.poll.deadline_ps);
        return text;
    }
}

std::string Schedule::describe_waiting() const
{
    std::string text;
    for (unsigned c = 0; c < threads_.size(); c++)
        if (threads_[c].attached || threads_[c].state == State::kStarting)
            text += "  " + describe(c) + "\n";
    return text;
}

} // namespace sim
