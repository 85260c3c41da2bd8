// SPDX-License-Identifier: Apache-2.0
//
// Congestion management: what a level means.
//
// A source keeps a level for each destination. After each unit of 8 words for a destination of level n
// nothing more goes there for gap(n) cycles: five for level 1, twice as many every four levels. Notices raise
// the level, time lowers it. Time lowers all levels alike, and who sends more gets more notices: so senders come
// to send alike.

package velo_congestion_pkg;

  localparam int unsigned LevelBits = 6;
  localparam int unsigned LevelMax = 39;
  typedef logic [LevelBits-1:0] level_t;

  localparam int unsigned GapBits = 12;
  typedef logic [GapBits-1:0] gap_t;

  function automatic gap_t gap(level_t level);
    return level == '0 ? '0 : gap_t'({1'b1, level[1:0]}) << level[LevelBits-1:2];
  endfunction

  // Between two raises of a level so many units go to the destination, at the least: what was sent at the
  // level before has to leave the buffers on the way, where it goes on to be marked.
  localparam int unsigned RaiseUnits = 32;
  typedef logic [$clog2(RaiseUnits + 1)-1:0] sent_t;

endpackage
