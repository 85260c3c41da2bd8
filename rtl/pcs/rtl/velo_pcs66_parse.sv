// SPDX-License-Identifier: Apache-2.0
//
// One lane, 64b/66b: blocks become words with their kinds again.
//
// Latency 1 cycle. Errors: `wrong_o` with a word whose block had no header or no known type;
// `type_error_o` one pulse for the latter.

`include "velo_assert.svh"

module velo_pcs66_parse
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
(
    input logic clk_i,  // recovered from the wire
    input logic rst_ni,

    input logic   valid_i,  // a block has come
    input block_t block_i,  // the block

    output logic         valid_o,      // a word has come
    output logic         wrong_o,      // it is not what was sent
    output kind_e        kind_o,       // its kind
    output logic  [63:0] data_o,       // this lane's part of it
    output logic         type_error_o  // a control block of no known type
);

  logic [7:0] block_type;
  logic known;
  assign block_type = block_i.payload[7:0];
  assign known = block_type inside {TypeSkip, TypeCtl, TypeEnd, TypeStart};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_o      <= 1'b0;
      type_error_o <= 1'b0;
    end else begin
      valid_o      <= valid_i && (block_i.bad || !block_i.control || block_type != TypeSkip);
      type_error_o <= valid_i && !block_i.bad && block_i.control && !known;
    end
  end
  always_ff @(posedge clk_i) begin
    wrong_o <= block_i.bad || (block_i.control && !known);
    kind_o  <= KindData;
    data_o  <= block_i.payload;
    if (block_i.control) begin
      data_o <= {8'b0, block_i.payload[63:8]};
      unique case (block_type)
        TypeEnd:   kind_o <= KindEnd;
        TypeStart: kind_o <= KindStart;
        default:   kind_o <= KindCtl;
      endcase
    end
  end

endmodule
