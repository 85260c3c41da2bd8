// SPDX-License-Identifier: Apache-2.0
//
// The next fragment of an operation: as much as fits a packet and stays in one page at both ends.
//
// `start_i` with all inputs, which hold; `valid_o` from four cycles later on, until the next start:
// the address where the fragment is read, its length, and whether it is the last. Errors: none.

`include "velo_assert.svh"

module velo_rma_fragment #(
    parameter int unsigned FragmentBytes = 448
) (
    input logic clk_i,
    input logic rst_ni,

    input logic        start_i,
    input logic [63:0] read_address_i,   // of the operation's first byte
    input logic [11:0] write_address_i,  // in its page
    input logic [22:0] len_bytes_i,
    input logic [22:0] offset_i,

    output logic        valid_o,
    output logic [63:0] address_o,
    output logic [ 9:0] len_bytes_o,
    output logic        last_o
);

  localparam int unsigned PageBytes = 4096;

  logic [3:0] step_q;
  logic [11:0] write_place_q, later_q, read_place;
  logic [22:0] left_q;
  logic [12:0] room;
  logic [ 9:0] limit_q;

  assign read_place = address_o[11:0];
  assign room       = 13'(PageBytes) - {1'b0, later_q};
  assign valid_o    = step_q[3];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) step_q <= '0;
    else if (start_i) step_q <= 4'b0001;
    else if (!step_q[3]) step_q <= step_q << 1;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      address_o     <= read_address_i + {41'b0, offset_i};
      write_place_q <= write_address_i + offset_i[11:0];
      left_q        <= len_bytes_i - offset_i;
    end
    // The one that is nearer to its page's end.
    if (step_q[0]) later_q <= read_place > write_place_q ? read_place : write_place_q;
    if (step_q[1]) limit_q <= room < 13'(FragmentBytes) ? room[9:0] : 10'(FragmentBytes);
    if (step_q[2]) begin
      last_o      <= left_q <= 23'(limit_q);
      len_bytes_o <= left_q <= 23'(limit_q) ? left_q[9:0] : limit_q;
    end
  end

  `VELO_ASSERT_INIT(FragmentFits, FragmentBytes >= 8 && FragmentBytes <= 512)
  `VELO_ASSERT(OneStep, (step_q & (step_q - 1'b1)) == '0)
  `VELO_ASSERT(InItsPage,
               !valid_o || start_i || 13'(address_o[11:0]) + 13'(len_bytes_o) <= 13'd4096)

endmodule
