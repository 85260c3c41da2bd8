// SPDX-License-Identifier: Apache-2.0
//
// How long what is for a context may still wait for room: a budget that belongs to the context.
//
// While `waiting_i` stands, what is for the context waits, and each cycle of it is used up, also that of a
// wait that ends well. A context that has used `cycles_i` has no patience left: `expired_o`. It is for the user to
// drop what waits then, and what comes for the context as long as there is no room. A sweep gives back: in every
// `GiveEvery`-th cycle in which nothing waits the next context gets one cycle back, if it has used any.
//
//   * All waits together last at most 2^CtxBits * cycles_i cycles in a row of any length without give-back, and in the
//     long run 1 of GiveEvery + 1 cycles: nothing is given back while something waits.
//   * One context gets a cycle back in GiveEvery * 2^CtxBits cycles in which nothing waits, and up to two cycles later for
//     each wait that comes just in its turn.
//   * Not counted are the two cycles until a user sees `expired_o`.
//
// The memory keeps what a context has used by its number: software that closes a ring and opens it anew gains nothing.
// `cycles_i` is looked at in every cycle, so one that shrinks holds at once. With `enable_i` low nothing expires or
// is counted; what was used is given back all the same. When all has been given back, the sweep rests.
//
// `ctx_i` is the context of the next wait: it stands for four cycles before `waiting_i` rises and may change in the last
// cycle of a wait. `expired_o` is two cycles behind what it tells. It may be looked at from the third cycle after a change of
// `ctx_i` on, and is low until it is known what that context has used. After a reset the memory is cleared, one context a
// cycle; `ready_o` says when that is done, and nothing waits before. Errors: none.
//
// The memory has no check bits. A wrong bit makes patience of one context shorter or longer, once, until the sweep has
// given back what it made of it: nothing that finds room is lost or held up by it.
//
// Source: VELO white paper (a watchdog, so that a core that stalls cannot hang the machine).

`include "velo_assert.svh"

module velo_patience #(
    parameter int unsigned CtxBits = 8,
    parameter int unsigned Width = 20,
    parameter int unsigned GiveEvery = 8  // a power of two, at least 2
) (
    input logic clk_i,
    input logic rst_ni,

    output logic ready_o,  // the memory is cleared

    input logic             enable_i,  // 0: waits for ever
    input logic [Width-1:0] cycles_i,  // each context's budget

    input  logic [CtxBits-1:0] ctx_i,      // for whom the next wait would be
    input  logic               waiting_i,  // what is for the context waits
    output logic               expired_o   // the context has no patience left
);

  localparam int unsigned PhaseBits = $clog2(GiveEvery);

  logic clearing_q, look, give, count, owed;
  logic [CtxBits-1:0] sweep_q;  // what is cleared, later the one that has its turn

  // ----- memory -----------------------------------------------------------------------------------

  // The sweep looks in one cycle and gives in the next. In all others the context of the next wait is read.
  logic write, unused_corrected, unused_broken;
  logic [CtxBits-1:0] write_ctx, used_ctx_q;
  logic [Width-1:0] old, written, read, used_q;

  assign owed = read != '0;
  assign write = clearing_q || count || (give && owed);
  assign write_ctx = count ? used_ctx_q : sweep_q;
  // One more, one less, or nothing, by one adder.
  assign old = clearing_q ? '0 : count ? used_q : read;
  assign written = old + {{(Width - 1) {!count && !clearing_q}}, !clearing_q};

  velo_ram #(
      .Width(Width),
      .Depth(2 ** CtxBits),
      .ReadsOld(1'b1)
  ) u_used (
      .clk_i,
      .we_i(write),
      .waddr_i(write_ctx),
      .wdata_i(written),
      .raddr_i(look ? sweep_q : ctx_i),
      .rdata_o(read),
      .corrected_o(unused_corrected),
      .broken_o(unused_broken)
  );

  // ----- the context of the next wait -------------------------------------------------------------

  logic looked_q, known_q, spent;
  logic [CtxBits-1:0] look_ctx_q;

  assign spent = used_q >= cycles_i;
  assign count = waiting_i && enable_i && !spent;

  always_ff @(posedge clk_i) begin
    // A look while the memory is written shows what was there before, so the context is looked at again.
    looked_q   <= !look && !write;
    look_ctx_q <= ctx_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      known_q   <= 1'b0;
      expired_o <= 1'b0;
    end else begin
      expired_o <= enable_i && known_q && spent;
      // The user may look before it is known; what another context has used is not told.
      if (!waiting_i) begin
        known_q <= (looked_q || known_q) && (looked_q ? look_ctx_q : used_ctx_q) == ctx_i;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (waiting_i) begin
      if (count) used_q <= written;
    end else if (looked_q) begin
      used_q     <= read;
      used_ctx_q <= look_ctx_q;
    end else if (give && owed && sweep_q == used_ctx_q) begin
      used_q <= written;
    end
  end

  // ----- the sweep --------------------------------------------------------------------------------

  // It rests when a whole round has found nothing and nothing was used meanwhile.
  logic owing_q, found_q, looks_q, waited_q;
  logic [PhaseBits-1:0] phase_q;

  assign ready_o = !clearing_q;
  // A wait that begins between the sweep's look and its gift comes first; the sweep looks again. After a wait it lets the
  // next context be read first.
  assign look = owing_q && !waiting_i && !waited_q &&
      (phase_q == PhaseBits'(GiveEvery - 2) || (phase_q == '1 && !looks_q));
  assign give = looks_q && !waiting_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      sweep_q    <= '0;
      owing_q    <= 1'b0;
      found_q    <= 1'b0;
      looks_q    <= 1'b0;
      waited_q   <= 1'b0;
      phase_q    <= '0;
    end else begin
      if (clearing_q && sweep_q == '1) clearing_q <= 1'b0;
      if (clearing_q || give) sweep_q <= sweep_q + 1'b1;
      looks_q  <= look;
      waited_q <= waiting_i;
      if (owing_q && !waiting_i && (phase_q != '1 || give)) phase_q <= phase_q + 1'b1;
      if (count) begin
        owing_q <= 1'b1;
        found_q <= 1'b1;
      end else if (give) begin
        found_q <= sweep_q != '1 && (found_q || owed);
        if (sweep_q == '1) owing_q <= found_q || owed;
      end
    end
  end

  `VELO_ASSERT_INIT(GivesNowAndThen, GiveEvery >= 2 && GiveEvery == 2 ** PhaseBits)
  `VELO_ASSUME(NothingWaitsBefore, !(waiting_i && clearing_q))
  `VELO_ASSERT(OneWriteAtATime, 2'(clearing_q) + 2'(count) + 2'(give) <= 2'd1)

endmodule
