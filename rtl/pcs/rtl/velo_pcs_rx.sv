// SPDX-License-Identifier: Apache-2.0
//
// Receiving half of the coding, in the recovered clocks: lanes are aligned, decoded, bonded; words come
// out in the clock of lane 0, not in every cycle.
//
// Latency: 8b/10b and 64b/66b 4 cycles with one lane (3 of them alignment and decoder), 3 more with
// several (velo_pcs_deskew, and the cable of the longest lane).
// Errors: `wrong_o` with a word that is known not to be what was sent: a part of it was, or its lanes do
// not agree on its kind. Events are one pulse each, in the clock of their lane.

`include "velo_assert.svh"

module velo_pcs_rx
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
#(
    parameter coding_e Coding = Coding8b10b,
    parameter int unsigned NumLanes = 1,
    parameter int unsigned SkewDepth = 16,
    localparam int unsigned LaneBits = lane_bits(Coding),
    localparam int unsigned WireBits = wire_bits(Coding)
) (
    input logic [NumLanes-1:0] clk_i,  // recovered, one a lane
    input logic [NumLanes-1:0] rst_ni, // one a lane

    input logic [NumLanes-1:0]               signal_i,  // the receiver sees a signal
    input logic [NumLanes-1:0][WireBits-1:0] wire_i,    // from the deserializers

    output logic [NumLanes-1:0] locked_o,           // of each lane
    output logic [NumLanes-1:0] code_error_o,       // no symbol, no header
    output logic [NumLanes-1:0] disparity_error_o,  // 8b/10b: a symbol at the wrong disparity
    output logic [NumLanes-1:0] skip_o,             // a skip set came
    output logic [NumLanes-1:0] lost_o,             // the end of a lock

    // In the clock of lane 0.
    output logic                               aligned_o,     // the lanes are in step
    output logic                               skew_lost_o,   // they are not any more
    output logic                               type_error_o,  // 64b/66b: a block of no known type
    output logic                               valid_o,       // a word has come
    output logic                               wrong_o,       // it is not what was sent
    output kind_e                              kind_o,        // its kind
    output logic  [NumLanes-1:0][LaneBits-1:0] data_o         // the word
);

  localparam int unsigned UnitBits = Coding == Coding8b10b ? $bits(group_t) : $bits(block_t);

  logic [NumLanes-1:0][UnitBits-1:0] unit, joined;
  logic [NumLanes-1:0] set, valid, wrong, type_error;
  number_t [NumLanes-1:0] number;
  logic [NumLanes-1:0][1:0] kind;
  logic joined_valid;

  for (genvar l = 0; l < NumLanes; l++) begin : gen_lane
    // What says a skip set has to say it twice.
    logic [7:0] complement, lane;
    if (Coding == Coding8b10b) begin : gen_8b10b
      group_t group;
      velo_pcs8_align u_align (
          .clk_i            (clk_i[l]),
          .rst_ni           (rst_ni[l]),
          .signal_i         (signal_i[l]),
          .wire_i           (wire_i[l]),
          .locked_o         (locked_o[l]),
          .group_o          (group),
          .code_error_o     (code_error_o[l]),
          .disparity_error_o(disparity_error_o[l]),
          .lost_o           (lost_o[l])
      );
      assign unit[l] = group;
      assign {lane, complement, number[l]} = {group[3].value, group[2].value, group[1].value};
      assign set[l] = group[0] == {1'b0, 1'b1, SymbolComma} && complement == ~number[l] &&
          lane == 8'(l);

      velo_pcs8_parse u_parse (
          .clk_i  (clk_i[0]),
          .rst_ni (rst_ni[0]),
          .valid_i(joined_valid),
          .group_i(joined[l]),
          .valid_o(valid[l]),
          .wrong_o(wrong[l]),
          .kind_o (kind[l]),
          .data_o (data_o[l])
      );
      assign type_error[l] = 1'b0;
    end else begin : gen_64b66b
      block_t block;
      velo_pcs66_align u_align (
          .clk_i         (clk_i[l]),
          .rst_ni        (rst_ni[l]),
          .signal_i      (signal_i[l]),
          .wire_i        (wire_i[l]),
          .locked_o      (locked_o[l]),
          .block_o       (block),
          .header_error_o(code_error_o[l]),
          .lost_o        (lost_o[l])
      );
      assign disparity_error_o[l] = 1'b0;
      assign unit[l] = block;
      assign {lane, complement, number[l]} = block.payload[31:8];
      assign set[l] = !block.bad && block.control && block.payload[7:0] == TypeSkip &&
          complement == ~number[l] && lane == 8'(l);

      velo_pcs66_parse u_parse (
          .clk_i       (clk_i[0]),
          .rst_ni      (rst_ni[0]),
          .valid_i     (joined_valid),
          .block_i     (joined[l]),
          .valid_o     (valid[l]),
          .wrong_o     (wrong[l]),
          .kind_o      (kind[l]),
          .data_o      (data_o[l]),
          .type_error_o(type_error[l])
      );
    end
    assign skip_o[l] = locked_o[l] && set[l];
  end

  if (NumLanes == 1) begin : gen_one
    // One lane is in step with itself; its first skip set proves that it is this link's lane 0.
    always_ff @(posedge clk_i[0] or negedge rst_ni[0]) begin
      if (!rst_ni[0]) aligned_o <= 1'b0;
      else aligned_o <= locked_o[0] && (aligned_o || set[0]);
    end
    assign joined_valid = aligned_o;
    assign joined = unit;
    assign skew_lost_o = 1'b0;
  end else begin : gen_several
    velo_pcs_deskew #(
        .NumLanes  (NumLanes),
        .Width     (UnitBits),
        .DepthWords(SkewDepth)
    ) u_deskew (
        .clk_i    (clk_i),
        .rst_ni   (rst_ni),
        .locked_i (locked_o),
        .word_i   (unit),
        .set_i    (set),
        .number_i (number),
        .aligned_o(aligned_o),
        .valid_o  (joined_valid),
        .word_o   (joined),
        .lost_o   (skew_lost_o)
    );
  end

  assign valid_o = valid != '0;
  assign wrong_o = wrong != '0 || valid != '1 || kind != {NumLanes{kind[0]}};
  assign kind_o = kind_e'(kind[0]);
  assign type_error_o = type_error != '0;

endmodule
