// SPDX-License-Identifier: Apache-2.0
//
// The RMA unit in its place of the node: its settings from and its reports to the register file.
//
// Streams of crossbar and network as in velo_rma, settings and reports as in velo_regfile_pkg. Errors:
// those of velo_rma, which the register file counts.

module velo_rma_slot
  import htax_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits = 8,
    parameter int unsigned MtuBytes = 512,
    localparam int unsigned NumClasses = 3
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic         [ 7:0] node_id_i,
    input  logic                watchdog_enable_i,
    input  logic         [19:0] watchdog_cycles_i,
    input  rma_setting_t        setting_i,
    output rma_report_t         report_o,

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

  logic unused_nonposted_eop;

  velo_rma #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits),
      .MtuBytes (MtuBytes)
  ) u_rma (
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
      .requester_error_valid_o(report_o.refused),
      .requester_error_code_o (report_o.refused_code),
      .requester_error_ctx_o  (report_o.refused_source),
      .error_count_o          (report_o.errors),
      .error_code_o           (report_o.error_code),
      .error_ctx_o            (report_o.error_ctx),
      .error_node_o           (report_o.error_node),
      .*
  );

  assign report_o.descriptors_wait = posted_in_valid_i && !posted_in_ready_o;

endmodule
