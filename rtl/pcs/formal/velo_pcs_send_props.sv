// SPDX-License-Identifier: Apache-2.0
//
// Words to lanes that take them whenever they like: every word that is not idle goes into the FIFO and finds
// room there, if the link port sends idle words within the cycles that it has for it; an idle word goes in
// with its twin or not at all. That what went in comes out, once and in order, is velo_fifo's proof.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_pcs_send_props
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input logic  [1:0] kind_i,
    input logic  [3:0] data_i,
    input logic        ready_i
);

  localparam int unsigned Obey = 4;  // cycles from the request to idle words

  logic pause, lost, valid, idle;
  kind_e kind, kind_in;
  logic [3:0] data;
  assign kind_in = kind_e'(kind_i);

  velo_pcs_send #(
      .DataWidth (4),
      .Crossing  (1'b0),
      .DepthWords(8),
      .IdleFill  (1),
      .PauseFill (3),
      .PauseSlack(5)
  ) u_dut (
      .clk_i      (clk_i),
      .rst_ni     (rst_ni),
      .kind_i     (kind_in),
      .data_i     (data_i),
      .pause_o    (pause),
      .lost_o     (lost),
      .lane_clk_i (clk_i),
      .lane_rst_ni(rst_ni),
      .valid_o    (valid),
      .ready_i    (ready_i),
      .kind_o     (kind),
      .data_o     (data)
  );

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  assign idle = kind_in == KindCtl;

  logic [Obey-1:0] paused_q;
  logic in_first_q;
  logic [5:0] last_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      paused_q   <= '0;
      last_q     <= '0;
      in_first_q <= 1'b0;
    end else begin
      paused_q <= {paused_q[Obey-2:0], pause};
      last_q   <= {kind_i, data_i};
      // The last word was the first of two equal ones, and went in.
      in_first_q <= idle && u_dut.push && !(in_first_q && last_q == {kind_i, data_i});
    end
  end

  `VELO_ASSUME(PauseIsObeyed, paused_q != '1 || idle)
  `VELO_ASSERT(NothingLost, !lost)
  `VELO_ASSERT(EveryWordGoesIn, idle || u_dut.push)
  `VELO_ASSERT(TwinsTogether, !(in_first_q && idle && last_q == {kind_i, data_i}) || u_dut.push)
  `VELO_COVER(AlmostFull, u_dut.count == 4'd7 && valid && kind == KindData)
  `VELO_COVER(IdleGoesInAfterAPause, paused_q[0] && idle && u_dut.push)
  `VELO_COVER(IdleLeftOut, idle && !u_dut.push)

  logic unused;
  assign unused = ^data;

endmodule
