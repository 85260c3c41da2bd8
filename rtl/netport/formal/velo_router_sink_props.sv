// SPDX-License-Identifier: Apache-2.0
//
// What a dead link swallows: velo_router_sink with the switch's output that it rules, two links, of which the first
// one has packets. Before the output is what the switch's matching promises of it: a packet is granted while the output
// is neither stopped nor busy, by credits of one or two cycles before, and its first word comes two cycles later; then words
// with any gaps. Behind it, a receiver that gives credits back when it likes, and none while the link was never up.
//
//   * A link is dead only after it was down, and packets waited for it, for `cycles`, and then at most for twice as many
//     and two.
//   * A packet is swallowed only if the link was dead when it was granted or since.
//   * Packets in = out + swallowed; each is whole, in order, and either way to its end.
//   * What leaves had credits: the receiver is never overrun, and the output's count of credits is right.
//   * Who waits for a link that is down is served in time, with or without credits; and so is, once the link is up and has
//     credits, who waits for one that was dead.
//   * While nothing waits for a link that is down nothing changes here.
// The proof assumes: a packet has at most three words; a link that was never up stops packets (velo_link: `settled`).

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_router_sink_props
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned SettleCycles = 5
) (
    input logic       clk_i,
    input logic       rst_ni,
    input logic       enable_i,
    input logic [1:0] up_i,
    input logic       stop_i,
    input logic       want_i,  // a packet is there
    input logic       other_i, // and one for the other link
    input logic       older_i, // credits of two cycles before, rather than of one
    input logic       word_i,  // the next word of the packet that is leaving is there
    input logic       end_i,   // it is the last
    input logic       free_i   // the receiver gives a unit back
);

  localparam int unsigned Total = 4;
  typedef logic [3:0] num_t;

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q == rst_ni);

  logic [1:0] cycles_q;
  always_ff @(posedge clk_i) cycles_q <= cycles_q;
  always_comb assume (cycles_q != '0);

  logic [1:0] wanted, stop, sink, dead;
  assign wanted = {other_i, want_i};
  velo_router_sink #(
      .NumLinks    (2),
      .CycleBits   (2),
      .SettleCycles(SettleCycles)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .enable_i,
      .cycles_i(cycles_q),
      .up_i,
      .wanted_i(wanted),
      .stop_i  ({1'b1, stop_i}),
      .stop_o  (stop),
      .sink_o  (sink),
      .dead_o  (dead)
  );

  logic was_up_q, known;
  always_ff @(posedge clk_i) was_up_q <= rst_ni && (was_up_q || up_i[0]);
  assign known = was_up_q || up_i[0];
  always_comb assume (known || stop_i);

  // ----- before the output ------------------------------------------------------------------------

  logic [NumSizes-1:0] may_send;
  logic [1:0] may_q;
  logic grant, granted_q, first_q, busy_q, word, ends;
  num_t place_q, place;
  assign grant = want_i && !busy_q && !stop[0] && (older_i ? may_q[1] : may_q[0]);
  assign word  = first_q || (busy_q && !granted_q && place_q != '0 && word_i);
  assign place = first_q ? '0 : place_q;
  assign ends  = end_i || place == num_t'(2);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      may_q     <= '0;
      granted_q <= 1'b0;
      first_q   <= 1'b0;
      busy_q    <= 1'b0;
      place_q   <= '0;
    end else begin
      may_q     <= {may_q[0], may_send[SizeLongest]};
      granted_q <= grant;
      first_q   <= granted_q;
      busy_q    <= grant || (busy_q && !(word && ends));
      if (word) place_q <= ends ? '0 : place + 1'b1;
    end
  end

  // ----- the output, and the receiver behind it ---------------------------------------------------

  logic out_valid, out_sop, out_eop, out_poison, sunk;
  logic [127:0] out_data, data_q;
  count_t avail, held_q, freed_q;
  velo_switch_output #(
      .DataWidth(128),
      .NumPorts (1),
      .NumVcs   (1),
      .MtuBytes (64)
  ) u_output (
      .clk_i,
      .rst_ni,
      .to_i        (word),
      .sop_i       (first_q),
      .eop_i       (ends),
      .poison_i    (1'b0),
      .unit_i      (first_q),
      .vc_i        ('0),
      .over_i      (1'b0),
      .data_i      (data_q),
      .void_i      (1'b0),
      .mark_i      (1'b0),
      .sink_i      (sink[0]),
      .any_i       (sink[0] && !stop[0]),
      .sunk_o      (sunk),
      .out_valid_o (out_valid),
      .out_sop_o   (out_sop),
      .out_eop_o   (out_eop),
      .out_poison_o(out_poison),
      .out_vc_o    (),
      .out_data_o  (out_data),
      .credits_i   (known ? count_t'(Total) : '0),
      .freed_i     (freed_q),
      .avail_o     (avail),
      .long_i      ('0),
      .may_send_o  (may_send)
  );
  // A word's data come a cycle later than the rest of it: its place, beside the bit of the mark.
  always_ff @(posedge clk_i) data_q <= {116'b0, place, 8'b0};
  logic gets, returns;
  assign gets    = out_valid && out_sop;
  assign returns = free_i && held_q != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q  <= '0;
      freed_q <= '0;
    end else begin
      held_q  <= held_q + count_t'(gets) - count_t'(returns);
      freed_q <= freed_q + count_t'(returns);
    end
  end

  // ----- when -------------------------------------------------------------------------------------

  // Cycles in a row that a packet waited for the link, which was down, with the watchdog on.
  num_t down_q;
  logic [1:0] dead_q;
  always_ff @(posedge clk_i) begin
    down_q <= !rst_ni || up_i[0] || !want_i || !enable_i ? '0 : down_q + num_t'(down_q != '1);
    dead_q <= rst_ni ? {dead_q[0], dead[0]} : '0;
  end
  // A link that came up while it was dead, and went down while that was made good, has its time from then on.
  num_t settled_q;
  logic up_q, enable_was_q;
  always_ff @(posedge clk_i) begin
    up_q         <= rst_ni && up_i[0];
    enable_was_q <= enable_i;
    if (!rst_ni || up_i[0] || !want_i || !enable_i) settled_q <= '0;
    else if (u_dut.state_q[0] == 2'd3 && settled_q != '1) settled_q <= settled_q + 1'b1;
  end
  `VELO_ASSERT(NeverEarly, !dead[0] || dead_q[0] || down_q >= num_t'(cycles_q))
  `VELO_ASSERT(InTime, dead[0] || u_dut.state_q[0] == 2'd3 ||
               32'(down_q) <= 2 * 32'(cycles_q) + 2 + 32'(settled_q))
  `VELO_ASSERT(DeadOnlyWhileDown, !dead[0] || (!up_q && enable_was_q))

  `VELO_ASSERT(SwallowedOnlyIfDead, !(word && first_q && sink[0]) || dead[0] || dead_q != '0)
  logic [2:0] rests_q;
  logic [1:0] up_all_q;
  logic [3:0] state_q;
  always_ff @(posedge clk_i) begin
    rests_q <= !rst_ni || (~up_i & wanted) != '0 || up_i != up_all_q || enable_i != enable_was_q ?
        '0 : rests_q + 3'(rests_q != '1);
    up_all_q <= up_i;
    state_q  <= u_dut.state_q;
  end
  `VELO_ASSERT(RestsWhileNothingWaits,
               rests_q != '1 || (u_dut.state_q == state_q && u_dut.count_q == '0))

  // ----- what -------------------------------------------------------------------------------------

  num_t in_q, came_q, gone_q, at_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_q   <= '0;
      came_q <= '0;
      gone_q <= '0;
      at_q   <= '0;
    end else begin
      in_q   <= in_q + num_t'(word && ends);
      came_q <= came_q + num_t'(out_valid && out_eop);
      gone_q <= gone_q + num_t'(sunk);
      if (out_valid) at_q <= out_eop ? '0 : at_q + 1'b1;
    end
  end
  `VELO_ASSERT(InIsOutAndSwallowed,
               in_q == came_q + gone_q + num_t'(sunk) + num_t'(out_valid && out_eop))
  `VELO_ASSERT(WholeAndInOrder,
               !out_valid || (out_data[8+:4] == at_q && out_sop == (at_q == '0) && !out_poison))
  `VELO_ASSERT(SinkNeverOverrun, held_q <= count_t'(Total))
  // A unit that is returned is known two cycles late, one that is used at once.
  `VELO_ASSERT(NoCreditTwice, avail + held_q <= count_t'(Total))

  // ----- in time ----------------------------------------------------------------------------------

  num_t waits_q, waits_up_q;
  logic could;
  assign could = !older_i && avail == count_t'(Total) && known && !stop_i &&
      u_output.gen_credit[0].gen_exists.u_credit.used_q == freed_q;
  always_ff @(posedge clk_i) begin
    waits_q <= !rst_ni || grant || !want_i || busy_q || up_i[0] || !enable_i || older_i ? '0 :
        waits_q + num_t'(waits_q != '1);
    waits_up_q <= !rst_ni || grant || !want_i || busy_q || !up_i[0] || !could ? '0 :
        waits_up_q + num_t'(waits_up_q != '1);
  end
  `VELO_ASSERT(ServedWhileDown, 32'(waits_q) <= 2 * 32'(cycles_q) + SettleCycles + 5)
  `VELO_ASSERT(ServedWhenUp, 32'(waits_up_q) <= SettleCycles + 4)

  // The proof is not empty.
  logic swallowed_q;
  always_ff @(posedge clk_i) begin
    swallowed_q <= rst_ni && (swallowed_q || (sunk && held_q == count_t'(Total - 2)));
    if (rst_ni) begin
      cover (sunk && !was_up_q);
      cover (sunk && up_i[0]);
      cover (swallowed_q && out_valid && out_eop);
    end
  end

endmodule
