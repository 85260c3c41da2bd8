// SPDX-License-Identifier: Apache-2.0
//
// The bare switch, nine ports of 32 bits: hop in cycles, cut-through, throughput when saturated.
//
//   bench_switch [--seed N] [--cycles N] [--groups 0|1] [--only-groups 0|1]
//
// Every packet is checked at its output for place, order and contents; those that lead nowhere are
// swallowed, each told once, and their credits come back. A message to a group leaves once by each
// output of the group, in order, whatever else goes on and comes in disturbed. Traffic when
// saturated: each link and node port offers packets without a gap, to each link with 1/9 and to the
// node port of the packet's class with 1/3: all inputs and all outputs have the same load, 1.

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>

#include "Vvelo_switch.h"
#include "harness.h"

namespace
{

using bench::fail;
using bench::get_bits;
using bench::set_bits;

constexpr unsigned kLinks = 6, kPorts = 9, kVcs = 6, kUnitWords = 8;
constexpr unsigned kBufferUnits = 30, kCountBits = 8, kCounts = 1 << kCountBits;

// size_credits() of velo_switch_pkg: what a packet of 32-bit words needs by its header's length.
unsigned need_credits(const bench::Words &words)
{
    if (words[0] & 1)
        return 19;
    unsigned len_bytes = words.size() < 2 ? 0 : words[0] >> 26 | (words[1] & 15) << 6;
    unsigned units = len_bytes <= 64 ? 3 : len_bytes <= 128 ? 5 : len_bytes <= 256 ? 9 : 17;
    return units + 2;
}

struct Outgoing {
    bench::Words words;
    unsigned vc = 0;
    size_t place = 0;
    bool poison = false;   // its end says so
    size_t cut_at = 0;     // it is cut off after so many words, and comes again
    bool again = false;    // it was cut off, and the link knows that this is the same
    bench::Words mistaken; // what the copy that is cut off begins with, if its link believed that
    unsigned mistaken_vc = 0;
};

// Node numbers of groups, and what the table has for one: by output, whether it gets a copy, and
// where it takes the second channel.
constexpr unsigned kGroups = 32, kFirstGroup = 256 - kGroups;
struct Group {
    unsigned outputs = 0, dateline = 0;
};

struct Bench {
    VerilatedContext context;
    std::unique_ptr<Vvelo_switch> top{new Vvelo_switch(&context)};
    bench::Random random;
    uint64_t cycle = 0;

    std::array<std::deque<Outgoing>, kPorts> sources;
    std::array<std::array<unsigned, kVcs>, kPorts> used{};
    // Capacity of what is behind the outputs comes back this many cycles after a unit was sent.
    unsigned return_cycles = 20;
    std::array<std::deque<std::pair<uint64_t, unsigned>>, kPorts> returns;
    std::array<std::array<unsigned, kVcs>, kPorts> freed{};

    std::array<bench::Words, kPorts> arriving;
    std::array<uint64_t, kPorts> out_words{};
    std::array<uint64_t, kPorts> first_out{}, first_in{};
    std::map<uint64_t, uint32_t> next_sequence, expected_sequence; // per source, output and channel
    uint64_t packets = 0;
    std::array<uint64_t, kPorts> nowhere{}, dropped{}; // sent there; told by the switch
    bool lying = false;  // headers tell a smaller size than their packets have
    bool shorts = false; // packets are make_short()'s
    bool rough = false;  // gaps inside packets, outputs stop at random
    std::array<Group, kGroups> groups{};
    std::map<unsigned, uint32_t> group_sent, group_arrived; // by port and group; by output, too
    // Disturbed packets: those that came in, those of groups that have to leave once and that did.
    uint64_t poisoned_in = 0, poisoned_out = 0, poisoned_group_in = 0, poisoned_group_out = 0;
    std::array<unsigned, kPorts> stopped_for{};
    std::array<uint64_t, kPorts> held_until{}; // outputs stop until this cycle

    explicit Bench(uint64_t seed) : random(seed) {}

    void step()
    {
        for (unsigned p = 0; p < kPorts; p++)
            drive(p);
        top->clk_i = 0;
        top->eval();
        for (unsigned p = 0; p < kPorts; p++)
            collect(p);
        top->clk_i = 1;
        top->eval();
        cycle++;
    }

