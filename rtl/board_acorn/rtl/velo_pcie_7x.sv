// SPDX-License-Identifier: Apache-2.0
//
// Between the user's side of Xilinx' 7-series Integrated Block for PCI Express, with streams of 64 bits, and velo_pcie.
// Ports of the block have the vendor's names.
//
// In: the bytes of data change places (velo_pcie_7x_order); `keep` is read with the last beat only; the base address
// register is told by `m_axis_rx_tuser`, where a register of 64 bits has two bits of which the lower one is looked at.
// `rx_hold_i` becomes `rx_np_ok`: the block delivers two requests more at most, for which velo_pcie has room.
//
// Out: the same the other way round; packets are neither marked as void nor given up (`s_axis_tx_tuser`).
//
// Reads: `tx_nonposted_ok_o` says that the link partner has a credit for one, so that none ever stands in the block
// before a write. The block's count (`fc_nph`, of what `fc_sel` chooses: credits left for the user) may be late by up
// to 15 cycles: after a read begins, another one waits for so long unless there are credits for all that could
// begin meanwhile.
//
// Configuration: what velo_pcie wants to know of it (config_t). Interrupts are writes of velo_pcie's own, so the
// block's interrupt port stands still. The block has no function-level reset.
//
// Errors: poisoned data, late and unexpected completions are told to the block, as errors from which the function
// recovers. Requests that are not served are not: a store in a wrong form is a process' own fault, and must not make
// the kernel recover the link. velo_pcie counts them.
// Latency: 0 cycles either way.
//
// Source: the block's ports as others had them generated, their use in LitePCIe; see README.md. PCI Express Base Specification 3.0, section 2.6.

module velo_pcie_7x
  import velo_pcie_pkg::config_t;
  import velo_pcie_pkg::bar_t;
  import velo_pcie_pkg::receive_event_t;
