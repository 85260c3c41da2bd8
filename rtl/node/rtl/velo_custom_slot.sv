// SPDX-License-Identifier: Apache-2.0
//
// The slot for a custom functional unit: what such a unit is given of the node, and the unit in it.
//
// Streams of the crossbar (posted writes and reads of its part of the window, DMA writes and reads of
// host memory) and of the network (0 requests, 1 responses; packets of kind custom), as in velo_gsm,
// which is the unit here. To build another one in, name it here. It must take responses whatever
// else it waits for, and put out only packets of kind custom that it will finish.
// Occupied = 0: nothing is sent here, since the crossbar and the network have no way to it.
//
// Source: case-for-fpga, section 3 (exchangeable functional units).

module velo_custom_slot
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter bit          Occupied  = 1'b1,
    parameter int unsigned HostPort  = 0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [ 7:0] node_id_i,
    input  logic [63:0] setting_i,
    output logic [63:0] status_o,

    // From the host: posted writes and reads, and the reads' answers.
    input  logic                         store_valid_i,
    output logic                         store_ready_o,
    input  logic                         store_eop_i,
    input  htax_header_t                 store_header_i,
    input  logic         [DataWidth-1:0] store_data_i,
    input  logic                         load_valid_i,
    output logic                         load_ready_o,
    input  htax_header_t                 load_header_i,
    output logic                         answer_valid_o,
    input  logic                         answer_ready_i,
    output logic                         answer_eop_o,
    output htax_header_t                 answer_header_o,
    output logic         [DataWidth-1:0] answer_data_o,

    // To host memory: posted writes, reads, and what was read.
    output logic                         write_valid_o,
    input  logic                         write_ready_i,
    output logic                         write_eop_o,
    output htax_header_t                 write_header_o,
    output logic         [DataWidth-1:0] write_data_o,
    output logic                         read_valid_o,
    input  logic                         read_ready_i,
    output htax_header_t                 read_header_o,
    input  logic                         memory_valid_i,
    output logic                         memory_ready_o,
    input  logic                         memory_eop_i,
    input  htax_header_t                 memory_header_i,
    input  logic         [DataWidth-1:0] memory_data_i,

    output logic [1:0]                net_out_valid_o,
    input  logic [1:0]                net_out_ready_i,
    output logic [1:0]                net_out_sop_o,
    output logic [1:0]                net_out_eop_o,
    output logic [1:0][DataWidth-1:0] net_out_data_o,
    input  logic [1:0]                net_in_valid_i,
    output logic [1:0]                net_in_ready_o,
    input  logic [1:0]                net_in_eop_i,
    input  logic [1:0][DataWidth-1:0] net_in_data_i
);

  if (Occupied) begin : gen_unit
    velo_gsm #(
        .DataWidth(DataWidth),
        .HostPort (HostPort)
    ) u_unit (
        .*
    );
  end else begin : gen_empty
    assign store_ready_o = '1;
    assign load_ready_o = '1;
    assign memory_ready_o = '1;
    assign net_in_ready_o = '1;
    assign status_o = '0;
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
    assign unused = ^{node_id_i, setting_i, store_valid_i, store_eop_i, store_header_i,
                      store_data_i, load_valid_i, load_header_i,
                      answer_ready_i, write_ready_i,
                      read_ready_i, memory_valid_i, memory_eop_i,
                      memory_header_i, memory_data_i, net_out_ready_i,
                      net_in_valid_i, net_in_eop_i, net_in_data_i};
  end

endmodule
