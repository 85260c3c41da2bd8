// SPDX-License-Identifier: Apache-2.0
//
// One parallel step of a CRC: the remainder after `data_i`, most significant bit first, given the
// remainder before it. Combinational; no reflection, no final inversion (that is the user's).
//
// The step is linear over GF(2), so each output bit is the parity of a fixed set of input bits. The
// sets are computed at elaboration by pushing each unit vector through the serial register.
// Poly leaves out the top coefficient, as usual: CRC-32C is 32'h1EDC6F41.

`include "velo_assert.svh"

module velo_crc #(
    parameter int unsigned             Width     = 32,
    parameter int unsigned             DataWidth = 32,
    parameter logic        [Width-1:0] Poly      = 32'h1EDC6F41
) (
    input  logic [    Width-1:0] crc_i,   // remainder so far
    input  logic [DataWidth-1:0] data_i,  // what comes next
    output logic [    Width-1:0] crc_o    // remainder with it
);

  `VELO_ASSERT_INIT(PolynomialHasConstantTerm, Poly[0])

  localparam int unsigned NumIn = Width + DataWidth;

  typedef logic [Width-1:0] crc_t;
  typedef logic [NumIn-1:0] set_t;
  typedef set_t [Width-1:0] sets_t;

  // The serial register: what is left after `bits`, which holds {crc, data}.
  function automatic crc_t serial(set_t bits);
    crc_t rest = bits[NumIn-1-:Width];
    for (int i = int'(DataWidth) - 1; i >= 0; i--) begin
      rest = {rest[Width-2:0], 1'b0} ^ ((rest[Width-1] ^ bits[i]) ? Poly : '0);
    end
    return rest;
  endfunction

  function automatic sets_t input_sets();
    sets_t sets;
    crc_t  column;
    for (int i = 0; i < int'(NumIn); i++) begin
      column = serial(set_t'(1) << i);
      for (int j = 0; j < int'(Width); j++) sets[j][i] = column[j];
    end
    return sets;
  endfunction

  localparam sets_t Sets = input_sets();

  for (genvar i = 0; i < int'(Width); i++) begin : gen_bit
    assign crc_o[i] = ^({crc_i, data_i} & Sets[i]);
  end

endmodule
