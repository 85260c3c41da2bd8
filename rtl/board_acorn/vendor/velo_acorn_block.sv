// SPDX-License-Identifier: Apache-2.0
//
// The 7-series Integrated Block for PCI Express as the vendor's generator makes it by vivado/build.tcl: its ports and
// nothing else, for tools that do not have it; of its outputs, those that are used. The vendor's tool takes its own.
//
// Names and widths of the ports are those of such blocks that others had generated: one lane, 64 bits, the clocks
// inside, with the interfaces for flow control and errors, without those for management, physical layer, and received
// messages.
// All but `sys_*` and `pci_exp_*` is on `user_clk_out`.

(* blackbox *)
module velo_acorn_block (
    input logic sys_clk,
    input logic sys_rst_n,
    output logic [0:0] pci_exp_txp,
    output logic [0:0] pci_exp_txn,
    input logic [0:0] pci_exp_rxp,
    input logic [0:0] pci_exp_rxn,

    output logic user_clk_out,
    output logic user_reset_out,
    output logic user_lnk_up,

    input logic tx_cfg_gnt,
    output logic s_axis_tx_tready,
    input logic [63:0] s_axis_tx_tdata,
    input logic [7:0] s_axis_tx_tkeep,
    input logic s_axis_tx_tlast,
    input logic s_axis_tx_tvalid,
    input logic [3:0] s_axis_tx_tuser,

    output logic [63:0] m_axis_rx_tdata,
    output logic [7:0] m_axis_rx_tkeep,
    output logic m_axis_rx_tlast,
    output logic m_axis_rx_tvalid,
    input logic m_axis_rx_tready,
    output logic [21:0] m_axis_rx_tuser,
    input logic rx_np_ok,
    input logic rx_np_req,

    output logic [7:0] fc_nph,
    input logic [2:0] fc_sel,

    output logic [15:0] cfg_command,
    output logic [15:0] cfg_dcommand,

    input logic cfg_trn_pending,
    input logic cfg_pm_halt_aspm_l0s,
    input logic cfg_pm_halt_aspm_l1,
    input logic cfg_pm_force_state_en,
    input logic [1:0] cfg_pm_force_state,
    input logic [63:0] cfg_dsn,
    input logic cfg_pm_wake,
    input logic cfg_pm_send_pme_to,
    input logic [7:0] cfg_ds_bus_number,
    input logic [4:0] cfg_ds_device_number,
    input logic [2:0] cfg_ds_function_number,
    output logic cfg_to_turnoff,
    input logic cfg_turnoff_ok,
    output logic [7:0] cfg_bus_number,
    output logic [4:0] cfg_device_number,
    output logic [2:0] cfg_function_number,

    input logic cfg_interrupt,
    input logic cfg_interrupt_assert,
    input logic [7:0] cfg_interrupt_di,
    output logic cfg_interrupt_msixenable,
    output logic cfg_interrupt_msixfm,
    input logic cfg_interrupt_stat,
    input logic [4:0] cfg_pciecap_interrupt_msgnum,

    input logic cfg_err_ecrc,
    input logic cfg_err_ur,
    input logic cfg_err_cpl_timeout,
    input logic cfg_err_cpl_unexpect,
    input logic cfg_err_cpl_abort,
    input logic cfg_err_posted,
    input logic cfg_err_cor,
    input logic cfg_err_atomic_egress_blocked,
    input logic cfg_err_internal_cor,
    input logic cfg_err_malformed,
    input logic cfg_err_mc_blocked,
    input logic cfg_err_poisoned,
    input logic cfg_err_norecovery,
    input logic [47:0] cfg_err_tlp_cpl_header,
    input logic cfg_err_locked,
    input logic cfg_err_acs,
    input logic cfg_err_internal_uncor,
    input logic [127:0] cfg_err_aer_headerlog,
    input logic [4:0] cfg_aer_interrupt_msgnum
);
endmodule
