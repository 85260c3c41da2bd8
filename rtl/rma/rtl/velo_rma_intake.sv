// SPDX-License-Identifier: Apache-2.0
//
// Takes descriptors in from the host and queues them for the requester.
//
// One posted write is one descriptor: 24 bytes, of a fetch_compare_add 40 with its operands. The queue
// holds, per write, a beat {source, length in 64-bit words} and then its beats, at most those of 40
// bytes; `eop` marks the last. A write that has no such length has length 0 in its first beat, and so has one
// that does not begin where its page does: it is a part of a descriptor that the host has split, whose target
// nobody has looked at.
// While the queue has no room for the longest, the host's posted channel waits: software bounds what it
// posts. A write whose first beat was taken waits for the host alone.
// With `Ecc` the queue is protected (velo_ram). Of a beat with `out_void_o` neither data nor `eop` are
// known; the next write begins with the next beat that is `out_first_o` and not void.
// Both sides valid/ready. Two cycles. Errors: none here, the requester reports.

`include "velo_assert.svh"

module velo_rma_intake
  import velo_rma_pkg::*;
  import velo_secded_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned QueueBeats = 512,
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 write_valid_i,
    output logic                 write_ready_o,
    input  logic                 write_eop_i,
    input  logic [          7:0] write_source_i,
    input  logic                 write_at_start_i,   // of its page
    input  logic [          9:0] write_len_bytes_i,
    input  logic [DataWidth-1:0] write_data_i,

    output logic                 out_valid_o,
    input  logic                 out_ready_i,
    output logic                 out_eop_o,
    output logic                 out_first_o,  // only with Ecc
    output logic                 out_void_o,
    output logic [DataWidth-1:0] out_data_o,

    output ecc_t ecc_o  // of the queue; see velo_rma_buffer
);

  localparam int unsigned MaxBeats = 5 * 64 / DataWidth;

  logic named_q;  // the first beat is in the queue
  logic push_valid, push_ready, push_last, past_q;
  logic [3:0] beat_q;
  logic [2:0] words;
  logic [DataWidth-1:0] name;
  logic [$clog2(QueueBeats):0] count;
  logic room_q;
  logic [1:0] unused_mark;

  always_comb begin
    words = '0;
    if (write_at_start_i && write_len_bytes_i == 10'd24) words = 3'd3;
    if (write_at_start_i && write_len_bytes_i == 10'd40) words = 3'd5;
  end
  assign name          = DataWidth'({words, write_source_i});

  // A write that is too long is cut: `past_q` after the last beat that is kept.
  assign push_last     = write_eop_i || beat_q == 4'(MaxBeats - 1);
  assign push_valid    = write_valid_i && !past_q && (named_q || room_q);
  assign write_ready_o = named_q && (past_q || push_ready);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      named_q <= 1'b0;
      past_q  <= 1'b0;
      beat_q  <= '0;
    end else if (write_valid_i) begin
      if (!named_q) begin
        named_q <= room_q;
      end else if (write_ready_o) begin
        named_q <= !write_eop_i;
        past_q  <= !write_eop_i && (past_q || push_last);
        beat_q  <= write_eop_i ? '0 : beat_q + 4'd1;
      end
    end
  end

  // A cycle old; the beat that may have come in since is counted for.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) room_q <= 1'b0;
    else room_q <= 32'(count) + MaxBeats + 2 <= QueueBeats;
  end

  // Where a write begins is kept only where an end may be lost.
  localparam int unsigned QueueWidth = DataWidth + (Ecc ? 2 : 1);
  logic [QueueWidth-1:0] queue_in, queue_out;
  assign queue_in = QueueWidth'({!named_q, named_q ? {push_last, write_data_i} : {1'b0, name}});
  assign {out_eop_o, out_data_o} = queue_out[DataWidth:0];
  assign out_first_o = Ecc && queue_out[QueueWidth-1];

  velo_rma_buffer #(
      .Width(QueueWidth),
      .Depth(QueueBeats),
      .Ecc  (Ecc)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .push_valid_i(push_valid),
      .push_ready_o(push_ready),
      .push_mark_i (1'b0),
      .push_data_i (queue_in),
      .pop_valid_o (out_valid_o),
      .pop_ready_i (out_ready_i),
      .pop_mark_o  (unused_mark[0]),
      .pop_void_o  (out_void_o),
      .pop_data_o  (queue_out),
      .ecc_o       (ecc_o),
      .count_o     (count),
      .marked_o    (unused_mark[1])
  );

  `VELO_ASSERT(TakenWhole, !(write_valid_i && named_q) || write_ready_o)
  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth == 32 || DataWidth == 64)

endmodule
