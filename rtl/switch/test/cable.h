// SPDX-License-Identifier: Apache-2.0
//
// A cable with its delay and its errors: what the benches of whole networks put between two PHYs.

#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness.h"

namespace bench
{

constexpr unsigned kKindData = 0, kKindCtl = 1, kKindEnd = 2;

struct Word {
    uint8_t kind = kKindCtl;
    uint32_t data = 0; // no valid control word
};

// Each bit falls over with probability `error_rate`; now and then a burst of garbage follows.
class Cable
{
  public:
    unsigned to_node = 0, to_link = 0;
    bool plugged = false;
    uint64_t bad_words = 0;

    void start(unsigned delay, double error_rate, Random &random)
    {
        under_way_.assign(delay, Word{});
        set_error_rate(error_rate, random);
    }

    void set_error_rate(double error_rate, Random &random)
    {
        error_rate_ = error_rate;
        bits_to_error_ = next_error(random);
    }

    // One cycle: a word goes in, the one from `delay` cycles ago comes out.
    Word pass(Word word, bool pulled, bool quiet, Random &random)
    {
        if (!quiet)
            disturb(word, random);
        under_way_.push_back(pulled ? Word{} : word);
        word = under_way_.front();
        under_way_.pop_front();
        return word;
    }

  private:
    uint64_t next_error(Random &random) const
    {
        if (error_rate_ <= 0)
            return ~0ULL;
        return static_cast<uint64_t>(std::log1p(-random.unit()) / std::log1p(-error_rate_));
    }

    void disturb(Word &word, Random &random)
    {
        Word was = word;
        if (burst_words_ > 0) {
            burst_words_--;
            word.kind = random.below(4);
            word.data = static_cast<uint32_t>(random.next());
        }
        uint64_t bits = 34;
        while (bits_to_error_ < bits) {
            unsigned bit = 34 - bits + bits_to_error_;
            if (bit < 32)
                word.data ^= 1U << bit;
            else
                word.kind ^= 1U << (bit - 32);
            bits -= bits_to_error_ + 1;
            bits_to_error_ = next_error(random);
            if (random.below(64) == 0)
                burst_words_ = 1 + random.below(40);
        }
        if (bits_to_error_ != ~0ULL)
            bits_to_error_ -= bits;
        bad_words += word.kind != was.kind || word.data != was.data;
    }

    std::deque<Word> under_way_;
    double error_rate_ = 0;
    uint64_t bits_to_error_ = ~0ULL;
    unsigned burst_words_ = 0;
};

// A file of tools/velo/cluster/routing.py: `nodes` grows as needed; each has `cables` and `hops`,
// `groups`, its ways by their numbers, and `barriers`, its settings by the groups' numbers.
template <typename Node> void read_topology(const std::string &path, std::vector<Node> &nodes)
{
    std::ifstream file(path);
    std::string line, kind;
    while (std::getline(file, line)) {
        std::istringstream text(line);
        unsigned a = 0, b = 0, c = 0, d = 0;
        text >> kind >> a >> b >> c >> d;
        if (nodes.size() <= a)
            nodes.resize(a + 1);
        if (kind == "cable") {
            nodes[a].cables[b].to_node = c;
            nodes[a].cables[b].to_link = d;
            nodes[a].cables[b].plugged = true;
        } else if (kind == "group") {
            if constexpr (requires { nodes[a].groups; })
                nodes[a].groups[b] = c;
        } else if (kind == "barrier") {
            if constexpr (requires { nodes[a].barriers; })
                nodes[a].barriers[b] = c;
        } else {
            nodes[a].hops.resize(b + 1);
            nodes[a].hops[b] = c;
        }
    }
    if (nodes.size() < 2)
        fail("no topology in " + path);
}

} // namespace bench
