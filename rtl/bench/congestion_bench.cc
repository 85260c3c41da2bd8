// SPDX-License-Identifier: Apache-2.0
//
// What congestion management does for a flow that shares links with a hot node's traffic.
//
//   congestion_bench TOPOLOGY FROM TO [OPTION VALUE]...
//
//   --hot NODE         the hot node (0)
//   --load WORDS       of the victim, words a cycle, a Poisson process (0.15)
//   --bytes BYTES      payload of a message (8)
//   --pace CYCLES      the hot node's host takes a DMA word in every so many (1)
//   --senders COUNT    so many nodes send to the hot node, from FROM on upwards (all but FROM)
//   --stop CYCLES      in the middle of the warm-up the hot node's host takes nothing for so many (0)
//   --warm-up CYCLES   before what is measured (60000)
//   --cycles CYCLES    measured (30000)
//   --increase STEPS, --recover CYCLES, --notice CYCLES, --mark CYCLES
//                      fields of register `congestion`; their defaults if left out
//   --managed 0        leave the managed network out; its figures are those of the unmanaged one
//   --seed SEED        of random numbers (1)
//
// The victim is the flow of messages from FROM to TO. Others send to the hot node as fast as
// their ports take messages. Three networks: the victim alone, beside that traffic, and beside it
// with congestion management. Each ends by sending no more until all has arrived. Hosts check each
// message (hosts.h), and here: without management nothing is marked, held or told; with it, as many
// notices came as were sent. Prints JSON: words that arrived, a cycle, of packets' headers and
// payload; `least_sender` and `most_sender`, what the hot node got of one sender.

#include <cmath>

#include "hosts.h"

namespace
{

using bench::fail;

constexpr uint64_t kRegCongestion = 0x1b8, kRegNotices = 0x1c0, kRegHeld = 0x1c8;
constexpr unsigned kHeaderBytes = 8, kWordBytes = VELO_DATA_WIDTH / 8, kDrainCycles = 400000;

struct Options {
    std::string topology;
    unsigned from = 0, to = 0, hot = 0, bytes = 8, pace = 1, senders = 0;
    double load = 0.15;
    bool managed = true;
    uint64_t warm_up = 60000, cycles = 30000, seed = 1, stop = 0;
    std::map<unsigned, uint64_t> fields; // of the register, by their lowest bit
};

// Options that set a field of the register.
struct Field {
    const char *name;
    unsigned lsb, bits;
};
constexpr Field kFields[] = {
    {"--increase", 4, 4}, {"--notice", 8, 8}, {"--recover", 16, 8}, {"--mark", 32, 16}};

struct Result {
    double victim = 0, hot = 0, least = 0, most = 0; // words a cycle; of one sender
    uint64_t marked = 0, sent = 0, suppressed = 0, received = 0, held = 0, messages = 0;
};

double words(const Options &options)
{
    unsigned payload = (options.bytes + 7) / 8 * 8;
    return static_cast<double>(kHeaderBytes + payload) / kWordBytes;
}

class Network
{
  public:
    Network(const Options &options, bool is_hot, bool is_managed)
        : options_(options), hosts_(options.topology, options.bytes, options.seed)
    {
        auto count = hosts_.nodes().size();
        if (options.from >= count || options.to >= count || options.hot >= count ||
            options.to == options.hot || options.from == options.hot || options.from == options.to)
            fail("victim and hot node have to be three nodes of the network");
        hosts_.nodes()[options.hot].dma_pace = options.pace;
        if (is_hot)
            choose_senders(static_cast<unsigned>(count));
        if (is_managed)
            for (unsigned n = 0; n < count; n++)
                manage(n);
    }

    Result run()
    {
        Result result;
        go(options_.warm_up / 2);
        at(options_.hot).dma_stop_until = hosts_.cycle() + options_.stop;
        go(options_.warm_up - options_.warm_up / 2);
        auto before = at(options_.hot).received_from;
        uint64_t victims = at(options_.to).received, hot = at(options_.hot).received;
        go(options_.cycles);
        double rate = words(options_) / static_cast<double>(options_.cycles);
        result.victim = rate * static_cast<double>(at(options_.to).received - victims);
        result.hot = rate * static_cast<double>(at(options_.hot).received - hot);
        for (unsigned n : senders_) {
            double words =
                rate * static_cast<double>(at(options_.hot).received_from[n] - before[n]);
            result.least = n == senders_.front() ? words : std::min(result.least, words);
            result.most = std::max(result.most, words);
        }
        drain();
        result.messages = hosts_.received();
        for (unsigned n = 0; n < hosts_.nodes().size(); n++)
            count(n, result);
        return result;
    }

  private:
    Options options_;
    std::vector<unsigned> senders_; // to the hot node
    bench::Hosts hosts_;
    double born_ = 0; // the victim's next message

    bench::HostNode &at(unsigned n) { return hosts_.nodes()[n]; }

    // Upwards from the victim's source: what comes from there on shares its way.
    void choose_senders(unsigned count)
    {
        for (unsigned i = 1; i < count; i++) {
            unsigned n = (options_.from + i) % count;
            if (n != options_.hot && (!options_.senders || senders_.size() < options_.senders))
                senders_.push_back(n);
        }
    }

