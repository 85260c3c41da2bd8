// SPDX-License-Identifier: Apache-2.0
//
// Whole networks of whole nodes (velo_node) as their hosts see them, against a scoreboard.
//
//   bench_nodes TOPOLOGY [--seed N] [--messages N] [--error-rate P] [--resets 0|1] [--delay CYCLES]
//               [--max-payload BYTES] [--congestion 0|1] [--measure 0|1]
//
// TOPOLOGY is a file of cluster/routing.py. Every host sends lines of all lengths, as a whole or
// in fragments, to some contexts of every node, itself too, loads and stores words of every node's
// memory, puts, gets and updates remote memory (rma_model.h), and now and then writes what has to
// be refused. Where the topology has groups, their sources send to them and their members meet at
// barriers: no release comes before all have arrived, and each member gets it once. Nobody keeps
// credits: rings and notification queues fill, everywhere at once. Hosts stop taking DMA writes for
// a while, stop reading rings for longer. Bits on the cables fall over, links are restarted by
// their register, cables are pulled. Each message has to be there once, whole, in the order of its
// sender; each load gets what was stored last; remote memory is right whenever a notification
// comes; every refusal is counted and nothing else; in the end all credits are back in all
// registers. With --congestion nodes that were built for it manage it, and all requests are
// marked. First each operation on remote memory is done once by itself. One seed makes one run:
// the same arguments give the same cycles. Built for paths of VELO_DATA_WIDTH bits and for messages
// to VELO_CONTEXTS contexts: with several VELO units, some of each unit.
//
// --measure: the cycles of one message to a group, of its barrier, and of the same barrier made of
// messages, from the cycle in which the hosts offer their stores to that of the last write to a
// ring. The hosts take no time.

#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>
#include <map>
#include <memory>

#if VM_COVERAGE
#include "verilated_cov.h"
#endif

#include "Vvelo_node_flat.h"
#include "cable.h"
#include "memory.h"
#include "rma_model.h"
#include "velo/spec.h"

#ifndef VELO_CONTEXTS
#define VELO_CONTEXTS 2
#endif

namespace
{

using bench::fail;
using bench::get_bits;
using bench::set_bits;
using bench::Word;

constexpr unsigned kWidth = VELO_DATA_WIDTH, kBeatBytes = kWidth / 8;
constexpr unsigned kWordBits = kWidth < 64 ? kWidth : 64; // of a word in a beat
constexpr unsigned kWordBeats = 64 / kWordBits;
constexpr unsigned kPieces = kWidth / 32; // cables side by side
constexpr unsigned kLinks = kWidth == 32 ? 6 : 3, kVcs = 6, kCredits = 30,
                   kContexts = VELO_CONTEXTS, kRingLog2 = 3;
// Where one word in three is wrong, a link that was restarted may need more than 400,000 cycles
// until enough words in a row are right, on both sides.
constexpr uint64_t kRings = 0x1000000, kSegment = 0x40000000, kHangCycles = 4000000;

// Registers, spec/velo_regs.rdl.
constexpr uint64_t kRegSetup = 0x08, kRegStall = 0x18, kRegCustom = 0x30, kRegCustomStatus = 0x38,
                   kRegSent = 0x40, kRegRefused = 0x48, kRegReceived = 0x50, kRegDropped = 0x58,
                   kRegUnmapped = 0x60, kRegStrays = 0x68, kRegLinks = 0x80, kRegLink = 0x100,
                   kRegCredits = 0x140, kRegRings = 0x8000000, kRegReadPointers = 0x8100000,
                   kRegRoutes = 0x8200000, kRegBarrierWatchdog = 0x1e0, kRegBarrierLate = 0x1e8,
                   kRegBarrierCounts = 0x1f0, kRegBarrierArrivals = 0x8500000,
                   kRegBarriers = 0x8600000, kRegCongestion = 0x1b8, kRegNotices = 0x1c0;
// Congestion is managed as if all ways were congested: each request is marked and gets a notice, by
// which a level rises by one, and levels fall fast.
constexpr uint64_t kManaged = 1 << 4 | 1;
// Contexts that messages come from: a group's messages and releases are of others.
constexpr unsigned kFirstSource = 16, kFirstBarrier = 250; // the latter wraps soon

struct Options {
    std::string topology, coverage;
    uint64_t seed = 1, messages = 2000;
    double error_rate = 0;
    bool resets = false, measure = false, congestion = false;
    unsigned delay = 4, max_payload = 56;
};

struct Write {
    uint64_t addr = 0;
    std::vector<uint64_t> words;
};

struct Stream {
    std::deque<Write> writes;
    unsigned beat = 0;
};

struct Message {
    uint64_t reserved = 0;
    uint8_t tag = 0;
    unsigned len = 0;
    std::vector<uint64_t> payload;
};

struct Node {
    std::unique_ptr<Vvelo_node_flat> top;
    std::array<bench::Cable, kLinks> cables;                           // outwards
    std::array<std::array<bench::Cable, kLinks>, kPieces> more_cables; // from a path's bit 32 on
    std::vector<unsigned> hops;                                        // by destination
    std::map<unsigned, uint64_t> groups, barriers;                     // by group
    std::array<unsigned, kLinks> unplugged_for{}, restart_for{};

    Stream units, control;
    bench::Memory memory;
    std::vector<uint8_t> dma_bytes; // of the word that comes in
    unsigned dma_beat = 0, dma_stall = 0, reader_stall = 0;
    std::array<uint64_t, kContexts> head{};

    // DMA reads on their way: tag, and memory as it was when they were taken.
    std::deque<std::pair<unsigned, std::vector<uint8_t>>> reads;
    unsigned read_beat = 0, read_delay = 0;
    unsigned rounds = 0; // of a barrier made of messages: those whose message has come

