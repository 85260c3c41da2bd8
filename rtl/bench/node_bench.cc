// SPDX-License-Identifier: Apache-2.0
//
// Two nodes as their hosts see them: how many cycles a message takes and where, how often messages
// can follow each other, and that what is sent both ways at random arrives whole and in order.
//
//   node_bench [SEED [MESSAGES [VCD]]]
//
// Built with tracing, it writes the first message's cycles into the file VCD and ends there.
// Prints JSON on standard output. Fails, with a reason, if a message is lost, changed or late.

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "Vnode_pair.h"
#include "arguments.h"
#include "velo/spec.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace
{

constexpr unsigned width = VELO_DATA_WIDTH;
constexpr unsigned word_bits = width < 64 ? width : 64; // of a word in a beat
constexpr unsigned stages = 11;
constexpr uint64_t ring_base = 0x100000;
constexpr unsigned ring_log2 = 3;
constexpr uint64_t segment_base = 0x40000000;
constexpr uint64_t page_bytes = 4096, page_table = 0x2000000, put_from = 0x50000000,
                   put_to = 0x60000000;
constexpr uint64_t never = UINT64_MAX;

// The parts between one stage and the next, as in the paper's figure 4.
constexpr std::array<const char *, stages - 1> stage_names = {
    "htax_out", "requester", "netport_out", "switch_out", "link_out",
    "link_in",  "switch_in", "netport_in",  "completer",  "htax_in",
};

[[noreturn]] void fail(const std::string &why)
{
    std::fprintf(stderr, "node_bench: %s\n", why.c_str());
    std::exit(1);
}

class Random // SplitMix64
{
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next()
    {
        uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31);
    }
    unsigned below(unsigned limit) { return static_cast<unsigned>(next() >> 32) % limit; }

  private:
    uint64_t state_;
};

// A part of a port, whatever type Verilator gave it; at most 64 bits.
template <typename Port> uint64_t get(const Port &port, unsigned lsb, unsigned bits)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bits; i++) {
        uint64_t bit;
        if constexpr (std::is_integral_v<Port>)
            bit = (static_cast<uint64_t>(port) >> (lsb + i)) & 1;
        else
            bit = (port[(lsb + i) / 32] >> ((lsb + i) % 32)) & 1;
        value |= bit << i;
    }
    return value;
}

template <typename Port> void put(Port &port, unsigned lsb, unsigned bits, uint64_t value)
{
    for (unsigned i = 0; i < bits; i++) {
        uint64_t bit = (value >> i) & 1;
        if constexpr (std::is_integral_v<Port>) {
            uint64_t mask = uint64_t{1} << (lsb + i);
            port = static_cast<Port>((port & ~mask) | (bit ? mask : 0));
        } else {
            uint32_t mask = 1U << ((lsb + i) % 32);
            auto &word = port[(lsb + i) / 32];
            word = (word & ~mask) | (bit ? mask : 0);
        }
    }
}

struct Write {
    uint64_t addr;
    std::vector<uint64_t> words;
};

struct Message {
    uint8_t tag;
    unsigned len;
    std::vector<uint64_t> payload;
};

// A stream of posted writes of a host: to the units, or to the registers.
struct Stream {
    std::deque<Write> writes;
    unsigned beat = 0;
};

// One host: queues of writes, memory, and a context that it polls.
struct Host {
    Stream units, control;
    std::map<uint64_t, uint64_t> memory;
    unsigned dma_beat = 0;
    uint64_t dma_word = 0;
    struct Read {
        uint64_t addr;
        unsigned tag, len;
    };
    std::deque<Read> reads;
    unsigned read_beat = 0;
    uint64_t head = 0;
    std::deque<Message> expected; // from the other node
    // Of what puts wrote here: the first and last cycle, bytes, and cycles inside of packets.
    uint64_t put_first = never, put_last = 0, put_bytes = 0, put_cycles = 0, put_begin = 0;
};

class Bench
{
  public:
    Bench()
    {
        dut_.rst_ni = 0;
        dut_.dma_write_ready_i = 3;
        first_.fill(never);
        for (int i = 0; i < 4; i++)
            step();
        dut_.rst_ni = 1;
        for (int i = 0; i < 300; i++) // The context tables clear themselves.
            step();
    }

