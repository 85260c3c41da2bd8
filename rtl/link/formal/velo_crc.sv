// SPDX-License-Identifier: Apache-2.0
//
// The CRC of the proofs: one that misses nothing. The channel of the proof marks each word that it
// changes with a one in the top bit, which no sent word has; this CRC remembers whether it saw one. Parts
// of words of control have no such bit: there the receiver's look at the bits above them does.
// (The real one misses one disturbance in 2**32; that is not what is proven.)

module velo_crc #(
    parameter int unsigned             Width     = 32,
    parameter int unsigned             DataWidth = 32,
    parameter logic        [Width-1:0] Poly      = 32'h1EDC6F41
) (
    input  logic [    Width-1:0] crc_i,
    input  logic [DataWidth-1:0] data_i,
    output logic [    Width-1:0] crc_o
);

  assign crc_o = DataWidth >= 64 && data_i[DataWidth-1] ? Width'(1) : crc_i;

endmodule
