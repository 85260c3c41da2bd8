// SPDX-License-Identifier: Apache-2.0
//
// CoreLogic of DIMMnet-2: what is between the host's memory bus, the board's SO-DIMMs and the network. The parts have the
// names of the paper (figure 3); README.md says what each does. Everything is synchronous to one clock, 100 MHz on the
// paper's board.
//
// Host: writes of 128 bits with byte enables; reads whose data come two cycles after they were taken. Both are taken at
// once, whatever network and SO-DIMM do.
// SWIF: lines with their identifiers. SO-DIMM: a request a cycle, responses of reads in order; there is always room for them.

`include "velo_assert.svh"

module dimmnet_core
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
#(
    parameter int unsigned Processes = DimmnetProcesses,  // 2 to 16
    parameter int unsigned Commands = 8,  // that wait, of a processes; a power of two
    parameter int unsigned Reads = 8,  // that wait, of the board; a power of two
    parameter bit Aotf = 1'b1  // AOTF registers are there
) (
    input logic clk_i,
    input logic rst_ni,

    input logic write_valid_i,  // the host writes
    output logic write_ready_o,  // it is taken
    input logic [20:0] write_address_i,  // byte in the slot; the lowest four bits are not looked at
    input logic [15:0] write_be_i,  // which bytes
    input logic [127:0] write_data_i,  // the bytes

    input  logic         read_valid_i,      // the host reads
    output logic         read_ready_o,      // it is taken
    input  logic [ 20:0] read_address_i,    // byte in the slot, a multiple of 16
    output logic         response_valid_o,  // two cycles later
    output logic [127:0] response_data_o,   // the data

    output logic [15:0] lid_o,  // the board's LID
    output logic [15:0] network_stop_o,  // peers that SWIF stops, by the lowest bits of their LIDs
    input logic [15:0] network_off_i,  // it has
    input logic [15:0] network_failed_i,  // peers that it gave up
    input logic [8:0][31:0] network_counts_i,  // its counters, from network_crc on

    output logic        tx_valid_o,  // a line for SWIF
    input  logic        tx_ready_i,  // it is taken
    output logic [ 1:0] tx_ident_o,  // enum dimmnet_line
    output logic [63:0] tx_line_o,   // the line

    input  logic        rx_valid_i,  // a line from SWIF
    output logic        rx_ready_o,  // it is taken
    input  logic [ 1:0] rx_ident_i,  // enum dimmnet_line
    input  logic [63:0] rx_line_i,   // the line

    output logic         sodimm_valid_o,           // a request
    input  logic         sodimm_ready_i,           // it is taken
    output logic         sodimm_write_o,           // it writes
    output logic [ 31:0] sodimm_address_o,         // word, even
    output logic [  1:0] sodimm_mask_o,            // of a write: which of the two words
    output logic [127:0] sodimm_data_o,            // of a write: the words
    input  logic         sodimm_response_valid_i,  // a read's words, in the order of requests
    input  logic [127:0] sodimm_response_i         // the words
);

  localparam int unsigned WidBits = $clog2(Processes);
  `VELO_ASSERT_INIT(ProcessesFitTheMap, Processes >= 2 && Processes <= DimmnetProcessesMax)

  dimmnet_slot_t write_slot, read_slot;
  logic write_window, write_register, write_llcm, read_llcm;
  logic [127:0] register_data, prefetch_data, llcm_data;
  logic
      push_valid,
      push_ready,
      refuse_valid,
      done_valid,
      done_failed,
      sent,
      status_written,
      status_dropped,
      received,
      intake_malformed;
  logic [WidBits-1:0] push_wid, refuse_wid, done_wid, status_wid;
  entry_t push_entry;
  dimmnet_error_e refuse_error;
  counts_t events;
  logic [15:0] lid;
  logic [19:0] patience;
  process_t [Processes-1:0] processes;
  logic [Processes-1:0] renew;
  logic [Processes-1:0][31:0] status_write, status_read;
  logic [WidBits-1:0] window_wid, list_wid, send_wid, load_wid, receive_wid, ring_wid;
  logic [6:0] window_word;
  logic [63:0]
      window_data, llcm_word, fetched, load_data, receive_data, ring_data, offset, line, store_data;
  logic list_valid, list_ready, send_valid, send_ready;
  logic [11:0] list_word, send_word, receive_word, ring_word;
  job_t fetch_job, receive_job, store_job;
  logic fetch_valid, fetch_ready, offset_valid, fetch_list_done, fetch_list_bad;
  logic fetched_valid, fetched_ready;
  logic load_valid, load_ready;
  logic [7:0] load_word;
  logic to_prefetch, to_prefetch_ready, to_llcm, to_llcm_ready, ring_valid, ring_ready;
  logic receive_job_valid, receive_job_ready, receive_write, receive_write_ready;
  logic receive_list, receive_done;
  logic store_job_valid, store_job_ready, store_write, store_write_ready, store_list, store_done;
  logic list_bad;
  logic receive_status_valid, receive_status_done, load_status_valid, load_status_done;
  dimmnet_status_t receive_status, load_status;
  logic head_valid, head_pop;
  dimmnet_packet_t head, read_in;
  logic [5:0] line_at;
  logic read_in_valid, read_in_last, read_in_ready;
  logic row_write, row_write_ready, row_read, row_read_ready;
  logic [31:1] row_write_at, row_read_at;
  logic [1:0] row_mask;
  logic [127:0] row_data;
  dimmnet_line_e tx_ident;
  events_t receive_events, answer_events;
  logic [1:0] malformed;
  // Of each kind several may happen in one cycle.
  assign malformed = 2'(receive_events.malformed) + 2'(answer_events.malformed) +
      2'(intake_malformed);
  assign events = '{
          pgid: 2'(receive_events.pgid) + 2'(answer_events.pgid),
          malformed: malformed,
          bounds: 2'(receive_events.bounds) + 2'(answer_events.bounds),
          status: 2'(status_dropped),
          busy: 2'(receive_events.busy),
          received: 2'(received)
      };
  assign tx_ident_o = tx_ident;
  assign lid_o = lid;
  // A memory slot cannot wait; each memory gives the host the first place.
  assign {write_ready_o, read_ready_o} = '1;

  // What became of a command is counted a cycle later: an offset in the Write Window that is wrong ends a store, and from
  // there to the counters is too far for one cycle. A process that begins anew has not done it.
  logic done_valid_q, done_failed_q;
  logic [WidBits-1:0] done_wid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {done_valid_q, done_failed_q} <= '0;
    else {done_valid_q, done_failed_q} <= {2{!renew[done_wid]}} & {done_valid, done_failed};
  end
  always_ff @(posedge clk_i) done_wid_q <= done_wid;

  dimmnet_host #(
      .Processes(Processes)
  ) u_host (
      .clk_i,
      .rst_ni,
      .write_valid_i,
      .write_address_i,
      .read_valid_i,
      .read_address_i,
      .response_valid_o,
      .response_data_o,
      .write_slot_o(write_slot),
      .write_window_o(write_window),
      .write_register_o(write_register),
      .write_llcm_o(write_llcm),
      .read_slot_o(read_slot),
      .read_llcm_o(read_llcm),
      .register_data_i(register_data),
      .prefetch_data_i(prefetch_data),
      .llcm_data_i(llcm_data)
  );

  dimmnet_register #(
      .Processes(Processes),
      .Aotf(Aotf)
  ) u_register (
      .clk_i,
      .rst_ni,
      .we_i(write_register),
      .waddr_i(write_slot),
      .be_i(write_be_i),
      .wdata_i(write_data_i),
      .raddr_i(read_slot),
      .rdata_o(register_data),
      .push_valid_o(push_valid),
      .push_ready_i(push_ready),
      .push_wid_o(push_wid),
      .push_entry_o(push_entry),
      .refuse_valid_i(refuse_valid),
      .refuse_wid_i(refuse_wid),
      .refuse_error_i(refuse_error),
      .done_valid_i(done_valid_q),
      .done_failed_i(done_failed_q),
      .done_wid_i(done_wid_q),
      .sent_i(sent),
      .events_i(events),
      .status_valid_i(status_written),
      .status_wid_i(status_wid),
      .network_stop_o,
      .network_off_i,
      .network_failed_i,
      .network_counts_i,
      .lid_o(lid),
      .patience_o(patience),
      .process_o(processes),
      .renew_o(renew),
      .status_write_o(status_write),
      .status_read_o(status_read)
  );

  dimmnet_write_window #(
      .Processes(Processes)
  ) u_write_window (
      .clk_i,
      .host_we_i(write_window),
      .host_wid_i(write_slot.wid[WidBits-1:0]),
      .host_row_i(write_slot.offset[9:4]),
      .host_be_i(write_be_i),
      .host_wdata_i(write_data_i),
      .wid_i(window_wid),
      .word_i(window_word),
      .data_o(window_data)
  );

  dimmnet_prefetch_window #(
      .Processes(Processes)
  ) u_prefetch_window (
      .clk_i,
      .rst_ni,
      .receive_valid_i(to_prefetch),
      .receive_ready_o(to_prefetch_ready),
      .receive_wid_i(receive_wid),
      .receive_word_i(receive_word[7:0]),
      .receive_data_i(receive_data),
      .load_valid_i(load_valid),
      .load_ready_o(load_ready),
      .load_wid_i(load_wid),
      .load_word_i(load_word),
      .load_data_i(load_data),
      .host_wid_i(read_slot.wid[WidBits-1:0]),
      .host_row_i(read_slot.offset[10:4]),
      .host_data_o(prefetch_data)
  );

  dimmnet_llcm #(
      .Processes(Processes)
  ) u_llcm (
      .clk_i,
      .rst_ni,
      .host_we_i(write_llcm),
      .host_we_wid_i(write_slot.wid[WidBits-1:0]),
      .host_we_row_i({write_slot.page[2:0], write_slot.offset[11:4]}),
      .host_be_i(write_be_i),
      .host_wdata_i(write_data_i),
      .receive_valid_i(to_llcm),
      .receive_ready_o(to_llcm_ready),
      .receive_wid_i(receive_wid),
      .receive_word_i(receive_word),
      .receive_data_i(receive_data),
      .status_valid_i(ring_valid),
      .status_ready_o(ring_ready),
      .status_wid_i(ring_wid),
      .status_word_i(ring_word),
      .status_data_i(ring_data),
      .host_valid_i(read_llcm),
      .host_wid_i(read_slot.wid[WidBits-1:0]),
      .host_row_i({read_slot.page[2:0], read_slot.offset[11:4]}),
      .host_data_o(llcm_data),
      .list_valid_i(list_valid),
      .list_ready_o(list_ready),
      .list_wid_i(list_wid),
      .list_word_i(list_word),
      .send_valid_i(send_valid),
      .send_ready_o(send_ready),
      .send_wid_i(send_wid),
      .send_word_i(send_word),
      .word_o(llcm_word)
  );

  dimmnet_send #(
      .Processes(Processes),
      .Commands (Commands),
      .Reads    (Reads)
  ) u_send (
      .clk_i,
      .rst_ni,
      .renew_i(renew),
      .push_valid_i(push_valid),
      .push_ready_o(push_ready),
      .push_wid_i(push_wid),
      .push_entry_i(push_entry),
      .read_in_valid_i(read_in_valid),
      .read_in_last_i(read_in_last),
      .read_in_ready_o(read_in_ready),
      .read_in_i(read_in),
      .read_in_data_i(receive_data),
      .lid_i(lid),
      .process_i(processes),
      .list_valid_o(list_valid),
      .list_ready_i(list_ready),
      .list_wid_o(list_wid),
      .list_word_o(list_word),
      .llcm_word_i(llcm_word),
      .fetch_valid_o(fetch_valid),
      .fetch_ready_i(fetch_ready),
      .fetch_job_o(fetch_job),
      .offset_valid_o(offset_valid),
      .offset_o(offset),
      .fetch_list_done_i(fetch_list_done),
      .fetch_list_bad_i(fetch_list_bad),
      .refuse_valid_o(refuse_valid),
      .refuse_wid_o(refuse_wid),
      .refuse_error_o(refuse_error),
      .answer_events_o(answer_events),
      .window_wid_o(window_wid),
      .window_word_o(window_word),
      .window_data_i(window_data),
      .send_valid_o(send_valid),
      .send_ready_i(send_ready),
      .send_wid_o(send_wid),
      .send_word_o(send_word),
      .fetched_valid_i(fetched_valid),
      .fetched_ready_o(fetched_ready),
      .fetched_i(fetched),
      .load_valid_o(load_valid),
      .load_ready_i(load_ready),
      .load_wid_o(load_wid),
      .load_word_o(load_word),
      .load_data_o(load_data),
      .store_job_valid_o(store_job_valid),
      .store_job_ready_i(store_job_ready),
      .store_job_o(store_job),
      .store_write_o(store_write),
      .store_write_ready_i(store_write_ready),
      .store_data_o(store_data),
      .store_list_i(store_list),
      .store_list_bad_i(list_bad),
      .store_done_i(store_done),
      .load_status_valid_o(load_status_valid),
      .load_status_done_i(load_status_done),
      .load_status_o(load_status),
      .tx_ident_o(tx_ident),
      .sent_o(sent),
      .done_o(done_valid),
      .done_failed_o(done_failed),
      .done_wid_o(done_wid),
      .tx_valid_o,
      .tx_ready_i,
      .tx_line_o
  );

  dimmnet_intake u_intake (
      .clk_i,
      .rst_ni,
      .rx_valid_i,
      .rx_ready_o,
      .rx_ident_i(dimmnet_line_e'(rx_ident_i)),
      .rx_line_i,
      .head_valid_o(head_valid),
      .head_o(head),
      .pop_i(head_pop),
      .word_i(line_at),
      .data_o(line),
      .received_o(received),
      .malformed_o(intake_malformed)
  );

  dimmnet_receive_controller #(
      .Processes(Processes)
  ) u_receive_controller (
      .clk_i,
      .rst_ni,
      .lid_i(lid),
      .process_i(processes),
      .head_valid_i(head_valid),
      .head_i(head),
      .pop_o(head_pop),
      .line_o(line_at),
      .data_i(line),
      .prefetch_valid_o(to_prefetch),
      .prefetch_ready_i(to_prefetch_ready),
      .llcm_valid_o(to_llcm),
      .llcm_ready_i(to_llcm_ready),
      .wid_o(receive_wid),
      .word_o(receive_word),
      .data_o(receive_data),
      .job_valid_o(receive_job_valid),
      .job_ready_i(receive_job_ready),
      .job_o(receive_job),
      .write_valid_o(receive_write),
      .write_ready_i(receive_write_ready),
      .list_done_i(receive_list),
      .list_bad_i(list_bad),
      .write_done_i(receive_done),
      .read_valid_o(read_in_valid),
      .read_last_o(read_in_last),
      .read_ready_i(read_in_ready),
      .read_o(read_in),
      .status_valid_o(receive_status_valid),
      .status_done_i(receive_status_done),
      .status_o(receive_status),
      .events_o(receive_events)
  );

  dimmnet_status_write_unit #(
      .Processes(Processes)
  ) u_status_write_unit (
      .clk_i,
      .rst_ni,
      .patience_i(patience),
      .status_write_i(status_write),
      .status_read_i(status_read),
      .receive_valid_i(receive_status_valid),
      .receive_done_o(receive_status_done),
      .receive_wid_i(receive_wid),
      .receive_status_i(receive_status),
      .load_valid_i(load_status_valid),
      .load_done_o(load_status_done),
      .load_wid_i(load_wid),
      .load_status_i(load_status),
      .llcm_valid_o(ring_valid),
      .llcm_ready_i(ring_ready),
      .llcm_wid_o(ring_wid),
      .llcm_word_o(ring_word),
      .llcm_data_o(ring_data),
      .written_o(status_written),
      .written_wid_o(status_wid),
      .dropped_o(status_dropped)
  );

  dimmnet_write_share u_write_share (
      .clk_i,
      .rst_ni,
      .receive_job_i(receive_job_valid),
      .receive_taken_o(receive_job_ready),
      .receive_what_i(receive_job),
      .receive_valid_i(receive_write),
      .receive_ready_o(receive_write_ready),
      .receive_data_i(receive_data),
      .receive_list_o(receive_list),
      .receive_done_o(receive_done),
      .store_job_i(store_job_valid),
      .store_taken_o(store_job_ready),
      .store_what_i(store_job),
      .store_valid_i(store_write),
      .store_ready_o(store_write_ready),
      .store_data_i(store_data),
      .store_list_o(store_list),
      .store_done_o(store_done),
      .bad_o(list_bad),
      .write_valid_o(row_write),
      .write_ready_i(row_write_ready),
      .write_row_o(row_write_at),
      .write_mask_o(row_mask),
      .write_data_o(row_data)
  );

  dimmnet_prefetch_unit u_prefetch_unit (
      .clk_i,
      .rst_ni,
      .job_valid_i(fetch_valid),
      .job_ready_o(fetch_ready),
      .job_i(fetch_job),
      .list_valid_i(offset_valid),
      .list_i(offset),
      .list_done_o(fetch_list_done),
      .list_bad_o(fetch_list_bad),
      .read_valid_o(row_read),
      .read_ready_i(row_read_ready),
      .read_row_o(row_read_at),
      .response_valid_i(sodimm_response_valid_i),
      .response_i(sodimm_response_i),
      .data_valid_o(fetched_valid),
      .data_ready_i(fetched_ready),
      .data_o(fetched)
  );

  dimmnet_sodimm u_sodimm (
      .clk_i,
      .rst_ni,
      .write_valid_i(row_write),
      .write_ready_o(row_write_ready),
      .write_row_i(row_write_at),
      .write_mask_i(row_mask),
      .write_data_i(row_data),
      .read_valid_i(row_read),
      .read_ready_o(row_read_ready),
      .read_row_i(row_read_at),
      .sodimm_valid_o,
      .sodimm_ready_i,
      .sodimm_write_o,
      .sodimm_address_o,
      .sodimm_mask_o,
      .sodimm_data_o
  );

  logic unused;
  assign unused = ^answer_events;

endmodule