    // The one load under way, and what this node stored, by node and offset.
    bool load_offered = false, load_open = false;
    uint64_t load_key = 0, loaded = 0;
    unsigned load_beats = 0;
    uint8_t load_tag = 0;
    std::map<uint64_t, uint64_t> stored;

    bool register_asked = false;
    uint64_t answer = 0;
    unsigned answer_beats = 0;
    uint64_t refused = 0, dropped = 0; // what its counters have to say in the end
};

// A group, and what its members have done of the barrier that is not complete yet.
struct Group {
    unsigned number = 0, source = 0, ctx = 0;
    std::vector<unsigned> members;
    std::map<unsigned, bool> waits; // a member has arrived and has not got the release
    unsigned arrived = 0;
    uint64_t barriers = 0; // complete
};

class Network
{
  public:
    explicit Network(const Options &options)
        : options_(options), random_(options.seed),
          remote_(
              random_, options.max_payload < 56 ? options.max_payload : kMostRemote,
              [this](unsigned n, uint64_t place, uint64_t value) { set_register(n, place, value); },
              [this](unsigned n, uint64_t place) { return read_register(n, place); },
              [this](unsigned n, uint64_t addr, const std::vector<uint64_t> &words) {
                  nodes_[n].units.writes.push_back({addr, words});
              })
    {
        bench::read_topology(options_.topology, nodes_);
        for (auto &node : nodes_) {
            node.top = std::make_unique<Vvelo_node_flat>(&context_);
            for (auto &cable : node.cables)
                cable.start(options_.delay, options_.error_rate, random_);
            for (unsigned piece = 1; piece < kPieces; piece++)
                for (auto &cable : node.more_cables[piece])
                    cable.start(options_.delay, options_.error_rate, random_);
        }
    }

    void start()
    {
        for (auto &node : nodes_) {
            node.top->rst_ni = 0;
            node.top->host_answer_ready_i = 1;
            node.top->control_answer_ready_i = 1;
        }
        for (int i = 0; i < 4; i++)
            step();
        for (auto &node : nodes_)
            node.top->rst_ni = 1;
        for (int i = 0; i < 300; i++) // The context tables clear themselves.
            step();
        for (unsigned n = 0; n < nodes_.size(); n++) {
            set_register(n, kRegSetup, n);
            for (unsigned d = 0; d < nodes_.size(); d++)
                set_register(n, kRegRoutes + 8 * d, nodes_[n].hops[d]);
            for (unsigned c = 0; c < kContexts; c++)
                set_register(n, kRegRings + ((c + 1) << 12),
                             ring(c) | uint64_t{kRingLog2} << 48 | 1);
            set_register(n, kRegCustom, kSegment | 1);
            set_register(n, kRegLinks, plugged(n));
            if (options_.congestion)
                set_register(n, kRegCongestion, kManaged);
        }
        set_groups();
        std::vector<bench::Memory *> memories;
        for (auto &node : nodes_)
            memories.push_back(&node.memory);
        remote_.start(memories);
        for (int i = 0; i < 3000; i++)
            step();
        for (unsigned n = 0; n < nodes_.size(); n++)
            check_links(n, "after bring-up");
        for (unsigned kind = 0; kind < bench::RmaModel::kKinds; kind++)
            introduce(static_cast<bench::RmaModel::Kind>(kind));
        for (Group &group : groups_)
            lose_member(group);
        quiet_ = false;
    }

    // One operation from the first node to the last, and one to itself, nothing else going on.
    void introduce(bench::RmaModel::Kind kind)
    {
        for (unsigned to : {static_cast<unsigned>(nodes_.size() - 1), 0U}) {
            remote_.post(0, kind % bench::RmaModel::kLanes, kind, to);
            for (uint64_t start = cycle_; remote_.busy(); step()) {
                for (unsigned n = 0; n < nodes_.size(); n++)
                    for (unsigned c = 0; c < bench::RmaModel::kContexts; c++)
                        remote_.poll(n, c);
                if (cycle_ - start > 5000)
                    fail("operation " + std::to_string(kind) + " on remote memory does not end");
            }
            for (int i = 0; i < 100; i++)
                step();
            remote_.check_counters();
        }
    }

    void run()
    {
        uint64_t last_progress = cycle_, last_done = 0;
        while (sent_ < options_.messages || received_ < sent_ || loads_open() || remote_.busy() ||
               barriers_open()) {
            for (unsigned n = 0; n < nodes_.size(); n++)
                act(n);
            for (Group &group : groups_)
                act(group);
            disturb();
            step();
            if (received_ + loads_ + remote_.done() != last_done) {
                last_done = received_ + loads_ + remote_.done();
                last_progress = cycle_;
            } else if (cycle_ - last_progress > kHangCycles) {
                hang();
            }
        }
        quiet_ = true;
        for (int i = 0; i < 6000; i++) {
            for (unsigned n = 0; n < nodes_.size(); n++)
                release(n);
            step();
        }
        check_end();
        std::printf("{\"topology\": \"%s\", \"seed\": %" PRIu64 ", \"error_rate\": %g, "
                    "\"messages\": %" PRIu64 ", \"stores\": %" PRIu64 ", \"loads\": %" PRIu64
                    ", \"refused\": %" PRIu64 ", \"remote\": %" PRIu64
                    ", \"remote_refused\": %" PRIu64 ", \"full_queues\": %" PRIu64
                    ", \"moved_pages\": %" PRIu64 ", \"full_rings\": %" PRIu64
                    ", \"most_full_nodes\": %u, \"group_messages\": %" PRIu64
                    ", \"barriers\": %" PRIu64 ", \"link_resets\": %" PRIu64
                    ", \"bad_words\": %" PRIu64 ", \"cycles\": %" PRIu64 "}\n",
                    options_.topology.c_str(), options_.seed, options_.error_rate, received_,
                    stores_, loads_, bad_writes_, remote_.done(), remote_.refused(),
                    remote_.full_queues(), remote_.moves(), full_rings_, most_full_,
                    group_messages_, barriers(), link_resets_, bad_words(), cycle_);
#if VM_COVERAGE
        if (!options_.coverage.empty())
            context_.coveragep()->write(options_.coverage.c_str());
#endif
    }

