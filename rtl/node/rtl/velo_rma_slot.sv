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
  import velo_net_pkg::*;
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
    output logic         [7:0] way_node_o,         // see velo_rma
    input  logic               way_none_i,
    input  watchdog_t          access_watchdog_i,
    input  rma_setting_t       setting_i,
    output rma_report_t        report_o,
    output logic               given_up_o,         // a descriptor, for one cycle
    output logic               unanswered_o,       // a read of host memory, for one cycle

    // Port of the crossbar, as in velo_rma.
    input  htax_port_t                  to_unit_i,
    input  logic        [DataWidth-1:0] to_unit_posted_data_i,
    input  logic        [DataWidth-1:0] to_unit_response_data_i,
    output htax_ready_t                 to_unit_ready_o,
    output htax_port_t                  from_unit_o,
    output logic        [DataWidth-1:0] from_unit_posted_data_o,
    output logic        [DataWidth-1:0] from_unit_response_data_o,
    input  htax_ready_t                 from_unit_ready_i,
    input  logic                        write_done_i,               // pulse: a write has left

    // Packets to and from the network, by class; see velo_net_pkg.
    output net_stream_t [NumClasses-1:0]                net_out_o,
    output logic        [NumClasses-1:0][DataWidth-1:0] net_out_data_o,   // the beats
    input  logic        [NumClasses-1:0]                net_out_ready_i,  // they are taken
    input  net_stream_t [NumClasses-1:0]                net_in_i,
    input  logic        [NumClasses-1:0][DataWidth-1:0] net_in_data_i,    // the beats
    output logic        [NumClasses-1:0]                net_in_ready_o    // they are taken
);

  // The unit's side of the guards.
  htax_port_t to_unit, from_unit;
  htax_ready_t to_unit_ready, from_unit_ready;
  logic descriptor_given_up, unit_refused;
  error_e unit_refused_code;
  logic [7:0] unit_refused_source;
  window_t window;

  velo_store_guard u_store_guard (
      .clk_i      (clk_i),
      .rst_ni     (rst_ni),
      .watchdog_i (access_watchdog_i),
      .in_valid_i (to_unit_i.posted.valid),
      .in_ready_o (to_unit_ready_o.posted),
      .in_eop_i   (to_unit_i.posted.eop),
      .out_valid_o(to_unit.posted.valid),
      .out_ready_i(to_unit_ready.posted),
      .given_up_o (descriptor_given_up)
  );

  // A descriptor that is given up is a refused one, too.
  assign window = window_t'({{(64 - AddrBits) {1'b0}}, to_unit_i.posted.header.addr});
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
      .unit_read_valid_i   (from_unit.nonposted.valid),
      .unit_read_ready_o   (from_unit_ready.nonposted),
      .unit_read_header_i  (from_unit.nonposted.header),
      .host_read_valid_o   (from_unit_o.nonposted.valid),
      .host_read_ready_i   (from_unit_ready_i.nonposted),
      .host_read_header_o  (from_unit_o.nonposted.header),
      .host_answer_valid_i (to_unit_i.response.valid),
      .host_answer_ready_o (to_unit_ready_o.response),
      .host_answer_eop_i   (to_unit_i.response.eop),
      .host_answer_header_i(to_unit_i.response.header),
      .unit_answer_valid_o (to_unit.response.valid),
      .unit_answer_ready_i (to_unit_ready.response),
      .unit_answer_eop_o   (to_unit.response.eop),
      .unit_answer_header_o(to_unit.response.header)
  );

  // All else goes past them.
  assign to_unit.posted.eop = to_unit_i.posted.eop;
  assign to_unit.posted.header = to_unit_i.posted.header;
  assign to_unit.nonposted = to_unit_i.nonposted;
  assign to_unit_ready_o.nonposted = to_unit_ready.nonposted;
  assign from_unit_o.posted = from_unit.posted;
  assign from_unit_o.response = from_unit.response;
  assign from_unit_ready.posted = from_unit_ready_i.posted;
  assign from_unit_ready.response = from_unit_ready_i.response;

  ecc_t [7:0] ecc;
  assign report_o.ecc = ecc_count(64'(ecc));

  velo_rma #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits),
      .MtuBytes (MtuBytes),
      .Ecc      (Ecc)
  ) u_rma (
      .clk_i,
      .rst_ni,
      .to_unit_i              (to_unit),
      .to_unit_posted_data_i,
      .to_unit_response_data_i,
      .to_unit_ready_o        (to_unit_ready),
      .from_unit_o            (from_unit),
      .from_unit_posted_data_o,
      .from_unit_response_data_o,
      .from_unit_ready_i      (from_unit_ready),
      .write_done_i,
      .net_out_o,
      .net_out_data_o,
      .net_out_ready_i,
      .net_in_i,
      .net_in_data_i,
      .net_in_ready_o,
      .answer_enable_i        (setting_i.answer_enable),
      .answer_cycles_i        (setting_i.answer_cycles),
      .way_node_o,
      .way_none_i,
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
      .node_id_i
  );

  assign report_o.descriptors_wait = to_unit_i.posted.valid && !to_unit_ready_o.posted;

  logic unused;
  assign unused = ^window;

endmodule
