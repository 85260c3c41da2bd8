// SPDX-License-Identifier: Apache-2.0
//
// The completer's context table: for each context its ring's place and size, and both pointers.
//
// Pointers count slots and are 16 bits wide, free running; a slot's place in the ring is the low
// part, the whole pointer is the `seq` of the slot's header word. A ring has a power of two of
// slots, at most 32768, and starts at a multiple of its size, so a slot's address needs no adder.
//
// Look-up: the answer to `lookup_ctx_i` is there two cycles later, `full_o` three, as block RAM, the
// comparison of the pointers and what is made of it are too much for fewer; it is kept up to date as
// long as `lookup_ctx_i` stays, after a change by as many cycles. A look-up in the cycle of an advance
// sees the new pointer. Configuration: valid/ready; it
// empties the ring. The read pointer is taken at once; it and a configuration never come in the same
// cycle (both are writes of one host to one register file). After reset the table is cleared, one
// context a cycle; `ready_o` says when that is done.

`include "velo_assert.svh"

module velo_contexts #(
    parameter int unsigned CtxBits  = 8,
    parameter int unsigned AddrBits = 48
) (
    input logic clk_i,
    input logic rst_ni,

    output logic ready_o,

    input  logic                cfg_valid_i,
    output logic                cfg_ready_o,
    input  logic [ CtxBits-1:0] cfg_ctx_i,
    input  logic                cfg_enabled_i,
    input  logic [AddrBits-1:6] cfg_base_i,
    input  logic [        14:0] cfg_last_slot_i,

    input logic               read_pointer_valid_i,
    input logic [CtxBits-1:0] read_pointer_ctx_i,
    input logic [       15:0] read_pointer_i,

    input  logic [ CtxBits-1:0] lookup_ctx_i,
    output logic                enabled_o,
    output logic                full_o,
    output logic [        15:0] write_pointer_o,
    output logic [AddrBits-1:6] slot_o,

    input logic               advance_i,
    input logic [CtxBits-1:0] advance_ctx_i,
    input logic [       15:0] advance_pointer_i
);

  localparam int unsigned BaseBits = AddrBits - 6;
  localparam int unsigned EntryBits = BaseBits + 15 + 1;

  // Clearing looks to the tables like a configuration of each context in turn.
  logic clearing_q;
  logic [CtxBits-1:0] clear_ctx_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      clearing_q  <= 1'b1;
      clear_ctx_q <= '0;
    end else if (clearing_q) begin
      clear_ctx_q <= clear_ctx_q + 1'b1;
      clearing_q  <= clear_ctx_q != '1;
    end
  end

  assign ready_o     = !clearing_q;
  // The write pointer's only write port goes to a message first: it must not wait.
  assign cfg_ready_o = !clearing_q && !advance_i;

  logic set;
  logic [CtxBits-1:0] set_ctx;
  assign set     = clearing_q || (cfg_valid_i && cfg_ready_o);
  assign set_ctx = clearing_q ? clear_ctx_q : cfg_ctx_i;

  logic [BaseBits-1:0] base, base_q;
  logic [14:0] last_slot, last_slot_q;
  logic enabled;
  velo_table #(
      .Width(EntryBits),
      .AddrBits(CtxBits)
  ) u_rings (
      .clk_i,
      .write_i(set),
      .write_addr_i(set_ctx),
      .write_data_i({cfg_base_i, cfg_last_slot_i, cfg_enabled_i && !clearing_q}),
      .read_addr_i(lookup_ctx_i),
      .read_data_o({base, last_slot, enabled})
  );

  logic [15:0] write_pointer;
  velo_table #(
      .Width(16),
      .AddrBits(CtxBits)
  ) u_write_pointers (
      .clk_i,
      .write_i(set || advance_i),
      .write_addr_i(set ? set_ctx : advance_ctx_i),
      .write_data_i(set ? '0 : advance_pointer_i),
      .read_addr_i(lookup_ctx_i),
      .read_data_o(write_pointer)
  );

  logic [15:0] read_pointer, read_pointer_q;
  velo_table #(
      .Width(16),
      .AddrBits(CtxBits)
  ) u_read_pointers (
      .clk_i,
      .write_i(set || read_pointer_valid_i),
      .write_addr_i(set ? set_ctx : read_pointer_ctx_i),
      .write_data_i(set ? '0 : read_pointer_i),
      .read_addr_i(lookup_ctx_i),
      .read_data_o(read_pointer)
  );

  // The block RAM still shows the old pointer to who looks up while it is being advanced.
  logic forward_q;
  logic [15:0] forward_pointer_q;
  always_ff @(posedge clk_i) begin
    forward_q         <= advance_i && advance_ctx_i == lookup_ctx_i;
    forward_pointer_q <= advance_pointer_i;

    base_q            <= base;
    last_slot_q       <= last_slot;
    enabled_o         <= enabled;
    write_pointer_o   <= forward_q ? forward_pointer_q : write_pointer;
    read_pointer_q    <= read_pointer;
  end

  // Slots in use reach the size: a bit above the mask is set. A read pointer that is ahead of the
  // write pointer also reads as full, so a wrong one stops its own ring and overwrites nothing.
  logic [15:0] used;
  logic full_d;
  assign used   = write_pointer_o - read_pointer_q;
  assign full_d = |(used & ~{1'b0, last_slot_q});
  assign slot_o = base_q | BaseBits'(write_pointer_o[14:0] & last_slot_q);

  always_ff @(posedge clk_i) full_o <= full_d;

  `VELO_ASSERT_INIT(AddressHoldsRing, AddrBits >= 6 + 15 && AddrBits <= 64)
  // The read pointers' only write port serves one of the two.
  `VELO_ASSUME(OneRegisterWriteAtATime, !(cfg_valid_i && read_pointer_valid_i))
  // Not full: the slot that the write pointer names has been read, for every legal size.
  `VELO_ASSERT(NotFullMeansFree,
               full_d || used <= {1'b0, last_slot_q} || (last_slot_q & (last_slot_q + 15'd1)) != '0)
  // No message is on its way while the table is being cleared.
  `VELO_ASSERT(NoAdvanceWhileClearing, !(advance_i && clearing_q))

endmodule
