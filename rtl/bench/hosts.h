// SPDX-License-Identifier: Apache-2.0
//
// Whole nodes (velo_node) joined by cables without delay, each with a host that stores messages and
// reads its rings at once. Each message has to come once, whole, in the order of its source and
// target, or the program ends with an error. A node that is reset loses what it had. Messages on
// their way through it may be lost, no others. For the benches that measure what messages get
// of such a network, and for the test of resets.
//
// Built for paths of VELO_DATA_WIDTH bits and nodes of VELO_LINKS links.

#pragma once

#include <array>
#include <cinttypes>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "Vvelo_node_flat.h"
#include "cable.h"
#include "memory.h"
#include "velo/spec.h"

namespace bench
{

constexpr unsigned kWidth = VELO_DATA_WIDTH, kLinks = VELO_LINKS, kContexts = 8, kRingLog2 = 9;
constexpr unsigned kWordBits = kWidth < 64 ? kWidth : 64;
constexpr uint64_t kRings = 0x1000000, kRegSetup = 0x08, kRegRefused = 0x48, kRegDropped = 0x58,
                   kRegLinks = 0x80, kRegLink = 0x100, kRegRings = 0x8000000,
                   kRegReadPointers = 0x8100000, kRegRoutes = 0x8200000;

struct Write {
    uint64_t addr = 0;
    std::vector<uint64_t> words;
};

struct Stream {
    std::deque<Write> writes;
    unsigned beat = 0;
};

struct Load {
    uint64_t addr;
    unsigned len_bytes, tag;
};

// A read of host memory, and what it gets.
struct DmaRead {
    unsigned tag;
    std::vector<uint8_t> bytes;
};

struct NoCable {
    unsigned to_node = 0, to_link = 0;
    bool plugged = false;
};

struct HostNode {
    std::unique_ptr<Vvelo_node_flat> top;
    std::array<NoCable, kLinks> cables;
    std::vector<unsigned> hops;
    Stream units, control;
    std::deque<Load> loads;       // of the units
    std::vector<uint64_t> loaded; // of an answer that comes
    unsigned loaded_bits = 0;
    std::deque<DmaRead> reads; // not answered yet
    unsigned read_beat = 0, read_delay = 0;
    Memory memory;
    std::array<uint64_t, kContexts> head{};
    unsigned dma_beat = 0;
    uint64_t sent = 0, received = 0, store_words = 0, dma_words = 0;
    unsigned dma_pace = 1;                     // the host takes a DMA word in every so many cycles,
    uint64_t dma_stop_until = 0;               // and none before this one
    std::array<uint64_t, 256> received_from{}; // messages, by source node
    bool is_back = true;                       // From its last reset.
    bool register_asked = false;
    uint64_t answer = 0;
    unsigned answer_bits = 0;
};

// A message that was stored and has not come.
struct Awaited {
    std::vector<uint64_t> line;
    bool may_be_lost = false; // A node on its way was reset.
};

class Hosts
{
  public:
    Hosts(const std::string &topology, unsigned payload, uint64_t seed)
        : payload_(payload), random_(seed)
    {
        read_topology(topology, nodes_);
        for (auto &node : nodes_) {
            node.top = std::make_unique<Vvelo_node_flat>(&context_);
            node.top->rst_ni = 0;
            node.top->host_answer_ready_i = 1;
            node.top->control_answer_ready_i = 1;
            node.top->control_read_len_bytes_i = 8;
            node.top->phy_up_i = (1U << kLinks) - 1;
        }
        for (int i = 0; i < 4; i++)
            step();
        for (auto &node : nodes_)
            node.top->rst_ni = 1;
        for (int i = 0; i < 300; i++) // The context tables clear themselves.
            step();
        for (unsigned n = 0; n < nodes_.size(); n++)
            set_up(n);
        for (int i = 0; i < 2000; i++)
            step();
        for (unsigned n = 0; n < nodes_.size(); n++)
            if (!has_all_links(n))
                fail("a link did not come up");
    }

    // Hold a node in reset from now on. Its host forgets everything, too.
    void reset(unsigned n)
    {
        HostNode &node = nodes_[n];
        node.top->rst_ni = 0;
        node.is_back = false;
        node.units = node.control = Stream{};
        node.reads.clear();
        node.read_beat = 0;
        node.head.fill(0);
        node.dma_beat = 0;
        for (auto &[target, flows] : expected_)
            for (auto &[source, flow] : flows)
                if (leads_through(source >> 8, target >> 8, n))
                    for (Awaited &message : flow)
                        message.may_be_lost = true;
    }

