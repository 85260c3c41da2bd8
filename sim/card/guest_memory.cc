// SPDX-License-Identifier: Apache-2.0
#include "guest_memory.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace sim::card
{

namespace
{

constexpr size_t kWordBytes = 8;

// Does the file have these bytes, and will it keep them?
bool stays(int file, uint64_t end)
{
    struct stat status;
    int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(file, &status) == 0 &&
           static_cast<uint64_t>(status.st_size) >= end;
}

bool is_word(uint64_t address, size_t bytes)
{
    return bytes >= kWordBytes && address % kWordBytes == 0;
}

} // namespace

bool GuestMemory::overlaps(uint64_t address, uint64_t bytes) const
{
    auto next = regions_.lower_bound(address);
    if (next != regions_.end() && next->first - address < bytes)
        return true;
    return next != regions_.begin() &&
           address - std::prev(next)->first < std::prev(next)->second.bytes;
}

int GuestMemory::map(uint64_t address, uint64_t bytes, Rights rights, const Descriptor &file,
                     uint64_t offset)
{
    // Below the address of interrupts there is no overflow either.
    if (bytes == 0 || address % kPageBytes != 0 || bytes % kPageBytes != 0 ||
        address >= kInterruptAddress || bytes > kInterruptAddress - address)
        return EINVAL;
    if (file && (offset % kPageBytes != 0 || offset > INT64_MAX - bytes))
        return EINVAL;
    if (overlaps(address, bytes))
        return EEXIST;
    if (regions_.size() >= kRegionsMax)
        return ENOSPC;
    uint8_t *base = nullptr;
    if (file && stays(file.number(), offset + bytes)) {
        int access = (rights.read ? PROT_READ : 0) | (rights.write ? PROT_WRITE : 0);
        void *at =
            mmap(nullptr, bytes, access, MAP_SHARED, file.number(), static_cast<off_t>(offset));
        if (at == MAP_FAILED)
            return errno;
        base = static_cast<uint8_t *>(at);
    }
    regions_[address] = {bytes, rights, base};
    return 0;
}

void GuestMemory::drop(const Region &region)
{
    if (region.base)
        munmap(region.base, region.bytes);
}

int GuestMemory::unmap(uint64_t address, uint64_t bytes)
{
    if (bytes == 0 || bytes - 1 > UINT64_MAX - address)
        return EINVAL;
    uint64_t last = address + (bytes - 1);
    auto begin = regions_.lower_bound(address), end = regions_.upper_bound(last);
    if (begin != regions_.begin()) {
        const auto &[before, region] = *std::prev(begin);
        if (address - before < region.bytes)
            return EINVAL;
    }
    if (begin == end)
        return ENOENT;
    const auto &[at, region] = *std::prev(end);
    if (last - at < region.bytes - 1)
        return EINVAL;
    for (auto one = begin; one != end; ++one)
        drop(one->second);
    regions_.erase(begin, end);
    return 0;
}

void GuestMemory::unmap_all()
{
    for (const auto &[at, region] : regions_)
        drop(region);
    regions_.clear();
}

const GuestMemory::Region *GuestMemory::find(uint64_t address, size_t bytes, uint64_t &begin) const
{
    auto next = regions_.upper_bound(address);
    if (next == regions_.begin())
        return nullptr;
    const auto &[at, region] = *std::prev(next);
    if (bytes > region.bytes || address - at > region.bytes - bytes)
        return nullptr;
    begin = at;
    return &region;
}

GuestMemory::Place GuestMemory::place(uint64_t address, size_t bytes, Rights rights) const
{
    uint64_t begin = 0;
    const Region *region = find(address, bytes, begin);
    if (!region || (rights.read && !region->rights.read) || (rights.write && !region->rights.write))
        return Place::kNowhere;
    return region->base ? Place::kHere : Place::kClient;
}

void GuestMemory::read(uint64_t address, uint8_t *to, size_t bytes) const
{
    uint64_t begin = 0;
    const Region *region = find(address, bytes, begin);
    uint8_t *from = region->base + (address - begin);
    for (; bytes > 0 && is_word(address, bytes); bytes -= kWordBytes) {
        // Acquire: what the guest wrote before this word is read after it.
        uint64_t word =
            std::atomic_ref(*reinterpret_cast<uint64_t *>(from)).load(std::memory_order_acquire);
        std::memcpy(to, &word, kWordBytes);
        address += kWordBytes;
        from += kWordBytes;
        to += kWordBytes;
    }
    std::memcpy(to, from, bytes);
}

void GuestMemory::write(uint64_t address, const uint8_t *from, size_t bytes) const
{
    uint64_t begin = 0;
    const Region *region = find(address, bytes, begin);
    uint8_t *to = region->base + (address - begin);
    for (; bytes > 0 && is_word(address, bytes); bytes -= kWordBytes) {
        uint64_t word = 0;
        std::memcpy(&word, from, kWordBytes);
        // Release: who sees this word sees what the card wrote before it.
        std::atomic_ref(*reinterpret_cast<uint64_t *>(to)).store(word, std::memory_order_release);
        address += kWordBytes;
        from += kWordBytes;
        to += kWordBytes;
    }
    std::memcpy(to, from, bytes);
}

} // namespace sim::card
