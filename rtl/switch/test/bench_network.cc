// SPDX-License-Identifier: Apache-2.0
//
// A whole network of routers (switch, links, network ports), 32-bit paths, against a scoreboard.
//
//   bench_network TOPOLOGY [--seed N] [--messages N] [--error-rate P] [--resets 0|1]
//                          [--max-payload BYTES] [--delay CYCLES] [--measure 0|1] [--poison 0|1]
//                          [--router-resets 0|1]
//
// TOPOLOGY is a file of cluster/routing.py. If it has groups, number 224 + n with source n, a
// quarter of the messages of class 0 goes to them, and each member has to get each once and in
// order. Random traffic of all classes, by table and by route word, in bursts, to sinks that stall;
// each bit of each word on each cable falls over with probability P, alone or in bursts; links are
// reset and cables pulled while packets are under way. Each message has to arrive once, in order,
// whole, and nothing of one that was poisoned on its way; at the end all credits have to be back.
// With --poison there must have been poisoned ones. With --router-resets, where there are no
// groups, whole routers are reset alone, some twice in a row, and get their tables again. Messages
// that were under way by such a router may then be missing; none is doubled, out of order or
// damaged, and all others arrive. The neighbours' links must have counted new sessions. With
// --measure the first two neighbours are measured instead, one class in one direction; where there
// are groups, a message to that of node 0. One seed makes one run: the same arguments give the same
// cycles.

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "Vvelo_router.h"
#include "cable.h"

namespace
{

using bench::Cable;
using bench::fail;
using bench::get_bits;
using bench::kClasses;
using bench::kKindData;
using bench::kKindEnd;
using bench::set_bits;
using bench::Word;

constexpr unsigned kLinks = 6, kVcs = 6, kBufferUnits = 30, kFlushCycles = 5000;
constexpr unsigned kFirstGroup = 224; // of the node numbers, see velo_switch_pkg

struct Options {
    std::string topology;
    uint64_t seed = 1, messages = 2000;
    double error_rate = 0;
    bool resets = false, measure = false, poison = false; // poisoned packets have to be seen
    bool router_resets = false;
    unsigned max_payload = 64, delay = 4;
};

struct Node {
    std::unique_ptr<Vvelo_router> top;
    std::array<Cable, kLinks> cables; // outwards
    std::array<std::deque<bench::Words>, kClasses> waiting;
    std::array<size_t, kClasses> place{};
    std::array<unsigned, kClasses> pause{}, stall{};
    std::array<bench::Words, kClasses> arriving;
    std::array<unsigned, kLinks> unplugged_for{}, reset_for{};
    std::vector<unsigned> hops;          // by destination
    std::map<unsigned, unsigned> groups; // ways, by number
    unsigned held_for = 0;               // in reset
    unsigned table_place = ~0U;          // next to be written; then links are enabled
    unsigned again_in = 0;               // until it is reset once more
};

class Network
{
  public:
    explicit Network(const Options &options) : options_(options), random_(options.seed)
    {
        bench::read_topology(options_.topology, nodes_);
        for (auto &node : nodes_) {
            node.top = std::make_unique<Vvelo_router>(&context_);
            for (auto &cable : node.cables) {
                cable.start(options_.delay, options_.error_rate, random_);
            }
        }
    }

    void start()
    {
        for (auto &node : nodes_) {
            node.top->rst_ni = 0;
            node.top->unit_out_ready_i = 7;
            for (unsigned l = 0; l < kLinks; l++) {
                set_bits(node.top->link_enable_i, l, 1, node.cables[l].plugged);
                set_bits(node.top->phy_up_i, l, 1, node.cables[l].plugged);
            }
        }
        quiet_ = true;
        for (int i = 0; i < 4; i++)
            step();
        for (auto &node : nodes_)
            node.top->rst_ni = 1;
        for (unsigned destination = 0; destination < nodes_.size(); destination++) {
            for (auto &node : nodes_) {
                node.top->table_we_i = 1;
                node.top->table_node_i = destination;
                node.top->table_hop_i = node.hops[destination];
            }
            step();
        }
        for (auto &node : nodes_)
            for (const auto &[number, way] : node.groups)
                members_[number] += way >> 12 & 1;
        if (options_.router_resets && has_groups())
            fail("--router-resets needs a topology without groups");
        for (unsigned number = kFirstGroup; number < 256; number++) {
            for (auto &node : nodes_) {
                node.top->table_we_i = node.groups.count(number);
                node.top->table_node_i = number;
                node.top->table_group_i = node.groups[number];
            }
            step();
        }
        for (auto &node : nodes_)
            node.top->table_we_i = 0;
        for (int i = 0; i < 1000 && !all_up(); i++)
            step();
        if (!all_up())
            fail("a link did not come up");
        quiet_ = false;
    }

