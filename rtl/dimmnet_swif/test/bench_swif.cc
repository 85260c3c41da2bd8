// SPDX-License-Identifier: Apache-2.0
//
// Boards with SWIF around a switch that flips bits, loses packets and garbles marks: does each
// packet of CoreLogic arrive exactly once, whole and in order?
//
//   bench_swif [--boards N] [--packets N] [--lines N] [--rate P] [--lose P] [--stall P] [--seed N]
//              [--whole 1]
//   bench_swif measure
//
// Each board sends so many packets, of 2 to so many lines, to the others at random. A bit is wrong
// with probability `rate`; a word's marks, or the word itself, are with the same; `lose` is the
// part of all packets that vanishes, acknowledgements among them. CoreLogic and the network are not
// ready in the part `stall` of all cycles, and now and then CoreLogic takes nothing for a long
// time. `measure` prints the cycles of the first line of a packet of two lines from one board to
// the other.

#include <cmath>
#include <cstring>
#include <deque>
#include <memory>

#include "Vdimmnet_swif.h"
#include "harness.h"

namespace
{

using bench::fail;
using bench::get_bits;

constexpr unsigned kFirst = 1, kMiddle = 2, kLast = 3, kMostLines = 64, kBaseLid = 0x4240;

struct Settings {
    unsigned boards = 2, lines = 16;
    uint64_t packets = 4000, seed = 1;
    double rate = 1e-5, lose = 0, stall = 0.1;
    bool whole = false;
};

struct Word {
    uint64_t value = 0;
    bool first = false, last = false;
    uint8_t bytes = 8;
};

struct Flight {
    uint64_t when;
    std::vector<Word> words;
};

uint64_t hash(uint64_t x) { return bench::Random(x).next(); }

// A packet's lines are a function of who sends it to whom, and of its number between them.
uint64_t line_of(unsigned src, unsigned dst, uint64_t number, unsigned lines, unsigned place)
{
    if (place == 0)
        return uint64_t{kBaseLid + src} << 48 | uint64_t{kBaseLid + dst} << 32 | (lines - 2) << 10 |
               1;
    return place == 1 ? number : hash(number * 4096 + place * 64 + src * 8 + dst);
}

struct Board {
    std::unique_ptr<Vdimmnet_swif> top;
    // CoreLogic, sending.
    uint64_t left = 0;
    unsigned place = 0, lines = 0, to = 0;
    bool taken = false;
    std::vector<uint64_t> sent, came; // packets, by peer
    // CoreLogic, receiving.
    std::vector<uint64_t> packet;
    unsigned deaf = 0;
    // The network: what leaves, and what is under way to here.
    std::vector<Word> out;
    std::deque<Flight> in;
    size_t in_place = 0;
};

class Network
{
  public:
    explicit Network(const Settings &settings) : settings_(settings), random_(settings.seed)
    {
        boards_.resize(settings.boards);
        for (unsigned b = 0; b < settings.boards; b++) {
            Board &board = boards_[b];
            board.top = std::make_unique<Vdimmnet_swif>(&context_);
            board.top->lid_i = kBaseLid + b;
            board.left = settings.packets;
            board.sent.resize(settings.boards);
            board.came.resize(settings.boards);
        }
        to_error_ = next_error();
    }

    void run()
    {
        for (int i = 0; i < 4; i++)
            step();
        for (auto &board : boards_)
            board.top->rst_ni = 1;
        uint64_t since = 0, before = 0;
        while (!done()) {
            step();
            if (came_ != before) {
                before = came_;
                since = 0;
            } else if (++since > 1000000) {
                fail("nothing arrives any more: " + std::to_string(came_) + " have");
            }
        }
        // Nothing more comes, whatever is still under way.
        for (int i = 0; i < 20000; i++)
            step();
        report();
    }

  private:
    Settings settings_;
    bench::Random random_;
    VerilatedContext context_;
    std::vector<Board> boards_;
    uint64_t cycle_ = 0, came_ = 0, to_error_ = 0, damaged_ = 0, lost_ = 0;

    uint64_t next_error()
    {
        if (settings_.rate <= 0)
            return ~0ULL;
        return static_cast<uint64_t>(std::log1p(-random_.unit()) / std::log1p(-settings_.rate));
    }

    bool done() const { return came_ == settings_.packets * settings_.boards; }

