// SPDX-License-Identifier: Apache-2.0
//
// Makes InfiniBand packets of lines and of acknowledgements.
//
// A packet of data waits with `pkt_valid_i`, its first line at `line_i`; it is begun with `pkt_ready_o`, and from then
// on each `line_take_o` takes a line, as many as the first one's `words` says and the header has. Its header's
// LIDs are the packet's. An acknowledgement is begun with `ack_ready_o`. If both wait, they take turns.
//
// Three stages, each a register: choice of the word; ICRC; VCRC. `net_ready_i` holds all of them. Inside a packet
// there is a gap only if its next line is not there.
// Source: InfiniBand Architecture Specification, volume 1, 7.7, 7.8, 9.2.

module dimmnet_swif_frame
  import dimmnet_pkg::*;
  import dimmnet_swif_pkg::*;
#(
    parameter int unsigned PsnBits = 24,
    parameter bit AckReq = 1'b1
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [15:0] lid_i,

    input  logic               pkt_valid_i,
    input  logic [PsnBits-1:0] pkt_psn_i,
    output logic               pkt_ready_o,
    input  logic               line_valid_i,
    input  logic [       63:0] line_i,
    output logic               line_take_o,

    input  logic               ack_valid_i,
    input  ack_e               ack_kind_i,
    input  logic [       15:0] ack_lid_i,
    input  logic [PsnBits-1:0] ack_expected_i,  // the packet that is to come next
    output logic               ack_ready_o,

    input logic net_ready_i,
    output logic net_valid_o,
    output logic net_first_o,
    output logic net_last_o,
    output logic [3:0] net_bytes_o,  // of the word, from the lowest on; less than 8 at the end
    output logic [63:0] net_word_o
);

  typedef logic [6:0] lines_t;

  // What CRCs do with a word.
  typedef enum logic [2:0] {
    WLrh,
    WBth,
    WPlain,
    WIcrc,   // the ICRC is its upper half
    WVcrc,   // it is the VCRC
    WBoth    // it is both CRCs
  } word_e;

  typedef enum logic [2:0] {
    StIdle,
    StBth,
    StTail,
    StLine,
    StIcrc,
    StEnd
  } state_e;

  // ----- Choice of the word -----------------------------------------------------------------------

  state_e state_q;
  logic ack_q, ack_last_q;  // the packet, and the one before, is an acknowledgement
  lines_t left_q;
  logic [PsnBits-1:0] psn_q, msn_q;
  logic [15:0] peer_q;
  ack_e kind_q;
  logic [31:0] half_q;  // of a line, goes ahead of the next one's

  logic move, begin_ack, begin_pkt, choose_valid;
  logic [63:0] choose_word;
  word_e choose_kind;
  dimmnet_packet_t header;
  lrh_t lrh;
  bth_t bth;
  bth_tail_t tail;
  aeth_t aeth;
  lines_t lines;

  assign header = dimmnet_packet_t'({64'd0, line_i});
  logic unused_header;
  assign unused_header = &{1'b0, header};
  assign lines = header.words + lines_t'(DimmnetHeaderWords);
  assign begin_ack = state_q == StIdle && ack_valid_i &&
      !(ack_last_q && pkt_valid_i && line_valid_i);
  assign begin_pkt = state_q == StIdle && pkt_valid_i && line_valid_i && !begin_ack;
  assign ack_ready_o = move && begin_ack;
  assign pkt_ready_o = move && begin_pkt;
  assign line_take_o = move && line_valid_i && ((state_q == StTail && !ack_q) || state_q == StLine);

  syndrome_e syndrome;
  always_comb begin
    unique case (kind_q)
      AckNotReady: syndrome = SyndromeRnr;
      AckSequence: syndrome = SyndromeNak;
      default: syndrome = SyndromeAck;
    endcase
  end

  always_comb begin
    lrh = '0;
    lrh.lnh = LnhBth;
    lrh.dlid = begin_ack ? ack_lid_i : header.dst_lid;
    lrh.slid = begin_ack ? lid_i : header.src_lid;
    lrh.pkt_len = begin_ack ? 11'(LenAck) : 11'(LenBare) + {3'd0, lines, 1'b0};
    bth = '0;
    bth.op = ack_q ? OpAck : OpSend;
    bth.p_key = PKey;
    bth.dest_qp = {QpBase, peer_q};
    tail = '0;
    tail.ack_req = AckReq && !ack_q;
    tail.psn = 24'(psn_q);
    aeth.syndrome = syndrome;
    aeth.msn = 24'(msn_q);
  end

  // A header of 32 bits, as it is in a word of the network.
  function automatic logic [31:0] half_turned(logic [31:0] half);
    for (int i = 0; i < 4; i++) half_turned[8*i+:8] = half[24-8*i+:8];
  endfunction

  always_comb begin
    choose_valid = 1'b1;
    choose_kind  = WPlain;
    choose_word  = {line_i[31:0], half_q};
    unique case (state_q)
      StIdle: begin
        choose_valid = begin_ack || begin_pkt;
        choose_kind  = WLrh;
        choose_word  = bytes_turned(lrh);
      end
      StBth: begin
        choose_kind = WBth;
        choose_word = bytes_turned(bth);
      end
      StTail: begin
        choose_valid = ack_q || line_valid_i;
        choose_word  = {ack_q ? half_turned(aeth) : line_i[31:0], half_turned(tail)};
      end
      StLine:  choose_valid = line_valid_i;
      StIcrc:  choose_kind = WIcrc;
      default: choose_kind = ack_q ? WBoth : WVcrc;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      ack_q <= 1'b0;
      ack_last_q <= 1'b0;
    end else if (move && choose_valid) begin
      unique case (state_q)
        StIdle: begin
          state_q <= StBth;
          ack_q <= begin_ack;
          ack_last_q <= begin_ack;
        end
        StBth:   state_q <= StTail;
        StTail:  state_q <= ack_q ? StEnd : StLine;
        StLine:  state_q <= left_q == lines_t'(1) ? StIcrc : StLine;
        StIcrc:  state_q <= StEnd;
        default: state_q <= StIdle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (move && choose_valid) begin
      if (state_q == StIdle) begin
        left_q <= lines - 1'b1;
        if (begin_pkt) psn_q <= pkt_psn_i;
        else psn_q <= ack_kind_i == AckTaken ? ack_expected_i - 1'b1 : ack_expected_i;
        msn_q  <= ack_expected_i;  // each message has one packet
        kind_q <= ack_kind_i;
        // At the peer the connection's queue pair is called after this board.
        peer_q <= lrh.slid;
      end
      if (state_q == StLine) left_q <= left_q - 1'b1;
      half_q <= line_i[63:32];
    end
  end

  // ----- ICRC ---------------------------------------------------------------------------------------

  logic a_valid_q, b_valid_q;
  word_e a_kind_q, b_kind_q;
  logic [63:0] a_word_q, b_word_q, icrc_data;
  icrc_t icrc_q, icrc_64, icrc_32;

  always_comb begin
    icrc_data = a_word_q;
    if (a_kind_q == WLrh) icrc_data |= LrhMask;
    if (a_kind_q == WBth) icrc_data |= BthMask;
  end
  logic [63:0] icrc_turned;
  assign icrc_turned = bits_turned(icrc_data);
  velo_crc #(
      .Width(IcrcWidth),
      .DataWidth(64),
      .Poly(IcrcPoly)
  ) u_icrc_64 (
      .crc_i (a_kind_q == WLrh ? '1 : icrc_q),
      .data_i(icrc_turned),
      .crc_o (icrc_64)
  );
  velo_crc #(
      .Width(IcrcWidth),
      .DataWidth(32),
      .Poly(IcrcPoly)
  ) u_icrc_32 (
      .crc_i (icrc_q),
      .data_i(icrc_turned[63:32]),
      .crc_o (icrc_32)
  );

  // ----- VCRC ---------------------------------------------------------------------------------------

  vcrc_t vcrc_q, vcrc_64, vcrc_32;
  logic [63:0] vcrc_turned;
  assign vcrc_turned = bits_turned(b_word_q);
  velo_crc #(
      .Width(VcrcWidth),
      .DataWidth(64),
      .Poly(VcrcPoly)
  ) u_vcrc_64 (
      .crc_i (b_kind_q == WLrh ? '1 : vcrc_q),
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

  assign move = !net_valid_o || net_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      a_valid_q   <= 1'b0;
      b_valid_q   <= 1'b0;
      net_valid_o <= 1'b0;
    end else if (move) begin
      a_valid_q   <= choose_valid;
      b_valid_q   <= a_valid_q;
      net_valid_o <= b_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (move) begin
      a_kind_q <= choose_kind;
      a_word_q <= choose_word;

      b_kind_q <= a_kind_q;
      b_word_q <= a_word_q;
      if (a_kind_q == WIcrc) b_word_q[63:32] <= icrc_field(icrc_32);
      if (a_kind_q == WBoth) b_word_q[31:0] <= icrc_field(icrc_q);
      if (a_valid_q) icrc_q <= icrc_64;

      net_first_o <= b_kind_q == WLrh;
      net_last_o  <= b_kind_q == WVcrc || b_kind_q == WBoth;
      net_bytes_o <= b_kind_q == WVcrc ? 4'(DataBytes) : b_kind_q == WBoth ? 4'(AckBytes) : 4'd8;
      net_word_o  <= b_word_q;
      if (b_kind_q == WVcrc) net_word_o <= 64'(vcrc_field(vcrc_q));
      if (b_kind_q == WBoth) net_word_o[63:32] <= 32'(vcrc_field(vcrc_32));
      if (b_valid_q) vcrc_q <= vcrc_64;
    end
  end

endmodule
