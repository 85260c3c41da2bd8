// SPDX-License-Identifier: Apache-2.0
//
// Two PCS, a cable of bits between them, and in each place a clock of its own (wires.h).
//
// A stand-in for a link port sends frames of numbered words, and pairs of idle words whenever it has
// nothing else or is asked to pause. The checker on the other side knows the order: every word comes
// once, unchanged, in order; no idle word is believable (twice running) that was not sent.
//
//   bench_pcs LANES LANE_BITS WIRE_BITS CROSSING     all cases; prints figures as JSON
//
// The numbers tell it which parameters the model was built with.

#include <set>

#include "Vvelo_pcs.h"
#include "wires.h"

using bench::fail;
using bench::Random;

namespace
{

using bench::crossing;
using bench::lane_bits;
using bench::lanes;
using bench::wire_bits;

constexpr unsigned kData = 0, kCtl = 1, kEnd = 2, kStart = 3;
struct Word {
    unsigned kind = kCtl;
    std::array<uint64_t, 2> data{};
    bool operator==(const Word &other) const = default;
};

uint32_t idle_word(uint32_t low20)
{
    uint32_t crc = 0xFFF;
    for (int bit = 19; bit >= 0; bit--) {
        uint32_t back = (crc >> 11) ^ (low20 >> bit & 1);
        crc = (crc << 1 & 0xFFF) ^ (back & 1 ? 0x80F : 0);
    }
    return crc << 20 | low20;
}

class Side : public bench::Wires<Side, Vvelo_pcs>
{
  public:
    std::deque<Word> expected; // words that the other side sent
    std::set<uint32_t> idles;  // idle words that the other side sent
    bool sending = false, strict = true;
    unsigned frame_words = 0; // 0: of any length
    double busy = 1;          // chance that a frame follows at once
    uint64_t words = 0, wrong = 0, marked = 0, missing = 0, believed = 0, paused = 0;

    explicit Side(uint64_t seed) : Wires(seed) { reset_word(Word{}); }

    void before_link_edge()
    {
        cycles++;
        pause_line_.push_back(top.link_pause_o);
        bool pause = pause_line_.front();
        if (pause_line_.size() > 3)
            pause_line_.pop_front();
        paused += pause;
        Word word = next(pause && sending);
        reset_word(word);
    }

    void after_link_edge()
    {
        Word word;
        word.kind = top.link_kind_o;
        word.data[0] = bench::get_bits(top.link_data_o, 0, std::min(64U, lanes * lane_bits));
        if (lanes * lane_bits > 64)
            word.data[1] = bench::get_bits(top.link_data_o, 64, 64);
        check(word);
    }

  private:
    void reset_word(const Word &word)
    {
        top.link_kind_i = word.kind;
        bench::set_bits(top.link_data_i, 0, std::min(64U, lanes * lane_bits), word.data[0]);
        if (lanes * lane_bits > 64)
            bench::set_bits(top.link_data_i, 64, 64, word.data[1]);
    }

    Word next(bool pause)
    {
        Word word;
        if (sending && !pause && (left_ > 0 || random.unit() < busy)) {
            if (left_ == 0) {
                left_ = (frame_words ? frame_words : 1 + random.below(20)) + 2;
                word.kind = kStart;
                word.data[0] = sequence_++ << 2 & 0xFFFFFFFF;
            } else if (left_ == 1) {
                word.kind = kEnd;
                word.data[0] = random.next() & 0xFFFFFFFF;
            } else {
                word.kind = kData;
                word.data[0] = sequence_++ << 24 | (random.next() & 0xFFFFFF);
                if (lane_bits * lanes == 32)
                    word.data[0] &= 0xFFFFFFFF;
                if (lane_bits * lanes > 64)
                    word.data[1] = random.next();
            }
            left_--;
            second_ = false;
            other->expected.push_back(word);
            return word;
        }
        if (!second_) {
            idle_ = idle_word((random.next() & 0x7FFFF) << 1);
            other->idles.insert(idle_);
        }
        second_ = !second_;
        word.data[0] = idle_;
        return word;
    }

