// SPDX-License-Identifier: Apache-2.0
//
// Two link ports and a cable that changes any words in any way, in both directions; either side may
// be taken down at any time. The sequence that goes in at A comes out at B: each word once, in order,
// with its packet limits; and its credits never let B's buffer run over.
//
// Small parameters (two-word frames, four sequence numbers, a ring of eight words) keep the
// bound short; numbers wrap in velo_link_retry_props, not here.

`include "velo_assert.svh"

module velo_link_props
  import velo_link_pkg::*;
#(
    // Until then nothing is disturbed: the link comes up, and words of packets come out inside the bound.
    parameter int unsigned Calm = 0
) (
    input logic clk_i,
    input logic rst_ni,
    input logic link_reset_a_i,
    input logic link_reset_b_i,
    input logic want_i,
    input logic free_i,
    input logic hit_ab_i,
    input logic hit_ba_i,
    input logic [1:0] hit_kind_i,
    input logic [11:0] hit_data_i
);

  localparam int unsigned CountBits = 5;
  typedef logic [CountBits-1:0] num_t;

  logic [6:0] cycle_q;
  initial cycle_q = '0;
  always_ff @(posedge clk_i) cycle_q <= &cycle_q ? cycle_q : cycle_q + 1'b1;
  always_comb assume (rst_ni == (cycle_q != '0));

  logic disturbed;
  assign disturbed = hit_ab_i || hit_ba_i || link_reset_a_i || link_reset_b_i;
  always_comb assume (!disturbed || cycle_q >= 7'(Calm));

  // The packet limits: any pattern, held.
  logic [2**CountBits-1:0] ends_q;
  always_ff @(posedge clk_i) ends_q <= ends_q;
  for (genvar i = 0; i < 2 ** CountBits - 1; i++) begin : gen_short
    always_comb assume (ends_q[i] || ends_q[i+1]);  // packets of at most two words
  end

  kind_e a_kind, b_kind, at_a_kind, at_b_kind;
  logic [63:0] a_data, b_data, at_a_data, at_b_data, out_data;
  logic in_valid, in_sop, in_stop, out_valid, out_sop, out_eop, up_a, up_b;
  vc_t out_vc;
  num_t sent_q, got_q;
  // See velo_link_retry_props.
  num_t place_q, place;
  logic right_q, right, open_q, out_poison, out_again;
  count_t copy_q, copy;  // words of the packet that is coming out
  assign place = out_sop ? got_q : place_q;
  assign right = (out_sop || right_q) && out_data == 64'(place) && out_eop == ends_q[place] &&
      !(out_eop && out_poison);
  assign copy = out_sop ? count_t'(1) : copy_q + 1'b1;

  // Credits for B's buffer, of which a unit is a word here.
  count_t credits, avail, freed_q, held_q;
  count_t freed_seen, freed_other;
  logic ok;

  assign in_valid = want_i && !in_stop && ok;
  assign in_sop = sent_q == '0 || ends_q[sent_q-1'b1];
  assign {at_b_kind, at_b_data} = hit_ab_i ?
      {kind_e'(hit_kind_i), 1'b1, 51'(hit_data_i), hit_data_i} : {a_kind, a_data};
  assign {at_a_kind, at_a_data} = hit_ba_i ?
      {kind_e'(hit_kind_i), 1'b1, 51'(hit_data_i), hit_data_i} : {b_kind, b_data};

  velo_link #(
      .DataWidth(64),
      .NumVcs(2),
      .MtuBytes(64),
      .BufferUnits(2),
      .MinCredits(1),
      .FrameWords(2),
      .RingWords(8),
      .SeqBits(2),
      .StopMargin(0),
      .TimeoutCycles(15),
      .InitWords(1),
      .UnitWords(1),
      .QuietCycles(1)
  ) u_a (
      .enable_i(1'b1),
      .link_reset_i(link_reset_a_i),
      .forget_i(1'b0),
      .phy_up_i(1'b1),
      .phy_kind_i(at_a_kind),
      .phy_data_i(at_a_data),
      .phy_pause_i('0),
      .phy_kind_o(a_kind),
      .phy_data_o(a_data),
      .in_valid_i(in_valid),
      .in_sop_i(in_sop),
      .in_eop_i(ends_q[sent_q]),
      .in_poison_i(1'b0),
      .in_vc_i(3'd1),
      .in_data_i(64'(sent_q)),
      .in_stop_o(in_stop),
      .out_valid_o(),
      .out_sop_o(),
      .out_eop_o(),
      .out_poison_o(),
      .out_again_o(),
      .out_vc_o(),
      .out_data_o(),
      .out_freed_i('0),
      .credits_o(credits),
      .freed_o({freed_seen, freed_other}),
      .up_o(up_a),
      .refuse_o(),
      .crc_errors_o(),
      .replays_o(),
      .timeouts_o(),
      .in_doubt_o(),
      .restarts_o(),
      .ecc_o(),
      .*
  );


  velo_link #(
      .DataWidth(64),
      .NumVcs(2),
      .MtuBytes(64),
      .BufferUnits(2),
      .MinCredits(1),
      .FrameWords(2),
      .RingWords(8),
      .SeqBits(2),
      .StopMargin(0),
      .TimeoutCycles(15),
      .InitWords(1),
      .UnitWords(1),
      .QuietCycles(1)
  ) u_b (
      .enable_i(1'b1),
      .link_reset_i(link_reset_b_i),
      .forget_i(1'b0),
      .phy_up_i(1'b1),
      .phy_kind_i(at_b_kind),
      .phy_data_i(at_b_data),
      .phy_pause_i('0),
      .phy_kind_o(b_kind),
      .phy_data_o(b_data),
      .in_valid_i(1'b0),
      .in_sop_i(1'b0),
      .in_eop_i(1'b0),
      .in_poison_i(1'b0),
      .in_vc_i('0),
      .in_data_i('0),
      .in_stop_o(),
      .out_valid_o(out_valid),
      .out_sop_o(out_sop),
      .out_eop_o(out_eop),
      .out_poison_o(out_poison),
      .out_again_o(out_again),
      .out_vc_o(out_vc),
      .out_data_o(out_data),
      .out_freed_i({freed_q, count_t'(0)}),
      .credits_o(),
      .freed_o(),
      .up_o(up_b),
      .refuse_o(),
      .crc_errors_o(),
      .replays_o(),
      .timeouts_o(),
      .in_doubt_o(),
      .restarts_o(),
      .ecc_o(),
      .*
  );

  velo_credit #(
      .Thresholds(8'd1)
  ) u_credit (
      .total_i(credits),
      .freed_i(freed_seen),
      .take_i (in_valid),
      .avail_o(avail),
      .ok_o   (ok),
      .*
  );


  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sent_q  <= '0;
      got_q <= '0;
      open_q <= 1'b0;
      held_q  <= '0;
      freed_q <= '0;
    end else begin
      if (in_valid) sent_q <= sent_q + 1'b1;
      if (out_valid && out_eop && !out_again) got_q <= place + 1'b1;
      if (out_valid) begin
        place_q <= place + 1'b1;
        right_q <= right;
        open_q <= !out_eop;
        copy_q <= copy;
      end
      // The switch gives credits back only for packets that were not cut off.
      held_q <= held_q + (out_valid && out_eop && !out_again ? copy : '0) -
          count_t'(free_i && held_q != '0);
      if (free_i && held_q != '0) freed_q <= freed_q + 1'b1;
    end
  end
  // The pattern of packet limits is as long as the count.
  always_comb assume (!in_valid || sent_q != '1);

  `VELO_ASSERT(InOrderOnce, !(out_valid && out_eop && !out_again) || right)
  `VELO_ASSERT(HeaderIsRight, !(out_valid && out_sop) || out_data == 64'(got_q))
  `VELO_ASSERT(NothingInvented,
               !(out_valid && (out_sop || (out_eop && !out_again))) || place < sent_q)
  `VELO_ASSERT(BeginningsKept, !out_valid || out_sop == !open_q)
  `VELO_ASSERT(CutOffIsPoisoned, !(out_valid && out_eop && out_again) || (out_poison && !out_sop))
  `VELO_ASSERT(ChannelKept, !out_valid || out_vc == 3'd1)
  `VELO_ASSERT(BufferNeverOverrun, held_q <= count_t'(2))
  `VELO_COVER(FirstArrives, out_valid)
  logic again_q, down_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      again_q <= 1'b0;
      down_q  <= 1'b0;
    end else begin
      again_q <= again_q || (out_valid && out_again);
      down_q  <= down_q || (got_q != '0 && !up_a);
    end
  end
  `VELO_COVER(CreditsRunOut, up_a && got_q != '0 && avail == '0)
  `VELO_COVER(CutOffComesAgain, again_q && out_valid && out_eop && !out_again)
  `VELO_COVER(GoesOnAfterALinkReset, down_q && out_valid && out_eop && !out_again)

endmodule
