// SPDX-License-Identifier: Apache-2.0
//
// Says when something has waited for too long.
//
// `waiting_i` stands in each cycle of one wait and falls between two waits. `expired_o` rises when a
// wait has lasted `cycles_i` cycles and one more, and falls a cycle after the wait has ended: the user
// looks at it together with its own wait. Never with `enable_i` low. The count is taken when nothing
// waits. Errors: none.
//
// Source: VELO white paper (a watchdog, so that a core that stalls cannot hang the machine).

`include "velo_assert.svh"

module velo_watchdog #(
    parameter int unsigned Width = 24
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             enable_i,   // 0: never expires
    input  logic [Width-1:0] cycles_i,   // that a wait may last
    input  logic             waiting_i,  // something waits
    output logic             expired_o   // it has waited for longer
);

  logic [Width-1:0] left_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q    <= '1;
      expired_o <= 1'b0;
    end else begin
      expired_o <= enable_i && waiting_i && left_q == '0;
      if (!waiting_i) left_q <= cycles_i;
      else if (left_q != '0) left_q <= left_q - 1'b1;
    end
  end

  `VELO_ASSERT(OnlyWhenSet, !expired_o || left_q == '0 || !waiting_i || left_q == cycles_i)

endmodule