    // Let it go on, as after power-up: the caller steps 300 cycles, then calls set_up(), and
    // is_back() when all of that is written. Messages that are stored until then and lead through
    // the node may be lost.
    void release(unsigned n) { nodes_[n].top->rst_ni = 1; }
    void is_back(unsigned n) { nodes_[n].is_back = true; }

    void set_up(unsigned n)
    {
        set_register(n, kRegSetup, n);
        for (unsigned d = 0; d < nodes_.size(); d++)
            set_register(n, kRegRoutes + 8 * d, nodes_[n].hops[d]);
        for (unsigned c = 0; c < kContexts; c++)
            set_register(n, kRegRings + (c << 12), ring(c) | uint64_t{kRingLog2} << 48 | 1);
        set_register(n, kRegLinks, (1U << kLinks) - 1);
    }

    bool has_all_links(unsigned n)
    {
        for (unsigned l = 0; l < kLinks; l++)
            if (!(read_register(n, kRegLink + 8 * l) & 1))
                return false;
        return true;
    }

    // Messages that have to come yet, at all nodes.
    uint64_t awaited() const
    {
        uint64_t count = 0;
        for (const auto &[target, flows] : expected_)
            for (const auto &[source, flow] : flows)
                for (const Awaited &message : flow)
                    count += !message.may_be_lost;
        return count;
    }
    uint64_t lost() const { return lost_; }

    std::vector<HostNode> &nodes() { return nodes_; }
    Random &random() { return random_; }

    // If set: called for a load's answer, and for each whole DMA write that is not into a ring.
    std::function<void(unsigned n, unsigned tag, bool error, const std::vector<uint64_t> &words)>
        on_answer;
    std::function<void(unsigned n, uint64_t addr)> on_write;

    uint64_t cycle() const { return cycle_; }
    // Messages that came, at all nodes.
    uint64_t received() const { return received_; }

    void set_register(unsigned n, uint64_t offset, uint64_t value)
    {
        nodes_[n].control.writes.push_back(
            {velo_window_pack(static_cast<uint32_t>(offset), 0, VELO_UNIT_REGISTERS), {value}});
    }

    uint64_t read_register(unsigned n, uint64_t offset)
    {
        HostNode &node = nodes_[n];
        while (!node.control.writes.empty())
            step();
        set_bits(node.top->control_read_addr_i, 0, 48,
                 velo_window_pack(static_cast<uint32_t>(offset), 0, VELO_UNIT_REGISTERS));
        node.register_asked = true;
        node.answer = node.answer_bits = 0;
        for (int i = 0; i < 200 && node.answer_bits < 64; i++)
            step();
        if (node.answer_bits < 64)
            fail("a read of a register was not answered");
        return node.answer;
    }

    // Store a message for a random context of that node, from a random one.
    void send(unsigned n, unsigned to)
    {
        HostNode &node = nodes_[n];
        unsigned source = random_.below(kContexts), target = random_.below(kContexts);
        std::vector<uint64_t> line{velo_header_pack(0, 0, static_cast<uint16_t>(payload_), 0, 0)};
        for (unsigned i = 0; i < (payload_ + 7) / 8; i++)
            line.push_back(random_.next());
        expected_[to << 8 | target][n << 8 | source].push_back({line, leads_through_reset(n, to)});
        uint64_t address =
            velo_address_pack(0, static_cast<uint8_t>(line.size() - 1),
                              static_cast<uint8_t>(target), static_cast<uint8_t>(to));
        node.units.writes.push_back({velo_window_pack(static_cast<uint32_t>(address),
                                                      static_cast<uint8_t>(source), VELO_UNIT_VELO),
                                     line});
        node.sent++;
    }

    void check_nothing_refused()
    {
        for (unsigned n = 0; n < nodes_.size(); n++)
            if (read_register(n, kRegRefused) || read_register(n, kRegDropped))
                fail("a message was refused or dropped");
    }

