// SPDX-License-Identifier: Apache-2.0
//
// Bring-up of a link: tells the other side what this one can do, learns the same, agrees or refuses.
//
// Both sides send CtlInit words. A side comes up when it has seen an acceptable CtlInit and one that
// says the same of the other side (`seen`), or, since that one stops sending them once it is up, any
// other word. Version, number of virtual channels, width and MTU have to be equal; credits are taken
// as offered, if they hold the longest packet and, while a session goes on, no fewer than before. Anything else is
// refused, `refuse_o` says why, and goes on being looked at: a side set right comes up by itself.
//
// Down again: `link_reset_i`, no PHY, not enabled, or the other side begins anew (CtlInit without
// `seen`). In the last case this side has heard the other one and says so from its first CtlInit on: otherwise
// two sides could take each other down for ever. The session, which is sequence numbers, the retransmission ring and credits, outlives that.
// InitWords CtlInit words are sent at least, so that the other side notices.
//
// A side that was reset (`rst_ni`, or `forget_i`) has no session. The other one, if it was up in the old
// session, hears so, ends that one (`anew_o`, one pulse, while the link is down) and begins a new one; the
// side without a session joins only one in which the other side has not been up. Both then count from the start.
//
// The other side of a new session may be another node, with smaller buffers than the one before. What waits to be
// sent has the credits of the old ones and could overrun them. Before this side comes up with fewer credits it
// therefore lets all that go nowhere (`drain_o`, while `unsent_i`) and gives it up (`drop_o`). That takes a while, so
// what it has heard from the other side may be of before a reset: it goes down once and listens anew.
//
//   this side \ it hears    None                  New        Used
//   None                    joins: New            joins: New waits (RefuseRestart)
//   New                     agrees                agrees     agrees: the other one came up first
//   Used                    ends it: anew, New    agrees     agrees: the old session goes on
//
// Words from before a reset may still be on the cable, and what they cause at the other side comes back
// later. A side that was reset therefore hears nothing for QuietCycles: a round trip, InitWords, and the
// ports' own few cycles. By then the other side has no more to hear from before the reset, and what it
// says is so. No word has to carry a name of its session, which a side that forgets could not choose anyway.

