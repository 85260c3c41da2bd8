// SPDX-License-Identifier: Apache-2.0
//
// A board of DIMMnet-2 with its SO-DIMMs, for velo-sim: one model, as many instances as there are boards. Beside the
// pins it shows what the simulator has to know without asking: words written into LLCM, and whether a ring is full.

module velo_board
  import dimmnet_pkg::*, dimmnet_ddr_pkg::*, dimmnet_dfi_pkg::*;
#(
    parameter int unsigned Processes = DimmnetProcesses,
    parameter int unsigned NumSodimms = 2,
    parameter int unsigned PowerUp = 100
) (
    input logic clk_i,
    input logic rst_ni,

    // The memory slot, as in dimmnet_ddr_host.
    input  logic                cs_n_i,
    input  logic [         2:0] command_i,
    input  logic [BankBits-1:0] bank_i,
    input  logic [ RowBits-1:0] address_i,
    input  logic [        63:0] dq_rise_i,
    input  logic [        63:0] dq_fall_i,
    input  logic [         7:0] dm_rise_i,
    input  logic [         7:0] dm_fall_i,
    output logic                dq_oe_o,
    output logic [        63:0] dq_rise_o,
    output logic [        63:0] dq_fall_o,

    // The network.
    output logic        net_tx_valid_o,
    output logic        net_tx_first_o,
    output logic        net_tx_last_o,
    output logic [ 3:0] net_tx_bytes_o,
    output logic [63:0] net_tx_word_o,
    input  logic        net_rx_valid_i,
    input  logic        net_rx_first_i,
    input  logic        net_rx_last_i,
    input  logic [ 3:0] net_rx_bytes_i,
    input  logic [63:0] net_rx_word_i,

    output logic         llcm_write_o,   // at the next edge words are written
    output logic [ 15:0] llcm_row_o,     // two words, behind those of the processes before
    output logic [ 15:0] llcm_be_o,      // which bytes
    output logic [127:0] llcm_data_o,    // the bytes
    output logic         ring_is_full_o  // of some process: a packet may wait for room
);

  dfi_t [NumSodimms-1:0] dfi;
  logic [NumSodimms-1:0][127:0] rddata;

  dimmnet_board #(
      .Processes(Processes),
      .NumSodimms(NumSodimms),
      .PowerUp(PowerUp)
  ) u_board (
      .clk_i,
      .rst_ni,
      .cs_n_i,
      .command_i     (ddr_command_e'(command_i)),
      .bank_i,
      .address_i,
      .dq_rise_i,
      .dq_fall_i,
      .dm_rise_i,
      .dm_fall_i,
      .dq_oe_o,
      .dq_rise_o,
      .dq_fall_o,
      .dfi_o         (dfi),
      .dfi_rddata_i  (rddata),
      .net_tx_valid_o,
      .net_tx_ready_i(1'b1),
      .net_tx_first_o,
      .net_tx_last_o,
      .net_tx_bytes_o,
      .net_tx_word_o,
      .net_rx_valid_i,
      .net_rx_first_i,
      .net_rx_last_i,
      .net_rx_bytes_i,
      .net_rx_word_i
  );

  for (genvar s = 0; s < int'(NumSodimms); ++s) begin : gen_sodimm
    logic [14:0] unused_broken;
    logic [31:0] unused_refreshes, unused_activates;
    dimmnet_dram_model #(
        .PowerUp(PowerUp)
    ) u_model (
        .clk_i,
        .rst_ni,
        .dfi_i      (dfi[s]),
        .rddata_o   (rddata[s]),
        .broken_o   (unused_broken),
        .refreshes_o(unused_refreshes),
        .activates_o(unused_activates)
    );
  end

  assign llcm_write_o = u_board.u_core.u_llcm.u_ram.we_i;
  assign llcm_row_o = 16'(u_board.u_core.u_llcm.u_ram.waddr_i);
  assign llcm_be_o = u_board.u_core.u_llcm.u_ram.be_i;
  assign llcm_data_o = u_board.u_core.u_llcm.u_ram.wdata_i;

  always_comb begin
    ring_is_full_o = 1'b0;
    for (int p = 0; p < int'(Processes); ++p) begin
      if (u_board.u_core.status_write[p] - u_board.u_core.status_read[p] >= DimmnetStatusEntries)
        ring_is_full_o = 1'b1;
    end
  end

endmodule
