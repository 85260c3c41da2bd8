// SPDX-License-Identifier: Apache-2.0
//
// The slot for a custom functional unit: what such a unit is given of the node, and the unit in it.
//
// Streams of the crossbar (posted writes and reads of its part of the window, DMA writes and reads of
// host memory) and of the network (0 requests, 1 responses; packets of kind custom), as in velo_gsm,
// which is the unit here, unless DimmnetUnit = 1 puts dimmnet_unit in its place. To build another one in, name it
// here. It must take responses whatever
// else it waits for, and put out only packets of kind custom that it will finish.
// The unit has the whole width of the path. On one of 128 bits a packet's header has a beat of its own.
// A store or load that the unit does not take, or a load that it does not answer, is given up after the time
// that `watchdog_i` allows (velo_store_guard, velo_load_guard), so it holds no processor for ever; a read of memory
// that is not answered ends with an error (velo_read_guard): the unit has `Tags` tags for its reads, one read each.
// Occupied = 0: nothing is sent here, since the crossbar and the network have no way to it.
//
// Source: case-for-fpga, section 3 (exchangeable functional units).

module velo_custom_slot
  import htax_pkg::*;
  import velo_net_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter bit Occupied = 1'b1,
    parameter bit DimmnetUnit = 1'b0,
    parameter int unsigned HostPort = 0,
    parameter bit Multicast = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [ 7:0] node_id_i,  // this node
    input  logic [63:0] setting_i,  // register custom_setting
    output logic [63:0] status_o,   // register custom_status

    // The watchdog of the host's accesses, and what it gave up, for one cycle each.
    input  watchdog_t       watchdog_i,
    output logic      [1:0] given_up_o,   // store, load
    output logic            unanswered_o, // a read of host memory

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

    // Packets of kind custom to the network, requests and responses; see velo_net_pkg.
    output net_stream_t [1:0]                net_out_o,
    output logic        [1:0][DataWidth-1:0] net_out_data_o,   // the beats
    input  logic        [1:0]                net_out_ready_i,  // they are taken
    // The same from the network.
    input  net_stream_t [1:0]                net_in_i,
    input  logic        [1:0][DataWidth-1:0] net_in_data_i,    // the beats
    output logic        [1:0]                net_in_ready_o    // they are taken
);

  if (Occupied) begin : gen_unit
    localparam int unsigned Tags = DimmnetUnit ? 4 : 1;

    // The unit's side of the guards.
    htax_port_t to_unit, from_unit;
    htax_ready_t to_unit_ready, from_unit_ready;
    logic [DataWidth-1:0] answer_data;
    logic unused_stray;

    velo_store_guard u_store_guard (
        .clk_i      (clk_i),
        .rst_ni     (rst_ni),
        .watchdog_i (watchdog_i),
        .in_valid_i (to_unit_i.posted.valid),
        .in_ready_o (to_unit_ready_o.posted),
        .in_eop_i   (to_unit_i.posted.eop),
        .out_valid_o(to_unit.posted.valid),
        .out_ready_i(to_unit_ready.posted),
        .given_up_o (given_up_o[1])
    );
    assign to_unit.posted.eop = to_unit_i.posted.eop;
    assign to_unit.posted.header = to_unit_i.posted.header;
    assign from_unit_o.posted = from_unit.posted;
    assign from_unit_ready.posted = from_unit_ready_i.posted;

    velo_load_guard #(
        .DataWidth(DataWidth),
        .HostPort (HostPort)
    ) u_load_guard (
        .clk_i               (clk_i),
        .rst_ni              (rst_ni),
        .watchdog_i          (watchdog_i),
        .given_up_o          (given_up_o[0]),
        .stray_o             (unused_stray),
        .load_valid_i        (to_unit_i.nonposted.valid),
        .load_ready_o        (to_unit_ready_o.nonposted),
        .load_header_i       (to_unit_i.nonposted.header),
        .unit_load_valid_o   (to_unit.nonposted.valid),
        .unit_load_ready_i   (to_unit_ready.nonposted),
        .unit_answer_valid_i (from_unit.response.valid),
        .unit_answer_ready_o (from_unit_ready.response),
        .unit_answer_eop_i   (from_unit.response.eop),
        .unit_answer_header_i(from_unit.response.header),
        .unit_answer_data_i  (answer_data),
        .answer_valid_o      (from_unit_o.response.valid),
        .answer_ready_i      (from_unit_ready_i.response),
        .answer_eop_o        (from_unit_o.response.eop),
        .answer_header_o     (from_unit_o.response.header),
        .answer_data_o       (from_unit_response_data_o)
    );
    assign to_unit.nonposted.header = to_unit_i.nonposted.header;

    velo_read_guard #(
        .NumTags(Tags)
    ) u_read_guard (
        .clk_i               (clk_i),
        .rst_ni              (rst_ni),
        .watchdog_i          (watchdog_i),
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

    if (DimmnetUnit) begin : gen_dimmnet
      dimmnet_unit #(
          .DataWidth(DataWidth),
          .HostPort (HostPort),
          .Multicast(Multicast)
      ) u_unit (
          .clk_i,
          .rst_ni,
          .node_id_i,
          .setting_i,
          .status_o,
          .to_unit_i                (to_unit),
          .to_unit_posted_data_i,
          .to_unit_response_data_i,
          .to_unit_ready_o          (to_unit_ready),
          .from_unit_o              (from_unit),
          .from_unit_posted_data_o,
          .from_unit_response_data_o(answer_data),
          .from_unit_ready_i        (from_unit_ready),
          .net_out_o,
          .net_out_data_o,
          .net_out_ready_i,
          .net_in_i,
          .net_in_data_i,
          .net_in_ready_o
      );
    end else begin : gen_gsm
      velo_gsm #(
          .DataWidth(DataWidth),
          .HostPort (HostPort)
      ) u_unit (
          .clk_i,
          .rst_ni,
          .node_id_i,
          .setting_i,
          .status_o,
          .to_unit_i                (to_unit),
          .to_unit_posted_data_i,
          .to_unit_response_data_i,
          .to_unit_ready_o          (to_unit_ready),
          .from_unit_o              (from_unit),
          .from_unit_posted_data_o,
          .from_unit_response_data_o(answer_data),
          .from_unit_ready_i        (from_unit_ready),
          .net_out_o,
          .net_out_data_o,
          .net_out_ready_i,
          .net_in_i,
          .net_in_data_i,
          .net_in_ready_o
      );
    end

    logic unused;
    assign unused = unused_stray;
  end else begin : gen_empty
    assign to_unit_ready_o = '1;
    assign net_in_ready_o = '1;
    assign status_o = '0;
    assign given_up_o = '0;
    assign unanswered_o = '0;
    assign from_unit_o = '0;
    assign from_unit_posted_data_o = '0;
    assign from_unit_response_data_o = '0;
    assign net_out_o = '0;
    assign net_out_data_o = '0;
    logic unused;
    assign unused = ^{node_id_i, setting_i, watchdog_i, to_unit_i, to_unit_posted_data_i,
                      to_unit_response_data_i, from_unit_ready_i, net_out_ready_i, net_in_i,
                      net_in_data_i};
  end

endmodule
