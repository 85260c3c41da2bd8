// SPDX-License-Identifier: Apache-2.0
#include "area.h"

#include <atomic>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "board_times.h"

namespace sim
{

namespace
{

constexpr uint64_t kPageBytes = 4096;

uint64_t memory_at()
{
    uint64_t bytes = sizeof(sim_area) + SIM_CHANNELS_MAX * sizeof(sim_channel);
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

[[noreturn]] void fail(const std::string &what)
{
    throw std::runtime_error(what + ": " + std::strerror(errno));
}

void wake(uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// A simulator that was killed may have left its file. One that lives holds a lock on its file.
void remove_stale(const std::string &path)
{
    int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    bool stale = flock(file, LOCK_EX | LOCK_NB) == 0;
    if (stale)
        unlink(path.c_str());
    close(file);
    if (!stale)
        throw std::runtime_error(path + ": another cluster has this file; choose another --area");
}

void check_room(const std::string &folder, uint64_t bytes)
{
    struct statvfs room;
    if (statvfs(folder.c_str(), &room) != 0)
        fail(folder);
    uint64_t free_bytes = uint64_t{room.f_bavail} * room.f_frsize;
    if (free_bytes < bytes)
        throw std::runtime_error("the cluster's memory needs " + std::to_string(bytes >> 20) +
                                 " MiB in " + folder + ", " + std::to_string(free_bytes >> 20) +
                                 " MiB are free");
}

} // namespace

uint64_t area_bytes(unsigned nodes, unsigned boards)
{
    return memory_at() + nodes * uint64_t{SIM_MEMORY_BYTES} + boards * uint64_t{SIM_BOARD_BYTES};
}

Area::Area(const std::string &path, unsigned nodes, unsigned boards, const HostModel &host)
    : path_(path), bytes_(area_bytes(nodes, boards))
{
    check_room(std::filesystem::absolute(path).parent_path(), bytes_);
    remove_stale(path_);
    std::string temporary = path_ + "." + std::to_string(getpid());
    file_ = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file_ < 0)
        fail(temporary);
    void *base = MAP_FAILED;
    if (flock(file_, LOCK_EX) == 0 && ftruncate(file_, static_cast<off_t>(bytes_)) == 0)
        base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (base == MAP_FAILED) {
        unlink(temporary.c_str());
        close(file_);
        fail(temporary);
    }
    base_ = static_cast<uint8_t *>(base);
    head_ = reinterpret_cast<sim_area *>(base_);
    channels_ = reinterpret_cast<sim_channel *>(head_ + 1);
    fill(nodes, boards, host);
    claim_name(temporary);
}

void Area::fill(unsigned nodes, unsigned boards, const HostModel &host)
{
    head_->magic = SIM_AREA_MAGIC;
    head_->version = SIM_AREA_VERSION;
    head_->nodes = nodes;
    head_->pid = getpid();
    head_->memory_at = memory_at();
    head_->memory_bytes = SIM_MEMORY_BYTES;
    head_->boards = boards;
    head_->boards_at = area_bytes(nodes, 0);
    head_->poll_ps = host.poll_ns * kPsPerNs;
    head_->clock_ps = host.clock_ns * kPsPerNs;
    head_->copy_ps = host.copy_ns * kPsPerNs;
    head_->call_ps = host.call_ns * kPsPerNs;
    head_->slot_call_ps = kCallPs;
    head_->gap_ps = host.gap_ns * kPsPerNs;
    head_->compute_ps = host.compute_ns * kPsPerNs;
    head_->compute_permille = host.compute_permille;
}

void Area::claim_name(const std::string &temporary)
{
    // link() refuses a name that is taken, which rename() would replace.
    int result = link(temporary.c_str(), path_.c_str());
    int saved = errno;
    unlink(temporary.c_str());
    errno = saved;
    if (result != 0)
        fail(path_);
}

Area::~Area()
{
    end();
    munmap(base_, bytes_);
    close(file_);
}

uint32_t Area::turn(unsigned channel) const
{
    return std::atomic_ref(channels_[channel].turn).load(std::memory_order_acquire);
}

void Area::give_turn(unsigned channel, sim_turn turn)
{
    std::atomic_ref(channels_[channel].turn).store(turn, std::memory_order_release);
    wake(&channels_[channel].turn);
}

uint32_t Area::calls() const { return std::atomic_ref(head_->calls).load(); }

void Area::wait_for_call(uint32_t seen, uint64_t timeout_us) const
{
    timespec timeout = {static_cast<time_t>(timeout_us / 1000000),
                        static_cast<long>(timeout_us % 1000000 * 1000)};
    (void)syscall(SYS_futex, &head_->calls, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void Area::ring() const
{
    std::atomic_ref(head_->calls).fetch_add(1);
    wake(&head_->calls);
}

void Area::show_now(uint64_t now_ps)
{
    std::atomic_ref(head_->now_ps).store(now_ps, std::memory_order_relaxed);
}

bool Area::all_begun() const
{
    unsigned begun = 0;
    for (uint32_t &word : head_->begun)
        begun += static_cast<unsigned>(std::popcount(std::atomic_ref(word).load()));
    // A rank writes `ranks` before it says that it has begun.
    return begun == std::atomic_ref(head_->ranks).load(std::memory_order_relaxed) || begun == 0;
}

void Area::end()
{
    if (path_.empty())
        return;
    unlink(path_.c_str());
    path_.clear();
    std::atomic_ref(head_->ended).store(1);
    for (unsigned c = 0; c < SIM_CHANNELS_MAX; c++)
        wake(&channels_[c].turn);
}

} // namespace sim
