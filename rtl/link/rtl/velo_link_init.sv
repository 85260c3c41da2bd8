// SPDX-License-Identifier: Apache-2.0
//
// Bring-up of a link: tells the other side what this one can do, learns the same, agrees or refuses.
//
// Both sides send CtlInit words. A side comes up when it has seen an acceptable CtlInit and one that
// says the same of the other side (`seen`), or, since that one stops sending them once it is up, any
// other word. Version, number of virtual channels, width and MTU have to be equal; credits are taken
// as offered, if they hold the longest packet. Anything else is refused, `refuse_o` says why, and
// goes on being looked at: a side set right comes up by itself.
//
// Down again: `link_reset_i`, no PHY, not enabled, or the other side begins anew (CtlInit without
// `seen`). Sequence numbers, the retransmission ring and credits outlive that; only `rst_ni` forgets
// them, and then both sides have to be reset: RefuseRestart, rather than losing or doubling packets.
// InitWords CtlInit words are sent at least, so that the other side notices.

`include "velo_assert.svh"

module velo_link_init
  import velo_link_pkg::*;
#(
    parameter ability_t Ability = '0,
    parameter int unsigned MinCredits = 1,
    parameter int unsigned InitWords = 32
) (
    input logic clk_i,
    input logic rst_ni,

    input logic enable_i,
    input logic link_reset_i,
    input logic phy_up_i,

    input logic  init_valid_i,
    input init_t init_i,
    input logic  other_word_i,  // a word that is sent only by a side that is up

    output logic up_o,
    output logic came_up_o,
    output refuse_e refuse_o,
    output count_t credits_o,  // what the other side's buffers hold; 0 before the first bring-up
    output logic [31:0] init_word_o
);

  localparam int unsigned CountBits = $clog2(InitWords + 1);

  logic down, seen_q, fresh_q, ready_q;
  logic [CountBits-1:0] sent_q;
  refuse_e verdict;
  logic restarted, agreed;
  count_t offered_q;

  assign down = !enable_i || link_reset_i || !phy_up_i;
  assign restarted = init_i.fresh != fresh_q;

  always_comb begin
    if (init_i.ability.version != Ability.version) verdict = RefuseVersion;
    else if (init_i.ability.width != Ability.width) verdict = RefuseWidth;
    else if (init_i.ability.last_vc != Ability.last_vc) verdict = RefuseVcs;
    else if (init_i.ability.mtu != Ability.mtu) verdict = RefuseMtu;
    else if (count_t'(init_i.ability.credits) < count_t'(MinCredits)) verdict = RefuseCredits;
    else if (restarted) verdict = RefuseRestart;
    else verdict = RefuseNone;
  end
  assign agreed = init_valid_i && verdict == RefuseNone;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      up_o      <= 1'b0;
      came_up_o <= 1'b0;
      seen_q    <= 1'b0;
      ready_q   <= 1'b0;
      fresh_q   <= 1'b1;
      sent_q    <= '0;
      refuse_o  <= RefuseNone;
      credits_o <= '0;
      offered_q <= '0;
    end else begin
      came_up_o <= 1'b0;
      if (down) begin
        up_o     <= 1'b0;
        seen_q   <= 1'b0;
        ready_q  <= 1'b0;
        sent_q   <= '0;
        refuse_o <= RefuseNone;
      end else if (up_o) begin
        if (other_word_i) fresh_q <= 1'b0;
        if (init_valid_i && !init_i.seen) begin
          up_o    <= 1'b0;
          seen_q  <= 1'b0;
          ready_q <= 1'b0;
          sent_q  <= '0;
        end
      end else begin
        if (sent_q != CountBits'(InitWords)) sent_q <= sent_q + 1'b1;
        if (init_valid_i) begin
          seen_q    <= agreed;
          ready_q   <= agreed && init_i.seen;
          refuse_o  <= verdict;
          offered_q <= count_t'(init_i.ability.credits);
        end else if (other_word_i && seen_q) begin
          ready_q <= 1'b1;
        end
        if (ready_q && sent_q == CountBits'(InitWords) && (agreed || !init_valid_i)) begin
          up_o      <= 1'b1;
          came_up_o <= 1'b1;
          credits_o <= offered_q;
        end
      end
    end
  end

  init_t word;
  ctl_crc_t crc;
  always_comb begin
    word = '{
        crc: crc,
        reserved: 1'b0,
        seen: seen_q,
        fresh: fresh_q,
        ability: Ability,
        ctl: CtlInit
    };
  end
  velo_link_ctl_crc u_crc (
      .bits_i({1'b0, seen_q, fresh_q, Ability, CtlInit}),
      .crc_o (crc)
  );
  assign init_word_o = word;

  logic unused;
  assign unused = &{1'b0, init_i.crc, init_i.reserved, init_i.ctl};

  `VELO_ASSERT(UpOnlyIfAgreed, !up_o || refuse_o == RefuseNone)

endmodule
