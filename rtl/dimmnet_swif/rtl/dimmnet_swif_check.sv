// SPDX-License-Identifier: Apache-2.0
//
// Takes InfiniBand packets apart and checks them: form, ICRC, VCRC, and whether they are for this board.
//
// The lines of a packet come out as they come in, before anything is known of it; `measure_o` goes ahead of them, with
// `lines_o`, how many there are to be. With the packet's last word `good_o` says that all is right: it is
// one for this board, from a peer, and `peer_o` and `psn_o` are known since two words. An acknowledgement is told by
// `ack_valid_o`, one cycle after its last word.
//
// A word is believed to begin and end a packet where its marks say so, and nothing else is believed before the CRCs.
// Marks that contradict each other or the headers end a packet as malformed. Nothing that comes stops this module.
// Errors: one pulse for each packet that is dropped here; a bit error in a header may count as any of the three.

module dimmnet_swif_check
  import dimmnet_pkg::*;
  import dimmnet_swif_pkg::*;
#(
    parameter int unsigned NumPeers = 16,
    parameter int unsigned PsnBits = 24,
    parameter int unsigned PacketLines = 64,
    localparam int unsigned PeerBits = $clog2(NumPeers)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [15:0] lid_i,

    input logic        net_valid_i,
    input logic        net_first_i,
    input logic        net_last_i,
    input logic [ 3:0] net_bytes_i,
    input logic [63:0] net_word_i,

    output logic                 measure_o,
    output logic                 line_valid_o,
    output logic          [63:0] line_o,
    output dimmnet_line_e        ident_o,

    output logic [         6:0] lines_o,
    output logic [PeerBits-1:0] peer_o,
    output logic [ PsnBits-1:0] psn_o,
    output logic                good_o,

    output logic ack_valid_o,
    output ack_e ack_kind_o,

    output logic crc_o,
    output logic malformed_o,
    output logic foreign_o
);

  typedef logic [6:0] place_t;

  // ----- Headers ------------------------------------------------------------------------------------

  logic open_q;
  place_t place_q, place;
  assign place = net_first_i ? '0 : place_q;

  lrh_t lrh, lrh_q;
  bth_t bth;
  bth_tail_t tail;
  aeth_t aeth, aeth_q;
  logic [31:0] half_q;
  logic [63:0] turned;
  assign turned = bytes_turned(net_word_i);
  assign lrh = lrh_t'(turned);
  assign bth = bth_t'(turned);
  assign {tail, aeth} = turned;

  logic word, is_data, is_ack, data_q, ack_q, ours_q;
  place_t end_q;  // the place of the last word
  logic [10:0] rest;
  assign word = net_valid_i && (net_first_i || open_q);
  assign rest = lrh_q.pkt_len - 11'(LenBare);
  assign is_data = bth.op == OpSend && !rest[0] && rest >= 11'(2 * DimmnetHeaderWords) &&
      rest <= 11'(2 * PacketLines);
  assign is_ack = bth.op == OpAck && lrh_q.pkt_len == 11'(LenAck);

  logic headers_right;
  assign headers_right = lrh_q.lnh == LnhBth && lrh_q.lver == '0 && bth.pad == '0 &&
      bth.tver == '0 && bth.p_key == PKey && bth.dest_qp == {QpBase, lrh_q.slid};
  // Any VL and SL will do; what is reserved, the events and the count of messages say nothing.
  logic unused_fields;
  assign unused_fields = &{1'b0, lrh_q, bth, tail, aeth_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q  <= 1'b0;
      place_q <= '0;
      data_q  <= 1'b0;
      ack_q   <= 1'b0;
    end else if (word) begin
      open_q  <= !net_last_i;
      place_q <= &place ? place : place + 1'b1;
      if (place == '0) begin
        data_q <= 1'b0;
        ack_q  <= 1'b0;
      end
      if (place == place_t'(1)) begin
        data_q <= headers_right && is_data;
        ack_q  <= headers_right && is_ack;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (word) begin
      half_q <= net_word_i[63:32];
      if (place == '0) lrh_q <= lrh;
      if (place == place_t'(1)) begin
        end_q  <= is_ack ? place_t'(AckWords - 1) : rest[7:1] + place_t'(ExtraWords - 1);
        ours_q <= lrh_q.dlid == lid_i && lrh_q.slid[15:PeerBits] == lid_i[15:PeerBits];
      end
      if (place == place_t'(2)) begin
        psn_o  <= tail.psn[PsnBits-1:0];
        aeth_q <= aeth;
      end
    end
  end
  assign peer_o = lrh_q.slid[PeerBits-1:0];

  // ----- Lines --------------------------------------------------------------------------------------

  assign lines_o = rest[7:1];
  assign measure_o = word && place == place_t'(2) && data_q;
  assign line_valid_o = word && place > place_t'(2) && place < end_q && data_q;
  assign line_o = {net_word_i[31:0], half_q};
  always_comb begin
    ident_o = DimmnetLineMiddle;
    if (place == place_t'(3)) ident_o = DimmnetLineFirst;
    if (place + 1'b1 == end_q) ident_o = DimmnetLineLast;
  end

  // ----- CRCs ---------------------------------------------------------------------------------------

  icrc_t icrc_q, icrc_64;
  vcrc_t vcrc_q, vcrc_64, vcrc_32;
  logic [63:0] icrc_data, icrc_turned, vcrc_turned;
  always_comb begin
    icrc_data = net_word_i;
    if (place == '0) icrc_data |= LrhMask;
    if (place == place_t'(1)) icrc_data |= BthMask;
  end
  assign icrc_turned = bits_turned(icrc_data);
  assign vcrc_turned = bits_turned(net_word_i);
  velo_crc #(
      .Width(IcrcWidth),
      .DataWidth(64),
      .Poly(IcrcPoly)
  ) u_icrc_64 (
      .crc_i (net_first_i ? '1 : icrc_q),
      .data_i(icrc_turned),
      .crc_o (icrc_64)
  );
  velo_crc #(
      .Width(VcrcWidth),
      .DataWidth(64),
      .Poly(VcrcPoly)
  ) u_vcrc_64 (
      .crc_i (net_first_i ? '1 : vcrc_q),
      .data_i(vcrc_turned),
      .crc_o (vcrc_64)
  );
  velo_crc #(
      .Width(VcrcWidth),
      .DataWidth(32),
      .Poly(VcrcPoly)
  ) u_vcrc_32 (
      .crc_i (vcrc_q),
      .data_i(vcrc_turned[63:32]),
      .crc_o (vcrc_32)
  );

  // ----- Verdicts -----------------------------------------------------------------------------------

  // Data: the ICRC has gone into the CRC of the words before. An acknowledgement has both CRCs in its last word, and
  // they are compared a cycle later.
  logic data_end, ack_end, bad_end, data_right, ack_end_q, ack_right;
  icrc_t icrc_end_q, icrc_got_q;
  vcrc_t vcrc_end_q, vcrc_got_q;
  assign data_end = word && net_last_i && data_q && place == end_q && net_bytes_i == 4'(DataBytes);
  assign ack_end = word && net_last_i && ack_q && place == end_q && net_bytes_i == 4'(AckBytes);
  assign bad_end = (word && net_last_i && !data_end && !ack_end) ||
      (net_valid_i && net_first_i && open_q);
  assign data_right = icrc_q == IcrcRest && vcrc_field(vcrc_q) == net_word_i[15:0];
  assign ack_right = icrc_field(icrc_end_q) == icrc_got_q && vcrc_field(vcrc_end_q) == vcrc_got_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ack_end_q <= 1'b0;
    else ack_end_q <= ack_end;
  end
  always_ff @(posedge clk_i) begin
    if (word) begin
      icrc_q <= icrc_64;
      vcrc_q <= vcrc_64;
    end
    icrc_end_q <= icrc_q;
    icrc_got_q <= net_word_i[31:0];
    vcrc_end_q <= vcrc_32;
    vcrc_got_q <= net_word_i[47:32];
  end

  logic ack_known;
  assign good_o = data_end && data_right && ours_q;
  assign ack_valid_o = ack_end_q && ack_right && ours_q && ack_known;
  always_comb begin
    ack_kind_o = AckTaken;
    if (aeth_q.syndrome[7:5] == SyndromeRnr[7:5]) ack_kind_o = AckNotReady;
    if (aeth_q.syndrome == SyndromeNak) ack_kind_o = AckSequence;
  end
  // Other NAKs say that a request was invalid. None that this sends is.
  assign ack_known = aeth_q.syndrome[7:5] == SyndromeAck[7:5] ||
      aeth_q.syndrome[7:5] == SyndromeRnr[7:5] || aeth_q.syndrome == SyndromeNak;

  assign crc_o = (data_end && !data_right) || (ack_end_q && !ack_right);
  assign malformed_o = bad_end || (ack_end_q && ack_right && ours_q && !ack_known);
  assign foreign_o = (data_end && data_right && !ours_q) || (ack_end_q && ack_right && !ours_q);

endmodule
