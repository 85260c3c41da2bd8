// SPDX-License-Identifier: Apache-2.0
//
// Two nodes with one cable between their links 0, for node_bench.cc: a PHY without delay.
//
// `stage_o` shows the places that a message passes, in order, each bit while a first beat is there;
// the bench takes the cycle in which each is seen first.

module node_pair
  import htax_pkg::*;
  import velo_link_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks  = 6
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [1:0]                host_write_valid_i,
    output logic [1:0]                host_write_ready_o,
    input  logic [1:0]                host_write_eop_i,
    input  logic [1:0][ AddrBits-1:0] host_write_addr_i,
    input  logic [1:0][          9:0] host_write_len_bytes_i,
    input  logic [1:0][DataWidth-1:0] host_write_data_i,

    input  logic [1:0]                host_read_valid_i,
    output logic [1:0]                host_read_ready_o,
    input  logic [1:0][ AddrBits-1:0] host_read_addr_i,
    output logic [1:0]                host_answer_valid_o,
    output logic [1:0]                host_answer_eop_o,
    output logic [1:0]                host_answer_error_o,
    output logic [1:0][DataWidth-1:0] host_answer_data_o,

    input  logic [1:0]                control_write_valid_i,
    output logic [1:0]                control_write_ready_o,
    input  logic [1:0]                control_write_eop_i,
    input  logic [1:0][ AddrBits-1:0] control_write_addr_i,
    input  logic [1:0][          9:0] control_write_len_bytes_i,
    input  logic [1:0][DataWidth-1:0] control_write_data_i,

    input  logic [1:0]                control_read_valid_i,
    output logic [1:0]                control_read_ready_o,
    input  logic [1:0][ AddrBits-1:0] control_read_addr_i,
    output logic [1:0]                control_answer_valid_o,
    output logic [1:0]                control_answer_eop_o,
    output logic [1:0]                control_answer_error_o,
    output logic [1:0][DataWidth-1:0] control_answer_data_o,

    output logic [1:0]                dma_write_valid_o,
    input  logic [1:0]                dma_write_ready_i,
    output logic [1:0]                dma_write_eop_o,
    output logic [1:0][ AddrBits-1:0] dma_write_addr_o,
    output logic [1:0][          9:0] dma_write_len_bytes_o,
    output logic [1:0][DataWidth-1:0] dma_write_data_o,

    output logic [1:0]                dma_read_valid_o,
    input  logic [1:0]                dma_read_ready_i,
    output logic [1:0][ AddrBits-1:0] dma_read_addr_o,
    output logic [1:0][          9:0] dma_read_len_bytes_o,
    output logic [1:0][         11:0] dma_read_tag_o,
    input  logic [1:0]                dma_answer_valid_i,
    output logic [1:0]                dma_answer_ready_o,
    input  logic [1:0]                dma_answer_eop_i,
    input  logic [1:0][         11:0] dma_answer_tag_i,
    input  logic [1:0][DataWidth-1:0] dma_answer_data_i,

    output logic [ 3:0] stuck_o,  // of each node: the ring is full, the network takes nothing
    output logic [10:0] stage_o
);

  logic [1:0][NumLinks-1:0][1:0] kind_out, kind_in;
  logic [1:0][NumLinks-1:0][DataWidth-1:0] data_out, data_in;

  for (genvar n = 0; n < 2; n++) begin : gen_node
    logic [7:0] unused_node_id, unused_tag, unused_control_tag;

    for (genvar l = 0; l < NumLinks; l++) begin : gen_link
      assign kind_in[n][l] = l == 0 ? kind_out[1-n][l] : '0;
      assign data_in[n][l] = l == 0 ? data_out[1-n][l] : '0;
    end

    velo_node_flat #(
        .DataWidth(DataWidth),
        .NumLinks (NumLinks)
    ) u_node (
        .clk_i,
        .rst_ni,
        .host_write_valid_i    (host_write_valid_i[n]),
        .host_write_ready_o    (host_write_ready_o[n]),
        .host_write_eop_i      (host_write_eop_i[n]),
        .host_write_addr_i     (host_write_addr_i[n]),
        .host_write_len_bytes_i(host_write_len_bytes_i[n]),
        .host_write_data_i     (host_write_data_i[n]),
        .host_read_valid_i     (host_read_valid_i[n]),
        .host_read_ready_o     (host_read_ready_o[n]),
        .host_read_addr_i      (host_read_addr_i[n]),
        .host_read_len_bytes_i (10'd8),
        .host_read_tag_i       ('0),
        .host_answer_valid_o   (host_answer_valid_o[n]),
        .host_answer_ready_i   (1'b1),
        .host_answer_eop_o     (host_answer_eop_o[n]),
        .host_answer_error_o   (host_answer_error_o[n]),
        .host_answer_tag_o     (unused_tag),
        .host_answer_data_o    (host_answer_data_o[n]),
        .control_write_valid_i    (control_write_valid_i[n]),
        .control_write_ready_o    (control_write_ready_o[n]),
        .control_write_eop_i      (control_write_eop_i[n]),
        .control_write_addr_i     (control_write_addr_i[n]),
        .control_write_len_bytes_i(control_write_len_bytes_i[n]),
        .control_write_data_i     (control_write_data_i[n]),
        .control_read_valid_i     (control_read_valid_i[n]),
        .control_read_ready_o     (control_read_ready_o[n]),
        .control_read_addr_i      (control_read_addr_i[n]),
        .control_read_len_bytes_i (10'd8),
        .control_read_tag_i       ('0),
        .control_answer_valid_o   (control_answer_valid_o[n]),
        .control_answer_ready_i   (1'b1),
        .control_answer_eop_o     (control_answer_eop_o[n]),
        .control_answer_error_o   (control_answer_error_o[n]),
        .control_answer_tag_o     (unused_control_tag),
        .control_answer_data_o    (control_answer_data_o[n]),
        .dma_write_valid_o     (dma_write_valid_o[n]),
        .dma_write_ready_i     (dma_write_ready_i[n]),
        .dma_write_eop_o       (dma_write_eop_o[n]),
        .dma_write_addr_o      (dma_write_addr_o[n]),
        .dma_write_len_bytes_o (dma_write_len_bytes_o[n]),
        .dma_write_data_o      (dma_write_data_o[n]),
        .dma_read_valid_o      (dma_read_valid_o[n]),
        .dma_read_ready_i      (dma_read_ready_i[n]),
        .dma_read_addr_o       (dma_read_addr_o[n]),
        .dma_read_len_bytes_o  (dma_read_len_bytes_o[n]),
        .dma_read_tag_o        (dma_read_tag_o[n]),
        .dma_answer_valid_i    (dma_answer_valid_i[n]),
        .dma_answer_ready_o    (dma_answer_ready_o[n]),
        .dma_answer_eop_i      (dma_answer_eop_i[n]),
        .dma_answer_error_i    (1'b0),
        .dma_answer_tag_i      (dma_answer_tag_i[n]),
        .dma_answer_data_i     (dma_answer_data_i[n]),
        .phy_up_i              (NumLinks'(1)),
        .phy_kind_i            (kind_in[n]),
        .phy_data_i            (data_in[n]),
        .phy_pause_i('0),
        .phy_kind_o            (kind_out[n]),
        .phy_data_o            (data_out[n]),
        .node_id_o             (unused_node_id)
    );
  end

  assign stuck_o = {
    gen_node[1].u_node.u_node.u_core.u_units.velo_report.stalled,
    gen_node[1].u_node.u_node.u_core.to_unit[2].posted.valid && !gen_node[1].u_node.u_node.u_core.to_unit_ready[2].posted,
    gen_node[0].u_node.u_node.u_core.u_units.velo_report.stalled,
    gen_node[0].u_node.u_node.u_core.to_unit[2].posted.valid && !gen_node[0].u_node.u_node.u_core.to_unit_ready[2].posted
  };

  // From node 0 to node 1, as a message goes.
  assign stage_o = {
    dma_write_valid_o[1],
    gen_node[1].u_node.u_node.u_core.u_units.dma[0].valid,
    gen_node[1].u_node.u_node.u_core.net_in_i[0].valid,
    gen_node[1].u_node.u_node.u_router.out_valid[NumLinks],
    gen_node[1].u_node.u_node.u_router.in_valid[0],
    kind_out[0][0] == KindStart,
    gen_node[0].u_node.u_node.u_router.out_valid[0],
    gen_node[0].u_node.u_node.u_router.in_valid[NumLinks],
    gen_node[0].u_node.u_node.u_core.net_out_o[0].valid,
    gen_node[0].u_node.u_node.u_core.to_unit[2].posted.valid,
    host_write_valid_i[0]
  };

endmodule
