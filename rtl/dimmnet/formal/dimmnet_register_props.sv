// SPDX-License-Identifier: Apache-2.0
//
// The registers' promises: what a process's page is written changes nothing of another process, nor
// who anybody is; its command is a command of its own. Only the privileged page makes a process
// what it is.
//
// One process of one's choice, `p`, is watched while the host writes elsewhere.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_register_props
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*; #(
    parameter int unsigned Processes = 2,
    localparam int unsigned WidBits = $clog2(Processes)
)
(
    input logic clk_i,
    input logic rst_ni,
    input logic we_i,
    input dimmnet_slot_t waddr_i,
    input logic [15:0] be_i,
    input logic [127:0] wdata_i,
    input dimmnet_slot_t raddr_i,
    input logic push_ready_i,
    input logic refuse_valid_i,
    input logic [WidBits-1:0] refuse_wid_i,
    input dimmnet_error_e refuse_error_i,
    input logic done_valid_i,
    input logic done_failed_i,
    input logic [WidBits-1:0] done_wid_i,
    input logic sent_i,
    input counts_t events_i,
    input logic status_valid_i,
    input logic [WidBits-1:0] status_wid_i,
    input logic [15:0] network_off_i,
    input logic [15:0] network_failed_i,
    input logic [8:0][31:0] network_counts_i
);

  logic [127:0] rdata_o;
  logic push_valid_o;
  logic [WidBits-1:0] push_wid_o;
  entry_t push_entry_o;
  logic [ 15:0] network_stop_o;
  logic [ 15:0] lid_o;
  logic [ 19:0] patience_o;
  process_t [Processes-1:0] process_o;
  logic [Processes-1:0] renew_o;
  logic [Processes-1:0][31:0] status_write_o;
  logic [Processes-1:0][31:0] status_read_o;

  dimmnet_register #(
      .Processes(Processes)
  ) u_dut (.*);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  localparam int unsigned P = 1;  // the watched one; the pages are alike
  logic mine, own_event;
  assign mine = we_i && !waddr_i.privileged && waddr_i.wid == 4'(P);
  `VELO_ASSUME(ProcessExists, waddr_i.privileged || waddr_i.wid < 4'(Processes))
  assign own_event = mine || (refuse_valid_i && refuse_wid_i == WidBits'(P)) ||
      (done_valid_i && done_wid_i == WidBits'(P)) || (status_valid_i && status_wid_i ==
      WidBits'(P));

  logic past_reset_q, untouched_q, unprivileged_q, privileged_q;
  process_t process_q, other_q;
  logic [31:0] write_q, read_q;
  logic [15:0] lid_q, stop_q;
  logic [19:0] patience_q;
  assign privileged_q = we_i && waddr_i.privileged;
  always_ff @(posedge clk_i) begin
    past_reset_q   <= rst_ni;
    untouched_q    <= !own_event && !privileged_q;
    unprivileged_q <= !privileged_q;
    {process_q, other_q} <= {process_o[P], process_o[0]};
    {write_q, read_q} <= {status_write_o[P], status_read_o[P]};
    {lid_q, patience_q, stop_q} <= {lid_o, patience_o, network_stop_o};
  end
  `VELO_ASSERT(OnlyThePrivilegedPageSaysWhoIsWho, !past_reset_q || !unprivileged_q ||
               (process_o[P] == process_q && process_o[0] == other_q && lid_o == lid_q &&
                patience_o == patience_q && network_stop_o == stop_q))
  `VELO_ASSERT(PointersAreItsOwn, !past_reset_q || !untouched_q ||
               (status_write_o[P] == write_q && status_read_o[P] == read_q))
  `VELO_ASSERT(NobodyBeginsAnewUnasked, !(|renew_o) || (we_i && waddr_i.privileged))
  `VELO_ASSERT(CommandOfItsPage, !push_valid_o ||
               (we_i && !waddr_i.privileged && 4'(push_wid_o) == waddr_i.wid))
  `VELO_ASSERT(EvenRegions, !process_o[P].region.first[0] && !process_o[P].region.words[0])

  // What of its registers it can read, and what its commands take along.
  logic [127:0] shapes_q;
  assign shapes_q = {u_dut.local_q[P], u_dut.remote_q[P]};
  logic [127:0] before_q;
  always_ff @(posedge clk_i) before_q <= shapes_q;
  `VELO_ASSERT(PatternsAreItsOwn, !past_reset_q || !untouched_q || shapes_q == before_q)

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (push_valid_o && push_entry_o.kind == EntryTransfer && push_wid_o == WidBits'(P));
      cover (process_o[P].enabled && process_o[P].pgid == 16'd7 && status_write_o[P] == 32'd2);
      cover (push_valid_o && push_entry_o.kind == EntryAotf && push_wid_o == WidBits'(P));
    end
  end

endmodule
