// SPDX-License-Identifier: Apache-2.0
//
// The configuration space of a card: what a hard block of PCI Express has on a real one.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sim::card
{

// What the function wants to know of it (config_t of rtl/pcie).
struct FunctionConfig {
    bool bus_master = false, relaxed = false, msix_enable = false, msix_mask = false;
    uint8_t max_payload = 0, max_read = 0; // 128 bytes shifted left by this

    bool operator==(const FunctionConfig &) const = default;
};

// Bits of the status of uncorrectable errors (AER).
enum class Error : unsigned {
    kTimeout = 14,    // a read of memory was not answered
    kUnexpected = 16, // a completion that answers nothing
    kMalformed = 18,
    kPoisoned = 12,
    kUnsupported = 20,
};

class ConfigSpace
{
  public:
    static constexpr size_t kBytes = 4096;

    ConfigSpace() { reset(); }

    void reset();
    // The bytes have to be in the space. True: a function-level reset was asked for, or the
    // function wakes up, which is one, too.
    bool write(size_t offset, std::span<const uint8_t> bytes);
    // `cycle`: the cluster's, which the space shows.
    void read(size_t offset, std::span<uint8_t> bytes, uint32_t cycle) const;
    void note(Error error);
    FunctionConfig function() const;
    // Then its memory answers nobody.
    bool is_asleep() const;

    // 0: there is no such base address register.
    static uint64_t bar_bytes(unsigned bar);

  private:
    std::array<uint8_t, kBytes> bytes_{}, writable_{}, cleared_by_one_{};

    uint32_t get(size_t offset, unsigned len_bytes) const;
    void put(size_t offset, unsigned len_bytes, uint64_t value, uint64_t writable = 0);
    void add_bar(unsigned bar, uint32_t kind);
    void add_express();
    void add_msix();
    void add_power();
    void add_error_reporting();
    void add_cycle();
};

} // namespace sim::card
