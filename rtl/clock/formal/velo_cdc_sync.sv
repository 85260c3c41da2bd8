// SPDX-License-Identifier: Apache-2.0
//
// For proofs, in the place of rtl/velo_cdc_sync.sv: the same, and each bit that changes close to the
// clock edge may be seen, by itself, as it was or as it is. Close is one step of the proof's time, in
// which a well-behaved source changes one bit. `free` is driven by nothing: the prover chooses.

module velo_cdc_sync #(
    parameter int unsigned Width  = 1,
    parameter int unsigned Stages = 2
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic [Width-1:0] d_i,
    output logic [Width-1:0] q_o
);

  logic [Stages-1:0][Width-1:0] sync_q;
  logic [Width-1:0] earlier, free, sampled;

  for (genvar b = 0; b < int'(Width); b++) begin : gen_bit
    velo_step u_earlier (
        .d_i(d_i[b]),
        .q_o(earlier[b])
    );
    velo_free u_free (.q_o(free[b]));
  end
  assign sampled = (free & earlier) | (~free & d_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) sync_q <= '0;
    else sync_q <= {sync_q[Stages-2:0], sampled};
  end
  assign q_o = sync_q[Stages-1];

endmodule
