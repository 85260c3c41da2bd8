// SPDX-License-Identifier: Apache-2.0
//
// Two sides, a cable of bits between them, and in each place a clock of its own.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <memory>
#include <vector>

#include "harness.h"

namespace bench
{

// Which parameters the model was built with.
inline unsigned lanes, lane_bits, wire_bits;
inline bool crossing;

constexpr uint64_t kPeriodFs = 6'410'256; // 156 MHz

// The bits of one lane under way.
struct Wire {
    std::deque<bool> bits;
    double error_rate = 0;
    bool cut = false;       // nothing but noise arrives
    int64_t flip_after = -1; // one wrong bit, so many bits from now
};

// A side's part of the cable. `top` has the wire side of a velo_pcs.
template <typename Side, typename Top> class Wires
{
  public:
    Top top;
    std::vector<Wire> in{4}; // towards this side
    Side *other = nullptr;
    Random random;
    uint64_t cycles = 0; // of the link port's clock

    explicit Wires(uint64_t seed) : random(seed)
    {
        top.rst_ni = 0;
        top.signal_i = (1U << lanes) - 1;
    }

    // A cycle of this side's serializer: its bits go to the other side.
    void after_tx_edge()
    {
        for (unsigned lane = 0; lane < lanes; lane++) {
            Wire &wire = other->in[lane];
            for (unsigned bit = 0; bit < wire_bits; bit++) {
                bool value = bench::get_bits(top.wire_o, lane * wire_bits + bit, 1);
                if (wire.cut)
                    value = random.below(2);
                if (wire.error_rate > 0 && random.unit() < wire.error_rate)
                    value = !value;
                if (wire.flip_after >= 0 && wire.flip_after-- == 0)
                    value = !value;
                wire.bits.push_back(value);
            }
        }
    }

    void before_rx_edge(unsigned lane)
    {
        Wire &wire = in[lane];
        for (unsigned bit = 0; bit < wire_bits; bit++) {
            bool value = false;
            if (!wire.bits.empty()) {
                value = wire.bits.front();
                wire.bits.pop_front();
            }
            bench::set_bits(top.wire_i, lane * wire_bits + bit, 1, value);
        }
    }
};

// Both sides and time. Clocks: 0 link port, 1 serializer, 2.. recovered, one a lane.
template <typename Side> class PairOf
{
  public:
    std::array<std::unique_ptr<Side>, 2> side;
    uint64_t now = 0;

    // Periods in ppm off the nominal; the link port's clock `link_ratio` times as fast as the serializer.
    PairOf(uint64_t seed, double ppm_a, double ppm_b, double link_ratio, bool tied = false)
    {
        for (int s = 0; s < 2; s++)
            side[s] = std::make_unique<Side>(seed + s);
        side[0]->other = side[1].get();
        side[1]->other = side[0].get();
        Random random(seed + 7);
        std::array<double, 2> ppm{ppm_a, ppm_b};
        for (int s = 0; s < 2; s++) {
            double word = kPeriodFs * (1 + ppm[s] * 1e-6);
            double far = kPeriodFs * (1 + ppm[1 - s] * 1e-6);
            period_[s][0] = static_cast<uint64_t>(std::llround(word / link_ratio));
            period_[s][1] = static_cast<uint64_t>(std::llround(word));
            if (!crossing)
                period_[s][0] = period_[s][1];
            for (unsigned c = 2; c < 6; c++)
                period_[s][c] = static_cast<uint64_t>(std::llround(far));
            for (unsigned c = 0; c < 6; c++)
                edge_[s][c] = kPeriodFs + (tied || (c == 1 && !crossing)
                                               ? 0
                                               : random.below(kPeriodFs));
            if (!crossing)
                edge_[s][1] = edge_[s][0];
        }
        for (auto &one : side)
            one->top.eval();
    }

    void step()
    {
        uint64_t at = ~0ULL;
        for (int s = 0; s < 2; s++)
            for (unsigned c = 0; c < 2 + lanes; c++)
                if (!stopped[s][c])
                    at = std::min(at, edge_[s][c]);
        now = at;
        std::array<std::array<bool, 6>, 2> rises{};
        for (int s = 0; s < 2; s++)
            for (unsigned c = 0; c < 2 + lanes; c++) {
                rises[s][c] = edge_[s][c] == at && !stopped[s][c];
                if (edge_[s][c] <= at)
                    edge_[s][c] += period_[s][c];
            }
        for (int s = 0; s < 2; s++) {
            Side &one = *side[s];
            if (rises[s][0])
                one.before_link_edge();
            for (unsigned lane = 0; lane < lanes; lane++)
                if (rises[s][2 + lane])
                    one.before_rx_edge(lane);
            one.top.eval();
        }
        for (int s = 0; s < 2; s++) {
            clocks(s, rises[s]);
            side[s]->top.eval();
            if (rises[s][0])
                side[s]->after_link_edge();
        }
        for (int s = 0; s < 2; s++)
            if (rises[s][1])
                side[s]->after_tx_edge();
        for (int s = 0; s < 2; s++) {
            clocks(s, {});
            side[s]->top.eval();
        }
    }

    void run(uint64_t cycles)
    {
        for (uint64_t end = side[0]->cycles + cycles; side[0]->cycles < end;)
            step();
    }

    void start()
    {
        run(4);
        for (auto &one : side)
            one->top.rst_ni = 1;
    }

    bool up() const { return side[0]->top.up_o && side[1]->top.up_o; }

    void send(bool on)
    {
        for (auto &one : side)
            one->sending = on;
    }

    void set_errors(double rate)
    {
        for (auto &one : side)
            for (auto &wire : one->in)
                wire.error_rate = rate;
    }

    std::array<std::array<bool, 6>, 2> stopped{};

  private:
    void clocks(int s, const std::array<bool, 6> &rises)
    {
        auto &top = side[s]->top;
        top.clk_i = rises[0];
        top.tx_clk_i = rises[1];
        unsigned rx = 0;
        for (unsigned lane = 0; lane < lanes; lane++)
            rx |= rises[2 + lane] << lane;
        top.rx_clk_i = rx;
    }

    std::array<std::array<uint64_t, 6>, 2> period_{}, edge_{};
};

} // namespace bench
