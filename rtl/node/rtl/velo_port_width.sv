// SPDX-License-Identifier: Apache-2.0
//
// Between a unit and a crossbar of twice its width; wires if the widths are the same. Adds no cycle to
// a transaction's first word, and to the others one for each beat that has two of them.
//
// Streams valid/ready, as in htax, the crossbar's side without prefix; what is not here, headers and
// reads among it, goes past. `store_*` posted writes for the unit, `answer_*` its answers; `write_*` its
// posted writes, `memory_*` what it read. Of a store's last beat the upper half counts if the length
// says so. An answer of memory has no length beside it: a read's tag tells it, in bit 7, and the unit's
// tags have 7 bits. Errors: none; what is not as long as it says has more words or fewer than it says
// for the unit, too.

`include "velo_assert.svh"

module velo_port_width
  import htax_pkg::*;
#(
    parameter int unsigned Width = 128,
    parameter int unsigned UnitWidth = 64
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                     store_valid_i,
    output logic                     store_ready_o,
    input  logic                     store_eop_i,
    input  htax_header_t             store_header_i,
    input  logic         [Width-1:0] store_data_i,
    output logic                     answer_valid_o,
    input  logic                     answer_ready_i,
    output logic                     answer_eop_o,
    output logic         [Width-1:0] answer_data_o,
    output logic                     write_valid_o,
    input  logic                     write_ready_i,
    output logic                     write_eop_o,
    output logic         [Width-1:0] write_data_o,
    output htax_header_t             read_header_o,
    input  logic                     memory_valid_i,
    output logic                     memory_ready_o,
    input  logic                     memory_eop_i,
    input  htax_header_t             memory_header_i,
    input  logic         [Width-1:0] memory_data_i,

    output logic                         unit_store_valid_o,
    input  logic                         unit_store_ready_i,
    output logic                         unit_store_eop_o,
    output logic         [UnitWidth-1:0] unit_store_data_o,
    input  logic                         unit_answer_valid_i,
    output logic                         unit_answer_ready_o,
    input  logic                         unit_answer_eop_i,
    input  logic         [UnitWidth-1:0] unit_answer_data_i,
    input  logic                         unit_write_valid_i,
    output logic                         unit_write_ready_o,
    input  logic                         unit_write_eop_i,
    input  logic         [UnitWidth-1:0] unit_write_data_i,
    input  htax_header_t                 unit_read_header_i,
    output logic                         unit_memory_valid_o,
    input  logic                         unit_memory_ready_i,
    output logic                         unit_memory_eop_o,
    output htax_header_t                 unit_memory_header_o,
    output logic         [UnitWidth-1:0] unit_memory_data_o
);

  // Which half of an answer's last beat counts travels with the read. A refusal is one word.
  localparam bit Tagged = Width != UnitWidth;
  logic memory_single;
  assign memory_single = memory_header_i.error || (memory_eop_i && memory_header_i.tag[7]);

  logic [3:0] unused_sop;

  velo_narrow #(
      .Width    (Width),
      .HalfWidth(UnitWidth)
  ) u_store (
      .clk_i,
      .rst_ni,
      .in_valid_i (store_valid_i),
      .in_ready_o (store_ready_o),
      .in_sop_i   (1'b0),
      .in_eop_i   (store_eop_i),
      .in_single_i(store_eop_i && odd_words(store_header_i.len_bytes[3:0])),
      .in_data_i  (store_data_i),
      .out_valid_o(unit_store_valid_o),
      .out_ready_i(unit_store_ready_i),
      .out_sop_o  (unused_sop[0]),
      .out_eop_o  (unit_store_eop_o),
      .out_data_o (unit_store_data_o)
  );

  velo_widen #(
      .Width    (Width),
      .HalfWidth(UnitWidth)
  ) u_answer (
      .clk_i,
      .rst_ni,
      .in_valid_i (unit_answer_valid_i),
      .in_ready_o (unit_answer_ready_o),
      .in_sop_i   (1'b0),
      .in_eop_i   (unit_answer_eop_i),
      .in_single_i(1'b0),
      .in_data_i  (unit_answer_data_i),
      .out_valid_o(answer_valid_o),
      .out_ready_i(answer_ready_i),
      .out_sop_o  (unused_sop[1]),
      .out_eop_o  (answer_eop_o),
      .out_data_o (answer_data_o)
  );

  velo_widen #(
      .Width    (Width),
      .HalfWidth(UnitWidth)
  ) u_write (
      .clk_i,
      .rst_ni,
      .in_valid_i (unit_write_valid_i),
      .in_ready_o (unit_write_ready_o),
      .in_sop_i   (1'b0),
      .in_eop_i   (unit_write_eop_i),
      .in_single_i(1'b0),
      .in_data_i  (unit_write_data_i),
      .out_valid_o(write_valid_o),
      .out_ready_i(write_ready_i),
      .out_sop_o  (unused_sop[2]),
      .out_eop_o  (write_eop_o),
      .out_data_o (write_data_o)
  );

  velo_narrow #(
      .Width    (Width),
      .HalfWidth(UnitWidth)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .in_valid_i (memory_valid_i),
      .in_ready_o (memory_ready_o),
      .in_sop_i   (1'b0),
      .in_eop_i   (memory_eop_i),
      .in_single_i(memory_single),
      .in_data_i  (memory_data_i),
      .out_valid_o(unit_memory_valid_o),
      .out_ready_i(unit_memory_ready_i),
      .out_sop_o  (unused_sop[3]),
      .out_eop_o  (unit_memory_eop_o),
      .out_data_o (unit_memory_data_o)
  );

  always_comb begin
    read_header_o        = unit_read_header_i;
    unit_memory_header_o = memory_header_i;
    if (Tagged) begin
      read_header_o.tag[7]        = odd_words(unit_read_header_i.len_bytes[3:0]);
      unit_memory_header_o.tag[7] = 1'b0;
    end
  end

  logic unused;
  assign unused = ^{store_header_i, unused_sop};

  `VELO_ASSERT(TagsLeaveRoom, !Tagged || !unit_read_header_i.tag[7])

endmodule
