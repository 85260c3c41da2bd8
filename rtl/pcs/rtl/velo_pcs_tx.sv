// SPDX-License-Identifier: Apache-2.0
//
// Sending half of the coding, in the serializer's clock: words go to the lanes, a skip set at least every
// SkipEvery cycles to all of them at once.
//
// Lane l carries the l-th part of the word, the lowest first. Lanes get the same kinds, so they take words
// and send skip sets together. Latency 2 cycles. Errors: none.

`include "velo_assert.svh"

module velo_pcs_tx
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
#(
    parameter coding_e Coding = Coding8b10b,
    parameter int unsigned NumLanes = 1,
    parameter int unsigned SkipEvery = 256,
    localparam int unsigned LaneBits = lane_bits(Coding),
    localparam int unsigned WireBits = wire_bits(Coding)
) (
    input logic clk_i,  // of the serializer
    input logic rst_ni,

    input  logic                               valid_i,  // a word is offered
    output logic                               ready_o,  // it is taken
    input  kind_e                              kind_i,   // its kind
    input  logic  [NumLanes-1:0][LaneBits-1:0] data_i,   // the word

    output logic [NumLanes-1:0][WireBits-1:0] wire_o  // to the serializers, bit 0 first
);

  localparam int unsigned CountBits = $clog2(SkipEvery);

  logic [CountBits-1:0] count_q;
  logic due_q, sent;
  number_t number_q;
  logic [NumLanes-1:0] lane_ready, lane_sent;

  assign ready_o = lane_ready[0];
  assign sent = lane_sent[0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q  <= '0;
      due_q    <= 1'b1;
      number_q <= '0;
    end else begin
      if (sent) begin
        count_q  <= '0;
        due_q    <= 1'b0;
        number_q <= number_q + 1'b1;
      end else begin
        // A set that is due goes out after what waits, up to two cycles later.
        due_q   <= due_q || count_q == CountBits'(SkipEvery - 4);
        count_q <= count_q + 1'b1;
      end
    end
  end

  for (genvar l = 0; l < NumLanes; l++) begin : gen_lane
    if (Coding == Coding8b10b) begin : gen_8b10b
      velo_pcs8_tx #(
          .Lane(l)
      ) u_tx (
          .clk_i     (clk_i),
          .rst_ni    (rst_ni),
          .valid_i   (valid_i),
          .ready_o   (lane_ready[l]),
          .kind_i    (kind_i),
          .data_i    (data_i[l]),
          .skip_i    (due_q),
          .skip_o    (lane_sent[l]),
          .skip_num_i(number_q),
          .wire_o    (wire_o[l])
      );
    end else begin : gen_64b66b
      velo_pcs66_tx #(
          .Lane(l)
      ) u_tx (
          .clk_i     (clk_i),
          .rst_ni    (rst_ni),
          .valid_i   (valid_i),
          .ready_o   (lane_ready[l]),
          .kind_i    (kind_i),
          .data_i    (data_i[l]),
          .skip_i    (due_q),
          .skip_o    (lane_sent[l]),
          .skip_num_i(number_q),
          .wire_o    (wire_o[l])
      );
    end
  end

  `VELO_ASSERT_INIT(SkipsLeaveRoom, SkipEvery >= 16 && SkipEvery == 2 ** CountBits)
  `VELO_ASSERT(LanesInStep, lane_ready == {NumLanes{ready_o}} && lane_sent == {NumLanes{sent}})
  `VELO_ASSERT(SkipInTime, count_q != CountBits'(SkipEvery - 1) || sent)

endmodule
