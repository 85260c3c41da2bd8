// SPDX-License-Identifier: Apache-2.0
//
// Between a unit's reads of host memory and the crossbar: no read waits for ever, and an answer that
// comes too late is nobody's.
//
// The unit gives each read a tag below `NumTags`, has two reads at most under one tag, and their answers
// come in their order. The tag that leaves here carries one of 16 numbers beside it, which no other
// read has until the host has ended its answer. A read for which nothing came for one to two periods of
// `watchdog_i.cycles` is given up: the unit gets an error in the place of the answer, or of the rest of
// it, and what the host still sends under that number is swallowed. So is an answer that nobody asked
// for. If the host does not take a read for a period, or has 10 or more answers left open so that no
// number is free, reads fail at once; the one on offer stays there until the host takes it. With the
// watchdog off, reads wait.
//
// `unit_*`: the unit's side; `host_*`: the crossbar's. All streams valid/ready, read and answer go past
// combinationally, in no more cycles than without. Data go past. Of a unit's tag, bits 6:2 are replaced.
// Errors: `unanswered_o` pulses for each read that was given up or that failed at once.
// Source: VELO white paper (a watchdog, so that nothing stalls the machine).

`include "velo_assert.svh"

module velo_read_guard
  import htax_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned NumTags = 3
) (
    input logic clk_i,
    input logic rst_ni,

    input  watchdog_t watchdog_i,
    output logic      unanswered_o, // for one cycle

    input  logic         unit_read_valid_i,
    output logic         unit_read_ready_o,
    input  htax_header_t unit_read_header_i,
    output logic         host_read_valid_o,
    input  logic         host_read_ready_i,
    output htax_header_t host_read_header_o,

    input  logic         host_answer_valid_i,
    output logic         host_answer_ready_o,
    input  logic         host_answer_eop_i,
    input  htax_header_t host_answer_header_i,
    output logic         unit_answer_valid_o,
    input  logic         unit_answer_ready_i,
    output logic         unit_answer_eop_o,
    output htax_header_t unit_answer_header_o
);

  localparam int unsigned NumIds = 16;
  typedef logic [3:0] id_t;
  // A read under way. `fails`: the host was not asked.
  typedef struct packed {
    logic valid;
    logic fails;
    id_t  id;
  } read_t;

  read_t [NumTags-1:0][1:0] read_q, read_d;  // by tag, the older one first
  logic [NumTags-1:0][1:0] age_q;  // periods without news
  logic [NumIds-1:0] used_q;
  id_t next_q;
  logic hold_q;  // the host was asked and has not taken the question
  htax_header_t held_q;

  logic [1:0] read_tag, answer_tag;
  logic unit_take, ask, fail, late, capture, answer_mine, answer_take, tick;
  id_t answer_id;

  // ----- questions ------------------------------------------------------------------------------

  logic free, waiting;
  htax_header_t asked;

  assign read_tag = unit_read_header_i.tag[1:0];
  assign free     = !used_q[next_q];
  always_comb begin
    asked          = unit_read_header_i;
    asked.tag[6:2] = {1'b0, next_q};
  end

  assign waiting = unit_read_valid_i && !hold_q && free && !host_read_ready_i;
  assign capture = waiting && late;
  // All numbers are in use: the host owes answers. While it does not take the last read, either.
  assign fail = unit_read_valid_i && (hold_q || &used_q);
  assign ask = unit_read_valid_i && !hold_q && free && (host_read_ready_i || capture);
  assign unit_take = ask || fail;
  assign unit_read_ready_o = unit_take;
  assign host_read_valid_o = hold_q || (unit_read_valid_i && free);
  assign host_read_header_o = hold_q ? held_q : asked;

  velo_watchdog u_watchdog (
      .clk_i    (clk_i),
      .rst_ni   (rst_ni),
      .enable_i (watchdog_i.enable),
      .cycles_i (watchdog_i.cycles),
      .waiting_i(waiting),
      .expired_o(late)
  );

  // ----- answers --------------------------------------------------------------------------------

  logic error_now;
  logic [NumTags-1:0] failed, error_tag;  // one at most

  assign answer_tag = host_answer_header_i.tag[1:0];
  assign answer_id  = host_answer_header_i.tag[5:2];

  always_comb begin
    answer_mine = 1'b0;
    failed      = '0;
    for (int unsigned t = 0; t < NumTags; t++) begin
      if (answer_tag == 2'(t) && read_q[t][0].valid && !read_q[t][0].fails) begin
        answer_mine = read_q[t][0].id == answer_id && !host_answer_header_i.tag[6];
      end
      failed[t] = read_q[t][0].valid && (read_q[t][0].fails || age_q[t][1]);
    end
    error_tag = failed & (~failed + 1'b1);
  end

  // An error takes a cycle in which no answer comes.
  assign error_now           = failed != '0 && !host_answer_valid_i;
  assign unit_answer_valid_o = error_now || (host_answer_valid_i && answer_mine);
  assign host_answer_ready_o = unit_answer_ready_i || !answer_mine;
  assign unit_answer_eop_o   = error_now || host_answer_eop_i;
  assign answer_take         = host_answer_valid_i && host_answer_ready_o;
  assign unanswered_o        = error_now && unit_answer_ready_i;

  always_comb begin
    unit_answer_header_o          = host_answer_header_i;
    unit_answer_header_o.tag[6:2] = '0;
    if (error_now) begin
      unit_answer_header_o       = '0;
      unit_answer_header_o.error = 1'b1;
      for (int unsigned t = 0; t < NumTags; t++) begin
        if (error_tag[t]) unit_answer_header_o.tag[1:0] = 2'(t);
      end
    end
  end

  // ----- what is under way ----------------------------------------------------------------------

  logic [NumTags-1:0] news, ends;

  always_comb begin
    read_d = read_q;
    for (int unsigned t = 0; t < NumTags; t++) begin
      news[t] = answer_take && answer_mine && answer_tag == 2'(t);
      ends[t] = (news[t] && host_answer_eop_i) || (unanswered_o && error_tag[t]);
      if (ends[t]) read_d[t] = {read_t'('0), read_q[t][1]};
      if (unit_take && read_tag == 2'(t)) begin
        read_d[t][read_d[t][0].valid] = '{valid: 1'b1, fails: fail, id: next_q};
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q <= '0;
      used_q <= '0;
      next_q <= '0;
      hold_q <= 1'b0;
    end else begin
      read_q <= read_d;
      // A number is free again when the host has ended its answer, whoever got that.
      if (answer_take && host_answer_eop_i && !host_answer_header_i.tag[6]) begin
        used_q[answer_id] <= 1'b0;
      end
      if (ask) used_q[next_q] <= 1'b1;
      if (ask || !free) next_q <= next_q + 4'd1;
      if (capture) hold_q <= 1'b1;
      else if (host_read_ready_i) hold_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) if (!hold_q) held_q <= asked;

  // ----- periods --------------------------------------------------------------------------------

  logic [23:0] left_q;
  logic enable_q;
  assign tick = enable_q && left_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q   <= '0;
      enable_q <= 1'b0;
      age_q    <= '0;
    end else begin
      // Both fields of the register change at once: the count is that of the first cycle in which it is on.
      enable_q <= watchdog_i.enable;
      left_q   <= enable_q && left_q != '0 ? left_q - 1'b1 : watchdog_i.cycles;
      for (int unsigned t = 0; t < NumTags; t++) begin
        if (news[t] || ends[t] || !read_q[t][0].valid) age_q[t] <= '0;
        else if (tick && !age_q[t][1]) age_q[t] <= age_q[t] + 2'd1;
      end
    end
  end

  logic unused;
  assign unused = ^host_answer_header_i;

  `VELO_ASSERT_INIT(TagsFit, NumTags >= 1 && NumTags <= 4)
  // A read leaves its number used until the host has ended its answer: no two have the same one.
  `VELO_ASSERT(NumberIsFree, !ask || !used_q[next_q])
  for (genvar t = 0; t < NumTags; t++) begin : gen_promise
    `VELO_ASSUME(TwoReadsATag, !unit_take || read_tag != 2'(t) || !read_q[t][1].valid || ends[t])
    `VELO_ASSERT(OlderFirst, read_q[t][0].valid || !read_q[t][1].valid)
    `VELO_ASSERT(WhatIsAskedIsUsed,
                 !read_q[t][0].valid || read_q[t][0].fails || used_q[read_q[t][0].id])
  end

endmodule