    void drive(unsigned p)
    {
        while (!returns[p].empty() && returns[p].front().first <= cycle) {
            unsigned vc = returns[p].front().second;
            freed[p][vc] = (freed[p][vc] + 1) % kCounts;
            set_bits(top->out_freed_i, (p * kVcs + vc) * kCountBits, kCountBits, freed[p][vc]);
            returns[p].pop_front();
        }
        bool send = false;
        if (!sources[p].empty()) {
            Outgoing &packet = sources[p].front();
            unsigned back =
                get_bits(top->in_freed_o, (p * kVcs + packet.vc) * kCountBits, kCountBits);
            unsigned avail = (kBufferUnits + back - used[p][packet.vc]) % kCounts;
            unsigned need = packet.words.size() > 136 ? kBufferUnits : need_credits(packet.words);
            send = packet.place > 0 || avail >= need;
            if (rough && random.below(3) == 0)
                send = false; // a gap
            if (send) {
                if (packet.place == 0)
                    first_in[p] = cycle;
                // A copy that is cut off is for the same credits as the one that comes after it.
                if (packet.place % kUnitWords == 0 && !packet.cut_at)
                    used[p][packet.vc] = (used[p][packet.vc] + 1) % kCounts;
                bool other = packet.cut_at && !packet.mistaken.empty();
                set_bits(top->in_data_i, p * 32, 32,
                         other && packet.place < 2 ? packet.mistaken[packet.place]
                                                   : packet.words[packet.place]);
                set_bits(top->in_vc_i, p * 3, 3, other ? packet.mistaken_vc : packet.vc);
                set_bits(top->in_sop_i, p, 1, packet.place == 0);
                bool same = packet.place == 0 && packet.again && packet.words.size() > 1;
                bool last = ++packet.place == packet.words.size();
                bool cut = packet.place == packet.cut_at;
                set_bits(top->in_eop_i, p, 1, last || cut);
                set_bits(top->in_poison_i, p, 1, cut || (last && packet.poison));
                set_bits(top->in_again_i, p, 1, cut || same);
                packet.again = packet.again || (cut && !other);
                if (cut)
                    packet.place = packet.cut_at = 0;
                else if (last)
                    sources[p].pop_front();
            }
        }
        set_bits(top->in_valid_i, p, 1, send);
        bool stop = rough && random.below(stopped_for[p] ? 4 : 16) < (stopped_for[p] ? 3 : 1);
        stop = stop || cycle < held_until[p];
        stopped_for[p] = stop ? stopped_for[p] + 1 : 0;
        set_bits(top->out_stop_i, p, 1, stop);
    }

    void collect(unsigned p)
    {
        dropped[p] += get_bits(top->dropped_o, p, 1);
        if (!get_bits(top->out_valid_o, p, 1))
            return;
        out_words[p]++;
        auto &words = arriving[p];
        if (stopped_for[p] > 3 && words.empty())
            fail("a packet begins more than three cycles after a stop at port " +
                 std::to_string(p));
        unsigned vc = get_bits(top->out_vc_o, p * 3, 3);
        if (words.empty())
            first_out[p] = cycle;
        if ((get_bits(top->out_sop_o, p, 1) != 0) != words.empty())
            fail("a packet began inside another at port " + std::to_string(p));
        if (words.size() % kUnitWords == 0)
            returns[p].emplace_back(cycle + return_cycles, vc);
        words.push_back(get_bits(top->out_data_o, p * 32, 32));
        if (get_bits(top->out_eop_o, p, 1)) {
            if (get_bits(top->out_poison_o, p, 1) && !lying)
                check_poisoned(p, words);
            else
                check(p, vc, words);
            words.clear();
        }
    }

