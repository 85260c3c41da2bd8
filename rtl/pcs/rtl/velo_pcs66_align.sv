// SPDX-License-Identifier: Apache-2.0
//
// One lane, 64b/66b, receiving: finds where blocks begin, and descrambles them.
//
// In search, the offset moves on by a bit with each header that is none; 64 right ones running give
// lock. In lock, 16 wrong ones of 64 end it.
//
// Latency 3 cycles: the last bits of a block come up to a cycle after its first ones, the window, the
// descrambler. A wrong bit on the wire makes three wrong bits, which the link's CRC finds.
// Errors: `header_error_o` one pulse a block; `lost_o` one pulse for each end of lock.
// Source: IEEE 802.3, clause 49.2.9, figure 49-12 (block lock), and 49.2.10.

`include "velo_assert.svh"

module velo_pcs66_align
  import velo_pcs_pkg::*;
#(
    parameter int unsigned Window   = 64,  // headers looked at together
    parameter int unsigned BadLimit = 16   // wrong ones of them that end the lock
) (
    input logic clk_i,  // recovered from the wire
    input logic rst_ni,

    input logic        signal_i,  // the receiver sees a signal
    input logic [65:0] wire_i,    // any 66 bits running, bit 0 first

    output logic   locked_o,        // blocks are right but for errors of bits
    output block_t block_o,         // descrambled
    output logic   header_error_o,  // its header is none
    output logic   lost_o           // the lock has ended
);

  logic [65:0] before_q, aligned_q;
  logic [131:0] window;
  logic [  6:0] offset_q;

  assign window = {wire_i, before_q};
  always_ff @(posedge clk_i) begin
    before_q  <= wire_i;
    aligned_q <= window[8'(offset_q)+:66];
  end

  // ----- Descrambling -------------------------------------------------------------------------------

  logic [57:0] state_q;
  logic [121:0] bits;
  logic good;
  assign bits = {aligned_q[65:2], state_q};
  assign good = aligned_q[0] != aligned_q[1];
  always_ff @(posedge clk_i) begin
    state_q         <= bits[121:64];
    block_o.payload <= bits[121:58] ^ bits[82:19] ^ bits[63:0];
    block_o.control <= aligned_q[1:0] == HeaderControl;
    block_o.bad     <= !good;
  end

  // ----- Lock ---------------------------------------------------------------------------------------

  logic [$clog2(Window)-1:0] count_q;
  logic [$clog2(BadLimit+1)-1:0] bad_q;
  logic settle_q;  // the word in the register was taken at the offset of before
  logic ends, slip;
  assign ends = locked_o && (!signal_i || (!good && bad_q == ($clog2(
      BadLimit + 1
  ))'(BadLimit - 1)));
  assign slip = !settle_q && (ends || (!locked_o && !good));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      locked_o       <= 1'b0;
      lost_o         <= 1'b0;
      header_error_o <= 1'b0;
      offset_q       <= '0;
      count_q        <= '0;
      bad_q          <= '0;
      settle_q       <= 1'b0;
    end else begin
      lost_o         <= ends;
      header_error_o <= locked_o && !good;
      settle_q       <= slip;
      if (slip) offset_q <= offset_q == 7'd65 ? '0 : offset_q + 1'b1;
      if (slip || settle_q || !signal_i) begin
        count_q <= '0;
        bad_q   <= '0;
      end else begin
        count_q <= count_q + 1'b1;
        if (count_q == '1) bad_q <= '0;
        else if (!good) bad_q <= bad_q + 1'b1;
      end
      if (ends || !signal_i) locked_o <= 1'b0;
      else if (!slip && !settle_q && count_q == '1) locked_o <= 1'b1;
    end
  end

  `VELO_ASSERT_INIT(WindowIsPowerOfTwo, Window == 2 ** $clog2(Window) && BadLimit < Window)
  `VELO_ASSERT(OffsetInBlock, offset_q < 7'd66)
  `VELO_COVER(LockEndsByHeaders, ends && signal_i)

endmodule