    bool has_groups() const { return !members_.empty(); }

    void run_random()
    {
        uint64_t last_progress = 0, last_received = 0;
        while (received_ + lost_ < options_.messages || received_ + lost_ < sent_) {
            if (sent_ < options_.messages)
                offer_random();
            else if (cycle_ - last_progress > kGoneCycles && only_gone_are_missing())
                break;
            disturb();
            disturb_routers();
            step();
            if (received_ != last_received) {
                last_received = received_;
                last_progress = cycle_;
            } else if (cycle_ - last_progress > kHangCycles) {
                fail("no message arrived for " + std::to_string(kHangCycles) + " cycles, " +
                     std::to_string(received_) + " of " + std::to_string(sent_) + " had");
            }
        }
        quiet_ = true;
        for (unsigned i = 0; i < kFlushCycles; i++)
            step();
        check_end();
        if (options_.poison && poisoned_ == 0)
            fail("no packet was poisoned");
        if (options_.router_resets && restarts_ == 0)
            fail("no link began a new session");
        std::printf(
            "{\"topology\": \"%s\", \"seed\": %llu, \"error_rate\": %g, \"messages\": %llu, "
            "\"cycles\": %llu, \"bad_words\": %llu, \"replays\": %llu, \"timeouts\": %llu, "
            "\"poisoned\": %llu, \"link_resets\": %llu, \"router_resets\": %llu, "
            "\"lost\": %llu, \"in_doubt\": %llu, \"restarts\": %llu}\n",
            options_.topology.c_str(), to_ull(options_.seed), options_.error_rate,
            to_ull(received_), to_ull(cycle_), to_ull(bad_words()), to_ull(replays_),
            to_ull(timeouts_), to_ull(poisoned_), to_ull(link_resets_), to_ull(router_resets_),
            to_ull(lost_), to_ull(in_doubt_), to_ull(restarts_));
    }

    // One hop from node 0 to its neighbour and on to the next, minimum messages, nothing else.
    void run_measure()
    {
        unsigned middle = nodes_[0].cables[0].to_node;
        unsigned last = nodes_[middle].cables[0].to_node;
        if (middle == 0 || last == 0)
            fail("measuring needs a ring of at least three nodes");
        // Word counts and times at the cables of the middle node.
        auto through = [&](unsigned payload_words, unsigned count) {
            watch_ = Watch{};
            watch_.in_node = 0;
            watch_.out_node = middle;
            for (unsigned i = 0; i < count; i++)
                send(0, 0, last, payload_words, false);
            uint64_t goal = received_ + count;
            for (unsigned i = 0; i < 400 + count * 200 && received_ < goal; i++)
                step();
            if (received_ < goal)
                fail("a message did not arrive");
            return watch_;
        };
        Watch one = through(2, 1);
        Watch stream = through(6, 200);
        // A line of 64 bytes carries at most 56; a packet of the RMA unit carries 64 and more.
        Watch lines = through(14, 200);
        Watch packets = through(16, 200);
        Watch longest = through(128, 1);
        // In the steady state: the first tenth is filling pipelines.
        double cycles_8 = stream.cycles_a_packet();
        std::printf("{\"link_hop_cycles\": %llu, \"link_hop_cycles_512B\": %llu, "
                    "\"cycles_per_8B_message\": %.3f, \"payload_efficiency_56B\": %.4f, "
                    "\"payload_efficiency_64B\": %.4f, "
                    "\"netport_to_netport_cycles\": %llu}\n",
                    to_ull(one.first_out - one.first_in),
                    to_ull(longest.first_out - longest.first_in), cycles_8,
                    14.0 / lines.cycles_a_packet(), 16.0 / packets.cycles_a_packet(),
                    to_ull(one.arrived - one.offered));
    }

