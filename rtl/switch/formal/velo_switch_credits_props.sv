// SPDX-License-Identifier: Apache-2.0
//
// Conservation of credits between two switches with a link between them: the sender's output, the receiver's count of
// freed units, and the link's report of it, all as they are. Between them, what the link's own proofs promise: each
// unit arrives once, at any time; a word with a report is lost or comes CableCycles later.
//
// In each cycle and for each channel: credits left at the sender + units that it has not counted yet + units under way +
// units in the receiver's buffer + units on their way into the count + units freed that the sender does not know of =
// the buffer's capacity. Each unit here is a packet.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_switch_credits_props
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned NumVcs = 2,
    parameter int unsigned Total = 5,
    parameter int unsigned CableCycles = 2
) (
    input logic clk_i,
    input logic rst_ni,
    input logic want_i,     // a packet would like to go
    input vc_t  want_vc_i,
    input logic arrive_i,   // one that is under way arrives
    input vc_t  arrive_vc_i,
    input logic free_i,     // a unit has been sent from the receiver's buffer
    input vc_t  free_vc_i,
    input logic [1:0] release_i,   // units, at the end of a packet that is coming in
    input vc_t  release_vc_i,
    input logic report_i,   // a word with a report is sent
    input logic keep_i      // and not lost
);

  typedef struct packed {
    logic    there;
    status_t status;
  } word_t;

  logic past_q, known_q, known_on_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q == rst_ni);

  // What a reset leaves as the counts of both sides (velo_switch_credits.sby).
  count_t [NumVcs-1:0] first_q;
  always_ff @(posedge clk_i) first_q <= first_q;

  // ----- Sender -----------------------------------------------------------------------------------

  // A packet takes two cycles at least. That it may go was decided three cycles before, from registers.
  logic take, took_q;
  logic [2:0][NumVcs-1:0] may_q;  // one, two, three cycles ago
  logic [NumVcs-1:0][NumSizes-1:0] may_send;
  count_t [NumVcs-1:0] avail, seen_q, seen1_q, seen2_q, freed;
  assign take = want_i && !took_q && may_q[2][want_vc_i[0]];

  velo_switch_output #(
      .DataWidth(128),
      .NumPorts (1),
      .NumVcs   (NumVcs),
      .MtuBytes (64)
  ) u_output (
      .to_i        (take),
      .sop_i       (1'b1),
      .eop_i       (1'b1),
      .poison_i    (1'b0),
      .unit_i      (1'b1),
      .vc_i        (want_vc_i),
      .over_i      (1'b0),
      .data_i      ('0),
      .void_i      (1'b0),
      .mark_i      (1'b0),
      .sink_i      (1'b0),
      .any_i       (1'b0),
      .sunk_o      (),
      .out_valid_o (),
      .out_sop_o   (),
      .out_eop_o   (),
      .out_poison_o(),
      .out_vc_o    (),
      .out_data_o  (),
      .credits_i   (count_t'(Total)),
      .freed_i     (seen_q),
      .avail_o     (avail),
      .long_i      ('0),
      .may_send_o  (may_send),
      .*
  );

  // ----- Receiver ---------------------------------------------------------------------------------

  logic free;
  logic [1:0] released;
  count_t [NumVcs-1:0] way_q, held_q;
  assign free = free_i && held_q[free_vc_i[0]] != '0;
  assign released = held_q[release_vc_i[0]] >= count_t'(release_i) +
      count_t'(free && free_vc_i == release_vc_i) ? release_i : '0;

  velo_switch_units #(
      .NumVcs  (NumVcs),
      .NumUnits(4)
  ) u_units (
      .take_i         (1'b0),
      .unit_o         (),
      .release_count_i(count_t'(released)),
      .release_vc_i   (release_vc_i),
      .free_i         (1'b0),
      .free_credit_i  (free),
      .free_unit_i    ('0),
      .free_vc_i      (free_vc_i),
      .freed_o        (freed),
      .*
  );

  status_t told;
  velo_link_status #(
      .NumVcs(NumVcs)
  ) u_status (
      .ack_i    ('0),
      .nak_i    (1'b0),
      .freed_i  (freed),
      .base_i   ('0),
      .came_up_i(1'b0),
      .sent_i   (report_i),
      .status_o (told),
      .*
  );

  // ----- Between them -----------------------------------------------------------------------------

  always_comb assume (want_vc_i < vc_t'(NumVcs) && arrive_vc_i < vc_t'(NumVcs));
  always_comb assume (free_vc_i < vc_t'(NumVcs) && release_vc_i < vc_t'(NumVcs));

  word_t [CableCycles-1:0] cable_q;
  word_t heard;
  assign heard = cable_q[CableCycles-1];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      took_q     <= 1'b0;
      may_q      <= '0;
      way_q      <= '0;
      held_q     <= '0;
      cable_q    <= '0;
      seen_q     <= first_q;
      known_q    <= 1'b0;
      known_on_q <= 1'b0;
    end else begin
      took_q     <= take;
      known_q    <= 1'b1;
      known_on_q <= known_q;
      cable_q    <= {cable_q[CableCycles-2:0], report_i && keep_i, told};
      for (int v = 0; v < int'(NumVcs); v++) begin
        may_q[0][v] <= may_send[v][SizeLongest];
        way_q[v] <= way_q[v] + count_t'(take && want_vc_i == vc_t'(v)) -
            count_t'(arrive_i && arrive_vc_i == vc_t'(v) && way_q[v] != '0);
        held_q[v] <= held_q[v] + count_t'(arrive_i && arrive_vc_i == vc_t'(v) && way_q[v] != '0) -
            count_t'(free && free_vc_i == vc_t'(v)) -
            (release_vc_i == vc_t'(v) ? count_t'(released) : '0);
        // As velo_link does, in its first session.
        if (heard.there && heard.status.vc == vc_t'(v)) seen_q[v] <= heard.status.freed;
      end
      may_q[2:1] <= may_q[1:0];
    end
    seen1_q <= rst_ni ? seen_q : first_q;
    seen2_q <= rst_ni ? seen1_q : first_q;
  end

  // ----- The sum ----------------------------------------------------------------------------------

  for (genvar v = 0; v < int'(NumVcs); v++) begin : gen_vc
    count_t uncounted, back, unseen, sum;
    assign uncounted = count_t'(u_output.unit_q && u_output.out_vc_o == vc_t'(v));
    assign back = count_t'(u_units.back_q[v]) +
        (u_units.release_vc_q == vc_t'(v) ? u_units.release_q : '0);
    assign unseen = freed[v] - seen2_q[v];
    // A unit is under way from the output's register on.
    assign sum = avail[v] + way_q[v] + held_q[v] + back + unseen;
    `VELO_ASSERT(Conserved, !known_on_q || sum - uncounted == count_t'(Total))
    `VELO_ASSERT(NoneBeforeItIsKnown, known_on_q ||
                 (avail[v] == '0 && way_q[v] == '0 && held_q[v] == '0))
    `VELO_ASSERT(NeverMoreThanThereIs, avail[v] <= count_t'(Total) && way_q[v] <= count_t'(Total) &&
                 held_q[v] <= count_t'(Total) && back <= count_t'(Total) &&
                 unseen <= count_t'(Total))
    `VELO_ASSERT(BufferNeverOverrun, way_q[v] + held_q[v] + back <= count_t'(Total))
    // Reports come in order, and none from the future.
    `VELO_ASSERT(ReportsInOrder, freed[v] - seen_q[v] <= freed[v] - seen1_q[v] &&
                 freed[v] - seen1_q[v] <= unseen)
    for (genvar i = 0; i < int'(CableCycles); i++) begin : gen_word
      logic here;
      assign here = cable_q[i].there && cable_q[i].status.vc == vc_t'(v);
      `VELO_ASSERT(NewerThanSeen, !here ||
                   count_t'(freed[v] - cable_q[i].status.freed) <= count_t'(freed[v] - seen_q[v]))
      for (genvar j = i + 1; j < int'(CableCycles); j++) begin : gen_older
        `VELO_ASSERT(InOrder, !(here && cable_q[j].there && cable_q[j].status.vc == vc_t'(v)) ||
                     count_t'(freed[v] - cable_q[i].status.freed) <=
                     count_t'(freed[v] - cable_q[j].status.freed))
      end
    end
    `VELO_COVER(AllInTheBuffer, held_q[v] == count_t'(Total - 2))
    `VELO_COVER(CountWraps, first_q[v] == '1 && seen_q[v] == '0 && avail[v] == count_t'(Total))
  end
  `VELO_ASSERT(PacketsOfAWord, !u_output.open_q && u_output.unit_q == took_q &&
               (!u_output.out_valid_o || (u_output.out_sop_o && u_output.out_eop_o)))
  `VELO_ASSERT(ChannelExists, u_status.vc_q < vc_t'(NumVcs))

endmodule
