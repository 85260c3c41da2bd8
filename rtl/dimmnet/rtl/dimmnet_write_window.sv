// SPDX-License-Identifier: Apache-2.0
//
// The Write Windows of all processes: the host writes them, the controller reads them, a word a cycle. A process's
// words are those whose address begins with its WID: no other address reaches them.

module dimmnet_write_window
  import dimmnet_core_pkg::*;
#(
    parameter  int unsigned Processes = 2,
    localparam int unsigned WidBits   = $clog2(Processes)
) (
    input logic clk_i,

    input logic               host_we_i,    // the host writes
    input logic [WidBits-1:0] host_wid_i,   // a process's
    input logic [        5:0] host_row_i,   // two words
    input logic [       15:0] host_be_i,    // bytes
    input logic [      127:0] host_wdata_i, // the bytes

    input  logic [WidBits-1:0] wid_i,   // the controller reads a process's
    input  logic [        6:0] word_i,  // word
    output logic [       63:0] data_o   // what was there, a cycle later
);

  logic [127:0] row;
  logic upper_q;

  dimmnet_ram #(
      .Rows(Processes * WindowWords / 2)
  ) u_ram (
      .clk_i,
      .we_i   (host_we_i),
      .waddr_i({host_wid_i, host_row_i}),
      .be_i   (host_be_i),
      .wdata_i(host_wdata_i),
      .raddr_i({wid_i, word_i[6:1]}),
      .rdata_o(row)
  );

  always_ff @(posedge clk_i) upper_q <= word_i[0];
  assign data_o = upper_q ? row[127:64] : row[63:0];

endmodule
