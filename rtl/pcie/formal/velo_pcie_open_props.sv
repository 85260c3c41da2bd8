// SPDX-License-Identifier: Apache-2.0
//
// A reset of the function leaves nothing of a packet behind: for every stream of packets, and whenever the function is
// closed and opened again, velo_pcie_receive acts upon a packet only if it has been open from the packet's first beat
// on. A register write that waits ends with the node's reset.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_pcie_open_props
  import htax_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
(
    input logic             clk_i,
    input logic             rst_ni,
    input logic             open_i,
    input logic             restart_i,
    input logic      [15:0] id_i,
    input tlp_beat_t        rx_i,
    input bar_t             rx_bar_i,
    input logic             store_room_i,
    input logic      [31:0] stores_i,
    input logic             control_ready_i,
    input logic             request_room_i
);

  logic rx_ready, word, commit, dropped, control_valid, own_write, request_valid;
  logic [2:0] index;
  logic [63:0] data, control_data, own_data;
  logic [37:0] addr;
  logic [3:0] words;
  logic [27:0] control_addr;
  logic [PcieBar4Bits-1:0] own_addr;
  logic [7:0] own_be, source;
  logic look;
  request_t request;
  answer_t answer;
  receive_event_t seen;

  velo_pcie_receive u_dut (
      .rx_ready_o     (rx_ready),
      .store_look_o   (look),
      .store_source_o (source),
      .store_word_o   (word),
      .store_index_o  (index),
      .store_data_o   (data),
      .store_commit_o (commit),
      .store_addr_o   (addr),
      .store_words_o  (words),
      .dropped_o      (dropped),
      .control_valid_o(control_valid),
      .control_addr_o (control_addr),
      .control_data_o (control_data),
      .own_write_o    (own_write),
      .own_addr_o     (own_addr),
      .own_data_o     (own_data),
      .own_be_o       (own_be),
      .request_valid_o(request_valid),
      .request_o      (request),
      .answer_o       (answer),
      .event_o        (seen),
      .*
  );

  logic past_q, take, ended_q, packet_end, open_q, control_q, restart_q;
  logic [1:0] in_q;  // beats of the header that are there
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  assign take       = rx_i.valid && rx_ready;
  assign packet_end = in_q == 2'd2 && (ended_q || (take && rx_i.last));
  always_ff @(posedge clk_i) begin
    past_q    <= 1'b1;
    restart_q <= rst_ni && restart_i;
    if (!rst_ni || packet_end) in_q <= 2'd0;
    else if (take && in_q == 2'd0) in_q <= rx_i.last ? 2'd0 : 2'd1;
    else if (take && in_q == 2'd1) in_q <= 2'd2;
    if (take && in_q == 2'd1) ended_q <= rx_i.last;
    if (take && in_q == 2'd0) open_q <= open_i;
    else if (!open_i) open_q <= 1'b0;
    // Whether the register write that waits, if one does, was served.
    if (packet_end) control_q <= open_q;
  end

  `VELO_ASSERT(NothingAstride, in_q == 2'd2 && open_q ||
               !(word || commit || dropped || own_write || request_valid || seen.poisoned ||
                 seen.unsupported))
  `VELO_ASSERT(NoRegisterAstride, !control_valid || control_q)
  // What waited is gone; a write that came in just then may wait.
  logic waited_q;
  always_ff @(posedge clk_i) waited_q <= rst_ni && control_valid;
  `VELO_ASSERT(EndsWithTheReset, !(restart_q && waited_q) || !control_valid)
  // For the induction.
  `VELO_ASSERT(TieState, control_valid ? in_q == 2'd0 : u_dut.state_q == in_q)
  `VELO_ASSERT(TieEnded, in_q != 2'd2 || u_dut.ended_q == ended_q)
  `VELO_ASSERT(TieServed, in_q == 2'd0 || u_dut.served_q == open_q)

  // The proof is not empty.
  `VELO_COVER(Closed, in_q == 2'd2 && !open_q && open_i && packet_end)
  `VELO_COVER(ClosedWithinItsHeader, in_q == 2'd1 && !open_q && open_i && take)
  `VELO_COVER(Served, commit && open_q)
  `VELO_COVER(RegisterEnds, restart_q && waited_q)

endmodule
