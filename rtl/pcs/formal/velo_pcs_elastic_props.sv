// SPDX-License-Identifier: Apache-2.0
//
// Words from a recovered clock to a link port's, of which nothing is known but that words are not ahead of
// the link port's edges by more than Ahead: then no word is lost. And nothing is believed that the wire did
// not say twice running: if two idle words running come out equal, so were the last two that came in
// (but for words that are a filler themselves, of which each side sends only true ones).
// Time and synchronizers as in rtl/clock/formal/velo_cdc_fifo_props.sv.

`include "velo_assert.svh"

module velo_pcs_elastic_props
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
#(
    parameter int unsigned Depth = 8,
    parameter int unsigned Ahead = 2,
    parameter bit Room = 1'b1,  // prove that nothing is lost
    parameter bit Belief = 1'b1  // prove what is believed
) (
    input logic       wire_clk_i,
    input logic       link_clk_i,
    input logic       rst_ni,
    input logic       valid_i,
    input logic       wrong_i,
    input logic [1:0] kind_i,
    input logic [2:0] data_i       // bits of a word, the others are zero
);

  logic lost, came;
  kind_e kind;
  logic [31:0] data;

  velo_pcs_elastic #(
      .DataWidth (32),
      .DepthWords(Depth)
  ) u_dut (
      .clk_i      (wire_clk_i),
      .rst_ni     (rst_ni),
      .valid_i    (valid_i),
      .wrong_i    (wrong_i),
      .kind_i     (kind_e'(kind_i)),
      .data_i     (32'(data_i)),
      .lost_o     (lost),
      .link_clk_i (link_clk_i),
      .link_rst_ni(rst_ni),
      .came_o     (came),
      .kind_o     (kind),
      .data_o     (data)
  );

  logic past;
  velo_step u_past (
      .d_i(1'b1),
      .q_o(past)
  );
  always_comb assume (rst_ni == past);

  // Words less edges of the link port, never below zero: a count on either side, each in its clock.
  logic [3:0] words_q, edges_q, ahead;
  assign ahead = words_q - edges_q;
  always_ff @(posedge wire_clk_i or negedge rst_ni) begin
    if (!rst_ni) words_q <= '0;
    else if (valid_i) words_q <= words_q + 1'b1;
  end
  always_ff @(posedge link_clk_i or negedge rst_ni) begin
    if (!rst_ni) edges_q <= '0;
    else if (ahead != '0) edges_q <= edges_q + 1'b1;
  end
  always_comb assume (ahead <= 4'(Ahead));

  // What came out of the FIFO: the last word and the one before it.
  logic [33:0] out, last_out_q, one_q, two_q;
  logic idle;
  assign out  = {kind, data};
  assign idle = kind == KindCtl;
  always_ff @(posedge link_clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      last_out_q <= '0;
      one_q      <= '0;
      two_q      <= '0;
    end else begin
      last_out_q <= out;
      if (u_dut.came) begin
        one_q <= {u_dut.kind, u_dut.data};
        two_q <= one_q;
      end
    end
  end

  always_comb begin
    if (past) begin
      NothingLost : assert (!Room || !lost);
      BelievedOnlyIfTwice :
      assert (!Belief || !idle || out != last_out_q || out == {KindCtl, 32'b0} ||
              (out == one_q && one_q == two_q));
      FillerAfterFiller :
      cover (!came && idle && last_out_q[33:32] == KindCtl && data != last_out_q[31:0]);
      Repeated :
      cover (!came && out == last_out_q && out == one_q && data[2:0] == 3'b110);
    end
  end

endmodule
