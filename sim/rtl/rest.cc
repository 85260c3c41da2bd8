// SPDX-License-Identifier: Apache-2.0
#include "rest.h"

#include <algorithm>
#include <cstring>

namespace sim
{

namespace
{

bool carries_data(const PhyWords &words)
{
    return std::any_of(std::begin(words), std::end(words),
                       [](const PhyWord &word) { return word.kind == 0; });
}

} // namespace

void Rest::watch(uint64_t cycle, const PhyWords &in, const PhyWords &out, bool idle,
                 const AnyModel &model)
{
    std::copy(std::begin(in), std::end(in), std::begin(in_[cycle % kPeriod].at));
    std::copy(std::begin(out), std::end(out), std::begin(out_[cycle % kPeriod].at));
    if (!idle || carries_data(in) || carries_data(out)) {
        has_snapshot_ = false;
        failures_ = 0;
        look_cycle_ = cycle + kSettleCycles;
    } else if (cycle >= look_cycle_) {
        look(cycle, model);
    }
}

void Rest::look(uint64_t cycle, const AnyModel &model)
{
    const auto *state = static_cast<const uint8_t *>(model.state());
    size_t bytes = model.state_bytes();
    if (has_snapshot_ && std::memcmp(snapshot_.data(), state, bytes) == 0) {
        begin(cycle);
        return;
    }
    if (has_snapshot_ && ++failures_ >= kFailures) {
        has_snapshot_ = false;
        look_cycle_ = cycle + kPatienceCycles;
        return;
    }
    snapshot_.assign(state, state + bytes);
    has_snapshot_ = true;
    look_cycle_ = cycle + kPeriod;
}

// The records begin with the words of the next cycle, which equal those of kPeriod cycles earlier.
void Rest::begin(uint64_t cycle)
{
    auto next = static_cast<unsigned>((cycle + 1) % kPeriod);
    std::rotate(in_, in_ + next, in_ + kPeriod);
    std::rotate(out_, out_ + next, out_ + kPeriod);
    resting_ = true;
    has_snapshot_ = false;
    since_cycle_ = cycle + 1;
    place_ = 0;
}

bool Rest::fits(const PhyWords &in) const
{
    return std::equal(std::begin(in), std::end(in), std::begin(in_[place_].at));
}

void Rest::pass(PhyWords &out)
{
    std::copy(std::begin(out_[place_].at), std::end(out_[place_].at), std::begin(out));
    place_ = (place_ + 1) % kPeriod;
}

// out_[p] leaves in the cycle after that of place p; the next cycle has place place_.
PhyWord Rest::sent(unsigned link, uint64_t back) const
{
    return out_[(place_ + 2 * kPeriod - 1 - back % kPeriod) % kPeriod].at[link];
}

std::vector<const PhyWords *> Rest::wake()
{
    std::vector<const PhyWords *> words;
    words.reserve(place_);
    for (unsigned p = 0; p < place_; p++)
        words.push_back(&in_[p].at);
    resting_ = false;
    failures_ = 0;
    look_cycle_ = 0;
    return words;
}

} // namespace sim
