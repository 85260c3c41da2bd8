// SPDX-License-Identifier: Apache-2.0
//
// Single events to another clock domain: one cycle there for each one taken here.
//
// `src_ready_o` is low while an event is under way: about 2 * Stages + 2 cycles of either clock. An
// event that is offered then waits, or is lost if nobody waits; count with velo_cdc_count what may
// come in any cycle.
// Errors: none. Latency: Stages + 2 edges of `dst_clk_i`.

`include "velo_assert.svh"

module velo_cdc_pulse #(
    parameter int unsigned Stages = 2
) (
    input  logic clk_i,        // of the source
    input  logic rst_ni,       // of the source
    input  logic src_valid_i,  // an event
    output logic src_ready_o,  // it is taken

    input  logic dst_clk_i,   // of the destination
    input  logic dst_rst_ni,  // of the destination
    output logic dst_valid_o  // an event, for one cycle
);

  logic none;

  velo_cdc_bus #(
      .Width (1),
      .Stages(Stages)
  ) u_bus (
      .clk_i      (clk_i),
      .rst_ni     (rst_ni),
      .src_valid_i(src_valid_i),
      .src_ready_o(src_ready_o),
      .src_data_i (1'b0),
      .dst_clk_i  (dst_clk_i),
      .dst_rst_ni (dst_rst_ni),
      .dst_valid_o(dst_valid_o),
      .dst_data_o (none)
  );

  logic unused;
  assign unused = none;

endmodule