    void step()
    {
        for (auto &node : nodes_) {
            Vvelo_node_flat &top = *node.top;
            offer(node.units, top.host_write_valid_i, top.host_write_eop_i, top.host_write_addr_i,
                  top.host_write_len_bytes_i, top.host_write_data_i);
            offer(node.control, top.control_write_valid_i, top.control_write_eop_i,
                  top.control_write_addr_i, top.control_write_len_bytes_i,
                  top.control_write_data_i);
            top.control_read_valid_i = node.register_asked;
            top.host_read_valid_i = !node.loads.empty();
            if (!node.loads.empty()) {
                top.host_read_addr_i = node.loads.front().addr;
                top.host_read_len_bytes_i = node.loads.front().len_bytes;
                top.host_read_tag_i = node.loads.front().tag;
            }
            offer_answer(node);
            top.dma_write_ready_i = cycle_ >= node.dma_stop_until && cycle_ % node.dma_pace == 0;
            top.clk_i = 0;
            top.eval();
        }
        for (auto &node : nodes_)
            for (unsigned l = 0; l < kLinks; l++)
                carry(node, l);
        for (unsigned n = 0; n < nodes_.size(); n++) {
            nodes_[n].top->eval();
            if (nodes_[n].top->rst_ni)
                collect(n);
        }
        for (auto &node : nodes_) {
            node.top->clk_i = 1;
            node.top->eval();
        }
        cycle_++;
    }

  private:
    unsigned payload_;
    Random random_;
    VerilatedContext context_;
    std::vector<HostNode> nodes_;
    // By target node and context, then source: what has to come, in order.
    std::map<unsigned, std::map<unsigned, std::deque<Awaited>>> expected_;
    uint64_t cycle_ = 0, received_ = 0, lost_ = 0;

    static uint64_t ring(unsigned context) { return kRings + context * 0x10000; }

    // Is this node the first, the last or another of the way?
    bool leads_through(unsigned from, unsigned to, unsigned n) const
    {
        unsigned at = from;
        while (at != to && at != n)
            at = nodes_[at].cables[nodes_[at].hops[to] & 7].to_node;
        return at == n || to == n;
    }

    bool leads_through_reset(unsigned from, unsigned to) const
    {
        for (unsigned n = 0; n < nodes_.size(); n++)
            if (!nodes_[n].is_back && leads_through(from, to, n))
                return true;
        return false;
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
        for (unsigned lsb = 0; lsb < kWidth; lsb += kWordBits) {
            size_t bit = stream.beat * kWidth + lsb;
            uint64_t word = bit / 64 < write.words.size() ? write.words[bit / 64] : ~uint64_t{0};
            set_bits(data, lsb, kWordBits, word >> (bit % 64));
        }
    }

    static void taken(Stream &stream, bool end)
    {
        stream.beat++;
        if (end) {
            stream.beat = 0;
            stream.writes.pop_front();
        }
    }

    void carry(HostNode &node, unsigned l)
    {
        const NoCable &cable = node.cables[l];
        if (!cable.plugged)
            fail("each node needs a cable in each link");
        Vvelo_node_flat &other = *nodes_[cable.to_node].top;
        set_bits(other.phy_kind_i, cable.to_link * 2, 2, get_bits(node.top->phy_kind_o, l * 2, 2));
        for (unsigned bit = 0; bit < kWidth; bit += 32)
            set_bits(other.phy_data_i, cable.to_link * kWidth + bit, 32,
                     get_bits(node.top->phy_data_o, l * kWidth + bit, 32));
    }

    void collect(unsigned n)
    {
        HostNode &node = nodes_[n];
        Vvelo_node_flat &top = *node.top;
        if (top.host_write_valid_i && top.host_write_ready_o) {
            node.store_words++;
            taken(node.units, top.host_write_eop_i);
        }
        if (top.control_write_valid_i && top.control_write_ready_o)
            taken(node.control, top.control_write_eop_i);
        if (top.control_read_valid_i && top.control_read_ready_o)
            node.register_asked = false;
        if (top.control_answer_valid_o) {
            node.answer |= get_bits(top.control_answer_data_o, 0, kWordBits) << node.answer_bits;
            node.answer_bits += kWordBits;
        }
        if (top.host_read_valid_i && top.host_read_ready_o)
            node.loads.pop_front();
        if (top.host_answer_valid_o)
            take_answer(n);
        if (top.dma_answer_valid_i && top.dma_answer_ready_o) {
            node.read_beat++;
            if (top.dma_answer_eop_i) {
                node.read_beat = 0;
                node.reads.pop_front();
                node.read_delay = random_.below(12);
            }
        }
        // The write of this cycle is older than its read.
        if (top.dma_write_valid_o && top.dma_write_ready_i)
            store(n);
        if (top.dma_read_valid_o && top.dma_read_ready_i)
            take_read(node);
    }