    // One clock cycle: inputs were set, outputs are looked at, then the edge.
    void step()
    {
        for (unsigned n = 0; n < 2; n++)
            offer(n);
        dut_.clk_i = 0;
        dut_.eval();
        dump(0);
        for (unsigned s = 0; s < stages; s++)
            if (first_[s] == never && ((dut_.stage_o >> s) & 1))
                first_[s] = cycle_;
        for (unsigned n = 0; n < 2; n++)
            take(n);
        dut_.clk_i = 1;
        dut_.eval();
        dump(1);
        cycle_++;
    }

    void write(unsigned n, uint64_t addr, std::vector<uint64_t> words)
    {
        hosts_[n].units.writes.push_back({addr, std::move(words)});
    }
    void set_register(unsigned n, uint64_t offset, uint64_t value)
    {
        uint64_t addr = velo_window_pack(static_cast<uint32_t>(offset), 0, VELO_UNIT_REGISTERS);
        hosts_[n].control.writes.push_back({addr, {value}});
    }

    uint64_t read_register(unsigned n, uint64_t offset)
    {
        uint64_t addr = velo_window_pack(static_cast<uint32_t>(offset), 0, VELO_UNIT_REGISTERS);
        put(dut_.control_read_addr_i, n * 48, 48, addr);
        answer_ = 0;
        answer_beats_ = 0;
        // It waits behind this host's own writes to registers.
        read_valid_ = true;
        read_node_ = n;
        for (int i = 0; i < 100 && answer_beats_ * word_bits < 64; i++)
            step();
        if (answer_beats_ * word_bits < 64)
            fail("a read of a register was not answered");
        return answer_;
    }

    // Global shared memory: a store to, a load from, byte `offset` of the other node's segment.
    uint64_t shared_address(unsigned n, uint32_t offset)
    {
        return velo_window_pack((2 - n) << 20 | offset, 3, VELO_UNIT_CUSTOM);
    }
    void store_remote(unsigned n, uint32_t offset, uint64_t value)
    {
        write(n, shared_address(n, offset), {value});
    }
    uint64_t load_remote(unsigned n, uint32_t offset)
    {
        load(n, offset);
        if (load_error_ || loaded_beats_ * word_bits != 64)
            fail("a load was refused");
        return loaded_;
    }
    bool load_is_refused(unsigned n, uint32_t offset)
    {
        load(n, offset);
        return load_error_;
    }

    // A put of whole pages from node 0 to node 1.
    void put_pages(unsigned pages, Random &random)
    {
        for (unsigned n = 0; n < 2; n++) {
            for (unsigned page = 0; page < pages; page++)
                hosts_[n].memory[page_table + 8 * page] =
                    ((n ? put_to : put_from) + page * page_bytes) | 3U << 4 |
                    7U << VELO_REGISTERED_PAGE_RIGHTS_LSB;
            set_register(n, 0x88, page_table | 1 << 8 | 8);
        }
        for (uint64_t byte = 0; byte < pages * page_bytes; byte += 8)
            hosts_[0].memory[put_from + byte] = random.next();
        drain();
        write(0, velo_window_pack(0, 3, VELO_UNIT_RMA),
              {velo_rma_descriptor_word0_pack(VELO_RMA_OP_PUT, 0, 0, 2, 3, 0,
                                              static_cast<uint32_t>(pages * page_bytes)),
               0, 0});
        for (int i = 0; i < 100000 && hosts_[1].put_bytes < pages * page_bytes; i++)
            step();
        for (uint64_t byte = 0; byte < pages * page_bytes; byte += 8)
            if (hosts_[1].memory[put_to + byte] != hosts_[0].memory[put_from + byte])
                fail("a put moved something else");
    }

    // Cycles until so many gets of node 0 from node 1 have brought what they asked for.
    uint64_t get_all(unsigned count, unsigned len_bytes, Random &random)
    {
        std::map<uint64_t, uint64_t> &source = hosts_[1].memory, &target = hosts_[0].memory;
        const uint64_t end = uint64_t{count} * len_bytes;
        for (uint64_t byte = 0; byte < end; byte += 8)
            source[put_to + byte] = random.next();
        uint64_t start = cycle_;
        for (unsigned get = 0; get < count; get++)
            write(0, velo_window_pack(0, 3, VELO_UNIT_RMA),
                  {velo_rma_descriptor_word0_pack(VELO_RMA_OP_GET, 0, 0, 2, 3,
                                                  static_cast<uint8_t>(get), len_bytes),
                   get * len_bytes, get * len_bytes});
        for (int i = 0; i < 100000 && target[put_from + end - 8] != source[put_to + end - 8]; i++)
            step();
        for (uint64_t byte = 0; byte < end; byte += 8)
            if (target[put_from + byte] != source[put_to + byte])
                fail("a get moved something else");
        return cycle_ - start;
    }

