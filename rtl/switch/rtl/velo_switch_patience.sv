// SPDX-License-Identifier: Apache-2.0
//
// No packet waits for ever: outputs that an input asks for in vain are kept for it.
//
// The arbiters are fair to inputs that ask for an output at the same time. An input does not ask while it sends. So
// two inputs that always have packets, of one length and out of step, never ask at the same time: whenever the
// output of the one becomes free, the other one is in the middle of a packet for another output.
//
// One input is watched at a time, all in turn, for WatchCycles, which is more than a packet takes. Outputs that it
// asked for in that time without being served once are then kept for it for KeepCycles: `hold_o[input][output]` tells
// the other inputs not to ask. It gets each of them after at most NumPorts packets of its own, if these and one more
// take less than KeepCycles. So an input that asks for an output whenever it is idle is served within
// (WatchCycles + KeepCycles) * NumPorts. The time for which
// outputs are kept ends whatever happens, so nothing else waits for ever for an input that has lost its credits.
// Otherwise time passes only while some input asks: a switch without work has the same state in each cycle, by
// which the simulator knows that it need not be evaluated.
//
// `request_i`: of free inputs; `accepted_i`: what was accepted in the last cycle. Errors: none.

`include "velo_assert.svh"

module velo_switch_patience #(
    parameter int unsigned NumPorts = 9,
    parameter int unsigned WatchCycles = 256,
    parameter int unsigned KeepCycles = 2048
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumPorts-1:0][NumPorts-1:0] request_i,   // [input][output]
    input  logic [NumPorts-1:0][NumPorts-1:0] accepted_i,
    output logic [NumPorts-1:0][NumPorts-1:0] hold_o
);

  localparam int unsigned CountBits = $clog2(KeepCycles);

  logic [NumPorts-1:0] input_q;  // one-hot
  logic [NumPorts-1:0] asked_q, served_q, keep_q;  // outputs
  logic [NumPorts-1:0] asks, served, missed, keep_d;
  logic [CountBits-1:0] count_q;
  logic time_is_over, keeps_q, asked_for_q, next;

  always_comb begin
    asks   = '0;
    served = '0;
    for (int i = 0; i < int'(NumPorts); i++) begin
      asks |= input_q[i] ? request_i[i] : '0;
      served |= input_q[i] ? accepted_i[i] : '0;
    end
  end
  assign missed = (asked_q | asks) & ~(served_q | served);
  assign keep_d = keep_q & ~served;
  assign time_is_over = count_q == CountBits'((keeps_q ? KeepCycles : WatchCycles) - 1);
  assign next = keeps_q ? time_is_over || keep_d == '0 : time_is_over && missed == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      input_q <= NumPorts'(1);
      count_q <= '0;
      asked_q <= '0;
      served_q <= '0;
      keeps_q <= 1'b0;
      keep_q <= '0;
      asked_for_q <= 1'b0;
    end else begin
      asked_for_q <= request_i != '0;
      if (next || (time_is_over && !keeps_q)) count_q <= '0;
      else if (keeps_q || asked_for_q) count_q <= count_q + 1'b1;
      asked_q  <= next ? '0 : asked_q | asks;
      served_q <= next ? '0 : served_q | served;
      keeps_q  <= !next && (keeps_q || time_is_over);
      keep_q   <= next ? '0 : keeps_q ? keep_d : time_is_over ? missed : '0;
      if (next) input_q <= {input_q[NumPorts-2:0], input_q[NumPorts-1]};
    end
  end

  for (genvar i = 0; i < int'(NumPorts); i++) begin : gen_hold
    assign hold_o[i] = input_q[i] ? '0 : keep_q;
  end

  `VELO_ASSERT_INIT(WatchFits, WatchCycles <= KeepCycles)

endmodule
