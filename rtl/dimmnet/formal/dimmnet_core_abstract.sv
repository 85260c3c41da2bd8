// SPDX-License-Identifier: Apache-2.0
//
// What the proof of CoreLogic as a whole leaves open: these units give anything at any time. Nothing drives their
// outputs, and the prover chooses. Memories and queues may so give words that nobody wrote, lists and walks lead
// anywhere. What the proof takes for granted of them stands in dimmnet_core_props.

module dimmnet_ram #(
    parameter int unsigned Rows = 64,
    localparam int unsigned AddrWidth = $clog2(Rows)
) (
    input  logic                 clk_i,
    input  logic                 we_i,
    input  logic [AddrWidth-1:0] waddr_i,
    input  logic [         15:0] be_i,
    input  logic [        127:0] wdata_i,
    input  logic [AddrWidth-1:0] raddr_i,
    output logic [        127:0] rdata_o
);
endmodule

module velo_fifo #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 4,
    localparam int unsigned AddrWidth = $clog2(Depth)
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             push_valid_i,
    output logic             push_ready_o,
    input  logic [Width-1:0] push_data_i,
    output logic             pop_valid_o,
    input  logic             pop_ready_i,
    output logic [Width-1:0] pop_data_o,
    output logic [AddrWidth:0] count_o
);
endmodule

module dimmnet_intake
  import dimmnet_pkg::*;
(
    input  logic                   clk_i,
    input  logic                   rst_ni,
    input  logic                   rx_valid_i,
    output logic                   rx_ready_o,
    input  dimmnet_line_e          rx_ident_i,
    input  logic            [63:0] rx_line_i,
    output logic                   head_valid_o,
    output dimmnet_packet_t        head_o,
    input  logic                   pop_i,
    input  logic            [ 5:0] word_i,
    output logic            [63:0] data_o,
    output logic                   received_o,
    output logic                   malformed_o
);
endmodule

module dimmnet_reads
  import dimmnet_pkg::*;
#(
    parameter int unsigned Depth = 8
) (
    input  logic                   clk_i,
    input  logic                   rst_ni,
    input  logic                   valid_i,
    input  logic                   last_i,
    output logic                   ready_o,
    input  dimmnet_packet_t        header_i,
    input  logic            [63:0] data_i,
    output logic                   valid_o,
    output dimmnet_packet_t        header_o,
    input  logic                   pop_i,
    input  logic            [ 5:0] word_i,
    output logic            [63:0] data_o
);
endmodule

module dimmnet_queue
  import dimmnet_core_pkg::*;
#(
    parameter int unsigned Processes = 2,
    parameter int unsigned Depth = 8,
    localparam int unsigned WidBits = $clog2(Processes)
) (
    input  logic                   clk_i,
    input  logic                   rst_ni,
    input  logic   [Processes-1:0] clear_i,
    input  logic                   push_valid_i,
    output logic                   push_ready_o,
    input  logic   [  WidBits-1:0] push_wid_i,
    input  entry_t                 push_entry_i,
    output logic   [Processes-1:0] waiting_o,
    input  logic   [  WidBits-1:0] head_wid_i,
    output entry_t                 head_o,
    input  logic                   pop_i,
    input  logic   [  WidBits-1:0] pop_wid_i
);
endmodule

module dimmnet_list
  import dimmnet_core_pkg::*;
(
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        start_i,
    input  job_t        job_i,
    input  logic        valid_i,
    input  logic [63:0] data_i,
    output logic        done_o,
    output logic        bad_o,
    input  logic [ 5:0] index_i,
    output logic [31:0] offset_o
);
endmodule

module dimmnet_walk
  import dimmnet_core_pkg::*;
(
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               start_i,
    output logic               busy_o,
    input  job_t               job_i,
    output logic        [ 5:0] index_o,
    input  logic        [31:0] offset_i,
    output logic               valid_o,
    input  logic               ready_i,
    output logic signed [39:0] word_o,
    output logic               two_o,
    output logic               last_o
);
endmodule

module dimmnet_bounds #(
    parameter int unsigned CountBits = 20
) (
    input  logic                 clk_i,
    input  logic [         31:0] region_words_i,
    input  logic [         31:0] address_i,
    input  logic [CountBits-1:0] element_words_i,
    input  logic [CountBits-1:0] count_i,
    input  logic [         31:0] step_i,
    output logic                 ok_o
);
endmodule

// verilog_lint: waive module-filename
module dimmnet_divide (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        start_i,
    input  logic [19:0] words_i,
    input  logic [ 5:0] element_i,
    output logic        done_o,
    output logic [19:0] count_o,
    output logic        exact_o
);
endmodule