    // Nothing else goes on.
    void measure()
    {
        Group &group = groups_.at(0);
        if (group.members.size() != nodes_.size() || (nodes_.size() & (nodes_.size() - 1)))
            fail("no group of all nodes to measure");
        quiet_ = true;
        uint64_t multicast = cycles_of([&] { send_to(group); });
        uint64_t barrier = cycles_of([&] {
            for (unsigned n : group.members)
                arrive(group, n, true);
        });
        uint64_t software = cycles_of([&] {
            for (unsigned n : group.members)
                exchange(n, 0);
        });
        std::printf("{\"multicast_%zu_host_cycles\": %" PRIu64 ", \"barrier_%zu_cycles\": %" PRIu64
                    ", \"barrier_%zu_software_cycles\": %" PRIu64 "}\n",
                    nodes_.size(), multicast, nodes_.size(), barrier, nodes_.size(), software);
    }

  private:
    Options options_;
    static constexpr unsigned kMostRemote = 1600;
    bench::Random random_;
    VerilatedContext context_;
    std::vector<Node> nodes_;
    std::vector<Group> groups_;
    bench::RmaModel remote_;
    // By target node and context, then source: what has to come, in order.
    std::map<unsigned, std::map<unsigned, std::deque<Message>>> expected_;
    uint64_t cycle_ = 0, sent_ = 0, received_ = 0, stores_ = 0, loads_ = 0, bad_writes_ = 0;
    uint64_t full_rings_ = 0, link_resets_ = 0, group_messages_ = 0;
    unsigned most_full_ = 0;
    bool quiet_ = true; // no disturbance

    static uint64_t ring(unsigned context) { return kRings + context * 0x10000; }

    unsigned plugged(unsigned n) const
    {
        unsigned mask = 0;
        for (unsigned l = 0; l < kLinks; l++)
            mask |= static_cast<unsigned>(nodes_[n].cables[l].plugged) << l;
        return mask;
    }

    uint64_t bad_words() const
    {
        uint64_t sum = 0;
        for (const auto &node : nodes_)
            for (const auto &cable : node.cables)
                sum += cable.bad_words;
        return sum;
    }

    bool loads_open() const
    {
        for (const auto &node : nodes_)
            if (node.load_open)
                return true;
        return false;
    }

    // ----- what hosts do
    // --------------------------------------------------------------------------

    void set_register(unsigned n, uint64_t offset, uint64_t value)
    {
        nodes_[n].control.writes.push_back(
            {velo_window_pack(static_cast<uint32_t>(offset), 0, VELO_UNIT_REGISTERS), {value}});
    }

    uint64_t read_register(unsigned n, uint64_t offset)
    {
        Node &node = nodes_[n];
        // Behind what was written, some of which may not have been taken yet.
        while (!node.control.writes.empty())
            step();
        set_bits(node.top->control_read_addr_i, 0, 48,
                 velo_window_pack(static_cast<uint32_t>(offset), 0, VELO_UNIT_REGISTERS));
        node.top->control_read_len_bytes_i = 8;
        node.register_asked = true;
        node.answer = node.answer_beats = 0;
        for (int i = 0; i < 200 && (node.answer_beats < kWordBeats); i++)
            step();
        if (node.answer_beats < kWordBeats)
            fail("a read of a register was not answered");
        return node.answer;
    }

    void act(unsigned n)
    {
        Node &node = nodes_[n];
        if (node.units.writes.size() < 20 && random_.below(30) == 0) {
            unsigned burst = random_.below(6) ? 1 : 1 + random_.below(20);
            for (unsigned i = 0; i < burst && sent_ < options_.messages; i++)
                send(n);
            if (random_.below(8) == 0 && sent_ < options_.messages)
                write_badly(n);
        }
        if (random_.below(60) == 0)
            share(n);
        if (random_.below(30) == 0 && node.units.writes.size() < 60 && sent_ < options_.messages)
            remote_.act(n);
        if (random_.below(400) == 0)
            remote_.move(n);
        if (node.reader_stall)
            node.reader_stall--;
        else if (random_.below(20000) == 0)
            node.reader_stall = 1 + random_.below(15000);
        else if (random_.below(20) == 0)
            poll(n, random_.below(kContexts));
        else if (random_.below(20) == 0)
            remote_.poll(n, random_.below(bench::RmaModel::kContexts));
    }

    void release(unsigned n)
    {
        nodes_[n].dma_stall = nodes_[n].reader_stall = 0;
        for (unsigned l = 0; l < kLinks; l++)
            if (nodes_[n].restart_for[l])
                nodes_[n].restart_for[l] = 1;
    }

