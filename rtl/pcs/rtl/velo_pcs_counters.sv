// SPDX-License-Identifier: Apache-2.0
//
// Events in the recovered clocks, counted in the clock of the link port. Modulo 65536.
// Latency: some cycles of the link port's clock. Errors: none.

`include "velo_assert.svh"

module velo_pcs_counters #(
    parameter int unsigned NumLanes = 1
) (
    input logic clk_i,  // of the link port
    input logic rst_ni,

    input logic [NumLanes-1:0] rx_clk_i,  // recovered, one a lane
    input logic [NumLanes-1:0] rx_rst_ni, // one a lane

    input logic [NumLanes-1:0] code_error_i,       // events of each lane, in its clock
    input logic [NumLanes-1:0] disparity_error_i,
    input logic [NumLanes-1:0] skip_i,
    input logic [NumLanes-1:0] lock_lost_i,
    input logic                type_error_i,       // events of the link, in the clock of lane 0
    input logic                skew_lost_i,
    input logic                recv_lost_i,
    input logic                send_lost_i,        // an event in the clock of the link port

    output logic [15:0] code_errors_o,       // sums over lanes
    output logic [15:0] disparity_errors_o,
    output logic [15:0] skips_o,
    output logic [15:0] lock_losses_o,
    output logic [15:0] lost_words_o
);

  localparam int unsigned NumCounts = 4 * NumLanes + 3;

  logic [NumCounts-1:0] happens, clks, rsts;
  logic [NumCounts-1:0][15:0] count;

  assign happens = {
    recv_lost_i, skew_lost_i, type_error_i, lock_lost_i, skip_i, disparity_error_i, code_error_i
  };
  assign clks = {{3{rx_clk_i[0]}}, {4{rx_clk_i}}};
  assign rsts = {{3{rx_rst_ni[0]}}, {4{rx_rst_ni}}};

  for (genvar c = 0; c < NumCounts; c++) begin : gen_count
    velo_cdc_count #(
        .Width(16)
    ) u_count (
        .clk_i      (clks[c]),
        .rst_ni     (rsts[c]),
        .event_i    (happens[c]),
        .dst_clk_i  (clk_i),
        .dst_rst_ni (rst_ni),
        .dst_count_o(count[c])
    );
  end

  logic [3:0][15:0] sum;  // code errors, disparity errors, skip sets, ends of lock
  logic [15:0] send_lost_q;
  always_comb begin
    sum = '0;
    for (int k = 0; k < 4; k++) begin
      for (int l = 0; l < int'(NumLanes); l++) sum[k] += count[k*int'(NumLanes)+l];
    end
    sum[0] += count[4*NumLanes];
    sum[3] += count[4*NumLanes+1];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {lock_losses_o, skips_o, disparity_errors_o, code_errors_o} <= '0;
      send_lost_q <= '0;
      lost_words_o <= '0;
    end else begin
      {lock_losses_o, skips_o, disparity_errors_o, code_errors_o} <= sum;
      if (send_lost_i) send_lost_q <= send_lost_q + 1'b1;
      lost_words_o <= send_lost_q + count[4*NumLanes+2];
    end
  end

endmodule
