// SPDX-License-Identifier: Apache-2.0
//
// Congestion management: what a level means.
//
// A source keeps a level for each destination. After each unit of 8 words for a destination of level n
// nothing more goes there for gap(n) cycles: five for level 1, twice as many every four levels. Notices raise
// the level, time lowers it. Time lowers equal levels alike, and who sends more gets more notices: so senders come
// to send alike.
//
// Time lowers high levels more slowly. Notices are for packets: those of many slow senders are too few to hold
// levels that all fall at one pace.

package velo_congestion_pkg;

  localparam int unsigned LevelBits = 6;
  localparam int unsigned LevelMax = 39;
  typedef logic [LevelBits-1:0] level_t;

  localparam int unsigned GapBits = 12;
  typedef logic [GapBits-1:0] gap_t;

  function automatic gap_t gap(level_t level);
    return level == '0 ? '0 : gap_t'({1'b1, level[1:0]}) << level[LevelBits-1:2];
  endfunction

  // Of so many walks over all levels, less one, one lowers this level: each up to 28, every second up to 36,
  // then every fourth.
  localparam int unsigned RoundBits = 2;
  typedef logic [RoundBits-1:0] round_t;

  function automatic round_t rounds(level_t level);
    return {level > 6'd36, level > 6'd28};
  endfunction

  // Between two raises of a level so many units go to the destination, at the least: what was sent at the
  // level before has to leave the buffers on the way, where it goes on to be marked.
  localparam int unsigned RaiseUnits = 32;
  typedef logic [$clog2(RaiseUnits + 1)-1:0] sent_t;

endpackage
