// SPDX-License-Identifier: Apache-2.0
#include "capture.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "velo/capture_spec.h"
#include "velo/spec.h"

namespace sim
{

namespace
{

static_assert(std::endian::native == std::endian::little, "the file has this machine's byte order");

constexpr uint32_t kNoEndWord = 0;
constexpr unsigned kWordBits = 64, kHalfBits = 32;

// Blocks and options of pcapng, sections 4.1 to 4.3 of the draft.
constexpr uint32_t kSectionBlock = 0x0a0d0d0a, kInterfaceBlock = 1, kPacketBlock = 6;
constexpr uint32_t kByteOrder = 0x1a2b3c4d;
constexpr uint16_t kVersionMajor = 1, kVersionMinor = 0;
constexpr uint64_t kLengthUnknown = UINT64_MAX;
constexpr uint16_t kOptEnd = 0, kOptComment = 1, kOptName = 2, kOptResolution = 9;
constexpr char kPicoseconds = 12; // a tick is 10 to the power of minus that many seconds
constexpr size_t kAlign = 4;

template <typename T> void put(std::string &to, T value)
{
    to.append(reinterpret_cast<const char *>(&value), sizeof value);
}

void put_option(std::string &to, uint16_t code, const std::string &value)
{
    put(to, code);
    put(to, static_cast<uint16_t>(value.size()));
    to += value;
    to.append((kAlign - value.size() % kAlign) % kAlign, '\0');
}

std::string end_name(unsigned node, unsigned link)
{
    return "node" + std::to_string(node) + " link" + std::to_string(link);
}

} // namespace

Capture::Capture(const std::string &path, const Topology &topology, const std::string &command,
                 const Clock &clock, unsigned width_bits)
    : path_(path), file_(path, std::ios::binary | std::ios::trunc), clock_(clock),
      width_bits_(width_bits), ways_(topology.nodes.size())
{
    if (!file_)
        throw std::runtime_error(path_ + ": cannot be written");
    std::string section;
    put(section, kByteOrder);
    put(section, kVersionMajor);
    put(section, kVersionMinor);
    put(section, kLengthUnknown);
    // An option has at most 64 KiB.
    put_option(section, kOptComment, command.substr(0, UINT16_MAX / 2));
    put_option(section, kOptEnd, "");
    write_block(kSectionBlock, section);
    uint32_t interfaces = 0;
    for (unsigned n = 0; n < ways_.size(); n++)
        for (unsigned l = 0; l < kLinksMax; l++) {
            const Plug &plug = topology.nodes[n].links[l];
            if (!plug.plugged)
                continue;
            Way &way = ways_[n][l];
            way.interface = interfaces++;
            way.place = velo_capture_place_pack(static_cast<uint16_t>(n), static_cast<uint8_t>(l),
                                                static_cast<uint16_t>(plug.to_node),
                                                static_cast<uint8_t>(plug.to_link), 0);
            write_interface(way);
        }
}

void Capture::sent(unsigned node, unsigned link, uint64_t cycle, const PhyWord &word)
{
    Way &way = ways_[node][link];
    if (word.kind == kKindStart)
        begin(way, cycle, word);
    else if (word.kind == kKindData && way.open)
        add(way, word);
    else if (word.kind == kKindEnd && way.open)
        end(way, static_cast<uint32_t>(word.data));
}

// A frame that is cut short has no end word: the next one, or the same again, begins.
void Capture::begin(Way &way, uint64_t cycle, const PhyWord &start)
{
    if (way.open)
        end(way, kNoEndWord);
    way.open = true;
    way.start_cycle = cycle;
    way.start_word = static_cast<uint32_t>(start.data);
    way.is_repeated = way.order.is_repeated(start);
    way.words.clear();
    way.has_half = false;
}

// A word of a path of 64 bits, which a narrower one sends in halves. On a wider one route and
// header have words of their own, whose upper half is of no interest.
void Capture::add(Way &way, const PhyWord &word) const
{
    auto low = static_cast<uint64_t>(word.data);
    if (width_bits_ < kWordBits) {
        if (way.has_half)
            way.words.back() |= low << kHalfBits;
        else
            way.words.push_back(low);
        way.has_half = !way.has_half;
        return;
    }
    bool is_head = way.words.empty() || (way.words.size() == 1 && is_route(way.words.front()));
    way.words.push_back(low);
    if (width_bits_ > kWordBits && !is_head)
        way.words.push_back(static_cast<uint64_t>(word.data >> kWordBits));
}

void Capture::end(Way &way, uint32_t end_word)
{
    way.open = false;
    if (way.has_half) // It was cut inside a word.
        way.words.pop_back();
    // Half of the last word of a wide path may be of no interest.
    size_t heads = !way.words.empty() && is_route(way.words.front()) ? 2 : 1;
    if (way.words.size() > heads) {
        size_t bytes = velo_packet_len(way.words[heads - 1]);
        size_t whole = heads + (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
        way.words.resize(std::min(way.words.size(), whole));
    }
    uint64_t place = way.place;
    if (way.is_repeated)
        place |= VELO_CAPTURE_PLACE_REPEATED_MASK;
    uint64_t time_ps = clock_.start_ps(way.start_cycle);
    auto bytes = static_cast<uint32_t>((2 + way.words.size()) * sizeof(uint64_t));
    std::string packet;
    put(packet, way.interface);
    put(packet, static_cast<uint32_t>(time_ps >> kHalfBits));
    put(packet, static_cast<uint32_t>(time_ps));
    put(packet, bytes);
    put(packet, bytes);
    put(packet, place);
    put(packet, velo_capture_frame_pack(way.start_word, end_word));
    for (uint64_t word : way.words)
        put(packet, word);
    write_block(kPacketBlock, packet);
    frames_++;
}

void Capture::write_interface(const Way &way)
{
    std::string interface;
    put(interface, static_cast<uint16_t>(VELO_CAPTURE_LINK_TYPE));
    put(interface, uint16_t{0});
    put(interface, uint32_t{0}); // frames are never cut
    put_option(
        interface, kOptName,
        end_name(velo_capture_place_node(way.place), velo_capture_place_link(way.place)) + " to " +
            end_name(velo_capture_place_to_node(way.place), velo_capture_place_to_link(way.place)));
    put_option(interface, kOptResolution, std::string(1, kPicoseconds));
    put_option(interface, kOptEnd, "");
    write_block(kInterfaceBlock, interface);
}

// A block has its length at both ends.
void Capture::write_block(uint32_t type, const std::string &body)
{
    auto bytes = static_cast<uint32_t>(3 * sizeof(uint32_t) + body.size());
    std::string block;
    put(block, type);
    put(block, bytes);
    block += body;
    put(block, bytes);
    file_.write(block.data(), static_cast<std::streamsize>(block.size()));
    if (!file_)
        throw std::runtime_error(path_ + ": cannot be written any further");
}

void Capture::finish()
{
    for (auto &links : ways_)
        for (Way &way : links)
            if (way.open)
                end(way, kNoEndWord);
    file_.close();
    if (!file_)
        throw std::runtime_error(path_ + ": cannot be written any further");
}

} // namespace sim
