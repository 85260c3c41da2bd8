// SPDX-License-Identifier: Apache-2.0
//
// VELO completer: puts each message into the next slot of its context's ring in host memory.
//
// Source: VELO paper, section 3, "Buffer requirements and flow control" and "Message transfer
// overview"; later generations: a slot is valid once its first word is non-zero.
//
// A packet becomes two posted DMA writes, in this order: its payload to the slot's bytes 8 and up,
// then the header word (spec/velo.toml, `header`) to byte 0. The host polls the header word; since
// writes stay in order, a slot that can be seen to be valid is complete. The header word is the
// hardware's own: its source is the network's, not the sender's word for it, and its `seq` is the
// slot's position. Cut-through: the first DMA beat leaves four cycles after the packet's first beat
// came: into a register, two for the look-up of its ring (velo_contexts) while the header passes, and
// into the DMA's register. On a path of 32 bits packets follow each other without a gap.
//
// Network side (valid/ready): packets of the request class, without route words. DMA side
// (valid/ready): `dma_addr_o` and `dma_len_bytes_o` hold for the whole write; `dma_valid_o` never
// drops; a write, once begun, always ends with as many bytes as it announced.
//
// A full ring stops the network (nothing is lost; `stalled_o` and `stall_ctx_o` say where). Only if
// software sets `watchdog_enable_i`, each context has a patience of `watchdog_cycles_i` for this
// (velo_patience). When all of it is used up, messages for its full ring are dropped.
//
// Dropped, without harm to what follows, and reported by a pulse on `error_valid_o` with code,
// context and sending node:
//   ErrorKind       not a VELO message of the request class;
//   ErrorMalformed  another node's (and no group's), longer than a slot, or its end is not where its length says;
//   ErrorContext    the context is not enabled (also: was disabled while its message waited);
//   ErrorStall      the ring is full and its context has no patience left;
//   ErrorMemory     the context's entry in the table cannot be read (only with `Ecc`; see velo_contexts);
//   ErrorPoisoned   its end says that it was disturbed on its way (`net_poison_i` with the last beat).
// A packet that turns out too short or poisoned after its payload has begun leaves its slot unpublished.

