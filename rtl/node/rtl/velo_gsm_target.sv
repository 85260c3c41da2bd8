// SPDX-License-Identifier: Apache-2.0
//
// Global shared memory, the side of the node whose memory it is; see velo_gsm.
//
// One request at a time: a store becomes a posted write of host memory; a load reads
// it, after the writes before it (htax), and sends what it got in the response class.
// Errors: `dropped_o` pulses for a packet that contradicts itself or is another node's, and for a
// store into a segment that is not enabled; a load of one, and a read that the host refuses, are
// answered without a value.

`include "velo_assert.svh"

module velo_gsm_target
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_node_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [          7:0] node_id_i,
    input  logic                 enabled_i,
    input  logic [AddrBits-1:20] segment_i,
    output logic                 dropped_o,

    input  logic                 request_valid_i,
    output logic                 request_ready_o,
    input  logic                 request_eop_i,
    input  logic [DataWidth-1:0] request_data_i,
    output logic                 response_valid_o,
    input  logic                 response_ready_i,
    output logic                 response_sop_o,
    output logic                 response_eop_o,
    output logic [DataWidth-1:0] response_data_o,

    output logic                         write_valid_o,
    input  logic                         write_ready_i,
    output logic                         write_eop_o,
    output htax_header_t                 write_header_o,
    output logic         [DataWidth-1:0] write_data_o,
    output logic                         read_valid_o,
    input  logic                         read_ready_i,
    output htax_header_t                 read_header_o,
    input  logic                         memory_valid_i,
    output logic                         memory_ready_o,
    input  logic                         memory_eop_i,
    input  logic                         memory_error_i,
    input  logic         [DataWidth-1:0] memory_data_i
);

  localparam int unsigned WordBeats = word_beats(DataWidth);
  // Of a packet's header alone, and with one word and two.
  localparam int unsigned HeadBeats = packet_beats(DataWidth, 0);
  localparam int unsigned OneBeats = packet_beats(DataWidth, 1);
  localparam int unsigned TwoBeats = packet_beats(DataWidth, 2);
  localparam int unsigned WordBits = $clog2(WordBeats + 2);  // of counts of those
  localparam int unsigned OneBits = $clog2(OneBeats + 2);
  localparam int unsigned TwoBits = $clog2(TwoBeats + 2);

  // ----- the request ----------------------------------------------------------------------------

  logic there, take, mine, is_store, is_load;
  logic [TwoBits-1:0] beats;
  logic [2:0][63:0] words;
  packet_t header, answer;

  velo_gather #(
      .DataWidth(DataWidth),
      .Words    (3)
  ) u_request (
      .clk_i,
      .rst_ni,
      .in_valid_i(request_valid_i),
      .in_ready_o(request_ready_o),
      .in_eop_i  (request_eop_i),
      .in_data_i (request_data_i),
      .valid_o   (there),
      .take_i    (take),
      .beats_o   (beats),
      .words_o   (words)
  );

  assign header = packet_t'(words[0]);
  assign mine = header.dst_node == node_id_i && words[1][63:20] == '0 && words[1][2:0] == '0;
  assign is_store = there && mine && header.len == 10'd16 && beats == TwoBits'(TwoBeats);
  assign is_load = there && mine && header.len == 10'd8 && beats == TwoBits'(OneBeats);

  // ----- memory ---------------------------------------------------------------------------------

  htax_header_t access;
  always_comb begin
    access           = '0;
    access.addr      = {segment_i, words[1][19:0]};
    access.len_bytes = 10'd8;
  end

  logic write_push, write_ready, unused_write_sop;
  assign write_push = is_store && enabled_i;

  velo_emit #(
      .DataWidth(DataWidth),
      .Words    (1)
  ) u_write (
      .clk_i,
      .rst_ni,
      .push_valid_i(write_push),
      .push_ready_o(write_ready),
      .push_beats_i(WordBits'(WordBeats)),
      .push_words_i(words[2]),
      .out_valid_o (write_valid_o),
      .out_ready_i (write_ready_i),
      .out_sop_o   (unused_write_sop),
      .out_eop_o   (write_eop_o),
      .out_data_o  (write_data_o)
  );
  always_ff @(posedge clk_i) if (write_push && write_ready) write_header_o <= access;

  // A read: asked for, then waited for, then answered.
  typedef enum logic [1:0] {
    StIdle,
    StAsk,
    StWait
  } state_e;
  state_e state_q;
  logic got, got_error_q, respond, response_ready;
  logic [WordBits-1:0] got_beats;
  logic [63:0] got_word;

  velo_gather #(
      .DataWidth(DataWidth),
      .Words    (1)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .in_valid_i(memory_valid_i),
      .in_ready_o(memory_ready_o),
      .in_eop_i  (memory_eop_i),
      .in_data_i (memory_data_i),
      .valid_o   (got),
      .take_i    (got && (state_q != StWait || response_ready)),
      .beats_o   (got_beats),
      .words_o   (got_word)
  );

  assign read_valid_o  = state_q == StAsk;
  assign read_header_o = access;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle:  if (is_load && enabled_i && write_ready) state_q <= StAsk;
        StAsk:   if (read_ready_i) state_q <= StWait;
        default: if (got && response_ready) state_q <= StIdle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (memory_valid_i && memory_ready_o) got_error_q <= memory_error_i;
  end

  // ----- the response ---------------------------------------------------------------------------

  logic good;
  assign good = state_q == StWait && !got_error_q && got_beats == WordBits'(WordBeats);
  assign respond = state_q == StWait ? got : (state_q == StIdle && is_load && !enabled_i);

  always_comb begin
    answer          = '0;
    answer.tc       = TrafficClassResponse;
    answer.kind     = PacketKindCustom;
    answer.dst_node = header.src_node;
    answer.dst_ctx  = header.src_ctx;
    answer.len      = good ? 10'd8 : '0;
    answer.tag      = header.tag;
    answer.src_node = node_id_i;
  end

  velo_emit #(
      .DataWidth(DataWidth),
      .Words    (2)
  ) u_response (
      .clk_i,
      .rst_ni,
      .push_valid_i(respond),
      .push_ready_o(response_ready),
      .push_beats_i(good ? OneBits'(OneBeats) : OneBits'(HeadBeats)),
      .push_words_i({got_word, answer}),
      .out_valid_o (response_valid_o),
      .out_ready_i (response_ready_i),
      .out_sop_o   (response_sop_o),
      .out_eop_o   (response_eop_o),
      .out_data_o  (response_data_o)
  );

  logic bad;
  assign bad       = there && !is_load && (!is_store || !enabled_i);
  assign take      = bad || (write_push && write_ready) || (respond && response_ready);
  assign dropped_o = bad;

  logic unused;
  assign unused = ^{header, unused_write_sop};

  `VELO_ASSERT(RequestStands, state_q == StIdle || is_load)

endmodule
