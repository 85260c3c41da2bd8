// SPDX-License-Identifier: Apache-2.0
//
// The promises of the notification queues, for the queue of one context of one's choice and any reports
// of two sources, whenever the host takes writes and its reader frees entries.
//
//   * The entry after the last one is written, in the queue of its context and only while that is
//     enabled, its second word before its first: entries come in order and whole, none is left out.
//   * An entry that its reader has not freed is never overwritten.
//   * A source is told that its notification is done when both words were taken, or it was refused
//     and none was; so what a source reports next never overtakes it.
//   * A notification is refused only for a reason: no queue, or a full one and a watchdog that was set.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_rma_notifier_props
  import velo_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
#(
    parameter bit Queue = 1'b0
) (
    input logic                       clk_i,
    input logic                       rst_ni,
    input logic                       watchdog_enable_i,
    input logic                [ 1:0] cycles_i,              // of the watchdog
    input logic                       cfg_valid_i,
    input logic                       cfg_ctx_i,
    input logic                       cfg_enabled_i,
    input logic                [ 1:0] cfg_base_i,            // of queues of four entries
    input logic                [ 1:0] cfg_last_entry_i,
    input logic                       read_pointer_valid_i,
    input logic                       read_pointer_ctx_i,
    input logic                [15:0] read_pointer_i,
    input logic                [ 1:0] notify_valid_i,
    input logic                [ 1:0] ctx_i,
    input logic                [ 1:0] first_i,   // of each source's entry, a bit of each word
    input logic                [ 1:0] second_i,
    input logic                       posted_ready_i
);

  // The unit handles all bits of a word in the same way.
  notify_t [1:0] notify;
  always_comb begin
    notify = '0;
    for (int unsigned s = 0; s < 2; s++) begin
      notify[s].ctx[0]           = ctx_i[s];
      notify[s].entry.valid      = 1'b1;
      notify[s].entry.cookie[0]  = first_i[s];
      notify[s].entry.address[0] = second_i[s];
    end
  end

  logic cfg_ready, refused, posted_valid, posted_eop, stalled, error_valid;
  logic [1:0] notify_ready;
  logic [AddrBits-1:0] posted_addr;
  logic [9:0] posted_len;
  logic [63:0] posted_data;
  logic [7:0] stall_ctx, error_ctx;
  error_e error_code;

  velo_secded_pkg::ecc_t unused_ecc;
  velo_rma_notifier #(
      .DataWidth (64),
      .CtxBits   (1),
      .NumSources(2)
  ) u_dut (
      .watchdog_cycles_i (20'(cycles_i)),
      .cfg_ready_o       (cfg_ready),
      .cfg_base_i        ((AddrBits - 4)'({cfg_base_i, 2'b0})),
      .cfg_last_entry_i  (15'(cfg_last_entry_i)),
      .notify_i          (notify),
      .notify_ready_o    (notify_ready),
      .refused_o         (refused),
      .posted_valid_o    (posted_valid),
      .posted_eop_o      (posted_eop),
      .posted_addr_o     (posted_addr),
      .posted_len_bytes_o(posted_len),
      .posted_data_o     (posted_data),
      .stalled_o         (stalled),
      .stall_ctx_o       (stall_ctx),
      .error_valid_o     (error_valid),
      .error_code_o      (error_code),
      .error_ctx_o       (error_ctx),
      .ecc_o             (unused_ecc),
      .*
  );

  // ----- the queue of one context -----------------------------------------------------------------

  logic past_q, ctx_q, enabled_q;
  logic [1:0] base_q, last_q;
  logic [15:0] written_q, freed_q;
  logic cfg, free;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);

  assign cfg  = cfg_valid_i && cfg_ready && cfg_ctx_i == ctx_q;
  assign free = read_pointer_valid_i && read_pointer_ctx_i == ctx_q;

  // ----- what the sources say; it stands until it is done -----------------------------------------

  logic [1:0] open_q;
  logic [5:0] notify_q;

  always_ff @(posedge clk_i) begin
    past_q   <= 1'b1;
    ctx_q    <= ctx_q;
    open_q   <= rst_ni ? notify_valid_i & ~notify_ready : '0;
    notify_q <= {second_i, first_i, ctx_i};
  end
  for (genvar s = 0; s < 2; s++) begin : gen_source
    `VELO_ASSUME(StandsUntilDone, !open_q[s] ||
                 (notify_valid_i[s] && second_i[s] == notify_q[4+s] &&
                  first_i[s] == notify_q[2+s] && ctx_i[s] == notify_q[s]))
  end
  // Both are writes of one host to one register file.
  `VELO_ASSUME(OneRegisterWriteAtATime, !(cfg_valid_i && read_pointer_valid_i))
  `VELO_ASSUME(SizeIsAPowerOfTwo, cfg_last_entry_i != 2'd2)
  `VELO_ASSUME(AtAMultipleOfIt, (4'(cfg_last_entry_i) & {cfg_base_i, 2'b0}) == '0)
  // So an address tells whose queue it is in.
  `VELO_ASSUME(QueuesApart, cfg_base_i[1] == cfg_ctx_i)
  // Its reader frees what was written, in order.
  `VELO_ASSUME(FreesWhatIsThere, !free || written_q - read_pointer_i <= written_q - freed_q)

  // ----- what was written -------------------------------------------------------------------------

  logic take, ours;
  logic [1:0] words_q, fits, fits_q;
  assign take = posted_valid && posted_ready_i;
  assign ours = posted_addr[7] == ctx_q;
  // The source whose notification it can be, by all words so far.
  always_comb begin
    for (int unsigned s = 0; s < 2; s++) begin
      fits[s] = notify_valid_i[s] && (!Queue || ctx_i[s] == posted_addr[7]) && posted_data ==
          (words_q == '0 ? notify[s].entry[127:64] : notify[s].entry[63:0]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || |notify_ready) begin
      words_q <= '0;
      fits_q  <= '1;
    end else if (take) begin
      words_q <= words_q + 2'd1;
      fits_q  <= fits_q & fits;
    end
    if (!rst_ni) begin
      enabled_q <= 1'b0;
      written_q <= '0;
      freed_q   <= '0;
    end else if (cfg) begin
      enabled_q <= cfg_enabled_i;
      base_q    <= cfg_base_i;
      last_q    <= cfg_last_entry_i;
      written_q <= '0;
      freed_q   <= '0;
    end else begin
      if (free) freed_q <= read_pointer_i;
      if (take && ours && words_q == 2'd1) written_q <= written_q + 16'd1;
    end
  end

  // ----- promises ---------------------------------------------------------------------------------

  logic watchdog_was_q, watchdog_q;
  always_ff @(posedge clk_i) watchdog_q <= watchdog_enable_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) watchdog_was_q <= 1'b0;
    else if (watchdog_enable_i) watchdog_was_q <= 1'b1;
  end

  logic [ 3:0] entry;
  logic [15:0] used;
  assign entry = {base_q, 2'b0} | {2'b0, written_q[1:0] & last_q};
  assign used  = written_q - freed_q;
  // With `Queue`, for a bounded time only: what depends on the tables.
  if (Queue) begin : gen_queue
    `VELO_ASSERT(OnlyIfEnabled, !(posted_valid && ours) || enabled_q)
    `VELO_ASSERT(TheNextEntry, !(posted_valid && ours) || (posted_addr[AddrBits-1:8] == '0 &&
                 posted_addr[7:4] == entry && posted_len == 10'd8))
    `VELO_ASSERT(NotOverAnother, !(posted_valid && ours) || used <= 16'(last_q))
    `VELO_ASSERT(RefusedForAReason, !refused || error_ctx != {7'b0, ctx_q} || !enabled_q ||
                 (error_code == ErrorStall && watchdog_was_q))
  end
  `VELO_ASSERT(SecondWordFirst, !posted_valid || (words_q < 2'd2 &&
               posted_addr[3:0] == (words_q == '0 ? 4'd8 : 4'd0)))
  `VELO_ASSERT(OfASource, !posted_valid || (fits & fits_q) != '0)
  `VELO_ASSERT(DoneWhenWritten, notify_ready == '0 || words_q == (refused ? 2'd0 : 2'd2))
  `VELO_ASSERT(DoneToWhomItIs, (notify_ready & ~(notify_valid_i & fits_q)) == '0)
  `VELO_ASSERT(NoDropUnasked, !(refused && error_code == ErrorStall) || watchdog_q)
  `VELO_ASSERT(OneAtATime, notify_ready != 2'b11)

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (|notify_ready && !refused);
      cover (refused && error_code == ErrorStall);
      cover (refused && error_code == ErrorContext);
    end
  end

endmodule