    // A line, as one write or cut in two fragments.
    void send(unsigned n)
    {
        unsigned to = random_.below(nodes_.size()), context = 1 + random_.below(kContexts);
        unsigned source = kFirstSource + random_.below(VELO_GROUP_NODE_MIN - kFirstSource);
        Message message;
        message.tag = random_.next();
        message.len = random_.below(options_.max_payload + 1);
        for (unsigned i = 0; i < (message.len + 7) / 8; i++)
            message.payload.push_back(random_.next());
        std::vector<uint64_t> line{
            velo_header_pack(0, message.tag, static_cast<uint16_t>(message.len), 0, 0)};
        line.insert(line.end(), message.payload.begin(), message.payload.end());
        auto address = [&](unsigned offset) {
            return velo_window_pack(
                static_cast<uint32_t>(velo_address_pack(
                    static_cast<uint8_t>(8 * offset), static_cast<uint8_t>(line.size() - 1),
                    static_cast<uint8_t>(context), static_cast<uint8_t>(to))),
                static_cast<uint8_t>(source), VELO_UNIT_VELO);
        };
        auto &flow = expected_[to * 256 + context][n << 8 | source];
        auto &writes = nodes_[n].units.writes;
        unsigned cut =
            line.size() > 1 && random_.below(8) == 0 ? 1 + random_.below(line.size() - 1) : 0;
        if (!cut) {
            writes.push_back({address(0), line});
            flow.push_back(message);
            sent_++;
            return;
        }
        for (unsigned part = 0; part < 2; part++) {
            unsigned from = part ? cut : 0, end = part ? line.size() : cut;
            Message fragment;
            fragment.reserved = VELO_SLOT_FRAGMENT;
            fragment.payload.assign(line.begin() + from, line.begin() + end);
            fragment.len = 8 * (end - from);
            fragment.tag = from | (line.size() - 1) << 3 | (part ? 64 : 0);
            // A fragment of the most bytes does not fit a slot's payload.
            if (fragment.len > 56)
                return;
            writes.push_back({address(from), fragment.payload});
            flow.push_back(fragment);
            sent_++;
        }
    }

    // ----- groups
    // ---------------------------------------------------------------------------------

    void set_groups()
    {
        for (const auto &[number, setting] : nodes_[0].barriers) {
            Group group{number, 0, 1 + number % kContexts, {}, {}, 0, 0};
            for (unsigned n = 0; n < nodes_.size(); n++) {
                Node &node = nodes_[n];
                if (velo_barrier_setting_root(node.barriers[number]))
                    group.source = n;
                if (velo_group_way_node(node.groups[number]))
                    group.members.push_back(n);
                set_register(n, kRegRoutes + 8 * number, node.groups[number]);
                set_register(n, barrier_register(number),
                             node.barriers[number] | uint64_t{group.ctx} << 32 |
                                 uint64_t{kFirstBarrier} << 40);
            }
            groups_.push_back(group);
        }
    }

    static uint64_t barrier_register(unsigned number)
    {
        return kRegBarriers + 8 * (number - VELO_GROUP_NODE_MIN);
    }

    // A short message to a group, from its source.
    void send_to(const Group &group)
    {
        Message message;
        message.tag = random_.next();
        message.payload.push_back(random_.next());
        message.len = 8;
        uint64_t addr = velo_window_pack(
            static_cast<uint32_t>(velo_address_pack(0, 1, static_cast<uint8_t>(group.ctx),
                                                    static_cast<uint8_t>(group.number))),
            static_cast<uint8_t>(group.number), VELO_UNIT_VELO);
        nodes_[group.source].units.writes.push_back(
            {addr, {velo_header_pack(0, message.tag, 8, 0, 0), message.payload[0]}});
        expect(group, group.number, message);
        group_messages_++;
    }

    void expect(const Group &group, unsigned source, const Message &message)
    {
        for (unsigned n : group.members)
            expected_[n * 256 + group.ctx][group.source << 8 | source].push_back(message);
        sent_ += group.members.size();
    }

    // A member arrives, by either way to its registers; the last one's makes the release due.
    void arrive(Group &group, unsigned n, bool control)
    {
        uint64_t place = kRegBarrierArrivals + (uint64_t{group.ctx} << 12) +
                         8 * (group.number - VELO_GROUP_NODE_MIN);
        if (control)
            set_register(n, place, random_.next());
        else
            nodes_[n].units.writes.push_back(
                {velo_window_pack(static_cast<uint32_t>(place), 0, VELO_UNIT_REGISTERS), {0}});
        group.waits[n] = true;
        if (++group.arrived < group.members.size())
            return;
        Message release;
        release.tag = static_cast<uint8_t>(kFirstBarrier + group.barriers);
        expect(group, group.ctx, release);
        group.arrived = 0;
        group.barriers++;
    }

    // A member arrives when it has the last release, soon or late, and for a barrier that was begun
    // even when all else is done.
    void act(Group &group)
    {
        bool more = sent_ < options_.messages, meets = more || group.barriers < fewest_barriers();
        if (more && random_.below(100) == 0 && nodes_[group.source].units.writes.size() < 20)
            send_to(group);
        unsigned n = group.members[random_.below(group.members.size())];
        bool soon = random_.below(group.barriers % 8 ? 10 : 300) == 0;
        if (soon && !group.waits[n] && (meets || group.arrived))
            arrive(group, n, random_.below(2) != 0);
    }

    // When all else is done, members go on to meet until they have met so often.
    uint64_t fewest_barriers() const { return options_.messages / 100; }

    bool barriers_open() const
    {
        for (const Group &group : groups_)
            if (group.arrived || group.barriers < fewest_barriers())
                return true;
        return false;
    }

    uint64_t barriers() const
    {
        uint64_t sum = 0;
        for (const Group &group : groups_)
            sum += group.barriers;
        return sum;
    }

