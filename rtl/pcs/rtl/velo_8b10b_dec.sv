// SPDX-License-Identifier: Apache-2.0
//
// 8b/10b decoder, one symbol, combinational.
//
// The byte is read off the symbol, encoded again, and compared: what no byte is encoded to is a code
// error, what is encoded to it at the other running disparity only is a disparity error. One of the two
// at most. The byte has no meaning after a code error.
// The running disparity goes on from the symbol itself, so that one wrong bit is not reported for
// ever.
// Source: as velo_8b10b_enc.

`include "velo_assert.svh"

module velo_8b10b_dec (
    input  logic [9:0] code_i,             // the symbol, bit 0 first on the wire
    input  logic       disparity_i,        // running disparity before
    output logic [7:0] value_o,            // the byte
    output logic       k_o,                // it is a K symbol
    output logic       code_error_o,       // no symbol
    output logic       disparity_error_o,  // a symbol, not at this disparity
    output logic       disparity_o         // running disparity after
);

  logic [5:0] six;
  logic [3:0] four;
  logic [4:0] low;
  logic [2:0] high;
  logic is_28, is_28_minus, k_seven;

  // Left to right: a b c d e i, f g h j.
  for (genvar b = 0; b < 6; b++) begin : gen_six
    assign six[5-b] = code_i[b];
  end
  for (genvar b = 0; b < 4; b++) begin : gen_four
    assign four[3-b] = code_i[6+b];
  end

  always_comb begin
    case (six)
      6'b100111, 6'b011000: low = 5'd0;
      6'b011101, 6'b100010: low = 5'd1;
      6'b101101, 6'b010010: low = 5'd2;
      6'b110001:            low = 5'd3;
      6'b110101, 6'b001010: low = 5'd4;
      6'b101001:            low = 5'd5;
      6'b011001:            low = 5'd6;
      6'b111000, 6'b000111: low = 5'd7;
      6'b111001, 6'b000110: low = 5'd8;
      6'b100101:            low = 5'd9;
      6'b010101:            low = 5'd10;
      6'b110100:            low = 5'd11;
      6'b001101:            low = 5'd12;
      6'b101100:            low = 5'd13;
      6'b011100:            low = 5'd14;
      6'b010111, 6'b101000: low = 5'd15;
      6'b011011, 6'b100100: low = 5'd16;
      6'b100011:            low = 5'd17;
      6'b010011:            low = 5'd18;
      6'b110010:            low = 5'd19;
      6'b001011:            low = 5'd20;
      6'b101010:            low = 5'd21;
      6'b011010:            low = 5'd22;
      6'b111010, 6'b000101: low = 5'd23;
      6'b110011, 6'b001100: low = 5'd24;
      6'b100110:            low = 5'd25;
      6'b010110:            low = 5'd26;
      6'b110110, 6'b001001: low = 5'd27;
      6'b001110:            low = 5'd28;
      6'b001111, 6'b110000: low = 5'd28;  // of K symbols
      6'b101110, 6'b010001: low = 5'd29;
      6'b011110, 6'b100001: low = 5'd30;
      6'b101011, 6'b010100: low = 5'd31;
      default:              low = 5'd0;
    endcase
  end

  assign is_28 = six inside {6'b001111, 6'b110000};
  assign is_28_minus = six == 6'b001111;
  // K23.7, K27.7, K29.7, K30.7: the sevens that a D symbol of these does not use.
  assign k_seven = low inside {5'd23, 5'd27, 5'd29, 5'd30} && four inside {4'b0111, 4'b1000};
  assign k_o = is_28 || k_seven;

  // The four bits of K28 as they are after six of weight four.
  always_comb begin
    case (is_28_minus ? ~four : four)
      4'b1011, 4'b0100: high = 3'd0;
      4'b1001:          high = is_28 ? 3'd6 : 3'd1;
      4'b0101:          high = is_28 ? 3'd5 : 3'd2;
      4'b1100, 4'b0011: high = 3'd3;
      4'b1101, 4'b0010: high = 3'd4;
      4'b1010:          high = is_28 ? 3'd2 : 3'd5;
      4'b0110:          high = is_28 ? 3'd1 : 3'd6;
      default:          high = 3'd7;
    endcase
  end
  assign value_o = {high, low};

  logic [9:0] at_minus, at_plus;
  logic after_minus, after_plus;
  velo_8b10b_enc u_minus (
      .value_i    (value_o),
      .k_i        (k_o),
      .disparity_i(1'b0),
      .code_o     (at_minus),
      .disparity_o(after_minus)
  );
  velo_8b10b_enc u_plus (
      .value_i    (value_o),
      .k_i        (k_o),
      .disparity_i(1'b1),
      .code_o     (at_plus),
      .disparity_o(after_plus)
  );
  assign code_error_o = code_i != at_minus && code_i != at_plus;
  assign disparity_error_o = !code_error_o && code_i != (disparity_i ? at_plus : at_minus);

  // IEEE 802.3, 36.2.4.4: six and four bits by themselves each tell it, if they are not balanced or are
  // those that have a complement. A lane of zeros (D0.0) is balanced and tells it all the same.
  logic after_six;
  always_comb begin
    after_six = disparity_i;
    if ($countones(six) > 3 || six == 6'b000111) after_six = 1'b1;
    else if ($countones(six) < 3 || six == 6'b111000) after_six = 1'b0;
    disparity_o = after_six;
    if ($countones(four) > 2 || four == 4'b0011) disparity_o = 1'b1;
    else if ($countones(four) < 2 || four == 4'b1100) disparity_o = 1'b0;
  end

  logic unused;
  assign unused = &{1'b0, after_minus, after_plus};

endmodule
