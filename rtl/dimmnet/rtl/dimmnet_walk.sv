// SPDX-License-Identifier: Apache-2.0
//
// Walks through a job's words in their order, a row of SO-DIMM a cycle: one word, or two if they are in one row and
// one element. Positions are signed and wide enough that 64 steps of any size do not wrap.

`include "velo_assert.svh"

module dimmnet_walk
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic start_i,  // begin with `job_i`; only while `busy_o` is low
    output logic busy_o,   // not yet through
    input  job_t job_i,    // stands while it is busy

    output logic [ 5:0] index_o,  // of a list: the next element
    input  logic [31:0] offset_i, // its offset, in the same cycle

    output logic               valid_o,  // a row
    input  logic               ready_i,  // it is taken
    output logic signed [39:0] word_o,   // its first word, from the region's
    output logic               two_o,    // and the one behind it
    output logic               last_o    // the job's last
);

  logic signed [39:0] at_q, element_q, element_next;
  logic [6:0] left_q, elements_q;
  logic [5:0] index_q;
  logic busy_q, ends;

  // The element after this one, or the first.
  assign index_o = start_i ? '0 : index_q;
  always_comb begin
    element_next = start_i ? 40'({8'b0, job_i.address}) : element_q + 40'($signed(job_i.step));
    if (job_i.access == DimmnetAccessList) begin
      element_next = 40'({8'b0, job_i.address}) + 40'({8'b0, offset_i});
    end
  end

  assign busy_o  = busy_q;
  assign valid_o = busy_q;
  assign word_o  = at_q;
  assign two_o   = !at_q[0] && left_q >= 7'd2;
  assign ends    = left_q == 7'd1 || (two_o && left_q == 7'd2);
  assign last_o  = ends && elements_q == 7'd1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) busy_q <= 1'b0;
    else if (start_i) busy_q <= 1'b1;
    else if (ready_i && last_o) busy_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (start_i || (busy_q && ready_i && ends)) begin
      at_q       <= element_next;
      element_q  <= element_next;
      left_q     <= job_i.element_words;
      elements_q <= start_i ? job_i.count : elements_q - 7'd1;
      index_q    <= start_i ? 6'd1 : index_q + 6'd1;
    end else if (busy_q && ready_i) begin
      at_q   <= at_q + (two_o ? 40'sd2 : 40'sd1);
      left_q <= left_q - (two_o ? 7'd2 : 7'd1);
    end
  end

  `VELO_ASSERT(StartsWhenIdle, !start_i || !busy_q)
  `VELO_ASSERT(SomethingToDo, !start_i || (job_i.element_words != '0 && job_i.count != '0))

  logic unused;
  assign unused = ^job_i;

endmodule
