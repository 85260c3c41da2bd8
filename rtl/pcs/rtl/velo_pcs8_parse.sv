// SPDX-License-Identifier: Apache-2.0
//
// One lane, 8b/10b: groups of four symbols become words with their kinds again. The reverse of the first
// half of velo_pcs8_tx.
//
// Words have four or five symbols, so at most one ends in a group. A K symbol in the middle of a word ends
// it: words begin anew there, and the next one is reported as wrong in the place of the one that is
// lost. A skip set does the same.
//
// Latency 1 cycle. Errors: `wrong_o` with a word of which a symbol was bad, or after a part of one.

`include "velo_assert.svh"

module velo_pcs8_parse
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
(
    input logic clk_i,  // recovered from the wire
    input logic rst_ni,

    input logic   valid_i,  // a group has come
    input group_t group_i,  // the group

    output logic         valid_o,  // a word has come
    output logic         wrong_o,  // it is not what was sent
    output kind_e        kind_o,   // its kind
    output logic  [31:0] data_o    // this lane's part of it
);

  logic [2:0][7:0] part_q, part;
  logic [1:0] count_q, count;  // symbols of the word so far
  logic bad_q, bad, valid, wrong;
  kind_e kind_q, kind, word_kind;
  logic [31:0] data;
  symbol_t symbol;

  always_comb begin
    {part, count, bad, kind} = {part_q, count_q, bad_q, kind_q};
    {valid, wrong, word_kind, data} = {2'b00, KindData, 32'b0};
    symbol = '0;
    for (int s = 0; s < 4; s++) begin
      symbol = group_i[s];
      if (symbol.k && !symbol.bad && symbol.value == SymbolPad) begin
        bad   = bad || count != '0 || kind != KindData;
        count = '0;
        kind  = KindData;
      end else if (symbol.k && !symbol.bad) begin
        bad   = bad || count != '0 || kind != KindData;
        count = '0;
        unique case (symbol.value)
          SymbolCtl:   kind = KindCtl;
          SymbolEnd:   kind = KindEnd;
          SymbolStart: kind = KindStart;
          default: begin
            kind = KindData;
            bad  = 1'b1;
          end
        endcase
      end else begin
        bad = bad || symbol.bad;
        if (count == 2'd3) begin
          {valid, wrong, word_kind, data} = {1'b1, bad, kind, symbol.value, part};
          {bad, kind} = {1'b0, KindData};
        end else begin
          part[count] = symbol.value;
        end
        count = count + 1'b1;
      end
    end
    // A skip set stands by itself, whatever its other symbols.
    if (group_i[0] == {1'b0, 1'b1, SymbolComma}) begin
      valid = 1'b0;
      count = '0;
      bad   = bad_q || count_q != '0 || kind_q != KindData;
      kind  = KindData;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      bad_q   <= 1'b0;
      kind_q  <= KindData;
      valid_o <= 1'b0;
    end else begin
      valid_o <= valid_i && valid;
      if (valid_i) {count_q, bad_q, kind_q} <= {count, bad, kind};
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_i) part_q <= part;
    {wrong_o, kind_o, data_o} <= {wrong, word_kind, data};
  end

endmodule
