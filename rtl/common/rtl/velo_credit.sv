// SPDX-License-Identifier: Apache-2.0
//
// Credit counter of one virtual channel, at the sending side.
//
// Nothing is ever added to or taken from a shared number: the receiver publishes how many units it
// has freed since reset (`freed_i`), this side counts how many it has used, both modulo
// 2**Width. A lost or repeated credit message therefore cannot create or leak a credit.
//
// `total_i` is the receiver's capacity, 0 until it is known and constant afterwards.
// `take_i` uses a unit; the sender's protocol takes one only where `ok_o` allowed it.
// `avail_o` is what is left; `ok_o`, registered, says that at least Threshold were left at the last
// clock edge (of a capacity that is known for a cycle): what a sender needs that must not stop inside
// a packet.
// Source: case-for-fpga, section 3, credit-based flow control.

`include "velo_assert.svh"

module velo_credit #(
    parameter int unsigned Width = 6,
    parameter int unsigned Threshold = 1
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [Width-1:0] total_i,
    input logic [Width-1:0] freed_i,
    input logic             take_i,

    output logic [Width-1:0] avail_o,
    output logic             ok_o
);

  `VELO_ASSERT_INIT(ThresholdFitsWidth, Threshold >= 1 && Threshold < 2 ** (Width - 1))

  // `spare_q` keeps the credits beyond the threshold, less one, without those of `freed_i`. So `ok_o` is
  // the sign of one sum: the lowest bit of each term carries `take_i` in.
  logic [Width-1:0] used_d, used_q, spare_q;
  logic [Width:0] spare_next, sum;

  assign avail_o = total_i + freed_i - used_q;
  assign used_d = take_i ? used_q + 1'b1 : used_q;
  assign spare_next = {total_i - Width'(Threshold + 1), 1'b1} + {~used_q, !take_i};
  assign sum = {spare_q, 1'b1} + {freed_i, !take_i};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q  <= '0;
      spare_q <= -Width'(Threshold + 1);
      ok_o    <= 1'b0;
    end else begin
      used_q  <= used_d;
      spare_q <= spare_next[Width:1];
      ok_o    <= !sum[Width];
    end
  end

  logic unused;
  assign unused = &{1'b0, spare_next[0], sum[Width-1:0]};

  `VELO_ASSUME(CapacityLeavesRoom, !total_i[Width-1])
  `VELO_ASSERT(NeverOverdrawn, !take_i || avail_o != '0)
  `VELO_ASSERT(NoMoreThanCapacity, avail_o <= total_i)

endmodule