    // Cycles of a message from node 0 to node 1, offered when so many gets of a page are on the
    // same way before it.
    uint64_t message_behind(unsigned gets, const Message &message, Random &random)
    {
        std::map<uint64_t, uint64_t> &source = hosts_[1].memory, &target = hosts_[0].memory;
        for (uint64_t byte = 0; byte < page_bytes; byte += 8)
            source[put_to + byte] = random.next();
        for (unsigned get = 0; get < gets; get++)
            write(0, velo_window_pack(0, 3, VELO_UNIT_RMA),
                  {velo_rma_descriptor_word0_pack(VELO_RMA_OP_GET, 0, 0, 2, 3,
                                                  static_cast<uint8_t>(get), page_bytes),
                   get % 8 * page_bytes, 0});
        drain();
        for (int i = 0; i < 200; i++)
            step();
        uint64_t start = cycle_;
        send(0, message, 3);
        for (int i = 0; i < 100000 && !poll(1); i++)
            step();
        uint64_t end = last_status_[1];
        for (int i = 0; i < 100000 && unlike(source, target, gets); i++)
            step();
        if (unlike(source, target, gets))
            fail("a get moved something else");
        return end - start;
    }

    // Whether a get's page is not yet like its source.
    static bool unlike(std::map<uint64_t, uint64_t> &source, std::map<uint64_t, uint64_t> &target,
                       unsigned gets)
    {
        for (unsigned page = 0; page < gets && page < 8; page++)
            for (uint64_t byte = page_bytes; byte > 0; byte -= 8)
                if (target[put_from + page * page_bytes + byte - 8] != source[put_to + byte - 8])
                    return true;
        return false;
    }

    void drain()
    {
        for (int i = 0; i < 100000; i++) {
            step();
            bool done = true;
            for (const Host &host : hosts_)
                done = done && host.units.writes.empty() && host.control.writes.empty() &&
                       host.expected.empty();
            if (done)
                return;
        }
        fail("messages did not arrive");
    }

    // Node n sends a message to the other node's context 1.
    void send(unsigned n, const Message &message, unsigned source)
    {
        hosts_[1 - n].expected.push_back(message);
        send_to(n, 2 - n, message, source);
    }
    void send_to(unsigned n, unsigned node, const Message &message, unsigned source)
    {
        unsigned words = static_cast<unsigned>(message.payload.size());
        uint64_t address =
            velo_address_pack(0, static_cast<uint8_t>(words), 1, static_cast<uint8_t>(node));
        uint64_t addr = velo_window_pack(static_cast<uint32_t>(address),
                                         static_cast<uint8_t>(source), VELO_UNIT_VELO);
        std::vector<uint64_t> line{
            velo_header_pack(0, message.tag, static_cast<uint16_t>(message.len), 0, 0)};
        line.insert(line.end(), message.payload.begin(), message.payload.end());
        write(n, addr, std::move(line));
    }

    // Look at node n's ring; a message that is there must be the next one, whole.
    bool poll(unsigned n)
    {
        Host &host = hosts_[n];
        uint64_t slot = ring_base + 64 * (host.head % (1U << ring_log2));
        uint64_t word = host.memory.count(slot) ? host.memory[slot] : 0;
        if (!velo_header_valid(word) || velo_header_seq(word) != (host.head & 0xFFFF))
            return false;
        if (host.expected.empty())
            fail("a message that nobody sent");
        const Message &message = host.expected.front();
        // Node 0 has the number 1 and node 1 the number 2; contexts send as 3.
        if (velo_header_source(word) != ((2 - n) << 8 | 3) ||
            velo_header_tag(word) != message.tag || velo_header_len(word) != message.len)
            fail("a header word is wrong");
        for (size_t i = 0; i < message.payload.size(); i++)
            if (host.memory[slot + 8 + 8 * i] != message.payload[i])
                fail("payload is wrong");
        host.expected.pop_front();
        host.head++;
        set_register(n, 0x8100000 + (1U << 12), host.head & 0xFFFF);
        return true;
    }

