// SPDX-License-Identifier: Apache-2.0
//
// Units of packets that passed, per virtual channel, modulo 2**CountWidth, as they stood when the session began.
//
// A credit counts from a session's start; the switch's counters go on from its reset. `base_o` is the
// difference. `word_i`: a word of a packet, `end_i`: its last one, with `vc_i` and whether the packet
// counts (`count_i`). `clear_i`: the packet so far does not count. `hold_i`: no packet has passed in this
// session yet; it stays long enough for the last one before it to have been counted. Errors: none.

module velo_link_units
  import velo_link_pkg::*;
#(
    parameter int unsigned NumVcs = 6,
    parameter int unsigned UnitWords = 8
) (
    input logic clk_i,
    input logic rst_ni,

    input logic word_i,
    input logic end_i,
    input logic count_i,
    input vc_t  vc_i,
    input logic clear_i,
    input logic hold_i,

    output count_t [NumVcs-1:0] base_o
);

  localparam int unsigned PlaceBits = UnitWords > 1 ? $clog2(UnitWords) : 1;
  typedef logic [PlaceBits-1:0] place_t;

  place_t place_q;  // in the unit
  count_t units_q, number;  // of the packet
  count_t [NumVcs-1:0] total_q;

  assign number = units_q + count_t'(place_q == '0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      place_q <= '0;
      units_q <= '0;
      total_q <= '0;
      base_o  <= '0;
    end else begin
      if (clear_i || (word_i && end_i)) begin
        place_q <= '0;
        units_q <= '0;
      end else if (word_i) begin
        place_q <= place_q == place_t'(UnitWords - 1) ? '0 : place_q + 1'b1;
        units_q <= number;
      end
      for (int v = 0; v < int'(NumVcs); v++) begin
        if (word_i && end_i && count_i && vc_i == vc_t'(v)) total_q[v] <= total_q[v] + number;
      end
      if (hold_i) base_o <= total_q;
    end
  end

endmodule