    // One member stays away: all nodes on its way to the root say so, nobody is released. It comes
    // at last.
    void lose_member(Group &group)
    {
        for (unsigned n = 0; n < nodes_.size(); n++)
            set_register(n, kRegBarrierWatchdog, uint64_t{1} << 32 | 100);
        unsigned lost = group.members.back();
        for (unsigned n : group.members)
            if (n != lost)
                arrive(group, n, true);
        for (int i = 0; i < 1000; i++)
            step();
        unsigned bit = 1;
        for (unsigned n = lost;;) {
            uint64_t setting = nodes_[n].barriers[group.number];
            uint64_t expected = velo_barrier_setting_expected(setting);
            uint64_t state = read_register(n, barrier_register(group.number));
            check(n, "what has arrived of a barrier that lacks one",
                  velo_barrier_state_arrived(state), expected & ~bit);
            check(n, "number of a barrier", velo_barrier_state_number(state), kFirstBarrier);
            if (expected != bit)
                check(n, "register barrier_late", read_register(n, kRegBarrierLate),
                      bit | group.number << 8 | kFirstBarrier << 16);
            if (velo_barrier_setting_root(setting))
                break;
            bit = 1U << velo_barrier_setting_slot(setting);
            n = velo_barrier_setting_parent(setting);
        }
        for (unsigned n = 0; n < nodes_.size(); n++)
            set_register(n, kRegBarrierWatchdog, 0);
        arrive(group, lost, false);
        for (int i = 0; i < 1000; i++) {
            for (unsigned n : group.members)
                poll(n, group.ctx - 1);
            step();
        }
        for (unsigned n : group.members)
            if (group.waits[n])
                fail("node " + std::to_string(n) + " is not released though all have arrived");
    }

    // A member has got a message of a group's root: if it is the release, it may go on.
    void released(unsigned n, unsigned source)
    {
        for (Group &group : groups_)
            if (source == (group.source << 8 | group.ctx))
                group.waits[n] = false;
    }

    // ----- to measure
    // ------------------------------------------------------------------------------

    // From the first store to the last header word in a ring; hosts look at their rings in each
    // cycle.
    template <typename Begin> uint64_t cycles_of(Begin begin)
    {
        for (int i = 0; i < 300; i++)
            step();
        uint64_t start = cycle_;
        begin();
        while (received_ < sent_) {
            step();
            for (unsigned n = 0; n < nodes_.size(); n++)
                for (unsigned c = 0; c < kContexts; c++)
                    poll(n, c);
            if (cycle_ - start > 5000)
                fail("a measured message does not come");
        }
        return cycle_ - start;
    }

    // A round of a barrier made of messages: each node exchanges one with the node that differs in
    // that bit of its number, and begins the next round when it has got it and those before.
    void exchange(unsigned n, unsigned round)
    {
        Message message;
        message.len = 8;
        message.payload.push_back(random_.next());
        unsigned to = n ^ 1U << round, source = kFirstSource + round;
        uint64_t addr = velo_window_pack(
            static_cast<uint32_t>(velo_address_pack(0, 1, 1, static_cast<uint8_t>(to))),
            static_cast<uint8_t>(source), VELO_UNIT_VELO);
        nodes_[n].units.writes.push_back(
            {addr, {velo_header_pack(0, 0, 8, 0, 0), message.payload[0]}});
        expected_[to * 256 + 1][n << 8 | source].push_back(message);
        sent_++;
    }

    // A message of such a barrier has come: the rounds behind those that are over are due.
    void exchanged(unsigned n, unsigned round)
    {
        unsigned &rounds = nodes_[n].rounds;
        unsigned before = std::countr_one(rounds);
        rounds |= 1U << round;
        for (unsigned r = before + 1; r <= unsigned(std::countr_one(rounds)); r++)
            if (1U << r < nodes_.size())
                exchange(n, r);
    }

    // Writes that are refused here, dropped there, or meant for nobody; they must have no effect.
    void write_badly(unsigned n)
    {
        unsigned to = random_.below(nodes_.size());
        auto address = [&](unsigned offset, unsigned words, unsigned context, unsigned unit) {
            return velo_window_pack(static_cast<uint32_t>(velo_address_pack(
                                        static_cast<uint8_t>(offset), static_cast<uint8_t>(words),
                                        static_cast<uint8_t>(context), static_cast<uint8_t>(to))),
                                    static_cast<uint8_t>(9 + bad_writes_ % 4),
                                    static_cast<uint8_t>(unit));
        };
        auto &writes = nodes_[n].units.writes;
        bad_writes_++;
        switch (random_.below(4)) {
        case 0: // misaligned
            writes.push_back({address(4, 0, 1, VELO_UNIT_VELO), {1}});
            nodes_[n].refused++;
            break;
        case 1: // no message's header word
            writes.push_back({address(0, 1, 1, VELO_UNIT_VELO), {0, random_.next()}});
            nodes_[n].refused++;
            break;
        case 2: // past the line's end
            writes.push_back({address(8, 1, 1, VELO_UNIT_VELO), {1, 2, 3}});
            nodes_[n].refused++;
            break;
        default: // a context that is not there
            writes.push_back({address(0, 0, 200 + bad_writes_ % 4, VELO_UNIT_VELO),
                              {velo_header_pack(0, 1, 0, 0, 0)}});
            nodes_[to].dropped++;
        }
    }

    // A store that the node has not taken: a load from now on might overtake it.
    static bool store_waits(const Node &node)
    {
        for (const Write &write : node.units.writes)
            if (velo_window_unit(write.addr) == VELO_UNIT_CUSTOM)
                return true;
        return false;
    }

    // A store, or a load of what was stored; each node has a part of each segment of its own.
    void share(unsigned n)
    {
        Node &node = nodes_[n];
        if (node.load_open || sent_ >= options_.messages)
            return;
        unsigned to = random_.below(nodes_.size());
        uint64_t offset = n << 12 | random_.below(16) << 3, key = to << 20 | offset;
        uint64_t addr = velo_window_pack(static_cast<uint32_t>(key), 5, VELO_UNIT_CUSTOM);
        if (random_.below(2)) {
            node.units.writes.push_back({addr, {node.stored[key] = random_.next()}});
            stores_++;
        } else if (!store_waits(node)) {
            node.load_open = node.load_offered = true;
            node.load_key = key;
            node.load_tag = random_.next();
            node.loaded = node.load_beats = 0;
            set_bits(node.top->host_read_addr_i, 0, 48, addr);
            node.top->host_read_len_bytes_i = 8;
            node.top->host_read_tag_i = node.load_tag;
        }
    }

