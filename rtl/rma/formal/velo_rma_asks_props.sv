// SPDX-License-Identifier: Apache-2.0
//
// The promises of the queue of requests, for any packets with gaps anywhere between their beats, kept or not, and
// requests that take any time to serve. Two nodes, a request of each may wait; 64 bits.
//
//   * What was kept comes out once, in its order, and each beat of it unchanged.
//   * Nothing comes out that was not kept: what was let go leaves no trace.
//   * A node has as many slots as it may have, whatever the other one sends: a packet is kept exactly if none of its
//     node waits to be shown (or was shown in the cycle before).
//   * The next one is shown MaxLoad cycles after it was kept and the last one was done, at most.
//   * After a reset there is nothing.
// The proof assumes: a pulse of `keep_i` comes once for a packet, with or behind the last beat of its request
// (velo_rma_accept; velo_rma_take counts the beats), when the counts have been cleared, and its node with it.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_rma_asks_props
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_rma_pkg::*;
(
    input logic        clk_i,
    input logic        rst_ni,
    input logic        beat_valid_i,
    input logic        beat_eop_i,
    input logic [63:0] beat_data_i,
    input logic        keep_i,
    input logic        done_i
);

  localparam int unsigned HeadBeats = 4;
  localparam int unsigned AllBeats = 6;
  localparam int unsigned MaxLoad = 4;

  logic past_q;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  always_ff @(posedge clk_i) past_q <= 1'b1;

  // ----- the packets ------------------------------------------------------------------------------

  logic open_q, update_q, update, kept_q, sop;
  logic [3:0] beats_q, beats;
  assign sop    = !open_q;
  assign beats  = beat_valid_i ? (sop ? 4'd1 : beats_q == '1 ? '1 : beats_q + 4'd1) : beats_q;
  assign update = beat_valid_i && sop ? beat_data_i[7:4] == PacketKindFetchCompareAddRequest :
      update_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q  <= 1'b0;
      beats_q <= '0;
      kept_q  <= 1'b1;
    end else begin
      if (beat_valid_i) open_q <= !beat_eop_i;
      beats_q <= beats;
      kept_q  <= keep_i || (kept_q && !(beat_valid_i && sop));
    end
    update_q <= update;
  end
  logic ready, room, job_valid, passed_over;
  `VELO_ASSUME(KeptOnceAndWhole, !keep_i || ((!kept_q || (beat_valid_i && sop)) &&
               beats >= (update ? 4'(AllBeats) : 4'(HeadBeats)) && ready))
  // The sender of the packet: a field of its first beat.
  logic [7:0] node_q;
  always_ff @(posedge clk_i) if (beat_valid_i && sop) node_q <= beat_data_i[59:52];

  packet_t header;
  rma_command_t command;
  rma_operands_t operands;
  ecc_t ecc;

  velo_rma_asks #(
      .DataWidth(64),
      .PerNode  (1),
      .NodeBits (1)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .beat_valid_i,
      .beat_sop_i (sop),
      .beat_data_i,
      .keep_i,
      .keep_node_i(node_q),
      .ready_o    (ready),
      .room_o     (room),
      .job_valid_o(job_valid),
      .header_o   (header),
      .command_o  (command),
      .operands_o (operands),
      .done_i,
      .void_o     (passed_over),
      .ecc_o      (ecc)
  );
  `VELO_ASSUME(DoneWithAJob, !done_i || job_valid)

  // ----- one beat of one request, both of one's choice --------------------------------------------

  logic [3:0] number_q;
  logic [2:0] place_q;
  always_ff @(posedge clk_i) begin
    number_q <= number_q;
    place_q  <= place_q;
  end
  logic [3:0] in_q, out_q, shown_q;
  logic [63:0] coming_q, coming, saved_q;
  logic saved_update_q, shows, job_valid_q;
  logic [1:0] waits_q;  // a request of each node waits to be shown
  logic [2:0] held;
  logic [383:0] job;
  assign job      = {operands, command, header};
  assign held   = 3'(in_q - out_q);
  assign coming   = beat_valid_i && beats == {1'b0, place_q} + 4'd1 ? beat_data_i : coming_q;
  assign shows    = job_valid && (!job_valid_q || shown_q != out_q);
  always_ff @(posedge clk_i) begin
    coming_q   <= coming;
    job_valid_q <= rst_ni && job_valid;
    shown_q     <= out_q;
    for (int unsigned n = 0; n < 2; n++) begin
      if (!rst_ni) waits_q[n] <= 1'b0;
      else if (keep_i && room && node_q[0] == n[0]) waits_q[n] <= 1'b1;
      else if (shows && header.src_node[0] == n[0]) waits_q[n] <= 1'b0;
    end
    if (!rst_ni) begin
      in_q  <= '0;
      out_q <= '0;
    end else begin
      if (keep_i && room) in_q <= in_q + 4'd1;
      if (done_i) out_q <= out_q + 4'd1;
    end
    if (keep_i && room && in_q == number_q) begin
      saved_q        <= coming;
      saved_update_q <= update;
    end
  end
  always_comb assume (place_q < (saved_update_q ? 3'(AllBeats) : 3'(HeadBeats)));
  always_comb assume (in_q != '1);

  // How long a request has waited that nothing stands in the way of.
  logic [3:0] wait_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || held == '0 || job_valid) wait_q <= '0;
    else wait_q <= wait_q + 4'd1;
  end

  `VELO_ASSERT(AsItCame, !(job_valid && out_q == number_q) || job[64*place_q+:64] == saved_q)
  `VELO_ASSERT(OfItsKind, !(job_valid && out_q == number_q) ||
               (header.kind == PacketKindFetchCompareAddRequest) == saved_update_q)
  `VELO_ASSERT(NothingThatWasNotKept, !job_valid || held != '0)
  // Of each node one waits, and one is shown.
  `VELO_ASSERT(NoMoreThanShares, held <= 3'd3)
  logic waited_q, waited_before_q;  // one of the packet's node did, a cycle ago, and two
  always_ff @(posedge clk_i) begin
    waited_q        <= waits_q[node_q[0]];
    waited_before_q <= waited_q;
  end
  `VELO_ASSERT(NoMoreThanItsShare, !(keep_i && room) || !waits_q[node_q[0]])
  `VELO_ASSERT(RefusedForItsOwn, !(keep_i && !room) || waits_q[node_q[0]] || waited_q ||
               waited_before_q)
  `VELO_ASSERT(NoneIsPassedOver, !passed_over && ecc == '0)
  `VELO_ASSERT(ShownInTime, wait_q <= 4'(MaxLoad))

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (job_valid && out_q == 4'd2 && header.kind == PacketKindFetchCompareAddRequest);
      cover (keep_i && !room);
      // All that is shown and waits, and one node's next is refused.
      cover (held == 3'd3);
      cover (keep_i && room && waits_q[!node_q[0]] && out_q == 4'd1);
      cover (done_i && keep_i && room);
      // A packet that was let go between two that were not.
      cover (out_q == 4'd1 && job_valid && number_q == 4'd1 && saved_q == 64'h5a);
    end
  end

endmodule