    // The header's `src` is the input port here, `dst` the output port.
    void check(unsigned port, unsigned vc, const bench::Words &words)
    {
        if (shorts || words.size() == 1)
            return check_short(port, vc, words);
        if (lying)
            return check_cut(words);
        uint64_t head = words[0] | static_cast<uint64_t>(words[1]) << 32;
        unsigned src = (head >> 52) & 0xFF, dst = (head >> 8) & 0xFF, tc = (head >> 1) & 3;
        if (dst >= kFirstGroup)
            return check_copy(port, vc, src, dst, words);
        if (dst % 16 != port || vc / 2 != tc)
            fail("a packet for port " + std::to_string(dst % 16) + " came out at " +
                 std::to_string(port));
        uint64_t flow = src << 16 | dst << 8 | vc;
        uint32_t sequence = expected_sequence[flow]++;
        if (words != bench::make_packet(tc, dst, src, sequence, words.size() - 2))
            fail("packet " + std::to_string(sequence) + " from port " + std::to_string(src) +
                 " to " + std::to_string(dst) + " is lost, doubled, out of order or damaged");
        packets++;
    }

    void check_copy(unsigned port, unsigned vc, unsigned src, unsigned dst,
                    const bench::Words &words)
    {
        const Group &group = groups[dst - kFirstGroup];
        if (!(group.outputs >> port & 1) || vc != (group.dateline >> port & 1))
            fail("a message for group " + std::to_string(dst) + " came out at " +
                 std::to_string(port) + ", channel " + std::to_string(vc));
        uint32_t sequence = group_arrived[src << 16 | dst << 8 | port]++;
        if (words != bench::make_packet(0, dst, src, sequence, words.size() - 2))
            fail("message " + std::to_string(sequence) + " from port " + std::to_string(src) +
                 " to group " + std::to_string(dst) +
                 " is lost, doubled, out of order or damaged at " + std::to_string(port));
        packets++;
    }

    // Nobody acts upon it; but it must not be more than what came in.
    void check_poisoned(unsigned port, const bench::Words &words)
    {
        unsigned dst = (words[0] >> 8) & 0xFF;
        if (dst < kFirstGroup) {
            poisoned_out++;
            return;
        }
        if (!(groups[dst - kFirstGroup].outputs >> port & 1))
            fail("a disturbed message for group " + std::to_string(dst) + " came out at " +
                 std::to_string(port));
        poisoned_group_out++;
    }

    // One word: the switch sees class and destination as always.
    static bench::Words make_single(unsigned tc, unsigned dst, unsigned src, uint32_t sequence)
    {
        return {tc << 1 | dst << 8 | src << 16 | (sequence & 0xFF) << 24};
    }

    // Packets of one to twenty words, most of them shorter than any that the network carries, with
    // gaps inside. Their length follows from the first word.
    static bench::Words make_short(unsigned tc, unsigned dst, unsigned src, uint32_t sequence)
    {
        bench::Words words = make_single(tc, dst, src, sequence);
        bench::Random fill(words[0]);
        size_t length = 1 + fill.below(fill.below(4) ? 5 : 20);
        while (words.size() < length)
            words.push_back(static_cast<uint32_t>(fill.next()));
        return words;
    }

    void check_short(unsigned port, unsigned vc, const bench::Words &words)
    {
        unsigned tc = (words[0] >> 1) & 3, dst = (words[0] >> 8) & 0xFF,
                 src = (words[0] >> 16) & 0xFF;
        uint32_t sequence = expected_sequence[src << 16 | dst << 8 | vc]++;
        if (dst % 16 != port || vc / 2 != tc ||
            words != (shorts ? make_short : make_single)(tc, dst, src, sequence))
            fail("a short packet from port " + std::to_string(src) + " to " + std::to_string(dst) +
                 " is lost, doubled, out of order or damaged");
        packets++;
    }

    void short_packets(uint64_t cycles)
    {
        shorts = rough = true;
        for (uint64_t i = 0; i < cycles; i++) {
            for (unsigned p = 0; p < kPorts; p++) {
                // With and without a backlog: packets that wait, and packets that just arrive.
                if (sources[p].size() < 2 && random.below(i % 1024 < 512 ? 1 : 24) == 0) {
                    if (random.below(16) == 0)
                        offer_nowhere(p);
                    else
                        offer_random(p, 1);
                }
            }
            step();
        }
        drain();
        shorts = rough = false;
    }