    void poll(unsigned n, unsigned context)
    {
        Node &node = nodes_[n];
        uint64_t slot = ring(context) + 64 * (node.head[context] % (1U << kRingLog2));
        uint64_t word = node.memory.word(slot);
        if (!velo_header_valid(word) || velo_header_seq(word) != (node.head[context] & 0xFFFF))
            return;
        auto &flow = expected_[n * 256 + context + 1][velo_header_source(word)];
        std::string where = " at node " + std::to_string(n) + ", seed " +
                            std::to_string(options_.seed) + ", cycle " + std::to_string(cycle_);
        if (flow.empty())
            fail("a message that nobody sent, or twice," + where);
        const Message &message = flow.front();
        bool same = velo_header_tag(word) == message.tag && velo_header_len(word) == message.len &&
                    velo_header_reserved(word) == message.reserved;
        for (size_t i = 0; i < message.payload.size(); i++)
            same = same && node.memory.word(slot + 8 + 8 * i) == message.payload[i];
        if (!same)
            fail("a message is lost, out of order or damaged" + where);
        flow.pop_front();
        received_++;
        released(n, velo_header_source(word));
        unsigned source = velo_header_source(word) & 0xFF;
        if (options_.measure && source >= kFirstSource && source < VELO_GROUP_NODE_MIN)
            exchanged(n, source - kFirstSource);
        node.head[context]++;
        set_register(n, kRegReadPointers + ((context + 1) << 12), node.head[context] & 0xFFFF);
    }

    // Restarts and pulled cables; about one in ten thousand cycles.
    void disturb()
    {
        if (!options_.resets || random_.below(10000))
            return;
        unsigned n = random_.below(nodes_.size()), l = random_.below(kLinks);
        Node &node = nodes_[n];
        if (!node.cables[l].plugged || node.restart_for[l])
            return;
        link_resets_++;
        if (random_.below(2)) {
            node.restart_for[l] = 20 + random_.below(50);
            write_restarts(n);
        } else {
            node.unplugged_for[l] = 1 + random_.below(300);
        }
    }

    void write_restarts(unsigned n)
    {
        unsigned restart = 0;
        for (unsigned l = 0; l < kLinks; l++)
            restart |= static_cast<unsigned>(nodes_[n].restart_for[l] > 1) << l;
        set_register(n, kRegLinks, plugged(n) | restart << 8);
    }

    // ----- one clock cycle
    // ------------------------------------------------------------------------

    void step()
    {
        unsigned full = 0;
        for (unsigned n = 0; n < nodes_.size(); n++)
            drive(n);
        for (auto &node : nodes_) {
            node.top->clk_i = 0;
            node.top->eval();
        }
        // The cables take the words that registers hold in this cycle to the other side.
        for (auto &node : nodes_)
            for (unsigned l = 0; l < kLinks; l++)
                if (node.cables[l].plugged)
                    carry(node, l);
        for (unsigned n = 0; n < nodes_.size(); n++) {
            nodes_[n].top->eval();
            collect(nodes_[n]);
            bool is_full = false;
            for (unsigned c = 0; c < kContexts; c++)
                is_full = is_full || ring_is_full(nodes_[n], c);
            full += is_full;
        }
        full_rings_ += full != 0;
        most_full_ = full > most_full_ ? full : most_full_;
        for (auto &node : nodes_) {
            node.top->clk_i = 1;
            node.top->eval();
        }
        cycle_++;
    }

    static bool ring_is_full(Node &node, unsigned context)
    {
        uint64_t last = node.head[context] + (1U << kRingLog2) - 1;
        uint64_t word = node.memory.word(ring(context) + 64 * (last % (1U << kRingLog2)));
        return velo_header_valid(word) && velo_header_seq(word) == (last & 0xFFFF);
    }

    void carry(Node &node, unsigned l)
    {
        bench::Cable &cable = node.cables[l];
        Vvelo_node_flat &other = *nodes_[cable.to_node].top;
        bool pulled = node.unplugged_for[l] != 0;
        for (unsigned piece = 0; piece < kPieces; piece++) {
            Word word;
            word.kind = get_bits(node.top->phy_kind_o, l * 2, 2);
            word.data = get_bits(node.top->phy_data_o, l * kWidth + 32 * piece, 32);
            bench::Cable &way = piece ? node.more_cables[piece][l] : cable;
            word = way.pass(word, pulled, quiet_, random_);
            if (piece == 0)
                set_bits(other.phy_kind_i, cable.to_link * 2, 2, word.kind);
            set_bits(other.phy_data_i, cable.to_link * kWidth + 32 * piece, 32, word.data);
        }
    }

    // A beat of a stream of words; what is beside them is of no interest.
    template <typename Data>
    static void put_beat(Data &data, const std::vector<uint64_t> &words, unsigned beat)
    {
        for (unsigned lsb = 0; lsb < kWidth; lsb += kWordBits) {
            size_t bit = beat * kWidth + lsb;
            uint64_t word = bit / 64 < words.size() ? words[bit / 64] : ~words.back();
            set_bits(data, lsb, kWordBits, word >> (bit % 64));
        }
    }

    template <typename Valid, typename Addr, typename Len, typename Data>
    static void offer(const Stream &stream, Valid &valid, Valid &eop, Addr &addr, Len &len,
                      Data &data)
    {
        valid = !stream.writes.empty();
        if (stream.writes.empty())
            return;
        const Write &write = stream.writes.front();
        addr = write.addr;
        len = write.words.size() * 8;
        eop = (stream.beat + 1) * kWidth >= 64 * write.words.size();
        put_beat(data, write.words, stream.beat);
    }