    void check(const Word &word)
    {
        bool again = word == last_;
        last_ = word;
        uint32_t low = word.data[0] & 0xFFFFFFFF;
        bool ctl = word.kind == kCtl && word.data[1] == 0 && word.data[0] == low;
        if (ctl && !(low & 1) && low == idle_word(low & 0xFFFFF)) {
            if (again && idles.count(low) == 0 && top.up_o)
                fail("an idle word that was not sent came twice running");
            believed += again && top.up_o;
            return;
        }
        if (!top.up_o)
            return;
        if (ctl && low == 0) {
            wrong++;
            marked++;
            if (strict)
                fail("a wrong word over a cable without errors, after " + std::to_string(words) +
                     " words and " + std::to_string(cycles) + " cycles");
            return;
        }
        for (unsigned skip = 0; skip < (strict ? 1 : 200) && skip < expected.size(); skip++) {
            if (expected[skip] == word) {
                expected.erase(expected.begin(), expected.begin() + skip + 1);
                missing += skip;
                words++;
                return;
            }
        }
        wrong++;
        if (strict)
            std::fprintf(stderr, "cycle %lu, code errors %u %u, ends of lock %u, lost words %u\n",
                         cycles, top.code_errors_o, top.disparity_errors_o, top.lock_losses_o,
                         top.lost_words_o);
        if (strict)
            fail("word " + std::to_string(words) + ": kind " + std::to_string(word.kind) + ", " +
                 std::to_string(word.data[0]) +
                 (expected.empty() ? ", none was due"
                                   : ", not " + std::to_string(expected[0].data[0])));
    }

    std::deque<bool> pause_line_;
    unsigned left_ = 0;
    uint64_t sequence_ = 1;
    bool second_ = false;
    uint32_t idle_ = 0;
    Word last_;
};

class Pair : public bench::PairOf<Side>
{
  public:
    using PairOf::PairOf;

    void wait_up(uint64_t limit)
    {
        for (uint64_t end = side[0]->cycles + limit; !up() && side[0]->cycles < end;)
            step();
        for (auto &one : side)
            if (!up())
                std::fprintf(stderr, "up %u, skip sets %u, errors %u %u, ends of lock %u\n",
                             one->top.up_o, one->top.skips_o, one->top.code_errors_o,
                             one->top.disparity_errors_o, one->top.lock_losses_o);
        if (!up())
            fail("no lock within " + std::to_string(limit) + " cycles");
    }

    // Let all words arrive; nothing may be left.
    void drain()
    {
        send(false);
        run(400);
        for (auto &one : side)
            if (!one->expected.empty() && one->strict)
                fail(std::to_string(one->expected.size()) + " words did not arrive");
    }

