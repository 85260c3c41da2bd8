// SPDX-License-Identifier: Apache-2.0
//
// The reference for the transaction-level model: whole Verilated nodes (velo_node, six links of 32
// bits) on cables of DELAY cycles and without errors.
//
//   bench TOPOLOGY DELAY latency HOPS...              one message at a time, of 0 to 56 bytes
//   bench TOPOLOGY DELAY load BYTES LOAD CYCLES SEED  uniform random; load 1 and more saturates
//
// TOPOLOGY is a file of cluster/routing.py. Prints JSON. Latency is from the cycle in which a
// host offers a message's first word to the one in which the last word of its header leaves the
// other node. Hosts take every write at once and free slots long before the rings are full, so this
// measures the network and the units, not the hosts. Load counts words offered to a host port in a
// cycle; before the measurement, a third as many cycles fill the network.

#include <cinttypes>
#include <cmath>
#include <memory>

#include "Vtlm_node.h"
#include "cable.h"
#include "velo/spec.h"

namespace
{

using bench::fail;

constexpr unsigned kLinks = 6, kContext = 1, kRingLog2 = 14, kFreeEvery = 1024;
constexpr uint64_t kRing = 0x1000000, kSlotBytes = 64;
// Registers, spec/velo_regs.rdl.
constexpr uint64_t kRegSetup = 0x08, kRegLinks = 0x80, kRegRings = 0x8000000,
                   kRegReadPointers = 0x8100000, kRegRoutes = 0x8200000;

struct Write {
    uint64_t from_cycle = 0, addr = 0;
    std::vector<uint64_t> words;
};

struct Stream {
    std::deque<Write> writes;
    unsigned beat = 0;
};

struct Node {
    std::unique_ptr<Vtlm_node> top;
    std::array<bench::Cable, kLinks> cables; // outwards
    std::vector<unsigned> hops;
    Stream units, control;
    bench::Random random{0};
    double next_born = 0;
    unsigned dma_beat = 0;
    uint64_t born = 0, received = 0; // of the message that comes in; so far
};

class Network
{
  public:
    Network(const std::string &topology, unsigned delay)
    {
        bench::read_topology(topology, nodes_);
        for (auto &node : nodes_) {
            node.top = std::make_unique<Vtlm_node>(&context_);
            for (auto &cable : node.cables)
                cable.start(delay, 0, no_errors_);
        }
    }

    void start()
    {
        for (auto &node : nodes_) {
            node.top->host_answer_ready_i = node.top->control_answer_ready_i = 1;
            node.top->dma_write_ready_i = node.top->dma_read_ready_i = 1;
            node.top->phy_up_i = plugged(node);
        }
        steps(4);
        for (auto &node : nodes_)
            node.top->rst_ni = 1;
        steps(300); // The context tables clear themselves.
        for (unsigned n = 0; n < nodes_.size(); n++) {
            set_register(nodes_[n], kRegSetup, n);
            for (unsigned d = 0; d < nodes_.size(); d++)
                set_register(nodes_[n], kRegRoutes + 8 * d, nodes_[n].hops[d]);
            set_register(nodes_[n], kRegRings + (kContext << 12),
                         kRing | uint64_t{kRingLog2} << 48 | 1);
            set_register(nodes_[n], kRegLinks, plugged(nodes_[n]));
        }
        steps(3000); // Links come up.
    }

    void measure_latency(const std::vector<unsigned> &hops)
    {
        const char *comma = "";
        std::printf("[");
        for (unsigned h : hops)
            for (unsigned bytes = 0; bytes <= 56; bytes++) {
                std::printf("%s{\"hops\": %u, \"bytes\": %u, \"cycles\": %" PRIu64 "}", comma, h,
                            bytes, latency_of(h, bytes));
                comma = ",\n ";
            }
        std::printf("]\n");
    }

