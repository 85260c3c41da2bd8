// SPDX-License-Identifier: Apache-2.0
//
// Writes of the node to host memory as memory write packets.
//
// `write_*` is a write's address and length, with `open_i`; `word_*` are its words of 64 bits, those that contain it,
// in their places (velo_axi_dma_write makes both of what the node gives). A packet ends where addresses reach a
// multiple of the largest payload, so none is longer and none crosses a boundary of 4 KiB. The first beat leaves two
// cycles after the write came; a word's beat with it or a cycle later. All of a write leaves before the next one.
//
// Attributes: a write of more than 16 bytes may pass those before it, if the host permits that (`config_i.relaxed`).
// Shorter ones pass nothing: header words of messages and notifications, which announce what was written before.
//
// With `discard_i` no packet begins: a write, or what is left of one, is swallowed instead.
// `done_o` pulses with the last beat of a write that left, beside its address.
//
// Source: PCI Express Base Specification 3.0, sections 2.2.7 and 2.4.1.

`include "velo_assert.svh"

module velo_pcie_writes
  import htax_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input config_t config_i,
    input logic    discard_i,

    input  logic                write_valid_i,
    output logic                write_ready_o,
    input  logic [AddrBits-1:0] write_addr_i,
    input  logic [         9:0] write_len_bytes_i,
    input  logic                word_valid_i,
    output logic                word_ready_o,
    input  logic                word_last_i,
    input  logic [        63:0] word_data_i,

    output tlp_beat_t                tx_o,
    input  logic                     tx_ready_i,
    output logic                     done_o,
    output logic      [AddrBits-1:0] done_addr_o,
    output logic                     idle_o
);

  typedef enum logic [2:0] {
    StIdle,
    StFirst,   // the header's beats
    StSecond,
    StCarry,   // a word whose lower half is not in the packet
    StBody,
    StDiscard
  } state_e;

  state_e state_q;
  logic [AddrBits-1:0] addr_q, start_q;
  logic [9:0] left_q;
  logic relaxed_q;

  // ----- the packet at hand ---------------------------------------------------------------------

  logic [3:0] bits;
  logic [9:0] to_boundary, bytes, left_after;
  logic [10:0] end_byte;  // from the first dword's first
  logic [ 9:0] dwords;
  logic long_header, shift;
  logic [3:0] first_be, last_be, up_to;

  assign bits = size_bits(config_i.max_payload);
  assign to_boundary = (10'd1 << bits) - (addr_q[9:0] & ((10'd1 << bits) - 10'd1));
  assign bytes = left_q < to_boundary ? left_q : to_boundary;
  assign left_after = left_q - bytes;
  assign end_byte = {1'b0, bytes} + 11'(addr_q[1:0]);
  assign dwords = 10'((end_byte + 11'd3) >> 2);
  assign long_header = addr_q[AddrBits-1:32] != '0;
  assign up_to = 4'hf >> (2'd0 - end_byte[1:0]);
  assign first_be = (4'hf << addr_q[1:0]) & (dwords == 10'd1 ? up_to : 4'hf);
  assign last_be = dwords == 10'd1 ? 4'h0 : up_to;
  // Halves of words go into different beats.
  assign shift = long_header == addr_q[2];

  pcie_head_t head;
  always_comb begin
    head           = '0;
    head.length    = dwords;
    head.relaxed   = relaxed_q;
    head.tlp       = long_header ? PcieTlpMemWrite64 : PcieTlpMemWrite;
    head.first_be  = first_be;
    head.last_be   = last_be;
    head.requester = config_i.id;
  end

  // ----- its beats ------------------------------------------------------------------------------

  logic [ 9:0] dwords_q;  // not yet in a beat
  logic [31:0] carry_q;
  logic needs_word, word_take, tx_take;

  always_comb begin
    tx_o       = '{valid: 1'b0, last: 1'b0, keep: 2'b11, data: head};
    needs_word = 1'b0;
    unique case (state_q)
      StFirst: tx_o.valid = !discard_i;
      StSecond: begin
        needs_word = !long_header;
        tx_o.valid = long_header || word_valid_i;
        tx_o.last = !long_header && dwords == 10'd1;
        tx_o.data  = long_header ? {addr_q[31:2], 2'b0, 32'(addr_q[AddrBits-1:32])} :
            {addr_q[2] ? word_data_i[63:32] : word_data_i[31:0], addr_q[31:2], 2'b0};
      end
      StBody: begin
        needs_word   = !(shift && dwords_q == 10'd1);
        tx_o.valid   = !needs_word || word_valid_i;
        tx_o.last    = dwords_q <= 10'd2;
        tx_o.keep[1] = dwords_q != 10'd1;
        tx_o.data    = shift ? {word_data_i[31:0], carry_q} : word_data_i;
      end
      default: ;
    endcase
  end
  assign tx_take = tx_o.valid && tx_ready_i;
  assign word_ready_o = state_q == StCarry || state_q == StDiscard || (needs_word && tx_ready_i);
  assign word_take = word_valid_i && word_ready_o;
  assign write_ready_o = state_q == StIdle;
  // A reset may cut a write off that is only swallowed: nothing of it leaves.
  assign idle_o = state_q inside {StIdle, StDiscard};
  assign done_o = tx_take && tx_o.last && left_after == '0;
  assign done_addr_o = start_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:   if (write_valid_i) state_q <= discard_i ? StDiscard : StFirst;
        StFirst:  if (discard_i) state_q <= StDiscard;
 else if (tx_take) state_q <= StSecond;
        StSecond: if (tx_take) state_q <= long_header && shift ? StCarry : StBody;
        StCarry:  if (word_take) state_q <= StBody;
        StBody:   ;
        default:  if (word_take && word_last_i) state_q <= StIdle;
      endcase
      if (tx_take && tx_o.last) state_q <= left_after == '0 ? StIdle : StFirst;
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      addr_q    <= write_addr_i;
      start_q   <= write_addr_i;
      left_q    <= write_len_bytes_i;
      relaxed_q <= config_i.relaxed && write_len_bytes_i > 10'd16;
    end else if (tx_take && tx_o.last) begin
      addr_q <= addr_q + AddrBits'(bytes);
      left_q <= left_after;
    end
    if (word_take) carry_q <= word_data_i[63:32];
    if (tx_take) begin
      if (state_q == StFirst) dwords_q <= dwords;
      if (state_q == StSecond && !long_header) dwords_q <= dwords - 10'd1;
      if (state_q == StBody) dwords_q <= dwords_q - 10'd2;
    end
  end

  logic unused;
  assign unused = ^config_i;

  `VELO_ASSERT(NothingBeginsWhileDiscarded, !discard_i || state_q != StFirst || !tx_o.valid)
  // The last word of a write is in its last packet.
  `VELO_ASSERT(WordsEndWithThePacket,
               !(word_take && word_last_i) || state_q == StDiscard || left_after == '0)
  `VELO_ASSERT(WithinAPage,
               !(tx_o.valid && state_q == StFirst) || {1'b0, addr_q[11:0]} + 13'(bytes) <= 13'd4096)
  `VELO_ASSERT(NoLongerThanAllowed,
               !(tx_o.valid && state_q == StFirst) || {dwords, 2'b0} <= 12'd1 << bits)
  // What announces passes nothing.
  `VELO_ASSERT(AnnouncementsWait,
               state_q != StFirst || !head.relaxed || addr_q != start_q || left_q > 10'd16)
  `VELO_ASSUME(SomeBytes, !write_valid_i || write_len_bytes_i != '0)

endmodule