    // The last two groups lead nowhere: to no output, and not written.
    void set_groups()
    {
        for (unsigned g = 0; g + 1 < kGroups; g++) {
            Group &group = groups[g];
            do {
                group.outputs = g + 2 == kGroups ? 0 : random.below(1U << (kLinks + 1));
            } while (group.outputs == 0 && g + 2 < kGroups);
            group.dateline = random.below(1U << kLinks) & group.outputs;
            top->table_we_i = 1;
            top->table_node_i = kFirstGroup + g;
            top->table_group_i = (group.outputs >> kLinks & 1) << 12 | group.dateline << 6 |
                                 (group.outputs & ((1U << kLinks) - 1));
            step();
        }
        top->table_we_i = 0;
    }

    // A message for a group; one of 16 is disturbed, or is none that a group takes.
    void offer_to_group(unsigned p, unsigned g, unsigned payload_words, bool disturb)
    {
        unsigned dst = kFirstGroup + g, odd = disturb ? random.below(64) : 64;
        uint32_t &sequence = group_sent[p << 16 | dst << 8];
        Outgoing packet;
        packet.words = bench::make_packet(0, dst, p, sequence, payload_words);
        packet.vc = p < kLinks ? g & 1 : 0; // a flow keeps to one channel
        if (odd == 0) {                     // not of kind velo
            packet.words = bench::make_packet(0, dst, p, 0, 17 + random.below(80));
            nowhere[p]++;
        } else if (odd == 1 && p < kLinks) { // of another class
            unsigned tc = 1 + random.below(2);
            packet.words = bench::make_packet(tc, dst, p, 0, payload_words);
            packet.vc += 2 * tc;
            nowhere[p]++;
        } else if (groups[g].outputs == 0) {
            nowhere[p]++;
        } else if (odd == 2) { // longer than any header says: it is cut
            packet.words.resize(137 + random.below(60), 0x600DF00D);
            nowhere[p]++;
            poisoned_group_in++;
        } else if (odd == 3 && p < kLinks) {
            packet.poison = true;
            poisoned_group_in++;
        } else {
            sequence++;
            if (odd < 8 && p < kLinks)
                packet.cut_at = 2 + random.below(payload_words);
        }
        sources[p].push_back(packet);
    }

    // Messages to groups among those to one output, with stops, gaps, disturbed packets and sinks
    // that give their units back late. Behind some messages come packets of one word, which are
    // queued in every cycle: a copy waits for its queue while the next message could begin to
    // leave.
    void multicast(uint64_t cycles)
    {
        rough = true;
        for (uint64_t i = 0; i < cycles; i++) {
            if (i % 2048 == 0) {
                return_cycles = i / 2048 % 3 == 2 ? 400 : 20;
                rough = i / 2048 % 2 == 0;
            }
            for (unsigned p = 0; p <= kLinks; p++) {
                if (sources[p].size() >= 2 || (i % 8192 >= 4096 && random.below(40)))
                    continue;
                if (random.below(3) == 0) {
                    offer_to_group(p, random.below(random.below(4) ? 3 : kGroups),
                                   2 + random.below(15), true);
                    continue;
                }
                if (random.below(16) == 0) {
                    for (int n = 0; n < 4; n++)
                        offer_to_group(p, random.below(3), 2, false);
                    for (int n = 0; n < 16; n++)
                        offer_random(p, 0);
                    continue;
                }
                offer_random(p, 2 + 2 * random.below(8));
                if (p < kLinks && random.below(8) == 0) {
                    Outgoing &packet = sources[p].back();
                    packet.cut_at = 2 + random.below(packet.words.size() - 2);
                    poisoned_in++;
                    // Some way, or none, and some length.
                    if (random.below(2)) {
                        unsigned other = random.below(random.below(2) ? 32 : 256);
                        packet.mistaken =
                            bench::make_packet(random.below(4), other, p, 0, 2 + random.below(126));
                        packet.mistaken_vc = random.below(8);
                    }
                }
            }
            step();
        }
        rough = false;
        return_cycles = 20;
        drain();
        for (const auto &[flow, sent] : group_sent)
            for (unsigned port = 0; port <= kLinks; port++)
                if (groups[(flow >> 8 & 0xFF) - kFirstGroup].outputs >> port & 1 &&
                    group_arrived[flow | port] != sent)
                    fail("a group's messages are missing at the end at " + std::to_string(port));
        if (poisoned_group_in != poisoned_group_out || poisoned_out > poisoned_in)
            fail("not one copy, and a poisoned one, of each disturbed message for a group");
    }