    void take_answer(unsigned n)
    {
        HostNode &node = nodes_[n];
        Vvelo_node_flat &top = *node.top;
        for (unsigned lsb = 0; lsb < kWidth; lsb += kWordBits, node.loaded_bits += kWordBits) {
            node.loaded.resize(node.loaded_bits / 64 + 1);
            node.loaded.back() |= get_bits(top.host_answer_data_o, lsb, kWordBits)
                                  << node.loaded_bits % 64;
        }
        if (!top.host_answer_eop_o)
            return;
        if (!on_answer)
            fail("an answer to a load that nobody made");
        on_answer(n, top.host_answer_tag_o, top.host_answer_error_o, node.loaded);
        node.loaded.clear();
        node.loaded_bits = 0;
    }

    // Reads of host memory: some are taken ahead, and one of them, whichever, is answered after a
    // while.
    void offer_answer(HostNode &node)
    {
        Vvelo_node_flat &top = *node.top;
        top.dma_read_ready_i = node.reads.size() < 4;
        if (!node.read_beat && node.read_delay) {
            node.read_delay--;
            if (!node.read_delay && node.reads.size() > 1)
                std::swap(node.reads.front(), node.reads[random_.below(node.reads.size())]);
        }
        top.dma_answer_valid_i = !node.reads.empty() && !node.read_delay;
        if (!top.dma_answer_valid_i)
            return;
        const DmaRead &read = node.reads.front();
        for (unsigned lsb = 0; lsb < kWidth; lsb += kWordBits) {
            uint64_t data = 0;
            size_t from = node.read_beat * (kWidth / 8) + lsb / 8;
            for (unsigned i = 0; i < kWordBits / 8 && from + i < read.bytes.size(); i++)
                data |= uint64_t{read.bytes[from + i]} << (8 * i);
            set_bits(top.dma_answer_data_i, lsb, kWordBits, data);
        }
        top.dma_answer_tag_i = read.tag;
        top.dma_answer_error_i = 0;
        top.dma_answer_eop_i = (node.read_beat + 1) * (kWidth / 8) >= read.bytes.size();
    }

    static void take_read(HostNode &node)
    {
        uint64_t addr = node.top->dma_read_addr_o;
        DmaRead read{node.top->dma_read_tag_o,
                     std::vector<uint8_t>(node.top->dma_read_len_bytes_o)};
        for (size_t i = 0; i < read.bytes.size(); i++)
            read.bytes[i] = node.memory.byte(addr + i);
        node.reads.push_back(std::move(read));
    }

    void store(unsigned n)
    {
        HostNode &node = nodes_[n];
        Vvelo_node_flat &top = *node.top;
        node.dma_words++;
        uint64_t addr = top.dma_write_addr_o;
        unsigned from = node.dma_beat++ * (kWidth / 8), len = top.dma_write_len_bytes_o;
        for (unsigned i = 0; i < kWidth / 8 && from + i < len; i++)
            node.memory.set_byte(addr + from + i,
                                 static_cast<uint8_t>(get_bits(top.dma_write_data_o, 8 * i, 8)));
        if (!top.dma_write_eop_o)
            return;
        if (from >= len || from + kWidth / 8 < len)
            fail("a DMA write is not as long as it says");
        node.dma_beat = 0;
        if (on_write && (addr < kRings || addr >= ring(kContexts)))
            on_write(n, addr);
        else if (addr % 64 == 0)
            read(n, static_cast<unsigned>((addr - kRings) / 0x10000), addr);
    }

    bool is_in_slot(const HostNode &node, uint64_t slot, const Awaited &message) const
    {
        bool same = velo_header_len(node.memory.word(slot)) == payload_;
        for (size_t i = 1; i < message.line.size(); i++)
            same = same && node.memory.word(slot + 8 * i) == message.line[i];
        return same;
    }

    // A header word was written: the message is whole, and the next of its source.
    void read(unsigned n, unsigned context, uint64_t slot)
    {
        HostNode &node = nodes_[n];
        uint64_t word = node.memory.word(slot), &head = node.head[context];
        if (slot != ring(context) + 64 * (head % (1U << kRingLog2)) ||
            velo_header_seq(word) != (head & 0xFFFF))
            fail("a slot out of turn");
        auto &flow = expected_[n << 8 | context][velo_header_source(word)];
        while (!flow.empty() && flow.front().may_be_lost && !is_in_slot(node, slot, flow.front())) {
            flow.pop_front();
            lost_++;
        }
        if (flow.empty())
            fail("a message that nobody sent, or twice");
        if (!is_in_slot(node, slot, flow.front()))
            fail("a message is lost, out of order or damaged");
        flow.pop_front();
        received_++;
        node.received++;
        node.received_from[velo_header_source(word) >> 8 & 0xFF]++;
        if (++head % 64 == 0)
            set_register(n, kRegReadPointers + (context << 12), head & 0xFFFF);
    }
};

} // namespace bench
