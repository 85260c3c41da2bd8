// SPDX-License-Identifier: Apache-2.0
//
// Memory that a guest lets its card reach: regions of whole pages that the client of the socket
// names one by one.
//
// A region whose file cannot shrink is mapped here. Memory of any other file could go away at any
// moment, and an access to it would end the simulator; so the card's accesses to such a region, and
// to one without a file, are carried out by the client.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "descriptor.h"

namespace sim::card
{

class GuestMemory
{
  public:
    struct Rights {
        bool read, write;
    };
    enum class Place {
        kNowhere, // no region, or not all of it, or not the right
        kHere,
        kClient,
    };

    GuestMemory() = default;
    ~GuestMemory() { unmap_all(); }
    GuestMemory(const GuestMemory &) = delete;
    GuestMemory &operator=(const GuestMemory &) = delete;

    // Returns 0 or an errno; then nothing has changed.
    int map(uint64_t address, uint64_t bytes, Rights rights, const Descriptor &file,
            uint64_t offset);
    // Only whole regions, all that lie there.
    int unmap(uint64_t address, uint64_t bytes);
    void unmap_all();

    // Bytes within one page.
    Place place(uint64_t address, size_t bytes, Rights rights) const;
    // These need Place::kHere. Whole aligned words are seen whole.
    void read(uint64_t address, uint8_t *to, size_t bytes) const;
    void write(uint64_t address, const uint8_t *from, size_t bytes) const;

    // The card interrupts by writing there, so no region may have these addresses.
    static constexpr uint64_t kInterruptAddress = uint64_t{1} << 62;

  private:
    struct Region {
        uint64_t bytes;
        Rights rights;
        uint8_t *base; // nullptr: the client carries it out
    };

    static constexpr uint64_t kPageBytes = 4096;
    static constexpr size_t kRegionsMax = 65536;

    std::map<uint64_t, Region> regions_; // by address; they do not overlap

    bool overlaps(uint64_t address, uint64_t bytes) const;
    const Region *find(uint64_t address, size_t bytes, uint64_t &begin) const;
    static void drop(const Region &region);
};

} // namespace sim::card
