// SPDX-License-Identifier: Apache-2.0
//
// Nodes, switches and links as transactions. The model follows only the cycles of a packet's first
// and last word, with few events a hop.
//
//   host --inject--> switch input --to_request--> queue --arbitration--> output
//        --to_output--> link, word by word --> next switch input, or completer and memory
//
// Contention is modelled exactly as in the RTL: one queue for each input, output and channel; one
// round of iSLIP a cycle; a packet starts only with the credits that its size asks for; credits
// come back with the status words for which the link back has room. Each traffic class has two
// channels, one for each side of the dateline, and a port of its own at each node. A network of
// messages alone has one class, since all of them are requests.

#pragma once

#include <array>
#include <bit>
#include <deque>
#include <memory>
#include <vector>

#include "congestion.h"
#include "histogram.h"
#include "params.h"
#include "topology.h"
#include "traffic.h"
#include "wheel.h"

namespace tlm
{

constexpr unsigned kClassChannels = 2;

struct Counters {
    Histogram latency;                          // of messages that arrived
    uint64_t words = 0, bytes = 0;              // of packets that arrived; payload
    uint64_t hops = 0;                          // over links, of packets
    uint64_t marked = 0, notices = 0, held = 0; // packets; of these, cycles by the throttle
    Cycle last_done = 0;
    std::vector<uint64_t> link_words; // on the wire, with framing; by node and link
    std::vector<uint64_t> node_words; // of packets that arrived, by node
};

// The nodes at the network's ends, for a caller that offers packets one by one (offer()). The
// network knows nothing of their content. It numbers packets, and uses a number again after the
// arrival.
class Ends
{
  public:
    virtual ~Ends() = default;
    // The source's next packet leaves its host port; its last word does in `last`.
    virtual void launched(unsigned source, uint32_t packet, Cycle last) = 0;
    // Has the node room for the message, which is next there? Without it this message and all
    // behind it wait until make_room() is called.
    virtual bool has_room(unsigned node, uint32_t packet) = 0;
    // The node's host has the message's last word in `done`, some cycles from now.
    virtual void arrived(unsigned node, uint32_t packet, Cycle done) = 0;
    // A packet that is no message (Message::words) is whole in the buffer of that port, and its
    // unit may read it from `begin` on, by read(). All behind it wait until took() is called.
    virtual void came(unsigned port, uint32_t packet, Cycle begin) = 0;
};

// Sources and ports of nodes are numbered by node and class: node * Classes + class.
template <unsigned Classes> class Network
{
  public:
    Network(const Params &params, const Topology &topology, Traffic &traffic,
            const CongestionParams &congestion = {});

    // A host that takes a word in every `pace` cycles, and none from `stop` to `go`.
    struct SlowHost {
        unsigned node;
        unsigned pace;
        Cycle stop, go;
    };
    // One of the hosts is slow, the others keep up.
    void slow_down(const SlowHost &host) { slow_ = host; }

    void set_ends(Ends &ends);
    // There may be a message of the source of this number where there was none, born now or later.
    // Not within run().
    void offer(unsigned number);
    // The message that waits first at the node may have room now. Not within run().
    void make_room(unsigned node);
    // The unit reads that many words of the packet that came last to the port `at`, one a cycle
    // from `first` on, which is not before now; `ends`: these are its last ones.
    void read(unsigned at, Cycle first, unsigned words, bool ends);
    // The unit is done with that packet, and reads what is behind it from `free` on. Not within
    // run().
    void took(unsigned at, Cycle free);

    // All cycles before `end`.
    void run(Cycle end);
    Cycle now() const { return wheel_.now(); }
    // Nothing will ever happen again.
    bool is_finished() const { return wheel_.empty(); }
    // `counters` count what happens in the cycles [from, end).
    void measure(Cycle from, Cycle end);

    const Counters &counters() const { return counters_; }
    Cycle measured_from() const { return from_; }
    uint64_t all_hops() const { return all_hops_; }
    uint64_t sent() const { return sent_; }
    uint64_t received() const { return received_; }

  private:
    friend class Wheel;
    static constexpr unsigned kChannels = Classes * kClassChannels;
    static constexpr uint32_t kNone = UINT32_MAX;
    static constexpr unsigned kPlaceBits = 28; // of an event's first word; above them its kind
    static constexpr uint32_t kPlaceMask = (1U << kPlaceBits) - 1;
    static constexpr unsigned kSizes = 4;
    enum Kind : uint32_t {
        kArrive,
        kFreed,
        kSlot,
        kCredit,
        kInject,
        kInjectCredit,
        kTick,
        kNotice
    };

    // These fit cache lines: cache misses take most of the time.
    struct alignas(32) Packet {
        Cycle born, tail; // tail: last word at the switch input
        uint32_t next;
        uint16_t from, to, bytes, words;
        uint8_t channel;          // by which it came
        uint8_t out, out_channel; // where it goes from there
        uint8_t ends_message : 1, is_put : 1, is_marked : 1;
    };
    struct Input {
        Cycle free = 0;
        uint32_t turn = 0; // output that goes first
    };
    struct alignas(64) Output {
        Cycle free = 0;
        Cycle granted = 0; // last grant
        uint16_t granted_units = 0;
        uint8_t granted_channel = 0;
        uint8_t turn = 0; // input that goes first
        std::array<int16_t, kChannels> credits{};
        // A long packet at the head of a queue: has waited through a tick, makes all sizes ask for
        // the credits of the longest. Bits are channels.
        uint8_t waits = 0, strict = 0;
        uint32_t tick_due = 0; // lower bits of the next tick's cycle; 0: there is none
        std::array<uint64_t, kChannels> waiting{}, is_long{}; // inputs with a packet for it
    };
    struct alignas(32) Queue {
        Queue() { head.fill(kNone); }

        std::array<uint32_t, kChannels> head, tail{}; // a packet, if there is a first one
        // Until then the first packet counts as the longest; the lower bits of a cycle.
        std::array<uint32_t, kChannels> size_known{};
        uint8_t served = kChannels;            // channel that went last
        std::array<uint8_t, kChannels> size{}; // of the first packet
    };
    // What the first word of a frame says of credits: nothing, something, something that an idle
    // word inside it makes stale; an idle word.
    enum FrameKind : uint8_t { kNoCredits, kCredits, kStaleCredits, kIdleInside };
    struct Frame {
        uint64_t start : 48, length : 14, kind : 2; // its turn, as the transmitter chooses words
        Cycle end() const { return start + length; }
    };
    // The transmitter of a link: its frames, and the status that it reports of the receiver beside
    // it.
    struct alignas(64) Sender {
        Cycle free = 0;      // turns before this are given away
        Cycle idle_from = 0; // since when there is no frame, if there is none
        Cycle last_slot = 0;
        uint16_t first = 0, frames = 0;                          // in its part of frames_
        std::array<uint8_t, kChannels> freed{}, told{}, heard{}; // units, modulo 256
        std::array<Cycle, kChannels> freed_at{};
        uint8_t channel = 0, turn = 0; // to be told of next; the arbiter's
        bool active = false;           // has an event coming
        bool tells_credits = false;    // the next start word does
    };
    struct Source {
        Message message;
        uint32_t bytes_left = 0;
        int16_t credits = 0;
        bool has_message = false, blocked = false;
        bool behind = false; // words wait in the network port
        bool is_idle = true; // no message is known of
        Cycle free = 0;      // first word of the next packet at the switch, at the earliest
        // By the throttle: the packet at hand may go when there are credits; its destination's
        // level.
        bool is_passed = false;
        uint8_t level = 0;
    };

    Params params_;
    const Topology &topology_;
    Traffic &traffic_;
    unsigned nodes_, links_, ports_, frame_slots_;
    std::array<int16_t, kSizes> need_units_{}; // by size
    Wheel wheel_;
    Counters counters_;
    Cycle from_ = 0, end_ = 0;
    uint64_t all_hops_ = 0, sent_ = 0, received_ = 0;

    // By node and port; the port after the links is the node's own.
    std::vector<Input> inputs_;
    std::vector<Output> outputs_;
    std::vector<Sender> senders_;
    std::vector<uint32_t> far_; // the port at the other end
    std::vector<Frame> frames_;
    std::vector<Queue> queues_; // by node, input and output
    // By node.
    std::vector<uint64_t> outputs_wanted_;
    std::vector<Cycle> arbitrated_, to_arbitrate_;
    std::vector<Source> sources_;            // by source
    std::vector<Cycle> unit_free_;           // by port: its unit reads from this cycle on
    std::unique_ptr<Congestion> congestion_; // if it is managed
    // The slow host, and the packets that wait for it in the buffer of its network port.
    SlowHost slow_{kNone, 1, 0, 0};
    struct Waiting {
        Cycle until;
        unsigned units;
    };
    std::deque<Waiting> at_slow_;
    unsigned units_at_slow_ = 0;

    Ends *ends_ = nullptr;
    // With ends, by port: packets that have come and wait for their unit, in the buffer of the
    // network port.
    struct Held {
        uint32_t packet;
        Cycle first_word, last_word;
    };
    struct End {
        std::deque<Held> held;
        bool is_busy = false;    // until took()
        unsigned read_words = 0; // of the unit of the buffer that is being read
    };
    std::vector<End> at_ends_;

    std::vector<Packet> packets_;
    uint32_t free_packet_ = kNone;

    uint32_t port(unsigned node, unsigned p) const { return node * ports_ + p; }
    bool is_local(unsigned p) const { return p >= links_; }
    bool measuring(Cycle cycle) const { return cycle >= from_ && cycle < end_; }
    uint32_t new_packet();
    void drop_packet(uint32_t packet);
    void put(Cycle when, Kind kind, uint32_t place, uint32_t value)
    {
        wheel_.put(when, {uint32_t{kind} << kPlaceBits | place, value});
    }
    void handle(Event event);
    void set_route(unsigned node, Packet &packet) const;
    void prefetch(Event event) const;
    void prefetch_second(Event event) const;
    void prefetch_switch(unsigned node) const;

    // --- hosts ---
    void inject(unsigned number);
    unsigned next_words(const Source &source) const;
    uint32_t launch(unsigned number, unsigned words, unsigned bytes);
    void inject_credit(unsigned number);
    bool is_held(unsigned node);
    void notice(unsigned node, const Packet &packet, Cycle first_word);
    Cycle taken(unsigned node, Cycle begin, Cycle words);
    void deliver(unsigned node, unsigned out, uint32_t index, Cycle last_read);
    void serve(unsigned at);
    void complete(unsigned node, uint32_t index, Cycle first_word, Cycle last_word);

    // --- switches ---
    void arrive(uint32_t in, uint32_t packet);
    void arbitrate_soon(unsigned node);
    void arbitrate(unsigned node);
    uint64_t idle_inputs(unsigned node) const;
    int seen_credits(const Output &output, unsigned channel) const;
    bool may_send(const Queue &queue, unsigned channel, int seen, bool strict) const;
    uint64_t ready_channels(const Output &output, const Queue &queue, bool local) const;
    uint64_t asking(unsigned node, unsigned out);
    uint64_t asking_slow_host(const Output &output);
    uint64_t asking_buffer(unsigned node, const Output &output, unsigned units) const;
    void new_head(uint32_t in, unsigned out, unsigned channel, Cycle size_known);
    void plan_tick(uint32_t out);
    void tick(uint32_t out);
    void press(unsigned node, unsigned out);
    uint32_t take_packet(unsigned node, unsigned in, unsigned out, unsigned &channel);
    void grant(unsigned node, unsigned in, unsigned out);
    void give_back(unsigned node, unsigned in, const Packet &packet, Cycle last_read);

    // --- links ---
    void take_credits(Output &output, unsigned channel, unsigned units);
    void transmit(uint32_t out, uint32_t index, unsigned channel, Cycle last_read);
    void push_packet(uint32_t out, Cycle start, Cycle end, unsigned inner);
    void push_frame(uint32_t out, Cycle start, Cycle end, FrameKind kind);
    size_t frame_place(uint32_t out, unsigned place) const
    {
        return size_t{out} * frame_slots_ + ((senders_[out].first + place) & (frame_slots_ - 1));
    }
    Frame &frame(uint32_t out, unsigned place) { return frames_[frame_place(out, place)]; }
    void settle(uint32_t out, Cycle cycle);
    Cycle next_slot(uint32_t out, Cycle from);
    void unit_freed(uint32_t out, unsigned channel);
    void slot(uint32_t out);
    void choose_channel(Sender &sender, Cycle now);
    void credit(uint32_t out, unsigned channel, unsigned units);
};

// Some compilers think that a function which only prefetches does nothing, and leave it out. So
// these functions are always inlined.
template <unsigned Classes>
[[gnu::always_inline]] inline void Network<Classes>::prefetch(Event event) const
{
    uint32_t place = event.kind_and_place & kPlaceMask;
    switch (static_cast<Kind>(event.kind_and_place >> kPlaceBits)) {
    case kArrive:
        return __builtin_prefetch(&packets_[event.value]);
    case kFreed:
    case kSlot:
        return __builtin_prefetch(&senders_[place]);
    case kTick:
    case kCredit:
        return __builtin_prefetch(&outputs_[place]);
    default:
        return __builtin_prefetch(&sources_[place]);
    }
}

// These addresses are known only once prefetch() has brought its lines.
template <unsigned Classes>
[[gnu::always_inline]] inline void Network<Classes>::prefetch_second(Event event) const
{
    uint32_t kind = event.kind_and_place >> kPlaceBits, in = event.kind_and_place & kPlaceMask;
    if (kind == kFreed || kind == kSlot)
        __builtin_prefetch(&frames_[frame_place(in, 0)]);
    if (kind != kArrive)
        return;
    unsigned out = packets_[event.value].out;
    __builtin_prefetch(&queues_[size_t{in} * ports_ + out]);
    __builtin_prefetch(&outputs_[port(in / ports_, out)]);
    __builtin_prefetch(&inputs_[in]);
}

template <unsigned Classes>
[[gnu::always_inline]] inline void Network<Classes>::prefetch_switch(unsigned node) const
{
    __builtin_prefetch(&inputs_[port(node, 0)]);
    __builtin_prefetch(&inputs_[port(node, links_)]);
    for (uint64_t wanted = outputs_wanted_[node]; wanted; wanted &= wanted - 1) {
        uint32_t out = port(node, static_cast<unsigned>(std::countr_zero(wanted)));
        __builtin_prefetch(&outputs_[out]);
        __builtin_prefetch(&senders_[out]);
        __builtin_prefetch(&frames_[size_t{out} * frame_slots_]);
    }
}

} // namespace tlm
