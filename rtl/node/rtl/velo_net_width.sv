// SPDX-License-Identifier: Apache-2.0
//
// Between a unit's packets and a path of twice its width; wires if the widths are the same. Adds no
// cycle to a header, and to the other words one for each beat that has two of them.
//
// All streams valid/ready, whole packets, as in velo_unit_net; `path_*` is the network's side. On a
// wide path a packet's header has a beat of its own, and its payload two words in each, of which the
// last beat has one if the header's length says so. A packet always ends where its last beat does. If
// its length is not that of the header, then the unit gets more words or fewer than the header says,
// never as many, so that it refuses the packet as on a narrow path. Errors: none here.

module velo_net_width
  import velo_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned Width = 128,
    parameter int unsigned UnitWidth = 64,
    parameter int unsigned NumClasses = 3
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumClasses-1:0]                unit_out_valid_i,
    output logic [NumClasses-1:0]                unit_out_ready_o,
    input  logic [NumClasses-1:0]                unit_out_sop_i,
    input  logic [NumClasses-1:0]                unit_out_eop_i,
    input  logic [NumClasses-1:0][UnitWidth-1:0] unit_out_data_i,
    output logic [NumClasses-1:0]                path_out_valid_o,
    input  logic [NumClasses-1:0]                path_out_ready_i,
    output logic [NumClasses-1:0]                path_out_sop_o,
    output logic [NumClasses-1:0]                path_out_eop_o,
    output logic [NumClasses-1:0][    Width-1:0] path_out_data_o,

    input  logic [NumClasses-1:0]                path_in_valid_i,
    output logic [NumClasses-1:0]                path_in_ready_o,
    input  logic [NumClasses-1:0]                path_in_sop_i,
    input  logic [NumClasses-1:0]                path_in_eop_i,
    input  logic [NumClasses-1:0][    Width-1:0] path_in_data_i,
    output logic [NumClasses-1:0]                unit_in_valid_o,
    input  logic [NumClasses-1:0]                unit_in_ready_i,
    output logic [NumClasses-1:0]                unit_in_sop_o,
    output logic [NumClasses-1:0]                unit_in_eop_o,
    output logic [NumClasses-1:0][UnitWidth-1:0] unit_in_data_o
);

  for (genvar c = 0; c < NumClasses; c++) begin : gen_class
    velo_widen #(
        .Width    (Width),
        .HalfWidth(UnitWidth)
    ) u_out (
        .clk_i,
        .rst_ni,
        .in_valid_i (unit_out_valid_i[c]),
        .in_ready_o (unit_out_ready_o[c]),
        .in_sop_i   (unit_out_sop_i[c]),
        .in_eop_i   (unit_out_eop_i[c]),
        .in_single_i(unit_out_sop_i[c]),
        .in_data_i  (unit_out_data_i[c]),
        .out_valid_o(path_out_valid_o[c]),
        .out_ready_i(path_out_ready_i[c]),
        .out_sop_o  (path_out_sop_o[c]),
        .out_eop_o  (path_out_eop_o[c]),
        .out_data_o (path_out_data_o[c])
    );

    packet_t header;
    logic odd_q;
    assign header = packet_t'(64'(path_in_data_i[c]));
    always_ff @(posedge clk_i) begin
      if (path_in_valid_i[c] && path_in_sop_i[c]) odd_q <= odd_words(header.len[3:0]);
    end

    velo_narrow #(
        .Width    (Width),
        .HalfWidth(UnitWidth)
    ) u_in (
        .clk_i,
        .rst_ni,
        .in_valid_i (path_in_valid_i[c]),
        .in_ready_o (path_in_ready_o[c]),
        .in_sop_i   (path_in_sop_i[c]),
        .in_eop_i   (path_in_eop_i[c]),
        .in_single_i(path_in_sop_i[c] || (path_in_eop_i[c] && odd_q)),
        .in_data_i  (path_in_data_i[c]),
        .out_valid_o(unit_in_valid_o[c]),
        .out_ready_i(unit_in_ready_i[c]),
        .out_sop_o  (unit_in_sop_o[c]),
        .out_eop_o  (unit_in_eop_o[c]),
        .out_data_o (unit_in_data_o[c])
    );

    logic unused;
    assign unused = ^header;
  end

endmodule
