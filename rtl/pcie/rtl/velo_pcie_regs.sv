// SPDX-License-Identifier: Apache-2.0
//
// The function's own registers: settings and counts, at their places in BAR4 (spec/pcie.toml).
//
// `own_data_o` is what is at `own_addr_i`; zero where nothing is. Errors: none; writes to anything else change nothing.

`include "velo_assert.svh"

module velo_pcie_regs
  import velo_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
#(
    parameter int unsigned Vectors = 8,
    parameter int unsigned Lines = 16,
    parameter int unsigned Slots = 8,
    parameter int unsigned Bar2Bits = 38,
    parameter int unsigned Bar4Bits = PcieBar4Bits
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                own_write_i,
    input  logic [Bar4Bits-1:0] own_write_addr_i,
    input  logic [        63:0] own_write_data_i,
    input  logic [         7:0] own_write_be_i,
    input  logic [Bar4Bits-1:0] own_addr_i,
    output logic [        63:0] own_data_o,

    output pcie_setting_t                 setting_o,
    input  pcie_stores_t                  stores_i,
    input  logic                          dropped_i,       // a store to that address
    input  logic           [Bar2Bits-1:0] dropped_addr_i,
    input  receive_event_t                event_i,
    input  logic                          unexpected_i,
    input  logic                          failed_i,
    input  logic                          timeout_i,
    input  logic           [   Slots-1:0] lost_i
);

  pcie_dropped_t dropped_q;
  pcie_errors_t  errors_q;
  pcie_reads_t reads_q, reads;
  pcie_function_t has;

  assign has = '{
          vectors: 8'(Vectors),
          store_lines: 8'(Lines),
          read_slots: 8'(Slots),
          default: '0
      };
  always_comb begin
    reads      = reads_q;
    reads.lost = 8'(lost_i);
    unique case (own_addr_i)
      Bar4Bits'(PcieRegFunction): own_data_o = has;
      Bar4Bits'(PcieRegSetting):  own_data_o = setting_o;
      Bar4Bits'(PcieRegStores):   own_data_o = stores_i;
      Bar4Bits'(PcieRegDropped):  own_data_o = dropped_q;
      Bar4Bits'(PcieRegErrors):   own_data_o = errors_q;
      Bar4Bits'(PcieRegReads):    own_data_o = reads;
      default:                    own_data_o = '0;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      setting_o <= '{patience: '1, moderation: '0, timeout: 24'h10_0000, default: '0};
      dropped_q <= '0;
      errors_q  <= '0;
      reads_q   <= '0;
    end else begin
      if (own_write_i && own_write_addr_i[Bar4Bits-1:3] ==
          (Bar4Bits - 3)'(PcieRegSetting / 8)) begin
        if (own_write_be_i[0]) begin
          {setting_o.moderation, setting_o.patience} <= own_write_data_i[31:0];
        end
        if (own_write_be_i[4]) setting_o.timeout <= own_write_data_i[55:32];
      end
      if (dropped_i) begin
        dropped_q.count  <= dropped_q.count + 1'b1;
        dropped_q.target <= 28'(dropped_addr_i[WindowSourceLsb-1:0]);
        dropped_q.source <= window_source(64'(dropped_addr_i));
      end
      if (event_i.poisoned) errors_q.poisoned <= errors_q.poisoned + 1'b1;
      if (event_i.unsupported) errors_q.unsupported <= errors_q.unsupported + 1'b1;
      if (event_i.malformed) errors_q.malformed <= errors_q.malformed + 1'b1;
      if (unexpected_i) errors_q.unexpected <= errors_q.unexpected + 1'b1;
      if (timeout_i) reads_q.timeouts <= reads_q.timeouts + 1'b1;
      if (failed_i) reads_q.failed <= reads_q.failed + 1'b1;
    end
  end

  logic unused;
  assign unused = ^{own_write_data_i, own_write_be_i, dropped_addr_i, own_write_addr_i};

endmodule
