// SPDX-License-Identifier: Apache-2.0
//
// Liveness of the crossbar: an input that always has a packet for an output gets it within a bound, whatever the
// other inputs and outputs do, however long the packets are (two words to MostWords), and whether or not
// their ends ever fall together.
//
// One pair of an input and an output is looked at, whichever it is. Proven without a bound: the watch comes to each
// input again after RoundCycles at most in which some input asks or something is kept (ComesRound), and what asks
// whenever its input is idle is served before the watch leaves that input (ServedInItsWatch). So it waits for
// RoundCycles and a watch of such cycles at most; that sum is made by hand. Without work the state stays (Rests).

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_switch_patience_props #(
    parameter int unsigned NumPorts = 2,
    parameter int unsigned MostWords = 3,
    parameter int unsigned WatchCycles = 8,
    parameter int unsigned KeepCycles = 16
) (
    input logic                              clk_i,
    input logic                              rst_ni,
    input logic [NumPorts-1:0][NumPorts-1:0] wish_i,  // a packet is there, with credits
    input logic [NumPorts-1:0][         1:0] words_i,  // of the packet that begins
    input logic [NumPorts-1:0]               stop_i   // outputs begin nothing
);

  localparam int unsigned RoundCycles = (WatchCycles + KeepCycles) * NumPorts;

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  logic [NumPorts-1:0][NumPorts-1:0] request_q, accept, hold, going_q;
  logic [NumPorts-1:0] any, busy_outputs;
  logic [NumPorts-1:0][1:0] left_q;  // words

  // Inputs as velo_switch_input: a request is a register, which knows that the last word is being sent.
  for (genvar i = 0; i < int'(NumPorts); i++) begin : gen_input
    logic idle_d;
    assign idle_d = !any[i] && left_q[i] <= 2'd1;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        left_q[i]    <= '0;
        request_q[i] <= '0;
        going_q[i]   <= '0;
      end else begin
        left_q[i] <= any[i] ? words_i[i] : left_q[i] - 2'(left_q[i] != '0);
        request_q[i] <= idle_d ? wish_i[i] & ~hold[i] : '0;
        going_q[i] <= any[i] ? accept[i] : idle_d ? '0 : going_q[i];
      end
    end
    always_comb assume (words_i[i] >= 2'd2 && words_i[i] <= 2'(MostWords));
  end
  always_comb begin
    busy_outputs = '0;
    for (int i = 0; i < int'(NumPorts); i++) busy_outputs |= going_q[i];
  end

  velo_switch_match #(
      .NumPorts   (NumPorts),
      .WatchCycles(WatchCycles),
      .KeepCycles (KeepCycles)
  ) u_dut (
      .request_i    (request_q),
      .output_free_i(~busy_outputs & ~stop_i),
      .accept_o     (accept),
      .any_o        (any),
      .hold_o       (hold),
      .*
  );

  // The pair.
  logic [NumPorts-1:0] in_q, out_q;
  logic wishes, wished_q, served, watched;
  always_ff @(posedge clk_i) {in_q, out_q} <= {in_q, out_q};
  always_comb assume ($onehot(in_q) && $onehot(out_q));
  always_comb begin
    wishes = 1'b0;
    served = 1'b0;
    for (int i = 0; i < int'(NumPorts); i++) begin
      wishes |= in_q[i] && (wish_i[i] & out_q) != '0;
      served |= in_q[i] && (accept[i] & out_q) != '0;
    end
  end
  assign watched = u_dut.u_patience.input_q == in_q;
  always_ff @(posedge clk_i) wished_q <= rst_ni && wishes && !served;
  `VELO_ASSUME(WishesUntilServed, !wished_q || wishes)
  `VELO_ASSUME(OutputIsThere, (stop_i & out_q) == '0)

  // Since the watch came to its input, it has wished all the time, without being served.
  logic watched_q, served_q, since_q, time_passes;
  assign time_passes = u_dut.u_patience.keeps_q || u_dut.u_patience.asked_for_q;
  logic [$clog2(RoundCycles+1)-1:0] away_q;
  always_ff @(posedge clk_i) begin
    watched_q <= rst_ni && watched;
    served_q  <= rst_ni && served;
    since_q   <= rst_ni && wishes && !served && watched && (since_q || (!watched_q && !served_q));
    if (!rst_ni || watched) away_q <= '0;
    else if (time_passes && !(&away_q)) away_q <= away_q + 1'b1;
  end
  `VELO_ASSERT(ServedInItsWatch, !since_q || watched)
  `VELO_ASSERT(ComesRound, away_q <= $bits(away_q)'(RoundCycles - 1))
  // Without work the state stays.
  logic still_q;
  logic [NumPorts-1:0] input_past_q;
  logic [$clog2(KeepCycles)-1:0] count_past_q;
  always_ff @(posedge clk_i) begin
    still_q <= rst_ni && request_q == '0 && !time_passes && !u_dut.u_patience.time_is_over;
    {input_past_q, count_past_q} <= {u_dut.u_patience.input_q, u_dut.u_patience.count_q};
  end
  `VELO_ASSERT(Rests, !still_q || ({input_past_q, count_past_q} ==
      {u_dut.u_patience.input_q, u_dut.u_patience.count_q}))
  // Nothing is kept for an input that has had it.
  logic got_q;
  always_ff @(posedge clk_i) got_q <= rst_ni && watched && (got_q || served_q);
  `VELO_ASSERT(KeptNoLonger, !(got_q && watched) || (u_dut.u_patience.keep_q & out_q) == '0)
  `VELO_COVER(ServedWhenKept, since_q && (u_dut.u_patience.keep_q & out_q) != '0 && served)
  `VELO_COVER(AwayForLong, away_q == $bits(away_q)'(WatchCycles * 3 / 2))

endmodule