    void report() const
    {
        static const char *const names[] = {"crc",      "malformed",   "foreign",
                                            "ahead",    "duplicate",   "no_room",
                                            "repeated", "unreachable", "gave_up"};
        std::printf("{\"packets\": %llu, \"cycles\": %llu, \"damaged\": %llu, \"lost\": %llu",
                    static_cast<unsigned long long>(came_), static_cast<unsigned long long>(cycle_),
                    static_cast<unsigned long long>(damaged_),
                    static_cast<unsigned long long>(lost_));
        uint64_t sums[9] = {};
        for (const Board &board : boards_)
            for (unsigned i = 0; i < 9; i++)
                sums[i] += get_bits(board.top->counts_o, 32 * i, 32);
        for (unsigned i = 0; i < 9; i++)
            std::printf(", \"%s\": %llu", names[i], static_cast<unsigned long long>(sums[i]));
        std::printf("}\n");
        if (sums[8] || sums[7])
            fail("a peer was given up");
        if (settings_.rate > 0 && damaged_ > 20 && !(sums[0] + sums[1]))
            fail("damage was not noticed");
        if (lost_ > 20 && !sums[6])
            fail("nothing was repeated");
    }

    void step()
    {
        for (unsigned b = 0; b < boards_.size(); b++)
            drive(b);
        for (auto &board : boards_) {
            board.top->clk_i = 0;
            board.top->eval();
        }
        for (unsigned b = 0; b < boards_.size(); b++) {
            collect(b);
            leave(b);
        }
        for (auto &board : boards_) {
            board.top->clk_i = 1;
            board.top->eval();
        }
        cycle_++;
    }

    void drive(unsigned b)
    {
        Board &board = boards_[b];
        Vdimmnet_swif &top = *board.top;
        bool up = top.rst_ni;
        if (board.taken)
            top.tx_valid_i = board.taken = false;
        if (!board.place && board.left && up && random_.unit() >= settings_.stall) {
            board.left--;
            board.lines = 2 + random_.below(settings_.lines - 1);
            board.to = (b + 1 + random_.below(settings_.boards - 1)) % settings_.boards;
            board.place = 1;
        }
        if (board.place && !top.tx_valid_i && up) {
            // Gaps, but an offered line stays.
            top.tx_valid_i = random_.unit() >= settings_.stall;
            top.tx_ident_i = board.place == 1             ? kFirst
                             : board.place == board.lines ? kLast
                                                          : kMiddle;
            top.tx_line_i =
                line_of(b, board.to, board.sent[board.to], board.lines, board.place - 1);
        }
        if (board.deaf)
            board.deaf--;
        else if (random_.below(20000) == 0)
            board.deaf = random_.below(3000);
        top.rx_ready_i = !board.deaf && random_.unit() >= settings_.stall;
        top.net_tx_ready_i = random_.unit() >= settings_.stall / 4;
        arrive(board);
    }

    void arrive(Board &board)
    {
        Vdimmnet_swif &top = *board.top;
        top.net_rx_valid_i = 0;
        if (board.in.empty() || board.in.front().when > cycle_ ||
            random_.unit() < settings_.stall / 8)
            return;
        Flight &flight = board.in.front();
        if (flight.words.empty()) {
            board.in.pop_front();
            return;
        }
        const Word &word = flight.words[board.in_place++];
        top.net_rx_valid_i = 1;
        top.net_rx_word_i = word.value;
        top.net_rx_first_i = word.first;
        top.net_rx_last_i = word.last;
        top.net_rx_bytes_i = word.bytes;
        if (board.in_place == flight.words.size()) {
            board.in_place = 0;
            board.in.pop_front();
        }
    }

    // What the boards give in this cycle.
    void collect(unsigned b)
    {
        Board &board = boards_[b];
        Vdimmnet_swif &top = *board.top;
        if (!top.rst_ni)
            return;
        if (top.tx_valid_i && top.tx_ready_o) {
            board.taken = true;
            if (board.place++ == board.lines) {
                board.place = 0;
                board.sent[board.to]++;
            }
        }
        if (!top.rx_valid_o || !top.rx_ready_i)
            return;
        if ((top.rx_ident_o == kFirst) != board.packet.empty())
            fail("a packet began inside another");
        board.packet.push_back(top.rx_line_o);
        if (top.rx_ident_o != kLast)
            return;
        unsigned src = (board.packet[0] >> 48) - kBaseLid;
        unsigned lines = (board.packet[0] >> 10 & 127) + 2;
        if (src >= boards_.size() || lines != board.packet.size())
            fail("a packet is not as long as it says");
        uint64_t number = board.came[src]++;
        if (board.packet[1] != number)
            fail("packet " + std::to_string(board.packet[1]) + " came in place of " +
                 std::to_string(number));
        for (unsigned i = 0; i < lines; i++)
            if (board.packet[i] != line_of(src, b, number, lines, i))
                fail("a packet is damaged");
        board.packet.clear();
        came_++;
    }

