// SPDX-License-Identifier: Apache-2.0
//
// CoreLogic of DIMMnet-2 as the unit in a node's custom slot: its ports are what the slot offers (velo_custom_slot).
//
// Host: the unit's part of the window is the board's slot, an address's target a dimmnet_slot (dimmnet_unit_host).
// SO-DIMM: a part of host memory, from the address in `setting_i` (register custom_setting) on (dimmnet_unit_memory).
// Network: a packet of CoreLogic is the payload of one packet of kind custom, request class (dimmnet_unit_send,
// dimmnet_unit_receive). Links and switches are lossless and keep order, so nothing is acknowledged here. The board's
// LID has to be that of its node: DimmnetLidOfNode and the node's number.
//
// All is of the request class, since CoreLogic takes what comes in whatever it cannot send, and waits for its host's
// memory and, within the patience, for room in a status ring. So it may hold up requests of its node, for so long, and
// never a response or completion; nor does it send such.
//
// `setting_i`: bit 0 enabled, else nothing is sent or taken; bits 47:20 where word 0 of the SO-DIMM is. `status_o`:
// bits 7:0 stores and loads refused, bits 15:8 packets of the response class dropped, bits 23:16 reads of memory that
// failed and gave words of zero, each modulo 256. Other packets that are dropped are in the privileged page:
// network_unreachable, network_foreign, network_malformed. A peer that its register peers_stop names is off as soon as
// no packet was here; nothing has to begin anew.

