// SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "velo/spec.h"

namespace sim
{

namespace
{

constexpr size_t kWriteBytes = 1 << 16;
// More than a ring, the network and the way to a node hold: an older message never arrives.
constexpr size_t kUnderWayMax = 2 * SIM_RING_SLOTS;

constexpr unsigned kHeaderBits = 64; // a word of its own at least; a route the same

uint64_t first_word(unsigned bytes, uint64_t word) { return bytes >= sizeof word ? word : 0; }

uint32_t key(const MessageRecord &record)
{
    return uint32_t{record.source_node} << 24 | uint32_t{record.source_context} << 16 |
           uint32_t{record.target_node} << 8 | record.target_context;
}

// The fields of a descriptor that its notification repeats. Of operations with the same key the
// earliest is over first.
uint32_t key(const OperationRecord &record)
{
    return uint32_t{record.source_node} << 24 | uint32_t{record.source_context} << 16 |
           uint32_t{record.operation} << 8 | record.cookie;
}

// The records that are left in a table, in the order in which the node took their stores.
template <typename Record, typename Table> std::vector<Record> left_in(const Table &table)
{
    std::vector<Record> left;
    for (const auto &[number, all] : table)
        for (const auto &one : all)
            left.push_back(one.record);
    std::sort(left.begin(), left.end(), [](const Record &a, const Record &b) {
        return std::pair(a.taken_ps, key(a)) < std::pair(b.taken_ps, key(b));
    });
    return left;
}

nlohmann::ordered_json cables_of(const Topology &topology)
{
    auto cables = nlohmann::ordered_json::array();
    for (unsigned n = 0; n < topology.nodes.size(); n++)
        for (unsigned l = 0; l < kLinksMax; l++) {
            const Plug &plug = topology.nodes[n].links[l];
            if (plug.plugged)
                cables.push_back({n, l, plug.to_node, plug.to_link});
        }
    return cables;
}

} // namespace

LinkCounter::LinkCounter(unsigned width_bits) : words_(std::max(kHeaderBits / width_bits, 1U)) {}

bool LinkCounter::count(const PhyWord &word, LinkRecord &record)
{
    if (word.kind == kKindControl)
        return false;
    if (word.kind == kKindStart) {
        repeats_ = order_.is_repeated(word);
        record.retransmissions += repeats_;
        first_ = true;
        header_words_ = words_;
    } else if (word.kind == kKindData) {
        if (first_ && is_route(static_cast<uint64_t>(word.data)))
            header_words_ += words_;
        first_ = false;
    }
    if (repeats_) {
        record.repeated++;
    } else if (word.kind == kKindData && header_words_ == 0) {
        record.payload++;
    } else {
        record.overhead++;
        if (word.kind == kKindData)
            header_words_--;
    }
    return true;
}

Recorder::Recorder(const std::string &path, const Topology &topology,
                   const std::string &topology_name, const std::vector<std::string> &command,
                   const Clock &clock, const HostModel &host, unsigned cable_cycles,
                   unsigned width_bits)
    : path_(path), file_(path, std::ios::binary), clock_(clock), offered_(topology.nodes.size()),
      links_(topology.nodes.size() * kLinksMax, Link(width_bits))
{
    static_assert(std::endian::native == std::endian::little);
    nlohmann::ordered_json head = {
        {"velo_recording", kRecordingVersion},
        {"topology", topology_name},
        {"nodes", topology.nodes.size()},
        {"cables", cables_of(topology)},
        {"clock_khz", clock.khz()},
        {"bucket_cycles", kBucketCycles},
        {"cable_cycles", cable_cycles},
        {"word_bytes", width_bits / 8},
        {"store_ps", host.store_ns * kPsPerNs},
        {"dma_ps", host.dma_ns * kPsPerNs},
        {"command", command},
    };
    file_ << head.dump() << '\n' << std::flush;
    if (!file_)
        throw std::runtime_error(path_ + ": cannot be written");
    records_.reserve(kWriteBytes);
}

template <typename T> void Recorder::put(const T &record)
{
    const auto *bytes = reinterpret_cast<const std::byte *>(&record);
    records_.insert(records_.end(), bytes, bytes + sizeof record);
    if (records_.size() + sizeof record > kWriteBytes)
        write();
}

void Recorder::write()
{
    file_.write(reinterpret_cast<const char *>(records_.data()),
                static_cast<std::streamsize>(records_.size()));
    records_.clear();
    if (!file_.flush())
        throw std::runtime_error(path_ + ": cannot be written any further");
}

// ----- messages and operations ------------------------------------------------------------------

void Recorder::stored(unsigned node, uint64_t time_ps, const HostAccess &access)
{
    auto &stores = offered_[node];
    switch (velo_window_unit(access.addr)) {
    case VELO_UNIT_VELO:
        stores.emplace_back(message_of(node, time_ps, access));
        break;
    case VELO_UNIT_RMA:
        stores.emplace_back(operation_of(node, time_ps, access));
        break;
    default:
        stores.emplace_back();
    }
}

Recorder::Message Recorder::message_of(unsigned node, uint64_t time_ps,
                                       const HostAccess &access) const
{
    Message message;
    uint64_t target = velo_window_target(access.addr);
    MessageRecord &record = message.record;
    record.source_node = static_cast<uint8_t>(node);
    record.source_context = velo_window_source(access.addr);
    record.target_node = velo_address_node(target);
    record.target_context = velo_address_vpid(target);
    // A part of a line has no header of its own: only its length tells it from others.
    bool whole = velo_address_offset(target) == 0 && velo_address_words(target) + 1 == access.words;
    record.bytes = static_cast<uint16_t>(whole ? velo_header_len(access.line[0])
                                               : access.words * sizeof access.line[0]);
    record.tag = whole ? velo_header_tag(access.line[0]) : uint8_t{0};
    record.stored_ps = time_ps;
    record.offered_ps = clock_.start_ps(access.from_cycle + 1);
    message.looks = {record.tag, record.bytes,
                     whole ? first_word(record.bytes, access.line[1]) : 0};
    return message;
}

Recorder::Operation Recorder::operation_of(unsigned node, uint64_t time_ps,
                                           const HostAccess &access)
{
    Operation operation;
    OperationRecord &record = operation.record;
    record.source_node = static_cast<uint8_t>(node);
    record.source_context = velo_window_source(access.addr);
    record.target_node = velo_rma_descriptor_dst_node(access.line[0]);
    record.target_context = velo_rma_descriptor_dst_ctx(access.line[0]);
    record.operation = velo_rma_descriptor_op(access.line[0]);
    record.cookie = velo_rma_descriptor_cookie(access.line[0]);
    record.bytes = velo_rma_descriptor_len(access.line[0]);
    record.stored_ps = time_ps;
    operation.asks = (velo_rma_descriptor_notify(access.line[0]) & VELO_RMA_PLACE_REQUESTER) != 0;
    return operation;
}

void Recorder::taken(unsigned node, uint64_t cycle)
{
    Store store = offered_[node].front();
    offered_[node].pop_front();
    uint64_t taken_ps = clock_.start_ps(cycle + 1);
    if (auto *message = std::get_if<Message>(&store)) {
        message->record.taken_ps = taken_ps;
        auto &others = sent_[key(message->record)];
        if (others.size() >= kUnderWayMax)
            lose(others, 1);
        others.push_back(*message);
    } else if (auto *operation = std::get_if<Operation>(&store)) {
        operation->record.taken_ps = taken_ps;
        auto &others = posted_[key(operation->record)];
        if (others.size() >= kUnderWayMax) {
            put(others.front().record);
            others.pop_front();
        }
        others.push_back(*operation);
    }
}

void Recorder::arrived(const Arrival &arrival, uint64_t published_ps)
{
    MessageRecord slot;
    unsigned source = velo_header_source(arrival.header);
    slot.source_node = static_cast<uint8_t>(source >> 8);
    slot.source_context = static_cast<uint8_t>(source);
    slot.target_node = static_cast<uint8_t>(arrival.node);
    slot.target_context = static_cast<uint8_t>(arrival.context);
    bool whole = (velo_header_reserved(arrival.header) & VELO_SLOT_FRAGMENT) == 0;
    unsigned bytes = velo_header_len(arrival.header);
    Looks looks = {whole ? velo_header_tag(arrival.header) : uint8_t{0},
                   static_cast<uint16_t>(bytes), whole ? first_word(bytes, arrival.payload) : 0};
    auto &messages = sent_[key(slot)];
    auto mine = std::find_if(messages.begin(), messages.end(),
                             [&](const Message &message) { return message.looks == looks; });
    if (mine == messages.end()) {
        end_.strays++;
        return;
    }
    lose(messages, static_cast<size_t>(mine - messages.begin()));
    MessageRecord record = messages.front().record;
    messages.pop_front();
    record.published_ps = published_ps;
    end_.published++;
    put(record);
}

void Recorder::notified(const Arrival &arrival, uint64_t notified_ps)
{
    unsigned told = velo_rma_notification_place(arrival.header);
    if (told != VELO_RMA_PLACE_REQUESTER && told != VELO_RMA_PLACE_ERROR)
        return;
    OperationRecord looks;
    looks.source_node = static_cast<uint8_t>(arrival.node);
    looks.source_context = static_cast<uint8_t>(arrival.context);
    looks.operation = velo_rma_notification_op(arrival.header);
    looks.cookie = velo_rma_notification_cookie(arrival.header);
    auto &operations = posted_[key(looks)];
    while (!operations.empty()) {
        Operation operation = operations.front();
        operations.pop_front();
        // A failure is always notified, a success only if the descriptor asks for that.
        bool is_it = told == VELO_RMA_PLACE_ERROR || operation.asks;
        if (is_it) {
            operation.record.error = velo_rma_notification_error(arrival.header);
            operation.record.notified_ps = notified_ps;
        }
        put(operation.record);
        if (is_it)
            return;
    }
}

void Recorder::lose(std::deque<Message> &messages, size_t count)
{
    for (; count > 0; count--) {
        MessageRecord record = messages.front().record;
        messages.pop_front();
        record.published_ps = kRecordedNever;
        end_.lost++;
        put(record);
    }
}

// ----- links ------------------------------------------------------------------------------------

void Recorder::sent(unsigned node, unsigned link, uint64_t cycle, const PhyWord &word)
{
    Link &at = links_[node * kLinksMax + link];
    LinkRecord counts;
    if (!at.counter.count(word, counts))
        return;
    if (at.bucket != cycle / kBucketCycles) {
        if (at.bucket != UINT64_MAX)
            put(at.record);
        at.bucket = cycle / kBucketCycles;
        at.record = {};
        at.record.node = static_cast<uint8_t>(node);
        at.record.link = static_cast<uint8_t>(link);
        at.record.start_ps = clock_.start_ps(at.bucket * kBucketCycles);
    }
    at.record.retransmissions += counts.retransmissions;
    at.record.payload += counts.payload;
    at.record.overhead += counts.overhead;
    at.record.repeated += counts.repeated;
}

void Recorder::finish(uint64_t now_ps)
{
    for (const Link &link : links_)
        if (link.bucket != UINT64_MAX)
            put(link.record);
    for (MessageRecord record : left_in<MessageRecord>(sent_)) {
        record.published_ps = kRecordedNever;
        end_.lost++;
        put(record);
    }
    for (const OperationRecord &record : left_in<OperationRecord>(posted_))
        put(record);
    end_.now_ps = now_ps;
    put(end_);
    write();
}

} // namespace sim
