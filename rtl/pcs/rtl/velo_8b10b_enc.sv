// SPDX-License-Identifier: Apache-2.0
//
// 8b/10b encoder, one symbol, combinational.
//
// `code_o` bit 0 is bit a of the standard and first on the wire, then b c d e i f g h j. The running
// disparity is one bit: 1 is plus one. Only the twelve K symbols of the standard are encoded with `k_i`;
// for any other value the code has no meaning.
// Source: Widmer and Franaszek, IBM J. Res. Develop. 27 (1983); IEEE 802.3, clause 36.

`include "velo_assert.svh"

module velo_8b10b_enc (
    input  logic [7:0] value_i,      // the byte
    input  logic       k_i,          // it is a K symbol
    input  logic       disparity_i,  // running disparity before
    output logic [9:0] code_o,       // the symbol
    output logic       disparity_o   // running disparity after
);

  logic [5:0] six, six_minus;
  logic [3:0] four, four_minus;
  logic six_uneven, four_uneven, four_turns, middle, sevens;

  // Left to right: a b c d e i, for a running disparity of minus one.
  always_comb begin
    unique case (value_i[4:0])
      5'd0:  six_minus = 6'b100111;
      5'd1:  six_minus = 6'b011101;
      5'd2:  six_minus = 6'b101101;
      5'd3:  six_minus = 6'b110001;
      5'd4:  six_minus = 6'b110101;
      5'd5:  six_minus = 6'b101001;
      5'd6:  six_minus = 6'b011001;
      5'd7:  six_minus = 6'b111000;
      5'd8:  six_minus = 6'b111001;
      5'd9:  six_minus = 6'b100101;
      5'd10: six_minus = 6'b010101;
      5'd11: six_minus = 6'b110100;
      5'd12: six_minus = 6'b001101;
      5'd13: six_minus = 6'b101100;
      5'd14: six_minus = 6'b011100;
      5'd15: six_minus = 6'b010111;
      5'd16: six_minus = 6'b011011;
      5'd17: six_minus = 6'b100011;
      5'd18: six_minus = 6'b010011;
      5'd19: six_minus = 6'b110010;
      5'd20: six_minus = 6'b001011;
      5'd21: six_minus = 6'b101010;
      5'd22: six_minus = 6'b011010;
      5'd23: six_minus = 6'b111010;
      5'd24: six_minus = 6'b110011;
      5'd25: six_minus = 6'b100110;
      5'd26: six_minus = 6'b010110;
      5'd27: six_minus = 6'b110110;
      5'd28: six_minus = k_i ? 6'b001111 : 6'b001110;
      5'd29: six_minus = 6'b101110;
      5'd30: six_minus = 6'b011110;
      5'd31: six_minus = 6'b101011;
    endcase
  end
  // Six bits that are not balanced, and 111000, have a complement for the other disparity.
  assign six_uneven = $countones(six_minus) != 3;
  assign six = disparity_i && (six_uneven || value_i[4:0] == 5'd7) ? ~six_minus : six_minus;
  assign middle = disparity_i ^ six_uneven;

  // D.x.A7 in the place of D.x.P7: no five equal bits across the border between six and four.
  assign sevens = k_i || (middle ? value_i[4:0] inside {5'd11, 5'd13, 5'd14}
                                 : value_i[4:0] inside {5'd17, 5'd18, 5'd20});

  // Left to right: f g h j.
  always_comb begin
    unique case (value_i[7:5])
      3'd0: four_minus = 4'b1011;
      3'd1: four_minus = k_i ? 4'b0110 : 4'b1001;
      3'd2: four_minus = k_i ? 4'b1010 : 4'b0101;
      3'd3: four_minus = 4'b1100;
      3'd4: four_minus = 4'b1101;
      3'd5: four_minus = k_i ? 4'b0101 : 4'b1010;
      3'd6: four_minus = k_i ? 4'b1001 : 4'b0110;
      3'd7: four_minus = sevens ? 4'b0111 : 4'b1110;
    endcase
  end
  assign four_uneven = $countones(four_minus) != 2;
  // Of K symbols every four bits have a complement, or a comma could be where none is.
  assign four_turns = four_uneven || k_i || value_i[7:5] == 3'd3;
  assign four = middle && four_turns ? ~four_minus : four_minus;
  assign disparity_o = middle ^ four_uneven;

  for (genvar b = 0; b < 6; b++) begin : gen_six
    assign code_o[b] = six[5-b];
  end
  for (genvar b = 0; b < 4; b++) begin : gen_four
    assign code_o[6+b] = four[3-b];
  end

endmodule
