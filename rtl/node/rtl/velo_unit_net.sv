// SPDX-License-Identifier: Apache-2.0
//
// Between the units and the three traffic classes of the network. Adds no cycle.
//
// Requests: from NumUnits units round robin, to them by kind (`RequestKinds`, a bit a kind and unit);
// what none of them claims goes to unit 0, which refuses it. Responses: one unit sends and gets those
// of `ResponseKinds`. Responses that nobody claims, and all completions, are swallowed; `stray_o`
// pulses for each. All streams valid/ready, whole packets, as in velo_requester. The classes share no
// signal, so none can wait for another here.
//
// Source: VELO paper, figure 1; case-for-fpga, section 3 (a network port for each class).

module velo_unit_net #(
    parameter  int unsigned                      DataWidth     = 32,
    parameter  int unsigned                      NumUnits      = 2,
    parameter  logic        [NumUnits-1:0][15:0] RequestKinds  = '0,
    parameter  logic        [        15:0]       ResponseKinds = '0,
    localparam int unsigned                      NumClasses    = 3
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumUnits-1:0]                request_out_valid_i,
    output logic [NumUnits-1:0]                request_out_ready_o,
    input  logic [NumUnits-1:0]                request_out_sop_i,
    input  logic [NumUnits-1:0]                request_out_eop_i,
    input  logic [NumUnits-1:0][DataWidth-1:0] request_out_data_i,
    output logic [NumUnits-1:0]                request_in_valid_o,
    input  logic [NumUnits-1:0]                request_in_ready_i,

    input  logic                 response_out_valid_i,
    output logic                 response_out_ready_o,
    input  logic                 response_out_sop_i,
    input  logic                 response_out_eop_i,
    input  logic [DataWidth-1:0] response_out_data_i,
    output logic                 response_in_valid_o,
    input  logic                 response_in_ready_i,

    output logic [NumClasses-1:1] stray_o,

    output logic [NumClasses-1:0]                net_out_valid_o,
    input  logic [NumClasses-1:0]                net_out_ready_i,
    output logic [NumClasses-1:0]                net_out_sop_o,
    output logic [NumClasses-1:0]                net_out_eop_o,
    output logic [NumClasses-1:0][DataWidth-1:0] net_out_data_o,
    input  logic [NumClasses-1:0]                net_in_valid_i,
    output logic [NumClasses-1:0]                net_in_ready_o,
    input  logic [NumClasses-1:0]                net_in_eop_i,
    input  logic [NumClasses-1:0][DataWidth-1:0] net_in_data_i
);

  velo_unit_merge #(
      .DataWidth(DataWidth),
      .NumUnits (NumUnits)
  ) u_requests_out (
      .clk_i,
      .rst_ni,
      .in_valid_i (request_out_valid_i),
      .in_ready_o (request_out_ready_o),
      .in_sop_i   (request_out_sop_i),
      .in_eop_i   (request_out_eop_i),
      .in_data_i  (request_out_data_i),
      .out_valid_o(net_out_valid_o[0]),
      .out_ready_i(net_out_ready_i[0]),
      .out_sop_o  (net_out_sop_o[0]),
      .out_eop_o  (net_out_eop_o[0]),
      .out_data_o (net_out_data_o[0])
  );

  velo_unit_split #(
      .DataWidth(DataWidth),
      .NumUnits (NumUnits),
      .Kinds    (RequestKinds)
  ) u_requests_in (
      .clk_i,
      .rst_ni,
      .in_valid_i (net_in_valid_i[0]),
      .in_ready_o (net_in_ready_o[0]),
      .in_eop_i   (net_in_eop_i[0]),
      .in_data_i  (net_in_data_i[0]),
      .out_valid_o(request_in_valid_o),
      .out_ready_i(request_in_ready_i)
  );

  logic stray_response;
  velo_unit_split #(
      .DataWidth(DataWidth),
      .NumUnits (2),
      .Kinds    ({ResponseKinds, 16'd0})
  ) u_responses_in (
      .clk_i,
      .rst_ni,
      .in_valid_i (net_in_valid_i[1]),
      .in_ready_o (net_in_ready_o[1]),
      .in_eop_i   (net_in_eop_i[1]),
      .in_data_i  (net_in_data_i[1]),
      .out_valid_o({response_in_valid_o, stray_response}),
      .out_ready_i({response_in_ready_i, 1'b1})
  );

  assign {net_out_valid_o[1], net_out_sop_o[1], net_out_eop_o[1]} = {
    response_out_valid_i, response_out_sop_i, response_out_eop_i
  };
  assign net_out_data_o[1] = response_out_data_i;
  assign response_out_ready_o = net_out_ready_i[1];

  assign {net_out_valid_o[2], net_out_sop_o[2], net_out_eop_o[2]} = '0;
  assign net_out_data_o[2] = '0;
  assign net_in_ready_o[2] = 1'b1;

  assign stray_o = {net_in_valid_i[2] && net_in_eop_i[2], stray_response && net_in_eop_i[1]};

  logic unused;
  assign unused = ^{net_out_ready_i[2], net_in_data_i[2]};

endmodule