    // From the first word in to the last copy's last word out: one message of 8 bytes to all other
    // links.
    uint64_t fan_out()
    {
        groups[0] = {(1U << kLinks) - 2, 0};
        top->table_we_i = 1;
        top->table_node_i = kFirstGroup;
        top->table_group_i = groups[0].outputs;
        step();
        top->table_we_i = 0;
        group_sent.clear();
        group_arrived.clear();
        offer_to_group(0, 0, 2, false);
        uint64_t goal = packets + kLinks - 1;
        while (packets < goal)
            step();
        return cycle - first_in[0];
    }

    // Destinations 0..8 are the ports, 16..21 the links with the dateline channel. No payload: one
    // word.
    void offer(unsigned p, unsigned tc, unsigned dst, unsigned payload_words)
    {
        bool link = dst % 16 < kLinks;
        unsigned vc = tc * 2 + (dst >= 16);
        uint32_t sequence = next_sequence[p << 16 | dst << 8 | (link ? vc : tc * 2)]++;
        Outgoing packet;
        packet.words = shorts          ? make_short(tc, dst, p, sequence)
                       : payload_words ? bench::make_packet(tc, dst, p, sequence, payload_words)
                                       : make_single(tc, dst, p, sequence);
        // Two channels of a class may overtake each other, so a flow keeps to one.
        packet.vc = tc * 2 + (p < kLinks ? (dst & 1) : 0);
        sources[p].push_back(packet);
    }

    // By the table or by its own route; one word to several units long.
    void offer_nowhere(unsigned p)
    {
        Outgoing packet;
        unsigned tc = p < kLinks ? random.below(3) : p - kLinks;
        if (random.below(2))
            packet.words = {1 | (6 + 8 * random.below(2)) << 4, 0};
        bench::Words rest = bench::make_packet(tc, 30 + random.below(2), p, 0, random.below(24));
        packet.words.insert(packet.words.end(), rest.begin(), rest.end());
        packet.vc = tc * 2 + (p < kLinks ? random.below(2) : 0);
        nowhere[p]++;
        sources[p].push_back(packet);
    }

    void reset()
    {
        top->rst_ni = 0;
        for (unsigned p = 0; p < kPorts; p++)
            set_bits(top->out_credits_i, p * kCountBits, kCountBits, kBufferUnits);
        for (int i = 0; i < 4; i++)
            step();
        top->rst_ni = 1;
        for (unsigned dst = 0; dst < 32; dst++) {
            unsigned hop = dst % 16 < kLinks   ? dst % 16 + (dst >= 16 ? 8 : 0)
                           : dst % 16 < kPorts ? bench::kHopLocal
                           : dst % 2           ? 14
                                               : 7;
            top->table_we_i = 1;
            top->table_node_i = dst;
            top->table_hop_i = hop;
            step();
        }
        top->table_we_i = 0;
        for (int i = 0; i < 4; i++)
            step();
    }

    uint64_t hop(unsigned from, unsigned tc, unsigned to, unsigned payload_words)
    {
        offer(from, tc, to, payload_words);
        uint64_t before = packets;
        for (int i = 0; i < 600 && packets == before; i++)
            step();
        if (packets == before)
            fail("a packet did not arrive");
        for (int i = 0; i < 40; i++)
            step();
        return first_out[to % 16] - first_in[from];
    }

    void offer_random(unsigned p, unsigned payload_words)
    {
        unsigned tc = p < kLinks ? random.below(3) : p - kLinks;
        unsigned pick = random.below(9);
        unsigned dst = pick < kLinks ? pick + 16 * random.below(2) : kLinks + tc;
        offer(p, tc, dst, payload_words);
    }

    // No payload: mixed.
    double saturate(uint64_t cycles, unsigned payload_words)
    {
        std::array<uint64_t, kPorts> before{};
        uint64_t start = cycle;
        for (uint64_t i = 0; i < cycles; i++) {
            for (unsigned p = 0; p < kPorts; p++) {
                while (sources[p].size() < 2)
                    offer_random(p, payload_words ? payload_words : 2 + 2 * random.below(8));
            }
            step();
            if (i == cycles / 5) { // after a fifth, in the steady state
                before = out_words;
                start = cycle;
            }
        }
        uint64_t total = 0;
        for (unsigned p = 0; p < kPorts; p++)
            total += out_words[p] - before[p];
        return static_cast<double>(total) / (kPorts * static_cast<double>(cycle - start));
    }

