// SPDX-License-Identifier: Apache-2.0
//
// Global shared memory: loads and stores of one 64-bit word of another node's memory. The sample unit
// in the slot for custom units; its ports are what the slot offers.
//
// A host's posted write to the unit's window is a store, a read is a load; the window's target names the
// node, its bits below that the byte in that node's segment of 1 MiB. `setting_i` (register custom_setting):
// bit 0 enabled, bits 47:20 where the segment is. Nothing is kept of a load that is under way: the
// host's tag travels with it and comes back. A load does not overtake a store of the same node to the
// same node: both travel in one class, and the crossbar keeps a port's reads behind its writes.
//
// On the way: request class, kind custom: a word with the byte offset, of a store a second with the
// value; response class, kind custom: the value, or no payload for an error.
// Crossbar and network streams as in htax_pkg and velo_net_pkg; network 0 is the request
// class, 1 the response class.
//
// Errors, each counted in `status_o` (bits 7:0 refused here, bits 15:8 packets dropped, both modulo
// 256; bits 24:16 loads whose answer has not come, at most 511): see velo_gsm_requester and velo_gsm_target.
//
// Source: case-for-fpga, section 3 (functional units are exchangeable; shared-memory unit).

module velo_gsm
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_net_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned HostPort  = 0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [ 7:0] node_id_i,
    input  logic [63:0] setting_i,
    output logic [63:0] status_o,

    // From the crossbar: the host's stores and loads, and what was read of host memory; data are beside.
    input  htax_port_t                  to_unit_i,
    input  logic        [DataWidth-1:0] to_unit_posted_data_i,
    input  logic        [DataWidth-1:0] to_unit_response_data_i,
    output htax_ready_t                 to_unit_ready_o,
    // To the crossbar: writes and reads of host memory, and answers to loads.
    output htax_port_t                  from_unit_o,
    output logic        [DataWidth-1:0] from_unit_posted_data_o,
    output logic        [DataWidth-1:0] from_unit_response_data_o,
    input  htax_ready_t                 from_unit_ready_i,

    // Packets to the network, requests and responses; see velo_net_pkg.
    output net_stream_t [1:0]                net_out_o,
    output logic        [1:0][DataWidth-1:0] net_out_data_o,   // the beats
    input  logic        [1:0]                net_out_ready_i,  // they are taken
    // Packets from the network.
    input  net_stream_t [1:0]                net_in_i,
    input  logic        [1:0][DataWidth-1:0] net_in_data_i,    // the beats
    output logic        [1:0]                net_in_ready_o    // they are taken
);

  logic refused, response_dropped, request_dropped, load_sent, load_answered;
  logic [7:0] refused_q, dropped_q;
  logic [8:0] loads_q;  // as many as there are tags can wait

  velo_gsm_requester #(
      .DataWidth(DataWidth),
      .HostPort (HostPort)
  ) u_requester (
      .clk_i,
      .rst_ni,
      .refused_o       (refused),
      .dropped_o       (response_dropped),
      .load_waits_i    (loads_q != '0),
      .load_sent_o     (load_sent),
      .load_answered_o (load_answered),
      .request_valid_o (net_out_o[0].valid),
      .request_ready_i (net_out_ready_i[0]),
      .request_sop_o   (net_out_o[0].sop),
      .request_eop_o   (net_out_o[0].eop),
      .request_data_o  (net_out_data_o[0]),
      .response_valid_i(net_in_i[1].valid),
      .response_ready_o(net_in_ready_o[1]),
      .response_eop_i  (net_in_i[1].eop),
      .response_data_i (net_in_data_i[1]),
      .store_valid_i   (to_unit_i.posted.valid),
      .store_ready_o   (to_unit_ready_o.posted),
      .store_eop_i     (to_unit_i.posted.eop),
      .store_header_i  (to_unit_i.posted.header),
      .store_data_i    (to_unit_posted_data_i),
      .load_valid_i    (to_unit_i.nonposted.valid),
      .load_ready_o    (to_unit_ready_o.nonposted),
      .load_header_i   (to_unit_i.nonposted.header),
      .answer_valid_o  (from_unit_o.response.valid),
      .answer_ready_i  (from_unit_ready_i.response),
      .answer_eop_o    (from_unit_o.response.eop),
      .answer_header_o (from_unit_o.response.header),
      .answer_data_o   (from_unit_response_data_o),
      .node_id_i
  );

  velo_gsm_target #(
      .DataWidth(DataWidth)
  ) u_target (
      .clk_i,
      .rst_ni,
      .enabled_i       (setting_i[0]),
      .segment_i       (setting_i[AddrBits-1:20]),
      .dropped_o       (request_dropped),
      .memory_error_i  (to_unit_i.response.header.error),
      .request_valid_i (net_in_i[0].valid),
      .request_ready_o (net_in_ready_o[0]),
      .request_eop_i   (net_in_i[0].eop),
      .request_data_i  (net_in_data_i[0]),
      .response_valid_o(net_out_o[1].valid),
      .response_ready_i(net_out_ready_i[1]),
      .response_sop_o  (net_out_o[1].sop),
      .response_eop_o  (net_out_o[1].eop),
      .response_data_o (net_out_data_o[1]),
      .write_valid_o   (from_unit_o.posted.valid),
      .write_ready_i   (from_unit_ready_i.posted),
      .write_eop_o     (from_unit_o.posted.eop),
      .write_header_o  (from_unit_o.posted.header),
      .write_data_o    (from_unit_posted_data_o),
      .read_valid_o    (from_unit_o.nonposted.valid),
      .read_ready_i    (from_unit_ready_i.nonposted),
      .read_header_o   (from_unit_o.nonposted.header),
      .memory_valid_i  (to_unit_i.response.valid),
      .memory_ready_o  (to_unit_ready_o.response),
      .memory_eop_i    (to_unit_i.response.eop),
      .memory_data_i   (to_unit_response_data_i),
      .node_id_i
  );

  assign {net_out_o[0].poison, net_out_o[1].poison} = '0;

  assign status_o = {39'b0, loads_q, dropped_q, refused_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      refused_q <= '0;
      dropped_q <= '0;
      loads_q   <= '0;
    end else begin
      refused_q <= refused_q + 8'(refused);
      dropped_q <= dropped_q + 8'(response_dropped) + 8'(request_dropped);
      // A load whose answer was lost is counted until it comes: the count stops rather than wraps.
      if (load_sent && !load_answered && loads_q != '1) loads_q <= loads_q + 9'd1;
      else if (load_answered && !load_sent && loads_q != '0) loads_q <= loads_q - 9'd1;
    end
  end

  logic unused;
  assign unused = ^{to_unit_i.response.header, setting_i, net_in_i};

endmodule
