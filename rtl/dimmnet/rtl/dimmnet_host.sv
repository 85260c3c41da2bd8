// SPDX-License-Identifier: Apache-2.0
//
// Takes the host's accesses apart by page. The process is the one that the address names: a page that the host mapped
// for one process reaches nothing of another. Pages that do not exist, or not for that direction, swallow writes and
// read as 0. A read's data come two cycles after it was taken.

module dimmnet_host
  import dimmnet_pkg::*;
#(
    parameter int unsigned Processes = 2
) (
    input logic clk_i,
    input logic rst_ni,

    input logic        write_valid_i,   // the host writes
    input logic [20:0] write_address_i, // byte in the slot; the lowest four are not looked at

    input  logic         read_valid_i,      // the host reads
    input  logic [ 20:0] read_address_i,    // byte in the slot, a multiple of 16
    output logic         response_valid_o,  // its data
    output logic [127:0] response_data_o,   // the data

    output dimmnet_slot_t write_slot_o,      // the write's address
    output logic          write_window_o,    // it is for a Write Window
    output logic          write_register_o,  // for a register
    output logic          write_llcm_o,      // for LLCM

    output dimmnet_slot_t         read_slot_o,      // the read's address
    output logic                  read_llcm_o,      // it is of LLCM
    input  logic          [127:0] register_data_i,  // a cycle later, from each
    input  logic          [127:0] prefetch_data_i,
    input  logic          [127:0] llcm_data_i
);

  typedef enum logic [1:0] {
    FromNowhere,
    FromRegister,
    FromPrefetch,
    FromLlcm
  } from_e;

  dimmnet_slot_t to, of;
  logic to_process, of_process, taken_q;
  from_e from, from_q;

  assign to = {43'b0, write_address_i};
  assign of = {43'b0, read_address_i};
  assign write_slot_o = to;
  assign read_slot_o = of;

  assign to_process = write_valid_i && !to.privileged && 32'(to.wid) < Processes;
  assign write_window_o = to_process && to.page == DimmnetPageWrite && to.offset[11:10] == '0;
  assign write_llcm_o = to_process && to.page[3];
  assign write_register_o = (to_process && to.page == DimmnetPageRegister) ||
      (write_valid_i && to.privileged);

  assign of_process = !of.privileged && 32'(of.wid) < Processes;
  always_comb begin
    from = FromNowhere;
    if (of.privileged || (of_process && of.page == DimmnetPageRegister)) from = FromRegister;
    else if (of_process && of.page == DimmnetPagePrefetch && !of.offset[11]) from = FromPrefetch;
    else if (of_process && of.page[3]) from = FromLlcm;
  end
  assign read_llcm_o = read_valid_i && from == FromLlcm;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {taken_q, response_valid_o} <= '0;
    else {taken_q, response_valid_o} <= {read_valid_i, taken_q};
  end
  always_ff @(posedge clk_i) begin
    from_q <= from;
    unique case (from_q)
      FromRegister: response_data_o <= register_data_i;
      FromPrefetch: response_data_o <= prefetch_data_i;
      FromLlcm: response_data_o <= llcm_data_i;
      default: response_data_o <= '0;
    endcase
  end

endmodule
