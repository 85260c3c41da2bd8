// SPDX-License-Identifier: Apache-2.0
//
// Credit counter of one virtual channel, at the sending side.
//
// Nothing is ever added to or taken from a shared number: the receiver publishes how many units it
// has freed since reset (`freed_i`), this side counts how many it has used, both modulo
// 2**Width. A lost or repeated credit message therefore cannot create or leak a credit.
//
// `total_i` is the receiver's capacity, 0 until it is known. It changes only while nothing is taken, in the cycle
// before and the two after as well, and to no less than is in use.
// `take_i` uses a unit; the sender's protocol takes one only where `ok_o` allowed it.
// `avail_o`, a register, is what is left; it knows of every unit taken, and of units freed two cycles
// late. `ok_o[s]` says that at least Thresholds[s] are left: what a sender needs that must not stop inside
// a packet of that size. A sender that took more than there was is told that nothing is left.
// Source: case-for-fpga, section 3, credit-based flow control.

`include "velo_assert.svh"

module velo_credit #(
    parameter int unsigned Width = 8,
    parameter int unsigned NumSizes = 1,
    parameter logic [NumSizes-1:0][Width-1:0] Thresholds = {NumSizes{Width'(1)}}
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [Width-1:0] total_i,  // capacity there; 0: not known yet
    input logic [Width-1:0] freed_i,  // units freed there, modulo 2**Width
    input logic             take_i,   // pulse: one is used

    output logic [   Width-1:0] avail_o,  // units left
    output logic [NumSizes-1:0] ok_o  // so many as each threshold are left
);

  // The sum of two registers and a bit: the units freed come a cycle earlier to a register of their own.
  logic [Width-1:0] limit_q, used_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      limit_q <= '0;
      used_q  <= '0;
      avail_o <= '0;
    end else begin
      limit_q <= total_i + freed_i;
      used_q  <= used_q + Width'(take_i);
      avail_o <= limit_q - used_q - Width'(take_i);
    end
  end

  for (genvar s = 0; s < int'(NumSizes); s++) begin : gen_size
    assign ok_o[s] = !avail_o[Width-1] && avail_o >= Thresholds[s];
    `VELO_ASSERT_INIT(ThresholdFitsWidth, Thresholds[s] >= 1 && !Thresholds[s][Width-1])
  end

  `VELO_ASSUME(CapacityLeavesRoom, !total_i[Width-1])
  `VELO_ASSERT(NeverOverdrawn, !take_i || avail_o != '0)

  // What is left knows of another capacity two cycles late.
  logic [1:0][Width-1:0] total_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) total_q <= '0;
    else total_q <= {total_q[0], total_i};
  end
  `VELO_ASSERT(NoMoreThanCapacity, avail_o <= total_i || avail_o <= total_q[1])

endmodule