`include "velo_assert.svh"

module dimmnet_unit
  import htax_pkg::*;
  import velo_net_pkg::*;
  import dimmnet_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned HostPort = 0,
    parameter int unsigned Processes = DimmnetProcesses,
    parameter bit Multicast = 1'b0  // some node numbers are groups
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [ 7:0] node_id_i,
    input  logic [63:0] setting_i,
    output logic [63:0] status_o,

    // From the crossbar: the host's stores and loads, and what was read of host memory; data are beside.
    input  htax_port_t                  to_unit_i,
    input  logic        [DataWidth-1:0] to_unit_posted_data_i,
    input  logic        [DataWidth-1:0] to_unit_response_data_i,
    output htax_ready_t                 to_unit_ready_o,
    // To the crossbar: writes and reads of host memory, and answers to loads.
    output htax_port_t                  from_unit_o,
    output logic        [DataWidth-1:0] from_unit_posted_data_o,
    output logic        [DataWidth-1:0] from_unit_response_data_o,
    input  htax_ready_t                 from_unit_ready_i,

    // Packets to the network, requests and responses; see velo_net_pkg.
    output net_stream_t [1:0]                net_out_o,
    output logic        [1:0][DataWidth-1:0] net_out_data_o,   // the beats
    input  logic        [1:0]                net_out_ready_i,  // they are taken
    // Packets from the network.
    input  net_stream_t [1:0]                net_in_i,
    input  logic        [1:0][DataWidth-1:0] net_in_data_i,    // the beats
    output logic        [1:0]                net_in_ready_o    // they are taken
);

  // ----- CoreLogic ------------------------------------------------------------------------------

  logic write_valid, write_ready, read_valid, read_ready, response_valid;
  logic [20:0] write_address, read_address;
  logic [15:0] write_be;
  logic [127:0] write_data, response_data;
  logic [15:0] unused_lid, stop, off_q;
  logic [8:0][31:0] counts;
  logic tx_valid, tx_ready, rx_valid, rx_ready;
  logic [1:0] tx_ident;
  dimmnet_line_e rx_ident;
  logic [63:0] tx_line, rx_line;
  logic sodimm_valid, sodimm_ready, sodimm_write, sodimm_response_valid;
  logic [31:0] sodimm_address;
  logic [ 1:0] sodimm_mask;
  logic [127:0] sodimm_data, sodimm_response;

  dimmnet_core #(
      .Processes(Processes)
  ) u_core (
      .clk_i,
      .rst_ni,
      .write_valid_i          (write_valid),
      .write_ready_o          (write_ready),
      .write_address_i        (write_address),
      .write_be_i             (write_be),
      .write_data_i           (write_data),
      .read_valid_i           (read_valid),
      .read_ready_o           (read_ready),
      .read_address_i         (read_address),
      .response_valid_o       (response_valid),
      .response_data_o        (response_data),
      .lid_o                  (unused_lid),
      .network_stop_o         (stop),
      .network_off_i          (off_q),
      .network_failed_i       ('0),
      .network_counts_i       (counts),
      .tx_valid_o             (tx_valid),
      .tx_ready_i             (tx_ready),
      .tx_ident_o             (tx_ident),
      .tx_line_o              (tx_line),
      .rx_valid_i             (rx_valid),
      .rx_ready_o             (rx_ready),
      .rx_ident_i             (rx_ident),
      .rx_line_i              (rx_line),
      .sodimm_valid_o         (sodimm_valid),
      .sodimm_ready_i         (sodimm_ready),
      .sodimm_write_o         (sodimm_write),
      .sodimm_address_o       (sodimm_address),
      .sodimm_mask_o          (sodimm_mask),
      .sodimm_data_o          (sodimm_data),
      .sodimm_response_valid_i(sodimm_response_valid),
      .sodimm_response_i      (sodimm_response)
  );

  // ----- host -----------------------------------------------------------------------------------

  logic refused, failed;

  dimmnet_unit_host #(
      .DataWidth(DataWidth),
      .HostPort (HostPort)
  ) u_host (
      .clk_i,
      .rst_ni,
      .refused_o       (refused),
      .store_i         (to_unit_i.posted),
      .store_data_i    (to_unit_posted_data_i),
      .store_ready_o   (to_unit_ready_o.posted),
      .load_i          (to_unit_i.nonposted),
      .load_ready_o    (to_unit_ready_o.nonposted),
      .answer_o        (from_unit_o.response),
      .answer_data_o   (from_unit_response_data_o),
      .answer_ready_i  (from_unit_ready_i.response),
      .write_valid_o   (write_valid),
      .write_ready_i   (write_ready),
      .write_address_o (write_address),
      .write_be_o      (write_be),
      .write_data_o    (write_data),
      .read_valid_o    (read_valid),
      .read_ready_i    (read_ready),
      .read_address_o  (read_address),
      .response_valid_i(response_valid),
      .response_data_i (response_data)
  );

  // ----- memory ---------------------------------------------------------------------------------

  dimmnet_unit_memory #(
      .DataWidth(DataWidth)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .base_i                 ({setting_i[AddrBits-1:20], 20'b0}),
      .failed_o               (failed),
      .sodimm_valid_i         (sodimm_valid),
      .sodimm_ready_o         (sodimm_ready),
      .sodimm_write_i         (sodimm_write),
      .sodimm_address_i       (sodimm_address),
      .sodimm_mask_i          (sodimm_mask),
      .sodimm_data_i          (sodimm_data),
      .sodimm_response_valid_o(sodimm_response_valid),
      .sodimm_response_o      (sodimm_response),
      .write_o                (from_unit_o.posted),
      .write_data_o           (from_unit_posted_data_o),
      .write_ready_i          (from_unit_ready_i.posted),
      .read_o                 (from_unit_o.nonposted),
      .read_ready_i           (from_unit_ready_i.nonposted),
      .answer_i               (to_unit_i.response),
      .answer_data_i          (to_unit_response_data_i),
      .answer_ready_o         (to_unit_ready_o.response)
  );

  // ----- network --------------------------------------------------------------------------------

  logic unreachable, foreign, malformed, send_idle, receive_idle;

  dimmnet_unit_send #(
      .DataWidth(DataWidth),
      .Multicast(Multicast)
  ) u_send (
      .clk_i,
      .rst_ni,
      .enabled_i    (setting_i[0]),
      .node_id_i,
      .stop_i       (stop),
      .unreachable_o(unreachable),
      .idle_o       (send_idle),
      .line_valid_i (tx_valid),
      .line_ready_o (tx_ready),
      .line_ident_i (dimmnet_line_e'(tx_ident)),
      .line_i       (tx_line),
      .net_valid_o  (net_out_o[0].valid),
      .net_ready_i  (net_out_ready_i[0]),
      .net_sop_o    (net_out_o[0].sop),
      .net_eop_o    (net_out_o[0].eop),
      .net_data_o   (net_out_data_o[0])
  );
  assign net_out_o[0].poison = 1'b0;

  dimmnet_unit_receive #(
      .DataWidth(DataWidth)
  ) u_receive (
      .clk_i,
      .rst_ni,
      .enabled_i   (setting_i[0]),
      .node_id_i,
      .stop_i      (stop),
      .foreign_o   (foreign),
      .malformed_o (malformed),
      .idle_o      (receive_idle),
      .net_valid_i (net_in_i[0].valid),
      .net_ready_o (net_in_ready_o[0]),
      .net_sop_i   (net_in_i[0].sop),
      .net_eop_i   (net_in_i[0].eop),
      .net_data_i  (net_in_data_i[0]),
      .line_valid_o(rx_valid),
      .line_ready_i(rx_ready),
      .line_ident_o(rx_ident),
      .line_o      (rx_line)
  );

  // It sends no responses, and takes none.
  assign net_out_o[1] = '0;
  assign net_out_data_o[1] = '0;
  assign net_in_ready_o[1] = 1'b1;

  // ----- counters -------------------------------------------------------------------------------

  logic [7:0] refused_q, responses_q, failed_q;
  logic [31:0] unreachable_q, foreign_q, malformed_q;

  // By register, from network_crc on.
  function automatic int unsigned count_of(dimmnet_privileged_e register);
    return 32'(register) - 32'(DimmnetPrivilegedNetworkCrc);
  endfunction
  always_comb begin
    counts = '0;
    counts[count_of(DimmnetPrivilegedNetworkMalformed)] = malformed_q;
    counts[count_of(DimmnetPrivilegedNetworkForeign)] = foreign_q;
    counts[count_of(DimmnetPrivilegedNetworkUnreachable)] = unreachable_q;
  end
  assign status_o = {40'b0, failed_q, responses_q, refused_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      refused_q     <= '0;
      responses_q   <= '0;
      failed_q      <= '0;
      unreachable_q <= '0;
      foreign_q     <= '0;
      malformed_q   <= '0;
      off_q         <= '0;
    end else begin
      refused_q     <= refused_q + 8'(refused);
      responses_q   <= responses_q + 8'(net_in_i[1].valid && net_in_i[1].eop);
      failed_q      <= failed_q + 8'(failed);
      unreachable_q <= unreachable_q + 32'(unreachable);
      foreign_q     <= foreign_q + 32'(foreign);
      malformed_q   <= malformed_q + 32'(malformed);
      // What came or was to go before is gone; what is new is dropped.
      off_q         <= stop & (off_q | {16{send_idle && receive_idle}});
    end
  end

  logic unused;
  assign unused = ^{unused_lid, setting_i, net_in_i, net_in_data_i[1], net_out_ready_i[1]};

endmodule
