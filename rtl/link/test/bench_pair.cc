// SPDX-License-Identifier: Apache-2.0
//
// Two link ports with a cable between them, of which B is reset alone, over and over: what becomes
// of each packet that goes in at A?
//
//   bench_pair [--seed N] [--rounds N]
//
// Each round has a cable of another length, and ends with a reset of B. Before it
//   idle      all packets were acknowledged: none is in doubt, none is lost;
//   deaf      A hears nothing more: B has all packets, all are in doubt, none is lost;
//   mute      B hears nothing more: all packets that were sent are in doubt and lost;
//   busy      traffic both ways, with bit errors: no more are lost than are in doubt.
// Always: each packet arrives once, in order and whole, or is one of those in doubt; packets are
// missing at a restart only; everything else, what waited in A as well, arrives after it; and at
// the end of a round all credits are back. What B had to send is lost with it.

#include <memory>

#include "Vvelo_link.h"
#include "cable.h"

namespace
{

using bench::Cable;
using bench::fail;
using bench::get_bits;
using bench::set_bits;
using bench::Word;

constexpr unsigned kVcs = 6, kCountBits = 8, kUnits = 30, kVc = 3;

struct Side {
    std::unique_ptr<Vvelo_link> top;
    Cable cable;       // outwards
    uint32_t next = 0; // number of the next packet to begin
    unsigned place = 0, length = 0;
    uint8_t used = 0, freed = 0; // units of kVc
    uint64_t to_send = 0;        // packets that may still begin
    // The other way: what arrives here.
    bench::Words arriving;
    uint64_t arrived = 0;
    int64_t last = -1; // number of the last packet that arrived whole
};

class Pair
{
  public:
    explicit Pair(uint64_t seed) : random_(seed)
    {
        for (auto &side : sides_) {
            side.top = std::make_unique<Vvelo_link>(&context_);
            side.top->enable_i = side.top->phy_up_i = 1;
        }
    }

    void run(unsigned rounds)
    {
        uint64_t lost = 0, in_doubt = 0;
        for (unsigned round = 0; round < rounds; round++) {
            unsigned delay = 1 + random_.below(60);
            start(delay);
            for (int again = 0; again < 3; again++)
                reset_b(static_cast<Case>(random_.below(4)), lost, in_doubt);
        }
        std::printf("{\"resets\": %u, \"packets\": %llu, \"in_doubt\": %llu, \"lost\": %llu}\n",
                    3 * rounds, static_cast<unsigned long long>(arrived_),
                    static_cast<unsigned long long>(in_doubt),
                    static_cast<unsigned long long>(lost));
        if (!lost || lost >= in_doubt)
            fail("no packet was lost, or none that was in doubt arrived");
    }

  private:
    enum Case { kIdle, kDeaf, kMute, kBusy };

    bench::Random random_;
    VerilatedContext context_;
    Side sides_[2];     // A, B
    bool dead_[2] = {}; // nothing that this side sends arrives
    uint64_t missing_ = 0, arrived_ = 0;
    bool restarted_ = false; // numbers may be missing before B's next packet

    void start(unsigned delay)
    {
        for (auto &side : sides_) {
            side.cable.start(delay, 0, random_);
            side.top->rst_ni = 0;
            side.top->out_freed_i = 0;
            side.next = side.place = side.used = side.freed = side.to_send = 0;
            side.arrived = 0;
            side.last = -1;
            side.arriving.clear();
        }
        for (int i = 0; i < 4; i++)
            step();
        for (auto &side : sides_)
            side.top->rst_ni = 1;
        come_up();
    }

    void come_up()
    {
        for (int i = 0; i < 2000; i++) {
            step();
            if (sides_[0].top->up_o && sides_[1].top->up_o)
                return;
        }
        fail("the link did not come up");
    }

    void reset_b(Case which, uint64_t &lost, uint64_t &in_doubt)
    {
        Side &a = sides_[0], &b = sides_[1];
        settle();
        unsigned count = 1 + random_.below(12); // fewer than there are credits for
        uint8_t doubt_before = a.top->in_doubt_o, restarts_before = a.top->restarts_o;
        dead_[0] = which == kMute;
        dead_[1] = which == kDeaf;
        a.to_send = which == kBusy ? 1000 : count;
        b.to_send = which == kBusy ? 1000 : 0;
        if (which == kBusy)
            for (auto &side : sides_)
                side.cable.set_error_rate(1e-3, random_);
        unsigned cycles = which == kBusy ? 100 + random_.below(1000) : 600;
        for (unsigned i = 0; i < cycles; i++)
            step();

        missing_ = 0;
        restarted_ = true;
        b.top->rst_ni = 0;
        b.top->out_freed_i = 0;
        b.next += b.place != 0; // the packet that goes in is lost, too
        b.place = b.used = b.freed = b.to_send = 0;
        b.arriving.clear();
        for (unsigned i = 0, held = 1 + random_.below(100); i < held; i++)
            step();
        b.top->rst_ni = 1;
        dead_[0] = dead_[1] = false;
        for (auto &side : sides_)
            side.cable.set_error_rate(0, random_);
        come_up();
        a.to_send = 3; // at least one arrives after the restart
        b.to_send = 3;
        settle();

        unsigned doubt = static_cast<uint8_t>(a.top->in_doubt_o - doubt_before);
        if (static_cast<uint8_t>(a.top->restarts_o - restarts_before) != 1)
            fail("A has not counted one new session");
        if (missing_ > doubt)
            fail(std::to_string(missing_) + " packets are lost, " + std::to_string(doubt) +
                 " are in doubt");
        unsigned expected_doubt = which == kIdle ? 0 : count;
        unsigned expected_lost = which == kMute ? count : 0;
        if (which != kBusy && (doubt != expected_doubt || missing_ != expected_lost))
            fail("case " + std::to_string(which) + ": " + std::to_string(doubt) +
                 " packets in doubt, not " + std::to_string(expected_doubt) + "; " +
                 std::to_string(missing_) + " lost, not " + std::to_string(expected_lost));
        lost += missing_;
        in_doubt += doubt;
    }

