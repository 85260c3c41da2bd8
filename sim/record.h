// SPDX-License-Identifier: Apache-2.0
//
// A recording of a run: each message from its store to its slot, each operation on remote memory
// from its descriptor to its requester's notification, and what each link carried.
//
// Recording changes nothing in the run. The hardware does not say which store became which slot.
// But it keeps the order of messages from one context to another. So a slot belongs to the earliest
// store between these two contexts that looks like it. Earlier stores were dropped on the way (a
// closed port), and are recorded as lost.
//
// The file: one line of JSON that says what ran on what, then records of 40 bytes, little-endian.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <fstream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#include "clock.h"
#include "host_model.h"
#include "host_side.h"
#include "rtl/link_words.h"
#include "topology.h"

namespace sim
{

constexpr unsigned kRecordingVersion = 2;
constexpr uint64_t kBucketCycles = 100; // summed up by a record of a link

// Times are virtual [ps].
constexpr uint64_t kRecordedNever = INT64_MAX;
enum class RecordKind : uint8_t { kMessage = 1, kLink = 2, kEnd = 3, kOperation = 4 };

struct MessageRecord {
    RecordKind kind = RecordKind::kMessage;
    uint8_t source_node = 0, source_context = 0, target_node = 0, target_context = 0;
    uint8_t tag = 0;
    uint16_t bytes = 0;    // of payload
    uint64_t stored_ps;    // the processor gave it away
    uint64_t offered_ps;   // its first word stood at the node's host port
    uint64_t taken_ps;     // the node had its last word
    uint64_t published_ps; // its slot's header word, which is the last, was in memory; or never
};

// An operation on remote memory, as one descriptor says it. The target owns the memory.
struct OperationRecord {
    RecordKind kind = RecordKind::kOperation;
    uint8_t source_node = 0, source_context = 0, target_node = 0, target_context = 0;
    uint8_t operation = 0; // spec/velo.toml, enum rma_op
    uint8_t cookie = 0;
    uint8_t error = 0;                     // as the notification says
    uint64_t bytes = 0;                    // to be moved
    uint64_t stored_ps = 0, taken_ps = 0;  // of the descriptor, as above
    uint64_t notified_ps = kRecordedNever; // the requester can see that it is over; or never
};

// The words that a link sent in a bucket of time; the bucket's other words were idle. A bucket with
// idle words only has no record.
struct LinkRecord {
    RecordKind kind = RecordKind::kLink;
    uint8_t node = 0, link = 0, reserved = 0;
    uint32_t retransmissions = 0; // frames
    uint64_t start_ps = 0;
    uint64_t payload = 0, overhead = 0; // sent with a frame's first start word
    uint64_t repeated = 0;              // sent with a later one, overhead and all
};

// The last record: a file without it is not whole.
struct EndRecord {
    RecordKind kind = RecordKind::kEnd;
    uint8_t reserved[7] = {};
    uint64_t now_ps = 0;
    uint64_t published = 0, lost = 0; // messages
    uint64_t strays = 0;              // slots without a store
};

static_assert(sizeof(MessageRecord) == 40 && sizeof(OperationRecord) == 40 &&
              sizeof(LinkRecord) == 40 && sizeof(EndRecord) == 40);

// Tells payload from other words of a link, word by word.
class LinkCounter
{
  public:
    explicit LinkCounter(unsigned width_bits);
    // Returns whether the word belongs to a frame; if so it was counted.
    bool count(const PhyWord &word, LinkRecord &record);

  private:
    unsigned words_; // of the link, for a header or a route
    FrameOrder order_;
    unsigned header_words_ = 0;
    bool first_ = false, repeats_ = false;
};

class Recorder
{
  public:
    // All calls throw std::runtime_error if the file cannot be written.
    Recorder(const std::string &path, const Topology &topology, const std::string &topology_name,
             const std::vector<std::string> &command, const Clock &clock, const HostModel &host,
             unsigned cable_cycles, unsigned width_bits);

    void stored(unsigned node, uint64_t time_ps, const HostAccess &access);
    void taken(unsigned node, uint64_t cycle);
    void arrived(const Arrival &arrival, uint64_t published_ps);
    void notified(const Arrival &arrival, uint64_t notified_ps);
    void sent(unsigned node, unsigned link, uint64_t cycle, const PhyWord &word);
    void finish(uint64_t now_ps);

  private:
    // The part of a message that is the same in store and slot.
    struct Looks {
        uint8_t tag = 0;
        uint16_t bytes = 0;
        uint64_t first = 0; // word of the payload

        bool operator==(const Looks &) const = default;
    };
    struct Message {
        MessageRecord record;
        Looks looks;
    };
    struct Operation {
        OperationRecord record;
        bool asks; // for a notification
    };
    using Store = std::variant<std::monostate, Message, Operation>; // monostate: another store
    struct Link {
        explicit Link(unsigned width_bits) : counter(width_bits) {}

        LinkCounter counter;
        uint64_t bucket = UINT64_MAX;
        LinkRecord record;
    };

    std::string path_;
    std::ofstream file_;
    Clock clock_;
    std::vector<std::deque<Store>> offered_;                     // by node: not taken yet
    std::unordered_map<uint32_t, std::deque<Message>> sent_;     // by source and target
    std::unordered_map<uint32_t, std::deque<Operation>> posted_; // by source and cookie
    std::vector<Link> links_;                                    // by node and link
    EndRecord end_;
    std::vector<std::byte> records_; // not written yet

    Message message_of(unsigned node, uint64_t time_ps, const HostAccess &access) const;
    static Operation operation_of(unsigned node, uint64_t time_ps, const HostAccess &access);
    template <typename T> void put(const T &record);
    void write();
    void lose(std::deque<Message> &messages, size_t count);
};

} // namespace sim