`include "velo_assert.svh"

module velo_link_init
  import velo_link_pkg::*;
#(
    parameter ability_t Ability = '0,
    parameter int unsigned MinCredits = 1,
    parameter int unsigned InitWords = 32,
    parameter int unsigned QuietCycles = 256
) (
    input logic clk_i,
    input logic rst_ni,

    input logic enable_i,
    input logic link_reset_i,
    input logic forget_i,      // the link goes down, its session is over
    input logic phy_up_i,

    input logic  init_valid_i,
    input init_t init_i,
    input logic  other_word_i,  // a word that is sent only by a side that is up
    input logic  unsent_i,      // something is left to send

    output logic up_o,
    output logic came_up_o,
    output logic anew_o,  // pulse, down: what was under way in the old session is in doubt
    output logic fresh_o,  // this side has not been up in its session
    output logic drain_o,  // down: what waits to be sent goes nowhere
    output logic drop_o,  // pulse, down: it has gone
    output refuse_e refuse_o,
    output count_t credits_o,  // what the other side's buffers hold; 0 before the first bring-up
    output logic [31:0] init_word_o
);

  localparam int unsigned CountBits = $clog2(InitWords + 1);
  localparam int unsigned QuietBits = $clog2(QuietCycles + 1);

  logic down, quiet, seen_q, ready_q;
  logic [CountBits-1:0] sent_q;
  logic [QuietBits-1:0] quiet_q;
  refuse_e verdict;
  logic agreed, ends_session, fewer, fewer_q, comes_up;
  session_e session_q;
  count_t   offered_q;

  assign quiet = quiet_q != QuietBits'(QuietCycles);
  assign down  = !enable_i || link_reset_i || forget_i || !phy_up_i || quiet || drop_o;

  always_comb begin
    if (init_i.ability.version != Ability.version) verdict = RefuseVersion;
    else if (init_i.ability.width != Ability.width) verdict = RefuseWidth;
    else if (init_i.ability.last_vc != Ability.last_vc) verdict = RefuseVcs;
    else if (init_i.ability.mtu != Ability.mtu) verdict = RefuseMtu;
    else if (count_t'(init_i.ability.credits) < count_t'(MinCredits) ||
             (fewer && session_q == SessionUsed && !ends_session))
      verdict = RefuseCredits;
    else if (session_q == SessionNone && !(init_i.session inside {SessionNone, SessionNew}))
      verdict = RefuseRestart;
    else verdict = RefuseNone;
  end
  assign agreed = init_valid_i && verdict == RefuseNone;
  assign ends_session = session_q == SessionUsed && init_i.session == SessionNone;
  assign fewer = count_t'(init_i.ability.credits) < credits_o;
  assign comes_up = ready_q && sent_q == CountBits'(InitWords) && !drain_o &&
      (!init_valid_i || (agreed && init_i.seen));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      up_o      <= 1'b0;
      came_up_o <= 1'b0;
      anew_o    <= 1'b0;
      seen_q    <= 1'b0;
      ready_q   <= 1'b0;
      session_q <= SessionNone;
      quiet_q   <= '0;
      sent_q    <= '0;
      refuse_o  <= RefuseNone;
      credits_o <= '0;
      offered_q <= '0;
      fewer_q   <= 1'b0;
      drain_o   <= 1'b0;
      drop_o    <= 1'b0;
    end else begin
      came_up_o <= 1'b0;
      anew_o    <= 1'b0;
      drop_o    <= 1'b0;
      if (forget_i) quiet_q <= '0;
      else if (quiet) quiet_q <= quiet_q + 1'b1;
      if (down) begin
        up_o     <= 1'b0;
        seen_q   <= 1'b0;
        ready_q  <= 1'b0;
        sent_q   <= '0;
        refuse_o <= RefuseNone;
        if (forget_i && !up_o) begin
          session_q <= SessionNone;
          anew_o    <= session_q == SessionUsed;
        end
      end else if (up_o) begin
        if (init_valid_i && !init_i.seen) begin
          up_o    <= 1'b0;
          seen_q  <= agreed;  // otherwise it would take down the other side in turn
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
          fewer_q   <= fewer;
        end else if (other_word_i && seen_q) begin
          ready_q <= 1'b1;
        end
        if (agreed && session_q == SessionNone) session_q <= SessionNew;
        if (agreed && ends_session) begin
          session_q <= SessionNew;
          anew_o    <= 1'b1;
          sent_q    <= '0;  // both halves of the port get their time to begin anew
        end
        if (comes_up && fewer_q) begin
          drain_o <= 1'b1;
        end else if (comes_up) begin
          up_o      <= 1'b1;
          came_up_o <= 1'b1;
          session_q <= SessionUsed;
          credits_o <= offered_q;
        end
      end
      // Whatever happens to the link meanwhile: half a frame that goes nowhere would leave its other half.
      if (drain_o && !unsent_i) begin
        drain_o   <= 1'b0;
        drop_o    <= 1'b1;
        credits_o <= offered_q;
      end
    end
  end

  assign fresh_o = session_q != SessionUsed;

  init_t word;
  ctl_crc_t crc;
  always_comb begin
    word = '{crc: crc, seen: seen_q, session: session_q, ability: Ability, ctl: CtlInit};
  end
  velo_link_ctl_crc u_crc (
      .bits_i({seen_q, session_q, Ability, CtlInit}),
      .crc_o (crc)
  );
  assign init_word_o = word;

  logic unused;
  assign unused = &{1'b0, init_i.crc, init_i.ctl};

  `VELO_ASSERT(UpOnlyIfAgreed, !up_o || refuse_o == RefuseNone)
  `VELO_ASSERT(UpIsUsed, !up_o || !fresh_o)
  `VELO_ASSERT(AnewWhileDown, !anew_o || (!up_o && fresh_o))
  `VELO_ASSERT(DrainsWhileFresh, !(drain_o || drop_o) || (!up_o && fresh_o))

endmodule