    // Until everything has arrived and is acknowledged.
    void settle()
    {
        auto left = [&] {
            return sides_[0].to_send || sides_[1].to_send || sides_[0].place || sides_[1].place;
        };
        for (int i = 0; i < 100000 && left(); i++)
            step();
        if (left())
            fail("a packet cannot begin");
        for (int i = 0; i < 3000; i++)
            step();
        if (sides_[1].last + 1 != int64_t{sides_[0].next})
            fail("packets of A are missing");
        if (sides_[0].last + 1 != int64_t{sides_[1].next})
            fail("packets of B are missing");
        for (auto &side : sides_)
            if (credits(side) != kUnits)
                fail("credits leaked: " + std::to_string(credits(side)) + " at side " +
                     (&side == sides_ ? "A" : "B"));
    }

    unsigned credits(const Side &side) const
    {
        auto freed = get_bits(side.top->freed_o, kVc * kCountBits, kCountBits);
        return static_cast<uint8_t>(side.top->credits_o + freed - side.used);
    }

    void step()
    {
        for (auto &side : sides_)
            drive(side);
        for (auto &side : sides_) {
            side.top->clk_i = 0;
            side.top->eval();
        }
        for (unsigned s = 0; s < 2; s++) {
            Side &from = sides_[s], &to = sides_[1 - s];
            Word word;
            word.kind = from.top->phy_kind_o;
            word.data = from.top->phy_data_o;
            word = from.cable.pass(word, dead_[s], false, random_);
            to.top->phy_kind_i = word.kind;
            to.top->phy_data_i = word.data;
        }
        for (unsigned s = 0; s < 2; s++) {
            sides_[s].top->eval();
            collect(sides_[s], s == 1);
        }
        for (auto &side : sides_) {
            side.top->clk_i = 1;
            side.top->eval();
        }
    }

    void drive(Side &side)
    {
        Vvelo_link &top = *side.top;
        top.in_valid_i = 0;
        if (!top.rst_ni)
            return;
        if (side.place == 0) {
            if (side.to_send == 0 || top.in_stop_o || credits(side) < 3 || random_.below(4) == 0)
                return;
            side.to_send--;
            side.length = 2 + random_.below(14);
        }
        top.in_valid_i = 1;
        top.in_vc_i = kVc;
        top.in_sop_i = side.place == 0;
        top.in_data_i = word_of(side.next, side.place);
        if (side.place % 8 == 0)
            side.used++;
        top.in_eop_i = ++side.place == side.length;
        if (top.in_eop_i) {
            side.place = 0;
            side.next++;
        }
    }

    static uint32_t word_of(uint32_t number, unsigned place)
    {
        return place == 0 ? number : number * 0x9E3779B1U + place;
    }

    void collect(Side &side, bool at_b)
    {
        Vvelo_link &top = *side.top;
        if (!top.rst_ni || !top.out_valid_o)
            return;
        if ((top.out_sop_o != 0) != side.arriving.empty())
            fail("a packet began inside another");
        side.arriving.push_back(top.out_data_o);
        if (!top.out_eop_o)
            return;
        bench::Words words;
        words.swap(side.arriving);
        bool cut_off = words.size() > 1 && top.out_again_o;
        if (!cut_off) // its units come back
            set_bits(top.out_freed_i, kVc * kCountBits, kCountBits,
                     side.freed = static_cast<uint8_t>(side.freed + (words.size() + 7) / 8));
        if (top.out_poison_o)
            return;
        int64_t number = words[0], missing = number - side.last - 1;
        for (unsigned i = 0; i < words.size(); i++)
            if (words[i] != word_of(words[0], i))
                fail("a packet is damaged");
        if (missing < 0)
            fail("a packet came twice, or out of order");
        if (at_b) {
            if (missing && !restarted_)
                fail("a packet is lost without a restart");
            missing_ += static_cast<uint64_t>(missing);
            restarted_ = false;
        }
        side.last = number;
        arrived_++;
    }
};

} // namespace

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    unsigned rounds = 20;
    for (const auto &[name, value] : bench::options_of(argc, argv, 1)) {
        if (name == "--seed")
            seed = bench::number<uint64_t>(value);
        else if (name == "--rounds")
            rounds = bench::count<unsigned>(value);
        else
            fail("bench_pair [--seed N] [--rounds N]");
    }
    Pair pair(seed);
    pair.run(rounds);
    return 0;
}
