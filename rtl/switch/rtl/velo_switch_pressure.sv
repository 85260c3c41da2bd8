// SPDX-License-Identifier: Apache-2.0
//
// Congestion management: whether packets that leave by an output get a mark.
//
// The output is under pressure in a cycle in which two packets or more wait for it, of one input or of
// several; the one that it is sending does not wait. A counter goes up by one in such a cycle and down by one
// in every other, between 0 and twice `cycles_i`. Packets are marked in cycles of pressure while it is at
// `cycles_i` or above: so a burst that is over soon marks nothing, a pause shorter than the pressure before it
// does not begin the count anew, and nothing is marked once the queues are empty.
// With `cycles_i` = 0 all packets are marked. Without `enable_i` none is, and the counter is zero; it stands
// there while nothing waits, too.
//
// `mark_o`, a register, is three cycles behind the queues. Errors: none.
// Source: VELO paper, section 3, "Buffer requirements and flow control", which names congestion management and
// does not say how it is done.

module velo_switch_pressure #(
    parameter int unsigned NumPorts   = 9,
    parameter int unsigned CyclesBits = 16
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                  enable_i,  // mark packets; else none
    input logic [CyclesBits-1:0] cycles_i,  // of pressure until packets are marked

    input logic [NumPorts-1:0] waits_i,  // by input: a packet waits for this output
    input logic [NumPorts-1:0] more_i,   // by input: another one behind it

    output logic mark_o  // packets that leave now get a mark
);

  logic pressed, pressed_q;
  logic [CyclesBits:0] count_q, limit;

  assign pressed = |more_i || (waits_i & (waits_i - 1'b1)) != '0;
  assign limit   = {cycles_i, 1'b0};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pressed_q <= 1'b0;
      count_q   <= '0;
      mark_o    <= 1'b0;
    end else begin
      pressed_q <= pressed && enable_i;
      // A limit that was lowered meanwhile is come down to, not jumped to.
      if (!enable_i) count_q <= '0;
      else if (pressed_q && count_q < limit) count_q <= count_q + 1'b1;
      else if ((!pressed_q || count_q > limit) && count_q != '0) count_q <= count_q - 1'b1;
      mark_o <= enable_i && (pressed_q || cycles_i == '0) && count_q >= {1'b0, cycles_i};
    end
  end

endmodule
