// SPDX-License-Identifier: Apache-2.0
//
// The slot for a custom functional unit: what such a unit is given of the node, and the unit in it.
//
// Streams of the crossbar (posted writes and reads of its part of the window, DMA writes and reads of
// host memory) and of the network (0 requests, 1 responses; packets of kind custom), as in velo_gsm,
// which is the unit here. To build another one in, name it here. It must take responses whatever
// else it waits for, and put out only packets of kind custom that it will finish.
// The unit has the whole width of the path. On one of 128 bits a packet's header has a beat of its own.
// What the unit does not take, or a load that it does not answer, is given up after the time that
// `watchdog_i` allows (velo_store_guard, velo_load_guard), so it holds no
// processor for ever; a read of memory that is not answered ends with an error (velo_read_guard), so the
// unit has one tag for its reads, 0.
// Occupied = 0: nothing is sent here, since the crossbar and the network have no way to it.
//
// Source: case-for-fpga, section 3 (exchangeable functional units).

module velo_custom_slot
  import htax_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter bit          Occupied  = 1'b1,
    parameter int unsigned HostPort  = 0
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

    // From the host: posted writes and reads, and the reads' answers.
    input  logic                         store_valid_i,    // a beat is offered
    output logic                         store_ready_o,    // it is taken
    input  logic                         store_eop_i,      // it is the last
    input  htax_header_t                 store_header_i,   // holds for the whole store
    input  logic         [DataWidth-1:0] store_data_i,     // the beat
    input  logic                         load_valid_i,     // a load is offered
    output logic                         load_ready_o,     // it is taken
    input  htax_header_t                 load_header_i,    // address, length, tag
    output logic                         answer_valid_o,   // a beat is offered
    input  logic                         answer_ready_i,   // it is taken
    output logic                         answer_eop_o,     // it is the last
    output htax_header_t                 answer_header_o,  // port and tag of the load, error
    output logic         [DataWidth-1:0] answer_data_o,    // the beat

    // To host memory: posted writes, reads, and what was read.
    output logic                         write_valid_o,    // a beat is offered
    input  logic                         write_ready_i,    // it is taken
    output logic                         write_eop_o,      // it is the last
    output htax_header_t                 write_header_o,   // address, length
    output logic         [DataWidth-1:0] write_data_o,     // the beat
    output logic                         read_valid_o,     // a read is offered
    input  logic                         read_ready_i,     // it is taken
    output htax_header_t                 read_header_o,    // address, length; tag 0
    input  logic                         memory_valid_i,   // a beat is offered
    output logic                         memory_ready_o,   // it is taken
    input  logic                         memory_eop_i,     // it is the last
    input  htax_header_t                 memory_header_i,  // error
    input  logic         [DataWidth-1:0] memory_data_i,    // the beat

    // Packets of kind custom to the network, requests and responses.
    output logic [1:0]                net_out_valid_o,  // a beat is offered
    input  logic [1:0]                net_out_ready_i,  // it is taken
    output logic [1:0]                net_out_sop_o,    // it is its packet's first
    output logic [1:0]                net_out_eop_o,    // it is the last
    output logic [1:0][DataWidth-1:0] net_out_data_o,   // the beat
    // The same from the network.
    input  logic [1:0]                net_in_valid_i,   // a beat is offered
    output logic [1:0]                net_in_ready_o,   // it is taken
    input  logic [1:0]                net_in_sop_i,     // it is its packet's first
    input  logic [1:0]                net_in_eop_i,     // it is the last
    input  logic [1:0][DataWidth-1:0] net_in_data_i     // the beat
);

  if (Occupied) begin : gen_unit
    // The unit's side of the guards.
    logic guarded_valid, guarded_ready, load_valid, load_ready, unused_stray;
    logic reply_valid, reply_ready, reply_eop, ask_valid, ask_ready, got_valid, got_ready, got_eop;
    htax_header_t ask_header, got_header;
    htax_header_t reply_header;
    logic [DataWidth-1:0] reply_data;

    velo_store_guard u_store_guard (
        .clk_i      (clk_i),
        .rst_ni     (rst_ni),
        .watchdog_i (watchdog_i),
        .in_valid_i (store_valid_i),
        .in_ready_o (store_ready_o),
        .in_eop_i   (store_eop_i),
        .out_valid_o(guarded_valid),
        .out_ready_i(guarded_ready),
        .given_up_o (given_up_o[1])
    );

    velo_load_guard #(
        .DataWidth(DataWidth),
        .HostPort (HostPort)
    ) u_load_guard (
        .clk_i               (clk_i),
        .rst_ni              (rst_ni),
        .watchdog_i          (watchdog_i),
        .given_up_o          (given_up_o[0]),
        .stray_o             (unused_stray),
        .load_valid_i        (load_valid_i),
        .load_ready_o        (load_ready_o),
        .load_header_i       (load_header_i),
        .unit_load_valid_o   (load_valid),
        .unit_load_ready_i   (load_ready),
        .unit_answer_valid_i (reply_valid),
        .unit_answer_ready_o (reply_ready),
        .unit_answer_eop_i   (reply_eop),
        .unit_answer_header_i(reply_header),
        .unit_answer_data_i  (reply_data),
        .answer_valid_o      (answer_valid_o),
        .answer_ready_i      (answer_ready_i),
        .answer_eop_o        (answer_eop_o),
        .answer_header_o     (answer_header_o),
        .answer_data_o       (answer_data_o)
    );

    velo_read_guard #(
        .NumTags(1)
    ) u_read_guard (
        .clk_i               (clk_i),
        .rst_ni              (rst_ni),
        .watchdog_i          (watchdog_i),
        .unanswered_o        (unanswered_o),
        .unit_read_valid_i   (ask_valid),
        .unit_read_ready_o   (ask_ready),
        .unit_read_header_i  (ask_header),
        .host_read_valid_o   (read_valid_o),
        .host_read_ready_i   (read_ready_i),
        .host_read_header_o  (read_header_o),
        .host_answer_valid_i (memory_valid_i),
        .host_answer_ready_o (memory_ready_o),
        .host_answer_eop_i   (memory_eop_i),
        .host_answer_header_i(memory_header_i),
        .unit_answer_valid_o (got_valid),
        .unit_answer_ready_i (got_ready),
        .unit_answer_eop_o   (got_eop),
        .unit_answer_header_o(got_header)
    );

    velo_gsm #(
        .DataWidth(DataWidth),
        .HostPort (HostPort)
    ) u_unit (
        .clk_i,
        .rst_ni,
        .store_valid_i  (guarded_valid),
        .store_ready_o  (guarded_ready),
        .store_eop_i(store_eop_i),
        .store_data_i(store_data_i),
        .answer_valid_o(reply_valid),
        .answer_ready_i(reply_ready),
        .answer_eop_o(reply_eop),
        .answer_data_o(reply_data),
        .write_valid_o(write_valid_o),
        .write_ready_i(write_ready_i),
        .write_eop_o(write_eop_o),
        .write_data_o(write_data_o),
        .read_valid_o   (ask_valid),
        .read_ready_i   (ask_ready),
        .read_header_o  (ask_header),
        .memory_valid_i (got_valid),
        .memory_ready_o (got_ready),
        .memory_eop_i   (got_eop),
        .memory_header_i(got_header),
        .memory_data_i(memory_data_i),
        .net_out_valid_o(net_out_valid_o),
        .net_out_ready_i(net_out_ready_i),
        .net_out_sop_o(net_out_sop_o),
        .net_out_eop_o(net_out_eop_o),
        .net_out_data_o(net_out_data_o),
        .net_in_valid_i(net_in_valid_i),
        .net_in_ready_o(net_in_ready_o),
        .net_in_eop_i(net_in_eop_i),
        .net_in_data_i(net_in_data_i),
        .node_id_i,
        .setting_i,
        .status_o,
        .store_header_i,
        .load_valid_i   (load_valid),
        .load_ready_o   (load_ready),
        .load_header_i,
        .answer_header_o(reply_header),
        .write_header_o
    );

    logic unused;
    assign unused = ^{net_in_sop_i, unused_stray};
  end else begin : gen_empty
    assign store_ready_o = '1;
    assign load_ready_o = '1;
    assign memory_ready_o = '1;
    assign net_in_ready_o = '1;
    assign status_o = '0;
    assign given_up_o = '0;
    assign unanswered_o = '0;
    assign answer_valid_o = '0;
    assign answer_eop_o = '0;
    assign answer_header_o = '0;
    assign answer_data_o = '0;
    assign write_valid_o = '0;
    assign write_eop_o = '0;
    assign write_header_o = '0;
    assign write_data_o = '0;
    assign read_valid_o = '0;
    assign read_header_o = '0;
    assign net_out_valid_o = '0;
    assign net_out_sop_o = '0;
    assign net_out_eop_o = '0;
    assign net_out_data_o = '0;
    logic unused;
    assign unused = ^{node_id_i, setting_i, watchdog_i, store_valid_i, store_eop_i, store_header_i,
                      store_data_i, load_valid_i, load_header_i,
                      answer_ready_i, write_ready_i,
                      read_ready_i, memory_valid_i, memory_eop_i,
                      memory_header_i, memory_data_i, net_out_ready_i,
                      net_in_valid_i, net_in_sop_i, net_in_eop_i, net_in_data_i};
  end

endmodule
