// SPDX-License-Identifier: Apache-2.0
//
// One write port, one read port, synchronous read: what FPGA block RAMs offer.
//
// A word read in the cycle in which it is written is the old one. Contents are undefined until
// written.

module velo_table #(
    parameter int unsigned Width = 16,
    parameter int unsigned AddrBits = 8
) (
    input logic clk_i,

    input logic                write_i,
    input logic [AddrBits-1:0] write_addr_i,
    input logic [   Width-1:0] write_data_i,

    input  logic [AddrBits-1:0] read_addr_i,
    output logic [   Width-1:0] read_data_o
);

  logic [Width-1:0] memory[2**AddrBits];

  always_ff @(posedge clk_i) begin
    if (write_i) memory[write_addr_i] <= write_data_i;
    read_data_o <= memory[read_addr_i];
  end

endmodule
