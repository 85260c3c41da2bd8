// SPDX-License-Identifier: Apache-2.0
//
// Boards of DIMMnet-2, each in the memory slot of a PC of its own, and the network between them.
// Knows no processes but as owners of boards.
//
// A board that comes to rest has its clock stopped until somebody accesses it or a packet comes.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../../spec/sim_channel.h"
#include "model.h"
#include "network.h"
#include "pc.h"

namespace sim
{

class Boards
{
  public:
    // `memory`: SIM_BOARD_BYTES for each board.
    Boards(unsigned count, uint8_t *memory);

    unsigned size() const { return static_cast<unsigned>(boards_.size()); }

    // Switch a board on, in the cycle that is next. The access of this ticket ends when it is
    // ready. SIM_ERR_FULL, SIM_ERR_CALL: another board has that LID, or one that is the same for
    // it.
    int32_t open(int pid, uint64_t lid, uint64_t ticket, uint64_t cycle, uint64_t &number);
    // Nobody has it any more. It goes on until its place or LID is taken. SIM_ERR_CALL.
    int32_t close(int pid, uint64_t number);
    void bury(int pid);
    // SIM_ERR_NODE: there is no such board, or it is off.
    int32_t begin(uint64_t number, const Access &access);

    void step(uint64_t cycle);
    // Accesses that have ended since the last time.
    std::vector<Access> take_done() { return std::exchange(done_, {}); }
    // No access is under way.
    bool is_idle() const;
    // All rest: cycles need not be stepped.
    bool rest(uint64_t cycle) const;
    const NetTotals &totals() const { return network_.totals(); }
    uint64_t evaluated() const { return evaluated_; }

  private:
    struct Board {
        std::unique_ptr<BoardModel> model; // none: off
        std::unique_ptr<Pc> pc;
        int pid = 0; // whose; 0: nobody's
        unsigned lid = 0;
        uint64_t closed = 0; // in what order boards were closed
        uint64_t opened_cycle = 0, active_cycle = 0;
        uint64_t ticket = 0; // of the opening
    };
    // A privileged register that whoever looks after the boards writes at a time.
    struct Errand {
        uint64_t cycle = 0;
        unsigned board = 0;
        uint64_t peers_stop = 0;
    };

    std::vector<Board> boards_;
    uint8_t *memory_;
    Network network_;
    std::vector<Access> done_;
    std::vector<Errand> errands_;
    uint64_t closings_ = 0, evaluated_ = 0;

    unsigned find(unsigned lid) const;
    void switch_off(unsigned number);
    void run_errands(uint64_t cycle);
    bool rests(unsigned number, uint64_t cycle) const;
    void step_board(unsigned number, uint64_t cycle);
    void see_llcm(unsigned number, const BoardOutputs &outputs);
};

} // namespace sim
