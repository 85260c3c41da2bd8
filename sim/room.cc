// SPDX-License-Identifier: Apache-2.0
#include "room.h"

#include <cerrno>
#include <cstdint>

#include <sys/mman.h>

#include "process.h"

namespace sim
{

namespace
{

constexpr unsigned kKibLog2 = 10;
constexpr uintptr_t kPageMask = 4095;

// Newer than the oldest headers that this is built with. Where the kernel does not know it, nothing
// is lost but the error.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

} // namespace

void take_room(void *memory, size_t bytes, const std::string &what)
{
    auto begin = reinterpret_cast<uintptr_t>(memory) & ~kPageMask;
    size_t all = reinterpret_cast<uintptr_t>(memory) + bytes - begin;
    if (madvise(reinterpret_cast<void *>(begin), all, MADV_POPULATE_WRITE) == 0 ||
        (errno != EFAULT && errno != ENOMEM))
        return;
    throw JobError("the file system of the cluster's memory has no room for " +
                   std::to_string(all >> kKibLog2) + " KiB more, which " + what +
                   " needs; make it larger (mount -o remount,size=...), choose another --area, or "
                   "start fewer ranks");
}

} // namespace sim
