// SPDX-License-Identifier: Apache-2.0
//
// The completer's promises, seen from outside, for every stream of packets, well-formed or not,
// every behaviour of the DMA side and every sequence of configuration.
//
//   * A DMA write has the length it announces, one address, and is never interrupted.
//   * A slot's header word is written only when all bytes of a well-formed packet have been: directly
//     before it, its payload was written whole to the same slot; and it describes that packet.
//   * Each packet is received or reported, once, and no watchdog acts that software did not set.
//   * `Ring`: a DMA write lies in the ring of its packet's context, whatever base and size that was given
//     last, in a slot, and not while the context is disabled.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_completer_props
  import velo_pkg::*;
#(
    // Where the writes are: rings of a few bits, as all are handled alike.
    parameter bit Ring = 1'b0
) (
    input logic        clk_i,
    input logic        rst_ni,
    input logic [ 7:0] node_id_i,
    input logic        watchdog_enable_i,
    input logic [19:0] watchdog_cycles_i,
    input logic        cfg_valid_i,
    input logic        cfg_ctx_i,
    input logic        cfg_enabled_i,
    input logic [20:6] cfg_base_i,
    input logic [14:0] cfg_last_slot_i,
    input logic        read_pointer_valid_i,
    input logic        read_pointer_ctx_i,
    input logic [15:0] read_pointer_i,
    input logic        net_valid_i,
    input logic        net_sop_i,
    input logic        net_eop_i,
    input logic        net_poison_i,
    input logic [31:0] net_data_i,
    input logic        dma_ready_i
);

  logic cfg_ready, net_ready, dma_valid, dma_sop, dma_eop, received, stalled, error_valid;
  logic [31:0] dma_data;
  logic [20:0] dma_addr;
  logic [ 9:0] dma_len_bytes;
  logic [7:0] stall_ctx, error_ctx, error_node;
  error_e error_code;

  velo_secded_pkg::ecc_t unused_ecc;
  velo_completer #(
      .DataWidth(32),
      .CtxBits  (1),
      .AddrBits (21)
  ) u_dut (
      .cfg_ready_o    (cfg_ready),
      .net_ready_o    (net_ready),
      .dma_valid_o    (dma_valid),
      .dma_sop_o      (dma_sop),
      .dma_eop_o      (dma_eop),
      .dma_data_o     (dma_data),
      .dma_addr_o     (dma_addr),
      .dma_len_bytes_o(dma_len_bytes),
      .received_o     (received),
      .stalled_o      (stalled),
      .stall_ctx_o    (stall_ctx),
      .error_valid_o  (error_valid),
      .error_code_o   (error_code),
      .error_ctx_o    (error_ctx),
      .error_node_o   (error_node),
      .ecc_o          (unused_ecc),
      .*
  );

  // ----- the environment ------------------------------------------------------------------------

  logic past_q, net_stable_q, open_q, cfg_wait_q;
  logic [34:0] net_q;
  logic [31:0] cfg_q;
  logic [ 7:0] node_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q       <= 1'b1;
    node_q       <= node_id_i;
    net_stable_q <= rst_ni && net_valid_i && !net_ready;
    net_q        <= {net_sop_i, net_eop_i, net_poison_i, net_data_i};
    cfg_wait_q   <= rst_ni && cfg_valid_i && !cfg_ready;
    cfg_q        <= {cfg_ctx_i, cfg_enabled_i, cfg_base_i, cfg_last_slot_i};
    if (!rst_ni) open_q <= 1'b0;
    else if (net_valid_i && net_ready) open_q <= !net_eop_i;
  end
  always_comb assume (past_q || !rst_ni);
  `VELO_ASSUME(ConstantNode, node_q == node_id_i)
  `VELO_ASSUME(OfferStands,
               !net_stable_q ||
               (net_valid_i && net_q == {net_sop_i, net_eop_i, net_poison_i, net_data_i}))
  `VELO_ASSUME(Framing, !net_valid_i || net_sop_i == !open_q)
  logic [31:0] cfg;
  assign cfg = {cfg_ctx_i, cfg_enabled_i, cfg_base_i, cfg_last_slot_i};
  `VELO_ASSUME(CfgStands, !cfg_wait_q || (cfg_valid_i && cfg_q == cfg))
  // Both are writes of one host to one register file.
  `VELO_ASSUME(OneRegisterWriteAtATime, !(cfg_valid_i && read_pointer_valid_i))

  // ----- the last packet that came in -----------------------------------------------------------

  packet_t header, last_q;
  logic [4:0] beats_q, beats;  // taken of the packet, before this one; stops at 31
  logic [63:0] header_q;
  logic last_good_q, well_formed, net_take;
  packet_t packet_q;  // the one received last; the next may be in already
  logic good_q, status_due_q;
  logic [9:0] last_bytes;

  assign net_take = net_valid_i && net_ready;
  always_comb begin
    header = packet_t'(header_q);
    if (beats_q == 5'd1) header[63:32] = net_data_i;
  end
  assign beats = net_sop_i ? 5'd0 : beats_q;
  assign well_formed = beats != 5'd0 && !net_poison_i &&
      header.kind == PacketKindVelo && header.tc == '0 &&
      !header.routed && header.len <= 10'd56 && header.dst_node == node_id_i &&
      10'(beats) == 10'd1 + (((header.len + 10'd7) >> 3) << 1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beats_q     <= '0;
      last_good_q <= 1'b0;
    end else if (net_take) begin
      if (beats != '1) beats_q <= beats + 5'd1;
      if (beats == 5'd0) header_q[31:0] <= net_data_i;
      if (beats == 5'd1) header_q[63:32] <= net_data_i;
      if (net_eop_i && beats != 5'd0) begin
        last_good_q <= well_formed;
        last_q      <= header;
      end
    end
  end

  // ----- the DMA side ---------------------------------------------------------------------------

  logic writing_q, dma_take, is_status, payload_done_q;
  logic [9:0] left_q;
  logic [20:0] addr_q;
  logic [9:0] payload_bytes_q;
  logic [20:6] payload_slot_q;
  header_t status;

  always_ff @(posedge clk_i) begin
    if (received) begin
      packet_q <= last_q;
      good_q   <= last_good_q;
    end
    if (!rst_ni) status_due_q <= 1'b0;
    else if (received) status_due_q <= 1'b1;
    else if (dma_take && is_status && dma_sop) status_due_q <= 1'b0;
  end

  assign dma_take   = dma_valid && dma_ready_i;
  assign is_status  = dma_addr[5:0] == '0;
  assign status     = header_t'({32'b0, dma_data});
  assign last_bytes = ((packet_q.len + 10'd7) >> 3) << 3;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      writing_q      <= 1'b0;
      payload_done_q <= 1'b0;
    end else if (dma_take) begin
      writing_q <= !dma_eop;
      left_q    <= (dma_sop ? dma_len_bytes : left_q) - 10'd4;
      addr_q    <= dma_addr;
      if (dma_eop) begin
        payload_done_q  <= !is_status;
        payload_bytes_q <= dma_len_bytes;
        payload_slot_q  <= dma_addr[20:6];
      end
    end
  end

  logic [9:0] left;
  assign left = dma_sop ? dma_len_bytes : left_q;
  `VELO_ASSERT(WritesAreWhole, !dma_valid || (dma_sop == !writing_q && dma_eop == (left == 10'd4)))
  `VELO_ASSERT(OneAddressAWrite, !dma_valid || dma_sop || dma_addr == addr_q)
  `VELO_ASSERT(PayloadOrStatus, !dma_valid || is_status || dma_addr[5:0] == 6'd8)
  `VELO_ASSERT(StatusIsOneWord, !dma_valid || !is_status || dma_len_bytes == 10'd8)
  // The first beat of the header word, as long as it is offered.
  logic status_sop, payload_whole;
  assign status_sop    = dma_valid && is_status && dma_sop;
  assign payload_whole = payload_done_q && payload_bytes_q == last_bytes &&
                         payload_slot_q == dma_addr[20:6];
  `VELO_ASSERT(NeverPartial, !status_sop || (good_q && (packet_q.len == '0 || payload_whole)))
  `VELO_ASSERT(OneStatusAMessage, !status_sop || status_due_q)
  `VELO_ASSERT(StatusIsNeverZero, !status_sop || status.valid)
  `VELO_ASSERT(StatusLength, !status_sop || status.len == {6'b0, packet_q.len})
  `VELO_ASSERT(StatusTag, !status_sop || status.tag == packet_q.tag)
  `VELO_ASSERT(StatusKind,
               !status_sop || {status.external, status.reserved} == {6'b0, packet_q.frag})

  // Its second beat may be offered when the next packet is in already.
  packet_t status_packet_q;
  always_ff @(posedge clk_i) if (dma_take && dma_sop) status_packet_q <= packet_q;
  logic [15:0] sender;
  assign sender = {status_packet_q.src_node, status_packet_q.src_ctx};
  `VELO_ASSERT(StatusNamesSender,
               !(dma_valid && is_status && !dma_sop) || dma_data[15:0] == sender)

  // ----- received or reported, once -------------------------------------------------------------

  logic [2:0] pending_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) pending_q <= '0;
    else
      pending_q <= pending_q + {2'b0, net_take && net_sop_i} - {2'b0, received} -
        {2'b0, error_valid};
  end
  `VELO_ASSERT(ReceivedOrReportedOnce, pending_q <= 3'd2)
  logic watchdog_q;
  always_ff @(posedge clk_i) watchdog_q <= watchdog_enable_i;
  `VELO_ASSERT(NoDropUnasked, !(error_valid && error_code == ErrorStall) || watchdog_q)

  // ----- where the writes are -------------------------------------------------------------------

  // A beat is looked at when it is offered for the first time: while it waits, the next packet comes in.
  logic dma_waits_q, dma_new;
  logic [65:0] dma_q, dma;
  assign dma     = {dma_sop, dma_eop, dma_data, dma_addr, dma_len_bytes};
  assign dma_new = dma_valid && !dma_waits_q;
  always_ff @(posedge clk_i) begin
    dma_waits_q <= rst_ni && dma_valid && !dma_ready_i;
    dma_q       <= dma;
  end
  `VELO_ASSERT(DmaStands, !dma_waits_q || (dma_valid && dma == dma_q))

  // The ring of one context of one's choice, as software gave it last.
  logic ctx_q, ring_enabled_q, ours, ours_received_q, received_enabled_q;
  logic [20:6] base_q, received_base_q;
  logic [14:0] last_slot_q, received_last_slot_q;
  always_ff @(posedge clk_i) begin
    ctx_q <= ctx_q;
    if (!rst_ni) ring_enabled_q <= 1'b0;
    else if (cfg_valid_i && cfg_ready && cfg_ctx_i == ctx_q) ring_enabled_q <= cfg_enabled_i;
    if (cfg_valid_i && cfg_ready && cfg_ctx_i == ctx_q) begin
      base_q      <= cfg_base_i;
      last_slot_q <= cfg_last_slot_i;
    end
    // A ring that is given while a header word is on its way is the next message's.
    if (received) begin
      ours_received_q      <= last_q.dst_ctx == {7'b0, ctx_q};
      received_enabled_q   <= ring_enabled_q;
      received_base_q      <= base_q;
      received_last_slot_q <= last_slot_q;
    end
  end
  // Software keeps the rule for rings: a power of two of slots, at a multiple of their size.
  `VELO_ASSUME(SizeIsAPowerOfTwo, (cfg_last_slot_i & (cfg_last_slot_i + 15'd1)) == '0)
  `VELO_ASSUME(AtAMultipleOfIt, (cfg_base_i & cfg_last_slot_i) == '0)
  `VELO_ASSUME(FewBits, !Ring || (cfg_base_i[20:8] == '0 && cfg_last_slot_i[14:1] == '0))

  // Payload is of the packet whose second beat came in last: the first one of the next may be in
  // already. A header word is of the packet received last.
  logic [7:0] payload_ctx_q;
  always_ff @(posedge clk_i) if (net_take && beats == 5'd1) payload_ctx_q <= header_q[23:16];
  assign ours = payload_ctx_q == {7'b0, ctx_q};
  if (Ring) begin : gen_ring
    `VELO_ASSERT(InsideTheRing, !(dma_new && dma_sop && !is_status && ours) ||
                 (dma_addr[20:6] & ~last_slot_q) == base_q)
    `VELO_ASSERT(OnlyIfEnabled, !(dma_new && dma_sop && !is_status && ours) || ring_enabled_q)
    `VELO_ASSERT(StatusInsideTheRing, !(dma_new && is_status && ours_received_q) ||
                 (dma_addr[20:6] & ~received_last_slot_q) == received_base_q)
    `VELO_ASSERT(StatusOnlyIfEnabled, !(dma_new && is_status && ours_received_q) ||
                 received_enabled_q)
  end
  // With these and WritesAreWhole, all bytes of a write are in its slot.
  `VELO_ASSERT(InsideTheSlot, !(dma_valid && !is_status) || dma_len_bytes <= 10'd56)

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (dma_take && is_status && packet_q.len == 10'd56);
      cover (error_valid && error_code == ErrorStall);
      cover (error_valid && error_code == ErrorMalformed && writing_q);
      cover (dma_take && dma_eop && is_status && !payload_done_q);
      cover (dma_take && is_status && dma_eop && payload_done_q && net_take && beats_q == 5'd1);
      // The ring wraps: the third message is in the first of two slots.
      cover (dma_take && is_status && dma_eop && dma_data[31:16] == 16'd2 && ours_received_q &&
             received_last_slot_q == 15'd1 && dma_addr[20:6] == received_base_q);
    end
  end

endmodule
