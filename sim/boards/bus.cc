// SPDX-License-Identifier: Apache-2.0
#include "bus.h"

#include <algorithm>
#include <bit>

namespace sim
{

namespace
{

enum Command : uint8_t { kMode, kRefresh, kPrecharge, kActivate, kWrite, kRead };
constexpr uint64_t kA10 = 1 << 10; // with a precharge: of all banks
constexpr uint64_t kBeats = kLineWords / 2;
constexpr uint64_t kClLsb = 4; // in the mode register
constexpr uint64_t kInterleaved = 1 << 3;

uint64_t bank_of(uint64_t word) { return word / kBusColumns % kBusBanks; }
uint64_t row_of(uint64_t word) { return word / kBusColumns / kBusBanks; }

} // namespace

void Bus::command(uint64_t clock, uint8_t command, uint64_t bank, uint64_t address)
{
    Pins &pins = slot(clock).pins;
    pins.selected = true;
    pins.command = command;
    pins.bank = static_cast<uint8_t>(bank);
    pins.address = static_cast<uint16_t>(address);
}

uint64_t Bus::set_up(uint64_t clock)
{
    refresh_due_ = clock + kBusRefresh;
    command(clock, kMode, 0,
            kBusCl << kClLsb | kInterleaved | static_cast<uint64_t>(std::countr_zero(kLineWords)));
    return clock + 1 + kBusMrd;
}

uint64_t Bus::refresh(uint64_t clock)
{
    for (unsigned bank = 0; bank < kBusBanks; bank++)
        if (open_[bank])
            clock = std::max(clock, next_precharge_[bank]);
    command(clock, kPrecharge, 0, kA10);
    open_.fill(false);
    clock =
        std::max(clock + kBusRp, *std::max_element(next_activate_.begin(), next_activate_.end()));
    command(clock, kRefresh, 0, 0);
    next_activate_.fill(clock + kBusRfc);
    refresh_due_ += kBusRefresh;
    return clock + 1;
}

uint64_t Bus::open(uint64_t clock, uint64_t bank, uint64_t row)
{
    if (clock >= refresh_due_)
        clock = refresh(clock);
    if (open_[bank] && rows_[bank] == row)
        return clock;
    if (open_[bank]) {
        clock = std::max(clock, next_precharge_[bank]);
        command(clock, kPrecharge, bank, 0);
        next_activate_[bank] = std::max(next_activate_[bank], clock + kBusRp);
        clock++;
    }
    clock = std::max({clock, next_activate_[bank], next_any_activate_});
    command(clock, kActivate, bank, row);
    open_[bank] = true;
    rows_[bank] = row;
    next_activate_[bank] = clock + kBusRc;
    next_any_activate_ = clock + kBusRrd;
    next_precharge_[bank] = clock + kBusRas;
    next_read_ = std::max(next_read_, clock + kBusRcd);
    next_write_ = std::max(next_write_, clock + kBusRcd);
    return clock + 1;
}

uint64_t Bus::read(uint64_t clock, uint64_t word)
{
    uint64_t bank = bank_of(word);
    clock = std::max(open(clock, bank, row_of(word)), next_read_);
    command(clock, kRead, bank, word % kBusColumns);
    next_read_ = clock + kBeats;
    next_write_ = std::max(next_write_, clock + kBusCl + kBeats);
    next_precharge_[bank] = std::max(next_precharge_[bank], clock + kBeats);
    for (uint64_t beat = 0; beat < kBeats; beat++)
        slot(clock + kBusCl + beat).is_read = true;
    read_first_ = word % kLineWords;
    heard_ = 0;
    driven_ = true;
    return clock + kBusCl + kBeats;
}

uint64_t Bus::write(uint64_t clock, uint64_t word, const Line &line)
{
    word -= word % kLineWords;
    uint64_t bank = bank_of(word);
    clock = std::max(open(clock, bank, row_of(word)), next_write_);
    command(clock, kWrite, bank, word % kBusColumns);
    // Of a clock's data, the pads' registers have both halves a clock later.
    for (uint64_t beat = 0; beat < kBeats; beat++) {
        Pins &pins = slot(clock + kBusWl + 1 + beat).pins;
        const Lane &rise = line[2 * beat], &fall = line[2 * beat + 1];
        pins.rise = rise.word;
        pins.fall = fall.word;
        pins.rise_mask = rise.written ? 0 : 0xFF;
        pins.fall_mask = fall.written ? 0 : 0xFF;
    }
    uint64_t end = clock + kBusWl + kBeats;
    next_write_ = clock + kBeats;
    next_read_ = std::max(next_read_, end + kBusWtr);
    next_precharge_[bank] = std::max(next_precharge_[bank], end + kBusWr);
    return clock + 1;
}

Pins Bus::take(uint64_t clock)
{
    Pins pins = slot(clock).pins;
    slot(clock).pins = {};
    return pins;
}

void Bus::hear(uint64_t clock, const BoardOutputs &outputs)
{
    if (!slot(clock).is_read)
        return;
    slot(clock).is_read = false;
    driven_ = driven_ && outputs.driven;
    heard_words_[read_first_ ^ heard_++] = outputs.rise;
    heard_words_[read_first_ ^ heard_++] = outputs.fall;
}

bool Bus::words(std::array<uint64_t, kLineWords> &words) const
{
    words = heard_words_;
    return driven_ && heard_ == kLineWords;
}

} // namespace sim
