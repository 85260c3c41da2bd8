// SPDX-License-Identifier: Apache-2.0
//
// For proofs: what a signal was one step of the proof's time ago, and a signal that the prover chooses
// anew in each step. Read by Yosys' own reader, which knows the global clock.

module velo_step (
    input wire d_i,
    output reg q_o
);
  initial q_o = 0;
  always @($global_clock) q_o <= d_i;
endmodule

module velo_free (
    output wire q_o
);
  (* anyseq *)
  wire any;
  assign q_o = any;
endmodule