    // 8 bytes from node 0 to all members of its group, as one message and as one to each: from the
    // first word in to the last word out of the last member.
    void run_multicast()
    {
        unsigned members = members_[kFirstGroup];
        auto until_all_have_it = [&] {
            uint64_t goal = received_ + members, begin = cycle_;
            for (unsigned i = 0; i < 2000 && received_ < goal; i++)
                step();
            if (received_ != goal)
                fail("a message did not arrive everywhere");
            return to_ull(cycle_ - begin);
        };
        send_to_group(0, 2);
        auto together = until_all_have_it();
        for (unsigned n = 0; n < nodes_.size(); n++)
            if (nodes_[n].groups[kFirstGroup] >> 12)
                send(0, 0, n, 2, false);
        auto one_by_one = until_all_have_it();
        std::printf("{\"multicast_%u_cycles\": %llu, \"multicast_%u_by_unicast_cycles\": %llu}\n",
                    members, together, members, one_by_one);
    }

  private:
    static constexpr uint64_t kHangCycles = 400000, kGoneCycles = 20000;

    struct Watch {
        unsigned in_node = ~0U, out_node = ~0U;
        uint64_t first_in = 0, first_out = 0, offered = 0, arrived = 0;
        std::vector<uint64_t> ends; // cycles of end words that leave
        double cycles_a_packet() const
        {
            size_t skip = ends.size() / 10;
            return static_cast<double>(ends.back() - ends[skip]) /
                   static_cast<double>(ends.size() - 1 - skip);
        }
    };

    Options options_;
    bench::Random random_;
    VerilatedContext context_;
    std::vector<Node> nodes_;
    std::map<uint64_t, uint32_t> sent_of_flow_, expected_of_flow_;
    std::map<unsigned, unsigned> members_;          // of each group: their number
    std::map<unsigned, uint32_t> sent_to_group_;    // by group
    std::map<unsigned, uint32_t> arrived_of_group_; // by group and member
    uint64_t cycle_ = 0, sent_ = 0, received_ = 0, replays_ = 0, timeouts_ = 0, poisoned_ = 0;
    uint64_t link_resets_ = 0, router_resets_ = 0, lost_ = 0, in_doubt_ = 0, restarts_ = 0;
    std::map<uint64_t, std::set<uint32_t>>
        maybe_gone_;    // by flow: under way by a router in its reset
    bool quiet_ = true; // no disturbance
    Watch watch_;

    static unsigned long long to_ull(uint64_t value) { return value; }

    uint64_t bad_words() const
    {
        uint64_t sum = 0;
        for (const auto &node : nodes_)
            for (const auto &cable : node.cables)
                sum += cable.bad_words;
        return sum;
    }

    bool all_up() const
    {
        for (const auto &node : nodes_)
            for (unsigned l = 0; l < kLinks; l++)
                if (node.cables[l].plugged && !get_bits(node.top->link_up_o, l, 1))
                    return false;
        return true;
    }

    // Resets and pulled cables; about one in ten thousand cycles, or, where packets are long enough
    // to be hit inside, in one thousand.
    void disturb()
    {
        if (!options_.resets || random_.below(options_.max_payload > 64 ? 1000 : 10000))
            return;
        Node &node = nodes_[random_.below(nodes_.size())];
        unsigned l = random_.below(kLinks);
        if (!node.cables[l].plugged)
            return;
        link_resets_++;
        if (random_.below(2))
            node.reset_for[l] = 1 + random_.below(50);
        else
            node.unplugged_for[l] = 1 + random_.below(300);
    }

