// SPDX-License-Identifier: Apache-2.0
//
// Memory with one write port and one synchronous read port: a block RAM. Contents are undefined until
// written.
//
// `rdata_o` holds, after a clock edge, what was at `raddr_i` before it. Reading and writing the same
// address at one edge gives the old word with `ReadsOld`, else no defined data: the user does not depend
// on it.
//
// With `Ecc` each word is stored with check bits (velo_secded_pkg): one wrong bit is put right as the word
// is read, in the same cycle; the memory keeps it until the word is written again. Errors: `corrected_o`
// and `broken_o` tell of the word at `rdata_o`, whether anybody uses it or not; of a word that was never
// written they say nothing. The user counts those that it uses, and acts upon none that is broken.

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

    input logic                 we_i,     // write this word
    input logic [AddrWidth-1:0] waddr_i,  // at this address
    input logic [    Width-1:0] wdata_i,  // the word

    input  logic [AddrWidth-1:0] raddr_i,      // address to read
    output logic [    Width-1:0] rdata_o,      // what was there, a cycle later
    output logic                 corrected_o,  // with it: one bit was wrong and was put right
    output logic                 broken_o      // with it: two bits are wrong
);

  localparam int unsigned Checks = Ecc ? num_checks(Width) : 0;
  localparam int unsigned Stored = Width + Checks;

  logic [Stored-1:0] word_in, word_out;

  if (ReadsOld) begin : gen_old
    logic [Stored-1:0] mem[Depth];
    always_ff @(posedge clk_i) begin
      if (we_i) mem[waddr_i] <= word_in;
      word_out <= mem[raddr_i];
    end
  end else begin : gen_any
    // Without this, logic around the memory would make collisions give the old word.
    (* no_rw_check *)
    logic [Stored-1:0] mem[Depth];
    always_ff @(posedge clk_i) begin
      if (we_i) mem[waddr_i] <= word_in;
      word_out <= mem[raddr_i];
    end
  end

  if (Ecc) begin : gen_ecc
    logic [Checks-1:0] checks;
    velo_secded_encode #(
        .Width(Width)
    ) u_encode (
        .data_i  (wdata_i),
        .checks_o(checks)
    );
    assign word_in = {checks, wdata_i};
    velo_secded_decode #(
        .Width(Width)
    ) u_decode (
        .data_i  (word_out[Width-1:0]),
        .checks_i(word_out[Stored-1:Width]),
        .data_o  (rdata_o),
        .corrected_o,
        .broken_o
    );
  end else begin : gen_plain
    assign word_in     = wdata_i;
    assign rdata_o     = word_out;
    assign corrected_o = 1'b0;
    assign broken_o    = 1'b0;
  end

endmodule
