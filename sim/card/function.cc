// SPDX-License-Identifier: Apache-2.0
#include "function.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "velo/pcie_spec.h"

namespace sim::card
{

namespace
{

constexpr unsigned kDwordBytes = 4, kRequestDwords = 4, kCompletionDwords = 3;
constexpr uint8_t kHas64 = 0x20; // in format and type: an address of 64 bits
// The host's own id, and a place for the base address registers that needs addresses of 64 bits.
constexpr uint16_t kHostId = 0;
constexpr uint64_t kBarBase = uint64_t{1} << 45;
constexpr unsigned kPayloadBytesMin = 128, kByteCountMask = 0xfff;

void put_word(std::vector<uint32_t> &dwords, uint64_t word)
{
    dwords.push_back(static_cast<uint32_t>(word));
    dwords.push_back(static_cast<uint32_t>(word >> 32));
}

uint64_t word_at(std::span<const uint32_t> dwords, size_t at)
{
    return uint64_t{dwords[at + 1]} << 32 | dwords[at];
}

// Data begin `lead` bytes after an aligned dword.
void put_data(std::vector<uint32_t> &dwords, unsigned lead, std::span<const uint8_t> bytes)
{
    size_t begin = dwords.size();
    dwords.resize(begin + (lead + bytes.size() + kDwordBytes - 1) / kDwordBytes);
    if (!bytes.empty())
        std::memcpy(reinterpret_cast<uint8_t *>(dwords.data() + begin) + lead, bytes.data(),
                    bytes.size());
}

// Which bytes of its dwords a request means.
struct Extent {
    uint64_t address;
    unsigned lead, len_bytes;
};

Extent extent_of(std::span<const uint32_t> dwords, size_t header)
{
    uint64_t head = word_at(dwords, 0);
    uint64_t address = header == kRequestDwords ? uint64_t{dwords[2]} << 32 | dwords[3] : dwords[2];
    unsigned length = velo_pcie_head_length(head);
    length = length ? length : 1024;
    unsigned first = velo_pcie_head_first_be(head), last = velo_pcie_head_last_be(head);
    auto lead = static_cast<unsigned>(std::countr_zero(first | 0x10));
    unsigned ends = length == 1 ? first : last;
    auto trail = static_cast<unsigned>(std::countl_zero(static_cast<uint8_t>(ends << 4 | 8)));
    unsigned bytes = length * kDwordBytes;
    return {address + lead, lead, lead + trail < bytes ? bytes - lead - trail : 0};
}

} // namespace

Function::Function(unsigned number, bool is_shown)
    : AnyNode(number), model_(make_card_model("node" + std::to_string(number), is_shown))
{
}

// ----- the guest's accesses

void Function::request(uint8_t tlp, unsigned bar, uint64_t offset, size_t len_bytes, uint8_t tag,
                       std::span<const uint8_t> bytes)
{
    auto lead = static_cast<unsigned>(offset % kDwordBytes);
    auto dwords = static_cast<unsigned>((lead + len_bytes + kDwordBytes - 1) / kDwordBytes);
    auto tail = static_cast<unsigned>((lead + len_bytes) % kDwordBytes);
    unsigned last = tail == 0 ? 0xf : (1U << tail) - 1, first = 0xfU << lead & 0xf;
    if (dwords == 1) {
        first &= last;
        last = 0;
    }
    Packet packet;
    packet.bar = static_cast<int>(bar);
    put_word(packet.dwords, velo_pcie_head_pack(static_cast<uint16_t>(dwords), 0, 0, 0, 0, 0, 0,
                                                tlp, static_cast<uint8_t>(first),
                                                static_cast<uint8_t>(last), tag, kHostId));
    uint64_t address = kBarBase + (offset - lead);
    packet.dwords.push_back(static_cast<uint32_t>(address >> 32));
    packet.dwords.push_back(static_cast<uint32_t>(address));
    if (!bytes.empty())
        put_data(packet.dwords, lead, bytes);
    in_.push_back(std::move(packet));
}

void Function::store(unsigned bar, uint64_t offset, std::span<const uint8_t> bytes)
{
    request(VELO_PCIE_TLP_MEM_WRITE_64, bar, offset, bytes.size(), 0, bytes);
}

void Function::load(unsigned bar, uint64_t offset, unsigned len_bytes)
{
    loading_ = true;
    load_offset_ = offset;
    load_bytes_ = len_bytes;
    // The tag tells a late answer of a load from before a reset.
    request(VELO_PCIE_TLP_MEM_READ_64, bar, offset, len_bytes, ++load_tag_, {});
}

void Function::complete(const MemoryRead &read, std::span<const uint8_t> bytes)
{
    reads_ -= reads_ > 0;
    unsigned payload = kPayloadBytesMin << std::min<unsigned>(inputs_.config.max_payload, 5);
    bool refused = bytes.empty();
    // A completion ends where one of the largest payload would, if it began at a multiple of it.
    do {
        uint64_t address = read.address + (refused ? 0 : read.len_bytes - bytes.size());
        auto room = payload - address % payload;
        auto part = bytes.first(std::min<size_t>(bytes.size(), room));
        auto lead = static_cast<unsigned>(address % kDwordBytes);
        Packet packet;
        put_word(
            packet.dwords,
            velo_pcie_completion_word0_pack(
                static_cast<uint16_t>((lead + part.size() + kDwordBytes - 1) / kDwordBytes), 0, 0,
                0, 0, 0, refused ? VELO_PCIE_TLP_COMPLETION : VELO_PCIE_TLP_COMPLETION_DATA,
                static_cast<uint16_t>((refused ? read.len_bytes : bytes.size()) & kByteCountMask),
                0, refused ? VELO_PCIE_STATUS_UNSUPPORTED : VELO_PCIE_STATUS_SUCCESS, kHostId));
        packet.dwords.push_back(static_cast<uint32_t>(velo_pcie_completion_word1_pack(
            static_cast<uint8_t>(address & 0x7f), read.tag, read.requester)));
        if (!refused)
            put_data(packet.dwords, lead, part);
        in_.push_back(std::move(packet));
        bytes = bytes.subspan(part.size());
    } while (!bytes.empty());
}

void Function::set_config(const FunctionConfig &config)
{
    touched_ = touched_ || config != inputs_.config;
    inputs_.config = config;
}

void Function::reset()
{
    inputs_.function_reset = touched_ = true;
    loading_ = false;
    // What has begun ends, and the function is owed its completions.
    std::deque<Packet> kept;
    for (size_t i = 0; i < in_.size(); i++)
        if (in_[i].bar < 0 || (i == 0 && in_dword_ > 0))
            kept.push_back(std::move(in_[i]));
    in_ = std::move(kept);
}

// ----- cycles

void Function::settle(uint64_t, const PhyWords &in)
{
    TlpBeat &rx = inputs_.rx;
    rx = TlpBeat();
    bool held = !in_.empty() && in_dword_ == 0 && outputs_.rx_hold && in_.front().bar >= 0 &&
                (in_.front().dwords[0] >> 30) == 0; // no data: a load
    if (!in_.empty() && !inputs_.reset && !held) {
        const Packet &packet = in_.front();
        size_t left = packet.dwords.size() - in_dword_;
        rx.valid = true;
        rx.last = left <= 2;
        rx.dwords = left >= 2 ? 2 : 1;
        rx.data = packet.dwords[in_dword_];
        if (left >= 2)
            rx.data |= uint64_t{packet.dwords[in_dword_ + 1]} << 32;
        rx.bar = packet.bar;
    }
    model_->settle(inputs_, in, outputs_);
}

void Function::edge(uint64_t cycle, PhyWords &out)
{
    model_->edge(out);
    touched_ = false;
    idle_ = false;
    if (inputs_.reset)
        return;
    if (inputs_.rx.valid && outputs_.rx_ready) {
        last_packet_cycle_ = cycle;
        in_dword_ += inputs_.rx.dwords;
        if (inputs_.rx.last) {
            in_dword_ = 0;
            in_.pop_front();
        }
    }
    note_errors();
    if (outputs_.tx.valid) {
        last_packet_cycle_ = cycle;
        out_.push_back(static_cast<uint32_t>(outputs_.tx.data));
        if (outputs_.tx.dwords == 2)
            out_.push_back(static_cast<uint32_t>(outputs_.tx.data >> 32));
        if (outputs_.tx.last)
            take_packet();
    }
    if (reset_ends_) {
        reset_ends_ = false;
        host_->reset_done();
    }
    if (inputs_.function_reset && outputs_.reset_done) {
        inputs_.function_reset = false;
        reset_ends_ = touched_ = true;
    }
    idle_ = in_.empty() && !inputs_.rx.valid && !outputs_.tx.valid && reads_ == 0 && !loading_ &&
            !resetting() && !touched_;
}

void Function::note_errors()
{
    if (!host_)
        return;
    if (outputs_.poisoned)
        host_->note(Error::kPoisoned);
    if (outputs_.unsupported)
        host_->note(Error::kUnsupported);
    if (outputs_.malformed)
        host_->note(Error::kMalformed);
    if (outputs_.unexpected)
        host_->note(Error::kUnexpected);
    if (outputs_.timeout)
        host_->note(Error::kTimeout);
}

// ----- packets of the function

void Function::take_packet()
{
    std::vector<uint32_t> packet = std::exchange(out_, {});
    if (!host_)
        return;
    switch (packet[0] >> 24) {
    case VELO_PCIE_TLP_MEM_WRITE:
    case VELO_PCIE_TLP_MEM_WRITE_64:
        take_write(packet);
        break;
    case VELO_PCIE_TLP_MEM_READ:
    case VELO_PCIE_TLP_MEM_READ_64:
        take_read(packet);
        break;
    default:
        take_completion(packet);
    }
}

void Function::take_write(std::span<const uint32_t> dwords)
{
    size_t header = (dwords[0] >> 24 & kHas64) ? kRequestDwords : kRequestDwords - 1;
    Extent extent = extent_of(dwords, header);
    auto data = dwords.subspan(header);
    host_->write(extent.address,
                 {reinterpret_cast<const uint8_t *>(data.data()) + extent.lead, extent.len_bytes});
}

void Function::take_read(std::span<const uint32_t> dwords)
{
    size_t header = (dwords[0] >> 24 & kHas64) ? kRequestDwords : kRequestDwords - 1;
    Extent extent = extent_of(dwords, header);
    uint64_t head = word_at(dwords, 0);
    reads_++;
    host_->read({extent.address, extent.len_bytes, velo_pcie_head_requester(head),
                 velo_pcie_head_tag(head)});
}

void Function::take_completion(std::span<const uint32_t> dwords)
{
    if (!loading_ || (dwords[2] >> 8 & 0xff) != load_tag_)
        return;
    loading_ = false;
    auto data = dwords.subspan(kCompletionDwords);
    if (data.empty()) {
        host_->loaded({});
        return;
    }
    host_->loaded(
        {reinterpret_cast<const uint8_t *>(data.data()) + load_offset_ % kDwordBytes, load_bytes_});
}

} // namespace sim::card
