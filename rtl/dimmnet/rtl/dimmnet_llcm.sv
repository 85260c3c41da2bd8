// SPDX-License-Identifier: Apache-2.0
//
// The LLCM of all processes: written by the host, by packets and with statuses; read by the host and, for lists of
// offsets, by the controller (`list`, for its own reads) and by what it sends (`send`). A process's words are those
// whose address begins with its WID.
//
// One write and one read a cycle. The host writes and reads first, at once: a memory slot cannot wait
// (dimmnet_ddr_host). When it does not, packets' words and statuses are written in turn, and lists and packets read in
// turn. Data read come a cycle later.

`include "velo_assert.svh"

module dimmnet_llcm #(
    parameter  int unsigned Processes = 2,
    localparam int unsigned WidBits   = $clog2(Processes)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic               host_we_i,      // the host writes
    input logic [WidBits-1:0] host_we_wid_i,  // process
    input logic [       10:0] host_we_row_i,  // two words
    input logic [       15:0] host_be_i,      // bytes
    input logic [      127:0] host_wdata_i,   // the bytes

    input  logic               receive_valid_i,  // a word of a packet
    output logic               receive_ready_o,  // it is written
    input  logic [WidBits-1:0] receive_wid_i,    // process
    input  logic [       11:0] receive_word_i,   // word
    input  logic [       63:0] receive_data_i,   // data

    input  logic               status_valid_i,  // a status
    output logic               status_ready_o,  // it is written
    input  logic [WidBits-1:0] status_wid_i,    // process
    input  logic [       11:0] status_word_i,   // word
    input  logic [       63:0] status_data_i,   // data

    input  logic               host_valid_i,  // the host reads
    input  logic [WidBits-1:0] host_wid_i,    // process
    input  logic [       10:0] host_row_i,    // two words
    output logic [      127:0] host_data_o,   // a cycle later

    input  logic               list_valid_i,  // the controller reads offsets
    output logic               list_ready_o,  // it is taken
    input  logic [WidBits-1:0] list_wid_i,    // process
    input  logic [       11:0] list_word_i,   // word

    input  logic               send_valid_i,  // offsets for a packet
    output logic               send_ready_o,  // it is taken
    input  logic [WidBits-1:0] send_wid_i,    // process
    input  logic [       11:0] send_word_i,   // word
    output logic [       63:0] word_o         // of either, a cycle later
);

  logic [127:0] row, wdata;
  logic [1:0] write_req, write_grant, read_req, read_grant;
  logic [WidBits-1:0] write_wid, read_wid;
  logic [10:0] write_row, read_row;
  logic [15:0] be;
  logic upper_q;

  assign write_req = {status_valid_i, receive_valid_i} & {2{!host_we_i}};
  assign {status_ready_o, receive_ready_o} = write_grant;
  velo_rr_arb #(
      .NumReq(2)
  ) u_write_arb (
      .clk_i,
      .rst_ni,
      .req_i  (write_req),
      .grant_o(write_grant),
      .take_i (1'b1)
  );

  always_comb begin
    write_wid = host_we_wid_i;
    write_row = host_we_row_i;
    be        = host_be_i;
    wdata     = host_wdata_i;
    if (write_grant[0]) begin
      write_wid = receive_wid_i;
      write_row = receive_word_i[11:1];
      be        = receive_word_i[0] ? 16'hff00 : 16'h00ff;
      wdata     = {receive_data_i, receive_data_i};
    end else if (write_grant[1]) begin
      write_wid = status_wid_i;
      write_row = status_word_i[11:1];
      be        = status_word_i[0] ? 16'hff00 : 16'h00ff;
      wdata     = {status_data_i, status_data_i};
    end
  end

  assign read_req = {send_valid_i, list_valid_i} & {2{!host_valid_i}};
  assign {send_ready_o, list_ready_o} = read_grant;
  velo_rr_arb #(
      .NumReq(2)
  ) u_read_arb (
      .clk_i,
      .rst_ni,
      .req_i  (read_req),
      .grant_o(read_grant),
      .take_i (1'b1)
  );

  always_comb begin
    read_wid = host_wid_i;
    read_row = host_row_i;
    if (read_grant[0]) {read_wid, read_row} = {list_wid_i, list_word_i[11:1]};
    else if (read_grant[1]) {read_wid, read_row} = {send_wid_i, send_word_i[11:1]};
  end
  always_ff @(posedge clk_i) upper_q <= read_grant[0] ? list_word_i[0] : send_word_i[0];

  dimmnet_ram #(
      .Rows(Processes * 2048)
  ) u_ram (
      .clk_i,
      .we_i   (host_we_i || (|write_req)),
      .waddr_i({write_wid, write_row}),
      .be_i   (be),
      .wdata_i(wdata),
      .raddr_i({read_wid, read_row}),
      .rdata_o(row)
  );
  assign host_data_o = row;
  assign word_o = upper_q ? row[127:64] : row[63:0];

endmodule
