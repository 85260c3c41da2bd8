// SPDX-License-Identifier: Apache-2.0
//
// One lane, 8b/10b, receiving: finds where groups of four symbols begin, and decodes them.
//
// A comma (K28.5) has bits that valid symbols show at no other place, and begins a group. In search,
// each comma sets the offset; CommasToLock of them running at the same one give lock. In lock, a group
// with an error weighs BadWeight, a right one takes 1 back: BadLimit ends the lock, and so do
// CommasToLock commas running at another offset. So an error rate up to 1 group in BadWeight + 1 is
// endured, and a slip of a bit is noticed within some BadLimit / BadWeight groups.
//
// Latency 3 cycles: the last bits of a group come up to a cycle after its first ones, the window, the
// decoder. Errors: one pulse a group for each kind; `lost_o` one pulse for each end of lock.
// Source: IEEE 802.3, clause 36.2.5.2.6, with counters in the place of its states.

`include "velo_assert.svh"

module velo_pcs8_align
  import velo_pcs_pkg::*;
#(
    parameter int unsigned CommasToLock = 3,
    parameter int unsigned BadWeight = 4,
    parameter int unsigned BadLimit = 64
) (
    input logic clk_i,  // recovered from the wire
    input logic rst_ni,

    input logic        signal_i,  // the receiver sees a signal
    input logic [39:0] wire_i,    // any 40 bits running, bit 0 first

    output logic   locked_o,           // groups are right but for errors of bits
    output group_t group_o,            // decoded
    output logic   code_error_o,       // with a symbol that is none
    output logic   disparity_error_o,  // with a symbol that does not fit the disparity
    output logic   lost_o              // the lock has ended
);

  localparam logic [9:0] CommaMinus = 10'b01_0111_1100;
  localparam int unsigned LevelBits = $clog2(BadLimit + BadWeight + 1);
  localparam int unsigned CountBits = $clog2(CommasToLock + 1);

  logic [39:0] before_q, aligned_q, comma_at;
  logic [79:0] window;
  logic [5:0] offset_q, found_at;
  logic found, found_right;

  assign window = {wire_i, before_q};
  always_comb begin
    for (int o = 0; o < 40; o++) begin
      comma_at[o] = window[o+:10] inside {CommaMinus, ~CommaMinus};
    end
    found_at = '0;
    for (int o = 39; o >= 0; o--) if (comma_at[o]) found_at = 6'(o);
  end
  assign found = comma_at != '0;
  assign found_right = comma_at[offset_q];

  always_ff @(posedge clk_i) begin
    before_q  <= wire_i;
    aligned_q <= window[7'(offset_q)+:40];
  end

  // ----- Decoding -----------------------------------------------------------------------------------

  logic disparity_q;
  logic [4:0] disparity;
  logic [3:0] code_error, disparity_error;
  group_t group;
  assign disparity[0] = disparity_q;
  for (genvar s = 0; s < 4; s++) begin : gen_symbol
    velo_8b10b_dec u_dec (
        .code_i           (aligned_q[10*s+:10]),
        .disparity_i      (disparity[s]),
        .value_o          (group[s].value),
        .k_o              (group[s].k),
        .code_error_o     (code_error[s]),
        .disparity_error_o(disparity_error[s]),
        .disparity_o      (disparity[s+1])
    );
    assign group[s].bad = code_error[s] || disparity_error[s];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      disparity_q       <= 1'b0;
      code_error_o      <= 1'b0;
      disparity_error_o <= 1'b0;
    end else begin
      disparity_q       <= disparity[4];
      code_error_o      <= locked_o && code_error != '0;
      disparity_error_o <= locked_o && disparity_error != '0;
    end
  end
  always_ff @(posedge clk_i) group_o <= group;

  // ----- Lock ---------------------------------------------------------------------------------------

  logic [CountBits-1:0] count_q;  // commas running: here in search, elsewhere in lock
  logic [LevelBits-1:0] level_q;
  logic bad, ends;
  assign bad = code_error != '0 || disparity_error != '0;
  assign ends = locked_o && (!signal_i || level_q >= LevelBits'(BadLimit) ||
                             count_q == CountBits'(CommasToLock));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      locked_o <= 1'b0;
      lost_o   <= 1'b0;
      offset_q <= '0;
      count_q  <= '0;
      level_q  <= '0;
    end else begin
      lost_o <= ends;
      if (ends || !signal_i) begin
        locked_o <= 1'b0;
        count_q  <= '0;
        level_q  <= '0;
      end else if (locked_o) begin
        if (found_right) count_q <= '0;
        else if (found) count_q <= count_q + 1'b1;
        if (bad) level_q <= level_q + LevelBits'(BadWeight);
        else if (level_q != '0) level_q <= level_q - 1'b1;
      end else if (count_q == CountBits'(CommasToLock)) begin
        locked_o <= 1'b1;
        count_q  <= '0;
      end else if (found) begin
        offset_q <= found_right ? offset_q : found_at;
        count_q  <= found_right ? count_q + 1'b1 : CountBits'(1);
      end
    end
  end

  `VELO_ASSERT(OffsetInGroup, offset_q < 6'd40)
  `VELO_ASSERT(LevelFits, level_q <= LevelBits'(BadLimit + BadWeight))
  `VELO_COVER(LockEndsByErrors, ends && level_q >= LevelBits'(BadLimit))
  `VELO_COVER(LockEndsBySlip, ends && count_q == CountBits'(CommasToLock))

endmodule
