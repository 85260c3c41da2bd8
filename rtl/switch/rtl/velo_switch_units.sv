// SPDX-License-Identifier: Apache-2.0
//
// Units of an input's buffer: which is free, and whose credit comes back when one becomes so.
//
// `unit_o`, a register, is the next free unit; `take_i` uses it. `write_*`: what is written into a unit is
// of that channel. `free_i`: a unit has been sent. `drop_i`: one of that channel was swallowed, none used.
// `freed_o` counts, per channel, units freed, modulo its width; `Brings` says which channels there are.
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

    input logic                write_i,
    input logic [UnitBits-1:0] write_unit_i,
    input vc_t                 write_vc_i,

    input  logic                take_i,
    output logic [UnitBits-1:0] unit_o,

    input logic drop_i,
    input vc_t  drop_vc_i,

    input  logic                  free_i,
    input  logic   [UnitBits-1:0] free_unit_i,
    output count_t [  NumVcs-1:0] freed_o
);

  vc_t unit_vc[2**UnitBits];
  logic drop_q;
  vc_t drop_vc_q;
  logic [NumVcs-1:0] back_q, dropped_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      drop_q    <= 1'b0;
      back_q    <= '0;
      dropped_q <= '0;
      freed_o   <= '0;
    end else begin
      drop_q <= drop_i;
      for (int v = 0; v < int'(NumVcs); v++) begin
        back_q[v]    <= free_i && unit_vc[free_unit_i] == vc_t'(v) && Brings[v];
        dropped_q[v] <= drop_q && drop_vc_q == vc_t'(v) && Brings[v];
        freed_o[v]   <= freed_o[v] + count_t'(back_q[v]) + count_t'(dropped_q[v]);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    drop_vc_q <= drop_vc_i;
    if (write_i) unit_vc[write_unit_i] <= write_vc_i;
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
