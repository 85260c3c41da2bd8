// SPDX-License-Identifier: Apache-2.0
//
// Two link ports over their PCS and a cable of bits: packets both ways, exactly once and in order, with
// wrong bits, bits that slip, cables cut, and clocks that differ.
//
//   bench_link LANES LANE_BITS WIRE_BITS SEED
//
// Prints the payload of the wire's words that packets of 64 bytes reach, as JSON.

#include "Vpcs_link.h"
#include "wires.h"

using bench::fail;
using bench::lane_bits;
using bench::lanes;
using bench::wire_bits;

namespace
{

class Side : public bench::Wires<Side, Vpcs_link>
{
  public:
    std::deque<std::vector<uint32_t>> expected; // packets that the other side sent
    bool sending = false;
    unsigned packet_words = 0; // 0: of any length
    uint64_t packets = 0, words = 0, cut_off = 0;

    explicit Side(uint64_t seed) : Wires(seed) {}

    void before_link_edge()
    {
        cycles++;
        top.in_valid_i = 0;
        if (stop_ || (!sending && place_ == 0))
            return;
        if (place_ == 0) {
            // At most what a frame holds.
            unsigned length = packet_words ? packet_words
                                           : 2 + random.below(std::min(40U, 136 * 32 / (lanes * lane_bits) - 2));
            packet_.clear();
            for (unsigned word = 0; word < length; word++)
                packet_.push_back(static_cast<uint32_t>(random.next()));
            other->expected.push_back(packet_);
        }
        top.in_valid_i = 1;
        top.in_sop_i = place_ == 0;
        top.in_eop_i = place_ + 1 == packet_.size();
        // The word, in each 32 bits of the path, all different.
        for (unsigned part = 0; part < lanes * lane_bits / 32; part++)
            bench::set_bits(top.in_data_i, 32 * part, 32, packet_[place_] + part);
        place_ = top.in_eop_i ? 0 : place_ + 1;
    }

    void after_link_edge()
    {
        stop_ = top.in_stop_o;
        if (!top.out_valid_o)
            return;
        words++;
        auto first = static_cast<uint32_t>(bench::get_bits(top.out_data_o, 0, 32));
        for (unsigned part = 0; part < lanes * lane_bits / 32; part++)
            if (bench::get_bits(top.out_data_o, 32 * part, 32) != uint32_t(first + part))
                torn_ = true;
        if (top.out_sop_o != got_.empty())
            fail("the beginning of a packet out of place");
        got_.push_back(first);
        if (!top.out_eop_o)
            return;
        if (top.out_poison_o != top.out_again_o)
            fail("a packet is poisoned that was not when it went in");
        if (top.out_again_o) { // cut off by a disturbance; the whole of it comes once more
            got_.clear();
            torn_ = false;
            cut_off++;
            return;
        }
        if (torn_)
            fail("parts of a word that do not belong together");
        if (expected.empty() || expected.front() != got_)
            fail("packet " + std::to_string(packets) + " is not the one that was due");
        expected.pop_front();
        got_.clear();
        packets++;
    }

  private:
    std::vector<uint32_t> packet_, got_;
    size_t place_ = 0;
    bool stop_ = true, torn_ = false;
};

using Pair = bench::PairOf<Side>;

void wait_for(Pair &pair, uint64_t limit, const char *what, bool (*holds)(Pair &))
{
    for (uint64_t end = pair.side[0]->cycles + limit; !holds(pair);) {
        pair.step();
        if (pair.side[0]->cycles < end)
            continue;
        for (auto &one : pair.side)
            std::fprintf(stderr, "up %u (PCS %u, refusal %u), %lu packets due, errors %u %u, ends of lock %u, %u replays, "
                                 "%u timeouts\n",
                         one->top.up_o, one->top.phy_up_o, one->top.refuse_o,
                         one->expected.size(), one->top.code_errors_o,
                         one->top.disparity_errors_o, one->top.lock_losses_o, one->top.replays_o,
                         one->top.timeouts_o);
        fail(what);
    }
}

bool all_up(Pair &pair) { return pair.up(); }
bool all_there(Pair &pair)
{
    return pair.side[0]->expected.empty() && pair.side[1]->expected.empty();
}

constexpr uint64_t kLong = 100000;

double payload_efficiency()
{
    Pair pair(1, 0, 0, 1);
    pair.start();
    wait_for(pair, kLong, "the link does not come up", all_up);
    unsigned words = (64 + 8) * 8 / (lanes * lane_bits); // a header of 8 bytes
    pair.side[0]->packet_words = words;
    pair.side[0]->sending = true;
    pair.run(1000);
    uint64_t before = pair.side[1]->packets;
    pair.run(20000);
    double bytes = 64.0 * static_cast<double>(pair.side[1]->packets - before);
    return bytes / (20000.0 * lanes * lane_bits / 8);
}

void torment(uint64_t seed, double rate, double ppm, bool slips)
{
    Pair pair(seed, ppm, -ppm, 1);
    bench::Random random(seed + 1);
    pair.start();
    wait_for(pair, kLong, "the link does not come up", all_up);
    // Until a side has heard idle words it does not know that the other one is up, too; a link that
    // goes down before is refused for good (velo_link_init).
    pair.run(500);
    pair.set_errors(rate);
    pair.send(true);
    for (int turn = 0; turn < 12; turn++) {
        pair.run(1000 + random.below(2000));
        Side &one = *pair.side[random.below(2)];
        unsigned lane = random.below(lanes);
        if (!slips)
            continue;
        if (turn % 3 == 0) {
            one.in[lane].bits.push_front(false);
        } else if (turn % 3 == 1) {
            one.in[lane].cut = true;
            pair.run(random.below(400));
            one.in[lane].cut = false;
        } else {
            one.top.signal_i = 0;
            pair.run(random.below(400));
            one.top.signal_i = (1U << lanes) - 1;
        }
    }
    pair.send(false);
    pair.set_errors(0);
    wait_for(pair, kLong, "packets do not arrive", all_there);
    for (auto &one : pair.side) {
        if (one->packets < (rate < 5e-5 ? 200 : 20))
            fail("only " + std::to_string(one->packets) + " packets");
        if (one->top.lost_words_o)
            fail("words found no room");
    }
    Side &one = *pair.side[0];
    if (rate > 1e-5 && one.top.crc_errors_o + one.top.replays_o == 0)
        fail("errors were not noticed");
    if (slips && one.top.lock_losses_o + pair.side[1]->top.lock_losses_o == 0)
        fail("no lock was lost");
    std::fprintf(stderr, "rate %g, %g ppm: %lu packets, %u frames with errors\n", rate, ppm,
                 one.packets + pair.side[1]->packets, one.top.crc_errors_o);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 5)
        fail("usage: bench_link LANES LANE_BITS WIRE_BITS SEED");
    lanes = bench::number<unsigned>(argv[1]);
    lane_bits = bench::number<unsigned>(argv[2]);
    wire_bits = bench::number<unsigned>(argv[3]);
    bench::crossing = true;
    uint64_t seed = bench::number<uint64_t>(argv[4]);

    const double payload = payload_efficiency();
    torment(seed, 0, 100, false);
    torment(seed + 10, 1e-5, -100, false);
    torment(seed + 20, 1e-4, 100, true);
    torment(seed + 30, 0, -300, true);
    if (wire_bits == 40)
        torment(seed + 40, 1e-3 / lanes, 100, false);
    std::printf("{\"payload\": %.4f}\n", payload);
    return 0;
}
