// SPDX-License-Identifier: Apache-2.0
//
// The CRC of the proofs: one that misses nothing. The channel of the proof marks each word that it
// changes with a one in the top bit, which no sent word has; this CRC remembers whether it saw one. Parts
// of words of control have no such bit: there the receiver's look at the bits above them does.
// (The real one misses one disturbance in 2**32; that is not what is proven.) It knows a word that a memory lost
// from one that was sent as it was written, too.

module velo_crc #(
    parameter int unsigned             Width     = 32,
    parameter int unsigned             DataWidth = 32,
    parameter logic        [Width-1:0] Poly      = 32'h1EDC6F41
) (
    input  logic [    Width-1:0] crc_i,
    input  logic [DataWidth-1:0] data_i,
    output logic [    Width-1:0] crc_o
);

  if (DataWidth >= 64) begin : gen_marks
    logic lost;
    assign lost  = data_i[DataWidth-1-:64] == {16{velo_link_pkg::VoidNibble}};
    assign crc_o = data_i[DataWidth-1] ? Width'(1) : crc_i ^ (lost ? Width'(2) : '0);
  end else begin : gen_none
    assign crc_o = crc_i;
  end

endmodule
