// SPDX-License-Identifier: Apache-2.0
//
// From a stream of wide beats to one of halves, the lower one first; the other side of velo_widen.
// Adds no cycle. Width = HalfWidth: wires.
//
// Both sides valid/ready, whole packets or transactions; an offered half stands until it is taken.
// `in_single_i`: only the lower half of this beat counts, as in a last one whose upper half is
// padding; it stands with the beat. A wide beat is taken with the last of its halves. Errors: none.

`include "velo_assert.svh"

module velo_narrow #(
    parameter int unsigned Width = 128,
    parameter int unsigned HalfWidth = 64
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             in_valid_i,   // a beat is offered
    output logic             in_ready_o,   // it is taken
    input  logic             in_sop_i,     // it is the first
    input  logic             in_eop_i,     // it is the last
    input  logic             in_single_i,  // only its lower half counts
    input  logic [Width-1:0] in_data_i,    // the beat

    output logic                 out_valid_o,  // a half is offered
    input  logic                 out_ready_i,  // it is taken
    output logic                 out_sop_o,    // it is the first
    output logic                 out_eop_o,    // it is the last
    output logic [HalfWidth-1:0] out_data_o    // the half
);

  assign out_valid_o = in_valid_i;

  if (Width == HalfWidth) begin : gen_wires
    assign in_ready_o = out_ready_i;
    assign out_sop_o  = in_sop_i;
    assign out_eop_o  = in_eop_i;
    assign out_data_o = in_data_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni, in_single_i};
  end else begin : gen_halves
    logic upper_q, last;  // the lower half is gone; this half is the beat's last

    assign last       = upper_q || in_single_i;
    assign in_ready_o = out_ready_i && last;
    assign out_sop_o  = in_sop_i && !upper_q;
    assign out_eop_o  = in_eop_i && last;
    assign out_data_o = upper_q ? in_data_i[Width-1:HalfWidth] : in_data_i[HalfWidth-1:0];

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) upper_q <= 1'b0;
      else if (in_valid_i && out_ready_i) upper_q <= !last;
    end

    `VELO_ASSERT_INIT(HalfIsHalf, Width == 2 * HalfWidth)
    `VELO_ASSERT(NoUpperHalfOfNothing, !upper_q || in_valid_i)
  end

endmodule
