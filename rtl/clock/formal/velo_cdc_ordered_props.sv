// SPDX-License-Identifier: Apache-2.0
//
// Two streams between clocks of which nothing is known: a beat of the stream behind comes out only after
// every leading beat that went in before it or with it; each stream keeps its order and its number.
// Time and synchronizers as in velo_cdc_fifo_props.sv. Followed is one beat behind, at any time.

`include "velo_assert.svh"

module velo_cdc_ordered_props (
    input logic push_clk_i,
    input logic pop_clk_i,
    input logic rst_ni,
    input logic follow_i,
    input logic lead_valid_i,
    input logic lead_ready_i,
    input logic behind_valid_i,
    input logic behind_ready_i
);

  typedef logic [3:0] count_t;

  logic lead_ready, behind_ready, lead_valid, behind_valid, none, value;
  logic followed_q, left_q;

  velo_cdc_ordered #(
      .LeadWidth  (1),
      .NumBehind  (1),
      .BehindWidth(1),
      .Depth      (2)
  ) u_dut (
      .clk_i         (push_clk_i),
      .rst_ni        (rst_ni),
      .lead_valid_i  (lead_valid_i),
      .lead_ready_o  (lead_ready),
      .lead_data_i   (1'b0),
      .behind_valid_i(behind_valid_i),
      .behind_ready_o(behind_ready),
      .behind_data_i (follow_i && !followed_q),
      .pop_clk_i     (pop_clk_i),
      .pop_rst_ni    (rst_ni),
      .lead_valid_o  (lead_valid),
      .lead_ready_i  (lead_ready_i),
      .lead_data_o   (none),
      .behind_valid_o(behind_valid),
      .behind_ready_i(behind_ready_i),
      .behind_data_o (value)
  );

  logic past;
  velo_step u_past (
      .d_i(1'b1),
      .q_o(past)
  );
  always_comb assume (rst_ni == past);

  logic lead_in, behind_in, lead_out, behind_out;
  assign lead_in = lead_valid_i && lead_ready;
  assign behind_in = behind_valid_i && behind_ready;
  assign lead_out = lead_valid && lead_ready_i;
  assign behind_out = behind_valid && behind_ready_i;

  // Leading beats in and out, those before the followed beat; the beats of the stream behind.
  count_t lead_in_q, lead_out_q, before_q, behind_in_q, behind_out_q;
  always_ff @(posedge push_clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      followed_q <= 1'b0;
      {lead_in_q, before_q, behind_in_q} <= '0;
    end else begin
      if (lead_in) lead_in_q <= lead_in_q + 1'b1;
      if (behind_in) behind_in_q <= behind_in_q + 1'b1;
      if (behind_in && follow_i && !followed_q) begin
        followed_q <= 1'b1;
        before_q   <= lead_in_q + count_t'(lead_in);
      end
    end
  end
  always_ff @(posedge pop_clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q <= 1'b0;
      {lead_out_q, behind_out_q} <= '0;
    end else begin
      if (lead_out) lead_out_q <= lead_out_q + 1'b1;
      if (behind_out) behind_out_q <= behind_out_q + 1'b1;
      if (behind_out && value) left_q <= 1'b1;
    end
  end

  count_t missing;  // leading beats before the followed one that have not come out
  assign missing = before_q - lead_out_q;

  always_comb begin
    if (past) begin
      DoesNotOvertake : assert (!(behind_valid && value && !left_q) || missing == '0 || missing[3]);
      NothingLostOfLead : assert (count_t'(lead_in_q - lead_out_q) <= 4'd2);
      NothingLostBehind : assert (count_t'(behind_in_q - behind_out_q) <= 4'd2);
      NoMoreThanCame : assert (!behind_valid || behind_in_q != behind_out_q);
      WaitsForTheLead :
      cover (u_dut.come[0] && value && !behind_valid && lead_valid && missing == 4'd2);
      Leaves :
      cover (left_q && before_q == 4'd2);
    end
  end

  logic unused;
  assign unused = none;

endmodule