    // Each node is reset now and then, on average once in 20,000 cycles.
    void disturb_routers()
    {
        if (!options_.router_resets)
            return;
        bool more = sent_ < options_.messages;
        if (more && random_.below(20000) < nodes_.size())
            hold(random_.below(nodes_.size()));
        for (unsigned n = 0; n < nodes_.size(); n++)
            if (nodes_[n].again_in && --nodes_[n].again_in == 0)
                hold(n);
    }

    void hold(unsigned n)
    {
        Node &node = nodes_[n];
        router_resets_++;
        node.held_for = 1 + random_.below(random_.below(2) ? 20 : 300);
        node.table_place = 0;
        node.again_in = random_.below(3) ? 0 : node.held_for + 1 + random_.below(700);
        counters_.erase(counters_.lower_bound(n * 256), counters_.lower_bound((n + 1) * 256));
        may_be_gone(n, n);
        for (unsigned tc = 0; tc < kClasses; tc++) {
            node.arriving[tc].clear();
            if (node.place[tc])
                node.waiting[tc].pop_front();
            node.place[tc] = 0;
        }
    }

    // Notes the messages whose way passes both nodes and that have not arrived: one of the nodes is
    // being reset, or its neighbour has just noticed that.
    void may_be_gone(unsigned n, unsigned other)
    {
        for (const auto &[flow, sent] : sent_of_flow_) {
            if (!passes(flow, n) || !passes(flow, other))
                continue;
            unsigned from = flow >> 16, tc = flow & 0xFF;
            uint32_t begun = sent; // the others wait in front of the network
            size_t place = 0;
            for (const auto &words : nodes_[from].waiting[tc])
                if ((place++ != 0 || nodes_[from].place[tc] == 0) &&
                    flow_of(from, tc, words) == flow)
                    begun--;
            for (uint32_t i = expected_of_flow_[flow]; i < begun; i++)
                maybe_gone_[flow].insert(i);
        }
    }

    static uint64_t flow_of(unsigned from, unsigned tc, const bench::Words &words)
    {
        unsigned at = words[0] & 1 ? 2 : 0; // a route word goes first
        return from << 16 | ((words[at] >> 8) & 0xFF) << 8 | tc;
    }

    bool passes(uint64_t flow, unsigned by) const
    {
        unsigned to = (flow >> 8) & 0xFF, node = flow >> 16;
        while (node != by && node != to)
            node = nodes_[node].cables[nodes_[node].hops[to] % 8].to_node;
        return node == by;
    }

    bool only_gone_are_missing()
    {
        for (const auto &[flow, sent] : sent_of_flow_)
            for (uint32_t i = expected_of_flow_[flow]; i < sent; i++)
                if (!maybe_gone_[flow].count(i))
                    return false;
        for (const auto &[flow, sent] : sent_of_flow_) {
            lost_ += sent - expected_of_flow_[flow];
            expected_of_flow_[flow] = sent;
        }
        return true;
    }

    void send(unsigned from, unsigned tc, unsigned to, unsigned payload_words, bool routed)
    {
        uint32_t sequence = sent_of_flow_[from << 16 | to << 8 | tc]++;
        bench::Words words = bench::make_packet(tc, to, from, sequence, payload_words);
        if (routed)
            prepend_route(from, to, tc, words);
        nodes_[from].waiting[tc].push_back(words);
        sent_++;
    }

    // Counted as sent once for each member.
    void send_to_group(unsigned from, unsigned payload_words)
    {
        unsigned group = kFirstGroup + from;
        uint32_t sequence = sent_to_group_[group]++;
        nodes_[from].waiting[0].push_back(
            bench::make_packet(0, group, from, sequence, payload_words));
        sent_ += members_[group];
    }

    void prepend_route(unsigned from, unsigned to, unsigned tc, bench::Words &words)
    {
        uint64_t route = 1 | static_cast<uint64_t>(tc) << 1;
        unsigned lsb = 4;
        for (unsigned node = from;; lsb += 4) {
            unsigned hop = nodes_[node].hops[to];
            route |= static_cast<uint64_t>(hop) << lsb;
            if (hop == bench::kHopLocal)
                break;
            node = nodes_[node].cables[hop % 8].to_node;
        }
        words.insert(words.begin(),
                     {static_cast<uint32_t>(route), static_cast<uint32_t>(route >> 32)});
    }

