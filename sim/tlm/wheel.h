// SPDX-License-Identifier: Apache-2.0
//
// The events to come: a wheel of one bucket a cycle, and a heap for events that are further away
// than the wheel reaches. Within a cycle events come in the order in which they were put in, then
// the switches that have to arbitrate. Buckets keep their memory, so nothing is allocated once they
// have grown.

#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#include "params.h"

namespace tlm
{

struct Event {
    uint32_t kind_and_place; // the kind in the upper four bits
    uint32_t value;
};

// Lists of events that share a pool of chunks, so that a chunk that was just emptied is filled
// next.
class Lists
{
  public:
    explicit Lists(size_t count) : lists_(count) {}

    void push(size_t list, Event event)
    {
        List &to = lists_[list];
        if (to.in_last == kChunk)
            add_chunk(to);
        chunks_[to.last].events[to.in_last++] = event;
    }
    // Appends all of a list to `events`, in order; the list is empty then.
    void move_to(size_t list, std::vector<Event> &events)
    {
        List &from = lists_[list];
        for (uint32_t c = from.first; c != kNone;) {
            Chunk &chunk = chunks_[c];
            uint32_t count = c == from.last ? from.in_last : kChunk, next = chunk.next;
            events.insert(events.end(), chunk.events, chunk.events + count);
            chunk.next = free_;
            free_ = c;
            c = next;
        }
        from = List();
    }

  private:
    static constexpr uint32_t kNone = UINT32_MAX, kChunk = 31;
    struct Chunk {
        Event events[kChunk];
        uint32_t next;
    };
    struct List {
        uint32_t first = kNone, last = kNone, in_last = kChunk;
    };

    std::vector<List> lists_;
    std::vector<Chunk> chunks_;
    uint32_t free_ = kNone;

    void add_chunk(List &to)
    {
        if (free_ == kNone) {
            chunks_.push_back({});
            chunks_.back().next = kNone;
            free_ = static_cast<uint32_t>(chunks_.size() - 1);
        }
        uint32_t chunk = free_;
        free_ = chunks_[chunk].next;
        chunks_[chunk].next = kNone;
        (to.first == kNone ? to.first : chunks_[to.last].next) = chunk;
        to.last = chunk;
        to.in_last = 0;
    }
};

class Wheel
{
  public:
    explicit Wheel(uint64_t reach)
        : mask_(std::bit_ceil(reach + 1) - 1), events_(mask_ + 1), switches_(mask_ + 1)
    {
    }

    Cycle now() const { return now_; }

    // Not in the cycle of now, whose bucket is being emptied.
    void put(Cycle when, Event event)
    {
        if (when - now_ <= mask_) {
            events_.push(when & mask_, event);
            near_++;
        } else {
            far_.push_back({when, order_++, event});
            std::push_heap(far_.begin(), far_.end());
        }
    }
    // Also in the cycle of now. Within the wheel's reach.
    void put_switch(Cycle when, uint32_t node)
    {
        assert(when - now_ <= mask_);
        switches_.push(when & mask_, {node, 0});
        near_++;
    }

    bool empty() const { return near_ == 0 && far_.empty(); }

    // Runs all cycles before `end`: calls `user.handle(Event)` for each event and
    // `user.arbitrate(node)` for each switch; some events before that, prefetches for them.
    template <typename User> void run(Cycle end, User &user)
    {
        for (; now_ < end; now_++) {
            if (near_ == 0) {
                now_ = far_.empty() ? end : std::min(end, far_.front().when);
                if (now_ == end)
                    return;
            }
            while (!far_.empty() && far_.front().when == now_)
                user.handle(take_far());
            empty_bucket(now_ & mask_, user);
        }
    }

  private:
    struct Far {
        Cycle when;
        uint64_t order;
        Event event;
        // The heap has the earliest on top.
        bool operator<(const Far &other) const
        {
            return when != other.when ? when > other.when : order > other.order;
        }
    };

    uint64_t mask_, near_ = 0, order_ = 0;
    Lists events_, switches_; // by cycle, modulo
    std::vector<Event> current_;
    std::vector<Far> far_;
    Cycle now_ = 0;

    template <typename User> void empty_bucket(size_t bucket, User &user)
    {
        constexpr size_t kSoon = 5; // events, which together take longer than a cache miss
        current_.clear();
        events_.move_to(bucket, current_);
        size_t count = current_.size();
        for (size_t i = 0; i < count; i++) {
            if (i + 2 * kSoon < count)
                user.prefetch(current_[i + 2 * kSoon]);
            if (i + kSoon < count)
                user.prefetch_second(current_[i + kSoon]);
            user.handle(current_[i]);
        }
        near_ -= count;
        current_.clear();
        switches_.move_to(bucket, current_);
        count = current_.size();
        for (size_t i = 0; i < count; i++) {
            if (i + kSoon < count)
                user.prefetch_switch(current_[i + kSoon].kind_and_place);
            user.arbitrate(current_[i].kind_and_place);
        }
        near_ -= count;
    }

    Event take_far()
    {
        std::pop_heap(far_.begin(), far_.end());
        Event event = far_.back().event;
        far_.pop_back();
        return event;
    }
};

} // namespace tlm
