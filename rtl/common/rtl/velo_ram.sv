// SPDX-License-Identifier: Apache-2.0
//
// Memory with one write port and one synchronous read port: a block RAM.
//
// `rdata_o` holds, after a clock edge, what was at `raddr_i` before it. Reading and writing the same
// address at one edge gives no defined data: the user does not depend on it.

module velo_ram #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 512,
    localparam int unsigned AddrWidth = $clog2(Depth)
) (
    input logic clk_i,

    input logic                 we_i,     // write this word
    input logic [AddrWidth-1:0] waddr_i,  // at this address
    input logic [    Width-1:0] wdata_i,  // the word

    input  logic [AddrWidth-1:0] raddr_i,  // address to read
    output logic [    Width-1:0] rdata_o   // what was there, a cycle later
);

  // Without this, logic around the memory would make collisions give the old word.
  (* no_rw_check *)
  logic [Width-1:0] mem[Depth];

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    rdata_o <= mem[raddr_i];
  end

endmodule
