// SPDX-License-Identifier: Apache-2.0
#include "config_space.h"

#include <algorithm>

#include "velo/pcie_spec.h"

namespace sim::card
{

namespace
{

// Base address registers: BAR0 registers, BAR2 window, BAR4 MSI-X and the function's own registers.
constexpr unsigned kBarBits[] = {VELO_PCIE_BAR0_BITS, 0, VELO_PCIE_BAR2_BITS, 0,
                                 VELO_PCIE_BAR4_BITS, 0};
constexpr uint32_t kBar64 = 0x4, kBarPrefetchable = 0x8;

// PCI Express Base Specification 3.0, chapter 7.
constexpr size_t kCommand = 0x04, kStatus = 0x06, kBars = 0x10, kFirstCapability = 0x34;
constexpr size_t kExpress = 0x40, kDeviceControl = kExpress + 0x08;
constexpr size_t kMsix = 0x80, kMsixControl = kMsix + 2;
constexpr size_t kPower = 0x90, kPowerControl = kPower + 4;
constexpr size_t kErrors = 0x100;
// The vendor's own capability, of simulated cards alone (README.md).
constexpr size_t kVendor = 0x200, kCycle = kVendor + 8, kCycleBytes = 4;
constexpr uint32_t kVendorId = 0xC1C;
constexpr unsigned kBusMaster = 1 << 2, kCommandBits = 0x0546; // memory, master, parity, SERR, INTx
constexpr unsigned kRelaxed = 1 << 4, kResetFunction = 1 << 15;
constexpr unsigned kMsixEnable = 1 << 15, kMsixMask = 1 << 14;
constexpr unsigned kPowerState = 3, kAsleep = 3; // D3hot; D0 is 0

} // namespace

uint64_t ConfigSpace::bar_bytes(unsigned bar)
{
    return bar < std::size(kBarBits) && kBarBits[bar] ? uint64_t{1} << kBarBits[bar] : 0;
}

uint32_t ConfigSpace::get(size_t offset, unsigned len_bytes) const
{
    uint32_t value = 0;
    for (unsigned i = 0; i < len_bytes; i++)
        value |= uint32_t{bytes_[offset + i]} << (8 * i);
    return value;
}

void ConfigSpace::put(size_t offset, unsigned len_bytes, uint64_t value, uint64_t writable)
{
    for (unsigned i = 0; i < len_bytes; i++) {
        bytes_[offset + i] = static_cast<uint8_t>(value >> (8 * i));
        writable_[offset + i] = static_cast<uint8_t>(writable >> (8 * i));
    }
}

void ConfigSpace::reset()
{
    bytes_ = {};
    writable_ = {};
    cleared_by_one_ = {};
    put(0x00, 2, VELO_PCIE_VENDOR);
    put(0x02, 2, VELO_PCIE_DEVICE);
    put(kCommand, 2, 0, kCommandBits);
    put(kStatus, 2, 1 << 4); // there are capabilities
    put(0x08, 1, VELO_PCIE_REVISION);
    put(0x09, 3, VELO_PCIE_CLASS);
    put(0x0c, 1, 0, 0xff); // cache line size: for software only
    put(0x2c, 2, VELO_PCIE_VENDOR);
    put(0x2e, 2, VELO_PCIE_DEVICE);
    put(kFirstCapability, 1, kExpress);
    put(0x3c, 1, 0, 0xff); // interrupt line: for software only
    add_bar(0, kBar64);
    add_bar(2, kBar64 | kBarPrefetchable);
    add_bar(4, kBar64);
    add_express();
    add_msix();
    add_power();
    add_error_reporting();
    add_cycle();
}

void ConfigSpace::add_bar(unsigned bar, uint32_t kind)
{
    put(kBars + 4 * bar, 8, kind, ~(bar_bytes(bar) - 1));
}

void ConfigSpace::add_express()
{
    put(kExpress, 1, 0x10);
    put(kExpress + 1, 1, kMsix);
    put(kExpress + 2, 2, 0x0002); // version 2, endpoint
    // Payload of 512 bytes, extended tags, errors by their role, function-level reset.
    put(kExpress + 4, 4, 2 | 1 << 5 | 1 << 15 | 1 << 28);
    // Reads of 512 bytes, relaxed ordering.
    put(kDeviceControl, 2, 0x2810, 0x79ff);
    cleared_by_one_[kExpress + 0x0a] = 0x0f;
    put(kExpress + 0x0c, 4, 0x42);      // four lanes at 5 GT/s
    put(kExpress + 0x10, 2, 0, 0x00c3); // link control: for software only
    put(kExpress + 0x12, 2, 0x42);
    put(kExpress + 0x2c, 4, 0x06);
    put(kExpress + 0x30, 2, 0x02, 0x000f);
}

void ConfigSpace::add_msix()
{
    put(kMsix, 1, 0x11);
    put(kMsix + 1, 1, kPower);
    put(kMsixControl, 2, VELO_PCIE_VECTORS - 1, kMsixEnable | kMsixMask);
    put(kMsix + 4, 4, 4); // the table is at the start of BAR4
    put(kMsix + 8, 4, VELO_PCIE_MSIX_PBA | 4);
}

// D0 and D3hot, between which a function forgets all (PCI Bus Power Management Interface
// Specification 1.2, 5.4.1).
void ConfigSpace::add_power()
{
    put(kPower, 1, 0x01); // the last one
    put(kPower + 2, 2, 0x0003);
    put(kPowerControl, 2, 0, kPowerState);
}

bool ConfigSpace::is_asleep() const { return (get(kPowerControl, 2) & kPowerState) == kAsleep; }

void ConfigSpace::add_error_reporting()
{
    put(kErrors, 4, kVendor << 20 | 0x00020001); // advanced error reporting, version 2
    uint32_t all = 0;
    for (Error error : {Error::kTimeout, Error::kUnexpected, Error::kMalformed, Error::kPoisoned,
                        Error::kUnsupported})
        all |= uint32_t{1} << static_cast<unsigned>(error);
    for (unsigned i = 0; i < 4; i++)
        cleared_by_one_[kErrors + 4 + i] = static_cast<uint8_t>(all >> (8 * i));
    put(kErrors + 0x08, 4, 0, all);
    put(kErrors + 0x0c, 4, uint32_t{1} << static_cast<unsigned>(Error::kMalformed), all);
}

void ConfigSpace::add_cycle()
{
    put(kVendor, 4, 0x0001000b); // vendor-specific, version 1, the last one
    put(kVendor + 4, 4, (kCycle + kCycleBytes - kVendor) << 20 | kVendorId);
}

bool ConfigSpace::write(size_t offset, std::span<const uint8_t> bytes)
{
    constexpr size_t kResetByte = kDeviceControl + 1;
    bool resets = false, was_asleep = is_asleep();
    for (size_t i = 0; i < bytes.size(); i++) {
        size_t at = offset + i;
        uint8_t byte = bytes[i];
        bytes_[at] = static_cast<uint8_t>((bytes_[at] & ~writable_[at]) | (byte & writable_[at]));
        bytes_[at] = static_cast<uint8_t>(bytes_[at] & ~(byte & cleared_by_one_[at]));
        resets = resets || (at == kResetByte && (byte & (kResetFunction >> 8)) != 0);
    }
    return resets || (was_asleep && !is_asleep());
}

void ConfigSpace::read(size_t offset, std::span<uint8_t> bytes, uint32_t cycle) const
{
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), bytes.size(), bytes.begin());
    for (size_t i = 0; i < kCycleBytes; i++)
        if (kCycle + i >= offset && kCycle + i - offset < bytes.size())
            bytes[kCycle + i - offset] = static_cast<uint8_t>(cycle >> (8 * i));
}

void ConfigSpace::note(Error error)
{
    auto bit = static_cast<unsigned>(error);
    bytes_[kErrors + 4 + bit / 8] |= static_cast<uint8_t>(1 << bit % 8);
}

FunctionConfig ConfigSpace::function() const
{
    uint32_t device = get(kDeviceControl, 2), msix = get(kMsixControl, 2);
    return {(get(kCommand, 2) & kBusMaster) != 0 && !is_asleep(),
            (device & kRelaxed) != 0,
            (msix & kMsixEnable) != 0,
            (msix & kMsixMask) != 0,
            static_cast<uint8_t>(device >> 5 & 7),
            static_cast<uint8_t>(device >> 12 & 7)};
}

} // namespace sim::card