    void set_up()
    {
        for (unsigned n = 0; n < 2; n++) {
            set_register(n, 0x08, n + 1);
            set_register(n, 0x8200000 + 8 * (2 - n), 0); // the other node: link 0
            set_register(n, 0x8200000 + 8 * (n + 1), VELO_ROUTE_LOCAL);
            set_register(n, 0x8000000 + (1U << 12), ring_base | uint64_t{ring_log2} << 48 | 1);
            set_register(n, 0x80, 1);                // link 0 may come up
            set_register(n, 0x30, segment_base | 1); // the custom unit: global shared memory
        }
        drain();
        for (int i = 0; i < 2000; i++)
            step();
        for (unsigned n = 0; n < 2; n++)
            if (!(read_register(n, 0x100) & 1))
                fail("the link did not come up");
    }

    // Both rings are full, and the network takes no more of either host's messages.
    bool stuck() { return (dut_.stuck_o & 15) == 15; }

#if VM_TRACE
    void trace(const char *path)
    {
        trace_ = std::make_unique<VerilatedVcdC>();
        dut_.trace(trace_.get(), 2);
        trace_->open(path);
    }
    void dump(unsigned half)
    {
        if (trace_)
            trace_->dump(2 * cycle_ + half);
    }
#else
    void dump(unsigned) {}
#endif

    void forget_stages() { first_.fill(never); }
    uint64_t cycle() const { return cycle_; }
    const std::array<uint64_t, stages> &first() const { return first_; }
    uint64_t last_status(unsigned n) const { return last_status_[n]; }
    Host &host(unsigned n) { return hosts_[n]; }
    // Chance in 8 that the host does not take a beat.
    void stall(unsigned eighths, Random *random)
    {
        stall_eighths_ = eighths;
        random_ = random;
    }

  private:
    void load(unsigned n, uint32_t offset)
    {
        put(dut_.host_read_addr_i, n * 48, 48, shared_address(n, offset));
        loaded_ = 0;
        loaded_beats_ = 0;
        load_error_ = load_done_ = false;
        load_valid_ = true;
        load_node_ = n;
        for (int i = 0; i < 5000 && !load_done_; i++)
            step();
        if (!load_done_)
            fail("a load was not answered");
    }

