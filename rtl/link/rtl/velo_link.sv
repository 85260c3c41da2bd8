// SPDX-License-Identifier: Apache-2.0
//
// Link port: carries packets of several virtual channels over a cable, whatever bits fall over on the
// way, exactly once and in order; and the credits of those channels back.
//
// PHY side: one word of DataWidth bits and a kind a cycle, both ways, nothing of a serializer. A PHY
// reports a word it could not decode as any wrong word. `phy_up_i` low: nothing can be received.
// Switch side, `in_*`: see velo_link_tx. `out_*`: see velo_link_rx; `out_freed_i` counts the units
// that the switch has freed of what it got from here. `credits_o` is the capacity of the buffers on
// the other side and `freed_o` the units freed there: what a velo_credit counter needs. In a new session no
// packet begins before the other side has said of each channel how much of its buffer is still in use. The buffer may
// be smaller than before; then all that waited here is given up, since it was sent on the credits of the larger one.
//
// Either side may be reset alone, at any time: see velo_link_init for how the two begin anew. The side that was
// not reset gives up packets that the other one may or may not have had (`in_doubt_o` counts them) and
// sends all others; `restarts_o` counts such beginnings, for what was in the other side's buffers is lost,
// too. `forget_i` does the same by this side's own will: when a cable is moved to another node.
//
// Errors, all by status ports and counters (modulo 256, for software to take differences of):
// `refuse_o` says why the link does not come up; CRC errors, retransmissions, timeouts.
// Source: case-for-fpga, sections 2 and 3.

