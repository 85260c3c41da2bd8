// SPDX-License-Identifier: Apache-2.0
//
// Functional points of velo_link, bound into it for `scripts/rtl coverage`. Ports by the names of
// the module's own signals. Errors: none.

`include "velo_assert.svh"

module link_points
  import velo_link_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input logic    in_valid_i,
    input logic    in_stop_o,
    input logic    up_o,
    input refuse_e refuse_o,
    input logic    error,
    input logic    replay,
    input logic    timeout
);

  logic up_q, was_up_q;
  always_ff @(posedge clk_i) begin
    up_q     <= up_o && rst_ni;
    was_up_q <= rst_ni && (was_up_q || up_o);
  end

  `VELO_COVER(CameUp, up_o && !up_q)
  `VELO_COVER(CameUpAgain, up_o && !up_q && was_up_q)
  `VELO_COVER(WordDisturbed, error)
  `VELO_COVER(RepeatedWhenAsked, replay && !timeout)
  `VELO_COVER(RepeatedByTimer, replay && timeout)
  `VELO_COVER(RingOrWindowFull, in_stop_o)
  `VELO_COVER(WordWhileStopping, in_stop_o && in_valid_i)
  `VELO_COVER(WordWhileDown, in_valid_i && !up_o)
  `VELO_COVER(RefusedVersion, refuse_o == RefuseVersion)
  `VELO_COVER(RefusedWidth, refuse_o == RefuseWidth)
  `VELO_COVER(RefusedVcs, refuse_o == RefuseVcs)
  `VELO_COVER(RefusedMtu, refuse_o == RefuseMtu)
  `VELO_COVER(RefusedCredits, refuse_o == RefuseCredits)
  `VELO_COVER(RefusedRestart, refuse_o == RefuseRestart)

endmodule

bind velo_link link_points u_points (.*);
