// SPDX-License-Identifier: Apache-2.0
//
// Whether all elements of a contiguous or strided access are in a region of so many words. `ok_o` holds two cycles
// after the inputs stand still. Nothing wraps: all sums have the bits that they need.
//
// Elements at equal distances are all inside if the first and the last one are.

module dimmnet_bounds #(
    parameter int unsigned CountBits = 20
) (
    input logic clk_i,

    input logic [31:0] region_words_i,  // words of the region
    input logic [31:0] address_i,  // the first element's first word
    input logic [CountBits-1:0] element_words_i,  // words of an element, at least 1
    input logic [CountBits-1:0] count_i,  // elements, at least 1
    input logic [31:0] step_i,  // from one to the next, signed; not looked at if there is one

    output logic ok_o  // all inside
);

  localparam int unsigned Bits = 32 + CountBits + 2;

  logic signed [Bits-1:0] distance_q, last, limit;
  logic first_ok;

  always_ff @(posedge clk_i)
    distance_q <= Bits'($signed(
        step_i
    )) * Bits'($signed(
        {1'b0, count_i - 1'b1}
    ));

  assign limit = Bits'($signed({1'b0, region_words_i})) - Bits'($signed({1'b0, element_words_i}));
  assign last = Bits'($signed({1'b0, address_i})) + distance_q;
  assign first_ok = Bits'($signed({1'b0, address_i})) <= limit;

  always_ff @(posedge clk_i) ok_o <= first_ok && last >= 0 && last <= limit;

endmodule
