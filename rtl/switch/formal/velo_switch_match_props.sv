// SPDX-License-Identifier: Apache-2.0
//
// The crossbar's arbiters together: one packet an input, one an output, only what was asked for; and
// fairness between inputs: two inputs that both always ask for one output, with nothing else to do,
// are served in turn; more generally, no input waits for ever while its output serves others.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_switch_match_props #(
    parameter int unsigned NumPorts = 3
) (
    input logic                              clk_i,
    input logic                              rst_ni,
    input logic [NumPorts-1:0][NumPorts-1:0] request_i,
    input logic [NumPorts-1:0]               input_free_i,
    input logic [NumPorts-1:0]               output_free_i
);

  logic [NumPorts-1:0][NumPorts-1:0] accept;
  logic [NumPorts-1:0] any;
  logic [NumPorts-1:0][NumPorts-1:0] request;
  always_comb begin
    for (int i = 0; i < int'(NumPorts); i++) request[i] = input_free_i[i] ? request_i[i] : '0;
  end
  velo_switch_match #(
      .NumPorts(NumPorts)
  ) u_dut (
      .request_i(request),
      .accept_o (accept),
      .any_o    (any),
      .hold_o   (),
      .*
  );

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  logic [NumPorts-1:0] accepted_to;
  always_comb begin
    accepted_to = '0;
    for (int i = 0; i < int'(NumPorts); i++) accepted_to |= accept[i];
  end

  // One input, whichever it is, keeps asking for one output and is free whenever that is. How often may
  // others go first?
  logic [1:0] in_q, out_q;
  logic asking_q, asks, served, others;
  logic [5:0] passed_q;
  always_ff @(posedge clk_i) {in_q, out_q} <= {in_q, out_q};
  always_comb assume (in_q < 2'(NumPorts) && out_q < 2'(NumPorts));
  always_comb begin
    asks   = 1'b0;
    served = 1'b0;
    others = 1'b0;
    for (int i = 0; i < int'(NumPorts); i++) begin
      for (int o = 0; o < int'(NumPorts); o++) begin
        asks |= in_q == 2'(i) && out_q == 2'(o) && request_i[i][o];
        served |= in_q == 2'(i) && accept[i][o];
        others |= in_q != 2'(i) && out_q == 2'(o) && accept[i][o];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asking_q <= 1'b0;
      passed_q <= '0;
    end else begin
      asking_q <= asks && !served;
      if (!asks || served) passed_q <= '0;
      else if (others) passed_q <= passed_q + 1'b1;
    end
  end
  // A side that was accepted is busy for two cycles: the shortest packet.
  logic [1:0][NumPorts-1:0] was_input_q, was_output_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      was_input_q  <= '0;
      was_output_q <= '0;
    end else begin
      was_input_q  <= {was_input_q[0], any};
      was_output_q <= {was_output_q[0], accepted_to};
    end
  end
  `VELO_ASSUME(BusyAfterAccept, ((was_input_q[0] | was_input_q[1]) & input_free_i) == '0 &&
               ((was_output_q[0] | was_output_q[1]) & output_free_i) == '0)
  `VELO_ASSUME(KeepsAsking, !asking_q || asks)
  logic input_free, output_free;
  always_comb begin
    input_free  = 1'b0;
    output_free = 1'b0;
    for (int i = 0; i < int'(NumPorts); i++) begin
      input_free |= in_q == 2'(i) && input_free_i[i];
      output_free |= out_q == 2'(i) && output_free_i[i];
    end
  end
  `VELO_ASSUME(FreeInTime, !output_free || input_free)

  // Nothing goes to an output that is busy.
  `VELO_ASSERT(OnlyToFreeOutputs, (accepted_to & ~output_free_i) == '0)
  // While it waits, each other input passes it at most once at this output: then its turn is here, and
  // the grant stands until the input accepts one.
  `VELO_ASSERT(BoundedWait, passed_q <= 6'(NumPorts - 1))
  `VELO_COVER(OthersGoFirst, passed_q == 6'(NumPorts - 1))
  `VELO_COVER(FullCrossbar, accept[0][1] && accept[1][2] && accept[2][0])

endmodule
