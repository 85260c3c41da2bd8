// SPDX-License-Identifier: Apache-2.0
//
// What sends: commands and reads that wait, the Window Controller that makes segments of them, the sender.

module dimmnet_send
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
#(
    parameter int unsigned Processes = 2,
    parameter int unsigned Commands = 8,
    parameter int unsigned Reads = 8,
    localparam int unsigned WidBits = $clog2(Processes)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [Processes-1:0] renew_i,  // these processes begin anew
    input logic push_valid_i,  // a command
    output logic push_ready_o,  // its queue has room
    input logic [WidBits-1:0] push_wid_i,  // its process
    input entry_t push_entry_i,  // the command
    input logic read_in_valid_i,  // a word of a read's payload
    input logic read_in_last_i,  // its last
    output logic read_in_ready_o,  // there is room for a read
    input dimmnet_packet_t read_in_i,  // its header
    input logic [63:0] read_in_data_i,  // the word
    input logic [15:0] lid_i,  // the board's
    input process_t [Processes-1:0] process_i,  // its processes
    output logic list_valid_o,  // read offsets in LLCM, for the Prefetch Unit
    input logic list_ready_i,  // taken
    output logic [WidBits-1:0] list_wid_o,  // process
    output logic [11:0] list_word_o,  // word
    input logic [63:0] llcm_word_i,  // a cycle later, either
    output logic fetch_valid_o,  // a job for the Prefetch Unit
    input logic fetch_ready_i,  // it is taken
    output job_t fetch_job_o,  // the job
    output logic offset_valid_o,  // two offsets for it
    output logic [63:0] offset_o,  // the offsets
    input logic fetch_list_done_i,  // its list is there
    input logic fetch_list_bad_i,  // with it: not all in the region
    output logic refuse_valid_o,  // a command is refused
    output logic [WidBits-1:0] refuse_wid_o,  // of this process
    output dimmnet_error_e refuse_error_o,  // why
    output events_t answer_events_o,  // what became of reads
    output logic [WidBits-1:0] window_wid_o,  // Write Window to read: process
    output logic [6:0] window_word_o,  // word
    input logic [63:0] window_data_i,  // a cycle later
    output logic send_valid_o,  // read offsets in LLCM, for a packet or a store
    input logic send_ready_i,  // taken
    output logic [WidBits-1:0] send_wid_o,  // process
    output logic [11:0] send_word_o,  // word
    input logic fetched_valid_i,  // a word from the Prefetch Unit
    output logic fetched_ready_o,  // it is taken
    input logic [63:0] fetched_i,  // the word
    output logic load_valid_o,  // a word for a Prefetch Window
    input logic load_ready_i,  // it is written
    output logic [WidBits-1:0] load_wid_o,  // process
    output logic [7:0] load_word_o,  // word
    output logic [63:0] load_data_o,  // data
    output logic store_job_valid_o,  // a job for the Write Unit
    input logic store_job_ready_i,  // it is taken
    output job_t store_job_o,  // the job
    output logic store_write_o,  // a word for it
    input logic store_write_ready_i,  // it is taken
    output logic [63:0] store_data_o,  // the word
    input logic store_list_i,  // its list is there
    input logic store_list_bad_i,  // with it: not all in the region
    input logic store_done_i,  // all is written
    output logic load_status_valid_o,  // a status
    input logic load_status_done_i,  // it is written or dropped
    output dimmnet_status_t load_status_o,  // the status
    output dimmnet_line_e tx_ident_o,  // which of its packet's
    output logic sent_o,  // a packet was sent
    output logic done_o,  // a command is done
    output logic done_failed_o,  // with it: in vain
    output logic [WidBits-1:0] done_wid_o,  // of this process
    output logic tx_valid_o,  // a line
    input logic tx_ready_i,  // it is taken
    output logic [63:0] tx_line_o  // the line
);

  logic [Processes-1:0] waiting;
  logic [WidBits-1:0] queue_wid;
  entry_t queue_head;
  logic queue_pop;
  logic read_waits;
  dimmnet_packet_t read_head;
  logic read_pop;
  logic [5:0] read_word;
  logic [63:0] read_payload;
  logic segment_valid;
  logic segment_ready;
  segment_t segment;
  logic storing;

  dimmnet_queue #(
      .Processes(Processes),
      .Depth(Commands)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .clear_i(renew_i),
      .push_valid_i(push_valid_i),
      .push_ready_o(push_ready_o),
      .push_wid_i(push_wid_i),
      .push_entry_i(push_entry_i),
      .waiting_o(waiting),
      .head_wid_i(queue_wid),
      .head_o(queue_head),
      .pop_i(queue_pop),
      .pop_wid_i(queue_wid)
  );

  dimmnet_reads #(
      .Depth(Reads)
  ) u_reads (
      .clk_i,
      .rst_ni,
      .valid_i(read_in_valid_i),
      .last_i(read_in_last_i),
      .ready_o(read_in_ready_o),
      .header_i(read_in_i),
      .data_i(read_in_data_i),
      .valid_o(read_waits),
      .header_o(read_head),
      .pop_i(read_pop),
      .word_i(read_word),
      .data_o(read_payload)
  );

  dimmnet_window_controller #(
      .Processes(Processes)
  ) u_window_controller (
      .clk_i,
      .rst_ni,
      .lid_i(lid_i),
      .process_i(process_i),
      .renew_i(renew_i),
      .waiting_i(waiting),
      .wid_o(queue_wid),
      .entry_i(queue_head),
      .pop_o(queue_pop),
      .read_valid_i(read_waits),
      .read_i(read_head),
      .read_pop_o(read_pop),
      .read_word_o(read_word),
      .read_data_i(read_payload),
      .list_valid_o(list_valid_o),
      .list_ready_i(list_ready_i),
      .list_wid_o(list_wid_o),
      .list_word_o(list_word_o),
      .list_data_i(llcm_word_i),
      .job_valid_o(fetch_valid_o),
      .job_ready_i(fetch_ready_i),
      .job_o(fetch_job_o),
      .offset_valid_o(offset_valid_o),
      .offset_o(offset_o),
      .list_done_i(fetch_list_done_i),
      .list_bad_i(fetch_list_bad_i),
      .segment_valid_o(segment_valid),
      .segment_ready_i(segment_ready),
      .segment_o(segment),
      .storing_i(storing),
      .refuse_valid_o(refuse_valid_o),
      .refuse_wid_o(refuse_wid_o),
      .refuse_error_o(refuse_error_o),
      .events_o(answer_events_o)
  );

  dimmnet_sender #(
      .Processes(Processes)
  ) u_sender (
      .clk_i,
      .rst_ni,
      .segment_valid_i(segment_valid),
      .segment_ready_o(segment_ready),
      .segment_i(segment),
      .storing_o(storing),
      .window_wid_o(window_wid_o),
      .window_word_o(window_word_o),
      .window_data_i(window_data_i),
      .list_valid_o(send_valid_o),
      .list_ready_i(send_ready_i),
      .list_wid_o(send_wid_o),
      .list_word_o(send_word_o),
      .list_data_i(llcm_word_i),
      .data_valid_i(fetched_valid_i),
      .data_ready_o(fetched_ready_o),
      .data_i(fetched_i),
      .prefetch_valid_o(load_valid_o),
      .prefetch_ready_i(load_ready_i),
      .prefetch_wid_o(load_wid_o),
      .prefetch_word_o(load_word_o),
      .prefetch_data_o(load_data_o),
      .job_valid_o(store_job_valid_o),
      .job_ready_i(store_job_ready_i),
      .job_o(store_job_o),
      .write_valid_o(store_write_o),
      .write_ready_i(store_write_ready_i),
      .write_data_o(store_data_o),
      .write_list_i(store_list_i),
      .write_bad_i(store_list_bad_i),
      .write_done_i(store_done_i),
      .status_valid_o(load_status_valid_o),
      .status_done_i(load_status_done_i),
      .status_o(load_status_o),
      .tx_valid_o,
      .tx_ready_i,
      .tx_ident_o(tx_ident_o),
      .tx_line_o,
      .sent_o(sent_o),
      .done_o(done_o),
      .failed_o(done_failed_o),
      .done_wid_o(done_wid_o),
      .renew_i(renew_i)
  );

endmodule
