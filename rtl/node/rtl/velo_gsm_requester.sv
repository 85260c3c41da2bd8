// SPDX-License-Identifier: Apache-2.0
//
// Global shared memory, the side of the node that loads and stores; see velo_gsm.
//
// A store is a posted write, a load a read of one aligned 64-bit word; each becomes one packet of the
// request class. A load's answer is a packet of the response class and becomes the host's answer, by
// the host's tag, which it carries. Stores go before loads that come later.
// Errors: `refused_o` pulses for each access that is not of one aligned word, a load is answered with
// an error; `dropped_o` for each response that is for another node, has no header, or comes while no
// load waits (`load_waits_i`). A response without a value, or not of one word, answers the load with
// an error. Which tags wait is not kept: a tag that was made up goes to the host while others wait.

`include "velo_assert.svh"

module velo_gsm_requester
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_node_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned HostPort  = 0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [7:0] node_id_i,
    output logic       refused_o,
    output logic       dropped_o,
    input  logic       load_waits_i,
    output logic       load_sent_o,
    output logic       load_answered_o,

    input  logic                         store_valid_i,
    output logic                         store_ready_o,
    input  logic                         store_eop_i,
    input  htax_header_t                 store_header_i,
    input  logic         [DataWidth-1:0] store_data_i,
    input  logic                         load_valid_i,
    output logic                         load_ready_o,
    input  htax_header_t                 load_header_i,
    output logic                         answer_valid_o,
    input  logic                         answer_ready_i,
    output logic                         answer_eop_o,
    output htax_header_t                 answer_header_o,
    output logic         [DataWidth-1:0] answer_data_o,

    output logic                 request_valid_o,
    input  logic                 request_ready_i,
    output logic                 request_sop_o,
    output logic                 request_eop_o,
    output logic [DataWidth-1:0] request_data_o,
    input  logic                 response_valid_i,
    output logic                 response_ready_o,
    input  logic                 response_eop_i,
    input  logic [DataWidth-1:0] response_data_i
);

  localparam int unsigned WordBeats = word_beats(DataWidth);
  // Of a packet's header alone, and with one word and two.
  localparam int unsigned HeadBeats = packet_beats(DataWidth, 0);
  localparam int unsigned OneBeats = packet_beats(DataWidth, 1);
  localparam int unsigned TwoBeats = packet_beats(DataWidth, 2);
  localparam int unsigned WordBits = $clog2(WordBeats + 2);  // of counts of those
  localparam int unsigned OneBits = $clog2(OneBeats + 2);
  localparam int unsigned TwoBits = $clog2(TwoBeats + 2);

  // ----- requests -------------------------------------------------------------------------------

  function automatic logic is_word(logic [9:0] len_bytes, logic [2:0] low);
    return len_bytes == 10'd8 && low == '0;
  endfunction

  logic store_there, store_take, store_sent, load_sent, request_ready, refuse_load, refusal_ready;
  logic refusal_q;  // a load is refused, and its answer has not begun
  logic [$bits(load_header_i.tag)-1:0] refusal_tag_q;
  logic [63:0] store_word;
  logic [WordBits-1:0] store_beats;
  htax_header_t store_q;
  packet_t header;
  window_t target;
  logic [19:0] place;  // in the other node's segment

  velo_gather #(
      .DataWidth(DataWidth),
      .Words    (1)
  ) u_store (
      .clk_i,
      .rst_ni,
      .in_valid_i(store_valid_i),
      .in_ready_o(store_ready_o),
      .in_eop_i  (store_eop_i),
      .in_data_i (store_data_i),
      .valid_o   (store_there),
      .take_i    (store_take),
      .beats_o   (store_beats),
      .words_o   (store_word)
  );

  always_ff @(posedge clk_i) if (store_valid_i && store_ready_o) store_q <= store_header_i;

  logic store_good, load_turn, load_good;
  assign store_good = is_word(
      store_q.len_bytes, store_q.addr[2:0]
  ) && store_beats == WordBits'(WordBeats);
  assign store_sent = store_there && store_good && request_ready;
  assign store_take = store_there && (!store_good || request_ready);
  // A store that has begun to come is older than a load.
  assign load_turn = load_valid_i && !store_valid_i && !store_there;
  assign load_good = is_word(load_header_i.len_bytes, load_header_i.addr[2:0]);
  // What a load is does not decide whether it is taken: that would be too much behind the crossbar's buffer.
  assign load_ready_o = load_turn && request_ready && !refusal_q;
  assign refuse_load = load_ready_o && !load_good;
  assign load_sent = load_ready_o && load_good;
  assign refused_o = (store_there && !store_good) || refuse_load;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) refusal_q <= 1'b0;
    else if (refuse_load) refusal_q <= 1'b1;
    else if (refusal_ready) refusal_q <= 1'b0;
  end
  always_ff @(posedge clk_i) if (!refusal_q) refusal_tag_q <= load_header_i.tag;

  always_comb begin
    target = window_t'({{(64 - AddrBits) {1'b0}}, store_there ? store_q.addr : load_header_i.addr});
    header = '0;
    header.tc = TrafficClassRequest;
    header.kind = PacketKindCustom;
    header.dst_node = 8'(target.target >> AddressTBits);
    header.len = store_there ? 10'd16 : 10'd8;
    header.tag = store_there ? '0 : load_header_i.tag;
    header.src_ctx = window_source(target);
    header.src_node = node_id_i;
  end

  // With less than 20 bits below the node, the rest of a segment is out of reach.
  assign place = 20'(target.target & ((64'd1 << AddressTBits) - 64'd1));

  velo_emit #(
      .DataWidth(DataWidth),
      .Words    (3)
  ) u_request (
      .clk_i,
      .rst_ni,
      .push_valid_i(store_sent || load_sent),
      .push_ready_o(request_ready),
      .push_beats_i(store_there ? TwoBits'(TwoBeats) : TwoBits'(OneBeats)),
      .push_words_i({store_word, 44'b0, place, header}),
      .out_valid_o (request_valid_o),
      .out_ready_i (request_ready_i),
      .out_sop_o   (request_sop_o),
      .out_eop_o   (request_eop_o),
      .out_data_o  (request_data_o)
  );

  // ----- answers --------------------------------------------------------------------------------

  logic response_there, response_take, response_mine, response_good, answer_ready, answer_push;
  logic unused_sop;
  logic [OneBits-1:0] response_beats;
  logic [1:0][63:0] response;
  packet_t response_header;

  velo_gather #(
      .DataWidth(DataWidth),
      .Words    (2)
  ) u_response (
      .clk_i,
      .rst_ni,
      .in_valid_i(response_valid_i),
      .in_ready_o(response_ready_o),
      .in_eop_i  (response_eop_i),
      .in_data_i (response_data_i),
      .valid_o   (response_there),
      .take_i    (response_take),
      .beats_o   (response_beats),
      .words_o   (response)
  );

  assign response_header = packet_t'(response[0]);
  assign response_mine = response_there && load_waits_i &&
      response_beats >= OneBits'(HeadBeats) && response_header.dst_node == node_id_i;
  assign response_good = response_header.len == 10'd8 && response_beats == OneBits'(OneBeats);
  assign response_take = response_there && (!response_mine || answer_ready);
  assign dropped_o = response_there && !response_mine;

  // Answers of the network first: they are older.
  assign refusal_ready = answer_ready && !response_mine;
  assign answer_push = response_mine || refusal_q;

  velo_emit #(
      .DataWidth(DataWidth),
      .Words    (1)
  ) u_answer (
      .clk_i,
      .rst_ni,
      .push_valid_i(answer_push),
      .push_ready_o(answer_ready),
      // An error is one beat without data.
      .push_beats_i(response_mine && response_good ? WordBits'(WordBeats) : WordBits'(1)),
      .push_words_i(response_mine ? response[1] : '0),
      .out_valid_o (answer_valid_o),
      .out_ready_i (answer_ready_i),
      .out_sop_o   (unused_sop),
      .out_eop_o   (answer_eop_o),
      .out_data_o  (answer_data_o)
  );

  always_ff @(posedge clk_i) begin
    if (answer_push && answer_ready) begin
      answer_header_o       <= '0;
      answer_header_o.port  <= PortBits'(HostPort);
      answer_header_o.tag   <= response_mine ? response_header.tag : refusal_tag_q;
      answer_header_o.error <= !(response_mine && response_good);
    end
  end

  assign load_sent_o     = load_sent;
  assign load_answered_o = response_mine && answer_ready;

  logic unused;
  assign unused = ^{target, response_header, store_q, load_header_i};

endmodule
