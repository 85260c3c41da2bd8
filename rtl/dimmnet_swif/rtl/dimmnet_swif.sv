// SPDX-License-Identifier: Apache-2.0
//
// Switch interface (SWIF) of DIMMnet-2: lines of 64 + 2 bits from and to CoreLogic, InfiniBand packets from and to
// the network, each line exactly once and in order.
//
// A packet of CoreLogic is one InfiniBand packet. On both sides a word of 64 bits a cycle, the first byte in bits 7:0;
// 4X at 100 MHz. The network's words are marked: the packet's first, its last, and how many bytes of that count.
// What comes from the network is taken in each cycle; a packet for which there is no room is dropped and comes again,
// so acknowledgements never wait for CoreLogic.
//
// `lid_i` is this board's. Peers are the boards whose LIDs differ from it in the lowest log2(NumPeers) bits only, and
// those bits are a peer's number. `stop_i` of a peer, for privileged software: nothing is sent to it or taken from it,
// and both ways begin again at packet 0. `off_o` says that this is so. `failed_o`: it was given up, until `stop_i`.
//
// Retransmission = 0 leaves out what the paper's prototype did not have: packets are sent and taken as they come.
// Latency: four cycles from first line to first word, five with retransmission; a packet's first line goes to CoreLogic
// in the cycle after its last word has come.
// Source: dimmnet2-ja, sections 2.3, 3.1 and 4.3; InfiniBand Architecture Specification, volume 1.