    // A stream's ports, by name: `units` drives host_write_*, `control` control_write_*.
    template <typename Valid, typename Addr, typename Len, typename Data>
    void offer_write(unsigned n, const Stream &stream, Valid &valid, Valid &eop, Addr &addr,
                     Len &len, Data &data)
    {
        put(valid, n, 1, !stream.writes.empty());
        if (stream.writes.empty())
            return;
        const Write &write = stream.writes.front();
        unsigned bits = static_cast<unsigned>(write.words.size()) * 64;
        put(addr, n * 48, 48, write.addr);
        put(len, n * 10, 10, write.words.size() * 8);
        put(eop, n, 1, (stream.beat + 1) * width >= bits);
        for (unsigned lsb = 0; lsb < width; lsb += word_bits) {
            unsigned bit = stream.beat * width + lsb;
            // The bits beside the data do not matter.
            uint64_t word = bit < bits ? write.words[bit / 64] : ~uint64_t{0};
            put(data, n * width + lsb, word_bits, word >> (bit % 64));
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

    void offer(unsigned n)
    {
        Host &host = hosts_[n];
        offer_write(n, host.units, dut_.host_write_valid_i, dut_.host_write_eop_i,
                    dut_.host_write_addr_i, dut_.host_write_len_bytes_i, dut_.host_write_data_i);
        offer_write(n, host.control, dut_.control_write_valid_i, dut_.control_write_eop_i,
                    dut_.control_write_addr_i, dut_.control_write_len_bytes_i,
                    dut_.control_write_data_i);
        if (random_)
            put(dut_.dma_write_ready_i, n, 1, random_->below(8) >= stall_eighths_);
        put(dut_.host_read_valid_i, n, 1, load_valid_ && load_node_ == n);
        put(dut_.control_read_valid_i, n, 1, read_valid_ && read_node_ == n);
        put(dut_.dma_read_ready_i, n, 1, host.reads.size() < 4);
        put(dut_.dma_answer_valid_i, n, 1, !host.reads.empty());
        if (!host.reads.empty()) {
            const Host::Read &read = host.reads.front();
            put(dut_.dma_answer_tag_i, n * 12, 12, read.tag);
            put(dut_.dma_answer_eop_i, n, 1, (host.read_beat + 1) * width >= 8 * read.len);
            for (unsigned lsb = 0; lsb < width; lsb += word_bits) {
                unsigned bit = host.read_beat * width + lsb;
                auto found = host.memory.find(read.addr + bit / 64 * 8);
                uint64_t word = found == host.memory.end() ? 0 : found->second;
                put(dut_.dma_answer_data_i, n * width + lsb, word_bits, word >> (bit % 64));
            }
        }
    }

    void take(unsigned n)
    {
        Host &host = hosts_[n];
        if (get(dut_.host_write_valid_i, n, 1) && get(dut_.host_write_ready_o, n, 1))
            taken(host.units, get(dut_.host_write_eop_i, n, 1));
        if (get(dut_.control_write_valid_i, n, 1) && get(dut_.control_write_ready_o, n, 1))
            taken(host.control, get(dut_.control_write_eop_i, n, 1));
        if (get(dut_.dma_write_valid_o, n, 1) && get(dut_.dma_write_ready_i, n, 1))
            store(n);
        if (get(dut_.control_answer_valid_o, n, 1))
            answer_ |= get(dut_.control_answer_data_o, n * width, word_bits)
                       << (word_bits * answer_beats_++);
        if (get(dut_.host_answer_valid_o, n, 1)) {
            loaded_ |= get(dut_.host_answer_data_o, n * width, word_bits)
                       << (word_bits * loaded_beats_++);
            load_error_ = load_error_ || get(dut_.host_answer_error_o, n, 1);
            load_done_ = get(dut_.host_answer_eop_o, n, 1);
        }
        if (get(dut_.host_read_valid_i, n, 1) && get(dut_.host_read_ready_o, n, 1))
            load_valid_ = false;
        if (get(dut_.control_read_valid_i, n, 1) && get(dut_.control_read_ready_o, n, 1))
            read_valid_ = false;
        if (get(dut_.dma_answer_valid_i, n, 1) && get(dut_.dma_answer_ready_o, n, 1) &&
            ++host.read_beat * width >= 8 * host.reads.front().len) {
            host.read_beat = 0;
            host.reads.pop_front();
        }
        if (get(dut_.dma_read_valid_o, n, 1) && get(dut_.dma_read_ready_i, n, 1))
            host.reads.push_back(
                {get(dut_.dma_read_addr_o, n * 48, 48),
                 static_cast<unsigned>(get(dut_.dma_read_tag_o, n * 12, 12)),
                 static_cast<unsigned>(get(dut_.dma_read_len_bytes_o, n * 10, 10))});
    }

    void store(unsigned n)
    {
        Host &host = hosts_[n];
        uint64_t addr = get(dut_.dma_write_addr_o, n * 48, 48);
        unsigned bits = 8 * static_cast<unsigned>(get(dut_.dma_write_len_bytes_o, n * 10, 10));
        for (unsigned lsb = 0; lsb < width; lsb += word_bits) {
            unsigned bit = host.dma_beat * width + lsb;
            host.dma_word |= get(dut_.dma_write_data_o, n * width + lsb, word_bits) << (bit % 64);
            if ((bit + word_bits) % 64 == 0) {
                if (bit < bits)
                    host.memory[addr + bit / 64 * 8] = host.dma_word;
                host.dma_word = 0;
            }
        }
        if (host.dma_beat == 0)
            host.put_begin = cycle_;
        host.dma_beat++;
        if (!get(dut_.dma_write_eop_o, n, 1))
            return;
        if (addr >= put_to) {
            host.put_first = host.put_first == never ? host.put_begin : host.put_first;
            host.put_last = cycle_;
            host.put_bytes += bits / 8;
            host.put_cycles += cycle_ - host.put_begin + 1;
        }
        if (host.dma_beat != (bits + width - 1) / width)
            fail("a DMA write is not as long as it says");
        host.dma_beat = 0;
        if (addr % 64 == 0 && addr < segment_base)
            last_status_[n] = cycle_;
    }

    Vnode_pair dut_;
#if VM_TRACE
    std::unique_ptr<VerilatedVcdC> trace_;
#endif
    std::array<Host, 2> hosts_;
    std::array<uint64_t, stages> first_{};
    std::array<uint64_t, 2> last_status_{};
    uint64_t cycle_ = 0;
    uint64_t answer_ = 0;
    unsigned answer_beats_ = 0;
    uint64_t loaded_ = 0;
    unsigned loaded_beats_ = 0;
    unsigned load_node_ = 0;
    bool load_valid_ = false, load_done_ = false, load_error_ = false;
    unsigned read_node_ = 0;
    bool read_valid_ = false;
    unsigned stall_eighths_ = 0;
    Random *random_ = nullptr;
};

Message make(Random &random, unsigned len)
{
    Message message{static_cast<uint8_t>(random.next()), len, {}};
    for (unsigned i = 0; i < (len + 7) / 8; i++)
        message.payload.push_back(random.next());
    return message;
}

} // namespace

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? bench::number<uint64_t>(argv[1]) : 1;
    unsigned messages = argc > 2 ? bench::count<unsigned>(argv[2]) : 2000;
    Random random(seed);
#if VM_TRACE
    Verilated::traceEverOn(true);
#endif
    auto bench = std::make_unique<Bench>();
    bench->set_up();
#if VM_TRACE
    if (argc > 3) {
        bench->trace(argv[3]);
        bench->send(0, make(random, 8), 3);
        for (int i = 0; i < 40; i++)
            bench->step();
        return bench->poll(1) ? 0 : 1;
    }
#endif

