// SPDX-License-Identifier: Apache-2.0
//
// Threads that wait by what C++ has for that: futures, semaphores, latches, barriers,
// atomic::wait(). Their library asks the kernel for futexes by syscall(), and so does the last part
// here itself. Each wait ends in virtual time: when it is told to, or at its limit. futures.py
// compares two runs.
//
// An argument is a call that the cluster does not have in virtual time: the run ends with a
// sentence.
#include <mpi.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <latch>
#include <linux/futex.h>
#include <semaphore>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

namespace
{

constexpr auto kTold = 3ms;
constexpr auto kLimit = 1s;
// Before atomic::wait() waits, it yields some times; beginning and ending a thread takes calls.
constexpr auto kSlack = 20us;
// So often a thread looks that nobody of its process tells.
constexpr auto kLook = 150us;
// So long it waits for what no look finds.
constexpr auto kLongest = 15ms;
int failures;

void expect(bool is_right, const char *what, long got)
{
    if (is_right)
        return;
    failures++;
    std::printf("WRONG: %s: %ld\n", what, got);
}

#define EXPECT_EQ(got, wanted)                                                                     \
    do {                                                                                           \
        auto got_ = (long)(got);                                                                   \
        expect(got_ == (long)(wanted), #got " is not " #wanted, got_);                             \
    } while (0)

// `body` takes so long, and not much longer.
void expect_time(const char *what, Nanoseconds wanted, const std::function<void()> &body,
                 Nanoseconds slack = kSlack)
{
    auto before = Clock::now();
    body();
    Nanoseconds passed = Clock::now() - before;
    std::printf("%s: %ld ns\n", what, (long)passed.count());
    expect(passed >= wanted && passed <= wanted + slack, what, (long)passed.count());
}

// The same where another thread tells the waiter after a while.
void expect_told(const char *what, const std::function<void()> &wait,
                 const std::function<void()> &tell)
{
    expect_time(what, kTold, [&] {
        std::thread thread([&] {
            std::this_thread::sleep_for(kTold);
            tell();
        });
        wait();
        thread.join();
    });
}

int seven()
{
    std::this_thread::sleep_for(kTold);
    return 7;
}

// Nobody keeps this promise. The first time there is no other thread.
void wait_for_nobody(const char *what)
{
    std::promise<int> promise;
    auto future = promise.get_future();
    expect_time(what, kLimit,
                [&] { EXPECT_EQ(future.wait_for(kLimit), std::future_status::timeout); });
    expect_time("wait_until of a date", kLimit, [&] {
        EXPECT_EQ(future.wait_until(std::chrono::system_clock::now() + kLimit),
                  std::future_status::timeout);
    });
}

void futures()
{
    std::promise<int> kept, early;
    auto future = kept.get_future(), in_time = early.get_future();
    expect_told("promise", [&] { EXPECT_EQ(future.get(), 5); }, [&] { kept.set_value(5); });
    expect_told(
        "promise with a limit",
        [&] { EXPECT_EQ(in_time.wait_for(10s), std::future_status::ready); },
        [&] { early.set_value(5); });
    expect_time("packaged task", kTold, [] {
        std::packaged_task<int()> task(seven);
        auto result = task.get_future();
        std::thread thread(std::move(task));
        EXPECT_EQ(result.get(), 7);
        thread.join();
    });
    expect_time("async", kTold, [] { EXPECT_EQ(std::async(std::launch::async, seven).get(), 7); });
    expect_time("async with a limit", kTold, [] {
        auto result = std::async(std::launch::async, seven);
        EXPECT_EQ(result.wait_for(10s), std::future_status::ready);
    });
    expect_time("async with a short limit", kTold, [] {
        auto result = std::async(std::launch::async, seven);
        EXPECT_EQ(result.wait_for(1ms), std::future_status::timeout);
        EXPECT_EQ(result.get(), 7);
    });
    // Longer than the longest wait without a limit.
    expect_time("async for long", 20 * kTold, [] {
        auto result =
            std::async(std::launch::async, [] { std::this_thread::sleep_for(20 * kTold); });
        result.get();
    });
}

void atomics()
{
    std::binary_semaphore semaphore(0);
    expect_told("semaphore", [&] { semaphore.acquire(); }, [&] { semaphore.release(); });
    expect_told(
        "semaphore with a limit", [&] { EXPECT_EQ(semaphore.try_acquire_for(10s), true); },
        [&] { semaphore.release(); });
    expect_time("semaphore at its limit", 10ms,
                [&] { EXPECT_EQ(semaphore.try_acquire_for(10ms), false); });
    std::latch latch(2);
    expect_told("latch", [&] { latch.arrive_and_wait(); }, [&] { latch.count_down(); });
    std::barrier<> barrier(2);
    expect_told("barrier", [&] { barrier.arrive_and_wait(); }, [&] { (void)barrier.arrive(); });
    std::atomic<int> one(0), all(0);
    std::atomic<long> wide(0);
    expect_told("atomic, one", [&] { one.wait(0); }, [&] { one = 1, one.notify_one(); });
    expect_told("atomic, all", [&] { all.wait(0); }, [&] { all = 1, all.notify_all(); });
    // Wider than a futex: the library waits at a word of its own.
    expect_told("atomic of 64 bits", [&] { wide.wait(0); }, [&] { wide = 1, wide.notify_all(); });
}

// ---- by syscall() itself ------------------------------------------------------------------------

using Word = std::atomic<uint32_t>;

// The answer, or an error as a negative number.
long futex(Word &word, int op, uint32_t value, const timespec *limit = nullptr,
           uint32_t bits = FUTEX_BITSET_MATCH_ANY)
{
    long status = syscall(SYS_futex, &word, op, value, limit, nullptr, bits);
    return status < 0 ? -errno : status;
}

timespec later(clockid_t clock, time_t by_s)
{
    timespec limit;
    (void)clock_gettime(clock, &limit);
    limit.tv_sec += by_s;
    return limit;
}

void limits()
{
    Word word(1);
    const timespec second = {1, 0}, wrong = {0, 2'000'000'000}, over = {-1, 0};
    expect_time("wait at its limit", 1s,
                [&] { EXPECT_EQ(futex(word, FUTEX_WAIT_PRIVATE, 1, &second), -ETIMEDOUT); });
    expect_time("wait until a time", 2s, [&] {
        timespec limit = later(CLOCK_MONOTONIC, 2);
        EXPECT_EQ(futex(word, FUTEX_WAIT_BITSET_PRIVATE, 1, &limit), -ETIMEDOUT);
    });
    expect_time("wait until a date", 3s, [&] {
        timespec limit = later(CLOCK_REALTIME, 3);
        EXPECT_EQ(futex(word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, &limit), -ETIMEDOUT);
    });
    expect_time("what need not wait", 0s, [&] {
        EXPECT_EQ(futex(word, FUTEX_WAIT, 0), -EAGAIN);
        EXPECT_EQ(futex(word, FUTEX_WAIT_PRIVATE, 0, &second), -EAGAIN);
        EXPECT_EQ(futex(word, FUTEX_WAIT, 1, &wrong), -EINVAL);
        EXPECT_EQ(futex(word, FUTEX_WAIT, 1, &over), -EINVAL);
        EXPECT_EQ(futex(word, FUTEX_WAIT_BITSET, 1, nullptr, 0), -EINVAL);
        EXPECT_EQ(futex(word, FUTEX_WAKE_BITSET, 1, nullptr, 0), -EINVAL);
        EXPECT_EQ(syscall(SYS_futex, nullptr, FUTEX_WAIT, 1, nullptr), -1);
        EXPECT_EQ(errno, EFAULT);
        EXPECT_EQ(futex(word, FUTEX_WAKE, INT_MAX), 0);
        EXPECT_EQ(syscall(SYS_getpid), getpid());
        EXPECT_EQ(syscall(SYS_close, -1), -1);
        EXPECT_EQ(errno, EBADF);
    });
}

// The word stays as it is: only the wake ends the wait.
void numbers()
{
    constexpr int kMany = 4;
    Word word(1);
    std::atomic<int> awake(0);
    std::thread threads[kMany];
    for (auto &thread : threads)
        thread = std::thread([&] {
            EXPECT_EQ(futex(word, FUTEX_WAIT_PRIVATE, 1), 0);
            awake++;
        });
    expect_time("so many as are asked for", kTold, [&] {
        std::this_thread::sleep_for(1ms);
        EXPECT_EQ(futex(word, FUTEX_WAKE_PRIVATE, 1), 1);
        std::this_thread::sleep_for(1ms);
        EXPECT_EQ(awake, 1);
        EXPECT_EQ(futex(word, FUTEX_WAKE, 2), 2);
        std::this_thread::sleep_for(1ms);
        EXPECT_EQ(awake, 3);
        EXPECT_EQ(futex(word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, 4), 1);
    });
    for (auto &thread : threads)
        thread.join();
}

// A process that the program has forked is not told, and looks.
void processes()
{
    void *memory =
        mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto &word = *new (memory) Word(0);
    expect_time(
        "a process tells", kTold,
        [&] {
            pid_t child = fork();
            if (child == 0) {
                std::this_thread::sleep_for(kTold);
                word = 1;
                (void)futex(word, FUTEX_WAKE, 1);
                _exit(0);
            }
            while (word == 0)
                (void)futex(word, FUTEX_WAIT, 0);
            (void)waitpid(child, nullptr, 0);
        },
        kLook);
    // It tells without a change: a wait ends by itself after a while.
    expect_time(
        "a process wakes", kTold,
        [&] {
            pid_t child = fork();
            if (child == 0) {
                std::this_thread::sleep_for(kTold);
                (void)futex(word, FUTEX_WAKE, 1);
                _exit(0);
            }
            EXPECT_EQ(futex(word, FUTEX_WAIT, 1), 0);
            (void)waitpid(child, nullptr, 0);
        },
        kLongest);
    (void)munmap(memory, sizeof(Word));
}

// Ends the process.
void ask_for(const char *what)
{
    Word word(0), other(0);
    std::thread thread([] { std::this_thread::sleep_for(kTold); });
    if (std::strcmp(what, "requeue") == 0)
        (void)syscall(SYS_futex, &word, FUTEX_REQUEUE, 1, 1, &other, 0);
    else if (std::strcmp(what, "wake_op") == 0)
        (void)syscall(SYS_futex, &word, FUTEX_WAKE_OP_PRIVATE, 1, 1, &other, 0);
    else if (std::strcmp(what, "lock_pi") == 0)
        (void)syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, nullptr);
    else if (std::strcmp(what, "waitv") == 0)
        (void)syscall(449 /* SYS_futex_waitv */, nullptr, 0, 0, nullptr, 0);
    thread.join();
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc > 1) {
        ask_for(argv[1]);
    } else {
        wait_for_nobody("wait_for, alone");
        futures();
        wait_for_nobody("wait_for");
        atomics();
        limits();
        numbers();
        processes();
    }
    MPI_Finalize();
    return failures != 0;
}
