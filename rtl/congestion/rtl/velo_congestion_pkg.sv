// SPDX-License-Identifier: Apache-2.0
//
// Congestion management: what a level means.
//
// A source keeps a level for each destination. After each unit of 8 words for a destination of level n
// nothing more goes there for gap(n) cycles: five for level 1, twice as many every four levels.

package velo_congestion_pkg;

  localparam int unsigned LevelBits = 6;
  localparam int unsigned LevelMax = 39;
  typedef logic [LevelBits-1:0] level_t;

  localparam int unsigned GapBits = 12;
  typedef logic [GapBits-1:0] gap_t;

  function automatic gap_t gap(level_t level);
    return level == '0 ? '0 : gap_t'({1'b1, level[1:0]}) << level[LevelBits-1:2];
  endfunction

endpackage
