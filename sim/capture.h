// SPDX-License-Identifier: Apache-2.0
//
// Frames as nodes send them over their cables, in a file that Wireshark reads (pcapng, as in
// draft-ietf-opsawg-pcapng). Each direction of a cable is an interface, with a name; times are in
// picoseconds. spec/capture.toml says what a frame looks like. The dissector is
// sim/wireshark/velo.lua.
//
// Capturing changes nothing in the run. Frames are seen before a cable disturbs them: one that
// comes out wrong is seen again when it is repeated.

#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "clock.h"
#include "rtl/link_words.h"
#include "topology.h"

namespace sim
{

class Capture
{
  public:
    // All calls throw std::runtime_error if the file cannot be written.
    Capture(const std::string &path, const Topology &topology, const std::string &command,
            const Clock &clock, unsigned width_bits);

    // A word that a link sends in a cycle; to be called in the order of cycles.
    void sent(unsigned node, unsigned link, uint64_t cycle, const PhyWord &word);
    // Frames that are under way count as cut short.
    void finish();

    uint64_t frames() const { return frames_; }

  private:
    // A direction of a cable.
    struct Way {
        uint32_t interface = 0;
        uint64_t place = 0;          // spec/capture.toml
        bool open = false;           // a frame has begun
        uint64_t start_cycle = 0;    // of that frame
        uint32_t start_word = 0;     // of that frame
        std::vector<uint64_t> words; // of its packet
        bool has_half = false;       // the last of them lacks its upper half
        FrameOrder order;
        bool is_repeated = false; // the frame that has begun
    };

    std::string path_;
    std::ofstream file_;
    Clock clock_;
    unsigned width_bits_;
    std::vector<std::array<Way, kLinksMax>> ways_; // by node and link
    uint64_t frames_ = 0;

    void begin(Way &way, uint64_t cycle, const PhyWord &start);
    void add(Way &way, const PhyWord &word) const;
    void end(Way &way, uint32_t end_word);
    void write_interface(const Way &way);
    void write_block(uint32_t type, const std::string &body);
};

} // namespace sim
