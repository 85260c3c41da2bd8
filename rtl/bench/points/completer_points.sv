// SPDX-License-Identifier: Apache-2.0
//
// Functional points of velo_completer, bound into it for `scripts/rtl coverage`. Ports by the names
// of the module's own signals. Errors: none.

`include "velo_assert.svh"

module completer_points
  import velo_pkg::*;
#(
    parameter int unsigned AddrBits = 48
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                  net_valid_i,
    input logic                  net_ready_o,
    input logic                  net_sop_i,
    input logic                  net_eop_i,
    input logic                  cfg_valid_i,
    input logic                  cfg_ready_o,
    input logic                  dma_valid_o,
    input logic                  dma_ready_i,
    input logic                  dma_eop_o,
    input logic   [AddrBits-1:0] dma_addr_o,
    input logic   [         9:0] dma_len_bytes_o,
    input logic                  received_o,
    input logic                  stalled_o,
    input logic                  error_valid_o,
    input error_e                error_code_o
);

  localparam int unsigned SlotPayloadBytes = LineBytes - LineHeaderBytes;

  logic taken, ended_q, stalled_q, status, status_q;
  assign taken  = net_valid_i && net_ready_o;
  assign status = dma_addr_o[5:0] == '0;  // a header word, not payload
  always_ff @(posedge clk_i) begin
    ended_q   <= taken && net_eop_i;
    stalled_q <= stalled_o && rst_ni;
    if (dma_valid_o && dma_ready_i && dma_eop_o) status_q <= status;
  end

  `VELO_COVER(Received, received_o)
  `VELO_COVER(PacketsWithoutGap, taken && net_sop_i && ended_q)
  `VELO_COVER(FullSlot, dma_valid_o && dma_len_bytes_o == 10'(SlotPayloadBytes))
  `VELO_COVER(NoPayload, dma_valid_o && dma_eop_o && status && status_q)
  `VELO_COVER(HeldByHost, dma_valid_o && !dma_ready_i)
  `VELO_COVER(RingFull, stalled_o)
  `VELO_COVER(RingFreed, stalled_q && received_o)
  `VELO_COVER(SettingWaits, cfg_valid_i && !cfg_ready_o)
  `VELO_COVER(SettingWhileFull, cfg_valid_i && cfg_ready_o && stalled_o)
  `VELO_COVER(DroppedKind, error_valid_o && error_code_o == ErrorKind)
  `VELO_COVER(DroppedMalformed, error_valid_o && error_code_o == ErrorMalformed)
  `VELO_COVER(DroppedContext, error_valid_o && error_code_o == ErrorContext)
  `VELO_COVER(DroppedByWatchdog, error_valid_o && error_code_o == ErrorStall)

  logic unused;
  assign unused = ^dma_addr_o;

endmodule

bind velo_completer completer_points #(.AddrBits(AddrBits)) u_points (.*);