    void measure_load(unsigned bytes, double load, uint64_t cycles, uint64_t seed)
    {
        bytes_ = bytes;
        mean_gap_ = (2 + (bytes + 7) / 8 * 2) / load;
        for (unsigned n = 0; n < nodes_.size(); n++) {
            nodes_[n].random = bench::Random(seed * 1000 + n);
            nodes_[n].next_born = static_cast<double>(cycle_) + gap(nodes_[n]);
        }
        run_loaded(cycles / 3);
        received_ = latencies_ = 0;
        run_loaded(cycles);
        double share = static_cast<double>(nodes_.size() * cycles);
        std::printf("{\"bytes\": %u, \"offered\": %.4f, \"accepted\": %.5f, "
                    "\"mean_latency\": %.3f, \"cycles\": %" PRIu64 ", \"seed\": %" PRIu64 "}\n",
                    bytes, load, static_cast<double>(received_ * (2 + (bytes + 7) / 8 * 2)) / share,
                    bytes ? latencies_ / static_cast<double>(received_) : 0.0, cycles, seed);
    }

  private:
    VerilatedContext context_;
    bench::Random no_errors_{0};
    std::vector<Node> nodes_;
    uint64_t cycle_ = 0, received_ = 0, last_arrival_ = 0;
    double latencies_ = 0, mean_gap_ = 0;
    unsigned bytes_ = 0;

    static uint8_t plugged(const Node &node)
    {
        unsigned mask = 0;
        for (unsigned l = 0; l < kLinks; l++)
            mask |= static_cast<unsigned>(node.cables[l].plugged) << l;
        return static_cast<uint8_t>(mask);
    }

    static void set_register(Node &node, uint64_t offset, uint64_t value)
    {
        node.control.writes.push_back(
            {0, velo_window_pack(static_cast<uint32_t>(offset), 0, VELO_UNIT_REGISTERS), {value}});
    }

    unsigned distance(unsigned from, unsigned to) const
    {
        unsigned hops = 0;
        for (unsigned n = from; n != to; hops++)
            n = nodes_[n].cables[nodes_[n].hops[to] % 8].to_node;
        return hops;
    }

    uint64_t latency_of(unsigned hops, unsigned bytes)
    {
        unsigned to = 0;
        while (to < nodes_.size() && distance(0, to) != hops)
            to++;
        if (to == nodes_.size())
            fail("nobody is that many hops away");
        uint64_t sent = cycle_, before = received_;
        send(nodes_[0], to, bytes, sent);
        for (int i = 0; i < 2000 && received_ == before; i++)
            step();
        if (received_ == before)
            fail("a message did not arrive");
        steps(40);
        return last_arrival_ - sent;
    }

    // Its first word of payload says when it was born.
    static void send(Node &node, unsigned to, unsigned bytes, uint64_t born)
    {
        std::vector<uint64_t> line{velo_header_pack(0, 0, static_cast<uint16_t>(bytes), 0, 0)};
        line.resize(1 + (bytes + 7) / 8, born);
        auto target = static_cast<uint32_t>(velo_address_pack(
            0, static_cast<uint8_t>(line.size() - 1), kContext, static_cast<uint8_t>(to)));
        node.units.writes.push_back({born, velo_window_pack(target, 3, VELO_UNIT_VELO), line});
    }

    double gap(Node &node) const { return -std::log1p(-node.random.unit()) * mean_gap_; }

    void run_loaded(uint64_t cycles)
    {
        for (uint64_t i = 0; i < cycles; i++) {
            for (unsigned n = 0; n < nodes_.size(); n++) {
                Node &node = nodes_[n];
                while (node.units.writes.size() < 3 &&
                       static_cast<uint64_t>(node.next_born) <= cycle_) {
                    unsigned to = node.random.below(nodes_.size() - 1);
                    send(node, to + (to >= n), bytes_, static_cast<uint64_t>(node.next_born));
                    node.next_born += gap(node);
                }
            }
            step();
        }
    }

    void steps(unsigned count)
    {
        for (unsigned i = 0; i < count; i++)
            step();
    }

