// SPDX-License-Identifier: Apache-2.0
//
// A board of DIMMnet-2 (figure 2): between memory slot, SO-DIMMs and an InfiniBand switch. One clock, 100 MHz on the
// paper's board.
//
// The slot's pads are as in dimmnet_ddr_host, the SO-DIMMs' as in dimmnet_ddr_sodimm, the network's words as in
// dimmnet_swif. SWIF's settings and counters are privileged registers (spec/dimmnet.toml, dimmnet_privileged).
// Source: dimmnet2-ja, section 2.

module dimmnet_board
  import dimmnet_pkg::*, dimmnet_swif_pkg::*, dimmnet_ddr_pkg::*, dimmnet_dfi_pkg::*;
#(
    parameter int unsigned Processes = DimmnetProcesses,
    parameter int unsigned NumSodimms = 2,
    parameter int unsigned PowerUp = DdrPowerUp,  // clocks before the first command to a SO-DIMM
    parameter bit Aotf = 1'b1,
    parameter bit Retransmission = 1'b1,
    parameter int unsigned TimeoutCycles = 4096,  // of SWIF
    parameter int unsigned RetryLimit = 7  // of SWIF
) (
    input logic clk_i,
    input logic rst_ni,

    // The memory slot.
    input  logic                        cs_n_i,     // chip select
    input  ddr_command_e                command_i,  // {RAS#, CAS#, WE#}
    input  logic         [BankBits-1:0] bank_i,
    input  logic         [ RowBits-1:0] address_i,  // row, column or mode; A10
    input  logic         [        63:0] dq_rise_i,  // data to be written
    input  logic         [        63:0] dq_fall_i,
    input  logic         [         7:0] dm_rise_i,  // bytes that are not
    input  logic         [         7:0] dm_fall_i,
    output logic                        dq_oe_o,    // data read are on the bus
    output logic         [        63:0] dq_rise_o,
    output logic         [        63:0] dq_fall_o,

    // The SO-DIMMs' PHYs.
    output dfi_t [NumSodimms-1:0]        dfi_o,
    input  logic [NumSodimms-1:0][127:0] dfi_rddata_i,

    // The switch: words of InfiniBand packets.
    output logic        net_tx_valid_o,
    input  logic        net_tx_ready_i,
    output logic        net_tx_first_o,
    output logic        net_tx_last_o,
    output logic [ 3:0] net_tx_bytes_o,
    output logic [63:0] net_tx_word_o,
    input  logic        net_rx_valid_i,
    input  logic        net_rx_first_i,
    input  logic        net_rx_last_i,
    input  logic [ 3:0] net_rx_bytes_i,
    input  logic [63:0] net_rx_word_i
);

  localparam int unsigned NumPeers = 16;  // as many as the privileged registers have bits for

  logic write_valid, write_ready, read_valid, read_ready, response_valid;
  logic [20:0] write_address, read_address;
  logic [15:0] write_be;
  logic [127:0] write_data, response_data;
  dimmnet_ddr_host u_host (
      .clk_i,
      .rst_ni,
      .cs_n_i,
      .command_i,
      .bank_i,
      .address_i,
      .dq_rise_i,
      .dq_fall_i,
      .dm_rise_i,
      .dm_fall_i,
      .dq_oe_o,
      .dq_rise_o,
      .dq_fall_o,
      .write_valid_o(write_valid),
      .write_ready_i(write_ready),
      .write_address_o(write_address),
      .write_be_o(write_be),
      .write_data_o(write_data),
      .read_valid_o(read_valid),
      .read_ready_i(read_ready),
      .read_address_o(read_address),
      .response_valid_i(response_valid),
      .response_data_i(response_data)
  );

  logic tx_valid, tx_ready, rx_valid, rx_ready;
  logic [1:0] tx_ident;
  dimmnet_line_e rx_ident;
  logic [63:0] tx_line, rx_line;
  logic [15:0] board_lid, stop, off, failed;
  counts_t counts;
  logic mem_valid, mem_ready, mem_write, mem_response;
  logic [31:0] mem_address;
  logic [ 1:0] mem_mask;
  logic [127:0] mem_data, mem_words;
  dimmnet_core #(
      .Processes(Processes),
      .Aotf(Aotf)
  ) u_core (
      .clk_i,
      .rst_ni,
      .write_valid_i(write_valid),
      .write_ready_o(write_ready),
      .write_address_i(write_address),
      .write_be_i(write_be),
      .write_data_i(write_data),
      .read_valid_i(read_valid),
      .read_ready_o(read_ready),
      .read_address_i(read_address),
      .response_valid_o(response_valid),
      .response_data_o(response_data),
      .lid_o(board_lid),
      .network_stop_o(stop),
      .network_off_i(off),
      .network_failed_i(failed),
      .network_counts_i(counts),
      .tx_valid_o(tx_valid),
      .tx_ready_i(tx_ready),
      .tx_ident_o(tx_ident),
      .tx_line_o(tx_line),
      .rx_valid_i(rx_valid),
      .rx_ready_o(rx_ready),
      .rx_ident_i(rx_ident),
      .rx_line_i(rx_line),
      .sodimm_valid_o(mem_valid),
      .sodimm_ready_i(mem_ready),
      .sodimm_write_o(mem_write),
      .sodimm_address_o(mem_address),
      .sodimm_mask_o(mem_mask),
      .sodimm_data_o(mem_data),
      .sodimm_response_valid_i(mem_response),
      .sodimm_response_i(mem_words)
  );

  dimmnet_ddr_sodimm #(
      .NumSodimms(NumSodimms),
      .PowerUp(PowerUp)
  ) u_sodimm (
      .clk_i,
      .rst_ni,
      .req_valid_i(mem_valid),
      .req_ready_o(mem_ready),
      .req_write_i(mem_write),
      .req_addr_i (mem_address),
      .req_data_i (mem_data),
      .req_mask_i (mem_mask),
      .rsp_valid_o(mem_response),
      .rsp_data_o (mem_words),
      .dfi_o,
      .dfi_rddata_i
  );

  dimmnet_swif #(
      .Retransmission(Retransmission),
      .TimeoutCycles(TimeoutCycles),
      .RetryLimit(RetryLimit),
      .NumPeers(NumPeers)
  ) u_swif (
      .clk_i,
      .rst_ni,
      .lid_i(board_lid),
      .stop_i(stop),
      .off_o(off),
      .failed_o(failed),
      .counts_o(counts),
      .tx_valid_i(tx_valid),
      .tx_ready_o(tx_ready),
      .tx_ident_i(dimmnet_line_e'(tx_ident)),
      .tx_line_i(tx_line),
      .rx_valid_o(rx_valid),
      .rx_ready_i(rx_ready),
      .rx_ident_o(rx_ident),
      .rx_line_o(rx_line),
      .net_tx_valid_o,
      .net_tx_ready_i,
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

endmodule
