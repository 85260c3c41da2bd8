// SPDX-License-Identifier: Apache-2.0
//
// The job's command with all its descendants; and what the kernel knows of other processes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace sim
{

// The reason for which the simulator itself ends a job.
class JobError : public std::exception
{
  public:
    explicit JobError(std::string why) : why_(std::move(why)) {}
    const char *what() const noexcept override { return why_.c_str(); }

  private:
    std::string why_;
};

// State of a thread as the kernel tells it: 'R' runs, 'S' and 'D' sleep, 'Z' ended; 0: there is
// none.
char thread_state(int pid, int tid);
// Has it not ended? A main thread that has ended is still shown, as 'Z', while its process lives.
bool thread_is_alive(int pid, int tid);
// How often the thread has been on a processor, and how long.
struct ThreadRuns {
    uint64_t times = 0, ran_ns = 0;
};
ThreadRuns thread_runs(int pid, int tid);
bool process_is_alive(int pid);
// Does a thread of the process run, wait for a processor, or for the kernel alone?
bool process_goes_on(int pid);
// Processor time of all threads of a process; 0: it has ended.
uint64_t process_computed_ns(int pid);
// Does the kernel put the process's memory at random addresses?
bool process_has_random_addresses(int pid);
// The system call that a thread sleeps in, in words.
std::string thread_sleeps_in(int pid, int tid);

// Memory of a process of the job. False: the process has none there, or has ended. Throws JobError
// if the kernel does not let the simulator reach the process at all.
bool read_process(int pid, uint64_t address, void *to, size_t bytes);
bool write_process(int pid, uint64_t address, const void *from, size_t bytes);

// The command runs in a process group of its own. Its descendants become the simulator's children
// when their parents die, so that finish() leaves none of them.
class Job
{
  public:
    // Throws std::runtime_error if the command cannot be started.
    explicit Job(const std::vector<std::string> &command);
    ~Job();
    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;

    // Collects processes that have ended. True once the command itself has ended.
    bool ended();
    // As a shell would give it: 128 + signal for one that was killed.
    int exit_code() const { return exit_code_; }
    void signal(int number) const;
    // Kill all processes that are left, children of children too.
    void finish();

  private:
    int pid_ = -1, exit_code_ = 0;
    bool ended_ = false;
};

} // namespace sim
