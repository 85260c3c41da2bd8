// SPDX-License-Identifier: Apache-2.0
//
// Takes lines from SWIF and hands on whole packets whose length is what their header says. All others are dropped
// here, with a pulse for each: identifiers in disorder, another length, a first line without a last one, lines outside
// a packet.
//
// A packet's payload is in the buffer, four packets of 64 lines; its header is at the output a cycle after its last
// line came and stays, with the payload, until `pop_i`. Lines wait only while four packets are there.

`include "velo_assert.svh"

module dimmnet_intake
  import dimmnet_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic                 rx_valid_i,  // a line
    output logic                 rx_ready_o,  // there is room
    input  dimmnet_line_e        rx_ident_i,  // which of its packet's
    input  logic          [63:0] rx_line_i,   // the line

    output logic                   head_valid_o,  // a packet is there
    output dimmnet_packet_t        head_o,        // its header
    input  logic                   pop_i,         // it is done with
    input  logic            [ 5:0] word_i,        // line of this packet to read
    output logic            [63:0] data_o,        // what is there, a cycle later

    output logic received_o,  // a packet ended, a good one or not
    output logic malformed_o  // it is dropped
);

  localparam int unsigned Slots = 4;
  localparam logic [6:0] LinesMax = 7'(DimmnetWindowWords);

  logic take, room, inside_q, stray_q, good_q, push, whole, broken_off, stray, bad_end;
  logic [6:0] lines_q;  // those that came; stops at one too many
  logic [1:0] write_slot_q, read_slot_q;
  logic [63:0] word_0_q, word_1_q, word_1;
  logic [5:0] at;
  dimmnet_packet_t header;
  logic [2:0] unused_count;
  logic [1:0] unused_checks;

  assign rx_ready_o = room;
  assign take = rx_valid_i && room;
  assign at = rx_ident_i == DimmnetLineFirst ? '0 : lines_q[5:0];
  assign word_1 = at == 6'd1 ? rx_line_i : word_1_q;
  assign header = {word_1, word_0_q};

  assign whole = inside_q && good_q && lines_q < LinesMax && header.words + 7'd1 == lines_q;
  assign push = take && rx_ident_i == DimmnetLineLast && whole;

  // Ends: by its last line; by another packet's first one; of what has no first line.
  assign broken_off = take && inside_q && rx_ident_i == DimmnetLineFirst;
  assign stray = take && !inside_q && !stray_q &&
      (rx_ident_i == DimmnetLineMiddle || rx_ident_i == DimmnetLineLast);
  assign bad_end = take && inside_q && rx_ident_i == DimmnetLineLast && !whole;
  assign malformed_o = broken_off || stray || bad_end;
  assign received_o = malformed_o || push;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q     <= 1'b0;
      stray_q      <= 1'b0;
      write_slot_q <= '0;
      read_slot_q  <= '0;
    end else begin
      if (take) begin
        unique case (rx_ident_i)
          DimmnetLineFirst: {inside_q, stray_q} <= 2'b10;
          DimmnetLineMiddle: if (!inside_q) stray_q <= 1'b1;
          DimmnetLineLast: {inside_q, stray_q} <= 2'b00;
          default: ;
        endcase
      end
      if (push) write_slot_q <= write_slot_q + 1'b1;
      if (pop_i) read_slot_q <= read_slot_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      if (rx_ident_i == DimmnetLineFirst) begin
        word_0_q <= rx_line_i;
        lines_q  <= 7'd1;
        good_q   <= 1'b1;
      end else begin
        if (lines_q == 7'd1) word_1_q <= rx_line_i;
        if (lines_q != LinesMax + 7'd1) lines_q <= lines_q + 7'd1;
        if (rx_ident_i == DimmnetLineNone) good_q <= 1'b0;
      end
    end
  end

  velo_ram #(
      .Width(64),
      .Depth(Slots * DimmnetWindowWords)
  ) u_lines (
      .clk_i,
      .we_i       (take),
      .waddr_i    ({write_slot_q, at}),
      .wdata_i    (rx_line_i),
      .raddr_i    ({read_slot_q, word_i}),
      .rdata_o    (data_o),
      .corrected_o(unused_checks[0]),
      .broken_o   (unused_checks[1])
  );

  velo_fifo #(
      .Width($bits(dimmnet_packet_t)),
      .Depth(Slots)
  ) u_headers (
      .clk_i,
      .rst_ni,
      .push_valid_i(push),
      .push_ready_o(room),
      .push_data_i (header),
      .pop_valid_o (head_valid_o),
      .pop_ready_i (pop_i),
      .pop_data_o  (head_o),
      .count_o     (unused_count)
  );

  `VELO_ASSERT(PopsWhatIsThere, !pop_i || head_valid_o)

endmodule
