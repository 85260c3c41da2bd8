// SPDX-License-Identifier: Apache-2.0
//
// Packets of a link that are cut off and come again: their place in an input's queues, and their credits.
//
// A link gives words on before it knows that the packet is whole. If it is not, the copy ends there,
// poisoned, and the packet comes once more, as the next one of this input. The sender has taken credits
// for it once. So:
// * Credits of the packet that is coming in wait for its end (`release_count_o`). If it was cut off, none is
//   given back for that copy: neither for what was sent or swallowed of it, nor for what still will be.
// * A copy of which words have been sent goes on to its end, as fast as the crossbar takes it. There is one
//   such at most, since it is the one that the input is sending.
// * One that has not begun keeps its place and its first unit, as a poisoned packet of that unit
//   (`truncate_o`; its other units are used next), in case its turn comes. If not, the packet that comes
//   again takes over both (`retry_o`), if the link says that it is the same. If not, or if it has only one word,
//   which the place does not know, it gets a place of its own; the poisoned packet goes when its turn comes.
// So besides the senders' credits the buffer needs room for two packets of the longest size, and a unit
// for each copy that is left. There are few: a link believes one of some thousands of broken headers.
//
// `sop_i`, `end_i`: first and last word of a packet coming in, `add_i` with the first: it is put into a queue
// or takes over a place there; `again_i` with the last: it was cut off; with the first: it is the one that was.
// `drop_unit_i`: a unit was swallowed.
// `start_i`: the packet `start_unit_i` begins to be sent; `start_watched_i`: that is `retry_unit_o` of the cycle
// before; `start_arriving_o`: it is still coming in. `give_back_i`: a unit of it was; `give_again_i`: of a
// copy that was truncated; `single_i`: a cycle later than those would be, a packet of one word was.
// `free_credit_o`, a cycle after `give_back_i`: the unit's credit comes back at once.
// With Repeats = 0 no packet comes again, and credits come back at once.
// Errors: none. Source: case-for-fpga, section 3, credit-based flow control.

`include "velo_assert.svh"

module velo_switch_again
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned UnitBits = 8,
    parameter bit Repeats = 1'b1
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                 sop_i,
    input logic                 add_i,
    input logic  [UnitBits-1:0] add_unit_i,
    input size_t                add_size_i,
    input logic                 end_i,
    input logic                 again_i,
    input logic                 drop_unit_i,

    input logic                start_i,
    input logic [UnitBits-1:0] start_unit_i,
    input logic                start_watched_i,
    input logic                give_back_i,
    input logic                give_again_i,
    input logic                single_i,

    output logic                 start_arriving_o,
    output logic                 retry_o,
    output logic  [UnitBits-1:0] retry_unit_o,
    output size_t                retry_size_o,
    output logic                 truncate_o,

    output logic   free_credit_o,
    output count_t release_count_o
);

  // The packet that is coming in and is in a queue, or was the last to be so.
  logic arriving_q, begun_q, wait_q, fresh_q, starts, cut_off;
  logic [UnitBits-1:0] unit_q;
  size_t size_q;

  // It does not begin in the cycle behind its first word, in which `start_watched_i` still tells of the one before.
  assign starts           = start_i && start_watched_i && !fresh_q;
  assign start_arriving_o = starts && arriving_q;
  assign cut_off          = Repeats && end_i && again_i;
  assign truncate_o       = cut_off && arriving_q && !begun_q && !starts;
  assign retry_o          = Repeats && wait_q && !starts && again_i;
  assign retry_unit_o     = unit_q;
  assign retry_size_o     = size_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      arriving_q <= 1'b0;
      begun_q    <= 1'b0;
      wait_q     <= 1'b0;
      fresh_q    <= 1'b0;
    end else begin
      fresh_q <= sop_i && add_i && !retry_o;
      if (sop_i) arriving_q <= add_i && !end_i;
      else if (end_i) arriving_q <= 1'b0;
      if (sop_i) begun_q <= 1'b0;
      else if (starts && arriving_q) begun_q <= 1'b1;
      if (truncate_o) wait_q <= 1'b1;
      else if (sop_i || starts) wait_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (sop_i && add_i) begin
      unit_q <= add_unit_i;
      size_q <= add_size_i;
    end
  end

  // The packet being sent is the one that is coming in (`chases`), or a copy that was cut off (`lost`).
  logic chases_q, lost_q, lost_d;
  assign lost_d = start_i ? cut_off && arriving_q && starts : lost_q || (cut_off && chases_q);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      chases_q <= 1'b0;
      lost_q   <= 1'b0;
    end else begin
      if (end_i) chases_q <= 1'b0;
      else if (start_i) chases_q <= Repeats && start_arriving_o;
      lost_q <= lost_d;
    end
  end

  // A unit is given back a cycle after its last word. If the packet ends in that cycle, it counts to the rest.
  logic back_q, chased;
  count_t waiting_q, waiting;
  assign chased = back_q && chases_q;
  assign free_credit_o = (back_q && !chases_q) || single_i;
  assign waiting = waiting_q + count_t'(chased) + count_t'(drop_unit_i);
  assign release_count_o = end_i && !cut_off ? waiting : '0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      back_q    <= 1'b0;
      waiting_q <= '0;
    end else begin
      back_q    <= give_back_i && !lost_d && !give_again_i;
      waiting_q <= end_i ? '0 : waiting;
    end
  end

  logic unused;
  assign unused = ^start_unit_i;  // for the assertion alone

  `VELO_ASSERT(StartsByUnit, starts == (start_i && start_unit_i == unit_q))
  `VELO_ASSUME(CutOffHasTwoWords, !(sop_i && cut_off))
  `VELO_ASSERT(NoneIsLeftBehind,
               !(chased && !arriving_q) || waiting_q != '0 || end_i || drop_unit_i)

endmodule
