// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "../hardware.h"
#include "velo/pcie_spec.h"
#include "velo/spec.h"

namespace sim::card
{

namespace
{

constexpr unsigned kWindowBar = 2, kMsixBar = 4;
constexpr uint64_t kLineBytes = 64, kWordBytes = 8;
// A processor's write buffers keep a line until a fence, which the library has behind each line.
// Nobody tells a fence here; but each line says how long it is, and one that is not whole by then
// has been left.
constexpr auto kLineWait = std::chrono::milliseconds(5);

} // namespace

Card::Card(const std::string &path, const Hardware &hardware, Function &function,
           unsigned split_one_in, Random random)
    : hardware_(hardware), function_(function), split_one_in_(split_one_in), random_(random),
      server_(path, *this)
{
    function_.set_host(this);
    function_.set_config(config_.function());
}

Card::~Card() { function_.set_host(nullptr); }

// ----- the guest's accesses

bool Card::takes_commands() const
{
    return !function_.resetting() && function_.packets_waiting() < kPacketsMax;
}

void Card::store(unsigned bar, uint64_t offset, std::span<const uint8_t> bytes)
{
    if (config_.is_asleep())
        return;
    if (bar == kWindowBar) {
        totals_.stores++;
        bool follows =
            !line_.empty() && offset == line_offset_ + line_.size() && offset % kLineBytes != 0;
        if (!follows) {
            flush();
            line_offset_ = offset;
        }
    } else {
        flush();
    }
    while (!bytes.empty()) {
        auto part = bytes.first(std::min<size_t>(bytes.size(), kLineBytes - offset % kLineBytes));
        // Whole words only, as a processor's write buffers gather them.
        if (bar == kWindowBar && offset % kWordBytes == 0 && part.size() % kWordBytes == 0) {
            if (line_.empty())
                line_offset_ = offset;
            line_.insert(line_.end(), part.begin(), part.end());
            line_since_ = std::chrono::steady_clock::now();
            if ((offset + part.size()) % kLineBytes == 0 || line_is_whole())
                flush();
        } else {
            flush();
            function_.store(bar, offset, part);
        }
        offset += part.size();
        bytes = bytes.subspan(part.size());
    }
}

// As spec/velo.toml has it: a message's address tells its words, a descriptor's operation tells
// those of it.
bool Card::line_is_whole() const
{
    size_t words = line_.size() / kWordBytes, begin = line_offset_ % kLineBytes / kWordBytes;
    switch (velo_window_unit(line_offset_)) {
    case VELO_UNIT_VELO:
        return begin + words == size_t{1} + velo_address_words(velo_window_target(line_offset_));
    case VELO_UNIT_RMA: {
        uint64_t first = 0;
        std::memcpy(&first, line_.data(), kWordBytes);
        bool updates = velo_rma_descriptor_op(first) == VELO_RMA_OP_FETCH_COMPARE_ADD;
        return words == VELO_RMA_DESCRIPTOR_WORDS + (updates ? VELO_RMA_OPERANDS_WORDS : 0);
    }
    default:
        return true;
    }
}

void Card::pause()
{
    if (!line_.empty() && std::chrono::steady_clock::now() - line_since_ > kLineWait)
        flush();
}

void Card::flush()
{
    if (line_.empty())
        return;
    store_line(line_);
    line_.clear();
}

void Card::store_line(std::span<const uint8_t> bytes)
{
    size_t words = bytes.size() / kWordBytes;
    std::vector<std::pair<size_t, size_t>> parts; // begin and length in words
    bool may_split = velo_window_unit(line_offset_) == VELO_UNIT_VELO && words > 1;
    if (split_one_in_ == 0 || !may_split || random_.next() % split_one_in_ != 0)
        parts.emplace_back(0, words);
    else
        for (size_t begin = 0; begin < words;) {
            size_t most = begin == 0 ? words - 1 : words - begin,
                   length = 1 + random_.next() % most;
            parts.emplace_back(begin, length);
            begin += length;
        }
    // Each part says by its address where it belongs, so they may come in any order.
    for (size_t i = parts.size(); i > 1; i--)
        std::swap(parts[i - 1], parts[random_.next() % i]);
    for (auto [begin, length] : parts) {
        totals_.packets++;
        function_.store(kWindowBar, line_offset_ + begin * kWordBytes,
                        bytes.subspan(begin * kWordBytes, length * kWordBytes));
    }
}

void Card::load(unsigned bar, uint64_t offset, unsigned len_bytes)
{
    flush();
    totals_.loads++;
    load_bytes_ = len_bytes;
    if (config_.is_asleep())
        loaded({});
    else
        function_.load(bar, offset, len_bytes);
}

// A root complex gives ones for what is refused.
void Card::loaded(std::span<const uint8_t> bytes)
{
    std::vector<uint8_t> ones(load_bytes_, 0xff);
    server_.loaded(bytes.empty() ? std::span<const uint8_t>(ones) : bytes);
}

void Card::write_config(uint64_t offset, std::span<const uint8_t> bytes)
{
    flush();
    if (config_.write(offset, bytes))
        reset();
    function_.set_config(config_.function());
}

void Card::read_config(uint64_t offset, std::span<uint8_t> bytes) const
{
    config_.read(offset, bytes, static_cast<uint32_t>(hardware_.cycle()));
}

// ----- reset

void Card::reset()
{
    totals_.resets++;
    line_.clear();
    config_.reset();
    function_.set_config(config_.function());
    function_.reset();
}

void Card::reset_done()
{
    for (unsigned v = 0; v < VELO_PCIE_VECTORS; v++)
        if (server_.vector_connected(v))
            set_vector(v);
    server_.reset_done();
}

void Card::gone()
{
    // What the client owes will not come.
    for (const auto &[ticket, read] : std::exchange(reading_, {}))
        function_.complete(read, {});
    writing_ = false;
    carry_out_effects();
    reset();
}

// ----- interrupts

void Card::connect_vector(unsigned vector, bool)
{
    if (!function_.resetting())
        set_vector(vector);
}

// The client has the guest's table; the function's says where this simulator hears of a vector.
void Card::set_vector(unsigned vector)
{
    struct {
        uint64_t address;
        uint32_t data, control;
    } entry = {GuestMemory::kInterruptAddress, vector, server_.vector_connected(vector) ? 0U : 1U};
    static_assert(sizeof entry == 2 * kWordBytes);
    const auto *bytes = reinterpret_cast<const uint8_t *>(&entry);
    for (size_t at = 0; at < sizeof entry; at += kWordBytes)
        function_.store(kMsixBar, vector * sizeof entry + at, {bytes + at, kWordBytes});
}

// ----- the guest's memory

void Card::write(uint64_t address, std::span<const uint8_t> bytes)
{
    Effect effect = {Effect::Kind::kWrite, address, {bytes.begin(), bytes.end()}};
    if (effects_.empty() && !writing_) {
        carry_out(effect);
        return;
    }
    effects_.push_back(std::move(effect));
}

void Card::read(const MemoryRead &read)
{
    Effect effect = {Effect::Kind::kRead, read.address, {}, read};
    if (effects_.empty() && !writing_) {
        carry_out(effect);
        return;
    }
    effects_.push_back(std::move(effect));
}

void Card::carry_out_effects()
{
    while (!effects_.empty() && !writing_) {
        Effect effect = std::move(effects_.front());
        effects_.pop_front();
        carry_out(effect);
    }
}

void Card::carry_out(Effect &effect)
{
    const MemoryRead &read = effect.read;
    const GuestMemory &memory = server_.memory();
    bool reads = effect.kind == Effect::Kind::kRead;
    size_t len_bytes = reads ? read.len_bytes : effect.bytes.size();
    if (!reads && effect.address == GuestMemory::kInterruptAddress) {
        uint32_t vector = UINT32_MAX;
        std::memcpy(&vector, effect.bytes.data(), std::min(len_bytes, sizeof vector));
        if (vector < VELO_PCIE_VECTORS) {
            totals_.interrupts++;
            server_.interrupt(vector);
        }
        return;
    }
    auto place = server_.connected() ? memory.place(effect.address, len_bytes, {reads, !reads})
                                     : GuestMemory::Place::kNowhere;
    if (place == GuestMemory::Place::kNowhere) {
        totals_.lost++;
        if (reads)
            function_.complete(read, {});
    } else if (place == GuestMemory::Place::kClient) {
        uint64_t ticket = tickets_++;
        if (reads) {
            reading_[ticket] = read;
            server_.ask_read(ticket, effect.address, read.len_bytes);
        } else {
            writing_ = true;
            server_.ask_write(ticket, effect.address, effect.bytes);
        }
    } else if (reads) {
        std::vector<uint8_t> bytes(len_bytes);
        memory.read(effect.address, bytes.data(), len_bytes);
        function_.complete(read, bytes);
    } else {
        memory.write(effect.address, effect.bytes.data(), len_bytes);
    }
}

void Card::answered(uint64_t ticket, bool done, std::span<const uint8_t> bytes)
{
    totals_.lost += !done;
    auto found = reading_.find(ticket);
    if (found == reading_.end()) {
        writing_ = false;
        carry_out_effects();
        return;
    }
    MemoryRead read = found->second;
    reading_.erase(found);
    function_.complete(read, bytes);
}

} // namespace sim::card
