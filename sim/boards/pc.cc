// SPDX-License-Identifier: Apache-2.0
#include "pc.h"

#include <algorithm>
#include <utility>

#include "../process.h"

namespace sim
{

namespace
{

uint64_t line_of(uint64_t word) { return word / kLineWords; }

uint64_t clock_ps(uint64_t clock) { return clock * kBusClockPs; }

} // namespace

// A transaction on the front side bus. Returns when the memory bus sees it.
uint64_t Pc::transfer(uint64_t time_ps, uint64_t data_ps)
{
    bool idle = time_ps >= bus_free_ps_;
    bus_free_ps_ = std::max(time_ps, bus_free_ps_) + (idle ? kFsbRequestPs : kFsbNextPs) + data_ps;
    return bus_free_ps_ + kChipsetPs;
}

// What leaves the processor, in its order: a line as soon as it is full; at the fence the others, a
// burst for each word.
void Pc::store(Work &work)
{
    const Access &access = work.access;
    uint64_t end = access.word + access.len_words, spent_ps = 0;
    std::vector<Burst> parts;
    for (uint64_t word = access.word; word < end; word++) {
        spent_ps += kStorePs;
        uint64_t first = line_of(word) * kLineWords;
        bool is_full = first >= access.word && first + kLineWords <= end;
        if (!is_full) {
            Burst part{0, first, {}, kFsbPartialPs};
            part.line[word - first] = {access.words[word - access.word], true};
            parts.push_back(part);
        } else if (word == first + kLineWords - 1) {
            Burst burst{std::exchange(spent_ps, 0), first, {}, kFsbLinePs};
            for (unsigned place = 0; place < kLineWords; place++)
                burst.line[place] = {access.words[first + place - access.word], true};
            work.bursts.push_back(burst);
        }
    }
    for (Burst &part : parts) {
        part.spent_ps = std::exchange(spent_ps, 0);
        work.bursts.push_back(part);
    }
    work.spent_ps = spent_ps;
}

void Pc::ask(Work &work)
{
    uint64_t word = work.lines[work.asked++];
    waiting_.push_back({transfer(work.access.time_ps, 0), word, true, work.access.ticket, {}});
}

void Pc::begin(const Access &access)
{
    Work work;
    work.access = access;
    uint64_t &time_ps = work.access.time_ps;
    switch (access.kind) {
    case Access::Kind::kStore:
        store(work);
        break;
    case Access::Kind::kAwait:
    case Access::Kind::kLoad:
        time_ps += kMissPs;
        work.lines = {access.word};
        ask(work);
        break;
    case Access::Kind::kLines:
        work.next_word = access.word;
        for (uint64_t line = line_of(access.word);
             line <= line_of(access.word + access.len_words - 1); line++) {
            time_ps += kClflushPs;
            work.lines.push_back(std::max(access.word, line * kLineWords));
        }
        time_ps += kMissPs;
        while (work.asked < work.lines.size() && work.asked < kLoads)
            ask(work);
        break;
    }
    under_way_.push_back(std::move(work));
}

void Pc::write(uint64_t time_ps, uint64_t word, uint64_t value)
{
    Transaction transaction{transfer(time_ps, kFsbPartialPs), word, false, 0, {}};
    transaction.line[word % kLineWords] = {value, true};
    waiting_.push_back(transaction);
}

// Hands bursts to the chipset while it has room. True: the store has ended.
bool Pc::go_on(Work &work, uint64_t clock)
{
    Access &access = work.access;
    while (!work.bursts.empty()) {
        if (waiting_.size() >= kChipsetWrites) {
            access.time_ps = std::max(access.time_ps, clock_ps(clock));
            return false;
        }
        const Burst &burst = work.bursts.front();
        access.time_ps += burst.spent_ps;
        waiting_.push_back(
            {transfer(access.time_ps, burst.data_ps), burst.word, false, 0, burst.line});
        work.bursts.pop_front();
    }
    access.time_ps = std::max(access.time_ps + work.spent_ps, bus_free_ps_) + kFencePs;
    return true;
}

void Pc::take_word(Work &work, uint64_t value)
{
    Access &access = work.access;
    uint64_t seen = access.words[0];
    access.words[0] = value;
    if (access.kind == Access::Kind::kLoad) {
        done_.push_back(access);
        return;
    }
    access.time_ps += kPollPs;
    if (value == seen && access.time_ps < access.deadline_ps) {
        access.time_ps += kMissPs;
        work.asked = work.come = 0;
        ask(work);
        return;
    }
    if (value == seen)
        access.status = SIM_TIMEOUT;
    else
        access.time_ps += kMissPredictedPs;
    done_.push_back(access);
}

// A line is there, for the processor that asked for it: one of several, or of a single word.
void Pc::take_line(Work &work, uint64_t seen_ps, const std::array<uint64_t, kLineWords> &line)
{
    Access &access = work.access;
    access.time_ps = std::max({access.time_ps, seen_ps + kChipsetPs, lines_free_ps_}) + kFsbLinePs;
    lines_free_ps_ = access.time_ps;
    access.time_ps += kFillPs;
    uint64_t number = line_of(work.lines[work.come++]);
    if (access.kind != Access::Kind::kLines) {
        take_word(work, line[access.word % kLineWords]);
        return;
    }
    uint64_t end = access.word + access.len_words;
    for (bool is_first = true; work.next_word < end && line_of(work.next_word) == number;
         work.next_word++) {
        access.time_ps += kHitPs;
        access.words[work.next_word - access.word] = line[work.next_word % kLineWords];
        if (std::exchange(is_first, false) && work.asked < work.lines.size())
            ask(work);
    }
    if (work.come == work.lines.size())
        done_.push_back(access);
}

// The chipset has done the first transaction that waits.
void Pc::end_transaction(uint64_t clock)
{
    bool is_read = waiting_.front().is_read;
    uint64_t reader = waiting_.front().reader;
    waiting_.pop_front();
    is_busy_ = false;
    if (!is_read)
        return;
    std::array<uint64_t, kLineWords> line{};
    if (!bus_.words(line))
        throw JobError("a board has left a read of its slot without an answer");
    auto work = std::find_if(under_way_.begin(), under_way_.end(),
                             [&](const Work &one) { return one.access.ticket == reader; });
    size_t ended = done_.size();
    take_line(*work, clock_ps(clock), line);
    if (done_.size() != ended)
        under_way_.erase(work);
}

Pins Pc::drive(uint64_t clock)
{
    if (is_busy_ && clock >= free_clock_)
        end_transaction(clock);
    for (size_t i = 0; i < under_way_.size();) {
        Work &work = under_way_[i];
        if (work.access.kind == Access::Kind::kStore && go_on(work, clock)) {
            done_.push_back(work.access);
            under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            i++;
        }
    }
    if (clock >= free_clock_ && !waiting_.empty() && waiting_.front().time_ps <= clock_ps(clock)) {
        const Transaction &first = waiting_.front();
        free_clock_ = first.is_read ? bus_.read(clock, first.word)
                                    : bus_.write(clock, first.word, first.line);
        is_busy_ = true;
    }
    return bus_.take(clock);
}

} // namespace sim
