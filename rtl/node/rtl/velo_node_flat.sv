// SPDX-License-Identifier: Apache-2.0
//
// velo_node with each signal of its host port as a port of its own, for programs that name ports: benches and
// simulator in C++ drive the Verilated model, which shows a struct as bits without names. Wires and nothing
// else. In other hardware take velo_node.
//
// It has all parameters of velo_node. Meaning of the ports: velo_node, velo_host_pkg.

module velo_node_flat
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned CtxBits = 8,
    parameter bit CustomUnit = 1'b1,
    parameter bit DimmnetUnit = 1'b0,  // the custom unit is dimmnet_unit
    parameter bit WholeRequests = 1'b0,
    parameter int unsigned NumVelo = 1,
    parameter int unsigned VeloWidth = DataWidth,
    parameter bit Ecc = 1'b0,  // check bits in the units' memories; see velo_ram
    parameter bit Multicast = 1'b0,  // messages to groups of nodes, see velo_switch
    parameter bit Barrier = 1'b0,  // of groups, see velo_barrier
    parameter bit Congestion = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    // Stores of the host for the units.
    input  logic                 host_write_valid_i,
    output logic                 host_write_ready_o,
    input  logic                 host_write_eop_i,
    input  logic [ AddrBits-1:0] host_write_addr_i,
    input  logic [          9:0] host_write_len_bytes_i,
    input  logic [DataWidth-1:0] host_write_data_i,

    // Its loads, and their answers.
    input  logic                 host_read_valid_i,
    output logic                 host_read_ready_o,
    input  logic [ AddrBits-1:0] host_read_addr_i,
    input  logic [          9:0] host_read_len_bytes_i,
    input  logic [          7:0] host_read_tag_i,
    output logic                 host_answer_valid_o,
    input  logic                 host_answer_ready_i,
    output logic                 host_answer_eop_o,
    output logic                 host_answer_error_o,
    output logic [          7:0] host_answer_tag_o,
    output logic [DataWidth-1:0] host_answer_data_o,

    // Stores to registers.
    input  logic                 control_write_valid_i,
    output logic                 control_write_ready_o,
    input  logic                 control_write_eop_i,
    input  logic [ AddrBits-1:0] control_write_addr_i,
    input  logic [          9:0] control_write_len_bytes_i,
    input  logic [DataWidth-1:0] control_write_data_i,

    // Loads of registers, and their answers.
    input  logic                 control_read_valid_i,
    output logic                 control_read_ready_o,
    input  logic [ AddrBits-1:0] control_read_addr_i,
    input  logic [          9:0] control_read_len_bytes_i,
    input  logic [          7:0] control_read_tag_i,
    output logic                 control_answer_valid_o,
    input  logic                 control_answer_ready_i,
    output logic                 control_answer_eop_o,
    output logic                 control_answer_error_o,
    output logic [          7:0] control_answer_tag_o,
    output logic [DataWidth-1:0] control_answer_data_o,

    // Writes to host memory.
    output logic                 dma_write_valid_o,
    input  logic                 dma_write_ready_i,
    output logic                 dma_write_eop_o,
    output logic [ AddrBits-1:0] dma_write_addr_o,
    output logic [          9:0] dma_write_len_bytes_o,
    output logic [DataWidth-1:0] dma_write_data_o,

    // Reads of host memory, and what was read.
    output logic                 dma_read_valid_o,
    input  logic                 dma_read_ready_i,
    output logic [ AddrBits-1:0] dma_read_addr_o,
    output logic [          9:0] dma_read_len_bytes_o,
    output logic [         11:0] dma_read_tag_o,
    input  logic                 dma_answer_valid_i,
    output logic                 dma_answer_ready_o,
    input  logic                 dma_answer_eop_i,
    input  logic                 dma_answer_error_i,
    input  logic [         11:0] dma_answer_tag_i,
    input  logic [DataWidth-1:0] dma_answer_data_i,

    // See velo_node.
    input  logic [NumLinks-1:0]                phy_up_i,
    input  logic [NumLinks-1:0][          1:0] phy_kind_i,
    input  logic [NumLinks-1:0][DataWidth-1:0] phy_data_i,
    input  logic [NumLinks-1:0]                phy_pause_i,
    output logic [NumLinks-1:0][          1:0] phy_kind_o,
    output logic [NumLinks-1:0][DataWidth-1:0] phy_data_o,

    output logic [7:0] node_id_o
);

  velo_node #(
      .DataWidth(DataWidth),
      .NumLinks(NumLinks),
      .NumVcs(NumVcs),
      .MtuBytes(MtuBytes),
      .CtxBits(CtxBits),
      .CustomUnit(CustomUnit),
      .DimmnetUnit(DimmnetUnit),
      .WholeRequests(WholeRequests),
      .NumVelo(NumVelo),
      .VeloWidth(VeloWidth),
      .Ecc(Ecc),
      .Multicast(Multicast),
      .Barrier(Barrier),
      .Congestion(Congestion)
  ) u_node (
      .clk_i,
      .rst_ni,
      .host_request_i(
      '{
          write_valid: host_write_valid_i,
          write: '{
              eop: host_write_eop_i,
              addr: host_write_addr_i,
              len_bytes: host_write_len_bytes_i
          },
          read_valid: host_read_valid_i,
          read: '{
              addr: host_read_addr_i,
              len_bytes: host_read_len_bytes_i,
              tag: host_read_tag_i
          },
          answer_ready: host_answer_ready_i
      }
      ),
      .host_write_data_i,
      .host_response_o({
        host_write_ready_o,
        host_read_ready_o,
        host_answer_valid_o,
        host_answer_eop_o,
        host_answer_error_o,
        host_answer_tag_o
      }),
      .host_answer_data_o,
      .control_request_i(
      '{
          write_valid: control_write_valid_i,
          write: '{
              eop: control_write_eop_i,
              addr: control_write_addr_i,
              len_bytes: control_write_len_bytes_i
          },
          read_valid: control_read_valid_i,
          read: '{
              addr: control_read_addr_i,
              len_bytes: control_read_len_bytes_i,
              tag: control_read_tag_i
          },
          answer_ready: control_answer_ready_i
      }
      ),
      .control_write_data_i,
      .control_response_o({
        control_write_ready_o,
        control_read_ready_o,
        control_answer_valid_o,
        control_answer_eop_o,
        control_answer_error_o,
        control_answer_tag_o
      }),
      .control_answer_data_o,
      .dma_request_o({
        dma_write_valid_o,
        dma_write_eop_o,
        dma_write_addr_o,
        dma_write_len_bytes_o,
        dma_read_valid_o,
        dma_read_addr_o,
        dma_read_len_bytes_o,
        dma_read_tag_o,
        dma_answer_ready_o
      }),
      .dma_write_data_o,
      .dma_response_i(
      '{
          write_ready: dma_write_ready_i,
          read_ready: dma_read_ready_i,
          answer_valid: dma_answer_valid_i,
          answer: '{eop: dma_answer_eop_i, error: dma_answer_error_i, tag: dma_answer_tag_i}
      }
      ),
      .dma_answer_data_i,
      .phy_up_i,
      .phy_kind_i,
      .phy_data_i,
      .phy_pause_i,
      .phy_kind_o,
      .phy_data_o,
      .node_id_o
  );

endmodule
