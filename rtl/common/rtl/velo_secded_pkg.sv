// SPDX-License-Identifier: Apache-2.0
//
// The code that protects memories: corrects one wrong bit of a word and notices two.
//
// Each data bit is part of an odd number, three or more, of the check bits, each of its own set of
// them. A wrong data bit thus shows in an odd number of checks, those of its set; a wrong check bit
// in itself alone; two wrong bits in an even number, which is never none.
// Source: M. Y. Hsiao, "A class of optimal minimum odd-weight-column SEC-DED codes", 1970.

package velo_secded_pkg;

  localparam int unsigned WidthMax = 256;
  localparam int unsigned ChecksMax = 10;

  typedef logic [ChecksMax-1:0] checks_t;
  typedef checks_t [WidthMax-1:0] columns_t;

  // What a memory's user tells of a word that it used, for one cycle each.
  typedef struct packed {
    logic corrected;  // one bit was wrong and was put right
    logic broken;     // two bits were wrong; it was not acted upon
  } ecc_t;

  // As numbers, where several memories may tell in one cycle.
  typedef struct packed {
    logic [5:0] corrected;
    logic [5:0] broken;
  } ecc_count_t;

  // How many of so many tell.
  function automatic ecc_count_t ecc_count(ecc_t [31:0] told);
    ecc_count = '0;
    for (int unsigned m = 0; m < 32; m++) begin
      ecc_count.corrected += 6'(told[m].corrected);
      ecc_count.broken += 6'(told[m].broken);
    end
  endfunction

  // Check bits for so many data bits: of 2**(n-1) odd sets, n hold one check bit only.
  function automatic int unsigned num_checks(int unsigned width);
    num_checks = 3;
    while (2 ** (num_checks - 1) < width + num_checks) num_checks++;
  endfunction

  // The checks that each data bit is part of. Small sets first, so that a check adds up few bits.
  function automatic columns_t columns(int unsigned width);
    int unsigned checks, found;
    columns = '0;
    checks  = num_checks(width);
    found   = 0;
    for (int unsigned size = 3; size <= ChecksMax; size += 2) begin
      for (int unsigned set = 0; set < 2 ** ChecksMax; set++) begin
        if (found < width && set < 2 ** checks && $countones(checks_t'(set)) == size) begin
          columns[found] = checks_t'(set);
          found++;
        end
      end
    end
  endfunction

  // What the whole code rests on: every set odd, three or more, and no two alike.
  function automatic bit is_code(int unsigned width);
    columns_t sets;
    int unsigned size;
    sets = columns(width);
    is_code = 1'b1;
    for (int unsigned i = 0; i < width; i++) begin
      size = $countones(sets[i]);
      if (size < 3 || size % 2 == 0) is_code = 1'b0;
      // The sets ascend among those of one size, so equal ones would be neighbours.
      if (i > 0 && size == $countones(sets[i-1]) && sets[i] <= sets[i-1]) is_code = 1'b0;
    end
  endfunction

endpackage
