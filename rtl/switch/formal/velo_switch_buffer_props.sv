// SPDX-License-Identifier: Apache-2.0
//
// An input's buffer with check bits, of which in each word that is read up to two bits are wrong (velo_ram of the
// proofs). What is not marked as lost is what was written; what is lost is void, is told, and marks the rest
// of its packet, and nothing else.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_switch_buffer_props
  import velo_link_pkg::*;
  import velo_secded_pkg::*;
#(
    parameter int unsigned DataWidth = 8,
    parameter int unsigned AddrBits = 2,
    localparam int unsigned Stored = DataWidth + num_checks(DataWidth)
) (
    input logic                 clk_i,
    input logic                 rst_ni,
    input logic                 we_i,
    input logic [ AddrBits-1:0] waddr_i,
    input logic [DataWidth-1:0] wdata_i,
    input logic                 read_i,
    input logic                 first_i,
    input logic [ AddrBits-1:0] raddr_i,
    input logic [   Stored-1:0] first_wrong_i,
    input logic [   Stored-1:0] second_wrong_i
);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  logic [DataWidth-1:0] data;
  logic void_word;
  ecc_t ecc;

  velo_switch_buffer #(
      .DataWidth(DataWidth),
      .AddrBits (AddrBits),
      .Ecc      (1'b1)
  ) u_dut (
      .data_o(data),
      .void_o(void_word),
      .ecc_o (ecc),
      .*
  );

  assign u_dut.u_ram.gen_ecc.wrong = first_wrong_i ^ second_wrong_i;
  `VELO_ASSUME(TwoBitsAtMost, $onehot0(first_wrong_i) && $onehot0(second_wrong_i))
  logic two_q;
  always_ff @(posedge clk_i) two_q <= $countones(first_wrong_i ^ second_wrong_i) == 2;

  // One address, whichever it is, and what was written there last.
  logic [AddrBits-1:0] addr_q;
  logic [DataWidth-1:0] written_q;
  logic there_q;
  // Of the word that was read two cycles ago.
  logic [1:0] read_q, first_q, this_q, opened_q;
  logic [1:0][DataWidth-1:0] right_q;
  logic lost_q;  // a word of this packet, before that one
  logic lost;
  assign lost = lost_q && !first_q[1];
  always_ff @(posedge clk_i) begin
    addr_q <= addr_q;
    if (we_i && waddr_i == addr_q) written_q <= wdata_i;
    right_q <= {right_q[0], written_q};
    if (!rst_ni) begin
      there_q  <= 1'b0;
      read_q   <= '0;
      first_q  <= '0;
      this_q   <= '0;
      opened_q <= '0;
      lost_q   <= 1'b0;
    end else begin
      there_q  <= there_q || (we_i && waddr_i == addr_q);
      read_q   <= {read_q[0], read_i};
      first_q  <= {first_q[0], first_i && read_i};
      this_q   <= {this_q[0], read_i && raddr_i == addr_q};
      opened_q <= {opened_q[0], opened_q[0] || (read_i && first_i)};
      if (read_q[1]) lost_q <= lost || ecc.broken;
    end
  end
  // A word is read after it has been written, and a packet from its first word on.
  `VELO_ASSUME(ReadsWhatIsThere, !(read_i && raddr_i == addr_q) ||
               (there_q && !(we_i && waddr_i == addr_q)))
  `VELO_ASSUME(BeginsWithTheFirst, !read_i || first_i || opened_q[0])

  `VELO_ASSERT(RightOrLost, !this_q[1] || ecc.broken || data == right_q[1])
  `VELO_ASSERT(LostIfTwoAreWrong, !read_q[1] || ecc.broken == two_q)
  `VELO_ASSERT(LostIsVoid, !(read_q[1] && ecc.broken) || data == {DataWidth / 4{VoidNibble}})
  `VELO_ASSERT(LostIsMarked, !read_q[1] || void_word == (lost || ecc.broken))
  `VELO_ASSERT(ToldOfWhatIsRead, ecc == '0 || read_q[1])
  `VELO_ASSERT(TwoAreNotPutRight, !(ecc.broken && ecc.corrected))
  `VELO_COVER(PutRight, this_q[1] && ecc.corrected && data == DataWidth'(8'h5A))
  `VELO_COVER(GoodBehindALostPacket, this_q[1] && !void_word && lost_q && first_q[1])

endmodule
