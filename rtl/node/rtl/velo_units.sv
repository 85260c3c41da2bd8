// SPDX-License-Identifier: Apache-2.0
//
// All VELO units of a node, NumVelo = 1, 2 or 4, each a velo_unit_slot. Context c is that of unit
// c mod NumVelo: it sends what the context stores, and completes what is sent to the context.
//
// A unit has a port of the crossbar and one of the network's request class for itself. What a source
// context sends leaves by one unit, and what is for a target context is completed by one, in the order in
// which it came: so the order of each pair of source and target stays what it is with one unit. Messages
// of different sources to one target, or of one source to different targets, were never in order.
//
// `write_*`, `net_*`, `dma_*`: as in velo_unit, by unit; the crossbar chooses a store's unit by the lowest
// bits of the page's `source`, the switch a message's unit by those of its target context. Settings go to the
// context's unit. `report_o` has numbers of units; its codes are those of the first unit among them, and so is
// the context of a full ring.
// Errors and latency: those of velo_unit_slot.
//
// Source: VELO white paper, "Implementation" ("the system can also be scaled to multiple VELO units to
// increase the bandwidth and to overlap start-up latencies").

`include "velo_assert.svh"

module velo_units
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import htax_pkg::*;
  import velo_net_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned UnitWidth = DataWidth,
    parameter int unsigned NumVelo = 1,
    parameter int unsigned CtxBits = 8,
    parameter bit Ecc = 1'b0,
    parameter bit Multicast = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic          [7:0] node_id_i,
    input  watchdog_t           access_watchdog_i,
    input  velo_setting_t       setting_i,
    output velo_report_t        report_o,

    input  htax_stream_t [NumVelo-1:0]                write_i,
    input  logic         [NumVelo-1:0][DataWidth-1:0] write_data_i,
    output logic         [NumVelo-1:0]                write_ready_o,

    output net_stream_t [NumVelo-1:0]                net_out_o,
    output logic        [NumVelo-1:0][DataWidth-1:0] net_out_data_o,
    input  logic        [NumVelo-1:0]                net_out_ready_i,
    input  net_stream_t [NumVelo-1:0]                net_in_i,
    input  logic        [NumVelo-1:0][DataWidth-1:0] net_in_data_i,
    output logic        [NumVelo-1:0]                net_in_ready_o,

    output htax_stream_t [NumVelo-1:0]                dma_o,
    output logic         [NumVelo-1:0][DataWidth-1:0] dma_data_o,
    input  logic         [NumVelo-1:0]                dma_ready_i
);

  localparam int unsigned UnitBits = NumVelo == 1 ? 1 : $clog2(NumVelo);

  // The first of those named; 0 if there are none.
  function automatic logic [UnitBits-1:0] first_of(logic [NumVelo-1:0] named);
    first_of = '0;
    for (int unsigned u = NumVelo; u > 0; u--) begin
      if (named[u-1]) first_of = UnitBits'(u - 1);
    end
  endfunction

  ecc_t [NumVelo-1:0] ecc;

  logic [NumVelo-1:0] cfg_unit, pointer_unit, cfg_ready;
  logic [NumVelo-1:0] sent, refused, undelivered, received, stalled, dropped;
  error_e [NumVelo-1:0] refused_code, dropped_code;
  logic [NumVelo-1:0][7:0] refused_source, dropped_ctx, dropped_node, stall_ctx;

  // A context's unit, one-hot.
  assign cfg_unit     = NumVelo'(1) << (setting_i.cfg_ctx & 8'(NumVelo - 1));
  assign pointer_unit = NumVelo'(1) << (setting_i.read_pointer_ctx & 8'(NumVelo - 1));

  for (genvar u = 0; u < NumVelo; u++) begin : gen_unit
    logic [AddrBits-1:0] dma_addr;
    logic [9:0] dma_len_bytes;

    velo_unit_slot #(
        .DataWidth(DataWidth),
        .UnitWidth(UnitWidth),
        .CtxBits  (CtxBits),
        .Ecc      (Ecc),
        .Multicast(Multicast)
    ) u_slot (
        .clk_i,
        .rst_ni,
        .node_id_i,
        .watchdog_enable_i     (setting_i.watchdog_enable),
        .watchdog_cycles_i     (setting_i.watchdog_cycles),
        .send_watchdog_enable_i(access_watchdog_i.enable),
        .send_watchdog_cycles_i(access_watchdog_i.cycles),
        .cfg_valid_i           (setting_i.cfg_valid && cfg_unit[u]),
        .cfg_ready_o           (cfg_ready[u]),
        .cfg_ctx_i             (CtxBits'(setting_i.cfg_ctx)),
        .cfg_enabled_i         (setting_i.cfg_enabled),
        .cfg_base_i            (setting_i.cfg_base),
        .cfg_last_slot_i       (setting_i.cfg_last_slot),
        .read_pointer_valid_i  (setting_i.read_pointer_valid && pointer_unit[u]),
        .read_pointer_ctx_i    (CtxBits'(setting_i.read_pointer_ctx)),
        .read_pointer_i        (setting_i.read_pointer),
        .write_valid_i         (write_i[u].valid),
        .write_ready_o         (write_ready_o[u]),
        .write_eop_i           (write_i[u].eop),
        .write_addr_i          (write_i[u].header.addr),
        .write_len_bytes_i     (write_i[u].header.len_bytes),
        .write_data_i          (write_data_i[u]),
        .net_out_valid_o       (net_out_o[u].valid),
        .net_out_ready_i       (net_out_ready_i[u]),
        .net_out_sop_o         (net_out_o[u].sop),
        .net_out_eop_o         (net_out_o[u].eop),
        .net_out_data_o        (net_out_data_o[u]),
        .net_in_valid_i        (net_in_i[u].valid),
        .net_in_ready_o        (net_in_ready_o[u]),
        .net_in_sop_i          (net_in_i[u].sop),
        .net_in_eop_i          (net_in_i[u].eop),
        .net_in_poison_i       (net_in_i[u].poison),
        .net_in_data_i         (net_in_data_i[u]),
        .dma_valid_o           (dma_o[u].valid),
        .dma_ready_i           (dma_ready_i[u]),
        .dma_eop_o             (dma_o[u].eop),
        .dma_data_o            (dma_data_o[u]),
        .dma_addr_o            (dma_addr),
        .dma_len_bytes_o       (dma_len_bytes),
        .sent_o                (sent[u]),
        .refused_o             (refused[u]),
        .refused_code_o        (refused_code[u]),
        .refused_source_o      (refused_source[u]),
        .undelivered_o         (undelivered[u]),
        .received_o            (received[u]),
        .stalled_o             (stalled[u]),
        .stall_ctx_o           (stall_ctx[u]),
        .dropped_o             (dropped[u]),
        .dropped_code_o        (dropped_code[u]),
        .dropped_ctx_o         (dropped_ctx[u]),
        .dropped_node_o        (dropped_node[u]),
        .ecc_o                 (ecc[u])
    );
    assign net_out_o[u].poison = 1'b0;
    assign dma_o[u].header = '{addr: dma_addr, len_bytes: dma_len_bytes, default: '0};
  end

  always_comb begin
    report_o                = '0;
    report_o.cfg_ready      = |(cfg_unit & cfg_ready);
    report_o.ecc            = ecc_count(64'(ecc));
    report_o.stalled        = |stalled;
    report_o.stall_ctx      = stall_ctx[first_of(stalled)];
    report_o.refused_code   = refused_code[first_of(refused)];
    report_o.refused_source = refused_source[first_of(refused)];
    report_o.dropped_code   = dropped_code[first_of(dropped)];
    report_o.dropped_ctx    = dropped_ctx[first_of(dropped)];
    report_o.dropped_node   = dropped_node[first_of(dropped)];
    for (int unsigned u = 0; u < NumVelo; u++) begin
      report_o.sent += 3'(sent[u]);
      report_o.refused += 3'(refused[u] && !undelivered[u]);
      report_o.undelivered += 3'(undelivered[u]);
      report_o.received += 3'(received[u]);
      report_o.dropped += 3'(dropped[u]);
    end
  end

  logic unused;
  assign unused = ^{write_i, setting_i};

  `VELO_ASSERT_INIT(NumVeloSupported, NumVelo inside {1, 2, 4})
  `VELO_ASSERT_INIT(ContextForEachUnit, 2 ** CtxBits >= NumVelo)

endmodule
