// SPDX-License-Identifier: Apache-2.0
#include "boards.h"

#include <algorithm>

#include "velo/dimmnet_spec.h"

namespace sim
{

namespace
{

// 5 m of cable, 5 ns each, and 265 ns for the serializers of both ends, assumed; and what a switch
// takes (paper, section 4.2). As rtl/dimmnet_board/test has them.
constexpr uint64_t kWireCycles = 29, kSwitchCycles = 39;
constexpr uint64_t kResetCycles = 4;
// SO-DIMMs have been set up, and old packets have left the network.
constexpr uint64_t kPeersCycles = 800, kReadyCycles = 1000;
// Longer than anything takes of which nothing shows: SWIF repeats a packet after 2 * 4096 cycles.
constexpr uint64_t kRestCycles = 10000;
constexpr unsigned kLidBits = 4; // boards are peers if their LIDs have the rest in common

static_assert(SIM_LLCM_BYTES == 8 * VELO_DIMMNET_LLCM_WORDS);
static_assert(SIM_BOARD_PROCESSES == VELO_DIMMNET_PROCESSES);
static_assert(SIM_SLOT_WORDS == VELO_DIMMNET_WINDOW_WORDS);

uint64_t privileged_word(uint64_t number)
{
    return velo_dimmnet_slot_pack(static_cast<uint16_t>(8 * number), 0, 0, true) / 8;
}

} // namespace

Boards::Boards(unsigned count, uint8_t *memory)
    : boards_(count), memory_(memory),
      network_(count, count > 2 ? kWireCycles + kSwitchCycles : kWireCycles,
               [this](unsigned lid) { return find(lid); })
{
}

unsigned Boards::find(unsigned lid) const
{
    auto found = std::find_if(boards_.begin(), boards_.end(),
                              [&](const Board &board) { return board.model && board.lid == lid; });
    return static_cast<unsigned>(found - boards_.begin());
}

// ----- boards come and go

int32_t Boards::open(int pid, uint64_t lid, uint64_t ticket, uint64_t cycle, uint64_t &number)
{
    unsigned place = size();
    for (unsigned b = 0; b < size(); b++) {
        const Board &board = boards_[b];
        if (board.pid != 0 && board.lid % (1U << kLidBits) == lid % (1U << kLidBits))
            return SIM_ERR_CALL;
        if (board.pid == 0 && (place == size() || board.closed < boards_[place].closed))
            place = b;
    }
    if (lid == 0 || lid > UINT16_MAX)
        return SIM_ERR_CALL;
    if (place == size())
        return SIM_ERR_FULL;
    for (unsigned b = 0; b < size(); b++)
        if (b == place || boards_[b].lid % (1U << kLidBits) == lid % (1U << kLidBits))
            switch_off(b);
    // The others begin anew with it; SWIF's README says why.
    for (unsigned b = 0; b < size(); b++)
        if (boards_[b].model) {
            errands_.push_back({cycle, b, 1U << lid % (1U << kLidBits)});
            errands_.push_back({cycle + kPeersCycles, b, 0});
        }
    Board &board = boards_[place];
    board.model = make_board_model();
    board.pc = std::make_unique<Pc>();
    board.pid = pid;
    board.lid = static_cast<unsigned>(lid);
    board.opened_cycle = board.active_cycle = cycle;
    board.ticket = ticket;
    std::fill_n(memory_ + place * uint64_t{SIM_BOARD_BYTES}, SIM_BOARD_BYTES, uint8_t{0});
    number = place;
    return SIM_OK;
}

int32_t Boards::close(int pid, uint64_t number)
{
    if (number >= size() || boards_[number].pid != pid)
        return SIM_ERR_CALL;
    boards_[number].pid = 0;
    boards_[number].closed = ++closings_;
    return SIM_OK;
}

void Boards::bury(int pid)
{
    for (unsigned b = 0; b < size(); b++)
        (void)close(pid, b);
}

void Boards::switch_off(unsigned number)
{
    Board &board = boards_[number];
    board.model.reset();
    board.pc.reset();
    board.lid = 0;
    network_.forget(number);
    std::erase_if(errands_, [&](const Errand &errand) { return errand.board == number; });
}

// ----- accesses

int32_t Boards::begin(uint64_t number, const Access &access)
{
    if (number >= size() || !boards_[number].model)
        return SIM_ERR_NODE;
    boards_[number].pc->begin(access);
    return SIM_OK;
}

bool Boards::is_idle() const
{
    return std::all_of(boards_.begin(), boards_.end(), [](const Board &board) {
        return !board.model || (board.ticket == 0 && board.pc->is_idle());
    });
}

// ----- cycles

bool Boards::rests(unsigned number, uint64_t cycle) const
{
    const Board &board = boards_[number];
    return !board.model || (board.pc->is_idle() && network_.is_empty(number) &&
                            cycle > board.active_cycle + kRestCycles);
}

bool Boards::rest(uint64_t cycle) const
{
    for (unsigned b = 0; b < size(); b++)
        if (!rests(b, cycle))
            return false;
    return errands_.empty();
}

void Boards::run_errands(uint64_t cycle)
{
    for (const Errand &errand : errands_)
        if (errand.cycle <= cycle)
            boards_[errand.board].pc->write(cycle * kBusClockPs,
                                            privileged_word(VELO_DIMMNET_PRIVILEGED_PEERS_STOP),
                                            errand.peers_stop);
    std::erase_if(errands_, [&](const Errand &errand) { return errand.cycle <= cycle; });
}

void Boards::step(uint64_t cycle)
{
    run_errands(cycle);
    for (unsigned b = 0; b < size(); b++)
        if (!rests(b, cycle))
            step_board(b, cycle);
}

void Boards::step_board(unsigned number, uint64_t cycle)
{
    Board &board = boards_[number];
    uint64_t age = cycle - board.opened_cycle;
    if (age == kResetCycles) {
        board.model->set_reset(false);
        board.pc->set_up(cycle);
    }
    if (age == kReadyCycles && board.ticket) {
        Access ready;
        ready.ticket = std::exchange(board.ticket, 0);
        ready.time_ps = cycle * kBusClockPs;
        done_.push_back(ready);
    }
    Pins pins = age < kResetCycles ? Pins{} : board.pc->drive(cycle);
    NetWord in = network_.take(number, cycle);
    BoardOutputs outputs;
    board.model->step(pins, in, outputs);
    evaluated_++;
    board.pc->hear(cycle, outputs);
    network_.give(number, cycle, outputs.net);
    if (outputs.llcm)
        see_llcm(number, outputs);
    if (pins.selected || in.valid || outputs.net.valid || outputs.llcm || outputs.ring_is_full ||
        age < kReadyCycles)
        board.active_cycle = cycle;
    for (Access &access : board.pc->take_done())
        done_.push_back(access);
}

// What a process would load from now on, and what the board has.
void Boards::see_llcm(unsigned number, const BoardOutputs &outputs)
{
    constexpr unsigned kRowBytes = 16;
    uint8_t *seen = memory_ + number * uint64_t{SIM_BOARD_BYTES} + outputs.llcm_row * kRowBytes;
    uint8_t *held = seen + SIM_BOARD_PROCESSES * SIM_LLCM_BYTES;
    for (unsigned byte = 0; byte < kRowBytes; byte++)
        if (outputs.llcm_bytes >> byte & 1)
            seen[byte] = held[byte] =
                static_cast<uint8_t>(outputs.llcm_words[byte / 8] >> 8 * (byte % 8));
}

} // namespace sim