    static void taken(Stream &stream, bool end)
    {
        stream.beat++;
        if (end) {
            stream.beat = 0;
            stream.writes.pop_front();
        }
    }

    void drive(unsigned n)
    {
        Node &node = nodes_[n];
        Vvelo_node_flat &top = *node.top;
        offer(node.units, top.host_write_valid_i, top.host_write_eop_i, top.host_write_addr_i,
              top.host_write_len_bytes_i, top.host_write_data_i);
        offer(node.control, top.control_write_valid_i, top.control_write_eop_i,
              top.control_write_addr_i, top.control_write_len_bytes_i, top.control_write_data_i);
        top.control_read_valid_i = node.register_asked;
        top.host_read_valid_i = node.load_offered;
        if (node.dma_stall)
            node.dma_stall--;
        else if (!quiet_ && random_.below(500) == 0)
            node.dma_stall = 1 + random_.below(random_.below(10) ? 20 : 2000);
        top.dma_write_ready_i = node.dma_stall == 0;
        top.dma_read_ready_i = node.reads.size() < 2;
        if (node.read_delay)
            node.read_delay--;
        bool answers = !node.reads.empty() && node.read_delay == 0;
        top.dma_answer_valid_i = answers;
        if (answers) {
            const auto &[tag, bytes] = node.reads.front();
            for (unsigned lsb = 0; lsb < kWidth; lsb += kWordBits) {
                uint64_t data = random_.next(); // what is beside the data is of no interest
                size_t from = node.read_beat * kBeatBytes + lsb / 8;
                for (unsigned i = 0; i < kWordBits / 8 && from + i < bytes.size(); i++)
                    data = (data & ~(uint64_t{0xFF} << (8 * i))) |
                           static_cast<uint64_t>(bytes[from + i]) << (8 * i);
                set_bits(top.dma_answer_data_i, lsb, kWordBits, data);
            }
            top.dma_answer_tag_i = tag;
            top.dma_answer_error_i = 0;
            top.dma_answer_eop_i = (node.read_beat + 1) * kBeatBytes >= bytes.size();
        }
        unsigned up = 0;
        for (unsigned l = 0; l < kLinks; l++) {
            up |= static_cast<unsigned>(node.cables[l].plugged && !node.unplugged_for[l]) << l;
            node.unplugged_for[l] -= node.unplugged_for[l] > 0;
            if (node.restart_for[l] && --node.restart_for[l] == 0)
                write_restarts(n);
        }
        top.phy_up_i = up;
    }

    void collect(Node &node)
    {
        Vvelo_node_flat &top = *node.top;
        if (!top.rst_ni)
            return;
        if (top.host_write_valid_i && top.host_write_ready_o)
            taken(node.units, top.host_write_eop_i);
        if (top.control_write_valid_i && top.control_write_ready_o)
            taken(node.control, top.control_write_eop_i);
        if (top.control_read_valid_i && top.control_read_ready_o)
            node.register_asked = false;
        if (top.host_read_valid_i && top.host_read_ready_o)
            node.load_offered = false;
        if (top.control_answer_valid_o)
            node.answer |= get_bits(top.control_answer_data_o, 0, kWordBits)
                           << (32 * (node.answer_beats++ % kWordBeats));
        if (top.host_answer_valid_o)
            loaded(node);
        if (top.dma_answer_valid_i && top.dma_answer_ready_o) {
            node.read_beat++;
            if (top.dma_answer_eop_i) {
                node.read_beat = 0;
                node.reads.pop_front();
                node.read_delay = random_.below(20);
            }
        }
        if (top.dma_write_valid_o && top.dma_write_ready_i)
            store(node);
        if (top.dma_read_valid_o && top.dma_read_ready_i)
            take_read(node);
    }

    static void take_read(Node &node)
    {
        uint64_t addr = node.top->dma_read_addr_o;
        std::vector<uint8_t> bytes(node.top->dma_read_len_bytes_o);
        if (bytes.empty() || addr % 4096 + bytes.size() > 4096)
            fail("a DMA read of nothing, or across a page's end");
        for (size_t i = 0; i < bytes.size(); i++)
            bytes[i] = node.memory.byte(addr + i);
        node.reads.emplace_back(node.top->dma_read_tag_o, bytes);
    }

    void loaded(Node &node)
    {
        Vvelo_node_flat &top = *node.top;
        if (!node.load_open || top.host_answer_tag_o != node.load_tag || top.host_answer_error_o)
            fail("a load was answered wrongly");
        node.loaded |= get_bits(top.host_answer_data_o, 0, kWordBits) << (32 * node.load_beats++);
        if (!top.host_answer_eop_o)
            return;
        if (node.load_beats != kWordBeats || node.loaded != node.stored[node.load_key])
            fail("a load got something else than was stored, seed " +
                 std::to_string(options_.seed) + ", cycle " + std::to_string(cycle_));
        node.load_open = false;
        loads_++;
    }

    void store(Node &node)
    {
        Vvelo_node_flat &top = *node.top;
        uint64_t addr = top.dma_write_addr_o;
        unsigned len = top.dma_write_len_bytes_o, from = node.dma_beat++ * kBeatBytes;
        for (unsigned i = 0; i < kBeatBytes && from + i < len; i++)
            node.dma_bytes.push_back(
                static_cast<uint8_t>(get_bits(top.dma_write_data_o, 8 * i, 8)));
        // An aligned word is never seen in halves.
        uint64_t end = addr + std::min(from + kBeatBytes, len);
        if (end % 8 == 0 || top.dma_write_eop_o) {
            for (size_t i = 0; i < node.dma_bytes.size(); i++)
                node.memory.set_byte(end - node.dma_bytes.size() + i, node.dma_bytes[i]);
            node.dma_bytes.clear();
        }
        if (!top.dma_write_eop_o)
            return;
        if (from >= len || from + kBeatBytes < len || addr % 4096 + len > 4096)
            fail("a DMA write is not as long as it says, or goes across a page's end");
        node.dma_beat = 0;
        remote_.wrote(&node - nodes_.data(), addr);
    }

