// SPDX-License-Identifier: Apache-2.0
//
// A program whose language has clocks and waits of its own, in a library of its own: virtual too.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;

namespace
{

// A condition is looked at each 0.1 ms: not longer than that needs.
constexpr auto kNap = 10s;
constexpr auto kSlack = 1ms;
int failures;

template <class Clock, class Wait> void expect_nap(const char *what, const Wait &wait)
{
    auto before = Clock::now();
    wait();
    auto passed = Clock::now() - before;
    if (passed >= kNap && passed <= kNap + kSlack)
        return;
    failures++;
    std::printf("%s: %g s\n", what, std::chrono::duration<double>(passed).count());
}

void wait_for_nobody()
{
    std::mutex mutex;
    std::condition_variable condition;
    std::unique_lock lock(mutex);
    condition.wait_for(lock, kNap, [] { return false; });
}

} // namespace

int main()
{
    using Steady = std::chrono::steady_clock;
    using System = std::chrono::system_clock;
    expect_nap<Steady>("steady, sleep_for", [] { std::this_thread::sleep_for(kNap); });
    expect_nap<System>("system, sleep_for", [] { std::this_thread::sleep_for(kNap); });
    expect_nap<System>("system, sleep_until",
                       [] { std::this_thread::sleep_until(System::now() + kNap); });
    expect_nap<Steady>("condition, wait_for", wait_for_nobody);
    return failures != 0;
}
