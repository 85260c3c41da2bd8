// SPDX-License-Identifier: Apache-2.0
//
// Words between two clocks of which nothing is known: each arrives once, unchanged, in order, and the
// word stands still while it is looked at. Time and synchronizers as in velo_cdc_fifo_props.sv. With
// one word under way at most, "each once" is: arrived and taken differ by one at most, and agree when
// the source is ready again.

`include "velo_assert.svh"

module velo_cdc_bus_props (
    input logic       src_clk_i,
    input logic       dst_clk_i,
    input logic       rst_ni,
    input logic       src_valid_i,
    input logic [1:0] src_data_i
);

  logic src_ready, dst_valid;
  logic [1:0] dst_data;

  velo_cdc_bus #(
      .Width(2)
  ) u_dut (
      .clk_i      (src_clk_i),
      .rst_ni     (rst_ni),
      .src_valid_i(src_valid_i),
      .src_ready_o(src_ready),
      .src_data_i (src_data_i),
      .dst_clk_i  (dst_clk_i),
      .dst_rst_ni (rst_ni),
      .dst_valid_o(dst_valid),
      .dst_data_o (dst_data)
  );

  // Reset in the first step, and never again: both sides together.
  logic past;
  velo_step u_past (
      .d_i(1'b1),
      .q_o(past)
  );
  always_comb assume (rst_ni == past);

  // Words taken, and the last one of them; words that have arrived, counted a cycle after.
  logic [1:0] taken_q, word_q, arrived, late_q;
  always_ff @(posedge src_clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_q <= '0;
      word_q  <= '0;
    end else if (src_valid_i && src_ready) begin
      taken_q <= taken_q + 1'b1;
      word_q  <= src_data_i;
    end
  end
  always_ff @(posedge dst_clk_i or negedge rst_ni) begin
    if (!rst_ni) late_q <= '0;
    else if (dst_valid) late_q <= late_q + 1'b1;
  end
  assign arrived = late_q + 2'(dst_valid);

  always_comb begin
    if (past) begin
      OneAtATime : assert (taken_q == arrived || taken_q == arrived + 2'd1);
      AllArrivedWhenReady : assert (!src_ready || taken_q == arrived);
      NotChanged : assert (!dst_valid || taken_q != arrived || dst_data == word_q);
      LatestStands : assert (taken_q != arrived || dst_data == word_q);
      FourWords :
      cover (taken_q == 2'd0 && late_q == 2'd3 && dst_valid && dst_data == 2'd2);
    end
  end

endmodule
