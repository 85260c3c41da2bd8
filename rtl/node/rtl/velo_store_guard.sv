// SPDX-License-Identifier: Apache-2.0
//
// Between the host's posted writes and a unit: no store waits for ever.
//
// A write whose first beat the unit does not take in the time that `watchdog_i` allows is given up: it
// is swallowed whole, the unit sees nothing of it any more, and `given_up_o` pulses, with its first beat
// still at the input. A write of which the unit has taken a beat is never given up, so a unit takes a
// write whole without waiting for anybody but the host once it has taken the first beat of it.
//
// Both sides valid/ready; header and data go past. Combinational, adds no cycle. Errors: none of its own.
// Source: VELO white paper (a watchdog, so that a core that stalls cannot hang the machine).

`include "velo_assert.svh"

module velo_store_guard
  import velo_regfile_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input watchdog_t watchdog_i,

    input  logic in_valid_i,  // from the host
    output logic in_ready_o,
    input  logic in_eop_i,

    output logic out_valid_o,  // to the unit
    input  logic out_ready_i,

    output logic given_up_o  // for one cycle
);

  logic first_q, drop_q, waiting, late;

  assign waiting     = in_valid_i && first_q && !drop_q && !out_ready_i;
  assign given_up_o  = late && waiting;
  assign out_valid_o = in_valid_i && !drop_q;
  assign in_ready_o  = out_ready_i || drop_q;

  velo_watchdog u_watchdog (
      .clk_i    (clk_i),
      .rst_ni   (rst_ni),
      .enable_i (watchdog_i.enable),
      .cycles_i (watchdog_i.cycles),
      .waiting_i(waiting),
      .expired_o(late)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q <= 1'b1;
      drop_q  <= 1'b0;
    end else begin
      if (in_valid_i && in_ready_o) first_q <= in_eop_i;
      if (given_up_o) drop_q <= 1'b1;
      else if (in_valid_i && in_eop_i) drop_q <= 1'b0;
    end
  end

  `VELO_ASSERT(NothingOfItIsTaken, !given_up_o || first_q)

endmodule