    // One message of eight bytes through an idle network.
    bench->forget_stages();
    bench->send(0, make(random, 8), 3);
    for (int i = 0; i < 500 && !bench->poll(1); i++)
        bench->step();
    bench->drain();
    auto first = bench->first();
    uint64_t last = bench->last_status(1);
    for (unsigned s = 0; s < stages; s++)
        if (first[s] == never || (s && first[s] < first[s - 1]))
            fail("a stage was not passed, or not in order: " + std::to_string(s));

    // As many messages of 24 bytes as go: eight of data and sixteen of an upper layer's header. The
    // receiver reads each at once, and its ring never fills.
    uint64_t start = 0;
    constexpr unsigned burst = 200;
    for (unsigned i = 0; i < burst; i++)
        bench->send(0, make(random, 24), 3);
    for (unsigned received = 0; received < burst;) {
        bench->step();
        if (bench->poll(1)) {
            if (++received == burst / 4)
                start = bench->last_status(1);
        }
        if (bench->cycle() > 200000)
            fail("the burst did not arrive");
    }
    double rate = static_cast<double>(bench->last_status(1) - start) / (burst - burst / 4);

    // The other node's memory: what is stored is loaded, and lies where it belongs.
    std::map<uint32_t, uint64_t> shared;
    for (int i = 0; i < 100; i++) {
        uint32_t offset = random.below(32) * 8;
        uint64_t value = random.next();
        if (random.below(2))
            bench->store_remote(0, offset, shared[offset] = value);
        else if (bench->load_remote(0, offset) != shared[offset])
            fail("a load got something else than was stored");
    }
    for (auto [offset, value] : shared)
        if (bench->host(1).memory[segment_base + offset] != value &&
            bench->load_remote(0, offset) != value)
            fail("a store went astray");
    if (bench->read_register(0, 0x38) || bench->read_register(1, 0x38))
        fail("the custom unit counted an error, or a load that is still under way");
    // An access that is no word is refused and counted, and does nothing else.
    bench->store_remote(0, 12, 1);
    if (!bench->load_is_refused(0, 20) || bench->read_register(0, 0x38) != 2)
        fail("a store and a load of no whole word were not refused");

    // Remote memory: how fast the data of a long put arrive, inside packets and all in all.
    bench->put_pages(8, random);
    const Host &target = bench->host(1);
    double in_packets = static_cast<double>(target.put_bytes) / target.put_cycles;
    double sustained =
        static_cast<double>(target.put_bytes) / (target.put_last - target.put_first + 1);

    uint64_t few_gets = bench->get_all(16, 8, random);
    double per_get = static_cast<double>(bench->get_all(48, 8, random) - few_gets) / 32;