    void offer_random()
    {
        for (unsigned n = 0; n < nodes_.size(); n++) {
            Node &node = nodes_[n];
            for (unsigned tc = 0; tc < kClasses; tc++) {
                if (node.waiting[tc].size() > 4 || random_.below(40) || sent_ >= options_.messages)
                    continue;
                unsigned burst = random_.below(8) ? 1 : 1 + random_.below(16);
                for (unsigned i = 0; i < burst && sent_ < options_.messages; i++) {
                    unsigned bytes = 8 + 8 * random_.below(4);
                    if (random_.below(4) == 0 && options_.max_payload > 32)
                        bytes = 8 + 8 * random_.below(options_.max_payload / 8);
                    bytes = bytes > options_.max_payload ? options_.max_payload : bytes;
                    if (tc == 0 && members_.count(kFirstGroup + n) && random_.below(4) == 0) {
                        send_to_group(n, (bytes > 64 ? 64 : bytes) / 4);
                        continue;
                    }
                    send(n, tc, random_.below(nodes_.size()), bytes / 4, random_.below(4) == 0);
                }
            }
        }
    }

    void step()
    {
        for (unsigned n = 0; n < nodes_.size(); n++)
            drive(nodes_[n]);
        for (auto &node : nodes_) {
            node.top->clk_i = 0;
            node.top->eval();
        }
        // The cables take the words that registers hold in this cycle to the other side.
        for (unsigned n = 0; n < nodes_.size(); n++)
            for (unsigned l = 0; l < kLinks; l++)
                if (nodes_[n].cables[l].plugged)
                    carry(n, l);
        for (unsigned n = 0; n < nodes_.size(); n++) {
            nodes_[n].top->eval();
            collect(n);
        }
        for (auto &node : nodes_) {
            node.top->clk_i = 1;
            node.top->eval();
        }
        cycle_++;
    }

    void carry(unsigned n, unsigned l)
    {
        Node &node = nodes_[n];
        Cable &cable = node.cables[l];
        Word word;
        word.kind = get_bits(node.top->phy_kind_o, l * 2, 2);
        word.data = get_bits(node.top->phy_data_o, l * 32, 32);
        observe(n, l, word);
        word = cable.pass(word, node.unplugged_for[l] != 0, quiet_, random_);
        Vvelo_router &other = *nodes_[cable.to_node].top;
        set_bits(other.phy_kind_i, cable.to_link * 2, 2, word.kind);
        set_bits(other.phy_data_i, cable.to_link * 32, 32, word.data);
    }

    void observe(unsigned n, unsigned l, const Word &word)
    {
        if (l != 0)
            return;
        if (n == watch_.in_node && word.kind == kKindData && !watch_.first_in)
            watch_.first_in = cycle_;
        if (n == watch_.out_node && word.kind == kKindData && !watch_.first_out)
            watch_.first_out = cycle_;
        if (n == watch_.out_node && word.kind == kKindEnd)
            watch_.ends.push_back(cycle_);
    }

