// SPDX-License-Identifier: Apache-2.0
//
// Units of an input's buffer: which is free, and whose credit comes back when one becomes so.
//
// `unit_o`, a register, is the next free unit; `take_i` uses it. `free_i`: a unit has been sent, which came by
// channel `free_vc_i`; `free_credit_i`: its credit comes back now.
// `release_count_i`: so many credits of channel `release_vc_i` come back, of units that were sent or
// swallowed before.
// `freed_o` counts, per channel, credits given back, modulo its width; `Brings` says which channels there are.
// Errors: none. Source: case-for-fpga, section 3, credit-based flow control.

module velo_switch_units
  import velo_link_pkg::*;
#(
    parameter int unsigned NumVcs = 6,
    parameter int unsigned NumUnits = 180,
    parameter bit [NumVcs-1:0] Brings = '1,
    localparam int unsigned UnitBits = $clog2(NumUnits)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                take_i,
    output logic [UnitBits-1:0] unit_o,

    input count_t release_count_i,
    input vc_t    release_vc_i,

    input  logic                  free_i,
    input  logic                  free_credit_i,
    input  logic   [UnitBits-1:0] free_unit_i,
    input  vc_t                   free_vc_i,
    output count_t [  NumVcs-1:0] freed_o
);

  count_t release_q;
  vc_t release_vc_q;
  logic [NumVcs-1:0] back_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      release_q <= '0;
      back_q    <= '0;
      freed_o   <= '0;
    end else begin
      release_q <= release_count_i;
      for (int v = 0; v < int'(NumVcs); v++) begin
        back_q[v] <= free_credit_i && free_vc_i == vc_t'(v) && Brings[v];
        freed_o[v] <= freed_o[v] + count_t'(back_q[v]) +
            (Brings[v] && release_vc_q == vc_t'(v) ? release_q : '0);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    release_vc_q <= release_vc_i;
  end

  velo_switch_pool #(
      .NumUnits(NumUnits)
  ) u_pool (
      .clk_i,
      .rst_ni,
      .take_i,
      .unit_o,
      .free_i,
      .free_unit_i
  );

endmodule
