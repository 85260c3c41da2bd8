// SPDX-License-Identifier: Apache-2.0
//
// Several streams into one, a transaction at a time, round robin. A cycle to choose, then each beat at
// once: the arbiter is not in the way from who takes a beat to who gives it.
//
// Valid/ready; `eop` marks a transaction's last beat. A choice is kept until that beat is taken.
// While `stop_i`, none is made. Errors: none.

`include "velo_assert.svh"

module velo_rma_mux #(
    parameter int unsigned NumIn = 2,
    parameter int unsigned Width = 32
) (
    input logic clk_i,
    input logic rst_ni,

    input logic stop_i,

    input  logic [NumIn-1:0]            in_valid_i,
    output logic [NumIn-1:0]            in_ready_o,
    input  logic [NumIn-1:0]            in_eop_i,
    input  logic [NumIn-1:0][Width-1:0] in_data_i,

    output logic             out_valid_o,
    input  logic             out_ready_i,
    output logic             out_eop_o,
    output logic [Width-1:0] out_data_o
);

  logic kept_q, start;
  logic [NumIn-1:0] grant, owner_q, served;

  velo_rr_arb #(
      .NumReq(NumIn)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .req_i  (in_valid_i),
      .grant_o(grant),
      .take_i (start)
  );

  assign start       = !kept_q && !stop_i && |in_valid_i;
  assign served      = kept_q ? owner_q : '0;
  assign out_valid_o = |(served & in_valid_i);
  assign in_ready_o  = served & {NumIn{out_ready_i}};

  always_comb begin
    out_eop_o  = 1'b0;
    out_data_o = '0;
    for (int unsigned i = 0; i < NumIn; i++) begin
      out_eop_o |= served[i] && in_eop_i[i];
      out_data_o |= served[i] ? in_data_i[i] : '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) kept_q <= 1'b0;
    else if (start) kept_q <= 1'b1;
    else if (out_valid_o && out_ready_i && out_eop_o) kept_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (start) owner_q <= grant;
  end

  `VELO_ASSERT(OneAtATime, (served & (served - 1'b1)) == '0)

endmodule