    void drive(Node &node)
    {
        Vvelo_router &top = *node.top;
        drive_reset(node);
        for (unsigned tc = 0; tc < kClasses; tc++) {
            // A reset empties the table: nobody sends before it is written again.
            bool valid = !node.waiting[tc].empty() && top.rst_ni && node.table_place == ~0U;
            // A unit may pause inside a packet, but once it offers a word, it stays.
            bool offered = get_bits(top.unit_in_valid_i, tc, 1) && node.pause[tc] == 0;
            if (node.pause[tc])
                node.pause[tc]--;
            if (!quiet_ && !options_.measure && !offered && node.pause[tc] == 0 &&
                random_.below(100) == 0)
                node.pause[tc] = 1 + random_.below(20);
            valid = valid && node.pause[tc] == 0;
            set_bits(top.unit_in_valid_i, tc, 1, valid);
            if (valid) {
                const auto &words = node.waiting[tc].front();
                if (node.place[tc] == 0 && !watch_.offered)
                    watch_.offered = cycle_;
                set_bits(top.unit_in_data_i, tc * 32, 32, words[node.place[tc]]);
                set_bits(top.unit_in_sop_i, tc, 1, node.place[tc] == 0);
                set_bits(top.unit_in_eop_i, tc, 1, node.place[tc] + 1 == words.size());
            }
            if (node.stall[tc])
                node.stall[tc]--;
            else if (!quiet_ && !options_.measure && random_.below(3000) == 0)
                node.stall[tc] = 1 + random_.below(random_.below(10) ? 50 : 3000);
            set_bits(top.unit_out_ready_i, tc, 1, quiet_ || node.stall[tc] == 0);
        }
        for (unsigned l = 0; l < kLinks; l++) {
            if (!node.cables[l].plugged)
                continue;
            set_bits(top.link_reset_i, l, 1, node.reset_for[l] > 0);
            set_bits(top.phy_up_i, l, 1, node.unplugged_for[l] == 0);
            node.reset_for[l] -= node.reset_for[l] > 0;
            node.unplugged_for[l] -= node.unplugged_for[l] > 0;
        }
    }

    void drive_reset(Node &node)
    {
        if (node.table_place == ~0U)
            return;
        Vvelo_router &top = *node.top;
        top.rst_ni = node.held_for == 0;
        if (node.held_for) {
            node.held_for--;
            top.link_enable_i = 0;
            top.table_we_i = 0;
            return;
        }
        top.table_we_i = node.table_place < nodes_.size();
        if (top.table_we_i) {
            top.table_node_i = node.table_place;
            top.table_hop_i = node.hops[node.table_place++];
            return;
        }
        for (unsigned l = 0; l < kLinks; l++)
            set_bits(top.link_enable_i, l, 1, node.cables[l].plugged);
        node.table_place = ~0U;
    }

    void collect(unsigned n)
    {
        Node &node = nodes_[n];
        Vvelo_router &top = *node.top;
        if (!top.rst_ni)
            return;
        for (unsigned tc = 0; tc < kClasses; tc++) {
            if (get_bits(top.unit_in_valid_i, tc, 1) && get_bits(top.unit_in_ready_o, tc, 1)) {
                if (++node.place[tc] == node.waiting[tc].front().size()) {
                    node.place[tc] = 0;
                    node.waiting[tc].pop_front();
                }
            }
            if (!get_bits(top.unit_out_valid_o, tc, 1) || !get_bits(top.unit_out_ready_i, tc, 1))
                continue;
            auto &words = node.arriving[tc];
            if ((get_bits(top.unit_out_sop_o, tc, 1) != 0) != words.empty())
                fail("a packet began inside another at node " + std::to_string(n));
            if (words.empty() && !watch_.arrived)
                watch_.arrived = cycle_;
            words.push_back(get_bits(top.unit_out_data_o, tc * 32, 32));
            if (get_bits(top.unit_out_eop_o, tc, 1)) {
                if (!get_bits(top.unit_out_poison_o, tc, 1))
                    check(n, tc, words);
                else if (tc != 0 || words[0] >> 4 & 15)
                    fail("a poisoned packet came to a unit that does not know of poison");
                words.clear();
            }
        }
        for (unsigned l = 0; l < kLinks; l++) {
            // The hardware's counters count modulo 256.
            count(top.link_replays_o, n, l, 0, replays_);
            count(top.link_timeouts_o, n, l, 1, timeouts_);
            count(top.link_in_doubt_o, n, l, 64, in_doubt_);
            if (count(top.link_restarts_o, n, l, 65, restarts_))
                may_be_gone(node.cables[l].to_node, n);
        }
        for (unsigned tc = 0; tc < kClasses; tc++)
            count(top.poisoned_o, n, tc, 128, poisoned_);
    }