    void drain()
    {
        for (int i = 0; i < 4000; i++)
            step();
        for (const auto &[flow, sent] : next_sequence)
            if (expected_sequence[flow] != sent)
                fail("packets are missing at the end");
        if (dropped != nowhere)
            fail("not every packet that leads nowhere was told once, and no other");
        for (unsigned p = 0; p < kPorts; p++)
            for (unsigned v = 0; v < kVcs; v++) {
                unsigned place = (p * kVcs + v) * kCountBits;
                if (get_bits(top->in_freed_o, place, kCountBits) != used[p][v])
                    fail("credits of an input leaked");
                if (get_bits(top->out_avail_o, place, kCountBits) != kBufferUnits)
                    fail("credits of an output leaked");
            }
    }

    // Small packets from five links leave one output few credits. A long one from the sixth gets
    // them in a bounded time all the same.
    void starve(unsigned max_cycles)
    {
        return_cycles = 150;
        uint64_t longest = 0, waited = 0;
        uint32_t &arrived_of_flow = expected_sequence[5 << 16];
        for (unsigned round = 0; round < 20; round++) {
            offer(5, 0, 0, 128);
            uint32_t before = arrived_of_flow;
            for (waited = 0; arrived_of_flow == before && waited < max_cycles; waited++) {
                for (unsigned p = 0; p < 5; p++)
                    while (sources[p].size() < 2)
                        offer(p, 0, 0, 6);
                step();
            }
            if (arrived_of_flow == before)
                fail("small packets starve a long one");
            longest = waited > longest ? waited : longest;
        }
        long_waited_cycles = longest;
        return_cycles = 20;
    }
    uint64_t long_waited_cycles = 0;

    // Inputs 0 and 2 always have packets of one length, for output 0 and for output 1, which end
    // out of step: when output 1 becomes free, input 0 is in the middle of a packet. Its one packet
    // for output 1 leaves all the same (velo_switch_patience).
    void out_of_step(unsigned lag, unsigned payload_words, unsigned max_cycles)
    {
        drain();
        uint32_t &arrived = expected_sequence[0 << 16 | 1 << 8];
        uint32_t before = arrived;
        // Packets pile up until the outputs begin.
        held_until = {cycle + 200, cycle + 200 + lag};
        uint64_t asked = cycle + 300;
        for (; arrived == before && cycle < asked + max_cycles; step()) {
            while (sources[0].size() < 2)
                offer(0, 0, cycle > asked && next_sequence[0 << 16 | 1 << 8] == before ? 1 : 0,
                      payload_words);
            while (sources[2].size() < 2)
                offer(2, 0, 1, payload_words);
        }
        if (arrived == before)
            fail("packets out of step hold back another for ever");
        out_of_step_cycles = std::max(out_of_step_cycles, cycle - asked);
    }
    uint64_t out_of_step_cycles = 0;

    // Headers say 8 bytes, packets have 60 and more words: they end where 64 bytes could end, the
    // rest is swallowed, and every credit comes back.
    void lie()
    {
        drain();
        lying = true;
        uint64_t before = packets, told = 0;
        for (unsigned n = 0; n < 200; n++) {
            unsigned p = n % kPorts, tc = p < kLinks ? n % 3 : p - kLinks;
            Outgoing packet;
            packet.words = bench::make_packet(tc, (p + 1) % kLinks, p, n, 2);
            packet.words.resize(25 + random.below(110), 0x600DF00D);
            packet.vc = tc * 2;
            sources[p].push_back(packet);
            nowhere[p]++;
            told++;
        }
        drain();
        if (packets - before != told)
            fail("a packet longer than its header says was not cut");
        lying = false;
    }
    void check_cut(const bench::Words &words)
    {
        if (words.size() != 24)
            fail("cut to " + std::to_string(words.size()) + " words");
        packets++;
    }

