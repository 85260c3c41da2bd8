// SPDX-License-Identifier: Apache-2.0
//
// Words of a FIFO in block RAM, the oldest one in a register: it is there one cycle after it came in, and nothing
// of the memory's time is between it and the side that takes it.
//
// The user keeps the pointers, of one bit more than an address: `write_i` is where the next word goes, `read_i`
// where the oldest one is. `push_i` writes `data_i`, `pop_i` says that `read_i` moves up with the next edge. As
// long as they are equal, `oldest_o` means nothing. `write_i` may go back to an earlier word that has not left:
// those behind are forgotten. Errors: none; the user keeps from pushing into a full memory.

`include "velo_assert.svh"

module velo_fifo_ram #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 256,
    localparam int unsigned AddrWidth = $clog2(Depth)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic               push_i,   // a word comes in
    input logic [AddrWidth:0] write_i,  // its place
    input logic [  Width-1:0] data_i,   // the word

    input  logic               pop_i,    // the oldest word leaves
    input  logic [AddrWidth:0] read_i,   // its place
    output logic [  Width-1:0] oldest_o  // the word
);

  typedef logic [AddrWidth:0] addr_t;

  // The memory shows the oldest word but one. `pop_i` comes late: both sums are ready for it, and so that synthesis
  // does not make one sum of them behind it, they differ in form.
  addr_t next, after_next;
  logic at_next, at_read;  // where the next word goes
  logic [Width-1:0] second;

  assign next = read_i + 1'b1;
  assign after_next = {read_i[AddrWidth:1] + 1'b1, read_i[0]};
  assign at_next = write_i == next;
  assign at_read = write_i == read_i;

  velo_ram_through #(
      .Width(Width),
      .Depth(Depth)
  ) u_ram (
      .clk_i,
      .we_i   (push_i),
      .waddr_i(write_i[AddrWidth-1:0]),
      .wdata_i(data_i),
      .raddr_i(pop_i ? after_next[AddrWidth-1:0] : next[AddrWidth-1:0]),
      .rdata_o(second)
  );

  always_ff @(posedge clk_i) begin
    if (pop_i ? at_next : at_read) oldest_o <= data_i;
    else if (pop_i) oldest_o <= second;
  end

  logic unused;
  assign unused = ^{rst_ni, after_next[AddrWidth]};

  `VELO_ASSUME(NotOverfull, !push_i || addr_t'(write_i - read_i) != addr_t'(2 ** AddrWidth))
  `VELO_ASSUME(OnlyWhatIsThereLeaves, !pop_i || write_i != read_i)

endmodule
