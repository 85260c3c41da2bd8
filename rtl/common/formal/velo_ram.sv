// SPDX-License-Identifier: Apache-2.0
//
// The memory of proofs with check bits: velo_ram, of which the proof says what bits of a word are wrong whenever it is
// read (`gen_ecc.wrong`, which it drives). Check bits are made as the word is read instead of as it is written, which
// is the same and easier to prove.

module velo_ram
  import velo_secded_pkg::*;
#(
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
    localparam int unsigned Checks = num_checks(Width);
    localparam int unsigned Stored = Width + Checks;
    wire [Stored-1:0] wrong;  // of the word that is shown
    logic [Checks-1:0] checks;
    logic [Stored-1:0] stored;

    velo_secded_encode #(
        .Width(Width)
    ) u_encode (
        .data_i  (word_q),
        .checks_o(checks)
    );
    assign stored = {checks, word_q} ^ wrong;
    velo_secded_decode #(
        .Width(Width)
    ) u_decode (
        .data_i  (stored[Width-1:0]),
        .checks_i(stored[Stored-1:Width]),
        .data_o  (rdata_o),
        .corrected_o,
        .broken_o
    );
  end else begin : gen_plain
    assign rdata_o = word_q;
    assign corrected_o = 1'b0;
    assign broken_o = 1'b0;
  end

endmodule