(
    input logic clk_i,
    input logic rst_ni,

    // The block's streams.
    input  logic        m_axis_rx_tvalid_i,
    output logic        m_axis_rx_tready_o,
    input  logic        m_axis_rx_tlast_i,
    input  logic [ 7:0] m_axis_rx_tkeep_i,
    input  logic [63:0] m_axis_rx_tdata_i,
    input  logic [21:0] m_axis_rx_tuser_i,
    output logic        rx_np_ok_o,
    output logic        rx_np_req_o,
    output logic        s_axis_tx_tvalid_o,
    input  logic        s_axis_tx_tready_i,
    output logic        s_axis_tx_tlast_o,
    output logic [ 7:0] s_axis_tx_tkeep_o,
    output logic [63:0] s_axis_tx_tdata_o,
    output logic [ 3:0] s_axis_tx_tuser_o,
    output logic [ 2:0] fc_sel_o,
    input  logic [ 7:0] fc_nph_i,

    // The block's configuration space.
    input  logic [ 7:0] cfg_bus_number_i,
    input  logic [ 4:0] cfg_device_number_i,
    input  logic [ 2:0] cfg_function_number_i,
    input  logic [15:0] cfg_command_i,
    input  logic [15:0] cfg_dcommand_i,
    input  logic        cfg_interrupt_msixenable_i,
    input  logic        cfg_interrupt_msixfm_i,
    input  logic        cfg_to_turnoff_i,
    output logic        cfg_turnoff_ok_o,
    output logic        cfg_err_poisoned_o,
    output logic        cfg_err_cpl_timeout_o,
    output logic        cfg_err_cpl_unexpect_o,

    // velo_pcie's side.
    output logic                  rx_valid_o,
    input  logic                  rx_ready_i,
    output logic                  rx_last_o,
    output logic           [ 1:0] rx_keep_o,
    output logic           [63:0] rx_data_o,
    output bar_t                  rx_bar_o,
    input  logic                  rx_hold_i,
    input  logic                  tx_valid_i,
    output logic                  tx_ready_o,
    input  logic                  tx_last_i,
    input  logic           [ 1:0] tx_keep_i,
    input  logic           [63:0] tx_data_i,
    output logic                  tx_nonposted_ok_o,
    output config_t               config_o,
    input  receive_event_t        event_i,
    input  logic                  unexpected_i,
    input  logic                  timeout_i
);

  // ----- in -------------------------------------------------------------------------------------

  logic unused_first;
  assign rx_valid_o = m_axis_rx_tvalid_i;
  assign m_axis_rx_tready_o = rx_ready_i;
  assign rx_last_o = m_axis_rx_tlast_i;
  assign rx_keep_o = {!m_axis_rx_tlast_i || m_axis_rx_tkeep_i[4], 1'b1};
  // From bit 2 on, a bit for each base address register.
  assign rx_bar_o = '{
          bar4: m_axis_rx_tuser_i[6],
          bar2: m_axis_rx_tuser_i[4],
          bar0: m_axis_rx_tuser_i[2]
      };
  assign rx_np_ok_o = !rx_hold_i;
  assign rx_np_req_o = 1'b1;

  velo_pcie_7x_order u_rx (
      .clk_i,
      .rst_ni,
      .take_i (m_axis_rx_tvalid_i && rx_ready_i),
      .last_i (m_axis_rx_tlast_i),
      .data_i (m_axis_rx_tdata_i),
      .data_o (rx_data_o),
      .first_o(unused_first)
  );

  // ----- out ------------------------------------------------------------------------------------

  logic tx_first;
  assign s_axis_tx_tvalid_o = tx_valid_i;
  assign tx_ready_o = s_axis_tx_tready_i;
  assign s_axis_tx_tlast_o = tx_last_i;
  assign s_axis_tx_tkeep_o = {{4{tx_keep_i[1]}}, {4{tx_keep_i[0]}}};
  assign s_axis_tx_tuser_o = '0;

  velo_pcie_7x_order u_tx (
      .clk_i,
      .rst_ni,
      .take_i (tx_valid_i && s_axis_tx_tready_i),
      .last_i (tx_last_i),
      .data_i (tx_data_i),
      .data_o (s_axis_tx_tdata_o),
      .first_o(tx_first)
  );

  // ----- credits for reads ----------------------------------------------------------------------

  // A read has two beats, so eight begin while the count is late: with 16 credits shown all of them have one.
  localparam logic [3:0] Late = 4'd15;
  localparam logic [7:0] Plenty = 8'd16;

  logic [3:0] late_q;  // cycles until the count is right
  logic read_begins, some, many;
  // Format "no data" with either address, type "memory".
  assign read_begins = tx_valid_i && tx_first && {tx_data_i[31:30], tx_data_i[28:24]} == '0;
  // Negative numbers are none. One of the range's two ends means "without limit"; both are taken so, as neither occurs
  // otherwise: more credits than that are not told, and so many cannot be owed.
  assign many = fc_nph_i == 8'h80 || (!fc_nph_i[7] && fc_nph_i >= Plenty);
  assign some = many || (!fc_nph_i[7] && fc_nph_i != '0);
  assign tx_nonposted_ok_o = many || (some && late_q == '0);
  assign fc_sel_o = 3'b100;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) late_q <= Late;
    else if (read_begins) late_q <= Late;
    else if (late_q != '0) late_q <= late_q - 1'b1;
  end

  // ----- configuration, errors, power -----------------------------------------------------------

  assign config_o = '{
          id: {cfg_bus_number_i, cfg_device_number_i, cfg_function_number_i},
          bus_master: cfg_command_i[2],
          relaxed: cfg_dcommand_i[4],
          max_payload: cfg_dcommand_i[7:5],
          max_read: cfg_dcommand_i[14:12],
          msix_enable: cfg_interrupt_msixenable_i,
          msix_mask: cfg_interrupt_msixfm_i
      };
  assign cfg_err_poisoned_o = event_i.poisoned;
  assign cfg_err_cpl_timeout_o = timeout_i;
  assign cfg_err_cpl_unexpect_o = unexpected_i;

  // The host is about to take the power away: between two packets is a good time.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cfg_turnoff_ok_o <= 1'b0;
    else cfg_turnoff_ok_o <= cfg_to_turnoff_i && tx_first && !tx_valid_i;
  end

  logic unused;
  assign unused = ^{m_axis_rx_tkeep_i, m_axis_rx_tuser_i, cfg_command_i, cfg_dcommand_i, event_i,
                    unused_first};

endmodule
