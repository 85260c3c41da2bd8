// SPDX-License-Identifier: Apache-2.0
//
// Counts events of one clock domain for another: modulo 2**Width, none missed, whatever the clocks.
//
// The counter is a Gray code where the events are; the other side sees the count of now or of a
// moment ago, never one that it did not have.
// Errors: none. Latency: Stages + 1 edges of `dst_clk_i`.

`include "velo_assert.svh"

module velo_cdc_count #(
    parameter int unsigned Width  = 16,
    parameter int unsigned Stages = 2
) (
    input logic clk_i,   // of the events
    input logic rst_ni,  // of the events
    input logic event_i, // one event in each cycle in which it is high

    input  logic             dst_clk_i,   // of the count
    input  logic             dst_rst_ni,  // of the count
    output logic [Width-1:0] dst_count_o  // events since reset
);

  logic [Width-1:0] count_q, next, gray_q, seen, binary;
  assign next = count_q + 1'b1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      gray_q  <= '0;
    end else if (event_i) begin
      count_q <= next;
      gray_q  <= next ^ (next >> 1);
    end
  end

  velo_cdc_sync #(
      .Width (Width),
      .Stages(Stages)
  ) u_seen (
      .clk_i (dst_clk_i),
      .rst_ni(dst_rst_ni),
      .d_i   (gray_q),
      .q_o   (seen)
  );

  always_comb begin
    binary = seen;
    for (int unsigned i = 1; i < Width; i++) binary ^= seen >> i;
  end
  always_ff @(posedge dst_clk_i or negedge dst_rst_ni) begin
    if (!dst_rst_ni) dst_count_o <= '0;
    else dst_count_o <= binary;
  end

  `VELO_ASSERT(OneBitAtATime, $onehot(gray_q ^ next ^ (next >> 1)))

endmodule