    // Begin to count anew, after errors.
    void forget()
    {
        send(false);
        run(600);
        for (auto &one : side) {
            one->expected.clear();
            one->strict = true;
            one->wrong = one->missing = one->words = 0;
        }
    }

};

uint64_t lock_limit() { return wire_bits == 66 ? 66 * 200 : 1600; }

void expect(bool holds, const std::string &what)
{
    if (!holds)
        fail(what);
}

// ----- The cases ----------------------------------------------------------------------------------

unsigned latency()
{
    Pair pair(1, 0, 0, 1, true);
    pair.start();
    pair.wait_up(4 * lock_limit());
    pair.run(100);
    unsigned least = ~0U;
    for (int trial = 0; trial < 50; trial++) {
        Side &a = *pair.side[0], &b = *pair.side[1];
        a.frame_words = 4;
        uint64_t before = b.words;
        pair.run(20 + trial);
        a.sending = true;
        pair.run(1); // the start word is at the port in this cycle
        uint64_t begin = a.cycles - 1;
        a.busy = 0;
        while (b.words == before)
            pair.step();
        // From the cycle in which the word is at one PHY boundary to the one at the other.
        least = std::min(least, static_cast<unsigned>(b.cycles - begin));
        pair.run(50);
        a.sending = false;
        a.busy = 1;
    }
    return least;
}

// Cycles that a frame takes when frames follow each other.
double cycles_per_frame(unsigned words)
{
    Pair pair(2, 0, 0, 1);
    pair.start();
    pair.wait_up(4 * lock_limit());
    for (auto &one : pair.side)
        one->frame_words = words;
    pair.send(true);
    pair.run(500);
    uint64_t before = pair.side[1]->words;
    pair.run(20000);
    return 20000.0 * (words + 2) / static_cast<double>(pair.side[1]->words - before);
}

void clean(double ppm_a, double ppm_b, double ratio, uint64_t words)
{
    Pair pair(3, ppm_a, ppm_b, ratio);
    pair.start();
    pair.wait_up(4 * lock_limit() * static_cast<uint64_t>(std::ceil(ratio)));
    pair.send(true);
    Side &a = *pair.side[0], &b = *pair.side[1];
    for (double busy : {1.0, 0.3, 0.02}) {
        a.busy = b.busy = busy;
        uint64_t until = b.words + (busy > 0.5 ? words : words / 20);
        uint64_t end = a.cycles + 40 * words * static_cast<uint64_t>(std::ceil(ratio));
        while ((b.words < until || a.words < until) && a.cycles < end)
            pair.step();
        expect(b.words >= until && a.words >= until, "words come too slowly");
    }
    pair.drain();
    expect(a.top.code_errors_o == 0 && a.top.disparity_errors_o == 0 && a.top.lost_words_o == 0 &&
               a.top.lock_losses_o == 0 && b.top.lost_words_o == 0,
           "errors counted on a cable without any");
    expect(a.believed > 100 && b.believed > 100, "idle words are not heard");
    // A skip set at least every 256 cycles of the sender's clock.
    double sets = a.top.skips_o; // modulo 65536
    expect(sets > 0, "no skip sets");
    expect(a.paused > 0, "never asked to pause");
}

void every_offset()
{
    for (unsigned offset = 0; offset < wire_bits; offset++) {
        Pair pair(100 + offset, 50, -50, 1);
        for (auto &one : pair.side)
            for (unsigned lane = 0; lane < lanes; lane++)
                one->in[lane].bits.assign(offset, false);
        pair.start();
        pair.wait_up(4 * lock_limit());
        pair.send(true);
        pair.run(600);
        pair.drain();
        expect(pair.side[0]->words > 300, "no words at offset " + std::to_string(offset));
    }
}

void bit_errors(double rate)
{
    Pair pair(4, 100, -100, 1);
    pair.start();
    pair.wait_up(4 * lock_limit());
    for (auto &one : pair.side)
        one->strict = false;
    pair.set_errors(rate);
    pair.send(true);
    pair.run(30000);
    Side &a = *pair.side[0];
    double bits = 30000.0 * wire_bits * lanes;
    unsigned counted = a.top.code_errors_o + a.top.disparity_errors_o;
    if (rate * bits > 200) {
        expect(a.wrong > 0 && counted > 0, "bit errors are not noticed");
        // Below an error in five groups, words still come.
        // Of several lanes two wrong skip sets running end the step, which then takes a while.
        if (rate < 1e-3 && lanes == 1)
            expect(a.words > 20000 && a.top.lock_losses_o == 0,
                   "at " + std::to_string(rate) + " " + std::to_string(a.words) + " words come, " +
                       std::to_string(a.top.lock_losses_o) + " ends of lock");
    }
    pair.set_errors(0);
    pair.run(100);
    pair.wait_up(8 * lock_limit());
    pair.forget();
    pair.wait_up(8 * lock_limit());
    pair.send(true);
    pair.run(3000);
    pair.drain();
    expect(a.words > 1500, "no words after the errors");
}

// 8b/10b: no single wrong bit goes unnoticed by both decoder and order of words.
void each_bit()
{
    unsigned seen = 0;
    Pair pair(5, 0, 0, 1);
    pair.start();
    pair.wait_up(4 * lock_limit());
    for (unsigned bit = 0; bit < wire_bits * 5; bit++) {
        Side &a = *pair.side[0];
        a.strict = false;
        pair.send(true);
        pair.run(100);
        unsigned before = a.top.code_errors_o + a.top.disparity_errors_o;
        a.in[bit % lanes].flip_after = 10 * wire_bits + bit;
        pair.run(100);
        unsigned after = a.top.code_errors_o + a.top.disparity_errors_o;
        seen += after != before;
        expect(after - before <= 4, "one wrong bit is counted more than four times");
        pair.forget();
        pair.send(true);
        pair.run(50);
        pair.drain();
    }
    if (wire_bits == 40) {
        expect(seen == wire_bits * 5, "a wrong bit was not counted");
        // Most wrong bits make no symbol; then the word itself is reported.
        expect(pair.side[0]->marked >= wire_bits * 5 / 2,
               "only " + std::to_string(pair.side[0]->marked) + " words were reported as wrong");
    }
    expect(pair.up() && pair.side[0]->top.lock_losses_o == 0, "a wrong bit ended the lock");
}

void losses()
{
    Pair pair(6, 100, -100, 1);
    pair.start();
    pair.wait_up(4 * lock_limit());
    Side &a = *pair.side[0];
    enum { Cut, Slip, SignalGone, ClockStands, Kinds };
    for (int kind = 0; kind < Kinds; kind++) {
        for (auto &one : pair.side)
            one->strict = false;
        pair.send(true);
        pair.run(200);
        unsigned losses_before = a.top.lock_losses_o;
        unsigned lane = kind % lanes;
        if (kind == Cut)
            a.in[lane].cut = true;
        if (kind == Slip)
            a.in[lane].bits.push_front(false);
        if (kind == SignalGone)
            a.top.signal_i = 0;
        if (kind == ClockStands)
            for (unsigned l = 0; l < lanes; l++)
                pair.stopped[0][2 + l] = true;
        uint64_t end = a.cycles + 6000;
        while (a.top.up_o && a.cycles < end)
            pair.step();
        expect(!a.top.up_o, "a lane is lost and the link still up, case " + std::to_string(kind));
        a.in[lane].cut = false;
        a.top.signal_i = (1U << lanes) - 1;
        if (kind == ClockStands)
            for (unsigned l = 0; l < lanes; l++)
                a.in[l].bits.clear();
        pair.stopped = {};
        pair.run(200); // a lock that looks right may be of before
        pair.wait_up(8 * lock_limit());
        expect(kind == ClockStands || a.top.lock_losses_o != losses_before, "loss not counted");
        pair.forget();
        pair.wait_up(8 * lock_limit());
        pair.send(true);
        pair.run(3000);
        pair.drain();
        expect(a.words > 1500, "no words after the loss");
    }
}

void skews()
{
    Random random(7);
    for (int trial = 0; trial < 40; trial++) {
        Pair pair(200 + trial, 100, -100, 1);
        for (auto &one : pair.side)
            for (unsigned lane = 0; lane < lanes; lane++)
                one->in[lane].bits.assign(random.below(5 * wire_bits + 1), false);
        pair.start();
        pair.wait_up(8 * lock_limit());
        pair.send(true);
        pair.run(800);
        pair.drain();
    }
    // Too far apart: never up, rather than up and wrong.
    Pair pair(300, 0, 0, 1);
    pair.side[0]->in[0].bits.assign(24 * wire_bits, false);
    pair.side[1]->strict = false; // it comes up in the middle of what is sent
    pair.start();
    pair.send(true);
    pair.run(10 * lock_limit());
    expect(!pair.side[0]->top.up_o && pair.side[0]->words == 0, "lanes 24 words apart are up");
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 5)
        fail("usage: bench_pcs LANES LANE_BITS WIRE_BITS CROSSING");
    lanes = bench::number<unsigned>(argv[1]);
    lane_bits = bench::number<unsigned>(argv[2]);
    wire_bits = bench::number<unsigned>(argv[3]);
    crossing = bench::number<bool>(argv[4]);

    const unsigned cycles = latency();
    const double frame = cycles_per_frame(20);
    std::fprintf(stderr, "latency %u, cycles of a frame of 20 words %.2f\n", cycles, frame);
    clean(0, 0, 1, 20000);
    clean(100, -100, 1, 100000);
    clean(-100, 100, 1, 100000);
    clean(1500, -1500, 1, 20000);
    clean(-1500, 1500, 1, 20000);
    std::fprintf(stderr, "clean\n");
    if (crossing)
        for (double ratio : {1.01, 1.5, 7.0 / 3, 4.0})
            clean(100, -100, ratio, 20000);
    std::fprintf(stderr, "ratios\n");
    every_offset();
    std::fprintf(stderr, "offsets\n");
    for (double rate : {1e-6, 1e-4, 1e-3, 1e-2})
        bit_errors(rate);
    std::fprintf(stderr, "errors\n");
    each_bit();
    losses();
    std::fprintf(stderr, "losses\n");
    if (lanes > 1)
        skews();
    std::printf("{\"pcs_latency_cycles\": %u, \"pcs_cycles_per_frame_of_20_words\": %.3f}\n", cycles,
                frame);
    return 0;
}