    std::map<unsigned, uint8_t> counters_;
    template <typename Port>
    bool count(const Port &port, unsigned n, unsigned l, unsigned which, uint64_t &total)
    {
        uint8_t now = get_bits(port, l * 8, 8);
        uint8_t &before = counters_[n * 256 + l * 2 + which];
        bool more = now != before;
        total += static_cast<uint8_t>(now - before);
        before = now;
        return more;
    }

    void check(unsigned n, unsigned tc, const bench::Words &words)
    {
        uint64_t head = words[0] | static_cast<uint64_t>(words[1]) << 32;
        unsigned src = (head >> 52) & 0xFF, dst = (head >> 8) & 0xFF;
        if (dst >= kFirstGroup && tc == 0)
            return check_copy(n, src, dst, words);
        if (dst != n || ((head >> 1) & 3) != tc)
            fail("a message for node " + std::to_string(dst) + " arrived at " + std::to_string(n));
        uint64_t flow = src << 16 | dst << 8 | tc;
        uint32_t &next = expected_of_flow_[flow];
        for (; next < words[2] && maybe_gone_[flow].count(next); next++)
            lost_++;
        uint32_t expected = next++;
        if (words != bench::make_packet(tc, dst, src, expected, words.size() - 2))
            fail("message " + std::to_string(expected) + " from node " + std::to_string(src) +
                 " to " + std::to_string(n) + ", class " + std::to_string(tc) +
                 ", is lost, doubled, out of order or damaged: got " + std::to_string(words[2]) +
                 ", seed " + std::to_string(options_.seed) + ", cycle " + std::to_string(cycle_));
        received_++;
    }

    void check_copy(unsigned n, unsigned src, unsigned group, const bench::Words &words)
    {
        uint32_t expected = arrived_of_group_[group << 8 | n]++;
        if (!(nodes_[n].groups[group] >> 12) || src != group - kFirstGroup ||
            words != bench::make_packet(0, group, src, expected, words.size() - 2))
            fail("message " + std::to_string(expected) + " to group " + std::to_string(group) +
                 " is lost, doubled, out of order or damaged at node " + std::to_string(n) +
                 ", seed " + std::to_string(options_.seed) + ", cycle " + std::to_string(cycle_));
        received_++;
    }

    void check_end()
    {
        for (unsigned n = 0; n < nodes_.size(); n++)
            for (const auto &[group, way] : nodes_[n].groups)
                if (way >> 12 && arrived_of_group_[group << 8 | n] != sent_to_group_[group])
                    fail("messages to group " + std::to_string(group) + " are missing at node " +
                         std::to_string(n));
        if (expected_of_flow_ != sent_of_flow_)
            fail("messages are missing at the end");
        for (unsigned n = 0; n < nodes_.size(); n++) {
            Vvelo_router &top = *nodes_[n].top;
            for (unsigned l = 0; l < kLinks; l++)
                for (unsigned v = 0; v < kVcs && nodes_[n].cables[l].plugged; v++)
                    if (get_bits(top.link_credits_o, (l * kVcs + v) * 8, 8) != kBufferUnits)
                        fail("credits leaked at node " + std::to_string(n) + ", link " +
                             std::to_string(l) + ", channel " + std::to_string(v));
            for (unsigned p = 0; p < kLinks + kClasses; p++)
                if (get_bits(top.dropped_o, p * 8, 8))
                    fail("node " + std::to_string(n) + " dropped a packet");
        }
        if (!all_up())
            fail("a link is down at the end");
    }
};

Options parse(int argc, char **argv)
{
    Options options;
    if (argc < 2)
        fail("bench_network TOPOLOGY [--seed N] ...: see the file's head");
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
        else if (name == "--max-payload")
            options.max_payload = bench::number<unsigned>(value);
        else if (name == "--delay")
            options.delay = bench::number<unsigned>(value);
        else if (name == "--poison")
            options.poison = bench::number<bool>(value);
        else if (name == "--router-resets")
            options.router_resets = bench::number<bool>(value);
        else if (name == "--measure")
            options.measure = bench::number<bool>(value);
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
    if (options.measure && network.has_groups())
        network.run_multicast();
    else if (options.measure)
        network.run_measure();
    else
        network.run_random();
    return 0;
}
