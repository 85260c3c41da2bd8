// SPDX-License-Identifier: Apache-2.0
//
// Streams of one direction to another clock domain, of which some may not overtake the first.
//
// The leading stream has a FIFO; so has each of the streams behind it. With each beat of those, a mark
// goes into the leading FIFO, in order with the leading beats; on the other side a beat waits until its
// mark has come out. So a beat is offered only after all leading beats that were taken before it, or
// with it, have been taken on the other side: a read does not pass the writes before it. The leading
// stream passes the others, and these pass each other, so nobody who has to be waited for waits.
//
// All sides are valid/ready. A stream behind takes a beat in a cycle in which the leading FIFO has room.
// Latency: of the leading stream that of velo_cdc_fifo; of the others one edge of `pop_clk_i` more.
// Errors: none. Both resets come from one source.

`include "velo_assert.svh"

module velo_cdc_ordered #(
    parameter int unsigned LeadWidth = 64,
    parameter int unsigned NumBehind = 1,
    parameter int unsigned BehindWidth = 64,  // of the widest of them
    parameter int unsigned Depth = 8,  // of each FIFO, a power of two
    parameter int unsigned Stages = 2
) (
    input logic clk_i,  // of the push side
    input logic rst_ni,

    input  logic                 lead_valid_i,  // leading stream: a beat is offered
    output logic                 lead_ready_o,  // it is taken
    input  logic [LeadWidth-1:0] lead_data_i,   // the beat

    input  logic [NumBehind-1:0]                  behind_valid_i,  // streams behind it, likewise
    output logic [NumBehind-1:0]                  behind_ready_o,
    input  logic [NumBehind-1:0][BehindWidth-1:0] behind_data_i,

    input logic pop_clk_i,  // of the pop side
    input logic pop_rst_ni,

    output logic                 lead_valid_o,  // leading stream: a beat is offered
    input  logic                 lead_ready_i,  // it is taken
    output logic [LeadWidth-1:0] lead_data_o,   // the beat

    output logic [NumBehind-1:0]                  behind_valid_o,  // streams behind it, likewise
    input  logic [NumBehind-1:0]                  behind_ready_i,
    output logic [NumBehind-1:0][BehindWidth-1:0] behind_data_o
);

  localparam int unsigned CountBits = $clog2(Depth) + 1;

  // ----- Push side ----------------------------------------------------------------------------------

  logic lead_room;
  logic [NumBehind-1:0] room, mark;
  logic [CountBits-1:0] count;

  assign lead_ready_o = lead_room;
  assign behind_ready_o = room & {NumBehind{lead_room}};
  assign mark = behind_valid_i & behind_ready_o;

  // ----- Pop side -----------------------------------------------------------------------------------

  logic entry, entry_taken, has_lead;
  logic [NumBehind-1:0] come, marks, taken;

  velo_cdc_fifo #(
      .Width (LeadWidth + 1 + NumBehind),
      .Depth (Depth),
      .Stages(Stages)
  ) u_lead (
      .clk_i       (clk_i),
      .rst_ni      (rst_ni),
      .push_valid_i(lead_valid_i || mark != '0),
      .push_ready_o(lead_room),
      .push_data_i ({mark, lead_valid_i, lead_data_i}),
      .push_count_o(count),
      .pop_clk_i   (pop_clk_i),
      .pop_rst_ni  (pop_rst_ni),
      .pop_valid_o (entry),
      .pop_ready_i (entry_taken),
      .pop_data_o  ({marks, has_lead, lead_data_o})
  );

  assign lead_valid_o = entry && has_lead;
  assign entry_taken = !has_lead || lead_ready_i;
  assign taken = behind_valid_o & behind_ready_i;

  for (genvar b = 0; b < NumBehind; b++) begin : gen_behind
    // Beats that may go: their marks have come out. At most as many as the FIFO holds.
    logic [CountBits-1:0] may_go_q, unused_count;

    velo_cdc_fifo #(
        .Width (BehindWidth),
        .Depth (Depth),
        .Stages(Stages)
    ) u_behind (
        .clk_i       (clk_i),
        .rst_ni      (rst_ni),
        .push_valid_i(mark[b]),
        .push_ready_o(room[b]),
        .push_data_i (behind_data_i[b]),
        .push_count_o(unused_count),
        .pop_clk_i   (pop_clk_i),
        .pop_rst_ni  (pop_rst_ni),
        .pop_valid_o (come[b]),
        .pop_ready_i (taken[b]),
        .pop_data_o  (behind_data_o[b])
    );
    assign behind_valid_o[b] = come[b] && may_go_q != '0;

    always_ff @(posedge pop_clk_i or negedge pop_rst_ni) begin
      if (!pop_rst_ni) may_go_q <= '0;
      else
        may_go_q <= may_go_q + CountBits'(entry && entry_taken && marks[b]) - CountBits'(taken[b]);
    end

    logic unused;
    assign unused = ^unused_count;
  end

  logic unused_lead;
  assign unused_lead = ^count;

endmodule