    void leave(unsigned b)
    {
        Board &board = boards_[b];
        Vdimmnet_swif &top = *board.top;
        if (settings_.whole && !top.net_tx_valid_o && !board.out.empty())
            fail("a gap in a packet");
        if (!top.rst_ni || !top.net_tx_valid_o || !top.net_tx_ready_i)
            return;
        board.out.push_back(Word{top.net_tx_word_o, top.net_tx_first_o != 0, top.net_tx_last_o != 0,
                                 static_cast<uint8_t>(top.net_tx_bytes_o)});
        if (!top.net_tx_last_o)
            return;
        uint64_t lrh = board.out[0].value;
        unsigned to = ((lrh >> 16 & 255) << 8 | (lrh >> 24 & 255)) - kBaseLid;
        if (to >= boards_.size() || to == b)
            fail("a packet for nobody");
        Flight flight{cycle_ + 5 + random_.below(20), {}};
        flight.words.swap(board.out);
        if (random_.unit() < settings_.lose) {
            lost_++;
            return;
        }
        disturb(flight.words);
        auto &in = boards_[to].in;
        if (!in.empty() && flight.when < in.back().when)
            flight.when = in.back().when;
        in.push_back(std::move(flight));
    }

    void disturb(std::vector<Word> &words)
    {
        bool hit = false;
        for (size_t i = 0; i < words.size(); i++) {
            uint64_t bits = 8U * words[i].bytes, place = 0;
            while (to_error_ < bits - place) {
                place += to_error_;
                words[i].value ^= 1ULL << place++;
                to_error_ = next_error();
                hit = true;
            }
            if (to_error_ != ~0ULL)
                to_error_ -= bits - place;
            if (random_.unit() >= settings_.rate)
                continue;
            hit = true;
            switch (random_.below(5)) {
            case 0:
                words[i].first = !words[i].first;
                break;
            case 1:
                words[i].last = !words[i].last;
                break;
            case 2:
                words[i].bytes = random_.below(16);
                break;
            case 3:
                words.insert(words.begin() + i, words[i]);
                break;
            default:
                words.erase(words.begin() + i);
                break;
            }
        }
        damaged_ += hit;
    }
};

// One packet of two lines from a board to another, no switch between them.
void measure()
{
    VerilatedContext context;
    Vdimmnet_swif a(&context, "a"), b(&context, "b");
    int sent = -1, word_out = -1, word_in = -1, line_out = -1;
    for (int cycle = 0; cycle < 100 && line_out < 0; cycle++) {
        for (Vdimmnet_swif *top : {&a, &b}) {
            top->rst_ni = cycle >= 4;
            top->net_tx_ready_i = top->rx_ready_i = 1;
        }
        a.lid_i = kBaseLid;
        b.lid_i = kBaseLid + 1;
        int place = cycle - 20;
        a.tx_valid_i = place == 0 || place == 1;
        a.tx_ident_i = place == 0 ? kFirst : kLast;
        a.tx_line_i = line_of(0, 1, 0, 2, place == 0 ? 0 : 1);
        if (place == 0)
            sent = cycle;
        a.clk_i = b.clk_i = 0;
        a.eval();
        b.net_rx_valid_i = a.net_tx_valid_o;
        b.net_rx_first_i = a.net_tx_first_o;
        b.net_rx_last_i = a.net_tx_last_o;
        b.net_rx_bytes_i = a.net_tx_bytes_o;
        b.net_rx_word_i = a.net_tx_word_o;
        b.eval();
        if (a.net_tx_valid_o && word_out < 0)
            word_out = word_in = cycle;
        if (b.rx_valid_o)
            line_out = cycle;
        a.clk_i = b.clk_i = 1;
        a.eval();
        b.eval();
    }
    if (line_out < 0)
        fail("the packet did not arrive");
    std::printf("{\"tx_cycles\": %d, \"rx_cycles\": %d, \"line_to_line_cycles\": %d}\n",
                word_out - sent, line_out - word_in, line_out - sent);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1 && !std::strcmp(argv[1], "measure")) {
        measure();
        return 0;
    }
    Settings settings;
    for (const auto &[name, value] : bench::options_of(argc, argv, 1)) {
        if (name == "--boards")
            settings.boards = bench::number<unsigned>(value);
        else if (name == "--packets")
            settings.packets = bench::count<uint64_t>(value);
        else if (name == "--lines")
            settings.lines = bench::number<unsigned>(value);
        else if (name == "--rate")
            settings.rate = bench::real(value);
        else if (name == "--lose")
            settings.lose = bench::real(value);
        else if (name == "--stall")
            settings.stall = bench::real(value);
        else if (name == "--whole")
            settings.whole = bench::number<bool>(value);
        else if (name == "--seed")
            settings.seed = bench::number<uint64_t>(value);
        else
            fail("no such option: " + name);
    }
    if (settings.boards < 2 || settings.boards > 8 || settings.lines < 2 ||
        settings.lines > kMostLines)
        fail("2 to 8 boards, packets of 2 to 64 lines");
    Network network(settings);
    network.run();
    return 0;
}
