// SPDX-License-Identifier: Apache-2.0
//
// velo_ram that knows its last word: one that is written at an edge at which its address is read is read as it is
// written. So `rdata_o` is what a memory with an asynchronous read port shows at `raddr_i` of the cycle before.

module velo_ram_through #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 512,
    localparam int unsigned AddrWidth = $clog2(Depth)
) (
    input logic clk_i,

    input logic                 we_i,     // write this word
    input logic [AddrWidth-1:0] waddr_i,  // at this address
    input logic [    Width-1:0] wdata_i,  // the word

    input  logic [AddrWidth-1:0] raddr_i,  // address to read
    output logic [    Width-1:0] rdata_o   // what is there, a cycle later
);

  logic [Width-1:0] from_ram, late_q;
  logic is_late_q;
  logic [1:0] unused_ecc;

  assign rdata_o = is_late_q ? late_q : from_ram;

  velo_ram #(
      .Width(Width),
      .Depth(Depth)
  ) u_ram (
      .clk_i,
      .we_i,
      .waddr_i,
      .wdata_i,
      .raddr_i,
      .rdata_o(from_ram),
      .corrected_o(unused_ecc[0]),
      .broken_o(unused_ecc[1])
  );

  always_ff @(posedge clk_i) begin
    is_late_q <= we_i && waddr_i == raddr_i;
    late_q    <= wdata_i;
  end

endmodule
