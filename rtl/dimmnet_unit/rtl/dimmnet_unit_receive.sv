// SPDX-License-Identifier: Apache-2.0
//
// Packets of kind custom become lines for CoreLogic: the packet's payload, word by word, in the cycle in which each is
// there whole. CoreLogic takes them as long as it has room; what it makes of their number is its own matter.
//
// Dropped whole, with a pulse of `foreign_o`: a packet of another node than its first line says, for another node, of
// a peer that is stopped, or that comes while the unit is not enabled; of the response class, all. With a pulse of
// `malformed_o`: a packet of fewer than two words.
// On a path of 128 bits a packet's length says whether the last beat has one word or two. Streams as in
// velo_net_pkg: 0 requests, 1 responses. `line_*`: as of dimmnet_core.

`include "velo_assert.svh"

module dimmnet_unit_receive
  import velo_pkg::*;
  import htax_pkg::*;
  import dimmnet_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic        enabled_i,    // else all is dropped
    input  logic [ 7:0] node_id_i,    // this node
    input  logic [15:0] stop_i,       // peers, by the lowest four bits of their LIDs
    output logic        foreign_o,    // a packet is dropped
    output logic        malformed_o,  // likewise
    output logic        idle_o,       // inside no packet

    input  logic                 net_valid_i,
    output logic                 net_ready_o,
    input  logic                 net_sop_i,
    input  logic                 net_eop_i,
    input  logic [DataWidth-1:0] net_data_i,

    output logic                 line_valid_o,  // a line
    input  logic                 line_ready_i,  // it is taken
    output dimmnet_line_e        line_ident_o,  // which of its packet's
    output logic          [63:0] line_o         // the line
);

  // ----- words ----------------------------------------------------------------------------------

  logic word_valid, word_ready, word_sop, word_eop;
  logic [63:0] word;

  if (DataWidth == 32) begin : gen_narrow
    velo_widen #(
        .Width    (64),
        .HalfWidth(32)
    ) u_words (
        .clk_i,
        .rst_ni,
        .in_valid_i (net_valid_i),
        .in_ready_o (net_ready_o),
        .in_sop_i   (net_sop_i),
        .in_eop_i   (net_eop_i),
        .in_single_i(1'b0),
        .in_data_i  (net_data_i),
        .out_valid_o(word_valid),
        .out_ready_i(word_ready),
        .out_sop_o  (word_sop),
        .out_eop_o  (word_eop),
        .out_data_o (word)
    );
  end else begin : gen_wide
    packet_t header;
    logic odd_q, unused_header;
    assign header = packet_t'(64'(net_data_i));
    assign unused_header = ^header;
    always_ff @(posedge clk_i) begin
      if (net_valid_i && net_sop_i) odd_q <= odd_words(header.len[3:0]);
    end
    velo_narrow #(
        .Width    (DataWidth),
        .HalfWidth(64)
    ) u_words (
        .clk_i,
        .rst_ni,
        .in_valid_i (net_valid_i),
        .in_ready_o (net_ready_o),
        .in_sop_i   (net_sop_i),
        .in_eop_i   (net_eop_i),
        .in_single_i(net_sop_i || (net_eop_i && odd_q)),
        .in_data_i  (net_data_i),
        .out_valid_o(word_valid),
        .out_ready_i(word_ready),
        .out_sop_o  (word_sop),
        .out_eop_o  (word_eop),
        .out_data_o (word)
    );
  end

  // ----- lines ----------------------------------------------------------------------------------

  typedef enum logic [1:0] {
    StHeader,
    StFirst,
    StRest,
    StDrop
  } state_e;
  state_e state_q;
  logic [7:0] src_node_q;
  packet_t packet;
  dimmnet_packet_t line;
  logic mine, true_name, take;

  assign packet = packet_t'(word);
  assign line = {64'b0, word};
  assign mine = enabled_i && packet.dst_node == node_id_i && !stop_i[packet.src_node[3:0]];
  assign true_name = line.src_lid == 16'(DimmnetLidOfNode) + 16'(src_node_q);

  always_comb begin
    line_valid_o = 1'b0;
    line_ident_o = DimmnetLineMiddle;
    word_ready   = 1'b1;
    foreign_o    = 1'b0;
    malformed_o  = 1'b0;
    unique case (state_q)
      StHeader: begin
        foreign_o   = word_valid && !mine;
        malformed_o = word_valid && mine && word_eop;
      end
      StFirst: begin
        line_valid_o = word_valid && true_name && !word_eop;
        line_ident_o = DimmnetLineFirst;
        word_ready   = line_ready_i || !true_name || word_eop;
        foreign_o    = word_valid && !true_name;
        malformed_o  = word_valid && true_name && word_eop;
      end
      StRest: begin
        line_valid_o = word_valid;
        line_ident_o = word_eop ? DimmnetLineLast : DimmnetLineMiddle;
        word_ready   = line_ready_i;
      end
      default: ;
    endcase
  end
  assign line_o = word;
  assign take   = word_valid && word_ready;
  assign idle_o = state_q == StHeader;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StHeader;
    end else if (take) begin
      if (word_eop) state_q <= StHeader;
      else begin
        unique case (state_q)
          StHeader: state_q <= mine ? StFirst : StDrop;
          StFirst:  state_q <= true_name ? StRest : StDrop;
          default:  ;
        endcase
      end
    end
  end
  always_ff @(posedge clk_i) if (state_q == StHeader) src_node_q <= packet.src_node;

  logic unused;
  assign unused = ^{packet, line, word_sop};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSUME(PacketsAreWhole, !word_valid || word_sop == (state_q == StHeader))

endmodule
