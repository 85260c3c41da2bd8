// SPDX-License-Identifier: Apache-2.0
//
// The two halves of a link port, both sides, without bring-up in front: so that the bound holds
// several retransmissions. A cable that changes any words in any way, both ways; with Downs, either
// side is down at any time, in any pattern. The words that go in at A come out at B: each once, in
// order, with its packet limits. With Quiet, disturbance ends at QuietFrom, and by Deadline everything
// has arrived: repetition terminates. With Ecc, up to two bits of each word that is read from A's ring are wrong
// besides: nothing changes as long as no word has two; then a packet still comes once, in its place, with its
// limits, and what is not poisoned is right.
//
// Small parameters (two-word frames, four sequence numbers, a ring of eight words) keep the
// bound short. Both sides begin with any number, and A's ring at any place (velo_link_retry.sby puts
// `first_seq_q` and `first_word_q` in the place of the zeros of the reset), so that all of them wrap inside the
// bound. The proof's CRC (velo_crc.sv beside this) misses nothing.

`include "velo_assert.svh"

module velo_link_retry_props
  import velo_link_pkg::*;
#(
    parameter bit Downs = 1'b0,
    parameter bit Quiet = 1'b0,
    parameter bit Ecc = 1'b0,
    parameter int unsigned QuietFrom = 7,
    parameter int unsigned Deadline = 38
) (
    input logic clk_i,
    input logic rst_ni,
    input logic want_i,
    input logic down_a_i,
    input logic down_b_i,
    input logic hit_ab_i,
    input logic hit_ba_i,
    input kind_e hit_kind_i,
    input logic [11:0] hit_data_i,
    input logic [1:0] wrong_i,  // bits of a word of A's ring
    input logic [65:0] noise_i
);

  localparam int unsigned SeqBits = 2;
  typedef logic [4:0] num_t;

  logic [5:0] cycle_q;
  initial cycle_q = '0;
  always_ff @(posedge clk_i) cycle_q <= &cycle_q ? cycle_q : cycle_q + 1'b1;
  always_comb assume (rst_ni == (cycle_q != '0));

  // What a reset leaves, any number, held.
  logic [SeqBits-1:0] first_seq_q;
  logic [3:0] first_word_q;
  always_ff @(posedge clk_i) begin
    first_seq_q  <= first_seq_q;
    first_word_q <= first_word_q;
  end

  logic quiet;
  assign quiet = Quiet && cycle_q >= 6'(QuietFrom);

  // The packet limits: any pattern, held.
  logic [31:0] ends_q, poison_q;  // packets have at most two words; some are poisoned
  always_ff @(posedge clk_i) begin
    ends_q   <= ends_q;
    poison_q <= poison_q;
  end
  for (genvar i = 0; i < 31; i++) begin : gen_short
    always_comb assume (ends_q[i] || ends_q[i+1]);
  end
  always_comb assume (!Quiet || ends_q == '1);

  num_t sent_q, got_q;
  logic in_valid, in_stop, out_valid, out_sop, out_eop;
  vc_t out_vc;
  logic [63:0] out_data;

  // Three packets are enough to see repetition end; more only make the proof longer. They are of one
  // word: the input stops when disturbance does, and half a frame rightly waits for its other half.
  assign in_valid = want_i && !in_stop && !quiet && sent_q != (Quiet ? num_t'(3) : '1);

  kind_e a_kind, b_kind;
  logic [63:0] a_data, b_data;

  // Up follows down by a cycle, with its pulse.
  logic [1:0] up_q, came_up_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      up_q <= '0;
      came_up_q <= '0;
    end else begin
      up_q <= quiet || !Downs ? '1 : ~{down_b_i, down_a_i};
      came_up_q <= (quiet || !Downs ? '1 : ~{down_b_i, down_a_i}) & ~up_q;
    end
  end

  velo_secded_pkg::ecc_t ecc;
  logic [1:0] status_valid, status_sent, nak, replay;
  logic out_poison, out_again;
  status_t heard[2];
  status_t told[2];
  logic [SeqBits-1:0] expected[2];

  velo_link_tx #(
      .DataWidth(64),
      .FrameWords(2),
      .RingWords(8),
      .SeqBits(SeqBits),
      .StopMargin(0),
      .TimeoutCycles(Quiet ? 11 : 15),
      .Ecc(Ecc)
  ) u_tx_a (
      .up_i(up_q[0]),
      .came_up_i(came_up_q[0]),
      .anew_i(1'b0),
      .drain_i(1'b0),
      .unsent_o(),
      .base_o(),
      .in_doubt_o(),
      .init_word_i('0),
      .in_valid_i(in_valid),
      .in_sop_i(sent_q == '0 || ends_q[sent_q-1'b1]),
      .in_eop_i(ends_q[sent_q]),
      .in_poison_i(poison_q[sent_q]),
      .in_vc_i(3'd1),
      .in_data_i(64'(sent_q)),
      .in_hold_i(1'b0),
      .in_stop_o(in_stop),
      .ack_valid_i(status_valid[0]),
      .ack_i(heard[0].ack[SeqBits-1:0]),
      .nak_i(heard[0].nak),
      .status_i(told[0]),
      .status_sent_o(status_sent[0]),
      .phy_pause_i('0),
      .phy_kind_o(a_kind),
      .phy_data_o(a_data),
      .acked_o(),
      .replay_o(replay[0]),
      .ecc_o(ecc),
      .timeout_o(),
      .sent_start_o(),
      .sent_word_o(),
      .sent_last_o(),
      .sent_first_o(),
      .sent_vc_o(),
      .*
  );
  velo_link_rx #(
      .DataWidth(64),
      .FrameWords(2),
      .SeqBits(SeqBits)
  ) u_rx_a (
      .up_i(up_q[0]),
      .came_up_i(came_up_q[0]),
      .anew_i(1'b0),
      .fresh_i(1'b0),
      .ack_base_i('0),
      .phy_kind_i(hit_ba_i && !quiet ? hit_kind_i : b_kind),
      .phy_data_i(hit_ba_i && !quiet ? {1'b1, 51'(hit_data_i), hit_data_i} : b_data),
      .out_valid_o(),
      .out_sop_o(),
      .out_eop_o(),
      .out_poison_o(),
      .out_again_o(),
      .out_vc_o(),
      .out_data_o(),
      .ack_valid_o(status_valid[0]),
      .freed_valid_o(),
      .status_o(heard[0]),
      .idle_o(),
      .init_valid_o(),
      .init_o(),
      .expected_o(expected[0]),
      .nak_o(nak[0]),
      .accepted_o(),
      .error_o(),
      .*
  );

  velo_link_tx #(
      .DataWidth(64),
      .FrameWords(2),
      .RingWords(8),
      .SeqBits(SeqBits),
      .StopMargin(0),
      .TimeoutCycles(Quiet ? 11 : 15)
  ) u_tx_b (
      .up_i(up_q[1]),
      .came_up_i(came_up_q[1]),
      .anew_i(1'b0),
      .drain_i(1'b0),
      .unsent_o(),
      .base_o(),
      .in_doubt_o(),
      .init_word_i('0),
      .in_valid_i(1'b0),
      .in_sop_i(1'b0),
      .in_eop_i(1'b0),
      .in_poison_i(1'b0),
      .in_vc_i('0),
      .in_data_i('0),
      .in_hold_i(1'b0),
      .in_stop_o(),
      .ack_valid_i(status_valid[1]),
      .ack_i(heard[1].ack[SeqBits-1:0]),
      .nak_i(heard[1].nak),
      .status_i(told[1]),
      .status_sent_o(status_sent[1]),
      .phy_pause_i('0),
      .phy_kind_o(b_kind),
      .phy_data_o(b_data),
      .acked_o(),
      .replay_o(replay[1]),
      .ecc_o(),
      .timeout_o(),
      .sent_start_o(),
      .sent_word_o(),
      .sent_last_o(),
      .sent_first_o(),
      .sent_vc_o(),
      .*
  );
  velo_link_rx #(
      .DataWidth(64),
      .FrameWords(2),
      .SeqBits(SeqBits)
  ) u_rx_b (
      .up_i(up_q[1]),
      .came_up_i(came_up_q[1]),
      .anew_i(1'b0),
      .fresh_i(1'b0),
      .ack_base_i('0),
      .phy_kind_i(hit_ab_i && !quiet ? hit_kind_i : a_kind),
      .phy_data_i(hit_ab_i && !quiet ? {1'b1, 51'(hit_data_i), hit_data_i} : a_data),
      .out_valid_o(out_valid),
      .out_sop_o(out_sop),
      .out_eop_o(out_eop),
      .out_poison_o(out_poison),
      .out_again_o(out_again),
      .out_vc_o(out_vc),
      .out_data_o(out_data),
      .ack_valid_o(status_valid[1]),
      .freed_valid_o(),
      .status_o(heard[1]),
      .idle_o(),
      .init_valid_o(),
      .init_o(),
      .expected_o(expected[1]),
      .nak_o(nak[1]),
      .accepted_o(),
      .error_o(),
      .*
  );

  for (genvar i = 0; i < 2; i++) begin : gen_told
    assign told[i] = '{freed: '0, vc: '0, ack: seq_t'(expected[i]), echo: 1'b0, nak: nak[i]};
  end

  logic lost_q, put_right_q;  // a word was
  if (Ecc) begin : gen_ecc
    assign u_tx_a.u_ring.u_ram.gen_ecc.wrong = wrong_i;
    assign u_tx_a.u_ring.u_ram.gen_ecc.noise = noise_i;
    always_comb assume (wrong_i != 2'd3);
  end
  always_ff @(posedge clk_i) begin
    lost_q <= rst_ni && (lost_q || ecc.broken);
    put_right_q <= rst_ni && (put_right_q || ecc.corrected);
  end
  logic [1:0] replays_q, agains_q;
  num_t place;
  logic whole;
  velo_link_promise #(
      .DataWidth(64),
      .NumBits  (5)
  ) u_promise (
      .valid_i   (out_valid),
      .sop_i     (out_sop),
      .eop_i     (out_eop),
      .poison_i  (out_poison),
      .again_i   (out_again),
      .vc_i      (out_vc),
      .data_i    (out_data),
      .place_o   (place),
      .word_i    (64'(place)),
      .ends_i    (ends_q[place]),
      .poisoned_i(poison_q[place]),
      .sent_vc_i (3'd1),
      .lost_i    (lost_q),
      .came_o    (got_q),
      .whole_o   (whole),
      .repeats_o (),
      .*
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sent_q <= '0;
      replays_q <= '0;
      agains_q <= '0;
    end else begin
      if (in_valid) sent_q <= sent_q + 1'b1;
      if (out_valid && out_eop && out_again && !(&agains_q)) agains_q <= agains_q + 1'b1;
      if (replay[0] && replays_q != '1) replays_q <= replays_q + 1'b1;
    end
  end

  // What the link gives on: velo_link_promise.
  `VELO_ASSERT(NothingInvented, !(out_valid && (out_sop || whole)) || place < sent_q)
  `VELO_ASSERT(Terminates, !Quiet || cycle_q != 6'(Deadline) || got_q == sent_q)
  if (Ecc) begin : gen_ecc_covers
    `VELO_COVER(ComesPutRight, whole && !out_poison && put_right_q)
    `VELO_COVER(ComesPoisoned, whole && !poison_q[place] && out_data != {16{VoidNibble}} && lost_q)
    `VELO_COVER(ComesAsVoid, whole && out_sop && out_data == {16{VoidNibble}})
  end else begin : gen_covers
    `VELO_COVER(ArrivesAfterReplay, whole && replays_q == 2'd1)
    `VELO_COVER(CutOff, agains_q == 2'd1)
    // Each number that counts on, from its last value to zero.
    `VELO_COVER(SequenceWraps, whole && first_seq_q == '1 && expected[1] == '0)
    `VELO_COVER(WindowWraps, u_tx_a.acked_seq_q == '0 && first_seq_q == '1)
    `VELO_COVER(RingWraps, u_tx_a.acked_q == '0 && first_word_q == '1)
    `VELO_COVER(ToldToBeTheSame, out_valid && out_sop && out_again)
  end

endmodule
