// SPDX-License-Identifier: Apache-2.0
//
// The division's promise to the proof of CoreLogic: if no word is left over, some words are at least one element.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_divide_props (
    input logic clk_i,
    input logic rst_ni,
    input logic start_i,
    input logic [19:0] words_i,
    input logic [5:0] element_i
);

  logic done_o, exact_o;
  logic [19:0] count_o;
  dimmnet_divide u_dut (.*);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // From the cycle behind the start on, both stand.
  logic runs_q, counts_q;
  logic [19:0] words_q;
  logic [ 5:0] element_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {runs_q, counts_q} <= '0;
    else begin
      if (start_i) runs_q <= 1'b1;
      counts_q <= runs_q && !start_i;
    end
    {words_q, element_q} <= {words_i, element_i};
  end
  `VELO_ASSUME(BothStand, !counts_q || ({words_i, element_i} == {words_q, element_q}))
  `VELO_ASSUME(ElementsHaveWords, !runs_q || element_i != '0)

  logic result;
  assign result = counts_q && done_o;
  `VELO_ASSERT(SomeWordsAreSomeElements, !(result && exact_o && words_i != '0) || count_o != '0)

  // How the unit's registers go with that. Of the count, the upper bits are words that were not looked at yet, the
  // lower ones the quotient; while that is 0, all words that were looked at are in the rest.
  logic [4:0] left;
  logic [19:0] quotient;
  assign left = u_dut.left_q;
  assign quotient = u_dut.count_q & ~(20'hfffff << (5'd20 - left));
  `VELO_ASSERT(LeftIsAtMostAll, left <= 5'd20)
  `VELO_ASSERT(BeginsAfterTheStart, !u_dut.begin_q || (runs_q && !counts_q))
  `VELO_ASSERT(WordsInOrder, !counts_q || element_i == 6'd1 || u_dut.begin_q ||
               u_dut.count_q >> (5'd20 - left) == (words_i & ~(20'hfffff << left)))
  `VELO_ASSERT(AllInTheRest, !counts_q || element_i == 6'd1 || u_dut.begin_q || quotient != '0 ||
               20'(u_dut.rest_q) == words_i >> left)
  `VELO_ASSERT(OneEach, !counts_q || element_i != 6'd1 || u_dut.begin_q ||
               (left == '0 && u_dut.count_q == words_i))

  always_ff @(posedge clk_i) if (rst_ni) cover (result && exact_o && count_o == 20'd3);

endmodule
