// SPDX-License-Identifier: Apache-2.0
//
// The parallel CRC equals the bit-serial register for every input with one bit set, hence, both being
// linear, for every input; and it gives the published check values of CRC-16/XMODEM and CRC-32/MPEG-2
// for "123456789".

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_crc_props (
    input logic        clk_i,
    input logic        rst_ni,
    input logic [31:0] crc_i,
    input logic [63:0] data_i
);

  localparam logic [71:0] Check = "123456789";
  localparam logic [31:0] Poly = 32'h1EDC6F41;

  logic [31:0] next, reference, mpeg;
  logic [15:0] xmodem;

  velo_crc #(
      .Width(32),
      .DataWidth(64),
      .Poly(Poly)
  ) u_dut (
      .crc_o(next),
      .*
  );
  velo_crc #(
      .Width(32),
      .DataWidth(72),
      .Poly(32'h04C11DB7)
  ) u_mpeg (
      .crc_i ('1),
      .data_i(Check),
      .crc_o (mpeg)
  );
  velo_crc #(
      .Width(16),
      .DataWidth(72),
      .Poly(16'h1021)
  ) u_xmodem (
      .crc_i ('0),
      .data_i(Check),
      .crc_o (xmodem)
  );

  always_comb begin
    reference = crc_i;
    for (int i = 63; i >= 0; i--) begin
      reference = {reference[30:0], 1'b0} ^ {32{reference[31] ^ data_i[i]}} & Poly;
    end
  end

  `VELO_ASSUME(UnitVector, $onehot0({crc_i, data_i}))
  `VELO_ASSERT(EqualsSerial, next == reference)
  `VELO_ASSERT(CheckValueMpeg2, mpeg == 32'h0376E6E7)
  `VELO_ASSERT(CheckValueXmodem, xmodem == 16'h31C3)

endmodule
