// SPDX-License-Identifier: Apache-2.0
//
// The promises of the operations that are not over, for any operations, answers and times. Two entries,
// one operation a node, one or two bits of each field; a time of 4 or 8 cycles.
//
//   * Of a node of one's choice no more than PerNode are unanswered.
//   * An answer is known only if every field of it is an open operation's, and then it is.
//   * An operation ends late only if the time is on and no packet of it was written for two ages; and within
//     `most` cycles if none is and notifications are taken. No packet of it is being written then.
//   * Each late one is told once, as what it was; nothing is told without one.
//   * What was asked has ended, is late, or is open.
//   * The next one may be sent when its entry is free and its node's are few; nobody is refused for want of a
//     place while an operation of his node that is unanswered is younger than half the time.
//   * A node of one's choice is silent exactly from when an operation of it ended late until a probe of it is answered,
//     and is then asked for one at a time.
//   * An answer to one that ended late is known never more, though a later one may be alike.
// The proof assumes: an operation is sent only when it may be (velo_rma_requester), and an answer that is written is
// known and held until it ends (velo_rma_accept: its header and command stand, a cycle before and all the time).

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_rma_pending_props
  import velo_pkg::*;
  import velo_rma_pkg::*;
(
    input logic         clk_i,
    input logic         rst_ni,
    input logic         time_enable_i,
    input logic         ask_valid_i,
    input packet_t      ask_header_i,
    input rma_command_t ask_command_i,
    input packet_t      answer_header_i,
    input rma_command_t answer_command_i,
    input logic         job_i,            // an answer is there
    input logic         ended_i,
    input logic         notify_ready_i
);

  localparam int unsigned Entries = 2;
  localparam int unsigned PerNode = 1;
  logic [3:0] time_cycles_q;
  always_ff @(posedge clk_i) time_cycles_q <= time_cycles_q;
  always_comb assume (time_cycles_q == 4'd4 || time_cycles_q == 4'd8);
  // Two whole ages; three and a look at each entry, twice, as notifications of others may come between.
  logic [7:0] least, most;
  assign least = 8'(time_cycles_q);
  assign most  = 8'd3 * 8'(time_cycles_q) / 8'd2 + 8'd3 * 8'(Entries) + 8'd5;
  localparam int unsigned ProbeBits = 1;

  logic past_q;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  always_ff @(posedge clk_i) past_q <= 1'b1;

  logic ask_ready, ask_late, known, busy, notify_valid, late;
  logic [EpochBits-1:0] epoch;
  logic [5:0] number;
  logic [7:0] late_ctx, late_node;
  notify_t notify;

  velo_rma_pending #(
      .Entries (Entries),
      .PerNode (PerNode),
      .TimeBits(5),
      // An entry's operations all have one number.
      .NumberBits(1),
      .NodeBits(2),
      .ProbeBits(ProbeBits)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .time_enable_i,
      .time_cycles_i   (5'(time_cycles_q)),
      .ask_node_i      (ask_header_i.dst_node),
      .ask_ready_o     (ask_ready),
      .ask_late_o      (ask_late),
      .epoch_o         (epoch),
      .ask_valid_i,
      .ask_header_i,
      .ask_command_i,
      .number_o        (number),
      .answer_header_i,
      .answer_command_i,
      .known_o         (known),
      .busy_i          (busy),
      .ended_i,
      .notify_valid_o  (notify_valid),
      .notify_ready_i,
      .notify_o        (notify),
      .late_o          (late),
      .late_ctx_o      (late_ctx),
      .late_node_o     (late_node)
  );

  // ----- the surroundings ------------------------------------------------------------------------

  assign busy = job_i && known;
  packet_t header_q, asked_q;
  rma_command_t command_q;
  logic busy_q, ended_q;
  always_ff @(posedge clk_i) begin
    header_q  <= answer_header_i;
    command_q <= answer_command_i;
    busy_q    <= rst_ni && busy && !ended_i;
    asked_q   <= ask_header_i;
  end
  // A job has stood for a cycle; one that is written stays until it is done.
  `VELO_ASSUME(JobStands, !job_i || (header_q == answer_header_i && command_q == answer_command_i))
  `VELO_ASSUME(WrittenToItsEnd, !busy_q || job_i)
  `VELO_ASSUME(EndsWhenWritten, !ended_i || busy)
  `VELO_ASSUME(SentWhenReady, !ask_valid_i ||
               (ask_ready && asked_q.dst_node == ask_header_i.dst_node &&
                ask_command_i.number == number &&
                ask_command_i.local_address[63-:EpochBits] == epoch))

  logic [7:0] chosen_q;
  always_ff @(posedge clk_i) chosen_q <= chosen_q;
  // Bits of a field are all treated alike; one or two of each say it.
  function automatic logic few(packet_t header, rma_command_t command);
    few = {header.src_ctx[7:1], header.src_node[7:2], header.dst_node[7:2], header.dst_ctx[7:1],
           header.tag[7:1], command.op[3:1], command.len[22:1],
           command.local_address[63:50], command.local_address[47:1]} == '0;
  endfunction
  `VELO_ASSUME(FewBitsAsked, few(ask_header_i, ask_command_i))
  `VELO_ASSUME(FewBitsAnswered, few(answer_header_i, answer_command_i))
  always_comb assume (chosen_q[7:2] == '0);

  // ----- an entry of one's choice ----------------------------------------------------------------

  logic entry_q;
  always_ff @(posedge clk_i) entry_q <= entry_q;
  logic asks, begins, ends, is_late, open_q, begun_q, telling_q;
  logic [7:0] age_q, dark_q;
  packet_t op_header_q;
  rma_command_t op_command_q;
  assign asks    = ask_valid_i && number[0] == entry_q;
  assign begins  = busy && answer_command_i.number[0] == entry_q;
  assign ends    = ended_i && answer_command_i.number[0] == entry_q;
  assign is_late = late && open_q && u_dut.look_q == entry_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q    <= 1'b0;
      telling_q <= 1'b0;
    end else begin
      if (asks) open_q <= 1'b1;
      else if (ends || is_late) open_q <= 1'b0;
      if (is_late) telling_q <= 1'b1;
      else if (notify_ready_i) telling_q <= 1'b0;
    end
    if (asks) begin
      op_header_q  <= ask_header_i;
      op_command_q <= ask_command_i;
    end
    // Cycles without a packet of it, with the time on.
    if (!rst_ni || !time_enable_i || asks || begins) age_q <= '0;
    else if (age_q != '1) age_q <= age_q + 8'd1;
    if (!rst_ni || !time_enable_i || asks || begins || !open_q || !notify_ready_i) dark_q <= '0;
    else if (dark_q != '1) dark_q <= dark_q + 8'd1;
  end

  `VELO_ASSERT(OpenIsOpen, open_q == u_dut.open_q[entry_q])
  `VELO_ASSERT(NeverEarly, !is_late || (time_enable_i && age_q >= least && !begins))
  `VELO_ASSERT(InTime, dark_q <= most)
  `VELO_ASSERT(ToldWhatItWas, !(telling_q && notify_valid) ||
               (notify.ctx == op_header_q.src_ctx && notify.entry.node == op_header_q.dst_node &&
                notify.entry.ctx == op_header_q.dst_ctx && notify.entry.error == ErrorLost &&
                notify.entry.cookie == op_header_q.tag && notify.entry.op == op_command_q.op &&
                notify.entry.address == local_address(op_command_q.local_address) &&
                notify.entry.place == RmaPlaceError && notify.entry.len == '0))
  `VELO_ASSERT(ToldAtOnce, !telling_q || notify_valid)
  // An idle node has the same state in each cycle: the simulator evaluates it no more.
  logic idle_q, look_q;
  always_ff @(posedge clk_i) begin
    idle_q <= rst_ni && u_dut.open_q == '0;
    look_q <= u_dut.look_q;
  end
  `VELO_ASSERT(RestsWhileNoneIsOpen, !idle_q || u_dut.look_q == look_q)

  logic same, same_q, about_it_q;
  assign same = {answer_header_i.dst_ctx, answer_header_i.src_node, answer_header_i.src_ctx,
                 answer_header_i.tag, answer_command_i.op, answer_command_i.len,
                 answer_command_i.local_address, answer_command_i.number} ==
      {op_header_q.src_ctx, op_header_q.dst_node, op_header_q.dst_ctx, op_header_q.tag,
       op_command_q.op, op_command_q.len, op_command_q.local_address, op_command_q.number};
  always_ff @(posedge clk_i) begin
    about_it_q <= answer_command_i.number[0] == entry_q && open_q && !asks;
    same_q     <= same;
  end
  `VELO_ASSERT(KnownIfAskedFor, !(job_i && about_it_q) || known == (same_q && open_q))
  `VELO_ASSERT(UnknownIfNot, !(job_i && answer_command_i.number[0] == entry_q && !open_q) || !known)

  // ----- the node of one's choice ----------------------------------------------------------------

  logic [3:0] unanswered_q, open_all_q;
  logic answered;
  assign answered = busy && u_dut.unanswered_q[answer_command_i.number[0]] &&
      answer_header_i.src_node == chosen_q;
  logic late_unanswered;
  assign late_unanswered = late && u_dut.unanswered_q[u_dut.look_q] &&
      u_dut.node_q[u_dut.look_q] == chosen_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      unanswered_q <= '0;
      open_all_q   <= '0;
    end else begin
      unanswered_q <= unanswered_q + 4'(ask_valid_i && ask_header_i.dst_node == chosen_q) -
          4'(answered) - 4'(late_unanswered);
      open_all_q <= open_all_q + 4'(ask_valid_i) - 4'(ended_i) - 4'(late);
    end
  end
  `VELO_ASSERT(NoMoreOfANode, unanswered_q <= 4'(PerNode))
  `VELO_ASSERT(AllAreCounted, open_all_q == 4'($countones(u_dut.open_q)))
  `VELO_ASSERT(NothingToldWithoutOne, !notify_valid || u_dut.state_q)

  // It may be sent as soon as there is a place.
  logic place_q, free_q;
  always_ff @(posedge clk_i) begin
    place_q <= rst_ni && unanswered_q < 4'(PerNode) && ask_header_i.dst_node == chosen_q &&
        !u_dut.open_q[number[0]] && !ask_valid_i && !notify_valid && !u_dut.clearing_q &&
        !(u_dut.is_silent && (unanswered_q != '0 || u_dut.probe_q != '0));
    free_q <= place_q;
  end
  `VELO_ASSERT(MaySendIfThereIsAPlace, !place_q || !rst_ni || ask_ready)

  // ----- a node that is silent -------------------------------------------------------------------

  logic [1:0] probe_q;
  logic silent_q, silent_now, falls_silent, is_heard, quiet_q;
  assign falls_silent = late && u_dut.node_q[u_dut.look_q] == chosen_q;
  assign is_heard = busy && probe_q[answer_command_i.number[0]];
  assign silent_now = silent_q || falls_silent;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      probe_q  <= '0;
      silent_q <= 1'b0;
    end else begin
      if (falls_silent) silent_q <= 1'b1;
      else if (is_heard) silent_q <= 1'b0;
      if (is_heard) probe_q[answer_command_i.number[0]] <= 1'b0;
      if (late) probe_q[u_dut.look_q] <= 1'b0;
      if (ask_valid_i) probe_q[number[0]] <= silent_now && ask_header_i.dst_node == chosen_q;
    end
    quiet_q <= rst_ni && silent_q && unanswered_q != '0 && ask_header_i.dst_node == chosen_q;
  end
  `VELO_ASSERT(SilentIfItOwedOne, u_dut.clearing_q || ask_header_i.dst_node != chosen_q ||
               u_dut.is_silent == silent_q)
  `VELO_ASSERT(ProbesAreOfSilentNodes,
               !u_dut.unanswered_q[entry_q] || u_dut.node_q[entry_q] != chosen_q ||
               u_dut.probe_q[entry_q] == probe_q[entry_q])
  `VELO_ASSERT(ASilentOneIsAskedForOne, !(ask_ready && quiet_q))

  // ----- those that wait too long ----------------------------------------------------------------

  // Nobody is told to go while another that he waits for is not overdue: one of that node's, or any.
  logic waited_q, entry_waits_q;
  always_ff @(posedge clk_i) begin
    waited_q      <= age_q >= 8'(time_cycles_q) / 8'd2 ||
        (u_dut.probe_q[entry_q] && age_q >= 8'(2 ** ProbeBits)) ||
        (u_dut.is_silent && u_dut.probe_q != '0);
    entry_waits_q <= rst_ni && open_q && !asks && ask_header_i.dst_node == op_header_q.dst_node &&
        !begun_q && !begins;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || asks) begun_q <= 1'b0;
    else if (begins) begun_q <= 1'b1;
  end
  `VELO_ASSERT(RefusedOnlyForWhatIsOverdue, !(ask_late && entry_waits_q) || waited_q)
  // A late answer is nobody's: what ended for want of an answer, whatever was sent since. It is chosen once.
  logic dead_q, dead_known;
  packet_t dead_header_q;
  rma_command_t dead_command_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) dead_q <= 1'b0;
    else if (is_late && !dead_q) begin
      dead_q         <= 1'b1;
      dead_header_q  <= op_header_q;
      dead_command_q <= op_command_q;
    end
  end
  logic dead_same, dead_same_q;
  assign dead_same = dead_q && {answer_header_i.dst_ctx, answer_header_i.src_node,
                                answer_header_i.src_ctx, answer_header_i.tag, answer_command_i.op,
                                answer_command_i.len, answer_command_i.local_address,
                                answer_command_i.number} ==
      {dead_header_q.src_ctx, dead_header_q.dst_node, dead_header_q.dst_ctx, dead_header_q.tag,
       dead_command_q.op, dead_command_q.len, dead_command_q.local_address,
       dead_command_q.number};
  always_ff @(posedge clk_i) dead_same_q <= dead_same;
  assign dead_known = job_i && dead_same_q && known;
  `VELO_ASSERT(LateAnswerIsNobodys, !dead_known)

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (is_late && time_cycles_q == 4'd4);
      cover (telling_q && notify_valid && notify_ready_i);
      cover (unanswered_q == 4'(PerNode) && open_all_q == 4'd2);
      cover (ends && open_all_q == 4'd2);
      cover (job_i && !known && open_q && about_it_q);
      cover (ask_late && entry_waits_q);
      cover (ask_ready && u_dut.overdue != '0);
      cover (is_heard && !falls_silent);
      cover (dead_q && ask_valid_i && ask_header_i == dead_header_q &&
             number == dead_command_q.number);
    end
  end

endmodule