    // A message behind gets, which take a thousand cycles each: they wait in a queue of their own.
    uint64_t alone = bench->message_behind(0, make(random, 8), random), behind = 0;
    unsigned before = 1;
    for (unsigned gets : {1U, 3U, 4U, 16U}) {
        behind = std::max(behind, bench->message_behind(gets, make(random, 8), random));
        before++;
    }
    if (behind > 64)
        fail("a message waited " + std::to_string(behind) + " cycles behind gets");

    // To a node that no way leads to, more than there are credits: dropped and counted.
    constexpr unsigned nowhere = 200;
    for (unsigned i = 0; i < nowhere; i++)
        bench->send_to(0, 77, make(random, random.below(57)), 3);
    bench->drain();
    for (int i = 0; i < 500; i++)
        bench->step();
    if (bench->read_register(0, 0x180) != nowhere)
        fail("what leads nowhere was not counted");

    // Both ways at once, every length, hosts that stall and read late, and senders that keep no
    // credits: rings fill, both at once, and messages wait in the network both ways. Read pointers
    // have a way of their own, so it goes on.
    bench->stall(3, &random);
    unsigned sent = 0, both_full = 0;
    uint64_t limit = bench->cycle() + 500ULL * messages + 100000;
    while (sent < messages || !bench->host(0).expected.empty() ||
           !bench->host(1).expected.empty()) {
        unsigned n = random.below(2);
        if (sent < messages && bench->host(1 - n).expected.size() < 200) {
            bench->send(n, make(random, random.below(57)), 3);
            sent++;
        }
        // Now and then nobody reads until both hosts' writes stand still.
        if (sent % 1000 == 500 && !bench->stuck() && both_full < sent / 1000 + 1) {
            uint64_t patience = bench->cycle() + 20000;
            while (!bench->stuck() && bench->cycle() < patience) {
                for (unsigned k = 0; k < 2; k++)
                    if (bench->host(1 - k).expected.size() < 300 && sent < messages) {
                        bench->send(k, make(random, 48 + random.below(9)), 3);
                        sent++;
                    }
                bench->step();
            }
            both_full += bench->stuck();
        }
        if (random.below(4) == 0)
            bench->poll(random.below(2));
        bench->step();
        if (bench->cycle() > limit) {
            for (unsigned k = 0; k < 2; k++)
                std::fprintf(stderr, "node %u: stall register %" PRIx64 "\n", k,
                             bench->read_register(k, 0x18));
            fail("random messages did not arrive");
        }
    }
    if (!both_full)
        fail("the rings were never both full with messages standing in both directions");
    uint64_t arrived = bench->read_register(0, 0x50) + bench->read_register(1, 0x50);
    if (arrived != messages + burst + 1 + before)
        fail("counters disagree: " + std::to_string(arrived));
    for (unsigned n = 0; n < 2; n++)
        for (uint64_t offset : {0x48, 0x58, 0x60, 0x68, 0x70})
            if (bench->read_register(n, offset))
                fail("an error was counted in register " + std::to_string(offset));

    std::printf("{\n  \"data_width\": %u,\n", width);
    std::printf("  \"requester_cycles\": %" PRIu64 ",\n", first[2] - first[1]);
    std::printf("  \"completer_cycles\": %" PRIu64 ",\n", first[9] - first[8]);
    std::printf("  \"host_to_host_cycles\": %" PRIu64 ",\n", last - first[0]);
    std::printf("  \"node_cycles_per_8B_message\": %.2f,\n", rate);
    std::printf("  \"rma_put_bytes_per_cycle\": %.2f,\n", in_packets);
    std::printf("  \"rma_put_sustained_bytes_per_cycle\": %.2f,\n", sustained);
    std::printf("  \"cycles_per_8B_get\": %.2f,\n", per_get);
    std::printf("  \"message_alone_cycles\": %" PRIu64 ",\n", alone);
    std::printf("  \"message_behind_gets_cycles\": %" PRIu64 ",\n", behind);
    std::printf("  \"stages\": {");
    for (unsigned s = 0; s + 1 < stages; s++)
        std::printf("\"%s\": %" PRIu64 ", ", stage_names[s], first[s + 1] - first[s]);
    std::printf("\"rest_of_message\": %" PRIu64 "},\n", last - first[stages - 1]);
    std::printf("  \"random_messages\": %u,\n  \"both_rings_full\": %u,\n  \"seed\": %" PRIu64
                "\n}\n",
                messages, both_full, seed);
    return 0;
}
