// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sim
{

namespace
{

constexpr int kCannotExecute = 127;
constexpr unsigned kGraceUs = 2000000, kLookUs = 2000;

std::string task_file(int pid, int tid, const char *name)
{
    return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/" + name;
}

std::string first_line(const std::string &path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// Names the system calls in which a process waits.
const char *system_call_name(long number)
{
    static const std::map<long, const char *> names = {
        {SYS_read, "read"},
        {SYS_write, "write"},
        {SYS_poll, "poll"},
        {SYS_ppoll, "ppoll"},
        {SYS_select, "select"},
        {SYS_pselect6, "pselect6"},
        {SYS_epoll_wait, "epoll_wait"},
        {SYS_epoll_pwait, "epoll_pwait"},
        {SYS_futex, "futex"},
        {SYS_nanosleep, "nanosleep"},
        {SYS_clock_nanosleep, "clock_nanosleep"},
        {SYS_pause, "pause"},
        {SYS_wait4, "wait4"},
        {SYS_waitid, "waitid"},
        {SYS_accept, "accept"},
        {SYS_accept4, "accept4"},
        {SYS_connect, "connect"},
        {SYS_recvfrom, "recvfrom"},
        {SYS_recvmsg, "recvmsg"},
        {SYS_sendto, "sendto"},
        {SYS_sendmsg, "sendmsg"},
        {SYS_readv, "readv"},
        {SYS_writev, "writev"},
        {SYS_fsync, "fsync"},
        {SYS_flock, "flock"},
        {SYS_fcntl, "fcntl"},
        {SYS_semop, "semop"},
        {SYS_semtimedop, "semtimedop"},
        {SYS_msgrcv, "msgrcv"},
        {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
        {SYS_rt_sigsuspend, "rt_sigsuspend"},
        {SYS_restart_syscall, "restart_syscall"},
    };
    auto found = names.find(number);
    return found == names.end() ? nullptr : found->second;
}

struct ProcessState {
    char state = 0;
    int parent = 0;
};

// Reads /proc/.../stat from the end of the command's name on: the name may hold anything.
ProcessState parse_stat(const std::string &line)
{
    ProcessState state;
    size_t end = line.rfind(')');
    if (end != std::string::npos)
        std::istringstream(line.substr(end + 1)) >> state.state >> state.parent;
    return state;
}

// All living processes below the given one.
std::set<int> descendants(int of)
{
    std::map<int, int> parents;
    for (const auto &entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        int pid = 0;
        std::from_chars(name.data(), name.data() + name.size(), pid);
        if (pid <= 0)
            continue;
        ProcessState state = parse_stat(first_line("/proc/" + std::to_string(pid) + "/stat"));
        if (state.state && state.state != 'Z')
            parents[pid] = state.parent;
    }
    std::set<int> below = {of};
    for (size_t before = 0; before != below.size();) {
        before = below.size();
        for (const auto &[pid, parent] : parents)
            if (below.count(parent))
                below.insert(pid);
    }
    below.erase(of);
    return below;
}

bool is_alive(char state) { return state && state != 'Z' && state != 'X'; }

bool any_thread(int pid, bool (*is)(char state))
{
    std::error_code error;
    std::filesystem::directory_iterator task("/proc/" + std::to_string(pid) + "/task", error);
    for (; !error && task != std::filesystem::directory_iterator(); task.increment(error))
        if (is(thread_state(pid, std::stoi(task->path().filename()))))
            return true;
    return false;
}

bool reached(ssize_t moved, size_t bytes, int pid)
{
    if (moved < 0 && (errno == EPERM || errno == ENOSYS))
        throw JobError("memory of process " + std::to_string(pid) +
                       " cannot be reached: " + std::strerror(errno) +
                       "; remote memory needs process_vm_readv and process_vm_writev on "
                       "descendants of velo-sim");
    return moved == static_cast<ssize_t>(bytes);
}

void default_signals()
{
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE})
        std::signal(number, SIG_DFL);
}

[[noreturn]] void become(const std::vector<std::string> &command, int report)
{
    setpgid(0, 0);
    default_signals();
    prctl(PR_SET_PDEATHSIG, SIGKILL); // a simulator that is killed takes its job along
    // Chance must not decide which pieces of memory share a page. Where the kernel forbids this
    // call, chance mostly does not matter.
    (void)personality(ADDR_NO_RANDOMIZE);
    std::vector<char *> arguments;
    arguments.reserve(command.size() + 1);
    for (const auto &word : command)
        arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    int why = errno;
    (void)!write(report, &why, sizeof why);
    _exit(kCannotExecute);
}

} // namespace

char thread_state(int pid, int tid)
{
    return parse_stat(first_line(task_file(pid, tid, "stat"))).state;
}

bool thread_is_alive(int pid, int tid) { return is_alive(thread_state(pid, tid)); }

ThreadRuns thread_runs(int pid, int tid)
{
    std::istringstream words(first_line(task_file(pid, tid, "schedstat")));
    ThreadRuns runs;
    uint64_t wait_ns = 0;
    words >> runs.ran_ns >> wait_ns >> runs.times;
    return runs;
}

bool process_is_alive(int pid)
{
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return false;
    char state = parse_stat(first_line("/proc/" + std::to_string(pid) + "/stat")).state;
    // The state is the main thread's, which may end before the others.
    return state == 'Z' ? any_thread(pid, is_alive) : is_alive(state);
}

bool process_goes_on(int pid)
{
    return any_thread(pid, [](char state) { return state == 'R' || state == 'D'; });
}

uint64_t process_computed_ns(int pid)
{
    clockid_t clock;
    timespec computed;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &computed) != 0)
        return 0;
    return static_cast<uint64_t>(computed.tv_sec) * 1000000000 +
           static_cast<uint64_t>(computed.tv_nsec);
}

