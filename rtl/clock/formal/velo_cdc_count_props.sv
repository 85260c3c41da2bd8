// SPDX-License-Identifier: Apache-2.0
//
// A count seen from another clock: the one that it had at the third last edge there, or just before
// that edge, whatever its bits do on the way. So no event is missed and none is seen twice. Time and
// synchronizers as in velo_cdc_fifo_props.sv.

`include "velo_assert.svh"

module velo_cdc_count_props (
    input logic clk_i,
    input logic dst_clk_i,
    input logic rst_ni,
    input logic event_i
);

  localparam int unsigned Width = 3;

  logic [Width-1:0] count;

  velo_cdc_count #(
      .Width(Width)
  ) u_dut (
      .clk_i      (clk_i),
      .rst_ni     (rst_ni),
      .event_i    (event_i),
      .dst_clk_i  (dst_clk_i),
      .dst_rst_ni (rst_ni),
      .dst_count_o(count)
  );

  logic past;
  velo_step u_past (
      .d_i(1'b1),
      .q_o(past)
  );
  always_comb assume (rst_ni == past);

  // The events, and what their number was at the last edges of the destination; and a step earlier,
  // which is what a synchronizer may have seen.
  logic [Width-1:0] events_q, earlier, now1_q, now2_q, now3_q, earlier1_q, earlier2_q, earlier3_q;
  for (genvar b = 0; b < int'(Width); b++) begin : gen_bit
    velo_step u_earlier (
        .d_i(events_q[b]),
        .q_o(earlier[b])
    );
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) events_q <= '0;
    else if (event_i) events_q <= events_q + 1'b1;
  end
  always_ff @(posedge dst_clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {now1_q, now2_q, now3_q} <= '0;
      {earlier1_q, earlier2_q, earlier3_q} <= '0;
    end else begin
      {now3_q, now2_q, now1_q} <= {now2_q, now1_q, events_q};
      {earlier3_q, earlier2_q, earlier1_q} <= {earlier2_q, earlier1_q, earlier};
    end
  end

  always_comb begin
    if (past) begin
      HasBeen : assert (count == now3_q || count == earlier3_q);
      Lap :
      cover (events_q == 3'd1 && count == 3'd0 && now1_q == 3'd1 && now3_q == 3'd0);
    end
  end

endmodule
