// SPDX-License-Identifier: Apache-2.0
#include "thread.h"

#include <tuple>

namespace sim
{

int first_caller(const Threads &threads, uint64_t Thread::*time_ps)
{
    // Channels are in ascending order, so of two threads with the same key the first one is taken.
    auto key = [&](const Thread &thread) {
        return std::make_tuple(thread.*time_ps, thread.rank, thread.number, thread.order);
    };
    int first = -1;
    for (unsigned c = 0; c < threads.size(); c++)
        if (threads[c].state == State::kCalling &&
            (first < 0 || key(threads[c]) < key(threads[static_cast<unsigned>(first)])))
            first = static_cast<int>(c);
    return first;
}

} // namespace sim
