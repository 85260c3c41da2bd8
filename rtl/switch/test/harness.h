// SPDX-License-Identifier: Apache-2.0
//
// Shared by the benches of switch and network: random numbers from one seed, fields of wide ports,
// packets that tell by themselves whether they arrived whole and in order.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.h"
#include "verilated.h"

namespace bench
{

// SplitMix64: small, and the same everywhere.
class Random
{
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next()
    {
        uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    uint32_t below(uint32_t limit) { return static_cast<uint32_t>(next() >> 32) % limit; }
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  private:
    uint64_t state_;
};

// A field of a port, whatever type Verilator chose for it; at most 64 bits.
template <typename Port> uint64_t get_bits(const Port &port, unsigned lsb, unsigned width)
{
    uint64_t value = 0;
    if constexpr (std::is_integral_v<Port>) {
        value = static_cast<uint64_t>(port) >> lsb;
    } else {
        for (unsigned i = 0; i < width; i += 32) {
            unsigned word = (lsb + i) / 32;
            unsigned shift = (lsb + i) % 32;
            uint64_t part = static_cast<uint64_t>(port[word]) >> shift;
            if (shift && shift + (width - i < 32 ? width - i : 32) > 32)
                part |= static_cast<uint64_t>(port[word + 1]) << (32 - shift);
            value |= (part & 0xFFFFFFFFULL) << i;
        }
    }
    return width == 64 ? value : value & ((1ULL << width) - 1);
}

template <typename Port> void set_bits(Port &port, unsigned lsb, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++) {
        uint64_t bit = (value >> i) & 1;
        if constexpr (std::is_integral_v<Port>) {
            port = static_cast<Port>((port & ~(Port{1} << (lsb + i))) |
                                     static_cast<Port>(bit << (lsb + i)));
        } else {
            unsigned word = (lsb + i) / 32;
            unsigned shift = (lsb + i) % 32;
            port[word] = (port[word] & ~(1U << shift)) | static_cast<EData>(bit << shift);
        }
    }
}

constexpr unsigned kClasses = 3;
constexpr unsigned kHopLocal = 15;

using Words = std::vector<uint32_t>; // a packet as it goes over a 32-bit path

// The header of spec/velo.toml, as far as the network looks at it.
inline uint64_t header(unsigned tc, unsigned dst, unsigned src, unsigned len_bytes)
{
    return static_cast<uint64_t>(tc) << 1 | static_cast<uint64_t>(dst) << 8 |
           static_cast<uint64_t>(len_bytes) << 26 | static_cast<uint64_t>(src) << 52;
}

// A packet whose payload is a function of who sent it to whom and which it is. At least 8 bytes.
inline Words make_packet(unsigned tc, unsigned dst, unsigned src, uint32_t sequence,
                         unsigned payload_words)
{
    Words words;
    // Only messages go on before their end is known; put has other kinds of packets' longer payloads.
    uint64_t head = header(tc, dst, src, payload_words * 4) | (payload_words > 16 ? 1 : 0) << 4;
    words.push_back(static_cast<uint32_t>(head));
    words.push_back(static_cast<uint32_t>(head >> 32));
    words.push_back(sequence);
    Random fill(head * 31 + sequence);
    while (words.size() < payload_words + 2)
        words.push_back(static_cast<uint32_t>(fill.next()));
    return words;
}

} // namespace bench
