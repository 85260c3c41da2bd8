// SPDX-License-Identifier: Apache-2.0
//
// CRC-12 of a CtlIdle or CtlInit word: over its low 20 bits. It does not depend on the width, so that
// two ports of different widths understand why they refuse each other. Combinational.

module velo_link_ctl_crc
  import velo_link_pkg::*;
(
    input  logic     [31-CtlCrcWidth:0] bits_i,
    output ctl_crc_t                    crc_o
);

  velo_crc #(
      .Width(CtlCrcWidth),
      .DataWidth(32 - CtlCrcWidth),
      .Poly(CtlCrcPoly)
  ) u_crc (
      .crc_i ('1),
      .data_i(bits_i),
      .crc_o (crc_o)
  );

endmodule
