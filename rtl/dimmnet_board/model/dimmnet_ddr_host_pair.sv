// SPDX-License-Identifier: Apache-2.0
//
// The host interfaces of two boards side by side, for simulation: ports are arrays over the boards.

module dimmnet_ddr_host_pair
  import dimmnet_dfi_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic                cs_n_i   [2],
    input  logic [         2:0] command_i[2],
    input  logic [BankBits-1:0] bank_i   [2],
    input  logic [ RowBits-1:0] address_i[2],
    input  logic [        63:0] dq_rise_i[2],
    input  logic [        63:0] dq_fall_i[2],
    input  logic [         7:0] dm_rise_i[2],
    input  logic [         7:0] dm_fall_i[2],
    output logic                dq_oe_o  [2],
    output logic [        63:0] dq_rise_o[2],
    output logic [        63:0] dq_fall_o[2],

    output logic         write_valid_o   [2],
    input  logic         write_ready_i   [2],
    output logic [ 20:0] write_address_o [2],
    output logic [ 15:0] write_be_o      [2],
    output logic [127:0] write_data_o    [2],
    output logic         read_valid_o    [2],
    input  logic         read_ready_i    [2],
    output logic [ 20:0] read_address_o  [2],
    input  logic         response_valid_i[2],
    input  logic [127:0] response_data_i [2]
);

  for (genvar b = 0; b < 2; ++b) begin : gen_board
    dimmnet_ddr_host u_host (
        .clk_i,
        .rst_ni,
        .cs_n_i          (cs_n_i[b]),
        .command_i       (ddr_command_e'(command_i[b])),
        .bank_i          (bank_i[b]),
        .address_i       (address_i[b]),
        .dq_rise_i       (dq_rise_i[b]),
        .dq_fall_i       (dq_fall_i[b]),
        .dm_rise_i       (dm_rise_i[b]),
        .dm_fall_i       (dm_fall_i[b]),
        .dq_oe_o         (dq_oe_o[b]),
        .dq_rise_o       (dq_rise_o[b]),
        .dq_fall_o       (dq_fall_o[b]),
        .write_valid_o   (write_valid_o[b]),
        .write_ready_i   (write_ready_i[b]),
        .write_address_o (write_address_o[b]),
        .write_be_o      (write_be_o[b]),
        .write_data_o    (write_data_o[b]),
        .read_valid_o    (read_valid_o[b]),
        .read_ready_i    (read_ready_i[b]),
        .read_address_o  (read_address_o[b]),
        .response_valid_i(response_valid_i[b]),
        .response_data_i (response_data_i[b])
    );
  end

endmodule
