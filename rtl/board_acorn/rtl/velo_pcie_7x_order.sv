// SPDX-License-Identifier: Apache-2.0
//
// The order of bytes within a packet's dwords, between velo_pcie and a 7-series block, either way. To the block every
// dword is a number whose highest byte is the first one. To velo_pcie (velo_pcie_pkg, tlp_beat_t) a header's dwords are
// such numbers, too, but of data the first byte is the lowest. So the bytes of data change places, those of headers do
// not; behind a header of three dwords that begins in the upper half of the second beat.
//
// `take_i`: the beat that stands there is taken. Order: as it comes. Errors: none; a packet that ends within its header
// is followed by the next one's first beat. Latency: 0 cycles.
//
// Source: LitePCIe's use of the block (big-endian streams); PCI Express Base Specification 3.0, section 2.2.

`include "velo_assert.svh"

module velo_pcie_7x_order (
    input logic clk_i,
    input logic rst_ni,

    input  logic        take_i,
    input  logic        last_i,
    input  logic [63:0] data_i,
    output logic [63:0] data_o,
    output logic        first_o  // it is a packet's first beat
);

  logic [1:0] beat_q;  // of the packet; stays at 2
  logic long_q;  // a header of four dwords

  function automatic logic [31:0] turned(logic [31:0] dword);
    return {dword[7:0], dword[15:8], dword[23:16], dword[31:24]};
  endfunction

  logic in_data;
  assign in_data = beat_q == 2'd2;
  assign first_o = beat_q == 2'd0;
  assign data_o[31:0] = in_data ? turned(data_i[31:0]) : data_i[31:0];
  assign data_o[63:32] = in_data || (beat_q == 2'd1 && !long_q) ? turned(
      data_i[63:32]
  ) : data_i[63:32];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) beat_q <= '0;
    else if (take_i) beat_q <= last_i ? 2'd0 : in_data ? 2'd2 : beat_q + 2'd1;
  end
  always_ff @(posedge clk_i) begin
    if (first_o) long_q <= data_i[29];
  end

  `VELO_ASSERT(NoSuchBeat, beat_q != 2'd3)

endmodule
