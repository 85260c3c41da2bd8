// SPDX-License-Identifier: Apache-2.0
//
// How many elements words are, and whether they are whole ones: a bit a cycle, 20 in all; of one word each, at once.

module dimmnet_divide (
    input logic clk_i,
    input logic rst_ni,

    input  logic        start_i,    // begin in the next cycle
    input  logic [19:0] words_i,    // words; stands
    input  logic [ 5:0] element_i,  // words of an element, not 0; stands
    output logic        done_o,     // the result is there, and stays
    output logic [19:0] count_o,    // elements
    output logic        exact_o     // nothing is left
);

  logic [4:0] left_q;
  logic begin_q;
  logic [5:0] rest_q;
  logic [6:0] trial, rest;
  logic [19:0] count_q;
  logic fits;

  assign trial = {rest_q, count_q[19]};
  assign fits = trial >= {1'b0, element_i};
  assign rest = fits ? trial - {1'b0, element_i} : trial;
  assign done_o = !begin_q && left_q == '0;
  assign count_o = count_q;
  assign exact_o = rest_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begin_q <= 1'b0;
      left_q  <= '0;
    end else begin
      begin_q <= start_i;
      if (begin_q) left_q <= element_i == 6'd1 ? '0 : 5'd20;
      else if (left_q != '0) left_q <= left_q - 5'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (begin_q) begin
      count_q <= words_i;
      rest_q  <= '0;
    end else if (left_q != '0) begin
      // The quotient comes in from below as the words go out above.
      count_q <= {count_q[18:0], fits};
      rest_q  <= rest[5:0];
    end
  end

  logic unused;
  assign unused = ^rest;

endmodule
