// SPDX-License-Identifier: Apache-2.0
//
// Between the units and the three traffic classes of the network. Adds no cycle.
//
// To the network: from all units, round robin, a class at a time, and only when the class has room for
// a message of VELO (velo_unit_merge). From it: to the unit that takes the
// packet's kind (`Kinds`, a bit a kind, by unit and class). A request that none takes goes to unit 0,
// which refuses it; of the other classes it is swallowed, and `stray_o` pulses. All streams as in
// velo_net_pkg, whole packets; the data from the network are common to all units. The classes share no signal,
// so none can wait for another here.
//
// Source: VELO paper, figure 1; case-for-fpga, section 3 (a network port for each class).

module velo_unit_net
  import velo_net_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumUnits = 2,
    localparam int unsigned NumClasses = 3,
    parameter logic [NumUnits-1:0][NumClasses-1:0][15:0] Kinds = '0
) (
    input logic clk_i,
    input logic rst_ni,

    // From and to the units, by class.
    input  net_stream_t [NumUnits-1:0][NumClasses-1:0]                unit_out_i,
    input  logic        [NumUnits-1:0][NumClasses-1:0][DataWidth-1:0] unit_out_data_i,
    output logic        [NumUnits-1:0][NumClasses-1:0]                unit_out_ready_o,
    output net_stream_t [NumUnits-1:0][NumClasses-1:0]                unit_in_o,
    input  logic        [NumUnits-1:0][NumClasses-1:0]                unit_in_ready_i,

    output logic [NumClasses-1:1] stray_o,

    // To and from the network, by class.
    output net_stream_t [NumClasses-1:0]                net_out_o,
    output logic        [NumClasses-1:0][DataWidth-1:0] net_out_data_o,
    input  logic        [NumClasses-1:0]                net_out_ready_i,
    input  logic        [NumClasses-1:0]                net_out_room_i,
    input  net_stream_t [NumClasses-1:0]                net_in_i,
    input  logic        [NumClasses-1:0][DataWidth-1:0] net_in_data_i,
    output logic        [NumClasses-1:0]                net_in_ready_o
);

  for (genvar c = 0; c < NumClasses; c++) begin : gen_class
    // One more than units: nobody, who takes strays.
    net_stream_t [NumUnits-1:0] out;
    logic [NumUnits-1:0] out_ready, in_ready;
    logic [NumUnits:0] in_valid;
    logic [NumUnits-1:0][DataWidth-1:0] out_data;

    for (genvar u = 0; u < NumUnits; u++) begin : gen_unit
      assign out[u] = unit_out_i[u][c];
      assign out_data[u] = unit_out_data_i[u][c];
      assign unit_out_ready_o[u][c] = out_ready[u];
      assign unit_in_o[u][c] = '{
              valid: in_valid[u],
              sop: net_in_i[c].sop,
              eop: net_in_i[c].eop,
              poison: net_in_i[c].poison
          };
      assign in_ready[u] = unit_in_ready_i[u][c];
    end

    velo_unit_merge #(
        .DataWidth(DataWidth),
        .NumUnits (NumUnits)
    ) u_out (
        .clk_i,
        .rst_ni,
        .in_i       (out),
        .in_data_i  (out_data),
        .in_ready_o (out_ready),
        .out_o      (net_out_o[c]),
        .out_data_o (net_out_data_o[c]),
        .out_ready_i(net_out_ready_i[c]),
        .out_room_i (net_out_room_i[c])
    );

    velo_unit_split #(
        .DataWidth(DataWidth),
        .NumUnits (NumUnits + 1),
        .Rest     (c == 0 ? 0 : NumUnits),
        .Kinds    (kinds_of(c))
    ) u_in (
        .clk_i,
        .rst_ni,
        .in_valid_i (net_in_i[c].valid),
        .in_ready_o (net_in_ready_o[c]),
        .in_eop_i   (net_in_i[c].eop),
        .in_data_i  (net_in_data_i[c]),
        .out_valid_o(in_valid),
        .out_ready_i({1'b1, in_ready})
    );

    if (c > 0) begin : gen_stray
      assign stray_o[c] = in_valid[NumUnits] && net_in_i[c].eop;
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