    void manage(unsigned n)
    {
        uint64_t value = hosts_.read_register(n, kRegCongestion);
        if (!(value >> 1 & 1))
            fail("the nodes were built without congestion management");
        for (const Field &field : kFields)
            if (auto set = options_.fields.find(field.lsb); set != options_.fields.end())
                value = (value & ~(((uint64_t{1} << field.bits) - 1) << field.lsb)) |
                        set->second << field.lsb;
        hosts_.set_register(n, kRegCongestion, value | 1);
    }

    void go(uint64_t cycles)
    {
        for (uint64_t end = hosts_.cycle() + cycles; hosts_.cycle() < end; hosts_.step()) {
            offer_victim();
            for (unsigned n : senders_)
                if (at(n).units.writes.size() < 4)
                    hosts_.send(n, options_.hot);
        }
    }

    void offer_victim()
    {
        double mean = words(options_) / options_.load;
        if (born_ == 0)
            born_ = static_cast<double>(hosts_.cycle());
        while (born_ <= static_cast<double>(hosts_.cycle())) {
            hosts_.send(options_.from, options_.to);
            born_ -= mean * std::log1p(-hosts_.random().unit());
        }
    }

    // A victim that got little has many messages left, a slow host takes long.
    void drain()
    {
        uint64_t sent = 0, limit = hosts_.cycle() + uint64_t{kDrainCycles} * options_.pace;
        for (auto &node : hosts_.nodes())
            sent += node.sent;
        while (hosts_.received() < sent && hosts_.cycle() < limit)
            hosts_.step();
        if (hosts_.received() != sent)
            fail("messages did not arrive: " + std::to_string(hosts_.received()) + " of " +
                 std::to_string(sent));
        for (int i = 0; i < 1000; i++) // notices that are still on their way
            hosts_.step();
        hosts_.check_nothing_refused();
    }

    void count(unsigned n, Result &result)
    {
        uint64_t notices = hosts_.read_register(n, kRegNotices);
        result.marked += notices & 0xFFFF;
        result.sent += notices >> 16 & 0xFFFF;
        result.suppressed += notices >> 32 & 0xFFFF;
        result.received += notices >> 48;
        result.held += hosts_.read_register(n, kRegHeld);
    }
};

void print(const char *name, const Result &result, const char *end)
{
    std::printf("\"%s\": {\"victim\": %.4f, \"hot\": %.4f, \"least_sender\": %.4f, "
                "\"most_sender\": %.4f, \"marked\": %" PRIu64 ", \"notices\": %" PRIu64
                ", \"held_cycles\": %" PRIu64 ", \"messages\": %" PRIu64 "}%s",
                name, result.victim, result.hot, result.least, result.most, result.marked,
                result.sent, result.held, result.messages, end);
}

const Field *find_field(const std::string &name)
{
    for (const Field &field : kFields)
        if (name == field.name)
            return &field;
    return nullptr;
}

uint64_t field_value(const Field &field, const std::string &text)
{
    const auto value = bench::number<uint64_t>(text);
    if (value >> field.bits)
        fail(std::string(field.name) + " has no more than " + std::to_string(field.bits) + " bits");
    return value;
}

Options read_options(int argc, char **argv)
{
    Options options{.topology = argv[1],
                    .from = bench::number<unsigned>(argv[2]),
                    .to = bench::number<unsigned>(argv[3])};
    for (const auto &[name, value] : bench::options_of(argc, argv, 4)) {
        if (name == "--load")
            options.load = bench::real(value);
        else if (name == "--hot")
            options.hot = bench::number<unsigned>(value);
        else if (name == "--bytes")
            options.bytes = bench::number<unsigned>(value);
        else if (name == "--pace")
            options.pace = bench::number<unsigned>(value);
        else if (name == "--warm-up")
            options.warm_up = bench::number<uint64_t>(value);
        else if (name == "--cycles")
            options.cycles = bench::number<uint64_t>(value);
        else if (name == "--senders")
            options.senders = bench::number<unsigned>(value);
        else if (name == "--managed")
            options.managed = bench::number<bool>(value);
        else if (name == "--stop")
            options.stop = bench::number<uint64_t>(value);
        else if (name == "--seed")
            options.seed = bench::number<uint64_t>(value);
        else if (const Field *field = find_field(name))
            options.fields[field->lsb] = field_value(*field, value);
        else
            fail("unknown option " + name);
    }
    if (options.load <= 0 || !options.pace || !options.cycles || options.bytes > 56)
        fail("an option is out of its range");
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 4 || argc % 2)
        fail("congestion_bench TOPOLOGY FROM TO [OPTION VALUE]...");
    Options options = read_options(argc, argv);
    Result alone = Network(options, false, false).run();
    Result unmanaged = Network(options, true, false).run();
    Result managed = options.managed ? Network(options, true, true).run() : unmanaged;
    for (const Result &one : {alone, unmanaged})
        if (one.marked || one.sent || one.suppressed || one.received || one.held)
            fail("congestion is managed, although nobody turned that on");
    if (managed.sent != managed.received || managed.marked != managed.sent + managed.suppressed)
        fail("notices and marks do not add up");
    std::printf("{");
    print("alone", alone, ",\n ");
    print("unmanaged", unmanaged, ",\n ");
    print("managed", managed, ",\n ");
    std::printf("\"share_unmanaged\": %.4f, \"share_managed\": %.4f}\n",
                unmanaged.victim / alone.victim, managed.victim / alone.victim);
    return 0;
}
