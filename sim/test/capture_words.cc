// SPDX-License-Identifier: Apache-2.0
//
// capture_words FOLDER: captures the same frames as links of 32, 64 and 128 bits send them, into
// FOLDER/WIDTH.pcapng; captures.py looks at them.
#include <cstdlib>
#include <string>
#include <vector>

#include "../capture.h"
#include "velo/spec.h"

namespace
{

constexpr unsigned kNode = 1, kLink = 2;
constexpr uint64_t kCyclesApart = 100, kKhz = 100000, kHops = 0x321;
// The words beyond the packet on a wide path are of no interest: they show if anybody looks.
constexpr uint64_t kNoise = 0xeeeeeeeeeeeeeeee;

struct Frame {
    unsigned seq, bytes;
    unsigned words_cut = 0; // that are not sent, and no end word
    bool is_routed = false;
    bool is_cut_early = false; // before its header
};

// Sequence number 5 comes again.
const std::vector<Frame> kFrames = {
    {.seq = 0, .bytes = 0},
    {.seq = 1, .bytes = 8},
    {.seq = 2, .bytes = 24, .is_routed = true},
    {.seq = 3, .bytes = 61},
    {.seq = 4, .bytes = 8, .is_routed = true},
    {.seq = 5, .bytes = 40, .words_cut = 3},
    {.seq = 5, .bytes = 8},
    {.seq = 6, .bytes = 16},
    {.seq = 7, .bytes = 8, .is_cut_early = true},
};

class Sender
{
  public:
    Sender(sim::Capture &capture, unsigned width_bits) : capture_(capture), width_bits_(width_bits)
    {
    }

    void send(const Frame &frame)
    {
        cycle_ = ++frames_ * kCyclesApart;
        word(0x00100000U | frame.seq << 3, sim::kKindStart);
        if (frame.is_cut_early) {
            if (width_bits_ < 64)
                word(0x10, sim::kKindData); // Half of a header.
            return;
        }
        if (frame.is_routed)
            head(1 | kHops << 4);
        head(velo_packet_pack(0, 0, 0, 7, 3, 0, 0, static_cast<uint16_t>(frame.bytes), 9, 4, 1));
        word(0, sim::kKindControl); // Between a frame's words there may be others.
        std::vector<uint64_t> payload = payload_of(frame);
        if (width_bits_ <= 64) {
            for (uint64_t one : payload)
                head(one);
        } else {
            for (size_t i = 0; i < payload.size(); i += 2)
                word(sim::PathWord{i + 1 < payload.size() ? payload[i + 1] : kNoise} << 64 |
                         payload[i],
                     sim::kKindData);
        }
        if (frame.words_cut == 0)
            word(0x12345678, sim::kKindEnd);
    }

  private:
    sim::Capture &capture_;
    unsigned width_bits_;
    uint64_t cycle_ = 0, frames_ = 0;

    static std::vector<uint64_t> payload_of(const Frame &frame)
    {
        std::vector<uint64_t> words((frame.bytes + 7) / 8);
        for (uint64_t i = 0; i < frame.bytes; i++)
            words[i / 8] |= (i + 1) << (8 * (i % 8));
        words.resize(words.size() - frame.words_cut);
        return words;
    }

    void word(sim::PathWord data, uint64_t kind)
    {
        capture_.sent(kNode, kLink, cycle_++, {data, kind});
    }

    // A word of 64 bits, in words of its own.
    void head(uint64_t data)
    {
        if (width_bits_ < 64) {
            word(static_cast<uint32_t>(data), sim::kKindData);
            word(data >> 32, sim::kKindData);
        } else {
            word(width_bits_ > 64 ? sim::PathWord{kNoise} << 64 | data : data, sim::kKindData);
        }
    }
};

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2)
        return EXIT_FAILURE;
    sim::Topology topology;
    topology.nodes.resize(2);
    topology.nodes[kNode].links[kLink] = {.plugged = true, .to_node = 0, .to_link = 0};
    topology.nodes[0].links[0] = {.plugged = true, .to_node = kNode, .to_link = kLink};
    for (unsigned width_bits : {32U, 64U, 128U}) {
        sim::Capture capture(std::string(argv[1]) + "/" + std::to_string(width_bits) + ".pcapng",
                             topology, "x", sim::Clock(kKhz), width_bits);
        Sender sender(capture, width_bits);
        for (const Frame &frame : kFrames)
            sender.send(frame);
        capture.finish();
    }
    return EXIT_SUCCESS;
}