bool process_has_random_addresses(int pid)
{
    // What the kernel does not show counts as it is in most processes.
    std::string line = first_line("/proc/" + std::to_string(pid) + "/personality");
    constexpr int kBase = 16;
    return (std::strtoul(line.c_str(), nullptr, kBase) & ADDR_NO_RANDOMIZE) == 0;
}

std::string thread_sleeps_in(int pid, int tid)
{
    std::string line = first_line(task_file(pid, tid, "syscall"));
    if (line.empty() || line[0] < '0' || line[0] > '9')
        return line.empty() ? "a system call that the kernel does not show" : "no system call";
    long number = -1;
    std::from_chars(line.data(), line.data() + line.size(), number);
    const char *name = system_call_name(number);
    return name ? name : "system call " + std::to_string(number);
}

bool read_process(int pid, uint64_t address, void *to, size_t bytes)
{
    iovec here = {to, bytes}, there = {reinterpret_cast<void *>(address), bytes};
    return reached(process_vm_readv(pid, &here, 1, &there, 1, 0), bytes, pid);
}

bool write_process(int pid, uint64_t address, const void *from, size_t bytes)
{
    iovec here = {const_cast<void *>(from), bytes};
    iovec there = {reinterpret_cast<void *>(address), bytes};
    return reached(process_vm_writev(pid, &here, 1, &there, 1, 0), bytes, pid);
}

Job::Job(const std::vector<std::string> &command)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    pid_ = fork();
    if (pid_ == 0)
        become(command, ends[1]);
    close(ends[1]);
    int why = 0;
    bool failed = pid_ < 0 || read(ends[0], &why, sizeof why) == sizeof why;
    close(ends[0]);
    if (pid_ > 0)
        setpgid(pid_, pid_); // The child does the same: one of the two comes first.
    if (failed) {
        std::string reason = std::strerror(pid_ < 0 ? errno : why);
        finish();
        throw std::runtime_error(command[0] + ": " + reason);
    }
}

Job::~Job() { finish(); }

bool Job::ended()
{
    for (;;) {
        int status = 0, pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0)
            return ended_;
        if (pid != pid_)
            continue;
        ended_ = true;
        exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

void Job::signal(int number) const
{
    if (pid_ > 0 && !ended_)
        kill(-pid_, number);
}

// SIGTERM goes first, so that a launcher can remove its files.
void Job::finish()
{
    signal(SIGTERM);
    for (unsigned waited = 0; pid_ > 0 && !ended() && waited < kGraceUs; waited += kLookUs)
        usleep(kLookUs);
    for (;;) {
        auto left = descendants(getpid());
        if (left.empty())
            break;
        for (int pid : left)
            kill(pid, SIGKILL);
        (void)ended();
        usleep(kLookUs);
    }
    (void)ended();
}

} // namespace sim
