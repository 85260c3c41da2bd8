// SPDX-License-Identifier: Apache-2.0
//
// The sender of one board and the judge of another, with a network of whole packets between them that delays and loses
// any of them, both ways, for any time. It keeps their order, as InfiniBand does. What goes in comes out: each packet
// once, in order and whole.
//
// Packets are coloured: any number of 0, then one 1, then one 2, then any number of 0. Neither module looks at colours
// (they are in bits of the lines that nothing reads), so what is shown of the two coloured ones holds of any two that
// follow each other, and thereby of all: 1 comes out at most once, and 2 at most once and only after 1.
//
// One packet is being sent, one is on its way, one acknowledgement is chosen, one is on its way; each for any time. The
// receiver has room or not, as it likes. The proof is by induction, with lemmas below. With Others, some packets are for a peer that never answers, and is given up.
// With Quiet, nothing is lost or late from QuietFrom on, and by Deadline all has arrived.
// Small parameters: packets of two lines, four numbers, a ring of two packets.

`include "velo_assert.svh"

module dimmnet_swif_retry_props
  import dimmnet_pkg::*;
  import dimmnet_swif_pkg::*;
#(
    parameter bit Others = 1'b0,
    parameter bit Quiet = 1'b0,
    parameter int unsigned QuietFrom = 12,
    parameter int unsigned Deadline = 60,
    parameter int unsigned RetryLimit = Quiet ? 7 : 1
) (
    input logic clk_i,
    input logic rst_ni,
    input logic want_i,
    input logic other_i,
    input logic mark_i,
    input logic ready_i,
    input logic take_i,
    input logic lose_i,
    input logic deliver_i,
    input logic fits_i,
    input logic ack_ready_i,
    input logic ack_lose_i,
    input logic ack_deliver_i
);

  localparam int unsigned PsnBits = 2;
  typedef logic [PsnBits-1:0] psn_t;
  typedef logic [1:0] colour_t;

  logic [6:0] cycle_q;
  initial cycle_q = '0;
  always_ff @(posedge clk_i) cycle_q <= &cycle_q ? cycle_q : cycle_q + 1'b1;
  always_comb assume (rst_ni == (cycle_q != '0));
  logic quiet;
  assign quiet = Quiet && cycle_q >= 7'(QuietFrom);

  // ----- What goes in -------------------------------------------------------------------------------

  logic second_q, other_q, tx_valid, tx_ready, taken, to_other;
  colour_t colour_q, colour, shown_q;
  logic [1:0] count_q;  // with Quiet: two packets are enough to see repetition end
  assign to_other = second_q ? other_q : Others && other_i;
  always_comb begin
    colour = '0;
    if (!to_other) begin
      if (colour_q == 2'd0 && mark_i) colour = 2'd1;
      if (colour_q == 2'd1) colour = 2'd2;
    end
    if (second_q) colour = shown_q;
  end
  assign tx_valid = second_q || (want_i && !quiet && (!Quiet || count_q != 2'd2));
  assign taken = tx_valid && tx_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      second_q <= 1'b0;
      other_q  <= 1'b0;
      colour_q <= '0;
      shown_q  <= '0;
      count_q  <= '0;
    end else if (taken) begin
      second_q <= !second_q;
      if (!second_q) begin
        other_q <= to_other;
        shown_q <= colour;
        count_q <= count_q + 1'b1;
        // 3: both have been.
        if (!to_other && colour != '0) colour_q <= colour == 2'd1 ? 2'd1 : 2'd3;
      end
    end
  end

  dimmnet_packet_t head;
  always_comb begin
    head = '0;
    head.dst_lid = {15'd0, !to_other};
    head.tag = 8'(colour);
    head.kind = {2'd0, colour};
  end

  // ----- The sender -----------------------------------------------------------------------------------

  logic pkt_valid, start, line_valid, line_take, ack_come;
  psn_t pkt_psn, ack_psn;
  logic [63:0] line;
  ack_e ack_kind_q;
  psn_t ack_psn_q;
  logic [1:0] failed, repeats;
  dimmnet_swif_send #(
      .NumPeers(2),
      .PsnBits(PsnBits),
      .PacketLines(2),
      .RingLines(8),
      .RingPackets(2),
      .TimeoutCycles(Quiet ? 16 : 2),
      .RnrCycles(2),
      .RetryLimit(RetryLimit)
  ) u_send (
      .lid_i(16'd0),
      .stop_i(2'd0),
      .off_o(),
      .failed_o(failed),
      .tx_valid_i(tx_valid),
      .tx_ready_o(tx_ready),
      .tx_ident_i(second_q ? DimmnetLineLast : DimmnetLineFirst),
      .tx_line_i(second_q ? {62'd0, colour} : head[63:0]),
      .pkt_valid_o(pkt_valid),
      .pkt_psn_o(pkt_psn),
      .pkt_ready_i(start),
      .line_valid_o(line_valid),
      .line_o(line),
      .line_take_i(line_take),
      .ack_valid_i(ack_come),
      .ack_kind_i(ack_kind_q),
      .ack_peer_i(1'b1),
      .ack_psn_i(ack_psn_q),
      .repeat_o(repeats),
      .gave_up_o(),
      .unreachable_o(),
      .*
  );

  // ----- The network ------------------------------------------------------------------------------------

  // Being sent: `lines_q` lines of it have been.
  logic sending_q, for_other_q;
  logic [1:0] lines_q;
  psn_t psn_q;
  colour_t first_q, last_q;
  // On its way.
  logic way_q, old_q, come, lost;
  psn_t way_psn_q;
  colour_t way_first_q, way_last_q;
  logic leave, free;

  assign start = pkt_valid && line_valid && !sending_q && (ready_i || quiet);
  assign line_take = sending_q && line_valid && lines_q != 2'd2 && (take_i || quiet);
  assign lost = lose_i && !quiet;
  assign free = !way_q || come;
  assign leave = sending_q && lines_q == 2'd2 && (free || lost || for_other_q);
  assign come = way_q && old_q && (deliver_i || quiet);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sending_q <= 1'b0;
      way_q <= 1'b0;
      old_q <= 1'b0;
      lines_q <= '0;
    end else begin
      if (start) begin
        sending_q <= 1'b1;
        lines_q   <= '0;
      end
      if (line_take) lines_q <= lines_q + 1'b1;
      if (leave) sending_q <= 1'b0;
      if (come) way_q <= 1'b0;
      old_q <= way_q && !come;
      if (leave && !lost && !for_other_q) way_q <= 1'b1;
    end
    if (start) begin
      psn_q <= pkt_psn;
      for_other_q <= Others && !line[32];
    end
    if (line_take && lines_q == '0) first_q <= line[1:0];
    if (line_take && lines_q != '0) last_q <= line[1:0];
    if (leave && !lost && !for_other_q) begin
      way_psn_q   <= psn_q;
      way_first_q <= first_q;
      way_last_q  <= last_q;
    end
  end

  // ----- The receiver -----------------------------------------------------------------------------------

  logic accept, duplicate, ahead, no_room, ack_valid, ack_take, ack_way_q, ack_peer;
  ack_e ack_kind;
  psn_t ack_expected;
  dimmnet_swif_judge #(
      .NumPeers(2),
      .PsnBits(PsnBits),
      .AckPackets(1),
      .AckCycles(2)
  ) u_judge (
      .off_i(2'd0),
      .good_i(come),
      .peer_i(1'b0),
      .psn_i(way_psn_q),
      .fits_i(fits_i || quiet),
      .accept_o(accept),
      .duplicate_o(duplicate),
      .ahead_o(ahead),
      .no_room_o(no_room),
      .ack_valid_o(ack_valid),
      .ack_ready_i(ack_take),
      .ack_kind_o(ack_kind),
      .ack_peer_o(ack_peer),
      .ack_expected_o(ack_expected),
      .*
  );
  assign ack_psn = ack_kind == AckTaken ? ack_expected - 1'b1 : ack_expected;
  assign ack_come = ack_way_q && (ack_deliver_i || quiet);
  assign ack_take = ack_valid && (ack_ready_i || quiet) && (!ack_way_q || ack_come);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) ack_way_q <= 1'b0;
    else if (ack_take) ack_way_q <= quiet || !ack_lose_i;
    else if (ack_come) ack_way_q <= 1'b0;
    if (ack_take) begin
      ack_kind_q <= ack_kind;
      ack_psn_q  <= ack_psn;
    end
  end

  // ----- What comes out ---------------------------------------------------------------------------------

  colour_t out_q;  // the last of the coloured ones that came out
  logic [1:0] came_q;
  logic repeated_q, ahead_q, full_q, again_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q <= '0;
      came_q <= '0;
      {repeated_q, ahead_q, full_q, again_q} <= '0;
    end else begin
      if (accept && way_first_q != '0) out_q <= way_first_q;
      if (accept) came_q <= came_q + 1'b1;
      if (|repeats) repeated_q <= 1'b1;
      if (ahead) ahead_q <= 1'b1;
      if (no_room) full_q <= 1'b1;
      if (duplicate) again_q <= 1'b1;
    end
  end

  // ----- What makes it so ---------------------------------------------------------------------------------

  // These lemmas carry the induction. Numbers are counted from the oldest packet that is not acknowledged: the next to
  // be written, the next to be accepted, and acknowledgements, in the order in which they will be heard.
  psn_t begun, oldest, expected, written, due;
  logic [3:0] told_valid;
  psn_t told[4];
  assign begun = u_send.have_psn;
  assign oldest = u_send.oldest;
  assign expected = u_judge.expected;
  assign written = begun - oldest;
  assign due = expected - oldest;
  assign told_valid = {ack_valid, ack_way_q, u_send.asked_q, u_send.heard_q};
  assign told[0] = u_send.heard_end_q - oldest;
  assign told[1] = u_send.asked_end_q - oldest;
  assign told[2] = ack_psn_q + psn_t'(ack_kind_q == AckTaken) - oldest;
  assign told[3] = ack_expected - oldest;

  // The ring: packets kept, those up to the next to be sent, up to the first that was never sent; lines.
  logic [1:0] kept, upto, known, left;
  logic [3:0] lines, taken_lines;
  psn_t head_psn;
  assign kept = u_send.begun_q - u_send.head_q;
  assign upto = u_send.next_q - u_send.head_q;
  assign known = u_send.fresh_q - u_send.head_q;
  assign left = u_send.left_q[1:0];
  assign lines = u_send.write_q - u_send.head_addr_q;
  assign taken_lines = u_send.read_q - u_send.head_addr_q;
  assign head_psn = begun - kept;

  // The colour of the packet that had this number last.
  colour_t [3:0] painted_q;
  always_ff @(posedge clk_i) begin
    if (u_send.begin_pkt) painted_q[begun] <= colour;
  end

  logic numbers, ring, network, colours;
  always_comb begin
    psn_t most;
    numbers = written <= psn_t'(2) && due <= written && (failed[1] || written <= kept);
    numbers = numbers && {u_judge.ack_q[1], u_judge.nak_q[1], u_judge.rnr_q[1]} == '0 &&
        u_judge.count_q[1] == '0 && !(u_judge.chosen_q && u_judge.pick_q) &&
        !(u_send.asked_q && u_send.heard_q) &&
        (!u_send.heard_q || u_send.newer_q == (told[0] != '0));
    most = due;
    for (int i = 3; i >= 0; i--) begin
      if (told_valid[i]) begin
        numbers = numbers && told[i] <= most;
        most = told[i];
      end
    end
    if (u_send.asked_q) begin
      numbers = numbers && u_send.by_q == told[1] && (u_send.have_q == written ||
          (u_send.grew_q && u_send.have_q + 1'b1 == written));
    end
  end

  logic half;  // the last packet in the ring has one line so far
  assign half = u_send.open_q && u_send.keep_q;
  always_comb begin
    ring = u_send.off_o == '0 && u_send.open_q == second_q && u_send.line_q == 7'(second_q) &&
        (!second_q || u_send.claimed_q == 7'd2) && (!half || kept != '0) &&
        kept <= 2'd2 && known <= kept && upto <= known && taken_lines <= lines &&
        lines == {1'b0, kept, 1'b0} - 4'(half) && taken_lines == {1'b0, upto, 1'b0} - 4'(left) &&
        u_send.left_q <= 7'd2 && left == (sending_q ? 2'd2 - lines_q : 2'd0) && lines_q <= 2'd2 &&
        (left == '0 || upto != '0) && (!u_send.head_seen_q || u_send.head_ready_q) &&
        (!u_send.unwilling_q || (u_send.ready_q && !(half && upto + 1'b1 == kept)));
    if (u_send.ready_q) begin
      ring = ring && upto < kept && u_send.new_q == (upto == known) && u_send.peer_q &&
          u_send.lines_q == 7'd2 &&
          u_send.psn_q == head_psn + upto;
    end
    if (u_send.head_ready_q) begin
      ring = ring && kept != '0 && u_send.head_peer_q && u_send.head_lines_q == 7'd2 &&
          u_send.head_psn_q == head_psn;
      // It leaves when it is acknowledged: all that were written and are not acknowledged stay.
      if (u_send.head_seen_q && u_send.head_done_q) begin
        ring = ring && (failed[1] || kept > written);
      end
    end
    for (int i = 0; i < 2; i++) begin
      if (2'(i) < kept) begin
        ring = ring && u_send.entries[1'(u_send.head_q+2'(i))] ==
            {1'b1, head_psn + psn_t'(i), 7'd2};
      end
    end
  end

  // Packets under way, against what is due: none is so old or so new that its number means another one.
  psn_t sending_by, way_by;
  assign sending_by = psn_q - expected;
  assign way_by = way_psn_q - expected;
  always_comb begin
    network = !(sending_q && way_q && way_by == '0 && sending_by == 2'd2);
    if (sending_q) begin
      network = network && !for_other_q;
      if (sending_by < 2'd2) begin
        network = network && {1'b0, due} + {1'b0, sending_by} < {1'b0, written};
      end
      if (left != '0) network = network && psn_q == head_psn + upto - 1'b1;
      if (lines_q != '0 && (left != '0 || sending_by < 2'd2)) begin
        network = network && first_q == painted_q[psn_q];
      end
      if (lines_q == 2'd2) network = network && first_q == last_q;
    end
    if (way_q) begin
      network = network && way_first_q == way_last_q;
      if (way_by < 2'd2) begin
        network = network && {1'b0, due} + {1'b0, way_by} < {1'b0, written} &&
            way_first_q == painted_q[way_psn_q];
      end
    end
    if (way_q && old_q) network = network && u_judge.due_q == (way_by == '0);
  end

  // What is in the ring has its colour, and the colours from what is due on go on as they came out.
  colour_t at_end;
  always_comb begin
    logic [2:0] place;
    place = '0;
    colours = !line_valid ||
        (u_send.line_o[1:0] == u_send.u_ring.gen_any.mem[u_send.read_q[2:0]][1:0] &&
         u_send.read_q != u_send.write_q);
    for (int i = 0; i < 2; i++) begin
      if (2'(i) < kept) begin
        for (int j = 0; j < 2; j++) begin
          if (4'(2 * i + j) < lines) begin
            place = 3'(u_send.head_addr_q + 4'(2 * i + j));
            colours = colours && u_send.u_ring.gen_any.mem[place][1:0] ==
                painted_q[head_psn+psn_t'(i)];
          end
        end
      end
    end
    if (half) colours = colours && shown_q == painted_q[begun-1'b1];
    at_end = out_q;
    for (int i = 0; i < 2; i++) begin
      if (psn_t'(i) + due < written && !(due[1] && i == 1)) begin
        colour_t next;
        next = painted_q[expected+psn_t'(i)];
        colours = colours && next != 2'd3 &&
            (next == 2'd0 ? at_end != 2'd1 : at_end == next - 1'b1);
        if (next != 2'd0) at_end = next;
      end
    end
    if (!failed[1]) colours = colours && at_end == (colour_q == 2'd3 ? 2'd2 : colour_q);
    colours = colours && colour_q != 2'd2;
  end
  `VELO_ASSERT(NumbersSound, Others || numbers)
  `VELO_ASSERT(RingSound, Others || ring)
  `VELO_ASSERT(NetworkSound, Others || network)
  `VELO_ASSERT(ColoursSound, Others || colours)
  `VELO_ASSERT(PacketWhole, !accept || way_first_q == way_last_q)
  `VELO_ASSERT(FirstOnce, !(accept && way_first_q == 2'd1) || out_q == 2'd0)
  `VELO_ASSERT(SecondOnceAndAfterFirst, !(accept && way_first_q == 2'd2) || out_q == 2'd1)
  `VELO_ASSERT(NothingBetween, !(accept && way_first_q == 2'd0) || out_q != 2'd1)
  `VELO_ASSERT(AllArrives, !Quiet || cycle_q != 7'(Deadline) || came_q == count_q)
  if (!Quiet && !Others) begin : gen_covers
    `VELO_COVER(AfterRepetition, accept && repeated_q && way_first_q == 2'd2)
    `VELO_COVER(AfterNak, accept && repeated_q && ahead_q)
    `VELO_COVER(AfterNoRoom, accept && full_q)
    `VELO_COVER(AfterDuplicate, accept && again_q)
    `VELO_COVER(GivenUp, failed[1])
  end
  if (Others) begin : gen_other_covers
    `VELO_COVER(OtherGivenUp, accept && failed[0])
  end

endmodule