    void step()
    {
        for (auto &node : nodes_) {
            Vtlm_node &top = *node.top;
            offer(node.units, top.host_write_valid_i, top.host_write_eop_i, top.host_write_addr_i,
                  top.host_write_len_bytes_i, top.host_write_data_i);
            offer(node.control, top.control_write_valid_i, top.control_write_eop_i,
                  top.control_write_addr_i, top.control_write_len_bytes_i,
                  top.control_write_data_i);
            for (unsigned l = 0; l < kLinks; l++)
                if (node.cables[l].plugged)
                    carry(node, l);
        }
        for (auto &node : nodes_) {
            node.top->clk_i = 0;
            node.top->eval();
            if (node.top->rst_ni)
                collect(node);
        }
        for (auto &node : nodes_) {
            node.top->clk_i = 1;
            node.top->eval();
        }
        cycle_++;
    }

    // The cable takes a word that is in the other node's registers since the last clock edge.
    void carry(Node &node, unsigned l)
    {
        Node &other = nodes_[node.cables[l].to_node];
        unsigned from = node.cables[l].to_link;
        bench::Word word;
        word.kind = (other.top->phy_kind_o >> (2 * from)) & 3;
        word.data = other.top->phy_data_o[from];
        word = other.cables[from].pass(word, false, true, no_errors_);
        node.top->phy_kind_i = static_cast<uint16_t>((node.top->phy_kind_i & ~(3U << (2 * l))) |
                                                     unsigned{word.kind} << (2 * l));
        node.top->phy_data_i[l] = word.data;
    }

    template <typename Addr>
    void offer(const Stream &stream, CData &valid, CData &eop, Addr &addr, SData &len, IData &data)
    {
        valid = !stream.writes.empty() && stream.writes.front().from_cycle <= cycle_;
        if (!valid)
            return;
        const Write &write = stream.writes.front();
        addr = write.addr;
        len = static_cast<uint16_t>(write.words.size() * 8);
        eop = stream.beat + 1 == 2 * write.words.size();
        data = static_cast<uint32_t>(write.words[stream.beat / 2] >> (32 * (stream.beat % 2)));
    }

    static void taken(Stream &stream, bool end)
    {
        stream.beat++;
        if (end) {
            stream.beat = 0;
            stream.writes.pop_front();
        }
    }

    void collect(Node &node)
    {
        Vtlm_node &top = *node.top;
        if (top.host_write_valid_i && top.host_write_ready_o)
            taken(node.units, top.host_write_eop_i);
        if (top.control_write_valid_i && top.control_write_ready_o)
            taken(node.control, top.control_write_eop_i);
        if (!top.dma_write_valid_o)
            return;
        // A message is two writes: its payload, then its header word.
        bool header = top.dma_write_addr_o % kSlotBytes == 0;
        if (!header && node.dma_beat == 0)
            node.born = top.dma_write_data_o;
        if (!header && node.dma_beat == 1)
            node.born |= uint64_t{top.dma_write_data_o} << 32;
        node.dma_beat = top.dma_write_eop_o ? 0 : node.dma_beat + 1;
        if (header && top.dma_write_eop_o)
            arrived(node);
    }

    void arrived(Node &node)
    {
        received_++;
        last_arrival_ = cycle_;
        latencies_ += static_cast<double>(cycle_ - node.born);
        if (++node.received % kFreeEvery == 0)
            set_register(node, kRegReadPointers + (kContext << 12), node.received & 0xFFFF);
    }
};

} // namespace

int main(int argc, char **argv)
{
    std::vector<std::string> words(argv, argv + argc);
    if (argc < 5)
        fail("bench TOPOLOGY DELAY latency HOPS... | load BYTES LOAD CYCLES SEED");
    Network network(words[1], std::stoul(words[2]));
    network.start();
    if (words[3] == "latency") {
        std::vector<unsigned> hops;
        for (int i = 4; i < argc; i++)
            hops.push_back(std::stoul(words[i]));
        network.measure_latency(hops);
    } else if (words[3] == "load" && argc == 8) {
        network.measure_load(std::stoul(words[4]), std::stod(words[5]), std::stoull(words[6]),
                             std::stoull(words[7]));
    } else {
        fail("what is to be measured: latency or load?");
    }
    return 0;
}
