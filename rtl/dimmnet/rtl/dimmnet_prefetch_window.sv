// SPDX-License-Identifier: Apache-2.0
//
// The Prefetch Windows of all processes: Receive Controller and loads write them, a word a cycle in turn; the host
// reads them. A process's words are those whose address begins with its WID.

`include "velo_assert.svh"

module dimmnet_prefetch_window
  import dimmnet_core_pkg::*;
#(
    parameter  int unsigned Processes = 2,
    localparam int unsigned WidBits   = $clog2(Processes)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic               receive_valid_i,  // a word of a packet
    output logic               receive_ready_o,  // it is written
    input  logic [WidBits-1:0] receive_wid_i,    // process
    input  logic [        7:0] receive_word_i,   // word
    input  logic [       63:0] receive_data_i,   // data

    input  logic               load_valid_i,  // a word of a load
    output logic               load_ready_o,  // it is written
    input  logic [WidBits-1:0] load_wid_i,    // process
    input  logic [        7:0] load_word_i,   // word
    input  logic [       63:0] load_data_i,   // data

    input  logic [WidBits-1:0] host_wid_i,  // the host reads a process's
    input  logic [        6:0] host_row_i,  // two words
    output logic [      127:0] host_data_o  // what was there, a cycle later
);

  // A load that waited goes first.
  logic load_turn_q, load_goes;
  logic [WidBits-1:0] wid;
  logic [7:0] word;
  logic [63:0] data;

  assign load_goes = load_valid_i && (!receive_valid_i || load_turn_q);
  assign load_ready_o = load_goes;
  assign receive_ready_o = receive_valid_i && !load_goes;
  assign wid = load_goes ? load_wid_i : receive_wid_i;
  assign word = load_goes ? load_word_i : receive_word_i;
  assign data = load_goes ? load_data_i : receive_data_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) load_turn_q <= 1'b0;
    else load_turn_q <= load_valid_i && !load_goes;
  end

  dimmnet_ram #(
      .Rows(Processes * PrefetchWords / 2)
  ) u_ram (
      .clk_i,
      .we_i   (receive_valid_i || load_valid_i),
      .waddr_i({wid, word[7:1]}),
      .be_i   (word[0] ? 16'hff00 : 16'h00ff),
      .wdata_i({data, data}),
      .raddr_i({host_wid_i, host_row_i}),
      .rdata_o(host_data_o)
  );

  `VELO_ASSERT(NeverBoth, !(load_ready_o && receive_ready_o))

endmodule
