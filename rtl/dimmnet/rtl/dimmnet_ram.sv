// SPDX-License-Identifier: Apache-2.0
//
// Memory of rows of 128 bits with byte enables: one write port, one synchronous read port. Contents are undefined
// until written. `rdata_o` holds, after a clock edge, what was at `raddr_i` before it; a row that is written at that
// edge gives the old one.

module dimmnet_ram #(
    parameter int unsigned Rows = 64,
    localparam int unsigned AddrWidth = $clog2(Rows)
) (
    input logic clk_i,

    input logic                 we_i,     // write
    input logic [AddrWidth-1:0] waddr_i,  // this row
    input logic [         15:0] be_i,     // these bytes
    input logic [        127:0] wdata_i,  // the bytes

    input  logic [AddrWidth-1:0] raddr_i,  // row to read
    output logic [        127:0] rdata_o   // what was there, a cycle later
);

  logic [127:0] mem[Rows];

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < 16; i++) begin
      if (we_i && be_i[i]) mem[waddr_i][8*i+:8] <= wdata_i[8*i+:8];
    end
    rdata_o <= mem[raddr_i];
  end

endmodule
