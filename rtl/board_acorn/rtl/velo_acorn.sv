// SPDX-License-Identifier: Apache-2.0
//
// A card: an Acorn CLE-215+ (Artix-7 XC7A200T-3 on an M.2 board), with one lane of PCI Express at 5 GT/s, and a node.
//
// All of it is on the block's clock, 62.5 MHz, which is as fast as the lane: 64 bits a cycle, 4 Gbit/s. It is reset
// while the link is down, which a hot reset makes it; the block has no function-level reset.
//
// All transceivers are on the M.2 plug, so there is no cable: the node's one link ends where it begins, inside. It comes
// up and its counters can be read, but the table of routes would send a packet round it for ever: what the card sends
// to itself goes the node's own way (route 15).
//
// `led_o`: the link to the host is up; the card is not reset; the node has an id; a packet to the host waits.
//
// Order, errors: those of velo_pcie_node. Latency: that of velo_pcie_node; velo_pcie_7x adds none.
// Source: pins and lanes: see vivado/velo_acorn.xdc; the block: see velo_acorn_block.

module velo_acorn
  import velo_pcie_pkg::config_t;
  import velo_pcie_pkg::bar_t;
  import velo_pcie_pkg::receive_event_t;
#(
    parameter int unsigned CtxBits = 8  // this and what follows: see velo_pcie_node
) (
    input  logic       pcie_refclk_p_i,  // 100 MHz, the host's
    input  logic       pcie_refclk_n_i,
    input  logic       pcie_rst_ni,      // PERST#
    output logic       pcie_clkreq_no,   // the clock is wanted
    input  logic [0:0] pcie_rx_p_i,
    input  logic [0:0] pcie_rx_n_i,
    output logic [0:0] pcie_tx_p_o,
    output logic [0:0] pcie_tx_n_o,
    output logic [3:0] led_o
);

  localparam int unsigned NumLinks = 1;
  // 32 tags: what a function may use before the host has switched on extended ones.
  localparam int unsigned ReadSlots = 4;

  // ----- the block --------------------------------------------------------------------------------

  logic refclk, clk, block_reset, lnk_up;
  logic rx_tvalid, rx_tready, rx_tlast, np_ok, np_req, tx_tvalid, tx_tready, tx_tlast;
  logic [7:0] rx_tkeep, tx_tkeep, nph, bus_number;
  logic [63:0] rx_tdata, tx_tdata;
  logic [21:0] rx_tuser;
  logic [ 3:0] tx_tuser;
  logic [2:0] fc_sel, function_number;
  logic [4:0] device_number;
  logic [15:0] cfg_command, cfg_dcommand;
  logic msix_enable, msix_mask, to_turnoff, turnoff_ok;
  logic err_poisoned, err_timeout, err_unexpect;

  IBUFDS_GTE2 u_refclk (
      .O  (refclk),
      .CEB(1'b0),
      .I  (pcie_refclk_p_i),
      .IB (pcie_refclk_n_i)
  );
  assign pcie_clkreq_no = 1'b0;

  velo_acorn_block u_block (
      .sys_clk                      (refclk),
      .sys_rst_n                    (pcie_rst_ni),
      .pci_exp_txp                  (pcie_tx_p_o),
      .pci_exp_txn                  (pcie_tx_n_o),
      .pci_exp_rxp                  (pcie_rx_p_i),
      .pci_exp_rxn                  (pcie_rx_n_i),
      .user_clk_out                 (clk),
      .user_reset_out               (block_reset),
      .user_lnk_up                  (lnk_up),
      .tx_cfg_gnt                   (1'b1),
      .s_axis_tx_tready             (tx_tready),
      .s_axis_tx_tdata              (tx_tdata),
      .s_axis_tx_tkeep              (tx_tkeep),
      .s_axis_tx_tlast              (tx_tlast),
      .s_axis_tx_tvalid             (tx_tvalid),
      .s_axis_tx_tuser              (tx_tuser),
      .m_axis_rx_tdata              (rx_tdata),
      .m_axis_rx_tkeep              (rx_tkeep),
      .m_axis_rx_tlast              (rx_tlast),
      .m_axis_rx_tvalid             (rx_tvalid),
      .m_axis_rx_tready             (rx_tready),
      .m_axis_rx_tuser              (rx_tuser),
      .rx_np_ok                     (np_ok),
      .rx_np_req                    (np_req),
      .fc_nph                       (nph),
      .fc_sel,
      .cfg_command,
      .cfg_dcommand,
      .cfg_trn_pending              (1'b0),
      .cfg_pm_halt_aspm_l0s         (1'b0),
      .cfg_pm_halt_aspm_l1          (1'b0),
      .cfg_pm_force_state_en        (1'b0),
      .cfg_pm_force_state           ('0),
      .cfg_dsn                      ('0),
      .cfg_pm_wake                  (1'b0),
      .cfg_pm_send_pme_to           (1'b0),
      .cfg_ds_bus_number            ('0),
      .cfg_ds_device_number         ('0),
      .cfg_ds_function_number       ('0),
      .cfg_to_turnoff               (to_turnoff),
      .cfg_turnoff_ok               (turnoff_ok),
      .cfg_bus_number               (bus_number),
      .cfg_device_number            (device_number),
      .cfg_function_number          (function_number),
      .cfg_interrupt                (1'b0),
      .cfg_interrupt_assert         (1'b0),
      .cfg_interrupt_di             ('0),
      .cfg_interrupt_msixenable     (msix_enable),
      .cfg_interrupt_msixfm         (msix_mask),
      .cfg_interrupt_stat           (1'b0),
      .cfg_pciecap_interrupt_msgnum ('0),
      .cfg_err_ecrc                 (1'b0),
      .cfg_err_ur                   (1'b0),
      .cfg_err_cpl_timeout          (err_timeout),
      .cfg_err_cpl_unexpect         (err_unexpect),
      .cfg_err_cpl_abort            (1'b0),
      .cfg_err_posted               (1'b0),
      .cfg_err_cor                  (1'b0),
      .cfg_err_atomic_egress_blocked(1'b0),
      .cfg_err_internal_cor         (1'b0),
      .cfg_err_malformed            (1'b0),
      .cfg_err_mc_blocked           (1'b0),
      .cfg_err_poisoned             (err_poisoned),
      .cfg_err_norecovery           (1'b0),
      .cfg_err_tlp_cpl_header       ('0),
      .cfg_err_locked               (1'b0),
      .cfg_err_acs                  (1'b0),
      .cfg_err_internal_uncor       (1'b0),
      .cfg_err_aer_headerlog        ('0),
      .cfg_aer_interrupt_msgnum     ('0)
  );

  // One register, so that what resets the card does not twitch.
  logic down_q, rst_n;
  always_ff @(posedge clk) down_q <= block_reset || !lnk_up;
  velo_rst_sync u_rst (
      .clk_i (clk),
      .rst_ni(!down_q),
      .rst_no(rst_n)
  );

  // ----- between it and the node ------------------------------------------------------------------

  logic rx_valid, rx_ready, rx_last, rx_hold, tx_valid, tx_ready, tx_last, nonposted_ok;
  logic [1:0] rx_keep, tx_keep;
  logic [63:0] rx_data, tx_data;
  bar_t           rx_bar;
  config_t        configuration;
  receive_event_t event_pulses;
  logic unexpected, timeout, unused_flr_done;

  velo_pcie_7x u_streams (
      .clk_i                     (clk),
      .rst_ni                    (rst_n),
      .m_axis_rx_tvalid_i        (rx_tvalid),
      .m_axis_rx_tready_o        (rx_tready),
      .m_axis_rx_tlast_i         (rx_tlast),
      .m_axis_rx_tkeep_i         (rx_tkeep),
      .m_axis_rx_tdata_i         (rx_tdata),
      .m_axis_rx_tuser_i         (rx_tuser),
      .rx_np_ok_o                (np_ok),
      .rx_np_req_o               (np_req),
      .s_axis_tx_tvalid_o        (tx_tvalid),
      .s_axis_tx_tready_i        (tx_tready),
      .s_axis_tx_tlast_o         (tx_tlast),
      .s_axis_tx_tkeep_o         (tx_tkeep),
      .s_axis_tx_tdata_o         (tx_tdata),
      .s_axis_tx_tuser_o         (tx_tuser),
      .fc_sel_o                  (fc_sel),
      .fc_nph_i                  (nph),
      .cfg_bus_number_i          (bus_number),
      .cfg_device_number_i       (device_number),
      .cfg_function_number_i     (function_number),
      .cfg_command_i             (cfg_command),
      .cfg_dcommand_i            (cfg_dcommand),
      .cfg_interrupt_msixenable_i(msix_enable),
      .cfg_interrupt_msixfm_i    (msix_mask),
      .cfg_to_turnoff_i          (to_turnoff),
      .cfg_turnoff_ok_o          (turnoff_ok),
      .cfg_err_poisoned_o        (err_poisoned),
      .cfg_err_cpl_timeout_o     (err_timeout),
      .cfg_err_cpl_unexpect_o    (err_unexpect),
      .rx_valid_o                (rx_valid),
      .rx_ready_i                (rx_ready),
      .rx_last_o                 (rx_last),
      .rx_keep_o                 (rx_keep),
      .rx_data_o                 (rx_data),
      .rx_bar_o                  (rx_bar),
      .rx_hold_i                 (rx_hold),
      .tx_valid_i                (tx_valid),
      .tx_ready_o                (tx_ready),
      .tx_last_i                 (tx_last),
      .tx_keep_i                 (tx_keep),
      .tx_data_i                 (tx_data),
      .tx_nonposted_ok_o         (nonposted_ok),
      .config_o                  (configuration),
      .event_i                   (event_pulses),
      .unexpected_i              (unexpected),
      .timeout_i                 (timeout)
  );

  // ----- the node -----------------------------------------------------------------------------------

  logic [NumLinks-1:0][1:0] link_kind_q, link_kind;
  logic [NumLinks-1:0][velo_pcie_pkg::DataWidth-1:0] link_data_q, link_data;
  logic [7:0] node_id;

  velo_pcie_node #(
      .NumLinks (NumLinks),
      .CtxBits  (CtxBits),
      .ReadSlots(ReadSlots)
  ) u_node (
      .clk_i            (clk),
      .rst_ni           (rst_n),
      .rx_valid_i       (rx_valid),
      .rx_ready_o       (rx_ready),
      .rx_last_i        (rx_last),
      .rx_keep_i        (rx_keep),
      .rx_data_i        (rx_data),
      .rx_bar_i         (rx_bar),
      .rx_hold_o        (rx_hold),
      .tx_valid_o       (tx_valid),
      .tx_ready_i       (tx_ready),
      .tx_last_o        (tx_last),
      .tx_keep_o        (tx_keep),
      .tx_data_o        (tx_data),
      .tx_nonposted_ok_i(nonposted_ok),
      .config_i         (configuration),
      .event_o          (event_pulses),
      .unexpected_o     (unexpected),
      .timeout_o        (timeout),
      .flr_i            (1'b0),
      .flr_done_o       (unused_flr_done),
      .phy_up_i         ({NumLinks{1'b1}}),
      .phy_kind_i       (link_kind_q),
      .phy_data_i       (link_data_q),
      .phy_pause_i      ({NumLinks{1'b0}}),
      .phy_kind_o       (link_kind),
      .phy_data_o       (link_data),
      .node_id_o        (node_id)
  );

  // The cable that is not there.
  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) link_kind_q <= '0;
    else link_kind_q <= link_kind;
  end
  always_ff @(posedge clk) link_data_q <= link_data;

  assign led_o = {tx_valid && !tx_ready, node_id != '0, rst_n, lnk_up};

endmodule
