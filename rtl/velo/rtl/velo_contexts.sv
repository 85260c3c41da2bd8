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
//
// With `Ecc` the entries are protected (velo_ram). `broken_o`, with `enabled_o`: an entry of the context
// cannot be read, and the answer must not be acted upon; a new configuration mends it. `ecc_o` tells what
// was met by the look-up whose answer is used in this cycle, `use_i`.

`include "velo_assert.svh"

module velo_contexts
  import velo_secded_pkg::*;
#(
    parameter int unsigned CtxBits = 8,
    parameter int unsigned AddrBits = 48,
    parameter bit Ecc = 1'b0
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
    output logic                broken_o,
    input  logic                use_i,
    output ecc_t                ecc_o,

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

  ecc_t ring_ecc, write_ecc, read_ecc, ecc_q;
  logic [BaseBits-1:0] base, base_q;
  logic [14:0] last_slot, last_slot_q;
  logic enabled;
  velo_ram #(
      .Width(EntryBits),
      .Depth(2 ** CtxBits),
      .ReadsOld(1'b1),
      .Ecc(Ecc)
  ) u_rings (
      .clk_i,
      .we_i(set),
      .waddr_i(set_ctx),
      .wdata_i({cfg_base_i, cfg_last_slot_i, cfg_enabled_i && !clearing_q}),
      .raddr_i(lookup_ctx_i),
      .rdata_o({base, last_slot, enabled}),
      .corrected_o(ring_ecc.corrected),
      .broken_o(ring_ecc.broken)
  );

  logic [15:0] write_pointer;
  velo_ram #(
      .Width(16),
      .Depth(2 ** CtxBits),
      .ReadsOld(1'b1),
      .Ecc(Ecc)
  ) u_write_pointers (
      .clk_i,
      .we_i(set || advance_i),
      .waddr_i(set ? set_ctx : advance_ctx_i),
      .wdata_i(set ? '0 : advance_pointer_i),
      .raddr_i(lookup_ctx_i),
      .rdata_o(write_pointer),
      .corrected_o(write_ecc.corrected),
      .broken_o(write_ecc.broken)
  );

  logic [15:0] read_pointer, read_pointer_q;
  velo_ram #(
      .Width(16),
      .Depth(2 ** CtxBits),
      .ReadsOld(1'b1),
      .Ecc(Ecc)
  ) u_read_pointers (
      .clk_i,
      .we_i(set || read_pointer_valid_i),
      .waddr_i(set ? set_ctx : read_pointer_ctx_i),
      .wdata_i(set ? '0 : read_pointer_i),
      .raddr_i(lookup_ctx_i),
      .rdata_o(read_pointer),
      .corrected_o(read_ecc.corrected),
      .broken_o(read_ecc.broken)
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

    // A word that is forwarded was not read.
    ecc_q             <= ring_ecc | read_ecc | (forward_q ? '0 : write_ecc);
  end
  assign broken_o = ecc_q.broken;
  assign ecc_o    = use_i ? ecc_q : '0;

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