`include "velo_assert.svh"

module dimmnet_swif
  import dimmnet_pkg::*;
  import dimmnet_swif_pkg::*;
#(
    parameter bit Retransmission = 1'b1,
    parameter bit CutThrough = 1'b1,
    parameter int unsigned NumPeers = 16,
    parameter int unsigned PsnBits = 24,
    parameter int unsigned PacketLines = 64,
    parameter int unsigned RingLines = 512,
    parameter int unsigned RingPackets = 32,
    parameter int unsigned StoreLines = 512,
    parameter int unsigned AckPackets = 4,
    parameter int unsigned AckCycles = 64,
    parameter int unsigned TimeoutCycles = 4096,
    parameter int unsigned RnrCycles = 256,
    parameter int unsigned RetryLimit = 7
) (
    input logic clk_i,
    input logic rst_ni,

    // Privileged.
    input  logic    [        15:0] lid_i,
    input  logic    [NumPeers-1:0] stop_i,
    output logic    [NumPeers-1:0] off_o,
    output logic    [NumPeers-1:0] failed_o,
    output counts_t                counts_o,

    input  logic                 tx_valid_i,
    output logic                 tx_ready_o,
    input  dimmnet_line_e        tx_ident_i,
    input  logic          [63:0] tx_line_i,

    output logic                 rx_valid_o,
    input  logic                 rx_ready_i,
    output dimmnet_line_e        rx_ident_o,
    output logic          [63:0] rx_line_o,

    output logic        net_tx_valid_o,
    input  logic        net_tx_ready_i,
    output logic        net_tx_first_o,
    output logic        net_tx_last_o,
    output logic [ 3:0] net_tx_bytes_o,
    output logic [63:0] net_tx_word_o,

    input logic        net_rx_valid_i,
    input logic        net_rx_first_i,
    input logic        net_rx_last_i,
    input logic [ 3:0] net_rx_bytes_i,
    input logic [63:0] net_rx_word_i
);

  `VELO_ASSERT_INIT(PeersArePowerOfTwo, NumPeers >= 2 && NumPeers == 2 ** $clog2(NumPeers))
  `VELO_ASSERT_INIT(OnePacketIsStored, StoreLines >= PacketLines)

  localparam int unsigned PeerBits = $clog2(NumPeers);
  typedef logic [PeerBits-1:0] peer_t;
  typedef logic [PsnBits-1:0] psn_t;

  logic pkt_valid, pkt_ready, line_valid, line_take;
  psn_t pkt_psn;
  logic [63:0] line;

  logic ack_valid, ack_ready;
  ack_e  ack_kind;
  peer_t ack_peer;
  psn_t  ack_expected;
  dimmnet_swif_frame #(
      .PsnBits(PsnBits),
      .AckReq (Retransmission)
  ) u_frame (
      .clk_i,
      .rst_ni,
      .lid_i,
      .pkt_valid_i(pkt_valid),
      .pkt_psn_i(pkt_psn),
      .pkt_ready_o(pkt_ready),
      .line_valid_i(line_valid),
      .line_i(line),
      .line_take_o(line_take),
      .ack_valid_i(ack_valid),
      .ack_kind_i(ack_kind),
      .ack_lid_i({lid_i[15:PeerBits], ack_peer}),
      .ack_expected_i(ack_expected),
      .ack_ready_o(ack_ready),
      .net_ready_i(net_tx_ready_i),
      .net_valid_o(net_tx_valid_o),
      .net_first_o(net_tx_first_o),
      .net_last_o(net_tx_last_o),
      .net_bytes_o(net_tx_bytes_o),
      .net_word_o(net_tx_word_o)
  );

  logic measure, in_valid, good, heard, fits, accept;
  logic [63:0] in_line;
  dimmnet_line_e in_ident;
  logic [6:0] in_lines;
  peer_t in_peer;
  psn_t in_psn;
  ack_e heard_kind;
  logic crc, malformed, foreign, duplicate, ahead, no_room, unreachable;
  logic [NumPeers-1:0] repeated, gave_up;
  dimmnet_swif_check #(
      .NumPeers(NumPeers),
      .PsnBits(PsnBits),
      .PacketLines(PacketLines)
  ) u_check (
      .clk_i,
      .rst_ni,
      .lid_i,
      .net_valid_i(net_rx_valid_i),
      .net_first_i(net_rx_first_i),
      .net_last_i(net_rx_last_i),
      .net_bytes_i(net_rx_bytes_i),
      .net_word_i(net_rx_word_i),
      .measure_o(measure),
      .line_valid_o(in_valid),
      .line_o(in_line),
      .ident_o(in_ident),
      .lines_o(in_lines),
      .peer_o(in_peer),
      .psn_o(in_psn),
      .good_o(good),
      .ack_valid_o(heard),
      .ack_kind_o(heard_kind),
      .crc_o(crc),
      .malformed_o(malformed),
      .foreign_o(foreign)
  );
  dimmnet_swif_store #(
      .StoreLines(StoreLines)
  ) u_store (
      .clk_i,
      .rst_ni,
      .measure_i(measure),
      .lines_i(in_lines),
      .fits_o(fits),
      .line_valid_i(in_valid),
      .ident_i(in_ident),
      .line_i(in_line),
      .keep_i(accept),
      .rx_valid_o,
      .rx_ready_i,
      .rx_ident_o,
      .rx_line_o
  );

  if (Retransmission) begin : gen_retransmission
    dimmnet_swif_send #(
        .NumPeers(NumPeers),
        .PsnBits(PsnBits),
        .PacketLines(PacketLines),
        .RingLines(RingLines),
        .RingPackets(RingPackets),
        .TimeoutCycles(TimeoutCycles),
        .RnrCycles(RnrCycles),
        .RetryLimit(RetryLimit),
        .CutThrough(CutThrough)
    ) u_send (
        .clk_i,
        .rst_ni,
        .lid_i,
        .stop_i,
        .off_o,
        .failed_o,
        .tx_valid_i,
        .tx_ready_o,
        .tx_ident_i,
        .tx_line_i,
        .pkt_valid_o(pkt_valid),
        .pkt_psn_o(pkt_psn),
        .pkt_ready_i(pkt_ready),
        .line_valid_o(line_valid),
        .line_o(line),
        .line_take_i(line_take),
        .ack_valid_i(heard),
        .ack_kind_i(heard_kind),
        .ack_peer_i(in_peer),
        .ack_psn_i(in_psn),
        .repeat_o(repeated),
        .gave_up_o(gave_up),
        .unreachable_o(unreachable)
    );
    dimmnet_swif_judge #(
        .NumPeers(NumPeers),
        .PsnBits(PsnBits),
        .AckPackets(AckPackets),
        .AckCycles(AckCycles)
    ) u_judge (
        .clk_i,
        .rst_ni,
        .off_i(off_o),
        .good_i(good),
        .peer_i(in_peer),
        .psn_i(in_psn),
        .fits_i(fits),
        .accept_o(accept),
        .duplicate_o(duplicate),
        .ahead_o(ahead),
        .no_room_o(no_room),
        .ack_valid_o(ack_valid),
        .ack_ready_i(ack_ready),
        .ack_kind_o(ack_kind),
        .ack_peer_o(ack_peer),
        .ack_expected_o(ack_expected)
    );
  end else begin : gen_bare
    logic unused_bare;
    logic [2:0] unused_count;
    assign unused_bare = &{1'b0, CutThrough, stop_i, tx_ident_i, heard, heard_kind, in_peer, in_psn,
        ack_ready};
    velo_fifo #(
        .Width(64),
        .Depth(4)
    ) u_lines (
        .clk_i,
        .rst_ni,
        .push_valid_i(tx_valid_i),
        .push_ready_o(tx_ready_o),
        .push_data_i(tx_line_i),
        .pop_valid_o(line_valid),
        .pop_ready_i(line_take),
        .pop_data_o(line),
        .count_o(unused_count)
    );
    assign pkt_valid = line_valid;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) pkt_psn <= '0;
      else if (pkt_ready) pkt_psn <= pkt_psn + 1'b1;
    end
    assign accept = good && fits;
    assign no_room = good && !fits;
    assign off_o = '0;
    assign failed_o = '0;
    assign ack_valid = 1'b0;
    assign ack_kind = AckTaken;
    assign ack_peer = '0;
    assign ack_expected = '0;
    assign duplicate = 1'b0;
    assign ahead = 1'b0;
    assign unreachable = 1'b0;
    assign repeated = '0;
    assign gave_up = '0;
  end

  // Several peers may fail at once; how many is known a cycle later.
  localparam int unsigned SumBits = PeerBits + 1;
  logic [SumBits-1:0] repeated_q, gave_up_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      counts_o   <= '0;
      repeated_q <= '0;
      gave_up_q  <= '0;
    end else begin
      repeated_q <= SumBits'($countones(repeated));
      gave_up_q <= SumBits'($countones(gave_up));
      counts_o.gave_up <= counts_o.gave_up + 32'(gave_up_q);
      counts_o.repeated <= counts_o.repeated + 32'(repeated_q);
      counts_o.unreachable <= counts_o.unreachable + 32'(unreachable);
      counts_o.no_room <= counts_o.no_room + 32'(no_room);
      counts_o.duplicate <= counts_o.duplicate + 32'(duplicate);
      counts_o.ahead <= counts_o.ahead + 32'(ahead);
      counts_o.foreign <= counts_o.foreign + 32'(foreign);
      counts_o.malformed <= counts_o.malformed + 32'(malformed);
      counts_o.crc <= counts_o.crc + 32'(crc);
    end
  end

endmodule