    // A class whose node port takes nothing must not hold up the others, whoever sends.
    void block_class()
    {
        uint64_t blocked_until = cycle + 100000;
        for (unsigned p = 0; p < kLinks; p++)
            for (int n = 0; n < 60; n++)
                offer(p, 0, kLinks, 16);
        // No unit of node port 0 comes back for a while.
        uint64_t before = packets;
        for (int i = 0; i < 3000; i++) {
            for (auto &entry : returns[kLinks])
                entry.first = blocked_until;
            step();
        }
        if (packets - before > kBufferUnits)
            fail("node port 0 was sent more than it has room for");
        for (unsigned p = 0; p < kLinks; p++) {
            // A packet that waits at a source would delay others there, not in the switch.
            if (!sources[p].empty() && sources[p].front().place > 0)
                fail("a packet was begun without credits for it");
            sources[p].clear();
        }
        uint64_t others = packets;
        for (unsigned p = 0; p < kLinks; p++)
            for (unsigned tc = 1; tc < 3; tc++)
                for (int n = 0; n < 10; n++) {
                    offer(p, tc, kLinks + tc, 16);
                    offer(p, tc, (p + 1) % kLinks, 16);
                }
        for (int i = 0; i < 6000; i++) {
            for (auto &entry : returns[kLinks])
                entry.first = blocked_until;
            step();
        }
        if (packets - others != kLinks * 2 * 20)
            fail("a stalled class held up another");
    }
};

} // namespace

int main(int argc, char **argv)
{
    uint64_t seed = 1, cycles = 100000;
    bool groups = true, only_groups = false; // of a switch with Multicast
    for (const auto &[name, value] : bench::options_of(argc, argv, 1)) {
        if (name == "--seed")
            seed = bench::number<uint64_t>(value);
        else if (name == "--cycles")
            cycles = bench::count<uint64_t>(value);
        else if (name == "--groups")
            groups = bench::number<bool>(value);
        else if (name == "--only-groups")
            only_groups = bench::number<bool>(value);
        else
            fail("unknown option " + name);
    }
    Bench bench(seed);
    bench.reset();
    if (only_groups) {
        bench.set_groups();
        bench.multicast(4 * cycles);
        return 0;
    }
    uint64_t hop = 0;
    for (unsigned from = 0; from < kLinks; from++)
        for (unsigned to = 0; to < kLinks; to++) {
            uint64_t now = bench.hop(from, from % 3, to, to == 0 ? 128 : 2);
            hop = now > hop ? now : hop;
        }
    for (unsigned tc = 0; tc < 3; tc++) {
        uint64_t now = bench.hop(kLinks + tc, tc, tc, 2);
        hop = now > hop ? now : hop;
        now = bench.hop(tc, tc, kLinks + tc, 2);
        hop = now > hop ? now : hop;
    }
    double small = bench.saturate(cycles, 6);
    bench.drain();
    double line = bench.saturate(cycles, 16);
    bench.drain();
    double mixed = bench.saturate(cycles, 0);
    bench.drain();
    bench.short_packets(cycles);
    bench.starve(2000);
    // Each input is watched once in 2 * 2048 * 9 cycles.
    for (unsigned lag = 3; lag < 9; lag += 3)
        bench.out_of_step(lag, 6, 20736);
    bench.drain();
    bench.lie();
    uint64_t fan_out = 0;
    if (groups) {
        bench.set_groups();
        bench.multicast(4 * cycles);
        fan_out = bench.fan_out();
    }
    bench.block_class();
    std::printf("{\"switch_hop_cycles\": %llu, \"switch_saturation\": %.4f, "
                "\"switch_saturation_64B\": %.4f, \"switch_saturation_mixed\": %.4f, "
                "\"long_waited_cycles\": %llu, \"out_of_step_cycles\": %llu, "
                "\"switch_multicast_5_cycles\": %llu, "
                "\"packets\": %llu, \"seed\": %llu}\n",
                static_cast<unsigned long long>(hop), small, line, mixed,
                static_cast<unsigned long long>(bench.long_waited_cycles),
                static_cast<unsigned long long>(bench.out_of_step_cycles),
                static_cast<unsigned long long>(fan_out),
                static_cast<unsigned long long>(bench.packets),
                static_cast<unsigned long long>(seed));
    return 0;
}
