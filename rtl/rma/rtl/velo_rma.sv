// SPDX-License-Identifier: Apache-2.0
//
// Remote memory: put, get, immediate put, notification put and fetch-compare-and-add between
// registered memory of nodes, with the address translation that guards it.
//
// One port of the on-chip crossbar (htax_pkg): descriptors are written to unit `rma` of the window, a read of it is
// answered with an error; the unit's own writes and reads are of host memory, whose answers it always takes. Data of
// an access begin with the byte at its address, whatever its alignment, and are rounded up to whole beats.
// `write_done_i` pulses when a posted write of this port has left for the host, after which a read
// that is offered to the host does not pass it.
// Network: three streams each way, 0 requests, 1 responses, 2 completions. The unit takes requests while
// it can pass on responses and completions, responses while the host takes writes, completions likewise:
// requests may wait for responses, both for completions, never the other way.
//
// On a path of 128 bits a packet's header has a beat of its own, as everywhere there; data move 16 bytes a
// cycle (velo_rma_pack).
//
// Others' gets and updates wait in a queue of their own with room for all that may come, so whatever comes behind
// them is taken (velo_rma_asks). Answers are written only if this node asked (velo_rma_pending).
//
// Registered memory and notification queues are described in velo_atu and velo_rma_notifier; they are
// set through `table_*`, `invalidate_*`, `queue_*` and `read_pointer_*`.
//
// Counts: `posted_o` operations sent, `completed_o` operations whose last data came in, `served_o` gets
// and updates, `atu_*`. Errors: `requester_error_*` of descriptors, `error_*` of packets, with the
// number of those in this cycle, of which the code is of one. See the parts' headers.
//
// Source: EXTOLL, high message rates, section III; case-for-fpga, section 3 and figure 1.

