// SPDX-License-Identifier: Apache-2.0
//
// A recording of a run: each message from its store to its slot, and what each link carried.
//
// It only looks on. The hardware says nothing about which store became which slot; but it keeps
// the order of messages from one context to another, so a slot belongs to the earliest store
// between the two that looks like it. Stores that are passed over were dropped on the way (a closed
// port), and are recorded as lost.
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
#include <vector>

#include "cable.h"
#include "clock.h"
#include "host_model.h"
#include "node.h"
#include "topology.h"

namespace sim
{

constexpr unsigned kRecordingVersion = 1;
constexpr uint64_t kBucketCycles = 100; // that a link's record sums up

// Times are virtual [ps].
constexpr uint64_t kRecordedNever = INT64_MAX;
enum class RecordKind : uint8_t { kMessage = 1, kLink = 2, kEnd = 3 };

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

// Words that a link sent in a bucket of time; all others of the bucket were idle. Buckets without
// any have no record.
struct LinkRecord {
    RecordKind kind = RecordKind::kLink;
    uint8_t node = 0, link = 0, reserved = 0;
    uint32_t retransmissions = 0; // frames
    uint64_t start_ps = 0;
    uint64_t payload = 0, overhead = 0; // sent with a frame's first start word
    uint64_t repeated = 0;              // sent with a later one, overhead and all
};

// The last one: a file without it is not whole.
struct EndRecord {
    RecordKind kind = RecordKind::kEnd;
    uint8_t reserved[7] = {};
    uint64_t now_ps = 0;
    uint64_t published = 0, lost = 0; // messages
    uint64_t strays = 0;              // slots without a store
};

static_assert(sizeof(MessageRecord) == 40 && sizeof(LinkRecord) == 40 && sizeof(EndRecord) == 40);

// Tells payload from the rest in what a link sends, word by word.
class LinkCounter
{
  public:
    // Returns whether the word belongs to a frame; if so it was counted.
    bool count(const PhyWord &word, LinkRecord &record);

  private:
    unsigned next_seq_ = 0, header_words_ = 0;
    bool first_ = false, repeats_ = false;
};

class Recorder
{
  public:
    // Throws std::runtime_error if the file cannot be written; so do finish() and what is between.
    Recorder(const std::string &path, const Topology &topology, const std::string &topology_name,
             const std::vector<std::string> &command, const Clock &clock, const HostModel &host,
             unsigned cable_cycles);

    void stored(unsigned node, uint64_t time_ps, const HostAccess &access);
    void taken(unsigned node, uint64_t cycle);
    void arrived(const Arrival &arrival, uint64_t published_ps);
    void sent(unsigned node, unsigned link, uint64_t cycle, const PhyWord &word);
    void finish(uint64_t now_ps);

  private:
    // What store and slot have in common.
    struct Looks {
        uint8_t tag = 0;
        uint16_t bytes = 0;
        uint64_t first = 0; // word of the payload

        bool operator==(const Looks &) const = default;
    };
    struct Message {
        MessageRecord record;
        Looks looks;
        bool to_a_ring;
    };
    struct Link {
        LinkCounter counter;
        uint64_t bucket = UINT64_MAX;
        LinkRecord record;
    };

    std::string path_;
    std::ofstream file_;
    Clock clock_;
    std::vector<std::deque<Message>> offered_;               // by node: not taken yet
    std::unordered_map<uint32_t, std::deque<Message>> sent_; // by source and target
    std::vector<Link> links_;                                // by node and link
    EndRecord end_;
    std::vector<std::byte> records_; // that are still to be written

    template <typename T> void put(const T &record);
    void write();
    void lose(std::deque<Message> &messages, size_t count);
};

} // namespace sim
