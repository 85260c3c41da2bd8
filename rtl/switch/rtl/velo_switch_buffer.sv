// SPDX-License-Identifier: Apache-2.0
//
// The words of an input's buffer, in block RAM.
//
// `read_i`: the word at `raddr_i` is sent, `first_i`: as a packet's first one. Two cycles later it is at `data_o`,
// a register, since the block RAM's word would be late for the way to an output.
//
// With `Ecc` the words are protected (velo_ram). In the place of a word that cannot be read VoidNibble is sent: as
// the first one it leads nowhere, so nothing is routed by a word that is not known to be right.
// Errors: `void_o`, with `data_o`, from there to the packet's last word: the packet must not be acted upon.
// `ecc_o` pulses for each word.

module velo_switch_buffer
  import velo_link_pkg::*;
  import velo_secded_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned AddrBits = 11,
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    // Write: in each cycle with `we_i`.
    input logic                 we_i,
    input logic [ AddrBits-1:0] waddr_i,
    input logic [DataWidth-1:0] wdata_i,

    input  logic                 read_i,
    input  logic                 first_i,
    input  logic [ AddrBits-1:0] raddr_i,
    output logic [DataWidth-1:0] data_o,
    output logic                 void_o,
    output ecc_t                 ecc_o
);

  ecc_t word_ecc;
  logic [DataWidth-1:0] word;
  velo_ram #(
      .Width(DataWidth),
      .Depth(2 ** AddrBits),
      .Ecc  (Ecc)
  ) u_ram (
      .clk_i,
      .we_i,
      .waddr_i,
      .wdata_i,
      .raddr_i,
      .rdata_o    (word),
      .corrected_o(word_ecc.corrected),
      .broken_o   (word_ecc.broken)
  );

  always_ff @(posedge clk_i) data_o <= word_ecc.broken ? {DataWidth / 4{VoidNibble}} : word;

  if (Ecc) begin : gen_ecc
    logic read_q, first_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        read_q <= 1'b0;
        ecc_o  <= '0;
      end else begin
        read_q <= read_i;
        ecc_o  <= read_q ? word_ecc : '0;
      end
    end
    always_ff @(posedge clk_i) begin
      first_q <= first_i;
      if (read_q) void_o <= word_ecc.broken || (void_o && !first_q);
    end
  end else begin : gen_plain
    logic unused;
    assign unused = ^{rst_ni, read_i, first_i, word_ecc.corrected};
    assign void_o = 1'b0;
    assign ecc_o  = '0;
  end

endmodule
