// SPDX-License-Identifier: Apache-2.0
//
// The last look at every access of SO-DIMM: the row of the board that a word of a region is in, and whether it may be
// touched. Whatever came before, commands, packets, patterns and lists, nothing passes here that is outside the region.

module dimmnet_guard
  import dimmnet_core_pkg::*;
(
    input  region_t            region_i,  // the process's part
    input  logic signed [39:0] word_i,    // word of it; may be anything
    output logic               inside_o,  // its row is in the region
    output logic        [31:1] row_o      // its row of two words
);

  logic [32:0] sum;
  assign sum = {1'b0, region_i.first} + {1'b0, word_i[31:0]};
  // No word beyond the end of the address space is another process's first one.
  assign inside_o = word_i[39:32] == '0 && word_i[31:1] < region_i.words[31:1] && !sum[32];
  assign row_o = sum[31:1];

  logic unused;
  assign unused = ^sum;

endmodule
