// SPDX-License-Identifier: Apache-2.0
//
// The RMA unit in its place of the node: its settings from and its reports to the register file.
//
// Streams of crossbar and network as in velo_rma, settings and reports as in velo_regfile_pkg. Errors:
// those of velo_rma, which the register file counts; ErrorNetwork for a descriptor that found no room in the
// time that `access_watchdog_i` allows (velo_store_guard). A read of memory that is not answered in that
// time ends with ErrorHost (velo_read_guard). The unit is as wide as the path.

module velo_rma_slot
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import htax_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits = 8,
    parameter int unsigned MtuBytes = 512,
    parameter bit Ecc = 1'b0,
    localparam int unsigned NumClasses = 3
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic         [7:0] node_id_i,
    input  watchdog_t          access_watchdog_i,
    input  rma_setting_t       setting_i,
    output rma_report_t        report_o,
    output logic               given_up_o,         // a descriptor, for one cycle
    output logic               unanswered_o,       // a read of host memory, for one cycle

    input  logic                         posted_in_valid_i,
    output logic                         posted_in_ready_o,
    input  logic                         posted_in_eop_i,
    input  htax_header_t                 posted_in_header_i,
    input  logic         [DataWidth-1:0] posted_in_data_i,
    input  logic                         nonposted_in_valid_i,
    output logic                         nonposted_in_ready_o,
    input  htax_header_t                 nonposted_in_header_i,
    output logic                         response_out_valid_o,
    input  logic                         response_out_ready_i,
    output logic                         response_out_eop_o,
    output htax_header_t                 response_out_header_o,
    output logic         [DataWidth-1:0] response_out_data_o,

    output logic                         posted_out_valid_o,
    input  logic                         posted_out_ready_i,
    output logic                         posted_out_eop_o,
    output htax_header_t                 posted_out_header_o,
    output logic         [DataWidth-1:0] posted_out_data_o,
    input  logic                         write_done_i,
    output logic                         nonposted_out_valid_o,
    input  logic                         nonposted_out_ready_i,
    output htax_header_t                 nonposted_out_header_o,
    input  logic                         response_in_valid_i,
    output logic                         response_in_ready_o,
    input  logic                         response_in_eop_i,
    input  htax_header_t                 response_in_header_i,
    input  logic         [DataWidth-1:0] response_in_data_i,

    output logic [NumClasses-1:0]                net_out_valid_o,
    input  logic [NumClasses-1:0]                net_out_ready_i,
    output logic [NumClasses-1:0]                net_out_sop_o,
    output logic [NumClasses-1:0]                net_out_eop_o,
    output logic [NumClasses-1:0][DataWidth-1:0] net_out_data_o,
    input  logic [NumClasses-1:0]                net_in_valid_i,
    output logic [NumClasses-1:0]                net_in_ready_o,
    input  logic [NumClasses-1:0]                net_in_sop_i,
    input  logic [NumClasses-1:0]                net_in_eop_i,
    input  logic [NumClasses-1:0][DataWidth-1:0] net_in_data_i
);

  // The unit's side of the guards.
  logic guarded_valid, guarded_ready, descriptor_given_up, unit_refused;
  logic ask_valid, ask_ready, got_valid, got_ready, got_eop;
  htax_header_t ask_header, got_header;
  error_e unit_refused_code;
  logic [7:0] unit_refused_source;
  window_t window;

  logic unused_nonposted_eop;

  velo_store_guard u_store_guard (
      .clk_i      (clk_i),
      .rst_ni     (rst_ni),
      .watchdog_i (access_watchdog_i),
      .in_valid_i (posted_in_valid_i),
      .in_ready_o (posted_in_ready_o),
      .in_eop_i   (posted_in_eop_i),
      .out_valid_o(guarded_valid),
      .out_ready_i(guarded_ready),
      .given_up_o (descriptor_given_up)
  );

  // A descriptor that is given up is a refused one, too.
  assign window = window_t'({{(64 - AddrBits) {1'b0}}, posted_in_header_i.addr});
  assign given_up_o = descriptor_given_up;
  assign report_o.refused = unit_refused || descriptor_given_up;
  assign report_o.refused_code = descriptor_given_up ? ErrorNetwork : unit_refused_code;
  assign report_o.refused_source = descriptor_given_up ? window_source(
      window
  ) : unit_refused_source;

  velo_read_guard #(
      .NumTags(3)
  ) u_read_guard (
      .clk_i               (clk_i),
      .rst_ni              (rst_ni),
      .watchdog_i          (access_watchdog_i),
      .unanswered_o        (unanswered_o),
      .unit_read_valid_i   (ask_valid),
      .unit_read_ready_o   (ask_ready),
      .unit_read_header_i  (ask_header),
      .host_read_valid_o   (nonposted_out_valid_o),
      .host_read_ready_i   (nonposted_out_ready_i),
      .host_read_header_o  (nonposted_out_header_o),
      .host_answer_valid_i (response_in_valid_i),
      .host_answer_ready_o (response_in_ready_o),
      .host_answer_eop_i   (response_in_eop_i),
      .host_answer_header_i(response_in_header_i),
      .unit_answer_valid_o (got_valid),
      .unit_answer_ready_i (got_ready),
      .unit_answer_eop_o   (got_eop),
      .unit_answer_header_o(got_header)
  );

  ecc_t [6:0] ecc;
  assign report_o.ecc = ecc_count(64'(ecc));

  velo_rma #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits),
      .MtuBytes (MtuBytes),
      .Ecc      (Ecc)
  ) u_rma (
      .clk_i,
      .rst_ni,
      .posted_in_valid_i      (guarded_valid),
      .posted_in_ready_o      (guarded_ready),
      .posted_in_eop_i        (posted_in_eop_i),
      .posted_in_data_i       (posted_in_data_i),
      .response_out_valid_o   (response_out_valid_o),
      .response_out_ready_i   (response_out_ready_i),
      .response_out_eop_o     (response_out_eop_o),
      .response_out_data_o    (response_out_data_o),
      .posted_out_valid_o     (posted_out_valid_o),
      .posted_out_ready_i     (posted_out_ready_i),
      .posted_out_eop_o       (posted_out_eop_o),
      .posted_out_data_o      (posted_out_data_o),
      .nonposted_out_valid_o  (ask_valid),
      .nonposted_out_ready_i  (ask_ready),
      .nonposted_out_header_o (ask_header),
      .response_in_valid_i    (got_valid),
      .response_in_ready_o    (got_ready),
      .response_in_eop_i      (got_eop),
      .response_in_header_i   (got_header),
      .response_in_data_i     (response_in_data_i),
      .net_out_valid_o        (net_out_valid_o),
      .net_out_ready_i        (net_out_ready_i),
      .net_out_sop_o          (net_out_sop_o),
      .net_out_eop_o          (net_out_eop_o),
      .net_out_data_o         (net_out_data_o),
      .net_in_valid_i         (net_in_valid_i),
      .net_in_ready_o         (net_in_ready_o),
      .net_in_sop_i           (net_in_sop_i),
      .net_in_eop_i           (net_in_eop_i),
      .net_in_data_i          (net_in_data_i),
      .watchdog_enable_i      (setting_i.watchdog_enable),
      .watchdog_cycles_i      (setting_i.watchdog_cycles),
      .table_enable_i         (setting_i.table_enable),
      .table_base_i           ({setting_i.table_base, 9'b0}),
      .table_bits_i           (setting_i.table_bits),
      .invalidate_valid_i     (setting_i.invalidate),
      .invalidate_page_i      (setting_i.invalidate_page),
      .invalidating_o         (report_o.invalidating),
      .queue_valid_i          (setting_i.queue_valid),
      .queue_ready_o          (report_o.queue_ready),
      .queue_ctx_i            (CtxBits'(setting_i.queue_ctx)),
      .queue_enabled_i        (setting_i.queue_enabled),
      .queue_base_i           (setting_i.queue_base),
      .queue_last_entry_i     (setting_i.queue_last_entry),
      .read_pointer_valid_i   (setting_i.read_pointer_valid),
      .read_pointer_ctx_i     (CtxBits'(setting_i.read_pointer_ctx)),
      .read_pointer_i         (setting_i.read_pointer),
      .nonposted_in_eop_i     (1'b1),
      .nonposted_out_eop_o    (unused_nonposted_eop),
      .posted_o               (report_o.posted),
      .completed_o            (report_o.completed),
      .served_o               (report_o.served),
      .atu_hit_o              (report_o.atu_hit),
      .atu_miss_o             (report_o.atu_miss),
      .atu_refused_o          (report_o.atu_refused),
      .stalled_o              (report_o.stalled),
      .stall_ctx_o            (report_o.stall_ctx),
      .requester_error_valid_o(unit_refused),
      .requester_error_code_o (unit_refused_code),
      .requester_error_ctx_o  (unit_refused_source),
      .error_count_o          (report_o.errors),
      .error_code_o           (report_o.error_code),
      .error_ctx_o            (report_o.error_ctx),
      .error_node_o           (report_o.error_node),
      .ecc_o                  (ecc),
      .node_id_i,
      .posted_in_header_i,
      .nonposted_in_valid_i,
      .nonposted_in_ready_o,
      .nonposted_in_header_i,
      .response_out_header_o,
      .posted_out_header_o,
      .write_done_i
  );

  assign report_o.descriptors_wait = posted_in_valid_i && !posted_in_ready_o;

  logic unused;
  assign unused = ^window;

endmodule
