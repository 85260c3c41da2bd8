// SPDX-License-Identifier: Apache-2.0
//
// Status Write Unit: puts a status into the next entry of its process's ring, then counts it in the process's
// `status_write`. The ring is the last words of the process's LLCM; a full one is one whose statuses the process has
// not taken.
//
// A status waits `patience_i` cycles for room, then it is dropped. A process that sets `status_read` to what makes no
// sense has a full ring: it harms itself, and others by the patience at most. Requests: loads and packets, in turn.
// A request ends with `*_done_o`; if its status was dropped, `dropped_o` says so in that cycle.

`include "velo_assert.svh"

module dimmnet_status_write_unit
  import dimmnet_pkg::*;
#(
    parameter  int unsigned Processes = 2,
    localparam int unsigned WidBits   = $clog2(Processes)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [         19:0]       patience_i,      // cycles that a status waits
    input logic [Processes-1:0][31:0] status_write_i,  // statuses written
    input logic [Processes-1:0][31:0] status_read_i,   // statuses taken

    input  logic                          receive_valid_i,  // a packet's; held until it is done
    output logic                          receive_done_o,   // it is written or dropped
    input  logic            [WidBits-1:0] receive_wid_i,    // process
    input  dimmnet_status_t               receive_status_i, // status

    input  logic                          load_valid_i,  // a load's; held until it is done
    output logic                          load_done_o,   // it is written or dropped
    input  logic            [WidBits-1:0] load_wid_i,    // process
    input  dimmnet_status_t               load_status_i, // status

    output logic               llcm_valid_o,  // write to LLCM
    input  logic               llcm_ready_i,  // it is written
    output logic [WidBits-1:0] llcm_wid_o,    // process
    output logic [       11:0] llcm_word_o,   // word
    output logic [       63:0] llcm_data_o,   // the status

    output logic               written_o,      // count it
    output logic [WidBits-1:0] written_wid_o,  // for this process
    output logic               dropped_o       // count it, for the board
);

  logic load_q, full, done;
  logic [WidBits-1:0] wid;
  logic [31:0] used;
  logic [19:0] waited_q;

  // A request that has begun is not left for the other one; after it, the other one goes first.
  logic busy_q, load;
  assign load = busy_q ? load_q : (load_valid_i && !(receive_valid_i && load_q));
  assign wid = load ? load_wid_i : receive_wid_i;
  assign used = status_write_i[wid] - status_read_i[wid];
  assign full = used >= DimmnetStatusEntries;

  assign llcm_valid_o = (load ? load_valid_i : receive_valid_i) && !full;
  assign llcm_wid_o = wid;
  assign llcm_word_o = 12'(DimmnetStatusLlcmWord) | 12'(status_write_i[wid][8:0]);
  assign llcm_data_o = load ? load_status_i : receive_status_i;

  assign written_o = llcm_valid_o && llcm_ready_i;
  assign written_wid_o = wid;
  assign dropped_o = (load ? load_valid_i : receive_valid_i) && full && waited_q >= patience_i;
  assign done = written_o || dropped_o;
  assign load_done_o = done && load;
  assign receive_done_o = done && !load;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      load_q   <= 1'b0;
      waited_q <= '0;
    end else begin
      busy_q <= (load_valid_i || receive_valid_i) && !done;
      if (load_valid_i || receive_valid_i) load_q <= load;
      waited_q <= full && (load_valid_i || receive_valid_i) && !done ? waited_q + 20'd1 : '0;
    end
  end

  `VELO_ASSERT(InTheRing, !llcm_valid_o || llcm_word_o >= 12'(DimmnetStatusLlcmWord))

endmodule
