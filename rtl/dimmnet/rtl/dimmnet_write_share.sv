// SPDX-License-Identifier: Apache-2.0
//
// The Write Unit's two users, packets that come in (`receive`) and stores (`store`), take turns, a job each time.

`include "velo_assert.svh"

module dimmnet_write_share
  import dimmnet_core_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic        receive_job_i,    // a job of the Receive Controller
    output logic        receive_taken_o,  // it is taken
    input  job_t        receive_what_i,   // the job
    input  logic        receive_valid_i,  // a word for it
    output logic        receive_ready_o,  // it is taken
    input  logic [63:0] receive_data_i,   // the word
    output logic        receive_list_o,   // its list is there
    output logic        receive_done_o,   // it is over

    input  logic        store_job_i,    // a store's job
    output logic        store_taken_o,  // it is taken
    input  job_t        store_what_i,   // the job
    input  logic        store_valid_i,  // a word for it
    output logic        store_ready_o,  // it is taken
    input  logic [63:0] store_data_i,   // the word
    output logic        store_list_o,   // its list is there
    output logic        store_done_o,   // it is over

    output logic         bad_o,          // with either list: not all in the region
    output logic         write_valid_o,  // a request
    input  logic         write_ready_i,  // it is taken
    output logic [ 31:1] write_row_o,    // row
    output logic [  1:0] write_mask_o,   // its words
    output logic [127:0] write_data_o    // data
);

  logic store_q, store_now, ready, data_ready, list_done, done;

  // Whose turn it is, and while a job lasts, whose it is.
  assign store_now = store_job_i && (!receive_job_i || !store_q);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) store_q <= 1'b0;
    else if (ready && (store_job_i || receive_job_i)) store_q <= store_now;
  end

  dimmnet_write_unit u_write_unit (
      .clk_i,
      .rst_ni,
      .job_valid_i (store_job_i || receive_job_i),
      .job_ready_o (ready),
      .job_i       (store_now ? store_what_i : receive_what_i),
      .data_valid_i(store_q ? store_valid_i : receive_valid_i),
      .data_ready_o(data_ready),
      .data_i      (store_q ? store_data_i : receive_data_i),
      .list_done_o (list_done),
      .list_bad_o  (bad_o),
      .done_o      (done),
      .write_valid_o,
      .write_ready_i,
      .write_row_o,
      .write_mask_o,
      .write_data_o
  );

  assign store_taken_o = ready && store_now;
  assign receive_taken_o = ready && receive_job_i && !store_now;
  assign store_ready_o = data_ready && store_q;
  assign receive_ready_o = data_ready && !store_q;
  assign store_list_o = list_done && store_q;
  assign receive_list_o = list_done && !store_q;
  assign store_done_o = done && store_q;
  assign receive_done_o = done && !store_q;

endmodule