`include "velo_assert.svh"

module velo_completer
  import velo_pkg::*;
  import velo_secded_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits   = 8,
    parameter int unsigned AddrBits  = 48,
    parameter bit          Ecc       = 1'b0,
    parameter bit          Multicast = 1'b0   // messages may come by groups
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [ 7:0] node_id_i,
    input logic        watchdog_enable_i,
    input logic [19:0] watchdog_cycles_i,

    input  logic                cfg_valid_i,
    output logic                cfg_ready_o,
    input  logic [ CtxBits-1:0] cfg_ctx_i,
    input  logic                cfg_enabled_i,
    input  logic [AddrBits-1:6] cfg_base_i,
    input  logic [        14:0] cfg_last_slot_i,
    input  logic                read_pointer_valid_i,
    input  logic [ CtxBits-1:0] read_pointer_ctx_i,
    input  logic [        15:0] read_pointer_i,

    input  logic                 net_valid_i,
    output logic                 net_ready_o,
    input  logic                 net_sop_i,
    input  logic                 net_eop_i,
    input  logic                 net_poison_i,
    input  logic [DataWidth-1:0] net_data_i,

    output logic                 dma_valid_o,
    input  logic                 dma_ready_i,
    output logic                 dma_sop_o,
    output logic                 dma_eop_o,
    output logic [DataWidth-1:0] dma_data_o,
    output logic [ AddrBits-1:0] dma_addr_o,
    output logic [          9:0] dma_len_bytes_o,

    output logic         received_o,
    output logic         stalled_o,
    output logic   [7:0] stall_ctx_o,
    output logic         error_valid_o,
    output error_e       error_code_o,
    output logic   [7:0] error_ctx_o,
    output logic   [7:0] error_node_o,
    output ecc_t         ecc_o           // the context's entry in the table; see velo_contexts
);

  localparam bit NarrowPath = DataWidth == 32;
  localparam int unsigned HighLsb = NarrowPath ? 0 : 32;  // of the header's upper half in its beat
  localparam int unsigned SlotPayloadBytes = LineBytes - LineHeaderBytes;

  typedef enum logic [2:0] {
    StHead,   // the first beat of a packet
    StHigh,   // the context table works; on a narrow path the header's upper half comes
    StJudge,  // the verdict is there; if the ring is full, wait
    StBody,   // payload passes
    StPad,    // the packet ended too early: complete the DMA write
    StDrop    // swallow the rest
  } state_e;

  state_e state_d, state_q;
  error_e error_d, error_q;

  // ----- the beat that came in last -------------------------------------------------------------

  // The context is looked up as the first beat enters this register, so the table is a beat ahead.
  logic
      beat_valid_q,
      beat_ready,
      beat_eop_q,
      beat_poison_q,
      within_q,
      accept,
      table_ready,
      patience_ready,
      table_free,
      take_sop;
  logic [DataWidth-1:0] beat_q;

  // A packet is not begun before the one in front of it needs the table no more, nor while a
  // configuration waits for those in front of it to be done.
  assign table_free  = accept || state_q inside {StBody, StPad, StDrop} ||
                       (state_q == StHead && !beat_valid_q);
  assign net_ready_o = (!beat_valid_q || beat_ready) &&
                       (within_q || (table_ready && patience_ready && table_free &&
                                     !cfg_valid_i));
  assign take_sop = net_valid_i && net_ready_o && !within_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      beat_valid_q <= 1'b0;
      within_q     <= 1'b0;
    end else begin
      beat_valid_q <= (net_valid_i && net_ready_o) || (beat_valid_q && !beat_ready);
      if (net_valid_i && net_ready_o) within_q <= !net_eop_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (net_ready_o) begin
      beat_q        <= net_data_i;
      beat_eop_q    <= net_eop_i;
      beat_poison_q <= net_eop_i && net_poison_i;
    end
  end

  // ----- the packet's header --------------------------------------------------------------------

  packet_t header_q;
  logic ended_q;  // its last beat is in
  logic ended_poison_q;
  logic take, take_head, take_high;

  assign take      = beat_valid_q && beat_ready;
  assign take_head = take && state_q == StHead;
  assign take_high = take && state_q == StHigh;

  always_ff @(posedge clk_i) begin
    if (take_head) header_q[31:0] <= beat_q[31:0];
    if (NarrowPath ? take_high : take_head) header_q[63:32] <= beat_q[HighLsb+:32];
    if (take_head || take_high) begin
      ended_q        <= beat_eop_q;
      ended_poison_q <= beat_poison_q;
    end
  end

  logic [3:0] payload_words;
  assign payload_words = {1'b0, header_q.len[5:3]} + {3'b0, |header_q.len[2:0]};

  // ----- context table --------------------------------------------------------------------------

  logic table_cfg_ready, cfg_open, waiting_q, settled;
  logic enabled, full, broken, judged, publish;
  logic [15:0] write_pointer, seq_q;
  logic [AddrBits-1:6] slot, slot_q;
  logic [CtxBits-1:0] lookup_ctx, lookup_ctx_q;
  packet_t first_beat;

  // Only a packet's first beat looks something up; until the next one the table shows its entry.
  assign first_beat = packet_t'({32'b0, net_data_i[31:0]});
  assign lookup_ctx = take_sop ? CtxBits'(first_beat.dst_ctx) : lookup_ctx_q;
  always_ff @(posedge clk_i) lookup_ctx_q <= lookup_ctx;

  velo_contexts #(
      .CtxBits (CtxBits),
      .AddrBits(AddrBits),
      .Ecc     (Ecc)
  ) u_contexts (
      .clk_i,
      .rst_ni,
      .ready_o          (table_ready),
      .cfg_valid_i      (cfg_valid_i && cfg_open),
      .cfg_ready_o      (table_cfg_ready),
      .cfg_ctx_i,
      .cfg_enabled_i,
      .cfg_base_i,
      .cfg_last_slot_i,
      .read_pointer_valid_i,
      .read_pointer_ctx_i,
      .read_pointer_i,
      .lookup_ctx_i     (lookup_ctx),
      .enabled_o        (enabled),
      .full_o           (full),
      .write_pointer_o  (write_pointer),
      .slot_o           (slot),
      .broken_o         (broken),
      .use_i            (judged),
      .ecc_o            (ecc_o),
      .advance_i        (publish),
      .advance_ctx_i    (CtxBits'(header_q.dst_ctx)),
      .advance_pointer_i(write_pointer + 16'd1)
  );

  // No configuration between a look-up and the end of its message: it would advance the pointer of
  // a ring that is no longer there. A configuration goes before the next packet, so it never starves,
  // and a message that waits for its ring looks again until the table's answer is a new one.
  logic [2:0] cfg_q;
  assign cfg_open    = (waiting_q && full) || (state_q == StHead && !beat_valid_q);
  assign cfg_ready_o = table_cfg_ready && cfg_open;
  assign settled     = cfg_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cfg_q <= '0;
    else cfg_q <= {cfg_q[1:0], cfg_valid_i && cfg_ready_o};
  end
  always_ff @(posedge clk_i) begin
    if (publish) begin
      slot_q <= slot;
      seq_q  <= write_pointer;
    end
  end

  // ----- watchdog -------------------------------------------------------------------------------

  logic expired;

  // A message is judged three cycles after its look-up, so `waiting_q` rises after four.
  velo_patience #(
      .CtxBits(CtxBits),
      .Width  (20)
  ) u_patience (
      .clk_i,
      .rst_ni,
      .ready_o  (patience_ready),
      .enable_i (watchdog_enable_i),
      .cycles_i (watchdog_cycles_i),
      .ctx_i    (lookup_ctx),
      .waiting_i(waiting_q),
      .expired_o(expired)
  );

  // ----- judgement ------------------------------------------------------------------------------

  logic header_only, len_high_zero, mine;
  error_e header_verdict, verdict_q, verdict;

  // On a narrow path the upper half, with the rest of the length, is only now in `beat_q`.
  assign header_only = NarrowPath ? beat_eop_q : ended_q;
  assign len_high_zero = (NarrowPath ? beat_q[HighLsb+:4] : header_q.len[9:6]) == '0;

  // Which groups this node is in, the network knows.
  assign mine = header_q.dst_node == node_id_i ||
      (Multicast && header_q.dst_node >= 8'(GroupNodeMin));

  always_comb begin
    header_verdict = ErrorNone;
    if (NarrowPath ? beat_poison_q : ended_poison_q) begin
      header_verdict = ErrorPoisoned;
    end else if (header_q.kind != PacketKindVelo || header_q.tc != TrafficClassRequest) begin
      header_verdict = ErrorKind;
    end else if (header_q.routed || !mine || !len_high_zero ||
                 header_q.len[5:0] > 6'(SlotPayloadBytes) ||
                 header_only != (header_q.len[5:0] == '0)) begin
      header_verdict = ErrorMalformed;
    end
  end

  always_ff @(posedge clk_i) if (state_q == StHigh) verdict_q <= header_verdict;

  always_comb begin
    verdict = verdict_q;
    if (verdict_q == ErrorNone) begin
      if (broken) verdict = ErrorMemory;
      else if (!enabled || {1'b0, header_q.dst_ctx} >= 9'(2 ** CtxBits)) verdict = ErrorContext;
      else if (full && expired && watchdog_enable_i) verdict = ErrorStall;
    end
  end

  // ----- control --------------------------------------------------------------------------------

  // Beats of the last message's header word that have not left yet. They leave before any beat of
  // the next message, whose header is meanwhile taken in, as far as it overwrites nothing of theirs.
  logic [1:0] status_left_q;
  logic status_done, head_free;
  // Beats of the payload that are left, less one.
  logic [3:0] body_left_q;
  logic body_last, body_sop_q, load_body, load_status, space;

  assign space       = !dma_valid_o || dma_ready_i;
  assign load_status = status_left_q != '0;
  assign status_done = status_left_q == '0 || (status_left_q == 2'd1 && space);
  assign head_free   = NarrowPath ? (status_left_q != 2'd2 || space) : status_done;
  assign body_last   = body_left_q == '0;

  always_comb begin
    state_d    = state_q;
    error_d    = ErrorNone;
    beat_ready = 1'b0;
    accept     = 1'b0;
    publish    = 1'b0;
    load_body  = 1'b0;
    judged     = 1'b0;
    unique case (state_q)
      StHead: begin
        beat_ready = head_free;
        if (beat_valid_q && head_free) begin
          if (NarrowPath && beat_eop_q) error_d = ErrorMalformed;
          else state_d = StHigh;
        end
      end
      StHigh: begin
        beat_ready = NarrowPath && status_done;
        if (status_done && (beat_valid_q || !NarrowPath)) state_d = StJudge;
      end
      StJudge: begin
        if (settled) begin
          error_d = verdict;
          judged  = verdict != ErrorNone || !full;
          if (verdict != ErrorNone) begin
            state_d = ended_q ? StHead : StDrop;
          end else if (!full) begin
            accept  = 1'b1;
            publish = ended_q;
            state_d = ended_q ? StHead : StBody;
          end
        end
      end
      StBody, StPad: ;
      StDrop: begin
        beat_ready = 1'b1;
        if (beat_valid_q && beat_eop_q) state_d = StHead;
      end
      default: state_d = StHead;
    endcase
    // The payload's first beat goes with the verdict.
    if (state_q == StBody || (accept && !ended_q)) begin
      beat_ready = space;
      load_body  = beat_valid_q;
      if (beat_valid_q && space) begin
        publish = body_last && beat_eop_q && !beat_poison_q && !broken;
        if (beat_poison_q) error_d = ErrorPoisoned;
        else if (!publish && (body_last || beat_eop_q)) begin
          error_d = broken ? ErrorMemory : ErrorMalformed;
          if (broken) judged = 1'b1;
        end
        if (body_last) state_d = beat_eop_q ? StHead : StDrop;
        else if (beat_eop_q) state_d = StPad;
      end
    end else if (state_q == StPad) begin
      load_body = 1'b1;
      if (space && body_last) state_d = StHead;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q       <= StHead;
      error_q       <= ErrorNone;
      waiting_q     <= 1'b0;
      status_left_q <= '0;
    end else begin
      state_q   <= state_d;
      error_q   <= error_d;
      waiting_q <= state_q == StJudge && state_d == StJudge;
      if (publish) status_left_q <= NarrowPath ? 2'd2 : 2'd1;
      else if (load_status && space) status_left_q <= status_left_q - 2'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StHigh) begin
      body_sop_q <= 1'b1;
      unique case (DataWidth)
        32: body_left_q <= {payload_words[2:0], 1'b0} - 4'd1;
        64: body_left_q <= payload_words - 4'd1;
        default: body_left_q <= (payload_words - 4'd1) >> 1;
      endcase
    end else if (load_body && space) begin
      body_sop_q  <= 1'b0;
      body_left_q <= body_left_q - 4'd1;
    end
  end

  // ----- DMA ------------------------------------------------------------------------------------

  header_t status;
  assign status = '{
          valid: 1'b1,
          external: 1'b0,
          reserved: header_q.frag ? 6'(SlotFragment) : '0,
          tag: header_q.tag,
          len: {10'b0, header_q.len[5:0]},
          source: {header_q.src_node, header_q.src_ctx},
          seq: seq_q
      };

  logic [DataWidth-1:0] status_beat;
  if (NarrowPath) begin : gen_status_halves
    assign status_beat = status_left_q == 2'd2 ? status[31:0] : status[63:32];
  end else begin : gen_status_whole
    assign status_beat = DataWidth'(status);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) dma_valid_o <= 1'b0;
    else if (space) dma_valid_o <= load_status || load_body;
  end

  always_ff @(posedge clk_i) begin
    if (space && load_status) begin
      dma_sop_o  <= !NarrowPath || status_left_q == 2'd2;
      dma_eop_o  <= status_left_q == 2'd1;
      dma_data_o <= status_beat;
    end else if (space && load_body) begin
      dma_sop_o  <= body_sop_q;
      dma_eop_o  <= body_last;
      dma_data_o <= state_q == StPad ? '0 : beat_q;
    end
    // The first beat sets what holds for the whole write.
    if (space && (load_status ? (!NarrowPath || status_left_q == 2'd2) : body_sop_q)) begin
      dma_addr_o      <= load_status ? {slot_q, 6'd0} : {slot, 6'(LineHeaderBytes)};
      dma_len_bytes_o <= load_status ? 10'(LineHeaderBytes) : {3'b0, payload_words, 3'b0};
    end
  end

  // ----- reports --------------------------------------------------------------------------------

  assign received_o    = publish;
  assign stalled_o     = waiting_q;
  assign stall_ctx_o   = header_q.dst_ctx;
  // The header is still there in the cycle after the verdict.
  assign error_valid_o = error_q != ErrorNone;
  assign error_code_o  = error_q;
  assign error_ctx_o   = header_q.dst_ctx;
  assign error_node_o  = header_q.src_node;

  logic unused;
  assign unused = ^{first_beat, header_q.zero_60, header_q.marked, header_q.len[9:6],
                    header_q.frag_last, net_sop_i};

  // ----- promises -------------------------------------------------------------------------------

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(CtxFitsHeader, CtxBits >= 1 && CtxBits <= 8)
  // Nothing is put into a ring that is full or not enabled.
  `VELO_ASSERT(RoomBeforeAccept, !accept || (enabled && !full && !broken && settled))
  // The registers that the pending header word is made of are not overwritten under it.
  `VELO_ASSERT(OneMessageAtATime, !(load_status && load_body))
  `VELO_ASSERT(NothingAcceptedOverPendingStatus, !accept || status_done)
  // The header's upper half is waited for only while the packet goes on: a header of one beat ends here.
  `VELO_ASSERT(UpperHalfComes, !NarrowPath || state_q != StHigh || beat_valid_q || within_q)
  // Packets come whole: the first beat of each, and only it, is marked.
  `VELO_ASSUME(PacketStartsWithSop, !(net_valid_i && net_ready_o) || net_sop_i == !within_q)

endmodule
