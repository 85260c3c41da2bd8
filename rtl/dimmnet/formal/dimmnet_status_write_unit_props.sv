// SPDX-License-Identifier: Apache-2.0
//
// The Status Write Unit's promises, for all requests, pointers and times of LLCM: a status is
// written into the ring of its process, at the entry that its pointer names, and only while that
// ring has room; it is counted when it was written, for that process; a request ends at the latest
// after the patience, if LLCM is not in the way.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_status_write_unit_props
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*; #(
    parameter int unsigned Processes = 2,
    localparam int unsigned WidBits = $clog2(Processes)
)
(
    input logic clk_i,
    input logic rst_ni,
    input logic [ 19:0] patience_i,
    input logic [Processes-1:0][31:0] status_write_i,
    input logic [Processes-1:0][31:0] status_read_i,
    input logic receive_valid_i,
    input logic [WidBits-1:0] receive_wid_i,
    input dimmnet_status_t receive_status_i,
    input logic load_valid_i,
    input logic [WidBits-1:0] load_wid_i,
    input dimmnet_status_t load_status_i,
    input logic llcm_ready_i
);

  logic receive_done_o;
  logic load_done_o;
  logic llcm_valid_o;
  logic [WidBits-1:0] llcm_wid_o;
  logic [ 11:0] llcm_word_o;
  logic [ 63:0] llcm_data_o;
  logic written_o;
  logic [WidBits-1:0] written_wid_o;
  logic dropped_o;

  dimmnet_status_write_unit #(
      .Processes(Processes)
  ) u_dut (.*);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // The units hold a request until it is done.
  logic receive_waits_q, load_waits_q;
  logic [WidBits-1:0] receive_wid_q, load_wid_q;
  always_ff @(posedge clk_i) begin
    receive_waits_q <= rst_ni && receive_valid_i && !receive_done_o;
    load_waits_q    <= rst_ni && load_valid_i && !load_done_o;
    {receive_wid_q, load_wid_q} <= {receive_wid_i, load_wid_i};
  end
  `VELO_ASSUME(RequestsStand, (!receive_waits_q || (receive_valid_i && receive_wid_i ==
               receive_wid_q)) &&
               (!load_waits_q || (load_valid_i && load_wid_i == load_wid_q)))
  logic [19:0] patience_q;
  logic past_reset_q;
  always_ff @(posedge clk_i) {past_reset_q, patience_q} <= {rst_ni, patience_i};
  `VELO_ASSUME(PatienceStays, !past_reset_q || patience_i == patience_q)

  logic [31:0] used;
  assign used = status_write_i[llcm_wid_o] - status_read_i[llcm_wid_o];
  `VELO_ASSERT(InItsRing, !llcm_valid_o || llcm_word_o ==
               12'd3584 + 12'(status_write_i[llcm_wid_o] % 512))
  `VELO_ASSERT(NothingOverwritten, !llcm_valid_o || used < 32'd512)
  `VELO_ASSERT(CountedAsWritten, written_o == (llcm_valid_o && llcm_ready_i) && written_wid_o ==
               llcm_wid_o)
  `VELO_ASSERT(OfARequest, !llcm_valid_o || (receive_valid_i && llcm_wid_o == receive_wid_i) ||
               (load_valid_i && llcm_wid_o == load_wid_i))
  `VELO_ASSERT(OneEnds, !(receive_done_o && load_done_o))
  `VELO_ASSERT(EndsAsWrittenOrDropped, (receive_done_o || load_done_o) == (written_o || dropped_o))
  `VELO_ASSERT(DroppedOnlyIfFull, !dropped_o || (used >= 32'd512 && !llcm_valid_o))

  // A request that has begun waits for its ring no longer than the patience.
  logic [20:0] full_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || receive_done_o || load_done_o || llcm_valid_o) full_q <= '0;
    else if (receive_valid_i || load_valid_i) full_q <= full_q + 21'd1;
    else full_q <= '0;
  end
  `VELO_ASSERT(BusyWithItsRequest, !u_dut.busy_q || (u_dut.load_q ? load_valid_i : receive_valid_i))
  `VELO_ASSERT(TheUnitCountsTheSame, full_q == {1'b0, u_dut.waited_q})
  `VELO_ASSERT(PatienceBounds, full_q <= {1'b0, patience_i})

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (dropped_o && patience_i == 20'd5 && load_done_o);
      cover (written_o && receive_waits_q && llcm_word_o == 12'd4095);
    end
  end

endmodule
