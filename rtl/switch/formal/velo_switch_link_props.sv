// SPDX-License-Identifier: Apache-2.0
//
// Exactly once and in order over a link and the switch behind it, composed: what velo_link_retry proves of a link's
// output (velo_link_promise) is all that is taken for granted at the switch's input; copies of packets come that
// were cut off, as many as one likes. Each packet that was sent good leaves the switch's output good once, whole and in
// order; and when all is quiet all have left and all credits are back. Input and output are the switch's, with any
// arbiters between them.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_switch_link_props
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
(
    input logic         clk_i,
    input logic         rst_ni,
    input logic         valid_i,
    input logic         eop_i,
    input logic         poison_i,
    input logic         again_i,
    input logic [127:0] data_i,
    input logic         grant_i,
    input logic         free_i
);

  localparam int unsigned BufferUnits = 4;
  localparam int unsigned Need = 3;
  localparam int unsigned OutCredits = 4;
  localparam int unsigned NodePort = 1;
  typedef logic [3:0] num_t;

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q == rst_ni);

  // Which words end packets, and which of these are poisoned: any pattern, held. At most two words each.
  logic [15:0] ends_q, poison_q;
  always_ff @(posedge clk_i) begin
    ends_q   <= ends_q;
    poison_q <= poison_q;
  end
  for (genvar i = 0; i < 15; i++) begin : gen_short
    always_comb assume (ends_q[i] || ends_q[i+1]);
  end

  // ----- From the link ----------------------------------------------------------------------------

  num_t place, came;
  logic open_q, sop, whole, repeats;
  assign sop = !open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (valid_i) open_q <= !eop_i;
  end
  velo_link_promise #(
      .DataWidth(128),
      .NumBits  (4)
  ) u_link (
      .sop_i     (sop),
      .vc_i      ('0),
      // A route word to the node's port, or another word.
      .word_i    ({116'b0, place, sop ? HopLocal : 4'd0, 3'b0, sop}),
      .ends_i    (ends_q[place]),
      .poisoned_i(poison_q[place]),
      .sent_vc_i ('0),
      .lost_i    (1'b0),
      .place_o   (place),
      .came_o    (came),
      .whole_o   (whole),
      .repeats_o (repeats),
      .*
  );
  always_comb assume (!valid_i || place != '1);

  // Its sender keeps to its credits. A copy that comes again is for the same ones.
  count_t [2:0] in_freed;
  count_t used_q, out_freed_q, out_held_q;
  logic fresh;
  assign fresh = valid_i && sop && !repeats;
  always_comb assume (!fresh || count_t'(BufferUnits) + in_freed[0] - used_q >= count_t'(Need));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) used_q <= '0;
    else if (fresh) used_q <= used_q + 1'b1;
  end

  // ----- The switch -------------------------------------------------------------------------------

  // The arbiters are any that grant what is asked for.
  logic [3:0] request, going_to, to;
  logic grant, from_sop, from_eop, from_unit, from_over, from_poison, from_void, dropped;
  logic out_valid, out_sop, out_eop, out_poison;
  vc_t from_vc, out_vc;
  logic [127:0] from_data, out_data;
  logic [2:0][NumSizes-1:0] may_send;
  assign grant = grant_i && request[NodePort] && !going_to[NodePort];
  velo_switch_input #(
      .DataWidth(128),
      .NumLinks (1),
      .NumVcs   (3),
      .MtuBytes (64),
      .NumUnits (16)
  ) u_input (
      .table_we_i   (1'b0),
      .table_node_i ('0),
      .table_hop_i  ('0),
      .table_group_i('0),
      .in_valid_i   (valid_i),
      .in_sop_i     (sop),
      .in_eop_i     (eop_i),
      .in_poison_i  (poison_i),
      .in_again_i   (again_i),
      .in_vc_i      ('0),
      .in_data_i    (data_i),
      .freed_o      (in_freed),
      .may_send_i   ({{2{12'b0}}, may_send, 12'b0}),
      .long_o       (),
      .request_o    (request),
      .hold_i       ('0),
      .going_to_o   (going_to),
      .waits_o      (),
      .more_o       (),
      .grant_i      (4'(grant) << NodePort),
      .start_i      (grant),
      .out_to_o     (to),
      .out_sop_o    (from_sop),
      .out_eop_o    (from_eop),
      .out_unit_o   (from_unit),
      .out_over_o   (from_over),
      .out_poison_o (from_poison),
      .out_vc_o     (from_vc),
      .out_data_o   (from_data),
      .out_void_o   (from_void),
      .dropped_o    (dropped),
      .ecc_o        (),
      .*
  );
  velo_switch_output #(
      .DataWidth(128),
      .NumPorts (1),
      .NumVcs   (3),
      .MtuBytes (64)
  ) u_output (
      .to_i        (to[NodePort]),
      .sop_i       (from_sop),
      .eop_i       (from_eop),
      .unit_i      (from_unit),
      .over_i      (from_over),
      .poison_i    (from_poison),
      .vc_i        (from_vc),
      .data_i      (from_data),
      .void_i      (from_void),
      .mark_i      (1'b0),
      .sink_i      (1'b0),
      .any_i       (1'b0),
      .sunk_o      (),
      .out_valid_o (out_valid),
      .out_sop_o   (out_sop),
      .out_eop_o   (out_eop),
      .out_poison_o(out_poison),
      .out_vc_o    (out_vc),
      .out_data_o  (out_data),
      .credits_i   (count_t'(OutCredits)),
      .freed_i     ({16'b0, out_freed_q}),
      .avail_o     (),
      .long_i      ('0),
      .may_send_o  (may_send),
      .*
  );

  // ----- What leaves by the node's port -----------------------------------------------------------

  num_t number, first_q, first, next_q, at_q, at;
  logic right_q, right, good, between, left;
  assign number = out_sop ? out_data[4+:4] : out_data[8+:4];
  assign first = out_sop ? number : first_q;
  assign at = out_sop ? number : at_q + 1'b1;
  assign right = (out_sop || right_q) && number == at && out_eop == ends_q[at];
  assign good = out_valid && out_eop && !out_poison;
  // Are there good packets from the next one on, up to here, up to what came?
  always_comb begin
    between = 1'b0;
    left = 1'b0;
    for (int k = 0; k < 16; k++) begin
      between |= num_t'(k) >= next_q && num_t'(k) < first && ends_q[k] && !poison_q[k];
      left |= num_t'(k) >= next_q && num_t'(k) < came && ends_q[k] && !poison_q[k];
    end
  end
  logic [3:0] quiet_q, since_q;  // cycles since a word came or could not go, and since one left
  logic all_back, scarce;
  assign all_back = out_held_q == '0;
  assign scarce = out_held_q > count_t'(OutCredits - Need);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_q      <= '0;
      out_held_q  <= '0;
      out_freed_q <= '0;
      quiet_q     <= '0;
      since_q     <= '0;
    end else begin
      if (out_valid) begin
        first_q <= first;
        at_q    <= at;
        right_q <= right;
      end
      if (good) next_q <= at + 1'b1;
      out_held_q <= out_held_q + count_t'(out_valid && out_sop) -
          count_t'(free_i && !all_back);
      if (free_i && !all_back) out_freed_q <= out_freed_q + 1'b1;
      since_q <= out_valid ? '0 : since_q + 4'(since_q != '1);
      if (valid_i || repeats || open_q || scarce || !grant_i) quiet_q <= '0;
      else quiet_q <= quiet_q + 4'(quiet_q != '1);
    end
  end

  `VELO_ASSERT(GoodIsRight, !good || right)
  `VELO_ASSERT(OnceAndInOrder, !good || (first >= next_q && !between && !poison_q[at]))
  `VELO_ASSERT(NothingInvented, !good || at < came)
  `VELO_ASSERT(NowhereElse, (to & 4'b1101) == '0 && !dropped)
  `VELO_ASSERT(SinkNeverOverrun, out_held_q <= count_t'(OutCredits))
  `VELO_ASSERT(InputCredits, count_t'(used_q - in_freed[0]) <= count_t'(BufferUnits))
  `VELO_ASSERT(AllHaveLeft, quiet_q < 4'd7 || since_q < 4'd7 || !left)
  `VELO_ASSERT(CreditsAreBack, quiet_q < 4'd8 || since_q < 4'd4 || used_q == in_freed[0])

  // The packet of the first copy that was cut off; whether a copy has left.
  logic cut_q, left_q;
  num_t cut_number_q;
  logic comes;
  assign comes = good && cut_q && first == cut_number_q;
  always_ff @(posedge clk_i) begin
    cut_q  <= rst_ni && (cut_q || repeats);
    left_q <= rst_ni && (left_q || (out_valid && out_eop && out_poison && !poison_q[first]));
    if (!cut_q) cut_number_q <= came;
  end
  `VELO_COVER(ComesAfterACopy, comes && left_q)
  `VELO_COVER(TakesItsPlace, comes && !left_q)
  `VELO_COVER(PoisonedLeaves, out_valid && out_eop && out_poison && !cut_q)

endmodule
