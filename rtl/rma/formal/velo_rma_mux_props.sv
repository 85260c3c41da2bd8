// SPDX-License-Identifier: Apache-2.0
//
// The promises of the way to host memory to its users, for any offers, with beats taken at any time.
// Together with velo_rma_completer, which lets its notifier begin only when all of the data were taken
// here, it is why a notification never overtakes its data.
//
//   * A beat comes out exactly when it is taken in; none is lost, doubled or changed.
//   * A transaction that has begun goes on to its end, no beat of another between.
//   * None is begun that was not chosen before the stop.
//   * A user that waits is served after at most one transaction of each other, and the one under way.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_rma_mux_props (
    input logic       clk_i,
    input logic       rst_ni,
    input logic       stop_i,
    input logic [2:0] in_valid_i,
    input logic [2:0] in_eop_i,
    input logic [2:0] in_bit_i,    // of each one's data
    input logic       out_ready_i
);

  localparam int unsigned NumIn = 3;

  logic out_valid, out_eop;
  logic [NumIn-1:0] in_ready;
  logic [NumIn-1:0][3:0] in_data;  // whose, one-hot, and a bit
  logic [3:0] out_data;
  for (genvar i = 0; i < NumIn; i++) begin : gen_data
    assign in_data[i] = {3'(1 << i), in_bit_i[i]};
  end

  velo_rma_mux #(
      .NumIn(NumIn),
      .Width(4)
  ) u_dut (
      .in_ready_o (in_ready),
      .in_data_i  (in_data),
      .out_valid_o(out_valid),
      .out_eop_o  (out_eop),
      .out_data_o (out_data),
      .*
  );

  // ----- who offers a beat goes on offering it -----------------------------------------------------

  logic past_q;
  logic [NumIn-1:0] waits_q, eop_q, bit_q;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  always_ff @(posedge clk_i) begin
    past_q  <= 1'b1;
    waits_q <= rst_ni ? in_valid_i & ~in_ready : '0;
    eop_q   <= in_eop_i;
    bit_q   <= in_bit_i;
  end
  `VELO_ASSUME(OfferStands, (waits_q & ~(in_valid_i & ~(in_eop_i ^ eop_q) &
               ~(in_bit_i ^ bit_q))) == '0)

  // ----- promises ---------------------------------------------------------------------------------

  logic [NumIn-1:0] who, middle_q, others;
  logic take, offered_q, stopped_q;
  logic [NumIn-1:0][2:0] passed_q;  // transactions of others that have ended
  assign who    = out_data[3:1];
  assign take   = out_valid && out_ready_i;
  assign others = take && out_eop ? ~who : '0;
  always_ff @(posedge clk_i) begin
    stopped_q <= stop_i;
    offered_q <= rst_ni && out_valid && !(take && out_eop);
    if (!rst_ni) middle_q <= '0;
    else if (take) middle_q <= out_eop ? '0 : who;
    for (int unsigned i = 0; i < NumIn; i++) begin
      // Not while it is in the middle of one: then it waits for nobody.
      if (!rst_ni || !in_valid_i[i] || in_ready[i]) passed_q[i] <= '0;
      else if (others[i]) passed_q[i] <= passed_q[i] + 3'd1;
    end
  end
  `VELO_ASSERT(OutIsIn, (in_valid_i & in_ready) == (take ? who : '0))
  `VELO_ASSERT(OneGives, !out_valid || (who != '0 && (who & (who - 1'b1)) == '0))
  `VELO_ASSERT(AsItWasGiven, !out_valid || (out_eop == |(who & in_eop_i) &&
               out_data[0] == |(who & in_bit_i) && (who & ~in_valid_i) == '0))
  `VELO_ASSERT(GoesOnToItsEnd, !out_valid || middle_q == '0 || who == middle_q)
  `VELO_ASSERT(NoneAfterTheStop, !(out_valid && middle_q == '0 && !offered_q) || !stopped_q)
  `VELO_ASSERT(EachHasItsTurn, passed_q[0] <= 3'd3 && passed_q[1] <= 3'd3 && passed_q[2] <= 3'd3)

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (passed_q[2] == 3'd2 && take && who == 3'b100);
      cover (middle_q == 3'b010 && !out_valid && in_valid_i[0]);
      cover (stopped_q && take && out_eop && middle_q != '0);
    end
  end

endmodule
