// SPDX-License-Identifier: Apache-2.0
//
// Bonds the lanes of a link: what was sent in one cycle comes out in one cycle, though the lanes have
// cables of different lengths and recovered clocks of different phases.
//
// Each lane has a FIFO into the clock of lane 0. In search, a lane whose FIFO shows anything but a skip
// set drops it; when all show one of the same number, everything goes out together from there on. A
// lane shows its set for MaxSkew cycles at most, and not beside another number: then the set of
// another lane was lost. In step, each skip set has to be one on all lanes, of the same number; two
// running that are not end the step. So does a lane that lost its lock or whose FIFO was full. Before each
// new search all FIFOs are emptied while nothing is put in: a FIFO that is fuller than the skew of its
// lane would stay so for ever, since it is emptied as fast as it is filled.
//
// `aligned_o` rises with the second set that is right. Latency of a lane that is behind all others:
// Stages + 2 cycles. Lanes that differ by more than MaxSkew cycles never get in
// step.
// Source: case-for-fpga, section 3.D (two links bundled to one of 64 bits).

`include "velo_assert.svh"

module velo_pcs_deskew
  import velo_pcs_pkg::*;
#(
    parameter int unsigned NumLanes = 2,
    parameter int unsigned Width = 40,  // of what a lane brings in a cycle
    parameter int unsigned DepthWords = 16,  // a power of two
    parameter int unsigned Stages = 2,
    parameter int unsigned EmptyCycles = 4 * DepthWords,  // to empty the FIFOs
    localparam int unsigned MaxSkew = DepthWords - 2 * Stages - 6  // cycles between lanes
) (
    input logic [NumLanes-1:0] clk_i,  // recovered, one a lane
    input logic [NumLanes-1:0] rst_ni, // one a lane

    input logic    [NumLanes-1:0]            locked_i,  // the lane brings words
    input logic    [NumLanes-1:0][Width-1:0] word_i,    // what it brings
    input logic    [NumLanes-1:0]            set_i,     // this is a skip set
    input number_t [NumLanes-1:0]            number_i,  // of this number

    // In the clock of lane 0.
    output logic                           aligned_o,  // lanes are in step
    output logic                           valid_o,    // words of one cycle
    output logic [NumLanes-1:0][Width-1:0] word_o,     // these
    output logic                           lost_o      // lanes are not in step any more
);

  localparam int unsigned EntryWidth = Width + $bits(number_t) + 2;

  localparam int unsigned WaitBits = $clog2(EmptyCycles + 1);

  logic clk, rst_n;
  assign clk   = clk_i[0];
  assign rst_n = rst_ni[0];

  logic [NumLanes-1:0] valid, set, gap, pop;
  number_t [NumLanes-1:0] number;

  for (genvar l = 0; l < NumLanes; l++) begin : gen_lane
    // The next entry does not follow the last one.
    logic gap_q, stop, push, ready;
    logic [$clog2(DepthWords):0] count;
    velo_cdc_sync u_stop (
        .clk_i (clk_i[l]),
        .rst_ni(rst_ni[l]),
        .d_i   (empty_q),
        .q_o   (stop)
    );
    assign push = locked_i[l] && !stop;
    always_ff @(posedge clk_i[l] or negedge rst_ni[l]) begin
      if (!rst_ni[l]) gap_q <= 1'b1;
      else gap_q <= !(push && ready);
    end

    velo_cdc_fifo #(
        .Width (EntryWidth),
        .Depth (DepthWords),
        .Stages(Stages)
    ) u_fifo (
        .clk_i       (clk_i[l]),
        .rst_ni      (rst_ni[l]),
        .push_valid_i(push),
        .push_ready_o(ready),
        .push_data_i ({gap_q, set_i[l], number_i[l], word_i[l]}),
        .push_count_o(count),
        .pop_clk_i   (clk),
        .pop_rst_ni  (rst_n),
        .pop_valid_o (valid[l]),
        .pop_ready_i (pop[l]),
        .pop_data_o  ({gap[l], set[l], number[l], word_o[l]})
    );
    logic unused;
    assign unused = ^count;
  end

  logic step_q, wrong_q;  // lanes are in step; their last skip sets did not agree
  logic empty_q;  // FIFOs are emptied
  logic [WaitBits-1:0] wait_q;  // cycles of this, or that a set has been shown in vain
  logic all_sets, all_equal, broken, give_up;

  assign all_sets = &valid && &set;
  assign all_equal = all_sets && number == {NumLanes{number[0]}};
  assign give_up = !step_q && !all_equal && (all_sets || wait_q == WaitBits'(MaxSkew));
  // In step: a gap, or the second set running that is not one on all lanes.
  assign broken = (|(valid & gap)) || (&valid && set != '0 && !all_equal && wrong_q);

  assign valid_o = !empty_q && &valid && (step_q ? !broken : all_equal);
  always_comb begin
    if (empty_q) pop = valid;
    else if (step_q || all_equal) pop = {NumLanes{&valid}};
    else pop = valid & ~set;
  end

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) begin
      step_q    <= 1'b0;
      wrong_q   <= 1'b0;
      empty_q   <= 1'b0;
      wait_q    <= '0;
      aligned_o <= 1'b0;
      lost_o    <= 1'b0;
    end else begin
      lost_o <= 1'b0;
      if (empty_q) begin
        wait_q  <= wait_q + 1'b1;
        empty_q <= wait_q != WaitBits'(EmptyCycles - 1);
        if (wait_q == WaitBits'(EmptyCycles - 1)) wait_q <= '0;
      end else if (step_q) begin
        if (broken) begin
          step_q    <= 1'b0;
          aligned_o <= 1'b0;
          lost_o    <= 1'b1;
          empty_q   <= 1'b1;
        end else if (&valid && set != '0) begin
          wrong_q <= !all_equal;
          if (all_equal) aligned_o <= 1'b1;
        end
      end else begin
        step_q  <= all_equal;
        wrong_q <= 1'b0;
        empty_q <= give_up;
        if (give_up || all_equal || (valid & set) == '0) wait_q <= '0;
        else wait_q <= wait_q + 1'b1;
      end
    end
  end

  `VELO_ASSERT_INIT(DepthLeavesRoom, DepthWords >= 4 * Stages + 8 && EmptyCycles > MaxSkew)

endmodule
