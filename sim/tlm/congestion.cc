// SPDX-License-Identifier: Apache-2.0
#include "congestion.h"

#include <algorithm>

namespace tlm
{

namespace
{

constexpr unsigned kLevelMax = 39;        // LevelMax, velo_congestion_pkg.sv
constexpr unsigned kWalkNodes = 256;      // destinations of a walk, velo_congestion_throttle.sv
constexpr Cycle kGapMax = (1U << 17) - 1; // half the range of times, velo_congestion_throttle.sv
constexpr Cycle kLookUp = 2;              // of a packet whose destination has a level: StRead

// gap() of velo_congestion_pkg.sv: cycles after each unit.
Cycle gap(unsigned level) { return level ? Cycle{4 + level % 4} << (level / 4) : 0; }

// rounds() there: of so many walks, less one, one lowers the level.
uint64_t rounds(unsigned level) { return level > 36 ? 3 : level > 28 ? 1 : 0; }

} // namespace

Congestion::Congestion(const CongestionParams &params, unsigned nodes, size_t outputs)
    : params_(params), pressures_(outputs), next_notice_(nodes), levels_(nodes)
{
}

// Between nothing and twice the threshold, a step a cycle.
void Congestion::settle(Pressure &pressure, Cycle now) const
{
    Cycle steps = now - pressure.since, count = pressure.count;
    if (pressure.pressed)
        count = std::min<Cycle>(count + steps, 2 * Cycle{params_.mark_cycles});
    else
        count -= std::min(count, steps);
    pressure.count = static_cast<uint32_t>(count);
    pressure.since = now;
}

void Congestion::press(uint32_t out, bool pressed, Cycle now)
{
    Pressure &pressure = pressures_[out];
    settle(pressure, now);
    pressure.pressed = pressed;
}

bool Congestion::marks(uint32_t out, Cycle now)
{
    settle(pressures_[out], now);
    return pressures_[out].pressed && pressures_[out].count >= params_.mark_cycles;
}

bool Congestion::gives_notice(unsigned node, Cycle now)
{
    if (now < next_notice_[node])
        return false;
    next_notice_[node] = now + params_.notice_cycles + 1;
    return true;
}

// How often the walk has come by that destination.
uint64_t Congestion::walks(uint32_t to, Cycle now) const
{
    Cycle pace = params_.recover_cycles + Cycle{1};
    return (now / pace + kWalkNodes - to % kWalkNodes) / kWalkNodes;
}

Congestion::Level *Congestion::find(unsigned node, uint32_t to, Cycle now)
{
    auto place = levels_[node].find(to);
    if (place == levels_[node].end())
        return nullptr;
    Level &level = place->second;
    for (uint64_t passes = walks(to, now); level.level && level.walks < passes; level.walks++)
        if (!(level.walks & rounds(level.level))) {
            level.level--;
            level.units = params_.raise_units; // it may be raised by the next notice
        }
    if (level.level)
        return &level;
    levels_[node].erase(place);
    return nullptr;
}

Congestion::Pass Congestion::pass(unsigned node, uint32_t to, Cycle now)
{
    const Level *level = find(node, to, now);
    if (!level)
        return {now, 0};
    return {std::max(now + kLookUp, level->gap_end), level->level};
}

void Congestion::passed(unsigned node, uint32_t to, unsigned level, unsigned units, Cycle end)
{
    // A level that has fallen to zero meanwhile keeps nobody waiting.
    if (Level *entry = level ? find(node, to, end) : nullptr) {
        entry->gap_end = end + std::min(units * gap(level), kGapMax);
        entry->units += units;
    }
}

void Congestion::take_notice(unsigned node, uint32_t to, Cycle now)
{
    Level *level = find(node, to, now);
    if (!level) {
        level = &levels_[node][to];
        *level = {
            .gap_end = now, .walks = walks(to, now), .level = 0, .units = params_.raise_units};
    }
    if (level->units < params_.raise_units)
        return;
    level->units = 0;
    level->level = std::min(level->level + params_.increase, kLevelMax);
}

} // namespace tlm