    // ----- verdicts
    // -------------------------------------------------------------------------------

    [[noreturn]] void hang()
    {
        for (unsigned n = 0; n < nodes_.size(); n++)
            std::fprintf(stderr,
                         "node %u: stall %" PRIx64 ", RMA %" PRIx64 ", custom %" PRIx64
                         ", %zu writes wait\n",
                         n, read_register(n, kRegStall),
                         read_register(n, bench::RmaModel::kRegStall),
                         read_register(n, kRegCustomStatus), nodes_[n].units.writes.size());
        fail("nothing arrived for " + std::to_string(kHangCycles) + " cycles; " +
             std::to_string(received_) + " of " + std::to_string(sent_) + " messages had, seed " +
             std::to_string(options_.seed));
    }

    void check(unsigned n, const char *what, uint64_t is, uint64_t should)
    {
        if (is != should)
            fail("node " + std::to_string(n) + ": " + what + " is " + std::to_string(is) +
                 ", not " + std::to_string(should) + ", seed " + std::to_string(options_.seed));
    }

    void check_links(unsigned n, const char *when)
    {
        for (unsigned l = 0; l < kLinks; l++) {
            if (!nodes_[n].cables[l].plugged)
                continue;
            if ((read_register(n, kRegLink + 8 * l) & 1) == 0)
                fail("node " + std::to_string(n) + ": link " + std::to_string(l) + " is down " +
                     when);
            uint64_t credits = read_register(n, kRegCredits + 8 * l);
            for (unsigned v = 0; v < kVcs; v++)
                check(n, "credits of a channel", (credits >> (8 * v)) & 255, kCredits);
        }
    }

    // All messages arrived, although some were held back. A link's reset may have lost notices.
    void check_notices()
    {
        uint64_t sent = 0, came = 0;
        for (unsigned n = 0; n < nodes_.size(); n++) {
            uint64_t notices = read_register(n, kRegNotices);
            sent += notices >> 16 & 0xFFFF;
            came += notices >> 48;
        }
        if (!came || came > sent)
            fail(std::to_string(came) + " notices of congestion came, " + std::to_string(sent) +
                 " were sent");
    }

    void check_end()
    {
        uint64_t arrived = 0, left = 0;
        for (const auto &[to, flows] : expected_)
            for (const auto &[source, flow] : flows)
                left += flow.size();
        if (left)
            fail("messages are missing at the end");
        for (unsigned n = 0; n < nodes_.size(); n++) {
            check_links(n, "at the end");
            check(n, "register refused", read_register(n, kRegRefused), nodes_[n].refused);
            // Messages that were disturbed on their way are counted, too: those that came again.
            uint64_t dropped = read_register(n, kRegDropped);
            if (dropped < nodes_[n].dropped || (options_.error_rate == 0 && link_resets_ == 0))
                check(n, "register dropped", dropped, nodes_[n].dropped);
            check(n, "register unmapped", read_register(n, kRegUnmapped), 0);
            check(n, "register stray_responses", read_register(n, kRegStrays), 0);
            check(n, "register custom_status", read_register(n, kRegCustomStatus), 0);
            check(n, "refused arrivals", read_register(n, kRegBarrierCounts) >> 16 & 0xFFFF, 0);
            uint64_t complete = 0;
            for (const Group &group : groups_)
                complete += nodes_[n].barriers[group.number] ? group.barriers : 0;
            check(n, "complete barriers", read_register(n, kRegBarrierCounts) & 0xFFFF,
                  complete & 0xFFFF);
            check(n, "register stall", read_register(n, kRegStall) & 7, 0);
            arrived += read_register(n, kRegReceived);
        }
        check(0, "sum of registers received", arrived, received_);
        if (options_.congestion)
            check_notices();
        remote_.check_end();
        for (auto &node : nodes_) {
            unsigned n = &node - nodes_.data();
            for (const auto &[key, value] : node.stored)
                if (value != nodes_[key >> 20].memory.word(kSegment + (key & 0xFFFFF)))
                    fail("a store of node " + std::to_string(n) + " is not in memory");
        }
    }
};

Options parse(int argc, char **argv)
{
    Options options;
    if (argc < 2)
        fail("bench_nodes TOPOLOGY [--seed N] ...: see the file's head");
    options.topology = argv[1];
    for (const auto &[name, value] : bench::options_of(argc, argv, 2)) {
        if (name == "--seed")
            options.seed = bench::number<uint64_t>(value);
        else if (name == "--messages")
            options.messages = bench::count<uint64_t>(value);
        else if (name == "--error-rate")
            options.error_rate = bench::real(value);
        else if (name == "--resets")
            options.resets = bench::number<bool>(value);
        else if (name == "--delay")
            options.delay = bench::number<unsigned>(value);
        else if (name == "--max-payload")
            options.max_payload = bench::number<unsigned>(value);
        else if (name == "--congestion")
            options.congestion = bench::number<bool>(value);
        else if (name == "--measure")
            options.measure = bench::number<bool>(value);
        else if (name == "--coverage")
            options.coverage = value;
        else
            fail("unknown option " + name);
    }
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    Options options = parse(argc, argv);
    Network network(options);
    network.start();
    if (options.measure)
        network.measure();
    else
        network.run();
    return 0;
}
