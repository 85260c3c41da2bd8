// SPDX-License-Identifier: Apache-2.0
#include "area.h"

#include <algorithm>
#include <atomic>
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
#include "causes.h"
#include "names.h"

namespace sim
{

namespace
{

constexpr uint64_t kPageBytes = 4096;

uint64_t memory_at(const AreaSize &size)
{
    uint64_t bytes = sizeof(sim_area) + size.channels * sizeof(sim_channel);
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

uint64_t boards_at(const AreaSize &size)
{
    return memory_at(size) + size.nodes * uint64_t{SIM_MEMORY_BYTES};
}

// Each node has a context at least, and each board all of its memory.
uint64_t used_bytes(const AreaSize &size)
{
    return sizeof(sim_area) + size.nodes * uint64_t{SIM_RING_BYTES + SIM_QUEUE_BYTES} +
           size.boards * uint64_t{SIM_BOARD_BYTES};
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

uint64_t area_bytes(const AreaSize &size)
{
    return boards_at(size) + size.boards * uint64_t{SIM_BOARD_BYTES};
}

Area::Area(const std::string &path, const AreaSize &size, const HostModel &host)
    : path_(path), bytes_(area_bytes(size))
{
    check_room(std::filesystem::absolute(path).parent_path(), used_bytes(size));
    remove_stale(path_);
    std::string temporary = path_ + "." + std::to_string(getpid());
    file_ = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file_ < 0)
        fail(temporary);
    void *base = MAP_FAILED;
    if (flock(file_, LOCK_EX) == 0 && ftruncate(file_, static_cast<off_t>(bytes_)) == 0)
        base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (base == MAP_FAILED) {
        unlink(temporary.c_str());
        close(file_);
        fail(temporary);
    }
    base_ = static_cast<uint8_t *>(base);
    head_ = reinterpret_cast<sim_area *>(base_);
    channels_ = reinterpret_cast<sim_channel *>(head_ + 1);
    fill(size, host);
    claim_name(temporary);
}

void Area::fill(const AreaSize &size, const HostModel &host)
{
    head_->magic = SIM_AREA_MAGIC;
    head_->version = SIM_AREA_VERSION;
    head_->nodes = size.nodes;
    head_->channels = size.channels;
    head_->context_bits = Names(size.nodes).context_bits();
    head_->pid = getpid();
    head_->memory_at = memory_at(size);
    head_->memory_bytes = SIM_MEMORY_BYTES;
    head_->boards = size.boards;
    head_->boards_at = boards_at(size);
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

unsigned Area::claimed_end() const
{
    return std::min(std::atomic_ref(head_->claimed_end).load(std::memory_order_acquire),
                    head_->channels);
}

uint32_t Area::claims() const
{
    return std::atomic_ref(head_->claims).load(std::memory_order_acquire);
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
    uint32_t begun = std::atomic_ref(head_->ranks_begun).load();
    // A rank writes `ranks` before it says that it has begun.
    return begun == std::atomic_ref(head_->ranks).load(std::memory_order_relaxed) || begun == 0;
}

void Area::report(sim_cause cause, uint64_t rank, const std::string &what)
{
    sim_seen &seen = head_->causes[cause];
    uint32_t expected = 0;
    if (!std::atomic_ref(seen.is_seen).compare_exchange_strong(expected, 1))
        return;
    seen.rank = rank < UINT32_MAX ? static_cast<uint32_t>(rank) : UINT32_MAX;
    what.copy(seen.what, sizeof seen.what - 1);
    std::atomic_ref(seen.is_seen).store(2, std::memory_order_release);
}

std::vector<std::string> Area::causes() const
{
    std::vector<std::string> sentences;
    for (unsigned c = 0; c < SIM_CAUSES; c++) {
        sim_seen &seen = head_->causes[c];
        uint32_t is_seen = std::atomic_ref(seen.is_seen).load(std::memory_order_acquire);
        if (is_seen == 0)
            continue;
        // A process that died while it wrote its report counts, without its words.
        std::string what(seen.what, is_seen == 2 ? strnlen(seen.what, sizeof seen.what) : 0);
        sentences.push_back(
            cause_sentence(static_cast<sim_cause>(c), is_seen == 2 ? seen.rank : UINT32_MAX, what));
    }
    return sentences;
}

void Area::end()
{
    if (path_.empty())
        return;
    unlink(path_.c_str());
    path_.clear();
    std::atomic_ref(head_->ended).store(1);
    for (unsigned c = 0; c < claimed_end(); c++)
        wake(&channels_[c].turn);
}

} // namespace sim
