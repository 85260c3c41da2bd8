// SPDX-License-Identifier: Apache-2.0
//
// One lane, 8b/10b, sending: words and their kinds become groups of four symbols, without a gap.
//
// A data word is four symbols, any other is five (velo_pcs_pkg). So a word takes 1 or 1.25 cycles: up to
// four symbols wait for the next cycle, and when four wait, no word is taken for a cycle. `skip_i` asks
// for a skip set, which begins a group: what waits goes out before it, filled up with pads. The same
// goes out while no word is offered. Lanes of a link that get the same kinds go in step.
//
// Latency 2 cycles from word to symbols. Errors: none.

`include "velo_assert.svh"

module velo_pcs8_tx
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
#(
    parameter int unsigned Lane = 0  // its number in the link
) (
    input logic clk_i,  // of the serializer
    input logic rst_ni,

    input  logic         valid_i,  // a word is offered
    output logic         ready_o,  // it is taken
    input  kind_e        kind_i,   // its kind
    input  logic  [31:0] data_i,   // this lane's part of it

    input  logic    skip_i,     // a skip set is due
    output logic    skip_o,     // one goes out in this cycle
    input  number_t skip_num_i, // its number

    output logic [39:0] wire_o  // four symbols, bit 0 first
);

  typedef struct packed {
    logic       k;
    logic [7:0] value;
  } plain_t;

  localparam plain_t Pad = '{k: 1'b1, value: SymbolPad};

  plain_t [3:0] wait_q, wait_d, group_q, group_d;
  plain_t [4:0] word;
  plain_t [7:0] line;
  logic [2:0] wait_count_q, wait_count_d;
  logic take;

  // The word as symbols, the first one lowest.
  always_comb begin
    word = '0;
    for (int b = 0; b < 4; b++) word[b].value = data_i[8*b+:8];
    if (kind_i != KindData) begin
      word = {word[3:0], 9'b0};
      word[0].k = 1'b1;
      unique case (kind_i)
        KindEnd:   word[0].value = SymbolEnd;
        KindStart: word[0].value = SymbolStart;
        default:   word[0].value = SymbolCtl;
      endcase
    end
  end

  assign ready_o = wait_count_q != 3'd4 && !skip_i;
  assign take = valid_i && ready_o;
  assign skip_o = wait_count_q == '0 && !take;

  // What waits, and behind it the word.
  always_comb begin
    line = {8{Pad}};
    for (int s = 0; s < 4; s++) begin
      if (3'(s) < wait_count_q) line[s] = wait_q[s];
    end
    if (take) begin
      for (int s = 0; s < 5; s++) begin
        line[wait_count_q+3'(s)] = word[s];  // at most seven
      end
    end
    group_d = line[3:0];
    wait_d = line[7:4];
    wait_count_d = '0;
    if (take) wait_count_d = wait_count_q + 3'(kind_i != KindData);
    if (skip_o) begin
      group_d[0] = '{k: 1'b1, value: SymbolComma};
      group_d[1] = '{k: 1'b0, value: skip_num_i};
      group_d[2] = '{k: 1'b0, value: ~skip_num_i};
      group_d[3] = '{k: 1'b0, value: 8'(Lane)};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wait_count_q <= '0;
      wait_q       <= '0;
      group_q      <= {4{Pad}};
    end else begin
      wait_count_q <= wait_count_d;
      wait_q       <= wait_d;
      group_q      <= group_d;
    end
  end

  logic disparity_q;
  logic [4:0] disparity;
  logic [3:0][9:0] code;
  assign disparity[0] = disparity_q;
  for (genvar s = 0; s < 4; s++) begin : gen_symbol
    velo_8b10b_enc u_enc (
        .value_i    (group_q[s].value),
        .k_i        (group_q[s].k),
        .disparity_i(disparity[s]),
        .code_o     (code[s]),
        .disparity_o(disparity[s+1])
    );
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      disparity_q <= 1'b0;
      wire_o      <= '0;
    end else begin
      disparity_q <= disparity[4];
      wire_o      <= code;
    end
  end

  `VELO_ASSERT(NoSymbolIsLost, wait_count_q <= 3'd4 && (!take || wait_count_q < 3'd4))

endmodule