`include "velo_assert.svh"

module velo_link
  import velo_link_pkg::*;
  import velo_secded_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned BufferUnits = 30,  // offered: units of a channel's buffer at out_*
    parameter int unsigned MinCredits = 20,  // wanted: the longest packet, and slack
    parameter int unsigned FrameWords = 136 * 32 / DataWidth,  // of the longest packet, at least
    parameter int unsigned RingWords = 512,
    parameter int unsigned SeqBits = 6,
    parameter int unsigned StopMargin = 4,
    parameter int unsigned TimeoutCycles = 1023,
    parameter int unsigned InitWords = 32,
    parameter int unsigned UnitWords = 8,
    parameter int unsigned QuietCycles = 256,  // see velo_link_init
    parameter bit Ecc = 1'b0  // check bits in the ring, see velo_link_ring
) (
    input logic clk_i,
    input logic rst_ni,

    input logic enable_i,  // 0: the link is down
    input logic link_reset_i,  // the link goes down, and comes up again in the same session
    input logic forget_i,  // the link goes down and begins a new session, as after a reset

    // To and from the PHY, a word and its kind in each cycle.
    input  logic                  phy_up_i,     // words can be received; else the link is down
    input  kind_e                 phy_kind_i,   // word that came: its kind
    input  logic  [DataWidth-1:0] phy_data_i,   // word that came
    input  logic                  phy_pause_i,  // the PHY has no room: idle words, two cycles later
    output kind_e                 phy_kind_o,   // word to send: its kind
    output logic  [DataWidth-1:0] phy_data_o,   // word to send

    // Packets from the switch, no ready: `in_stop_o` keeps one from its beginning, see velo_link_tx.
    input  logic                 in_valid_i,   // there is a word
    input  logic                 in_sop_i,     // it is its packet's first
    input  logic                 in_eop_i,     // it is the last
    input  logic                 in_poison_i,  // with the last: not to be acted upon
    input  vc_t                  in_vc_i,      // channel, from first to last word
    input  logic [DataWidth-1:0] in_data_i,    // the word
    output logic                 in_stop_o,    // begin no packet, StopMargin cycles later at most

    // Packets for the switch, no ready: the other side keeps its credits, see velo_link_rx.
    output logic                 out_valid_o,   // there is a word
    output logic                 out_sop_o,     // it is its packet's first
    output logic                 out_eop_o,     // it is the last
    output logic                 out_poison_o,  // with the last: not to be acted upon
    output logic                 out_again_o,   // with the last: cut off, comes once more
    output vc_t                  out_vc_o,      // channel, on every word
    output logic [DataWidth-1:0] out_data_o,    // the word

    // Credits in units of UnitWords words, by channel, counted since reset, modulo their width.
    input  count_t [NumVcs-1:0] out_freed_i,  // freed here of what came by out_*
    output count_t              credits_o,    // capacity of the other side's buffers
    output count_t [NumVcs-1:0] freed_o,      // freed there of what went by in_*

    // State, for registers; the counters are modulo 256.
    output logic up_o,  // packets can pass
    output refuse_e refuse_o,  // why it does not come up
    output logic [7:0] crc_errors_o,  // words and frames that came in wrong
    output logic [7:0] replays_o,  // retransmissions
    output logic [7:0] timeouts_o,  // of these, for want of an acknowledgement
    output logic [7:0] in_doubt_o,  // packets given up; the other side of then may have had them
    output logic [7:0] restarts_o,  // sessions that ended
    output ecc_t ecc_o  // of the ring
);

  localparam int unsigned Version = 4;  // of the protocol on the wire, modulo 4

  localparam ability_t Ability = '{
      version: 2'(Version),
      width: 2'(DataWidth / 64),
      last_vc: vc_t'(NumVcs - 1),
      mtu: 2'($clog2(MtuBytes / 64)),
      credits: (CountWidth - 1)'(BufferUnits)
  };

  logic up, came_up, anew, fresh, drain, unsent, drop;
  logic ack_valid, freed_valid, idle, init_valid, status_sent, nak;
  logic acked, accepted, error, replay, timeout;
  status_t heard, told;
  init_t init;
  logic [31:0] init_word;
  logic [SeqBits-1:0] expected, ack_base, in_doubt;
  logic sent_start, sent_word, sent_last, sent_first;
  vc_t sent_vc;
  count_t [NumVcs-1:0] sent_base, got_base;  // units of older sessions

  velo_link_init #(
      .Ability(Ability),
      .MinCredits(MinCredits),
      .InitWords(InitWords),
      .QuietCycles(QuietCycles)
  ) u_init (
      .clk_i,
      .rst_ni,
      .init_valid_i(init_valid),
      .init_i      (init),
      .other_word_i(idle),
      .unsent_i    (unsent),
      .up_o        (up),
      .came_up_o   (came_up),
      .anew_o      (anew),
      .fresh_o     (fresh),
      .drain_o     (drain),
      .drop_o      (drop),
      .init_word_o (init_word),
      .enable_i,
      .link_reset_i,
      .forget_i,
      .phy_up_i,
      .refuse_o,
      .credits_o
  );

  velo_link_rx #(
      .DataWidth (DataWidth),
      .FrameWords(FrameWords),
      .SeqBits   (SeqBits)
  ) u_rx (
      .clk_i,
      .rst_ni,
      .up_i         (up),
      .came_up_i    (came_up),
      .anew_i       (anew),
      .fresh_i      (fresh),
      .ack_base_i   (seq_t'(ack_base)),
      .ack_valid_o  (ack_valid),
      .freed_valid_o(freed_valid),
      .status_o     (heard),
      .idle_o       (idle),
      .init_valid_o (init_valid),
      .init_o       (init),
      .expected_o   (expected),
      .nak_o        (nak),
      .accepted_o   (accepted),
      .error_o      (error),
      .phy_kind_i,
      .phy_data_i,
      .out_valid_o,
      .out_sop_o,
      .out_eop_o,
      .out_poison_o,
      .out_again_o,
      .out_vc_o,
      .out_data_o
  );

  // A credit counter, and the arbiters that look at it, know of `freed_o` some cycles later.
  logic [NumVcs-1:0] told_q;
  logic [3:0] settled_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      told_q    <= '0;
      settled_q <= '0;
    end else if (fresh) begin
      told_q    <= '0;
      settled_q <= '0;
    end else begin
      for (int v = 0; v < int'(NumVcs); v++) begin
        if (freed_valid && heard.vc == vc_t'(v)) told_q[v] <= 1'b1;
      end
      settled_q <= {settled_q[2:0], &told_q};
    end
  end

  velo_link_units #(
      .NumVcs(NumVcs),
      .UnitWords(UnitWords)
  ) u_got (
      .clk_i,
      .rst_ni,
      .word_i (out_valid_o),
      .end_i  (out_eop_o),
      .count_i(!out_again_o),
      .vc_i   (out_vc_o),
      .clear_i(1'b0),
      .hold_i (fresh),
      .base_o (got_base)
  );

  velo_link_units #(
      .NumVcs(NumVcs),
      .UnitWords(UnitWords)
  ) u_sent (
      .clk_i,
      .rst_ni,
      .word_i (sent_word),
      .end_i  (sent_last),
      .count_i(sent_first),
      .vc_i   (sent_vc),
      .clear_i(sent_start),
      .hold_i (fresh),
      .base_o (sent_base)
  );

  velo_link_status #(
      .NumVcs(NumVcs)
  ) u_status (
      .clk_i,
      .rst_ni,
      .ack_i   (seq_t'(expected)),
      .nak_i   (nak),
      .freed_i (out_freed_i),
      .base_i  (got_base),
      .came_up_i(came_up),
      .sent_i  (status_sent),
      .status_o(told)
  );

  velo_link_tx #(
      .DataWidth    (DataWidth),
      .FrameWords   (FrameWords),
      .RingWords    (RingWords),
      .SeqBits      (SeqBits),
      .StopMargin   (StopMargin),
      .TimeoutCycles(TimeoutCycles),
      .Ecc          (Ecc)
  ) u_tx (
      .clk_i,
      .rst_ni,
      .up_i         (up),
      .came_up_i    (came_up),
      .anew_i       (anew || drop),
      .drain_i      (drain),
      .unsent_o     (unsent),
      .base_o       (ack_base),
      .in_doubt_o   (in_doubt),
      .init_word_i  (init_word),
      .ack_valid_i  (ack_valid),
      .ack_i        (heard.ack[SeqBits-1:0]),
      .nak_i        (heard.nak),
      .status_i     (told),
      .status_sent_o(status_sent),
      .sent_start_o (sent_start),
      .sent_word_o  (sent_word),
      .sent_last_o  (sent_last),
      .sent_first_o (sent_first),
      .sent_vc_o    (sent_vc),
      .acked_o      (acked),
      .replay_o     (replay),
      .timeout_o    (timeout),
      .ecc_o        (ecc_o),
      .in_valid_i,
      .in_sop_i,
      .in_eop_i,
      .in_poison_i,
      .in_vc_i,
      .in_data_i,
      .in_hold_i    (!settled_q[3]),
      .in_stop_o,
      .phy_pause_i,
      .phy_kind_o,
      .phy_data_o
  );

  assign up_o = up;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      freed_o      <= '0;
      crc_errors_o <= '0;
      replays_o    <= '0;
      timeouts_o   <= '0;
      in_doubt_o   <= '0;
      restarts_o   <= '0;
    end else begin
      for (int v = 0; v < int'(NumVcs); v++) begin
        // `sent_base` knows of a new session a cycle late.
        if (fresh) freed_o[v] <= anew ? freed_o[v] : sent_base[v];
        else if (freed_valid && heard.vc == vc_t'(v)) freed_o[v] <= sent_base[v] + heard.freed;
      end
      if (anew || drop) in_doubt_o <= in_doubt_o + 8'(in_doubt);
      if (anew) restarts_o <= restarts_o + 1'b1;
      if (error) crc_errors_o <= crc_errors_o + 1'b1;
      if (replay) replays_o <= replays_o + 1'b1;
      if (timeout) timeouts_o <= timeouts_o + 1'b1;
    end
  end

  logic unused;
  assign unused = &{1'b0, acked, accepted, heard.echo, heard.ack};

  // What is given up for smaller buffers is all there is: none of it can overrun them.
  `VELO_ASSERT(DropsAll, !drop || !unsent)
  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(VcsFitField, NumVcs >= 1 && NumVcs < 2 ** VcWidth)
  `VELO_ASSERT_INIT(MtuSupported, MtuBytes inside {64, 128, 256, 512})
  `VELO_ASSERT_INIT(CreditsFitField,
                    BufferUnits < 2 ** (CountWidth - 1) && MinCredits <= BufferUnits)
  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {out_valid_o, in_stop_o, up_o, phy_kind_o, refuse_o})

endmodule