`include "velo_assert.svh"

module velo_rma
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
  import velo_net_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits = 8,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned PageBits = 24,
    parameter int unsigned LineBits = 6,
    parameter bit Ecc = 1'b0,  // check bits in its memories
    localparam int unsigned NumClasses = 3
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [7:0] node_id_i,  // this node

    // Table of registered pages, see velo_atu.
    input  logic                table_enable_i,      // pages are registered
    input  logic [AddrBits-1:3] table_base_i,        // address of the table
    input  logic [         4:0] table_bits_i,        // log2 of its entries
    input  logic                invalidate_valid_i,  // pulse: forget this page
    input  logic [PageBits-1:0] invalidate_page_i,   // entry of the table
    output logic                invalidating_o,      // accesses to it may be under way

    // Notification queues, see velo_rma_notifier; a queue stands until it is taken.
    input  logic                watchdog_enable_i,     // a full queue holds up no longer than
    input  logic [        19:0] watchdog_cycles_i,     // so many cycles
    input  logic                queue_valid_i,         // a setting is offered
    output logic                queue_ready_o,         // it is taken
    input  logic [ CtxBits-1:0] queue_ctx_i,           // of this context
    input  logic                queue_enabled_i,       // it takes notifications
    input  logic [AddrBits-1:4] queue_base_i,          // address in host memory
    input  logic [        14:0] queue_last_entry_i,    // entries of 16 bytes, less one
    input  logic                read_pointer_valid_i,  // pulse: there is a new one
    input  logic [ CtxBits-1:0] read_pointer_ctx_i,    // of this context
    input  logic [        15:0] read_pointer_i,        // entries freed, modulo 2^16

    // Gets and updates that are not answered, see velo_rma_pending.
    input logic        answer_enable_i,  // one of which nothing comes ends after
    input logic [31:0] answer_cycles_i,  // so many cycles, at most 1.5 times as many

    // The way to a node, see velo_rma_requester.
    output logic [7:0] way_node_o,  // which node
    input  logic       way_none_i,  // there is none to that of the cycle before

    // From the crossbar: descriptors, reads of the window, and what was read of host memory.
    input  htax_port_t                  to_unit_i,
    input  logic        [DataWidth-1:0] to_unit_posted_data_i,
    input  logic        [DataWidth-1:0] to_unit_response_data_i,
    output htax_ready_t                 to_unit_ready_o,
    // To the crossbar: writes and reads of host memory, and errors as answers to reads of the window.
    output htax_port_t                  from_unit_o,
    output logic        [DataWidth-1:0] from_unit_posted_data_o,
    output logic        [DataWidth-1:0] from_unit_response_data_o,
    input  htax_ready_t                 from_unit_ready_i,
    input  logic                        write_done_i,               // pulse: a write has left

    // Packets to the network, by class; see velo_net_pkg.
    output net_stream_t [NumClasses-1:0]                net_out_o,
    output logic        [NumClasses-1:0][DataWidth-1:0] net_out_data_o,   // the beats
    input  logic        [NumClasses-1:0]                net_out_ready_i,  // they are taken
    // Packets from the network, by class.
    input  net_stream_t [NumClasses-1:0]                net_in_i,
    input  logic        [NumClasses-1:0][DataWidth-1:0] net_in_data_i,    // the beats
    output logic        [NumClasses-1:0]                net_in_ready_o,   // they are taken

    // Events, for one cycle each, and state.
    output logic         posted_o,                 // an operation was sent
    output logic   [1:0] completed_o,              // so many ended here
    output logic         served_o,                 // a get or update was served
    output logic         atu_hit_o,                // translation: in the cache
    output logic         atu_miss_o,               // translation: had to be read
    output logic         atu_refused_o,            // translation: none, or no right
    output logic         stalled_o,                // state: a notification queue is full
    output logic   [7:0] stall_ctx_o,              // that of this context
    output logic         requester_error_valid_o,  // a descriptor was refused
    output error_e       requester_error_code_o,   // why
    output logic   [7:0] requester_error_ctx_o,    // of this context
    output logic   [2:0] error_count_o,            // packets refused in this cycle
    output error_e       error_code_o,             // why, of one of them
    output logic   [7:0] error_ctx_o,              // its context
    output logic   [7:0] error_node_o,             // the node that it came from
    output ecc_t   [7:0] ecc_o                     // words of its memories, each as in velo_ram
);

  // A packet's data: whole lines of 64 bytes, if the MTU has room for one beside the command.
  localparam int unsigned RoomBytes = MtuBytes - CommandBytes;
  localparam int unsigned FragmentBytes = RoomBytes < 64 ? RoomBytes / 8 * 8 : RoomBytes / 64 * 64;

  // Places of the parts among those who share. The source writes nothing.
  localparam int unsigned Source = 0;
  localparam int unsigned Serve = 1;
  localparam int unsigned Accept = 2;  // of requests
  localparam int unsigned Finish = 3;  // of responses
  localparam int unsigned Completion = 4;
  localparam int unsigned Late = 5;  // operations that nobody answers

  // ----- packets as the parts have them ---------------------------------------------------------

  logic [NumClasses-1:0] out_valid, out_ready, out_sop, out_eop, in_valid, in_ready, in_sop, in_eop;
  logic [NumClasses-1:0][DataWidth-1:0] out_data, in_data;

  for (genvar c = 0; c < NumClasses; c++) begin : gen_class
    assign net_out_o[c].poison = 1'b0;
    velo_rma_pack #(
        .DataWidth(DataWidth)
    ) u_pack (
        .clk_i,
        .rst_ni,
        .unit_out_valid_i(out_valid[c]),
        .unit_out_ready_o(out_ready[c]),
        .unit_out_sop_i  (out_sop[c]),
        .unit_out_eop_i  (out_eop[c]),
        .unit_out_data_i (out_data[c]),
        .net_out_valid_o (net_out_o[c].valid),
        .net_out_ready_i (net_out_ready_i[c]),
        .net_out_sop_o   (net_out_o[c].sop),
        .net_out_eop_o   (net_out_o[c].eop),
        .net_out_data_o  (net_out_data_o[c]),
        .net_in_valid_i  (net_in_i[c].valid),
        .net_in_ready_o  (net_in_ready_o[c]),
        .net_in_sop_i    (net_in_i[c].sop),
        .net_in_eop_i    (net_in_i[c].eop),
        .net_in_data_i   (net_in_data_i[c]),
        .unit_in_valid_o (in_valid[c]),
        .unit_in_ready_i (in_ready[c]),
        .unit_in_sop_o   (in_sop[c]),
        .unit_in_eop_o   (in_eop[c]),
        .unit_in_data_o  (in_data[c])
    );
  end

  // ----- what the parts share -------------------------------------------------------------------

  logic [3:0] atu_valid, atu_ready, atu_answer_valid, atu_release;
  atu_request_t [3:0] atu_request;
  atu_answer_t atu_answer;

  logic [3:1] posted_valid, posted_ready, posted_eop;
  logic [3:1][ AddrBits-1:0] posted_addr;
  logic [3:1][          9:0] posted_len;
  logic [3:1][DataWidth-1:0] posted_data;
  write_count_t writes_begun, writes_done;

  logic [1:0] read_valid, read_ready, read_response;
  logic [1:0][AddrBits-1:0] read_addr;
  logic [1:0][         9:0] read_len;

  logic [5:0] notify_valid, notify_ready;
  error_e notify_error;
  notify_t [5:0] notify;

  // The reporters: responder, requests, responses, completions, notifications, operations that nobody answers.
  logic [5:0] error_valid;
  error_e [5:0] error_code;
  logic [5:0][7:0] error_ctx, error_node;

  logic answer_known, answer_busy, answer_ended;
  packet_t reply_header;
  rma_command_t reply_command;

  velo_rma_host #(
      .DataWidth (DataWidth),
      .CtxBits   (CtxBits),
      .PageBits  (PageBits),
      .LineBits  (LineBits),
      .NumSources(6),
      .Ecc       (Ecc)
  ) u_host (
      .clk_i,
      .rst_ni,
      .atu_valid_i       (atu_valid),
      .atu_ready_o       (atu_ready),
      .atu_request_i     (atu_request),
      .atu_answer_valid_o(atu_answer_valid),
      .atu_answer_o      (atu_answer),
      .atu_release_i     (atu_release),
      .write_valid_i     (posted_valid),
      .write_ready_o     (posted_ready),
      .write_eop_i       (posted_eop),
      .write_addr_i      (posted_addr),
      .write_len_bytes_i (posted_len),
      .write_data_i      (posted_data),
      .writes_begun_o    (writes_begun),
      .writes_done_o     (writes_done),
      .read_valid_i      (read_valid),
      .read_ready_o      (read_ready),
      .read_addr_i       (read_addr),
      .read_len_bytes_i  (read_len),
      .read_response_o   (read_response),
      .notify_valid_i    (notify_valid),
      .notify_ready_o    (notify_ready),
      .notify_i          (notify),
      .notify_error_o    (notify_error),
      .posted_valid_o    (from_unit_o.posted.valid),
      .posted_ready_i    (from_unit_ready_i.posted),
      .posted_eop_o      (from_unit_o.posted.eop),
      .posted_header_o   (from_unit_o.posted.header),
      .posted_data_o     (from_unit_posted_data_o),
      .nonposted_valid_o (from_unit_o.nonposted.valid),
      .nonposted_ready_i (from_unit_ready_i.nonposted),
      .nonposted_header_o(from_unit_o.nonposted.header),
      .response_valid_i  (to_unit_i.response.valid),
      .response_eop_i    (to_unit_i.response.eop),
      .response_tag_i    (to_unit_i.response.header.tag),
      .response_error_i  (to_unit_i.response.header.error),
      .response_data_i   (to_unit_response_data_i),
      .hit_o             (atu_hit_o),
      .miss_o            (atu_miss_o),
      .refused_o         (atu_refused_o),
      .error_valid_o     (error_valid[4]),
      .error_code_o      (error_code[4]),
      .error_ctx_o       (error_ctx[4]),
      .ecc_o             (ecc_o[1:0]),
      .table_enable_i,
      .table_base_i,
      .table_bits_i,
      .invalidate_valid_i,
      .invalidate_page_i,
      .invalidating_o,
      .watchdog_enable_i,
      .watchdog_cycles_i,
      .queue_valid_i,
      .queue_ready_o,
      .queue_ctx_i,
      .queue_enabled_i,
      .queue_base_i,
      .queue_last_entry_i,
      .read_pointer_valid_i,
      .read_pointer_ctx_i,
      .read_pointer_i,
      .write_done_i,
      .stalled_o,
      .stall_ctx_o
  );
  assign error_node[4] = node_id_i;
  assign to_unit_ready_o.response = 1'b1;

  // ----- requests of our own --------------------------------------------------------------------

  window_t window;
  assign window = window_t'({{(64 - AddrBits) {1'b0}}, to_unit_i.posted.header.addr});

  velo_rma_source #(
      .DataWidth    (DataWidth),
      .FragmentBytes(FragmentBytes),
      .Ecc          (Ecc)
  ) u_source (
      .clk_i,
      .rst_ni,
      .way_node_o,
      .way_none_i,
      .answer_header_i      (reply_header),
      .answer_command_i     (reply_command),
      .answer_known_o       (answer_known),
      .answer_busy_i        (answer_busy),
      .answer_ended_i       (answer_ended),
      .write_valid_i        (to_unit_i.posted.valid),
      .write_ready_o        (to_unit_ready_o.posted),
      .write_eop_i          (to_unit_i.posted.eop),
      .write_source_i       (window_source(window)),
      .write_at_start_i     (window.target[AddressPageBits-1:0] == '0),
      .write_len_bytes_i    (to_unit_i.posted.header.len_bytes),
      .write_data_i         (to_unit_posted_data_i),
      .atu_valid_o          (atu_valid[Source]),
      .atu_ready_i          (atu_ready[Source]),
      .atu_request_o        (atu_request[Source]),
      .atu_answer_valid_i   (atu_answer_valid[Source]),
      .atu_answer_i         (atu_answer),
      .atu_release_o        (atu_release[Source]),
      .nonposted_valid_o    (read_valid[Source]),
      .nonposted_ready_i    (read_ready[Source]),
      .nonposted_addr_o     (read_addr[Source]),
      .nonposted_len_bytes_o(read_len[Source]),
      .response_valid_i     (read_response[Source]),
      .response_eop_i       (to_unit_i.response.eop),
      .response_error_i     (to_unit_i.response.header.error),
      .response_data_i      (to_unit_response_data_i),
      .net_valid_o          (out_valid[0]),
      .net_ready_i          (out_ready[0]),
      .net_sop_o            (out_sop[0]),
      .net_eop_o            (out_eop[0]),
      .net_data_o           (out_data[0]),
      .notify_valid_o       (notify_valid[Source]),
      .notify_ready_i       (notify_ready[Source]),
      .notify_o             (notify[Source]),
      .late_valid_o         (notify_valid[Late]),
      .late_ready_i         (notify_ready[Late]),
      .late_notify_o        (notify[Late]),
      .late_error_valid_o   (error_valid[Late]),
      .late_error_ctx_o     (error_ctx[Late]),
      .late_error_node_o    (error_node[Late]),
      .error_valid_o        (requester_error_valid_o),
      .error_code_o         (requester_error_code_o),
      .error_ctx_o          (requester_error_ctx_o),
      .ecc_o                (ecc_o[3:2]),
      .node_id_i,
      .answer_enable_i,
      .answer_cycles_i,
      .posted_o
  );

  assign error_code[Late] = ErrorLost;

  // ----- requests of others ---------------------------------------------------------------------

  logic [1:0] completed;

  velo_rma_target #(
      .DataWidth    (DataWidth),
      .MtuBytes     (MtuBytes),
      .FragmentBytes(FragmentBytes),
      .Ecc          (Ecc)
  ) u_target (
      .clk_i,
      .rst_ni,
      .writes_begun_i    (writes_begun),
      .writes_done_i     (writes_done),
      .in_valid_i        (in_valid[0]),
      .in_ready_o        (in_ready[0]),
      .in_sop_i          (in_sop[0]),
      .in_eop_i          (in_eop[0]),
      .in_data_i         (in_data[0]),
      .out_valid_o       (out_valid[2:1]),
      .out_ready_i       (out_ready[2:1]),
      .out_sop_o         (out_sop[2:1]),
      .out_eop_o         (out_eop[2:1]),
      .out_data_o        (out_data[2:1]),
      .atu_valid_o       (atu_valid[Accept:Serve]),
      .atu_ready_i       (atu_ready[Accept:Serve]),
      .atu_request_o     (atu_request[Accept:Serve]),
      .atu_answer_valid_i(atu_answer_valid[Accept:Serve]),
      .atu_answer_i      (atu_answer),
      .atu_release_o     (atu_release[Accept:Serve]),
      .posted_valid_o    (posted_valid[Accept:Serve]),
      .posted_ready_i    (posted_ready[Accept:Serve]),
      .posted_eop_o      (posted_eop[Accept:Serve]),
      .posted_addr_o     (posted_addr[Accept:Serve]),
      .posted_len_bytes_o(posted_len[Accept:Serve]),
      .posted_data_o     (posted_data[Accept:Serve]),
      .read_valid_o      (read_valid[Serve]),
      .read_ready_i      (read_ready[Serve]),
      .read_addr_o       (read_addr[Serve]),
      .read_len_bytes_o  (read_len[Serve]),
      .response_valid_i  (read_response[Serve]),
      .response_eop_i    (to_unit_i.response.eop),
      .response_error_i  (to_unit_i.response.header.error),
      .response_data_i   (to_unit_response_data_i),
      .notify_valid_o    (notify_valid[Accept:Serve]),
      .notify_ready_i    (notify_ready[Accept:Serve]),
      .notify_error_i    (notify_error),
      .notify_o          (notify[Accept:Serve]),
      .completed_o       (completed[0]),
      .error_valid_o     (error_valid[1:0]),
      .error_code_o      (error_code[1:0]),
      .error_ctx_o       (error_ctx[1:0]),
      .error_node_o      (error_node[1:0]),
      .ecc_o             (ecc_o[6:4]),
      .node_id_i,
      .served_o
  );

  // ----- answers to our requests ----------------------------------------------------------------

  velo_rma_finish #(
      .DataWidth(DataWidth),
      .MtuBytes (MtuBytes),
      .Ecc      (Ecc)
  ) u_finish (
      .clk_i,
      .rst_ni,
      .answer_header_o   (reply_header),
      .answer_command_o  (reply_command),
      .answer_known_i    (answer_known),
      .answer_busy_o     (answer_busy),
      .answer_ended_o    (answer_ended),
      .in_valid_i        (in_valid[2:1]),
      .in_ready_o        (in_ready[2:1]),
      .in_sop_i          (in_sop[2:1]),
      .in_eop_i          (in_eop[2:1]),
      .in_data_i         (in_data[2:1]),
      .atu_valid_o       (atu_valid[Finish]),
      .atu_ready_i       (atu_ready[Finish]),
      .atu_request_o     (atu_request[Finish]),
      .atu_answer_valid_i(atu_answer_valid[Finish]),
      .atu_answer_i      (atu_answer),
      .atu_release_o     (atu_release[Finish]),
      .posted_valid_o    (posted_valid[Finish]),
      .posted_ready_i    (posted_ready[Finish]),
      .posted_eop_o      (posted_eop[Finish]),
      .posted_addr_o     (posted_addr[Finish]),
      .posted_len_bytes_o(posted_len[Finish]),
      .posted_data_o     (posted_data[Finish]),
      .notify_valid_o    (notify_valid[Completion:Finish]),
      .notify_ready_i    (notify_ready[Completion:Finish]),
      .notify_error_i    (notify_error),
      .notify_o          (notify[Completion:Finish]),
      .completed_o       (completed[1]),
      .error_valid_o     (error_valid[3:2]),
      .error_code_o      (error_code[3:2]),
      .error_ctx_o       (error_ctx[3:2]),
      .error_node_o      (error_node[3:2]),
      .ecc_o             (ecc_o[7]),
      .node_id_i
  );

  // ----- reads of the window: there is nothing to read ------------------------------------------

  logic query_q;
  htax_header_t query_header_q;
  assign to_unit_ready_o.nonposted = !query_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) query_q <= 1'b0;
    else if (!query_q) query_q <= to_unit_i.nonposted.valid;
    else if (from_unit_ready_i.response) query_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (!query_q) begin
      query_header_q       <= to_unit_i.nonposted.header;
      query_header_q.error <= 1'b1;
    end
  end
  assign from_unit_o.response.valid  = query_q;
  assign from_unit_o.response.eop    = 1'b1;
  assign from_unit_o.response.header = query_header_q;
  assign from_unit_response_data_o   = '0;

  // ----- reports --------------------------------------------------------------------------------

  // The two classes may each complete one in a cycle.
  assign completed_o = {1'b0, completed[0]} + {1'b0, completed[1]};

  always_comb begin
    error_count_o = '0;
    error_code_o  = ErrorNone;
    error_ctx_o   = '0;
    error_node_o  = '0;
    for (int unsigned e = 0; e < 6; e++) begin
      if (error_valid[e]) begin
        error_count_o = error_count_o + 3'd1;
        error_code_o  = error_code[e];
        error_ctx_o   = error_ctx[e];
        error_node_o  = error_node[e];
      end
    end
  end

  logic unused;
  assign unused = ^{to_unit_i.posted.header, window, to_unit_i.response.header};

  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {
                     from_unit_o.response.valid, from_unit_o.posted.valid,
                     from_unit_o.nonposted.valid, net_out_o[2].valid, net_out_o[1].valid,
                     net_out_o[0].valid, posted_o, completed_o, served_o, requester_error_valid_o,
                     error_count_o})

endmodule
