// SPDX-License-Identifier: Apache-2.0
//
// The way to the SO-DIMMs: requests of Write Unit and Prefetch Unit in turn, in one order. What was written before a
// read was asked for, the read sees.

`include "velo_assert.svh"

module dimmnet_sodimm (
    input logic clk_i,
    input logic rst_ni,

    input  logic         write_valid_i,  // a request of the Write Unit
    output logic         write_ready_o,  // it is taken
    input  logic [ 31:1] write_row_i,    // row
    input  logic [  1:0] write_mask_i,   // its words
    input  logic [127:0] write_data_i,   // data

    input  logic        read_valid_i,  // a request of the Prefetch Unit
    output logic        read_ready_o,  // it is taken
    input  logic [31:1] read_row_i,    // row

    output logic         sodimm_valid_o,    // a request
    input  logic         sodimm_ready_i,    // it is taken
    output logic         sodimm_write_o,    // it writes
    output logic [ 31:0] sodimm_address_o,  // word, even
    output logic [  1:0] sodimm_mask_o,     // of a write: which words
    output logic [127:0] sodimm_data_o      // of a write
);

  logic room, write_turn_q, write;

  assign room = !sodimm_valid_o || sodimm_ready_i;
  assign write = write_valid_i && (write_turn_q || !read_valid_i);
  assign write_ready_o = room && write;
  assign read_ready_o = room && read_valid_i && !write;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sodimm_valid_o <= 1'b0;
      write_turn_q   <= 1'b0;
    end else if (room) begin
      sodimm_valid_o <= write_valid_i || read_valid_i;
      write_turn_q   <= !write;
    end
  end
  always_ff @(posedge clk_i) begin
    if (room) begin
      sodimm_write_o   <= write;
      sodimm_address_o <= {write ? write_row_i : read_row_i, 1'b0};
      sodimm_mask_o    <= write ? write_mask_i : 2'b11;
      sodimm_data_o    <= write_data_i;
    end
  end

  `VELO_ASSERT(OneAtATime, !(write_ready_o && read_ready_o))

endmodule
