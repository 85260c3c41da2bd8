// SPDX-License-Identifier: Apache-2.0
//
// The memory of the link's proofs: velo_ram, and with Ecc what the proof of velo_secded says of it. The proof that
// uses it drives `wrong`, how many bits of the word that is shown are wrong: none, one, which is put right, or two, and
// then the word is `noise`.

module velo_ram #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 512,
    parameter bit ReadsOld = 1'b0,
    parameter bit Ecc = 1'b0,
    localparam int unsigned AddrWidth = $clog2(Depth)
) (
    input logic clk_i,

    input logic                 we_i,
    input logic [AddrWidth-1:0] waddr_i,
    input logic [    Width-1:0] wdata_i,

    input  logic [AddrWidth-1:0] raddr_i,
    output logic [    Width-1:0] rdata_o,
    output logic                 corrected_o,
    output logic                 broken_o
);

  logic [Width-1:0] mem[Depth];
  logic [Width-1:0] word_q;
  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    word_q <= mem[raddr_i];
  end

  if (Ecc) begin : gen_ecc
    wire [1:0] wrong;
    wire [Width-1:0] noise;
    assign broken_o = wrong == 2'd2;
    assign corrected_o = wrong == 2'd1;
    assign rdata_o = broken_o ? noise : word_q;
  end else begin : gen_plain
    assign rdata_o = word_q;
    assign corrected_o = 1'b0;
    assign broken_o = 1'b0;
  end

endmodule
