// SPDX-License-Identifier: Apache-2.0
//
// The board's queue of reads that wait to be answered: headers, and their payload in a slot each. A read goes in whole
// once `ready_o` was seen, which stays until its last word has come.

`include "velo_assert.svh"

module dimmnet_reads
  import dimmnet_pkg::*;
#(
    parameter int unsigned Depth = 8,
    localparam int unsigned SlotBits = $clog2(Depth)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                   valid_i,   // a word of a read's payload
    input  logic                   last_i,    // its last
    output logic                   ready_o,   // there is room for a read
    input  dimmnet_packet_t        header_i,  // its header, with the last word
    input  logic            [63:0] data_i,    // the word

    output logic                   valid_o,   // a read waits
    output dimmnet_packet_t        header_o,  // its header
    input  logic                   pop_i,     // it is done with
    input  logic            [ 5:0] word_i,    // word of its payload
    output logic            [63:0] data_o     // what is there, a cycle later
);

  logic [SlotBits-1:0] write_slot_q, read_slot_q;
  logic [5:0] word_q;
  logic [SlotBits:0] unused_count;
  logic [1:0] unused_checks;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_slot_q <= '0;
      read_slot_q  <= '0;
      word_q       <= '0;
    end else begin
      if (valid_i) word_q <= last_i ? '0 : word_q + 6'd1;
      if (valid_i && last_i) write_slot_q <= write_slot_q + 1'b1;
      if (pop_i) read_slot_q <= read_slot_q + 1'b1;
    end
  end

  velo_ram #(
      .Width(64),
      .Depth(Depth * DimmnetWindowWords)
  ) u_payload (
      .clk_i,
      .we_i       (valid_i),
      .waddr_i    ({write_slot_q, word_q}),
      .wdata_i    (data_i),
      .raddr_i    ({read_slot_q, word_i}),
      .rdata_o    (data_o),
      .corrected_o(unused_checks[0]),
      .broken_o   (unused_checks[1])
  );

  velo_fifo #(
      .Width($bits(dimmnet_packet_t)),
      .Depth(Depth)
  ) u_headers (
      .clk_i,
      .rst_ni,
      .push_valid_i(valid_i && last_i),
      .push_ready_o(ready_o),
      .push_data_i (header_i),
      .pop_valid_o (valid_o),
      .pop_ready_i (pop_i),
      .pop_data_o  (header_o),
      .count_o     (unused_count)
  );

  `VELO_ASSERT(RoomForEachRead, !valid_i || ready_o)
  `VELO_ASSERT(PopsWhatIsThere, !pop_i || valid_o)

endmodule
