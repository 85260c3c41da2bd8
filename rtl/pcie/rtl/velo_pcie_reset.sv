// SPDX-License-Identifier: Apache-2.0
//
// Function-level reset, in an order that leaves nothing behind.
//
// `flr_i` stands from the host's wish until `flr_done_o`, which stands until `flr_i` falls.
//   1. `open_o` falls: no request is served, no packet is begun; the node's writes are swallowed and its reads fail.
//   2. When all that has begun has ended (`idle_i`: no packet is half sent, every read is answered or has timed out),
//      `function_rst_no` is low for `Cycles` cycles: the node and the function's own state, of which a memory is cleared
//      word by word meanwhile (`restart_o`). Reads that the host still owes are remembered, so what comes late is
//      known to be late.
//   3. `flr_done_o` tells the hard block, and with `flr_i` gone requests are served again. It begins so after `rst_ni`.
// So nothing that the function sent before can be followed by more of it. Errors: none; how long step 2 takes is
// bounded by the reads' timeout and by the host, which has to take what was begun.
//
// Source: PCI Express Base Specification 3.0, section 6.6.2.

`include "velo_assert.svh"

module velo_pcie_reset #(
    parameter int unsigned Cycles = 256
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic flr_i,
    input  logic idle_i,
    output logic open_o,
    output logic function_rst_no,
    output logic restart_o,        // it is low
    output logic flr_done_o
);

  typedef enum logic [1:0] {
    StOpen,
    StDrain,
    StReset,
    StDone
  } state_e;

  state_e state_q;
  logic [$clog2(Cycles)-1:0] left_q;
  logic idle_q;  // for a cycle: what has just been taken shows now

  assign open_o = state_q == StOpen;
  assign flr_done_o = state_q == StDone && flr_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q         <= StReset;
      left_q          <= '1;
      function_rst_no <= 1'b0;
      restart_o       <= 1'b1;
      idle_q          <= 1'b0;
    end else begin
      function_rst_no <= state_q != StReset;
      restart_o       <= state_q == StReset;
      left_q          <= state_q == StReset ? left_q - 1'b1 : '1;
      idle_q          <= state_q == StDrain && idle_i;
      unique case (state_q)
        StOpen:  if (flr_i) state_q <= StDrain;
        StDrain: if (idle_i && idle_q) state_q <= StReset;
        StReset: if (left_q == '0) state_q <= StDone;
        default: if (!flr_i) state_q <= StOpen;
      endcase
    end
  end

  `VELO_ASSERT_INIT(CyclesIsPowerOfTwo, Cycles >= 4 && Cycles == 2 ** $clog2(Cycles))
  `VELO_ASSERT(ClosedWhileReset, function_rst_no || !open_o)

endmodule
