// SPDX-License-Identifier: Apache-2.0
//
// Puts notifications into the queues of their contexts, in host memory, in the order they are given.
//
// A queue is a ring of entries of 16 bytes (spec/velo.toml, `rma_notification`), its table of bases,
// sizes and pointers the one of VELO's rings (velo_contexts). An entry is two posted writes, its
// second word first, so one whose first word is not zero is whole. A full ring stops the unit
// (`stalled_o`, `stall_ctx_o`). If software set `watchdog_enable_i`, each context has a patience of
// `watchdog_cycles_i` for this (velo_patience). When all of it is used up, notifications for its full ring are
// dropped.
//
// Sources: valid/ready, ready when it is written or refused. `refused_o` with ready: the context has no
// queue (ErrorContext), its entry in the table cannot be read (ErrorMemory, only with `Ecc`) or the queue is full and
// there is no patience left (ErrorStall); all are pulses on `error_valid_o`.
// Unloaded, the first write is offered six cycles after the notification: one for the choice, one to
// copy it, three for the look-up, one to judge it.
//
// Source: EXTOLL, high message rates, section III ("exactly one notification queue").

`include "velo_assert.svh"

module velo_rma_notifier
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits = 8,
    parameter int unsigned NumSources = 5,
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input logic        watchdog_enable_i,
    input logic [19:0] watchdog_cycles_i,

    input  logic                cfg_valid_i,
    output logic                cfg_ready_o,
    input  logic [ CtxBits-1:0] cfg_ctx_i,
    input  logic                cfg_enabled_i,
    input  logic [AddrBits-1:4] cfg_base_i,
    input  logic [        14:0] cfg_last_entry_i,
    input  logic                read_pointer_valid_i,
    input  logic [ CtxBits-1:0] read_pointer_ctx_i,
    input  logic [        15:0] read_pointer_i,

    input  logic    [NumSources-1:0] notify_valid_i,
    output logic    [NumSources-1:0] notify_ready_o,
    input  notify_t [NumSources-1:0] notify_i,
    output logic                     refused_o,

    output logic                 posted_valid_o,
    input  logic                 posted_ready_i,
    output logic                 posted_eop_o,
    output logic [ AddrBits-1:0] posted_addr_o,
    output logic [          9:0] posted_len_bytes_o,
    output logic [DataWidth-1:0] posted_data_o,

    output logic         stalled_o,
    output logic   [7:0] stall_ctx_o,
    output logic         error_valid_o,
    output error_e       error_code_o,
    output logic   [7:0] error_ctx_o,
    output ecc_t         ecc_o           // of the table of queues; see velo_contexts
);

  localparam int unsigned EntryBytes = $bits(rma_notification_t) / 8;
  // velo_contexts counts slots of 64 bytes; addresses of entries of 16 are two bits longer.
  localparam int unsigned TableAddrBits = AddrBits + 2;

  // From a context to whether its ring is full, in velo_contexts.
  localparam int unsigned LookCycles = 3;

  typedef enum logic [2:0] {
    StIdle,
    StCopy,
    StLook,   // the table is read
    StRoom,
    StWrite,
    StDone
  } state_e;

  state_e state_q;
  logic [NumSources-1:0] grant, source_q;
  notify_t chosen, notify_q;
  logic start, cfg_open, cfg_take, table_ready, table_cfg_ready, enabled, full;
  logic patience_ready, waiting_q, expired;
  logic refuse, refused_q, broken, broken_q, bad_context, bad_context_q, finish;
  logic [1:0] look_left_q;
  logic [15:0] write_pointer, pointer_q;
  logic [AddrBits-1:4] slot, slot_q;
  logic [1:0] beat_q;

  assign start = state_q == StIdle && table_ready && patience_ready && !cfg_valid_i &&
                 |notify_valid_i;

  velo_rr_arb #(
      .NumReq(NumSources)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .req_i  (notify_valid_i),
      .grant_o(grant),
      .take_i (start)
  );

  always_comb begin
    chosen = '0;
    for (int unsigned s = 0; s < NumSources; s++) chosen |= source_q[s] ? notify_i[s] : '0;
  end

  velo_contexts #(
      .CtxBits (CtxBits),
      .AddrBits(TableAddrBits),
      .Ecc     (Ecc)
  ) u_queues (
      .clk_i,
      .rst_ni,
      .ready_o          (table_ready),
      .cfg_valid_i      (cfg_valid_i && cfg_open),
      .cfg_ready_o      (table_cfg_ready),
      .cfg_ctx_i,
      .cfg_enabled_i,
      .cfg_base_i,
      .cfg_last_slot_i  (cfg_last_entry_i),
      .read_pointer_valid_i,
      .read_pointer_ctx_i,
      .read_pointer_i,
      .lookup_ctx_i     (CtxBits'(notify_q.ctx)),
      .enabled_o        (enabled),
      .full_o           (full),
      .write_pointer_o  (write_pointer),
      .slot_o           (slot),
      .broken_o         (broken),
      .use_i            (state_q == StRoom && (refuse || !full)),
      .ecc_o            (ecc_o),
      .advance_i        (finish),
      .advance_ctx_i    (CtxBits'(notify_q.ctx)),
      .advance_pointer_i(pointer_q + 16'd1)
  );

  velo_patience #(
      .CtxBits(CtxBits),
      .Width  (20)
  ) u_patience (
      .clk_i,
      .rst_ni,
      .ready_o  (patience_ready),
      .enable_i (watchdog_enable_i),
      .cycles_i (watchdog_cycles_i),
      .ctx_i    (CtxBits'(notify_q.ctx)),
      .waiting_i(waiting_q),
      .expired_o(expired)
  );

  // No configuration between the look-up that counts and the advance. One that comes while the ring
  // is full has it looked up again.
  assign cfg_open = state_q == StIdle || (state_q == StRoom && full && !refuse);
  assign cfg_ready_o = table_cfg_ready && cfg_open;
  assign cfg_take = cfg_valid_i && cfg_ready_o;
  assign bad_context = !enabled || {1'b0, notify_q.ctx} >= 9'(2 ** CtxBits);
  assign refuse      = state_q == StRoom && (broken || bad_context ||
                                             (full && expired && watchdog_enable_i));
  assign finish = state_q == StWrite && posted_ready_i && &beat_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= StIdle;
      waiting_q <= 1'b0;
    end else begin
      // A cycle late, as velo_patience wants to know of the context four cycles earlier.
      waiting_q <= state_q == StRoom && full && !refuse;
      unique case (state_q)
        StIdle:  if (start) state_q <= StCopy;
        StCopy:  state_q <= StLook;
        StLook:  if (look_left_q == '0) state_q <= StRoom;
        StRoom: begin
          if (refuse) state_q <= StDone;
          else if (!full) state_q <= StWrite;
          else if (cfg_take) state_q <= StLook;
        end
        StWrite: if (finish) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) source_q <= grant;
    if (state_q == StCopy) notify_q <= chosen;
    look_left_q <= state_q == StLook ? look_left_q - 2'd1 : 2'(LookCycles - 1);
    if (state_q == StRoom) begin
      slot_q        <= slot;
      pointer_q     <= write_pointer;
      beat_q        <= DataWidth == 32 ? 2'd0 : 2'd1;
      refused_q     <= refuse;
      bad_context_q <= bad_context;
      broken_q      <= broken;
    end else if (posted_valid_o && posted_ready_i) begin
      beat_q <= beat_q + (DataWidth == 32 ? 2'd1 : 2'd2);
    end
  end

  assign notify_ready_o = state_q == StDone ? source_q : '0;
  assign refused_o      = state_q == StDone && refused_q;

  // Beats of 32 bits: 0 and 1 the second word, 2 and 3 the first; of 64 and 128 bits: 1 and 3.
  logic [63:0] word;
  logic first_word;
  assign first_word         = beat_q[1];
  assign word               = first_word ? notify_q.entry[63:0] : notify_q.entry[127:64];
  assign posted_valid_o     = state_q == StWrite;
  assign posted_eop_o       = beat_q[0];
  assign posted_addr_o      = {slot_q, first_word ? 4'd0 : 4'd8};
  assign posted_len_bytes_o = 10'd8;
  if (DataWidth == 32) begin : gen_halves
    assign posted_data_o = beat_q[0] ? word[63:32] : word[31:0];
  end else begin : gen_whole
    assign posted_data_o = DataWidth'(word);
  end

  assign stalled_o     = state_q == StRoom && full;
  assign stall_ctx_o   = notify_q.ctx;
  assign error_valid_o = refused_o;
  assign error_code_o  = broken_q ? ErrorMemory : bad_context_q ? ErrorContext : ErrorStall;
  assign error_ctx_o   = notify_q.ctx;

  `VELO_ASSERT_INIT(EntryIsTwoWords, EntryBytes == 16)
  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT(NeverEmpty, !posted_valid_o || notify_q.entry.valid)
  // Nothing is looked up before the table is cleared, however many contexts it has.
  `VELO_ASSERT(TableIsThere, state_q == StIdle || table_ready)
  `VELO_ASSUME(SourceStands, state_q == StIdle || (notify_valid_i & source_q) != '0)

endmodule
