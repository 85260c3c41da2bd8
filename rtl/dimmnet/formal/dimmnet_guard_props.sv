// SPDX-License-Identifier: Apache-2.0
//
// The units' promises to SO-DIMM: whatever job, list and data come, however wrong, every request of
// a unit lies in [first, first + words) of the job's region, in sums that do not wrap. The job may
// say anything, the list and the words may be anything and come at any time that the protocol
// allows; the memory takes requests when it likes.
//
// One unit a run: `Read`, the Prefetch Unit, else the Write Unit.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_guard_props
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
#(
    parameter bit Read = 1'b0
) (
    input logic         clk_i,
    input logic         rst_ni,
    input logic         job_valid_i,
    input job_t         job_i,
    input logic         data_valid_i,
    input logic [ 63:0] data_i,
    input logic         request_ready_i,
    input logic         response_valid_i,
    input logic [127:0] response_i,
    input logic         data_ready_i
);

  logic job_ready, data_ready, list_done, list_bad, valid, data_valid, done;
  logic [31:1] row;
  logic [1:0] mask;
  logic [127:0] row_data;
  logic [63:0] data;

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // A region that the privileged process may have set: even, as the register keeps it.
  `VELO_ASSUME(EvenRegion, !job_i.region.first[0] && !job_i.region.words[0])

  if (Read) begin : gen_read
    dimmnet_prefetch_unit u_dut (
        .clk_i,
        .rst_ni,
        .job_valid_i,
        .job_ready_o     (job_ready),
        .job_i,
        .list_valid_i    (data_valid_i),
        .list_i          (data_i),
        .list_done_o     (list_done),
        .list_bad_o      (list_bad),
        .read_valid_o    (valid),
        .read_ready_i    (request_ready_i),
        .read_row_o      (row),
        .response_valid_i,
        .response_i,
        .data_valid_o    (data_valid),
        .data_ready_i,
        .data_o          (data)
    );
    assign mask = 2'b11;
    assign {data_ready, done, row_data} = '0;
  end else begin : gen_write
    dimmnet_write_unit u_dut (
        .clk_i,
        .rst_ni,
        .job_valid_i,
        .job_ready_o  (job_ready),
        .job_i,
        .data_valid_i,
        .data_ready_o (data_ready),
        .data_i,
        .list_done_o  (list_done),
        .list_bad_o   (list_bad),
        .done_o       (done),
        .write_valid_o(valid),
        .write_ready_i(request_ready_i),
        .write_row_o  (row),
        .write_mask_o (mask),
        .write_data_o (row_data)
    );
    assign {data_valid, data} = '0;
  end

  // Words come while a job is open: for the Prefetch Unit its list, for the Write Unit list and
  // data.
  logic open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (job_valid_i && job_ready) open_q <= !Read || job_i.access == DimmnetAccessList;
    else if (done || (list_done && (Read || list_bad))) open_q <= 1'b0;
  end
  `VELO_ASSUME(WordsOfAnOpenJob, !data_valid_i || open_q)
  // What the judges of commands and packets let through.
  `VELO_ASSUME(SomeElements, !job_valid_i || (job_i.element_words != '0 && job_i.count != '0 &&
               job_i.count <= 7'd64))
  // The memory answers what it was asked.
  logic [7:0] asked_q;
  logic asks;
  assign asks = Read && valid && request_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) asked_q <= '0;
    else asked_q <= asked_q + 8'(asks) - 8'(response_valid_i);
  end
  `VELO_ASSUME(AnswersWhatWasAsked, !response_valid_i || asked_q != '0)

  // The regions of the last three jobs: one can wait with its list while another one is walked
  // and the last request of
  // a third is not yet taken. The Write Unit takes a job only when the last request of the one
  // before has gone.
  region_t [2:0] region_q;
  logic [2:0] there_q;
  logic [2:0] lies;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) there_q <= '0;
    else if (job_valid_i && job_ready) there_q <= {there_q[1:0], 1'b1};
    else if (list_done && list_bad) there_q <= there_q >> 1;
    if (job_valid_i && job_ready) region_q <= {region_q[1:0], job_i.region};
    else if (list_done && list_bad) region_q <= {region_q[2], region_q[2:1]};
  end

  function automatic logic lies_in(region_t region, logic [31:1] at);
    logic [32:0] first, behind;
    first  = {1'b0, region.first};
    behind = {1'b0, region.first} + {1'b0, region.words};
    return {1'b0, at, 1'b0} >= first && {1'b0, at, 1'b1} < behind;
  endfunction
  `VELO_ASSERT(EvenRegions, !(|{region_q[0].first[0] & there_q[0],
               region_q[0].words[0] & there_q[0],
               region_q[1].first[0] & there_q[1], region_q[1].words[0] & there_q[1],
               region_q[2].first[0] & there_q[2], region_q[2].words[0] & there_q[2]}))
  for (genvar i = 0; i < 3; i++) assign lies[i] = there_q[i] && lies_in(region_q[i], row);
  `VELO_ASSERT(RequestInTheRegion, !valid || (Read ? |lies : lies[0]))

  // How the unit's registers go with that: what makes the induction close.
  if (Read) begin : gen_read_steps
    logic next;
    assign next = gen_read.u_dut.next_there_q;
    // Granted here, asserted in every test: the memory answers each row that was asked for once.
    `VELO_ASSUME(RoomForResponses, !response_valid_i || gen_read.u_dut.unused_ready)
    `VELO_ASSERT(OpenAsTheUnit, !open_q || (next && !gen_read.u_dut.next_whole_q))
    `VELO_ASSERT(NextHasElements, !next || (gen_read.u_dut.next_q.element_words != '0 &&
                 gen_read.u_dut.next_q.count != '0))
    `VELO_ASSERT(WalkHasElements, !gen_read.u_dut.start_q || (!gen_read.u_dut.walk_busy &&
                 gen_read.u_dut.walks_q.element_words != '0 && gen_read.u_dut.walks_q.count != '0))
    `VELO_ASSERT(NextIsTheNewest, !next || (there_q[0] && gen_read.u_dut.next_q.region ==
               region_q[0]))
    `VELO_ASSERT(WalksTheOneBefore, !gen_read.u_dut.walk_busy && !gen_read.u_dut.start_q ||
                 (there_q[next] && gen_read.u_dut.walks_q.region == region_q[next]))
    `VELO_ASSERT(RequestOfThatOrTheOneBefore, !valid || lies[next] || (lies[2'(next) + 2'd1] &&
                 (gen_read.u_dut.walk_busy || gen_read.u_dut.start_q)))
  end else begin : gen_write_steps
    `VELO_ASSERT(OpenAsTheUnit, open_q == (gen_write.u_dut.state_q != 2'd0))
    `VELO_ASSERT(JobHasElements, gen_write.u_dut.state_q == 2'd0 ||
                 (gen_write.u_dut.job_q.element_words != '0 && gen_write.u_dut.job_q.count != '0))
    `VELO_ASSERT(StartsInItsState, !gen_write.u_dut.starts_q ||
                 (gen_write.u_dut.state_q == 2'd2 && !gen_write.u_dut.walk_busy))
    `VELO_ASSERT(WritesTheNewest, gen_write.u_dut.state_q == 2'd0 ||
                 (there_q[0] && gen_write.u_dut.job_q.region == region_q[0]))
    `VELO_ASSERT(IdleWithoutARequest, gen_write.u_dut.state_q >= 2'd2 || !valid)
  end
  `VELO_ASSERT(SomethingAsked, !valid || mask != '0)

  // An offer stands until it is taken.
  logic waits_q;
  logic [32:0] offer_q;
  always_ff @(posedge clk_i) begin
    waits_q <= rst_ni && valid && !request_ready_i;
    offer_q <= {row, mask};
  end
  `VELO_ASSERT(RequestStands, !waits_q || (valid && offer_q == {row, mask}))

  // The proof is not empty: elements going down, rows of one and of two words, lists, what is
  // left out.
  logic strided_q, listed_q;
  always_ff @(posedge clk_i) if (job_valid_i && job_ready) begin
    strided_q <= job_i.access == DimmnetAccessStrided && job_i.step[31] && job_i.count == 7'd3;
    listed_q  <= job_i.access == DimmnetAccessList && job_i.count == 7'd3;
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (valid && strided_q && row == 31'd5);
      cover (valid && listed_q && waits_q);
      cover (valid && row == 31'h7fffffff && region_q[0].words[31]);
      cover (list_done && list_bad);
    end
  end

  logic unused;
  assign unused = ^{data_ready, data_valid, done, row_data, data};

endmodule
