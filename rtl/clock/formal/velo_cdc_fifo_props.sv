// SPDX-License-Identifier: Apache-2.0
//
// The FIFO between two clocks of which nothing is known delivers what it took, in order, once,
// within Stages + 2 edges of the taker's clock; and it never takes more than it holds. In each step of the proof's time either clock may rise, both, or none;
// a synchronizer may see a bit that has just changed as old or as new (velo_cdc_sync.sv in this folder).
// Followed is one entry, pushed at any time with any value: the proof holds for all of them.

`include "velo_assert.svh"

module velo_cdc_fifo_props #(
    parameter int unsigned Depth = 4,
    parameter int unsigned Stages = 2
) (
    input logic push_clk_i,
    input logic pop_clk_i,
    input logic rst_ni,
    input logic follow_i,
    input logic push_valid_i,
    input logic push_data_i,
    input logic pop_ready_i
);

  localparam int unsigned PtrWidth = $clog2(Depth) + 1;
  typedef logic [PtrWidth-1:0] ptr_t;

  logic push_ready, pop_valid, pop_data, push, pop;
  ptr_t push_count;

  velo_cdc_fifo #(
      .Width (1),
      .Depth (Depth),
      .Stages(Stages)
  ) u_dut (
      .clk_i       (push_clk_i),
      .rst_ni      (rst_ni),
      .push_valid_i(push_valid_i),
      .push_ready_o(push_ready),
      .push_data_i (push_data_i),
      .push_count_o(push_count),
      .pop_clk_i   (pop_clk_i),
      .pop_rst_ni  (rst_ni),
      .pop_valid_o (pop_valid),
      .pop_ready_i (pop_ready_i),
      .pop_data_o  (pop_data)
  );

  // Reset in the first step, and never again: both sides together.
  logic past;
  velo_step u_past (
      .d_i(1'b1),
      .q_o(past)
  );
  always_comb assume (rst_ni == past);

  // Inputs change with their clock only.
  assign push = push_valid_i && push_ready;
  assign pop  = pop_valid && pop_ready_i;

  ptr_t pushed_q, popped_q, place_q;
  logic followed_q, value_q, left_q;
  always_ff @(posedge push_clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pushed_q   <= '0;
      followed_q <= 1'b0;
      place_q    <= '0;
      value_q    <= 1'b0;
    end else if (push) begin
      pushed_q <= pushed_q + 1'b1;
      if (follow_i && !followed_q) begin
        followed_q <= 1'b1;
        place_q    <= pushed_q;
        value_q    <= push_data_i;
      end
    end
  end

  logic arrives;
  assign arrives = followed_q && !left_q && popped_q == place_q;
  always_ff @(posedge pop_clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      popped_q <= '0;
      left_q   <= 1'b0;
    end else if (pop) begin
      popped_q <= popped_q + 1'b1;
      if (arrives) left_q <= 1'b1;
    end
  end

  ptr_t held;
  assign held = pushed_q - popped_q;

  logic [PtrWidth-1:0] write_gray_before, read_gray_before;
  for (genvar b = 0; b < int'(PtrWidth); b++) begin : gen_bit
    velo_step u_write (
        .d_i(u_dut.write_gray_q[b]),
        .q_o(write_gray_before[b])
    );
    velo_step u_read (
        .d_i(u_dut.read_gray_q[b]),
        .q_o(read_gray_before[b])
    );
  end

  // Edges of a side's clock on which it did not see an entry that is there, or room that is there.
  logic [2:0] blind_pop_q, blind_push_q;
  always_ff @(posedge pop_clk_i or negedge rst_ni) begin
    if (!rst_ni) blind_pop_q <= '0;
    else if (pop_valid || held == '0) blind_pop_q <= '0;
    else blind_pop_q <= blind_pop_q + 1'b1;
  end
  always_ff @(posedge push_clk_i or negedge rst_ni) begin
    if (!rst_ni) blind_push_q <= '0;
    else if (push_ready || held == ptr_t'(Depth)) blind_push_q <= '0;
    else blind_push_q <= blind_push_q + 1'b1;
  end

  // Nothing is taken that does not fit, nothing is given that is not there.
  always_comb begin
    if (past && rst_ni) begin
      NeverOverfull : assert (held <= ptr_t'(Depth));
      NothingFromEmpty : assert (!pop_valid || held != '0);
      NoRoomWhenFull : assert (!push_ready || held != ptr_t'(Depth));
      NotChanged : assert (!arrives || !pop_valid || pop_data == value_q);
      FollowedIsInside : assert (!followed_q || left_q || ptr_t'(place_q - popped_q) < held);
      CountIsNotLess : assert (push_count >= held);
      WriteChangesOneBit : assert ($onehot0(write_gray_before ^ u_dut.write_gray_q));
      ReadChangesOneBit : assert ($onehot0(read_gray_before ^ u_dut.read_gray_q));
      EntryIsSeen : assert (blind_pop_q <= 3'(Stages + 1));
      RoomIsSeen : assert (blind_push_q <= 3'(Stages + 1));
      FollowedLeavesAFullFifo :
      cover (left_q && held == ptr_t'(Depth));
      RefusesThoughThereIsRoom :
      cover (!push_ready && held == '0);
    end
  end

endmodule
