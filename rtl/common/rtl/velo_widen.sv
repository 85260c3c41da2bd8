// SPDX-License-Identifier: Apache-2.0
//
// From a stream of halves, the lower one first, to one of wide beats; the other side of velo_narrow.
// A wide beat is there with the second of its halves. Width = HalfWidth: wires.
//
// Both sides valid/ready, whole packets or transactions; an offered beat stands until it is taken, and
// nothing is kept here between packets. `in_single_i`: this half goes in a beat of its own, as a
// packet's header does; it comes where a lower half would. The upper half of such a beat, and of a
// last one that has none, is zero. Errors: none.

`include "velo_assert.svh"

module velo_widen #(
    parameter int unsigned Width = 128,
    parameter int unsigned HalfWidth = 64
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 in_valid_i,   // a half is offered
    output logic                 in_ready_o,   // it is taken
    input  logic                 in_sop_i,     // it is the first
    input  logic                 in_eop_i,     // it is the last
    input  logic                 in_single_i,  // it gets a beat of its own
    input  logic [HalfWidth-1:0] in_data_i,    // the half

    output logic             out_valid_o,  // a beat is offered
    input  logic             out_ready_i,  // it is taken
    output logic             out_sop_o,    // it is the first
    output logic             out_eop_o,    // it is the last
    output logic [Width-1:0] out_data_o    // the beat
);

  assign out_eop_o = in_eop_i;

  if (Width == HalfWidth) begin : gen_wires
    assign out_valid_o = in_valid_i;
    assign in_ready_o  = out_ready_i;
    assign out_sop_o   = in_sop_i;
    assign out_data_o  = in_data_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni, in_single_i};
  end else begin : gen_halves
    logic kept_q, sop_q, keep;  // a lower half is here; this one will be
    logic [HalfWidth-1:0] lower_q;

    assign keep        = !kept_q && !in_single_i && !in_eop_i;
    assign out_valid_o = in_valid_i && !keep;
    assign in_ready_o  = keep || out_ready_i;
    assign out_sop_o   = kept_q ? sop_q : in_sop_i;
    assign out_data_o  = kept_q ? {in_data_i, lower_q} : Width'(in_data_i);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) kept_q <= 1'b0;
      else if (in_valid_i && in_ready_o) kept_q <= keep;
    end
    always_ff @(posedge clk_i) begin
      if (in_valid_i && keep) begin
        lower_q <= in_data_i;
        sop_q   <= in_sop_i;
      end
    end

    `VELO_ASSERT_INIT(HalfIsHalf, Width == 2 * HalfWidth)
    `VELO_ASSUME(SingleIsNoUpperHalf, !(in_valid_i && in_single_i && kept_q))
  end

endmodule
