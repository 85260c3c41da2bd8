// SPDX-License-Identifier: Apache-2.0
//
// A word that changes seldom, to another clock domain: one at a time, each delivered once.
//
// The word stands in a register while a toggle goes over and comes back; nobody looks at it while it
// changes. A round takes about 2 * Stages + 2 cycles of either clock; for more than that, velo_cdc_fifo.
//
// `src_*` is valid/ready. `dst_valid_o` is one cycle for each word taken; `dst_data_o` stands until
// the next one, so whoever needs only the latest value looks at it alone (0 after reset).
// Errors: none. Latency: Stages + 2 edges of `dst_clk_i`.

`include "velo_assert.svh"

module velo_cdc_bus #(
    parameter int unsigned Width  = 8,
    parameter int unsigned Stages = 2
) (
    input logic clk_i,  // of the source
    input logic rst_ni, // of the source

    input  logic             src_valid_i,  // a word is offered
    output logic             src_ready_o,  // the one before has arrived
    input  logic [Width-1:0] src_data_i,   // the word

    input logic dst_clk_i,  // of the destination
    input logic dst_rst_ni, // of the destination

    output logic             dst_valid_o,  // a word has come, for one cycle
    output logic [Width-1:0] dst_data_o    // the last word that came
);

  logic sent_q, sent_seen, got_q, got_seen;
  logic [Width-1:0] word_q;
  logic take, arrives;

  velo_cdc_sync #(
      .Width (1),
      .Stages(Stages)
  ) u_got_seen (
      .clk_i (clk_i),
      .rst_ni(rst_ni),
      .d_i   (got_q),
      .q_o   (got_seen)
  );
  assign src_ready_o = sent_q == got_seen;
  assign take = src_valid_i && src_ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sent_q <= 1'b0;
      word_q <= '0;
    end else if (take) begin
      sent_q <= !sent_q;
      word_q <= src_data_i;
    end
  end

  velo_cdc_sync #(
      .Width (1),
      .Stages(Stages)
  ) u_sent_seen (
      .clk_i (dst_clk_i),
      .rst_ni(dst_rst_ni),
      .d_i   (sent_q),
      .q_o   (sent_seen)
  );
  assign arrives = sent_seen != got_q;

  always_ff @(posedge dst_clk_i or negedge dst_rst_ni) begin
    if (!dst_rst_ni) begin
      got_q       <= 1'b0;
      dst_valid_o <= 1'b0;
      dst_data_o  <= '0;
    end else begin
      got_q       <= sent_seen;
      dst_valid_o <= arrives;
      if (arrives) dst_data_o <= word_q;
    end
  end

endmodule
