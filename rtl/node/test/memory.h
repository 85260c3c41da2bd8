// SPDX-License-Identifier: Apache-2.0
//
// A host's memory: bytes, zero until written.

#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace bench
{

class Memory
{
  public:
    static constexpr uint64_t kPageBytes = 4096;

    uint8_t byte(uint64_t addr) const
    {
        auto found = pages_.find(addr / kPageBytes);
        return found == pages_.end() ? 0 : found->second[addr % kPageBytes];
    }
    void set_byte(uint64_t addr, uint8_t value)
    {
        pages_[addr / kPageBytes][addr % kPageBytes] = value;
    }

    // Little-endian, at any address.
    uint64_t word(uint64_t addr) const
    {
        uint64_t value = 0;
        for (unsigned i = 0; i < 8; i++)
            value |= static_cast<uint64_t>(byte(addr + i)) << (8 * i);
        return value;
    }
    void set_word(uint64_t addr, uint64_t value)
    {
        for (unsigned i = 0; i < 8; i++)
            set_byte(addr + i, static_cast<uint8_t>(value >> (8 * i)));
    }

    // A whole page, for comparisons and copies.
    uint8_t *page(uint64_t number) { return pages_[number].data(); }

  private:
    std::unordered_map<uint64_t, std::array<uint8_t, kPageBytes>> pages_;
};

} // namespace bench
