// SPDX-License-Identifier: Apache-2.0
//
// Where the writer of an input's buffer is, seen from the reader of the packet being sent: in the reader's unit,
// in the one after it, or just gone from there. All outputs are registers, so that nobody compares units in the
// cycle that needs to know; they hold for the reader's place of their own cycle.
//
// Writer: `first_i`: it writes a packet's first word; `ends_i`: the last one; `fills_i`: the last one of a unit, and
// goes on in another. `writing_i`, `write_unit_i`, registers: it is inside a packet, in that unit.
// Reader: `start_i`: it begins a packet, `start_arriving_i`: that which is coming in; `enter_i`: it goes on to the next
// unit, which is `next_i`, a register. `next_o` and `ended_next_o` hold from the third cycle in a unit on, or
// from the one behind `filled_here_o`; a unit has more words than that.
// `ended_*_o`, `filled_here_o`: in the last cycle. Errors: none.

module velo_switch_chase #(
    parameter int unsigned UnitBits = 8
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                first_i,
    input logic                ends_i,
    input logic                fills_i,
    input logic                writing_i,
    input logic [UnitBits-1:0] write_unit_i,

    input logic                start_i,
    input logic                start_arriving_i,
    input logic                enter_i,
    input logic [UnitBits-1:0] next_i,

    output logic here_o,
    output logic next_o,
    output logic ended_here_o,
    output logic ended_next_o,
    output logic filled_here_o
);

  logic first_unit_q;  // the writer is in its packet's first unit
  logic here, next, stays;  // the reader's place is the next cycle's, the writer's still this one's

  assign stays = !ends_i && !fills_i;
  always_comb begin
    if (start_i) here = start_arriving_i && first_unit_q;
    else if (enter_i) here = filled_here_o || next_o;
    else here = here_o;
  end
  assign next = filled_here_o || (writing_i && write_unit_i == next_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_unit_q  <= 1'b0;
      here_o        <= 1'b0;
      next_o        <= 1'b0;
      ended_here_o  <= 1'b0;
      ended_next_o  <= 1'b0;
      filled_here_o <= 1'b0;
    end else begin
      if (first_i) first_unit_q <= 1'b1;
      else if (fills_i) first_unit_q <= 1'b0;
      here_o        <= here && stays;
      next_o        <= next && stays;
      ended_here_o  <= here && ends_i;
      ended_next_o  <= next && ends_i;
      filled_here_o <= here && fills_i;
    end
  end

endmodule
