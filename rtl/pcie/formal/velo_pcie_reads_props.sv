// SPDX-License-Identifier: Apache-2.0
//
// Promises of velo_pcie_reads, for completions of every kind at any time, asked for or not:
//
//   * A tag is in use once: no packet asks with a tag for which the host still owes anything, whatever became of the
//     read (answered, failed, timed out). So a late completion never reaches another read.
//   * A read is answered with words only when all its pieces have come, none of them void.
//   * Every read is answered once, and nothing else is: as many answers as reads, at most `Slots` and one open.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_pcie_reads_props
  import htax_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
#(
    parameter int unsigned Slots = 2
) (
    input logic                   clk_i,
    input logic                   rst_ni,
    input config_t                config_i,
    input logic                   discard_i,
    input logic            [23:0] timeout_i,
    input logic                   read_valid_i,
    input logic            [15:0] read_id_i,
    input logic    [AddrBits-1:0] read_addr_i,
    input logic            [ 7:0] read_beats_i,
    input logic                   answer_ready_i,
    input answer_t                answer_i,
    input logic                   tx_ready_i
);

  logic read_ready, answer_valid, answer_last, answer_error;
  logic unexpected, failed, late, idle;
  logic [15:0] answer_id;
  logic [63:0] answer_data;
  logic [Slots-1:0] lost;
  tlp_beat_t tx;

  velo_pcie_reads #(
      .Slots(Slots)
  ) u_dut (
      .forget_i      (1'b0),
      .read_ready_o  (read_ready),
      .answer_valid_o(answer_valid),
      .answer_id_o   (answer_id),
      .answer_last_o (answer_last),
      .answer_error_o(answer_error),
      .answer_data_o (answer_data),
      .tx_o          (tx),
      .lost_o        (lost),
      .unexpected_o  (unexpected),
      .failed_o      (failed),
      .timeout_o     (late),
      .idle_o        (idle),
      .*
  );

  // ----- the surroundings -----------------------------------------------------------------------

  logic past_q;
  logic [2:0] max_read_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q     <= 1'b1;
    max_read_q <= config_i.max_read;
  end
  always_comb assume (past_q || !rst_ni);
  `VELO_ASSUME(Constant, max_read_q == config_i.max_read)
  `VELO_ASSUME(NoLongerThanASlot, read_beats_i <= 8'd64)

  // ----- what the host owes, by tag, told from the packets alone ----------------------------------

  logic [7:0][Slots-1:0] owed_q;  // piece, slot
  logic [7:0] tag_q;              // of the packet that leaves
  logic [$clog2(Slots)-1:0] slot, its_slot;
  logic [2:0] piece, its_piece;
  logic tx_take, in_q;
  assign tx_take = tx.valid && tx_ready_i;
  assign {slot, piece} = tx.data[40+:$clog2(Slots)+3];
  assign {its_slot, its_piece} = answer_i.tag[$clog2(Slots)+2:0];
  logic ends;
  assign ends = answer_i.end_valid && answer_i.mine && answer_i.tag[7:$clog2(Slots)+3] == '0 &&
      (answer_i.refused || {answer_i.length, 2'b0} >= answer_i.byte_count);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_q   <= 1'b0;
      owed_q <= '0;
    end else begin
      if (tx_take) in_q <= !tx.last;
      if (ends) owed_q[its_piece][its_slot] <= 1'b0;
      // The host may answer once it has the header's first beat.
      if (tx_take && !in_q) owed_q[piece][slot] <= 1'b1;
    end
  end
  `VELO_ASSERT(NoTagTwice, !(tx_take && !in_q) || !owed_q[piece][slot])
  // Nothing is answered before it is asked for.
  `VELO_ASSUME(NotBefore, !answer_i.end_valid || !tx.valid || in_q ||
               answer_i.tag != tx.data[47:40])

  // ----- answers --------------------------------------------------------------------------------

  logic [7:0] open_q;
  logic words;
  assign words = answer_valid && !answer_error;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= '0;
    else open_q <= open_q + 8'(read_valid_i && read_ready) -
        8'(answer_valid && answer_ready_i && answer_last);
  end
  `VELO_ASSERT(AnswersOnlyReads, !answer_valid || open_q != '0)
  `VELO_ASSERT(NoMoreThanSlots, open_q <= 8'(Slots) + 8'd1)
  logic [7:0] owed_here;
  always_comb begin
    for (int unsigned p = 0; p < 8; p++) owed_here[p] = owed_q[p][u_dut.given_slot_q];
  end
  `VELO_ASSERT(WordsAreWhole, !words || (owed_here == '0 && !u_dut.error_q[u_dut.given_slot_q]))

  // ----- for the induction ------------------------------------------------------------------------

  logic [7:0] held;
  always_comb begin
    held = 8'(u_dut.give_q == 2'd3);
    for (int unsigned s = 0; s < Slots; s++) held += 8'(u_dut.held_q[s]);
  end
  `VELO_ASSERT(TieOpen, open_q == held)
  `VELO_ASSERT(TieGiven, u_dut.give_q inside {2'd0, 2'd3} ||
               (u_dut.held_q[u_dut.given_slot_q] && u_dut.asked_q[u_dut.given_slot_q]))
  `VELO_ASSERT(TieAsking, u_dut.state_q == 2'd0 ||
               (u_dut.held_q[u_dut.slot_q] && !u_dut.asked_q[u_dut.slot_q]))
  `VELO_ASSERT(TieState, u_dut.state_q != 2'd3 && in_q == (u_dut.state_q == 2'd2))
  // Where the next piece begins: its number follows from what is left.
  `VELO_ASSERT(TieLeft, u_dut.state_q == 2'd0 || (u_dut.left_q != '0 && u_dut.left_q <= 7'd65))
  `VELO_ASSERT(TieEnd, u_dut.state_q == 2'd0 || {1'b0, u_dut.left_q} + {1'b0, u_dut.end_q} <= 8'd65)
  `VELO_ASSERT(TiePiece, u_dut.state_q == 2'd0 || u_dut.piece_q == '0 ||
               (u_dut.addr_q[6:3] == '0 && {1'b0, u_dut.end_q} > 8'({u_dut.piece_q - 3'd1, 4'b0})))
  for (genvar s = 0; s < Slots; s++) begin : gen_tie
    `VELO_ASSERT(AskedIsHeld, !u_dut.asked_q[s] || u_dut.held_q[s])
    for (genvar p = 0; p < 8; p++) begin : gen_piece
      // The function marks a piece as soon as its header is offered.
      `VELO_ASSERT(Owed, u_dut.open_q[s][p] == owed_q[p][s] ||
                   (u_dut.state_q == 2'd1 && u_dut.slot_q == s && u_dut.piece_q == p &&
                    !owed_q[p][s]))
      `VELO_ASSERT(NotYet, u_dut.state_q == 2'd0 || u_dut.slot_q != s ||
                   p < u_dut.piece_q || (p == u_dut.piece_q && u_dut.state_q != 2'd1) ||
                   !owed_q[p][s])
    end
  end

  `VELO_COVER(LateCompletion, |lost && ends && owed_q[its_piece][its_slot] && !idle)
  `VELO_COVER(AllLost, &lost && answer_valid && answer_error)
  `VELO_COVER(WordsGiven, words && answer_last)

endmodule
