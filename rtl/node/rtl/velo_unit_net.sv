// SPDX-License-Identifier: Apache-2.0
//
// Between the units and the three traffic classes of the network. Adds no cycle.
//
// To the network: from all units, round robin, a class at a time, and only when the class has room for
// a message of VELO (velo_unit_merge). From it: to the unit that takes the
// packet's kind (`Kinds`, a bit a kind, by unit and class). A request that none takes goes to unit 0,
// which refuses it; of the other classes it is swallowed, and `stray_o` pulses. All streams
// valid/ready, whole packets, as in velo_requester; a packet's beats are common to all units, which
// `unit_in_valid_o` tells apart. The classes share no signal, so none can wait for another here.
//
// Source: VELO paper, figure 1; case-for-fpga, section 3 (a network port for each class).

module velo_unit_net #(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumUnits = 2,
    localparam int unsigned NumClasses = 3,
    parameter logic [NumUnits-1:0][NumClasses-1:0][15:0] Kinds = '0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumUnits-1:0][NumClasses-1:0]                unit_out_valid_i,
    output logic [NumUnits-1:0][NumClasses-1:0]                unit_out_ready_o,
    input  logic [NumUnits-1:0][NumClasses-1:0]                unit_out_sop_i,
    input  logic [NumUnits-1:0][NumClasses-1:0]                unit_out_eop_i,
    input  logic [NumUnits-1:0][NumClasses-1:0][DataWidth-1:0] unit_out_data_i,
    output logic [NumUnits-1:0][NumClasses-1:0]                unit_in_valid_o,
    input  logic [NumUnits-1:0][NumClasses-1:0]                unit_in_ready_i,

    output logic [NumClasses-1:1] stray_o,

    output logic [NumClasses-1:0]                net_out_valid_o,
    input  logic [NumClasses-1:0]                net_out_ready_i,
    input  logic [NumClasses-1:0]                net_out_room_i,
    output logic [NumClasses-1:0]                net_out_sop_o,
    output logic [NumClasses-1:0]                net_out_eop_o,
    output logic [NumClasses-1:0][DataWidth-1:0] net_out_data_o,
    input  logic [NumClasses-1:0]                net_in_valid_i,
    output logic [NumClasses-1:0]                net_in_ready_o,
    input  logic [NumClasses-1:0]                net_in_eop_i,
    input  logic [NumClasses-1:0][DataWidth-1:0] net_in_data_i
);

  for (genvar c = 0; c < NumClasses; c++) begin : gen_class
    // One more than units: nobody, who takes strays.
    logic [NumUnits-1:0] out_valid, out_ready, out_sop, out_eop, in_ready;
    logic [NumUnits:0] in_valid;
    logic [NumUnits-1:0][DataWidth-1:0] out_data;

    for (genvar u = 0; u < NumUnits; u++) begin : gen_unit
      assign out_valid[u]           = unit_out_valid_i[u][c];
      assign out_sop[u]             = unit_out_sop_i[u][c];
      assign out_eop[u]             = unit_out_eop_i[u][c];
      assign out_data[u]            = unit_out_data_i[u][c];
      assign unit_out_ready_o[u][c] = out_ready[u];
      assign unit_in_valid_o[u][c]  = in_valid[u];
      assign in_ready[u]            = unit_in_ready_i[u][c];
    end

    velo_unit_merge #(
        .DataWidth(DataWidth),
        .NumUnits (NumUnits)
    ) u_out (
        .clk_i,
        .rst_ni,
        .in_valid_i (out_valid),
        .in_ready_o (out_ready),
        .in_sop_i   (out_sop),
        .in_eop_i   (out_eop),
        .in_data_i  (out_data),
        .out_valid_o(net_out_valid_o[c]),
        .out_ready_i(net_out_ready_i[c]),
        .out_room_i (net_out_room_i[c]),
        .out_sop_o  (net_out_sop_o[c]),
        .out_eop_o  (net_out_eop_o[c]),
        .out_data_o (net_out_data_o[c])
    );

    velo_unit_split #(
        .DataWidth(DataWidth),
        .NumUnits (NumUnits + 1),
        .Rest     (c == 0 ? 0 : NumUnits),
        .Kinds    (kinds_of(c))
    ) u_in (
        .clk_i,
        .rst_ni,
        .in_valid_i (net_in_valid_i[c]),
        .in_ready_o (net_in_ready_o[c]),
        .in_eop_i   (net_in_eop_i[c]),
        .in_data_i  (net_in_data_i[c]),
        .out_valid_o(in_valid),
        .out_ready_i({1'b1, in_ready})
    );

    if (c > 0) begin : gen_stray
      assign stray_o[c] = in_valid[NumUnits] && net_in_eop_i[c];
    end else begin : gen_no_stray
      logic unused;
      assign unused = in_valid[NumUnits];
    end
  end

  // The kinds of packets that each unit takes of a class; the last entry is nobody, and takes none.
  function automatic logic [NumUnits:0][15:0] kinds_of(int unsigned class_index);
    logic [NumUnits:0][15:0] kinds;
    kinds = '0;
    for (int unsigned u = 0; u < NumUnits; u++) kinds[u] = Kinds[u][class_index];
    return kinds;
  endfunction

endmodule
